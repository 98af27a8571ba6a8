//! What is taken from torch under its stable ABI.

use kiln_format::MajorMinor;
use kiln_object::demangle::entity;
use kiln_object::elf::Import;

use super::{Check, shown};
use crate::expectation::Framework;
use crate::rule::Rule;
use crate::shims::{self, Since};

/// Namespaces that the stable ABI consists of.
const STABLE: &[&str] = &["torch::stable::", "torch::headeronly::"];
/// Namespaces that change with every release.
const UNSTABLE: &[&str] = &["c10::", "at::", "torch::", "caffe2::"];

pub(super) fn check(check: &mut Check<'_, '_>) {
    let Some(Framework::TorchStable(declared)) = check.expected.framework else { return };
    for import in &check.dynamic.imports {
        if shims::is_of_torch(&import.name) {
            shim(check, import, declared);
        } else if is_unstable(&import.name) {
            let detail = format!("{} is of torch's unstable C++, and the variant promises the stable ABI {declared}", shown(&import.name));
            let fix = "use the headers under `torch/csrc/stable` and `torch/headeronly` only";
            check.import(Rule::TorchInternal, import, detail, fix);
        }
    }
}

fn shim(check: &mut Check<'_, '_>, import: &Import, declared: MajorMinor) {
    let name = shown(&import.name);
    match shims::since(&import.name) {
        Some(Since::Older) => {}
        Some(Since::Release(since)) if since <= declared => {}
        Some(Since::Release(since)) => {
            let detail = format!("{name} came with torch {since}, and the variant is for torch {declared} and newer");
            let fix = format!("declare `stable-abi = \"{since}\"`, or use what torch {declared} has");
            check.import(Rule::TorchShimNewer, import, detail, fix);
        }
        None => {
            let detail = format!("{name} is not in torch's stable ABI, as far as {} tell", shims::SOURCE);
            check.import(
                Rule::TorchShimUnknown,
                import,
                detail,
                "use the functions of `torch/csrc/stable/c/shim.h`; a newer Kiln knows newer torch",
            );
        }
    }
}

/// Whether a C++ name belongs to an entity of torch outside its stable namespaces.
fn is_unstable(name: &str) -> bool {
    let Some(entity) = entity(name) else { return false };
    let starts = |spaces: &[&str]| spaces.iter().any(|space| entity.starts_with(space));
    starts(UNSTABLE) && !starts(STABLE)
}
