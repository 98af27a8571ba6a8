//! How a file was linked: what it needs, offers and asks of the loader.

use kiln_format::Level;
use kiln_object::baseline::{Baseline, System};
use kiln_object::elf::{Binding, Export, Stack};

use super::{Check, shown};
use crate::expectation::{Framework, Profile};
use crate::libraries::{self, Refusal};
use crate::rule::Rule;

/// The entry point of Python modules, and the prefix of tvm-ffi's functions.
const PYTHON_ENTRY: &str = "PyInit_";
const TVM_FFI_ENTRY: &str = "__tvm_ffi_";

/// What old loaders and hardened systems refuse.
pub(super) fn check_loading(check: &mut Check<'_, '_>) {
    let dynamic = check.dynamic;
    if dynamic.packed_relocations {
        let detail = "the file has packed relative relocations, which glibc reads from 2.36 on";
        check.file(
            Rule::PackedRelocations,
            Level::Error,
            detail,
            "DT_RELR in the dynamic section",
            "link with `-Wl,-z,nopack-relative-relocs`",
        );
    }
    if dynamic.text_relocations {
        let detail = "the file changes its own code when it is loaded, which hardened systems refuse";
        let evidence = "DT_TEXTREL in the dynamic section";
        check.file(Rule::TextRelocations, Level::Error, detail, evidence, "compile every object with `-fPIC`, assembler sources included");
    }
    let stack = match dynamic.stack {
        Stack::Data => None,
        Stack::Executable => Some(("the file asks for an executable stack", "PT_GNU_STACK with the flag X")),
        Stack::Unsaid => Some(("the file does not say that its stack is data, so the loader makes it executable", "no PT_GNU_STACK")),
    };
    if let Some((detail, evidence)) = stack {
        let fix = "link with `-Wl,-z,noexecstack`, and give assembler sources a `.note.GNU-stack` section";
        check.file(Rule::ExecutableStack, Level::Error, detail, evidence, fix);
    }
    if check.expected.profile == Profile::Extension {
        for (tag, paths) in [("DT_RPATH", &dynamic.rpath), ("DT_RUNPATH", &dynamic.runpath)] {
            for path in paths {
                let detail = format!("the file looks for libraries in `{path}`, a directory of the machine that built it");
                let fix = "link without `-rpath`: torch is imported first and brings its libraries";
                check.file(Rule::RunPath, Level::Error, detail, format!("{tag} `{path}`"), fix);
            }
        }
    }
}

/// The libraries that are needed.
pub(super) fn check_libraries(check: &mut Check<'_, '_>) {
    for soname in &check.dynamic.needed {
        if let Err(Refusal { detail, fix }) = libraries::may_need(soname, check.expected) {
            check.file(Rule::NeededLibrary, Level::Error, detail, format!("DT_NEEDED `{soname}`"), fix);
        }
    }
}

/// The names that are offered, and what they tell about the link.
pub(super) fn check_exports(check: &mut Check<'_, '_>) {
    let dynamic = check.dynamic;
    let level = check.own();
    if let Some(id) = check.expected.id
        && check.expected.framework != Some(Framework::TvmFfi)
    {
        entry_point(check, id);
    }
    static_runtime(check);
    for export in &dynamic.exports {
        let name = &export.name;
        if export.binding == Binding::Unique {
            let detail = format!("{} is one for the whole process: extensions that have it share their state", shown(name));
            check.export(Rule::UniqueSymbol, level, name, detail, "compile with `-fno-gnu-unique` and link with a version script");
        } else if !is_entry_point(check, export) {
            let detail = format!("{} is visible to other libraries, of which one may be used in its place", shown(name));
            let fix = match name.starts_with(PYTHON_ENTRY) {
                true => "write one `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and no other entry point",
                false => "compile with `-fvisibility=hidden` and link with a version script",
            };
            check.export(Rule::Export, level, name, detail, fix);
        }
    }
}

/// Python calls one function, whose name ends with the module's.
fn entry_point(check: &mut Check<'_, '_>, id: &str) {
    let entry = format!("{PYTHON_ENTRY}{id}");
    let exports = &check.dynamic.exports;
    if exports.iter().any(|export| export.name == entry) {
        return;
    }
    let others: Vec<String> =
        exports.iter().filter(|export| export.name.starts_with(PYTHON_ENTRY)).map(|export| shown(&export.name)).collect();
    let (detail, fix) = if others.is_empty() {
        (
            format!("the extension does not define `{entry}`, by which Python loads it"),
            "put `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and `#include \"registration.h\"` into one of the [torch] sources",
        )
    } else {
        (
            format!("the extension defines {}, but Python looks for `{entry}`", others.join(", ")),
            "write `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)`: the name is made for each build",
        )
    };
    check.file(Rule::EntryPoint, Level::Error, detail, format!("no `{entry}` in the dynamic symbol table"), fix);
}

fn is_entry_point(check: &Check<'_, '_>, export: &Export) -> bool {
    match (check.expected.framework, check.expected.id) {
        (Some(Framework::TvmFfi), _) => export.name.starts_with(TVM_FFI_ENTRY),
        (Some(_), Some(id)) => export.name.strip_prefix(PYTHON_ENTRY) == Some(id),
        (Some(_), None) => export.name.starts_with(PYTHON_ENTRY),
        (None, _) => export.name.starts_with(PYTHON_ENTRY) || export.name.starts_with(TVM_FFI_ENTRY),
    }
}

/// Signs of a C++ runtime or an unwinder inside the file. One that is hidden and exports nothing leaves no sign.
fn static_runtime(check: &mut Check<'_, '_>) {
    let dynamic = check.dynamic;
    let Ok(baseline) = Baseline::of(System::Glibc2_34, dynamic.machine) else { return };
    // The runtime defines its functions strongly; what headers make of its templates is weak.
    let copied = dynamic.exports.iter().find(|export| {
        export.binding == Binding::Global
            && baseline
                .named(&export.name)
                .iter()
                .any(|entry| matches!(entry.library.as_str(), "libstdc++.so.6" | "libgcc_s.so.1") && !entry.weak)
    });
    if let Some(export) = copied {
        let detail = format!("the file has a C++ runtime of its own: it exports {}", shown(&export.name));
        let fix = "link without `-static-libstdc++` and `-static-libgcc`: two runtimes in a process break locales and exceptions";
        check.export(Rule::StaticRuntime, Level::Error, &export.name, detail, fix);
        return;
    }
    let imports = |name: &str| dynamic.imports.iter().find(|import| import.name == name);
    let unwinds = dynamic.imports.iter().any(|import| import.name.starts_with("_Unwind_"));
    let searches = imports("_dl_find_object").or_else(|| imports("dl_iterate_phdr"));
    if let (Some(_), Some(search), false) = (imports("__gxx_personality_v0"), searches, unwinds) {
        let detail =
            format!("the file has an unwinder of its own: it handles exceptions, takes no `_Unwind_` name and uses `{}`", search.name);
        let fix = "link without `-static-libgcc`: an exception that leaves the extension would end the process";
        check.import(Rule::StaticRuntime, search, detail, fix);
    }
}
