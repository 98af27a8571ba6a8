//! Names without a version: whoever is loaded first provides them, so each must have a provider that is known.

use std::collections::BTreeSet;

use kiln_object::elf::{Import, SymbolKind};
use kiln_object::names::{is_of_python, is_of_runtime};

use super::{Check, shown};
use crate::expectation::Framework;
use crate::libraries::{is_of_baseline, is_of_torch, may_have_unversioned, may_need};
use crate::report::FailureKind;
use crate::rule::Rule;
use crate::systems::baselines;

/// Who provides a name, as far as is known.
enum Provider {
    /// A library that the file needs.
    Needed,
    /// This library, which the file does not need.
    NotNeeded(String),
    /// One of these, of which it is not known what they export.
    Unknown(Vec<String>),
    /// Nothing.
    None,
}

pub(super) fn check(check: &mut Check<'_, '_>) {
    let mut unknown: BTreeSet<Vec<String>> = BTreeSet::new();
    for import in check.dynamic.imports.iter().filter(|import| import.version.is_none()) {
        // Python's names are judged by their own rules.
        if is_of_python(&import.name) || (import.weak && may_be_missing(&import.name)) {
            continue;
        }
        // What is known of torch's libraries leaves out what their own link copied out of the C++ runtime.
        if import.name.starts_with("_Z")
            && is_of_runtime(&import.name)
            && let Some(library) = check.dynamic.needed.iter().find(|library| is_of_torch(library))
        {
            let name = shown(&import.name);
            let detail =
                format!("{name} is of the C++ runtime and has no version: only a copy inside {library} and the like could provide it");
            let fix =
                "link `-lstdc++` before torch's libraries, or torch's libraries without such names: another torch may not have the copy";
            check.import(Rule::RuntimeFromTorch, import, detail, fix);
            continue;
        }
        match provider(check, &import.name) {
            Provider::Needed => {}
            Provider::NotNeeded(library) => {
                let detail = format!("{} is exported by {library}, which the file does not need", shown(&import.name));
                let fix = format!("link with {library}: what another module has loaded cannot be relied on");
                check.import(Rule::UnversionedSymbol, import, detail, fix);
            }
            Provider::Unknown(libraries) => {
                unknown.insert(libraries);
            }
            Provider::None => orphan(check, import),
        }
    }
    for libraries in unknown {
        let cause = format!("it is not known what {} exports: names without a version cannot be judged", libraries.join(", "));
        check.report.fail(FailureKind::UnknownExports, check.file, cause);
    }
}

/// Whether loading is expected to go on without a weak name: the compiler's start files ask whether each is there.
fn may_be_missing(name: &str) -> bool {
    matches!(name, "__gmon_start__" | "__cxa_finalize" | "_Jv_RegisterClasses") || name.starts_with("_ITM_")
}

fn provider(check: &Check<'_, '_>, name: &str) -> Provider {
    let mut unknown = Vec::new();
    for library in check.dynamic.needed.iter().filter(|library| !is_of_baseline(library)) {
        match (check.expected.known_names)(library, name) {
            Some(true) => return Provider::Needed,
            Some(false) => {}
            // A library that may not be needed has its own finding, and one that was allowed by hand is believed.
            None if check.expected.allowed_libraries.contains(library) => return Provider::Needed,
            None if may_need(library, check.expected).is_ok() && may_have_unversioned(library, name) => unknown.push(library.clone()),
            None => {}
        }
    }
    let torch = ["libc10.so", "libtorch_cpu.so", "libtorch.so", "libc10_cuda.so", "libtorch_cuda.so"];
    if !is_of_runtime(name) && check.expected.framework != Some(Framework::TvmFfi) {
        let elsewhere = torch.iter().find(|library| (check.expected.known_names)(library, name) == Some(true));
        if let Some(library) = elsewhere {
            return Provider::NotNeeded((*library).to_owned());
        }
    }
    if unknown.is_empty() { Provider::None } else { Provider::Unknown(unknown) }
}

fn orphan(check: &mut Check<'_, '_>, import: &Import) {
    let name = shown(&import.name);
    let lists = check.expected.floor.map(|policy| baselines(policy, check.dynamic.machine).unwrap_or_default()).unwrap_or_default();
    let known = lists.first().map(|list| list.named(&import.name)).unwrap_or_default();
    let weak = if import.weak { "weak " } else { "" };
    let detail = match known.first() {
        Some(entry) => format!("the {weak}name {name} has no version, and {} has it in {} only", entry.library, entry.version),
        None => format!("the {weak}name {name} is provided by nothing that the file needs"),
    };
    let fix = if known.is_empty() && import.name.starts_with("cu") && import.kind != SymbolKind::Object && !import.name.starts_with("cuda")
    {
        "ask for driver functions at run time with `cudaGetDriverEntryPoint`: machines without a GPU have no driver"
    } else {
        "define it, or link with the library that has it; a name that newer systems only have needs another way"
    };
    check.import(Rule::UnversionedSymbol, import, detail, fix);
}
