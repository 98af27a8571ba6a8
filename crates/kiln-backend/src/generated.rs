//! Files that Kiln generates for an extension.

use std::sync::Arc;

use kiln_graph::{Action, Builtin, BuiltinError, Graph, ResourceClass, Step, StepId, Weight, write_file};

use crate::error::BackendError;

/// The header that registers an extension with torch and with Python.
const REGISTRATION_H: &str = include_str!("registration.h");
/// The header that gives torch's current stream.
const STREAM_H: &str = include_str!("kiln_stream.h");
/// The C unit behind `REGISTER_EXTENSION`.
const MODULE_INIT_C: &str = include_str!("module_init.c");

/// Adds the step that writes `registration.h` into a directory of its own, and beside it, where `stream` says so, `kiln_stream.h`.
pub(crate) fn headers(graph: &mut Graph, stream: bool) -> Result<StepId, BackendError> {
    let label = "registration.h";
    if !stream {
        return generate(graph, label, REGISTRATION_H);
    }
    let files = [(label, REGISTRATION_H), ("kiln_stream.h", STREAM_H)];
    add(graph, label, write_files(&files), files.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// A builtin that writes several files.
fn write_files(files: &[(&'static str, &'static str)]) -> Builtin {
    let files = files.to_vec();
    let key = files.iter().map(|(name, text)| format!("{} {name}\n", blake3::hash(text.as_bytes()).to_hex())).collect();
    Builtin {
        name: "write-files",
        version: 1,
        key,
        run: Arc::new(move |context| {
            files.iter().try_for_each(|(name, text)| {
                std::fs::write(context.out_dir.join(name), text)
                    .map_err(|error| BuiltinError::new("work-directory", format!("cannot write `{name}`: {error}")))
            })
        }),
    }
}

/// Adds the step that writes the C unit of the module initialisation, `module_init.c`.
pub(crate) fn module_init(graph: &mut Graph) -> Result<StepId, BackendError> {
    generate(graph, "module_init.c", MODULE_INIT_C)
}

/// Adds the step that writes the version script of an extension, `exports.map`.
pub(crate) fn exports(graph: &mut Graph, script: &str) -> Result<StepId, BackendError> {
    generate(graph, "exports.map", script)
}

/// Adds the step that writes `content` into the file `name` of a directory of its own.
///
/// # Errors
/// When the graph refuses it.
pub fn generate(graph: &mut Graph, name: &str, content: &str) -> Result<StepId, BackendError> {
    add(graph, name, write_file(name, content.as_bytes().to_vec()), vec![name.to_owned()])
}

fn add(graph: &mut Graph, label: &str, builtin: Builtin, outputs: Vec<String>) -> Result<StepId, BackendError> {
    Ok(graph.add(Step {
        verb: "Generating",
        label: label.to_owned(),
        action: Action::Builtin(builtin),
        inputs: Vec::new(),
        outputs,
        weight: Weight { cpu_ms: 1, memory_mib: 1 },
        resource: ResourceClass::Light,
    })?)
}
