//! Whether the device code in an extension is what was planned.

use std::collections::BTreeSet;
use std::fmt;

use kiln_backend::fatbin::{self, Fatbin, ImageKind};
use kiln_backend::{CudaCapability, CudaSuffix, MajorMinor, ObjectError, WrongCode, archive};

/// The first toolkit whose images say which suffix they are for.
const SUFFIXES: MajorMinor = MajorMinor::new(13, 0);

/// Device code for one architecture: `sm_90a`, `compute_90`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Code {
    arch: u32,
    suffix: Option<char>,
    ptx: bool,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", if self.ptx { "compute" } else { "sm" }, self.arch)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

/// What one component plans.
pub(crate) struct Planned {
    /// Its capabilities.
    pub(crate) capabilities: Vec<CudaCapability>,
    /// Whether flags of its own ask for more.
    pub(crate) open: bool,
    /// Whether its code is linked with that of others.
    pub(crate) relocatable: bool,
}

/// Compares what is in `file`, an extension or a static library, with what was planned for its components with device code.
///
/// # Errors
/// When there is less than planned, or more.
pub(crate) fn verify(planned: &[Planned], toolkit: MajorMinor, file: &[u8]) -> Result<(), WrongCode> {
    let (what, found) = match archive::is_archive(file) {
        true => ("library", of_library(file)),
        false => ("extension", fatbin::of_elf(file)),
    };
    let unreadable = |cause: ObjectError| WrongCode { message: format!("the device code cannot be read: {cause}"), hint: None };
    compare(planned, toolkit, &found.map_err(unreadable)?, what)
}

/// Compares what is in an extension with the capabilities that its metadata name, which a toolkit of `release` was given.
///
/// # Errors
/// When one is none, or there is no code for it. More than that is no fault: flags of a component may ask for it.
pub fn verify_recorded(capabilities: &[String], release: MajorMinor, file: &[u8]) -> Result<(), WrongCode> {
    let parsed: Result<Vec<CudaCapability>, _> = capabilities.iter().map(|text| text.parse()).collect();
    let capabilities = parsed.map_err(|error| WrongCode { message: format!("a capability of the metadata: {error}"), hint: None })?;
    verify(&[Planned { capabilities, open: true, relocatable: false }], release, file)
}

/// The fatbins of all objects in a static library.
fn of_library(file: &[u8]) -> Result<Vec<Fatbin>, ObjectError> {
    let of_members = archive::members(file)?.into_iter().map(|member| fatbin::of_elf(member.data)).collect::<Result<Vec<_>, _>>()?;
    Ok(of_members.into_iter().flatten().collect())
}

/// Compares what was found in a file; `what` is the word for it.
fn compare(planned: &[Planned], toolkit: MajorMinor, found: &[Fatbin], what: &str) -> Result<(), WrongCode> {
    let wrong = |message: String| WrongCode { message, hint: None };
    let has_suffix = toolkit >= SUFFIXES;
    let found: Vec<BTreeSet<Code>> = found
        .iter()
        .map(|fatbin| {
            let known = fatbin.images.iter().filter(|image| !matches!(image.kind, ImageKind::Other(_)));
            let code = known.map(|image| Code {
                arch: image.arch,
                suffix: image.suffix.filter(|_| has_suffix),
                ptx: image.kind == ImageKind::Ptx,
            });
            code.collect()
        })
        .collect();
    let sets: Vec<BTreeSet<Code>> = planned.iter().map(|component| codes(&component.capabilities, has_suffix)).collect();
    let expected: BTreeSet<Code> = sets.iter().flatten().cloned().collect();
    let inside: BTreeSet<Code> = found.iter().flatten().cloned().collect();
    let missing: BTreeSet<Code> = expected.difference(&inside).cloned().collect();
    if !missing.is_empty() {
        return Err(wrong(format!("the {what} has no code for {}, which was planned; inside is {}", list(&missing), list(&inside))));
    }
    if planned.iter().any(|component| component.open) {
        return Ok(());
    }
    let surplus: BTreeSet<Code> = inside.difference(&expected).cloned().collect();
    if !surplus.is_empty() {
        return Err(wrong(format!("the {what} has code for {}, which was not planned", list(&surplus))));
    }
    // A unit whose code was lost for one capability hides behind another unit that has it.
    if !planned.iter().any(|component| component.relocatable)
        && let Some(part) = found.iter().find(|part| !sets.contains(part))
    {
        return Err(wrong(format!("a unit of the {what} has code for {} alone, which no component plans", list(part))));
    }
    Ok(())
}

fn codes(capabilities: &[CudaCapability], has_suffix: bool) -> BTreeSet<Code> {
    let mut codes = BTreeSet::new();
    for capability in capabilities {
        let suffix = match capability.suffix {
            Some(CudaSuffix::Arch) if has_suffix => Some('a'),
            Some(CudaSuffix::Family) if has_suffix => Some('f'),
            _ => None,
        };
        let code = Code { arch: capability.major * 10 + capability.minor, suffix, ptx: false };
        if capability.ptx {
            codes.insert(Code { ptx: true, ..code.clone() });
        }
        codes.insert(code);
    }
    codes
}

fn list(codes: &BTreeSet<Code>) -> String {
    match codes.is_empty() {
        true => "nothing".to_owned(),
        false => codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use kiln_backend::fatbin::{Image, Packing};

    use super::*;

    fn planned(capabilities: &str) -> Planned {
        let capabilities = capabilities.split(' ').map(|entry| entry.parse().unwrap()).collect();
        Planned { capabilities, open: false, relocatable: false }
    }

    /// A fatbin by the names of its images: `sm_90a`, `compute_90`.
    fn fatbin(images: &str) -> Fatbin {
        let image = |name: &str| {
            let (kind, arch) = name.split_once('_').unwrap();
            let digits = arch.trim_end_matches(['a', 'f']);
            Image {
                kind: if kind == "sm" { ImageKind::Cubin } else { ImageKind::Ptx },
                arch: digits.parse().unwrap(),
                suffix: arch.strip_prefix(digits).and_then(|rest| rest.chars().next()),
                packing: Packing::None,
                size: 1,
            }
        };
        Fatbin { images: images.split(' ').filter(|name| !name.is_empty()).map(image).collect() }
    }

    fn said(planned: &[Planned], found: &[&str]) -> Option<String> {
        let found: Vec<Fatbin> = found.iter().map(|images| fatbin(images)).collect();
        compare(planned, MajorMinor::new(13, 2), &found, "extension").err().map(|wrong| wrong.message)
    }

    #[test]
    fn what_is_inside_must_be_what_was_planned() {
        let plan = [planned("8.0 9.0a"), planned("12.0+PTX")];
        assert_eq!(said(&plan, &["sm_80 sm_90a", "sm_120 compute_120"]), None);
        assert_eq!(said(&plan, &["compute_120 sm_120", "sm_90a sm_80", "sm_80 sm_90a"]), None, "units in any number and order");
        let missing = said(&plan, &["sm_80 sm_90a", "sm_120"]).unwrap();
        assert!(missing.starts_with("the extension has no code for `compute_120`, which was planned"), "{missing}");
        assert!(said(&plan, &[]).unwrap().ends_with("inside is nothing"), "a build without any code");
        let plain = said(&plan, &["sm_80 sm_90", "sm_120 compute_120"]).unwrap();
        assert!(plain.starts_with("the extension has no code for `sm_90a`"), "{plain}");
        let surplus = said(&plan, &["sm_80 sm_90a sm_100", "sm_120 compute_120"]);
        assert_eq!(surplus.unwrap(), "the extension has code for `sm_100`, which was not planned");
        let hidden = said(&plan, &["sm_80 sm_90a", "sm_80", "sm_120 compute_120"]).unwrap();
        assert_eq!(hidden, "a unit of the extension has code for `sm_80` alone, which no component plans");
    }

    #[test]
    fn flags_and_device_links_may_add_and_join() {
        let open = [Planned { open: true, ..planned("8.0") }];
        assert_eq!(said(&open, &["sm_80 sm_100"]), None);
        assert!(said(&open, &["sm_100"]).is_some());
        let linked = [Planned { relocatable: true, ..planned("8.0") }, planned("9.0")];
        assert_eq!(said(&linked, &["sm_80", "sm_90", "sm_80 sm_90"]), None);
        assert!(
            compare(&[planned("9.0a")], MajorMinor::new(12, 6), &[fatbin("sm_90")], "extension").is_ok(),
            "older toolkits do not say the suffix"
        );
    }
}
