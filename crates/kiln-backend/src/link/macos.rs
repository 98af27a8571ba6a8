//! The link of an extension for macOS.
//!
//! As elsewhere every name is looked up before the link, and the linker reads stubs that have just the names that are wanted. What is left
//! for the loader to find in whatever is loaded (`-undefined dynamic_lookup`) are therefore Python's names and no others. No path of this
//! machine gets in: libraries are recorded as their stubs say, and the table for debuggers, which names every object, is left out.

use std::sync::Arc;

use kiln_graph::{Action, Arg, Input, OutputRef, Piece, ResourceClass, Step, Weight};
use kiln_toolchain::stubs::{CXX_LIBRARY, LinkNames, link_tbds, tbd_name};
use kiln_toolchain::{LibraryExports, NameSet};

use super::{ExtensionLink, add};
use crate::backend::Lowering;
use crate::compile::ObjectFile;
use crate::error::BackendError;
use crate::generated;

/// The directory that stands for `@rpath`.
const RPATH: &str = "@loader_path/lib";

/// Adds the steps that look up what `objects` want, and link them.
pub(super) fn link(lowering: &mut Lowering<'_>, link: &ExtensionLink<'_>, objects: &[&ObjectFile]) -> Result<OutputRef, BackendError> {
    let cxx = LibraryExports { soname: CXX_LIBRARY.to_owned(), names: Arc::new(NameSet::of_cxx_runtime()) };
    let names = Arc::new(LinkNames {
        provider: link.provider.clone(),
        linked: link.linked.iter().cloned().chain([cxx]).collect(),
        unlinked: link.unlinked.clone(),
        runtime: Arc::clone(&lowering.runtime),
        python: link.python,
        machine: lowering.machine,
    });
    let outputs: Vec<String> = names.linked.iter().map(|library| tbd_name(&library.soname)).collect();
    let file_name = link.file_name.to_owned();
    let stubs = lowering.graph.add(Step {
        verb: "Resolving",
        label: file_name.clone(),
        action: Action::Builtin(link_tbds(Arc::clone(&names), objects.iter().map(|object| object.source.clone()).collect())),
        inputs: objects.iter().map(|object| Input::Output(object.output.clone())).collect(),
        outputs: outputs.clone(),
        weight: Weight { cpu_ms: 50, memory_mib: 50 },
        resource: ResourceClass::Light,
    })?;
    let exports = generated::generate(lowering.graph, "exports.txt", &exported_names(link.exports))?;
    let exports = OutputRef { step: exports, name: "exports.txt".to_owned() };
    let mut args: Vec<Arg> = ["-shared", "-nostdlib++", "-o"].into_iter().map(Arg::from).collect();
    args.push(Arg(vec![Piece::Own(file_name.clone())]));
    args.extend(objects.iter().map(|object| Arg::from(object.output.clone())));
    args.extend(outputs.into_iter().map(|name| Arg::from(OutputRef { step: stubs.clone(), name })));
    // Not `-Wl`, which splits at commas: the project's path may have some.
    let mut linker = |words: Vec<Arg>| args.extend(words.into_iter().flat_map(|word| [Arg::from("-Xlinker"), word]));
    linker(vec![Arg::from("-install_name"), Arg::text("@rpath/").and(file_name.as_str())]);
    linker(vec![Arg::from("-rpath"), Arg::from(RPATH)]);
    linker(vec![Arg::from("-exported_symbols_list"), Arg(vec![Piece::Output(exports)])]);
    linker(vec![Arg::from("-dead_strip_dylibs"), Arg::from("-S")]);
    if link.python.is_some() {
        linker(vec![Arg::from("-undefined"), Arg::from("dynamic_lookup")]);
    }
    args.extend(link.backend.args.iter().map(|arg| Arg::from(arg.as_str())));
    add(lowering, args, link.backend, file_name)
}

/// The global names of a version script as linkers for macOS take them: one a line, with the underscore of the format.
fn exported_names(script: &str) -> String {
    let global = script.split("global:").nth(1).and_then(|rest| rest.split("local:").next()).unwrap_or_default();
    global.split(';').map(str::trim).filter(|name| !name.is_empty()).map(|name| format!("_{name}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_version_script() {
        assert_eq!(exported_names("{ global: PyInit_*; local: *; };\n"), "_PyInit_*\n");
        assert_eq!(exported_names("{ global: __tvm_ffi_*; other; local: *; };"), "___tvm_ffi_*\n_other\n");
        assert_eq!(exported_names("{ local: *; };"), "");
    }
}
