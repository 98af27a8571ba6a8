//! The steps that make the directory of a floor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_graph::{
    Action, Arg, Builtin, BuiltinContext, BuiltinError, Graph, Input, OutputRef, PathRef, Piece, Program, ResourceClass, RootBinding,
    RootKind, RootName, Step, StepId, Weight,
};
use kiln_object::archive::{self, NewMember};
use kiln_object::baseline::Baseline;
use kiln_object::elf::{self, Binding, Machine};

use super::scripts::{NONSHARED, SHIMS as SHIM_ARCHIVE, scripts};
use super::shims::{ARGS, C_ARGS, CXX_ARGS, Shim, lacking};
use super::{FloorError, FloorLevel, libraries, nonshared};
use crate::host::HostCompiler;

/// The graph of a floor.
pub(super) struct Steps {
    /// The graph.
    pub(super) graph: Graph,
    /// The step whose output directory is the floor.
    pub(super) directory: StepId,
    /// Its outputs.
    pub(super) files: Vec<String>,
}

/// Describes how the directory is made.
pub(super) fn steps(
    host: &HostCompiler,
    machine: Machine,
    level: FloorLevel,
    ambient: &BTreeMap<String, PathBuf>,
    work_dir: &Path,
) -> Result<Steps, FloorError> {
    let identity = libraries::identity(level, machine).ok_or(FloorError::Machine { level, machine })?;
    let shims = lacking(level, machine).map_err(|_| FloorError::Machine { level, machine })?;
    let mut graph = Graph::new();
    let cwd = RootName::new("work");
    graph.bind_root(cwd.clone(), RootBinding { dir: work_dir.to_owned(), kind: RootKind::Mutable })?;
    let sources = graph.add(sources(&shims))?;
    let mut inputs = Vec::new();
    for shim in &shims {
        let own = host.args.iter().map(|arg| Arg::from(arg.as_str()));
        let language = if shim.is_cxx() { CXX_ARGS } else { C_ARGS };
        let mut args: Vec<Arg> = own.chain(ARGS.iter().chain(language).map(|arg| Arg::from(*arg))).collect();
        args.extend([
            Arg::text("-frandom-seed=").and(shim.source),
            Arg::text("-ffile-prefix-map=").with(Piece::WorkDir).and("=floor"),
            Arg::from("-c"),
            Arg::from(OutputRef { step: sources.clone(), name: shim.source.to_owned() }),
            Arg::from("-o"),
            Arg(vec![Piece::Own(OBJECT.to_owned())]),
        ]);
        let step = graph.add(Step {
            verb: "Compiling",
            label: shim.source.to_owned(),
            action: Action::Run(Program {
                path: host.path.as_path().into(),
                launcher: None,
                tool: host.identity.as_str().into(),
                args: args.into(),
                cwd: PathRef { root: cwd.clone(), path: String::new() },
                env: Arc::new(BTreeMap::from([
                    ("LC_ALL".to_owned(), Arg::from("C.UTF-8")),
                    ("SOURCE_DATE_EPOCH".to_owned(), Arg::from("0")),
                ])),
                ambient: Arc::new(ambient.clone()),
                depfile: None,
                then: Vec::new(),
            }),
            inputs: Vec::new(),
            outputs: vec![OBJECT.to_owned()],
            weight: Weight { cpu_ms: 50, memory_mib: 50 },
            resource: ResourceClass::Cpu,
        })?;
        inputs.push(Input::Output(OutputRef { step, name: OBJECT.to_owned() }));
    }
    let mut has_archive = false;
    if let Some((dir, name)) =
        host.runtime.static_cxx.as_ref().and_then(|file| Some((file.path.parent()?, file.path.file_name()?.to_str()?)))
    {
        let root = RootName::new("compiler");
        graph.bind_root(root.clone(), RootBinding { dir: dir.to_owned(), kind: RootKind::Mutable })?;
        inputs.push(Input::File(PathRef { root, path: name.to_owned() }));
        has_archive = true;
    }
    let mut files: Vec<String> = libraries::sonames(machine).into_iter().map(str::to_owned).collect();
    files.extend(scripts(machine, has_archive).into_iter().map(|(name, _)| name.to_owned()));
    files.push(SHIM_ARCHIVE.to_owned());
    if has_archive {
        files.push(NONSHARED.to_owned());
    }
    let directory = graph.add(Step {
        verb: "Generating",
        label: level.to_string(),
        action: Action::Builtin(Builtin {
            name: "floor",
            version: 1,
            key: identity,
            run: Arc::new(move |context| assemble(level, machine, &shims, has_archive, context)),
        }),
        inputs,
        outputs: files.clone(),
        weight: Weight { cpu_ms: 100, memory_mib: 50 },
        resource: ResourceClass::Light,
    })?;
    Ok(Steps { graph, directory, files })
}

/// Name of an object in its step's output directory.
const OBJECT: &str = "shim.o";

/// The step that writes the sources of the shims.
fn sources(shims: &[&'static Shim]) -> Step {
    let mut key = blake3::Hasher::new();
    for shim in shims {
        key.update(shim.source.as_bytes()).update(&[0]).update(shim.text.as_bytes()).update(&[0]);
    }
    Step {
        verb: "Generating",
        label: "shims".to_owned(),
        action: Action::Builtin(Builtin {
            name: "shim-sources",
            version: 1,
            key: key.finalize().to_hex().to_string(),
            run: {
                let shims = shims.to_vec();
                Arc::new(move |context| shims.iter().try_for_each(|shim| write(context, shim.source, shim.text.as_bytes())))
            },
        }),
        inputs: Vec::new(),
        outputs: shims.iter().map(|shim| shim.source.to_owned()).collect(),
        weight: Weight { cpu_ms: 1, memory_mib: 1 },
        resource: ResourceClass::Light,
    }
}

/// Writes the whole directory. The inputs are the shims' objects, then `libstdc++.a` where there is one.
fn assemble(
    level: FloorLevel,
    machine: Machine,
    shims: &[&Shim],
    has_archive: bool,
    context: &BuiltinContext<'_>,
) -> Result<(), BuiltinError> {
    let stubs = libraries::stubs(level, machine).map_err(internal)?;
    for stub in &stubs {
        write(context, &stub.soname, &stub.write().map_err(internal)?)?;
    }
    for (name, text) in scripts(machine, has_archive) {
        write(context, name, text.as_bytes())?;
    }
    let mut members = Vec::new();
    for (shim, path) in shims.iter().zip(context.inputs) {
        let mut data = read(path)?;
        let bad = |cause: String| BuiltinError::new("host-compiler", format!("the object of `{}`: {cause}", shim.source));
        let object = elf::relocatable(&data).map_err(|cause| bad(cause.to_string()))?;
        if object.machine != machine {
            return Err(bad(format!("it is for {}, not for {machine}", object.machine)));
        }
        let mut defines: Vec<String> =
            object.defined.into_iter().filter(|symbol| symbol.binding != Binding::Local).map(|symbol| symbol.name).collect();
        defines.retain(|name| shim.names.contains(&name.as_str()));
        if defines.len() != shim.names.len() {
            return Err(bad(format!("it defines {} of {} names", defines.len(), shim.names.len())));
        }
        elf::hide(&mut data, |_| false).map_err(|cause| bad(cause.to_string()))?;
        members.push(NewMember { name: format!("{}.o", shim.stem()), data, defines });
    }
    write(context, SHIM_ARCHIVE, &archive::write(&members).map_err(internal)?)?;
    if has_archive && let Some(path) = context.inputs.get(shims.len()) {
        let baseline = Baseline::of(level.system(), machine).map_err(internal)?;
        let of_cxx = baseline.entries().iter().filter(|entry| entry.library == "libstdc++.so.6");
        let shared: BTreeSet<&str> = of_cxx.map(|entry| entry.name.as_str()).collect();
        let shimmed: BTreeSet<&str> = shims.iter().flat_map(|shim| shim.names).copied().collect();
        let rest = nonshared(&read(path)?, &shared, &shimmed)
            .map_err(|cause| BuiltinError::new("host-compiler", format!("`{}`: {cause}", path.display())))?;
        write(context, NONSHARED, &rest.archive)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, BuiltinError> {
    std::fs::read(path).map_err(|cause| BuiltinError::new("host-compiler", format!("cannot read `{}`: {cause}", path.display())))
}

fn write(context: &BuiltinContext<'_>, name: &str, bytes: &[u8]) -> Result<(), BuiltinError> {
    std::fs::write(context.out_dir.join(name), bytes)
        .map_err(|cause| BuiltinError::new("work-directory", format!("cannot write `{name}`: {cause}")))
}

fn internal(cause: impl ToString) -> BuiltinError {
    BuiltinError::new("internal", cause.to_string())
}
