//! Whether the device code in an extension is what was planned.

use std::collections::BTreeSet;

use kiln_backend::offload::{self, Bundle};
use kiln_backend::{ObjectError, WrongCode, archive};

use crate::arch::Target;

/// What one component plans.
pub(crate) struct Planned {
    /// Its targets.
    pub(crate) targets: Vec<Target>,
    /// Whether flags of its own ask for more.
    pub(crate) open: bool,
}

/// Compares what is in `file`, an extension or a static library, with what was planned for its components with device code.
///
/// # Errors
/// When there is less than planned, or more, or code for another processor than its bundle says.
pub(crate) fn verify(planned: &[Planned], file: &[u8]) -> Result<(), WrongCode> {
    let (what, found) = match archive::is_archive(file) {
        true => ("library", of_library(file)),
        false => ("extension", offload::of_elf(file)),
    };
    compare(planned, &found.map_err(|cause| wrong(format!("the device code cannot be read: {cause}")))?, what)
}

/// Compares what is in `file` with the targets that metadata name: there is code for each, and all is for what its bundle says. What else
/// is inside is not known to be wrong.
///
/// # Errors
/// When a name is none of a target, or there is less, or code for another processor than its bundle says.
pub(crate) fn verify_recorded(names: &[String], file: &[u8]) -> Result<(), WrongCode> {
    let targets = names.iter().map(|name| name.parse::<Target>()).collect::<Result<Vec<_>, _>>();
    let targets = targets.map_err(|error| wrong(format!("an architecture of the metadata: {error}")))?;
    verify(&[Planned { targets, open: true }], file)
}

fn wrong(message: String) -> WrongCode {
    WrongCode { message, hint: None }
}

/// The bundles of all objects in a static library.
fn of_library(file: &[u8]) -> Result<Vec<Bundle>, ObjectError> {
    let of_members = archive::members(file)?.into_iter().map(|member| offload::of_elf(member.data)).collect::<Result<Vec<_>, _>>()?;
    Ok(of_members.into_iter().flatten().collect())
}

/// Compares what was found in a file; `what` is the word for it.
fn compare(planned: &[Planned], found: &[Bundle], what: &str) -> Result<(), WrongCode> {
    for entry in found.iter().flat_map(|bundle| &bundle.entries) {
        if entry.target != entry.code.target {
            let (says, is) = (&entry.target, &entry.code.target);
            return Err(wrong(format!("the {what} says `{says}` of code that is for `{is}`")));
        }
    }
    let found: Vec<BTreeSet<String>> =
        found.iter().map(|bundle| bundle.entries.iter().map(|entry| entry.target.clone()).collect()).collect();
    let sets: Vec<BTreeSet<String>> = planned.iter().map(|component| component.targets.iter().map(ToString::to_string).collect()).collect();
    let expected: BTreeSet<String> = sets.iter().flatten().cloned().collect();
    let inside: BTreeSet<String> = found.iter().flatten().cloned().collect();
    let missing: Vec<&String> = expected.difference(&inside).collect();
    if !missing.is_empty() {
        let inside: Vec<&String> = inside.iter().collect();
        return Err(wrong(format!("the {what} has no code for {}, which was planned; inside is {}", list(&missing), list(&inside))));
    }
    if planned.iter().any(|component| component.open) {
        return Ok(());
    }
    let surplus: Vec<&String> = inside.difference(&expected).collect();
    if !surplus.is_empty() {
        return Err(wrong(format!("the {what} has code for {}, which was not planned", list(&surplus))));
    }
    // A unit whose code was lost for one target hides behind another unit that has it.
    if let Some(part) = found.iter().find(|part| !sets.contains(part)) {
        let part: Vec<&String> = part.iter().collect();
        return Err(wrong(format!("a unit of the {what} has code for {} alone, which no component plans", list(&part))));
    }
    Ok(())
}

fn list(targets: &[&String]) -> String {
    match targets.is_empty() {
        true => "nothing".to_owned(),
        false => targets.iter().map(|target| format!("`{target}`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use kiln_backend::offload::{CodeObject, Entry};

    use super::*;

    fn planned(targets: &str) -> Planned {
        Planned { targets: targets.split(' ').map(|entry| entry.parse().unwrap()).collect(), open: false }
    }

    fn bundle(targets: &str) -> Bundle {
        let entry = |target: &str| Entry {
            target: target.to_owned(),
            code: CodeObject { target: target.to_owned(), kernels: vec!["k".to_owned()] },
        };
        Bundle { entries: targets.split(' ').filter(|name| !name.is_empty()).map(entry).collect() }
    }

    fn said(planned: &[Planned], found: &[Bundle]) -> Option<String> {
        compare(planned, found, "extension").err().map(|wrong| wrong.message)
    }

    #[test]
    fn what_is_inside_must_be_what_was_planned() {
        let plan = [planned("gfx90a gfx942:xnack+"), planned("gfx1100")];
        assert_eq!(said(&plan, &["gfx942:xnack+ gfx90a", "gfx1100", "gfx1100"].map(bundle)), None, "units in any number and order");
        let missing = said(&plan, &["gfx90a gfx942", "gfx1100"].map(bundle)).unwrap();
        assert!(missing.starts_with("the extension has no code for `gfx942:xnack+`, which was planned; inside is `gfx1100`"), "{missing}");
        assert!(said(&plan, &[]).unwrap().ends_with("inside is nothing"), "a build without any code");
        let surplus = said(&plan, &["gfx90a gfx942:xnack+ gfx906", "gfx1100"].map(bundle)).unwrap();
        assert_eq!(surplus, "the extension has code for `gfx906`, which was not planned");
        let hidden = said(&plan, &["gfx90a gfx942:xnack+", "gfx90a", "gfx1100"].map(bundle)).unwrap();
        assert_eq!(hidden, "a unit of the extension has code for `gfx90a` alone, which no component plans");
        let open = [Planned { open: true, ..planned("gfx90a") }];
        assert_eq!(said(&open, &["gfx90a gfx906"].map(bundle)), None);
    }

    #[test]
    fn code_is_what_its_bundle_says() {
        let mut other = bundle("gfx90a gfx1100");
        other.entries[1].code.target = "gfx1101".to_owned();
        assert_eq!(said(&[planned("gfx90a gfx1100")], &[other]).unwrap(), "the extension says `gfx1100` of code that is for `gfx1101`");
    }
}
