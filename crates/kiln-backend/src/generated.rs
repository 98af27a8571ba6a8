//! Files that Kiln generates for an extension.

use kiln_graph::{Action, Graph, ResourceClass, Step, StepId, Weight, write_file};

use crate::error::BackendError;

/// The header that registers an extension with torch and with Python.
const REGISTRATION_H: &str = include_str!("registration.h");
/// The C unit behind `REGISTER_EXTENSION`.
const MODULE_INIT_C: &str = include_str!("module_init.c");

/// Adds the step that writes `registration.h` into a directory of its own.
pub(crate) fn registration_header(graph: &mut Graph) -> Result<StepId, BackendError> {
    generate(graph, "registration.h", REGISTRATION_H)
}

/// Adds the step that writes the C unit of the module initialisation, `module_init.c`.
pub(crate) fn module_init(graph: &mut Graph) -> Result<StepId, BackendError> {
    generate(graph, "module_init.c", MODULE_INIT_C)
}

/// Adds the step that writes the version script of an extension, `exports.map`.
pub(crate) fn exports(graph: &mut Graph, script: &str) -> Result<StepId, BackendError> {
    generate(graph, "exports.map", script)
}

fn generate(graph: &mut Graph, name: &str, content: &str) -> Result<StepId, BackendError> {
    Ok(graph.add(Step {
        verb: "Generating",
        label: name.to_owned(),
        action: Action::Builtin(write_file(name, content.as_bytes().to_vec())),
        inputs: Vec::new(),
        outputs: vec![name.to_owned()],
        weight: Weight { cpu_ms: 1, memory_mib: 1 },
        resource: ResourceClass::Light,
    })?)
}
