//! Whether the device code in an extension is what was planned.

use std::collections::BTreeSet;

use kiln_backend::WrongCode;
use kiln_backend::sycl::{self, Code, Image};

use crate::targets::JIT;

/// What SYCL units of a variant plan.
pub(crate) struct Planned {
    /// The targets, as files name them: each once.
    pub(crate) targets: BTreeSet<&'static str>,
    /// Whether flags of the author's own ask for others.
    pub(crate) open: bool,
}

/// Compares what is in `file`, an extension, with what was planned.
///
/// # Errors
/// When there is no code for a target, code for another one, or code of a kind that the target does not take.
pub(crate) fn verify(planned: &Planned, file: &[u8]) -> Result<(), WrongCode> {
    compare(planned, &read(file)?)
}

fn compare(planned: &Planned, found: &[Image]) -> Result<(), WrongCode> {
    kinds(found)?;
    let inside: BTreeSet<&str> = found.iter().map(|image| image.target.as_str()).collect();
    if planned.open {
        return some(found);
    }
    let missing: Vec<&str> = planned.targets.difference(&inside).copied().collect();
    if !missing.is_empty() {
        let inside: Vec<String> = found.iter().map(ToString::to_string).collect();
        let inside = if inside.is_empty() { "nothing".to_owned() } else { inside.join(", ") };
        return Err(wrong(format!("the extension has no code for {}, which was planned; inside is {inside}", list(&missing))));
    }
    let surplus: Vec<&str> = inside.difference(&planned.targets).copied().collect();
    if !surplus.is_empty() {
        return Err(wrong(format!("the extension has code for {}, which was not planned", list(&surplus))));
    }
    Ok(())
}

/// Whether an extension for XPU has device code that a device can take.
///
/// # Errors
/// When it has none, or what is there cannot be read, or is of a kind that its target does not take.
pub(crate) fn verify_recorded(file: &[u8]) -> Result<(), WrongCode> {
    let found = read(file)?;
    kinds(&found)?;
    some(&found)
}

fn read(file: &[u8]) -> Result<Vec<Image>, WrongCode> {
    sycl::of_elf(file).map_err(|cause| wrong(format!("the device code cannot be read: {cause}")))
}

/// SPIR-V is for drivers, and what is made ahead of time is for a GPU: one in the place of the other is code for nothing.
fn kinds(found: &[Image]) -> Result<(), WrongCode> {
    let fits = |image: &&Image| if image.target == JIT { matches!(image.code, Code::SpirV { .. }) } else { image.is_native() };
    match found.iter().find(|image| !fits(image)) {
        Some(image) => Err(wrong(format!("the extension has {image}, which is no code for it"))),
        None => Ok(()),
    }
}

fn some(found: &[Image]) -> Result<(), WrongCode> {
    if found.is_empty() { Err(wrong("the extension has no device code".to_owned())) } else { Ok(()) }
}

fn wrong(message: String) -> WrongCode {
    WrongCode { message, hint: None }
}

fn list(targets: &[&str]) -> String {
    targets.iter().map(|target| format!("`{target}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 2] = ["spir64_gen", "spir64"];

    fn planned(targets: &[&'static str]) -> Planned {
        Planned { targets: targets.iter().copied().collect(), open: false }
    }

    fn image(target: &str) -> Image {
        let code = match target {
            "spir64" => Code::SpirV { version: (1, 4), kernels: vec!["k".to_owned()] },
            _ => Code::Archive { members: vec!["64.12.60.7".to_owned()] },
        };
        Image { target: target.to_owned(), is_packed: true, code }
    }

    fn said(planned: &Planned, found: &[Image]) -> Option<String> {
        compare(planned, found).err().map(|wrong| wrong.message)
    }

    #[test]
    fn what_is_inside_must_be_what_was_planned() {
        let plan = planned(&ALL);
        assert_eq!(said(&plan, &["spir64", "spir64_gen", "spir64"].map(image)), None, "units in any number and order");
        let missing = said(&plan, &["spir64"].map(image)).unwrap();
        assert_eq!(missing, "the extension has no code for `spir64_gen`, which was planned; inside is SPIR-V for `spir64`");
        assert!(said(&plan, &[]).unwrap().ends_with("inside is nothing"), "a build without any code");
        let surplus = said(&planned(&["spir64"]), &ALL.map(image)).unwrap();
        assert_eq!(surplus, "the extension has code for `spir64_gen`, which was not planned");
    }

    #[test]
    fn the_kind_of_code_goes_with_the_target() {
        for (target, of, message) in [
            ("spir64_gen", "spir64", "the extension has SPIR-V for `spir64_gen`, which is no code for it"),
            ("spir64", "spir64_gen", "the extension has GPU code for `spir64`, which is no code for it"),
        ] {
            let other = Image { target: target.to_owned(), ..image(of) };
            let found = [ALL.map(image).to_vec(), vec![other.clone()]].concat();
            assert_eq!(said(&planned(&ALL), &found).as_deref(), Some(message));
            assert!(compare(&Planned { open: true, ..planned(&[]) }, &[other]).is_err());
        }
        let bitcode = Image { code: Code::Bitcode, ..image("spir64_gen") };
        assert!(said(&planned(&ALL), &[image("spir64"), bitcode]).is_some(), "code that nobody has finished");
    }

    #[test]
    fn flags_of_the_author_may_ask_for_others() {
        let open = Planned { open: true, ..planned(&ALL) };
        assert_eq!(said(&open, &[image("spir64_x86_64")]), None);
        assert_eq!(said(&open, &[]).as_deref(), Some("the extension has no device code"));
    }
}
