//! From shaders to the header that embeds what was made of them.

use std::sync::Arc;

use kiln_backend::{
    Action, Arg, BackendError, Builtin, BuiltinContext, BuiltinError, Input, Lowering, OutputRef, PathRef, Piece, ResourceClass, Step,
    StepId, Weight, depfile_args,
};

use crate::header;
use crate::settings::MetalSettings;
use crate::toolkit::MetalToolkit;

/// Whether a source is a shader.
pub fn is_shader(path: &str) -> bool {
    path.strip_suffix(".metal").is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/'))
}

/// The shaders of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderGroup {
    /// The sources, below the project, in file order.
    pub sources: Vec<PathRef>,
    /// The directories that they include from, in file order.
    pub include_dirs: Vec<PathRef>,
}

/// Name of what a step makes of a shader. Its directory is named by the step's digest, so that equal names in two folders cannot meet.
const AIR: &str = "unit.air";
/// What compiling a shader costs, and joining all of them.
const SHADER: Weight = Weight { cpu_ms: 1_500, memory_mib: 300 };
const LIBRARY: Weight = Weight { cpu_ms: 300, memory_mib: 100 };

/// Adds the steps that compile all shaders of the extension called `ops_id`; gives the one whose directory holds the header. None where
/// there is no shader.
pub(crate) fn embed(
    lowering: &mut Lowering<'_>,
    toolkit: &MetalToolkit,
    settings: &MetalSettings,
    groups: &[ShaderGroup],
    ops_id: &str,
) -> Result<Option<StepId>, BackendError> {
    let mut units = Vec::new();
    for group in groups {
        for source in &group.sources {
            let unit = compile(lowering, toolkit, settings, group, source)?;
            // A source that is named twice is one step; the library has each once.
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
    }
    if units.is_empty() {
        return Ok(None);
    }
    let library = join(lowering, toolkit, ops_id, &units)?;
    let name = header::name(ops_id);
    let step = lowering.graph.add(Step {
        verb: "Embedding",
        label: name.clone(),
        action: Action::Builtin(write_header(ops_id)),
        inputs: vec![Input::Output(library)],
        outputs: vec![name],
        weight: Weight { cpu_ms: 10, memory_mib: 50 },
        resource: ResourceClass::Light,
    })?;
    Ok(Some(step))
}

/// One shader. It is named as the working directory sees it: what is made holds the name as it was given.
fn compile(
    lowering: &mut Lowering<'_>,
    toolkit: &MetalToolkit,
    settings: &MetalSettings,
    group: &ShaderGroup,
    source: &PathRef,
) -> Result<OutputRef, BackendError> {
    let mut args: Vec<Arg> = vec![
        Arg::text("-std=").and(settings.language.as_str()),
        Arg::from("-O2"),
        Arg::text("-mmacosx-version-min=").and(settings.minimum()),
    ];
    args.extend(group.include_dirs.iter().map(|dir| Arg::text("-I").with(Piece::Path(dir.clone()))));
    args.extend(depfile_args());
    // A name that begins with a dash would be an option.
    args.extend([Arg::from("-c"), Arg::text("./").and(source.path.as_str())]);
    args.extend([Arg::from("-o"), Arg(vec![Piece::Own(AIR.to_owned())])]);
    let program = lowering.unit_program(toolkit.programs.metal.as_path(), toolkit.identity.as_str(), args);
    let step = lowering.graph.add(Step {
        verb: "Compiling",
        label: source.path.clone(),
        action: Action::Run(program),
        inputs: vec![Input::File(source.clone())],
        outputs: vec![AIR.to_owned()],
        weight: SHADER,
        resource: ResourceClass::Cpu,
    })?;
    Ok(OutputRef { step, name: AIR.to_owned() })
}

/// All of them in one library, in file order.
fn join(lowering: &mut Lowering<'_>, toolkit: &MetalToolkit, ops_id: &str, units: &[OutputRef]) -> Result<OutputRef, BackendError> {
    let name = format!("{ops_id}.metallib");
    let mut args = vec![Arg::from("-o"), Arg(vec![Piece::Own(name.clone())])];
    args.extend(units.iter().map(|unit| Arg::from(unit.clone())));
    let step = lowering.graph.add(Step {
        verb: "Linking",
        label: name.clone(),
        action: Action::Run(lowering.program(toolkit.programs.metallib.as_path(), toolkit.identity.as_str(), args)),
        inputs: Vec::new(),
        outputs: vec![name.clone()],
        weight: LIBRARY,
        resource: ResourceClass::Cpu,
    })?;
    Ok(OutputRef { step, name })
}

/// The builtin that writes the header of its one input.
fn write_header(ops_id: &str) -> Builtin {
    let (key, ops_id) = (ops_id.to_owned(), ops_id.to_owned());
    let run = move |context: &BuiltinContext<'_>| {
        let library = context.inputs.first().ok_or_else(|| BuiltinError::new("internal", "there is no metallib to embed".to_owned()))?;
        let bytes = std::fs::read(library)
            .map_err(|cause| BuiltinError::new("work-directory", format!("cannot read `{}`: {cause}", library.display())))?;
        if bytes.is_empty() {
            return Err(BuiltinError::new("device-code", format!("`metallib` made an empty library: `{}`", library.display())));
        }
        let name = header::name(&ops_id);
        context
            .write(&name, header::text(&ops_id, &bytes))
            .map_err(|cause| BuiltinError::new("work-directory", format!("cannot write `{name}`: {cause}")))
    };
    Builtin { name: "embed-metallib", version: 1, key, run: Arc::new(run) }
}
