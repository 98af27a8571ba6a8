//! The link of an extension, whatever its framework.

mod macos;

use std::ffi::OsString;
use std::sync::Arc;

use kiln_graph::{Action, Arg, Input, OutputRef, Piece, Program, ResourceClass, Step, Weight};
use kiln_toolchain::floor::FloorLink;
use kiln_toolchain::stubs::{LinkNames, link_stubs};
use kiln_toolchain::{LibraryExports, PythonVersion};

use crate::backend::{LinkPart, Lowering};
use crate::compile::{ObjectFile, host_program, once};
use crate::error::BackendError;
use crate::generated;

/// What the link of one framework's extensions has of its own.
pub(crate) struct ExtensionLink<'a> {
    /// File name of the extension.
    pub(crate) file_name: &'a str,
    /// Whether the file names itself: Python's extension modules do not.
    pub(crate) soname: bool,
    /// What the framework's libraries belong to, for messages: `torch 2.13.0`.
    pub(crate) provider: String,
    /// The libraries to link with, in link order.
    pub(crate) linked: Vec<LibraryExports>,
    /// Libraries of the framework that this variant does not link with.
    pub(crate) unlinked: Vec<LibraryExports>,
    /// The oldest Python that the extension is for; none when it may not use Python at all.
    pub(crate) python: Option<PythonVersion>,
    /// The version script: entry points, and nothing else.
    pub(crate) exports: &'static str,
    /// What the link has of the backend.
    pub(crate) backend: &'a LinkPart,
}

/// Adds the steps that look up what `objects` want, and link them.
///
/// # Errors
/// When the graph refuses a step.
pub(crate) fn link_extension<'o>(
    lowering: &mut Lowering<'_>,
    link: &ExtensionLink<'_>,
    objects: impl Iterator<Item = &'o ObjectFile>,
) -> Result<OutputRef, BackendError> {
    let objects = once(objects);
    if lowering.host.is_for_macos() {
        return macos::link(lowering, link, &objects);
    }
    let names = Arc::new(LinkNames {
        provider: link.provider.clone(),
        linked: link.linked.clone(),
        unlinked: link.unlinked.clone(),
        runtime: Arc::clone(&lowering.runtime),
        python: link.python,
        machine: lowering.machine,
    });
    let file_name = link.file_name.to_owned();
    let stubs = lowering.graph.add(Step {
        verb: "Resolving",
        label: file_name.clone(),
        action: Action::Builtin(link_stubs(Arc::clone(&names), objects.iter().map(|object| object.source.clone()).collect())),
        inputs: objects
            .iter()
            .map(|object| Input::Output(object.output.clone()))
            .chain(link.backend.archives.iter().map(|archive| Input::File(archive.clone())))
            .collect(),
        outputs: names.outputs(),
        weight: Weight { cpu_ms: 50, memory_mib: 50 },
        resource: ResourceClass::Light,
    })?;
    let exports = OutputRef { step: generated::exports(lowering.graph, link.exports)?, name: "exports.map".to_owned() };
    let mut args = vec![Arg::from("-shared"), Arg::from("-o"), Arg(vec![Piece::Own(file_name.clone())])];
    args.extend(objects.iter().map(|object| Arg::from(object.output.clone())));
    args.extend(link.backend.archives.iter().map(|archive| Arg::from(archive.clone())));
    // The floor's directory comes before all others, and its C++ library before the framework's libraries.
    let FloorLink { before, after } = lowering.floor.clone().unwrap_or_default();
    args.push(Arg::from("-Wl,--as-needed"));
    args.extend(before);
    args.extend(names.outputs().into_iter().map(|name| Arg::from(OutputRef { step: stubs.clone(), name })));
    args.extend(after);
    // Not `-Wl`, which splits at commas: the project's path may have some.
    args.extend([Arg::from("-Xlinker"), Arg::text("--version-script=").with(Piece::Output(exports))]);
    args.push(Arg::from("-Wl,-z,noexecstack"));
    // gold writes a name for the file beside its versions: without this one, the place where it was linked.
    if link.soname || lowering.host.args.iter().any(|arg| arg == "-fuse-ld=gold") {
        args.push(Arg::text("-Wl,-soname=").and(file_name.as_str()));
    }
    args.extend(link.backend.args.iter().map(|arg| Arg::from(arg.as_str())));
    add(lowering, args, link.backend, file_name)
}

/// Adds the link itself, which makes `file_name`.
fn add(lowering: &mut Lowering<'_>, args: Vec<Arg>, part: &LinkPart, file_name: String) -> Result<OutputRef, BackendError> {
    let program = of_backend(host_program(lowering, args), part);
    let step = lowering.graph.add(Step {
        verb: "Linking",
        label: file_name.clone(),
        action: Action::Run(program),
        inputs: Vec::new(),
        outputs: vec![file_name.clone()],
        weight: Weight { cpu_ms: 300, memory_mib: 200 },
        resource: ResourceClass::Link,
    })?;
    Ok(OutputRef { step, name: file_name })
}

/// The link as the backend wants it run.
fn of_backend(mut program: Program, part: &LinkPart) -> Program {
    Arc::make_mut(&mut program.env).extend(part.env.iter().map(|(name, value)| (name.clone(), Arg::from(value.as_str()))));
    if !part.path.is_empty() {
        let path = Arc::make_mut(&mut program.ambient).entry("PATH".to_owned()).or_default();
        let mut text = OsString::new();
        for dir in &part.path {
            text.push(dir);
            text.push(":");
        }
        text.push(&*path);
        *path = text.into();
    }
    program
}
