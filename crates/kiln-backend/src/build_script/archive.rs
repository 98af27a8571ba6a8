//! The step that makes a static library of objects.

use std::path::Path;
use std::sync::Arc;

use kiln_graph::{Action, Builtin, BuiltinError, Graph, GraphError, Input, OutputRef, ResourceClass, Step, Weight};
use kiln_object::archive::{self, NewMember};
use kiln_object::elf::{self, Binding};

use crate::compile::{ObjectFile, once};

/// Adds the step that makes `file` of `objects`.
///
/// # Errors
/// When the graph refuses it.
pub(super) fn add(graph: &mut Graph, file: &str, objects: &[ObjectFile]) -> Result<OutputRef, GraphError> {
    let objects = once(objects);
    // Numbered, because two directories may have sources of one name.
    let stem = |source: &str| Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let names: Vec<String> = objects.iter().enumerate().map(|(at, object)| format!("{at}-{}.o", stem(&object.source))).collect();
    let step = graph.add(Step {
        verb: "Archiving",
        label: file.to_owned(),
        action: Action::Builtin(builtin(file, names)),
        inputs: objects.iter().map(|object| Input::Output(object.output.clone())).collect(),
        outputs: vec![file.to_owned()],
        weight: Weight { cpu_ms: 10, memory_mib: 50 },
        resource: ResourceClass::Light,
    })?;
    Ok(OutputRef { step, name: file.to_owned() })
}

fn builtin(file: &str, names: Vec<String>) -> Builtin {
    let file = file.to_owned();
    Builtin {
        name: "static-library",
        version: 1,
        key: names.join("\n"),
        run: Arc::new(move |context| {
            let failed = |cause: &dyn std::fmt::Display| BuiltinError::new("static-library", format!("cannot make `{file}`: {cause}"));
            let mut members = Vec::new();
            for (name, path) in names.iter().zip(context.inputs) {
                let data = std::fs::read(path).map_err(|cause| failed(&cause))?;
                let object = elf::relocatable(&data).map_err(|cause| failed(&cause))?;
                let defines =
                    object.defined.into_iter().filter(|defined| defined.binding != Binding::Local).map(|defined| defined.name).collect();
                members.push(NewMember { name: name.clone(), data, defines });
            }
            let bytes = archive::write(&members).map_err(|cause| failed(&cause))?;
            std::fs::write(context.out_dir.join(&file), bytes).map_err(|cause| failed(&cause))
        }),
    }
}
