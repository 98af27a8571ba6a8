//! From selected variants to one graph.
//!
//! All variants share the graph: what two of them compile alike is one step. Nothing runs and nothing is fetched here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::{Architectures, Backend, BackendError, CompileProfile, Component, Framework, Lowering, Machine, ObjectFile, UnitPart};
use kiln_format::build::Framework as FrameworkTable;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build, Dependency, OpsId, ProjectPath, Spanned};
use kiln_graph::{Graph, GraphError, OutputRef, PathRef, RootBinding, RootKind, RootName, StepId};
use kiln_toolchain::floor::Floor;
use kiln_toolchain::host::HostCompiler;
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{Launcher, Processor};
use thiserror::Error;

use crate::backends::{Backends, is_compiled, vendor};
use crate::config_check::is_input;
use crate::dependencies::HeaderTrees;
use crate::frameworks::Frameworks;
use crate::matrix::{Kind, Selected, Target};
use crate::project::CSRC;

/// The root that the project's files are relative to.
pub(crate) use kiln_backend::PROJECT;

/// What planning needs to know.
#[derive(Debug)]
pub struct PlanRequest<'a> {
    /// The kernel.
    pub build: &'a Build,
    /// The project's directory, absolute.
    pub project_dir: &'a Path,
    /// The variants to make.
    pub variants: &'a [Selected],
    /// The ops id of each backend among them.
    pub ops_ids: &'a BTreeMap<BackendName, OpsId>,
    /// The host compiler; needed as soon as one variant is compiled.
    pub host: Option<&'a HostCompiler>,
    /// The backends, each with its toolkit.
    pub backends: &'a Backends,
    /// The frameworks that variants are compiled against.
    pub frameworks: &'a Frameworks,
    /// The libraries of headers that kernels depend on.
    pub headers: &'a HeaderTrees,
    /// The floor that links keep to; none to take what the host has.
    pub floor: Option<&'a Arc<Floor>>,
    /// What stands in front of the compilers of units.
    pub launcher: Option<&'a Launcher>,
    /// The processor that compilers look at where they are told to.
    pub processor: &'a Processor,
    /// Directories that a compiler process needs to work and that never decide its result.
    pub ambient: &'a BTreeMap<String, PathBuf>,
}

/// A variant and the file that the graph makes for it.
#[derive(Clone, Debug)]
pub struct PlannedVariant {
    /// The variant.
    pub selected: Selected,
    /// Its ops id.
    pub ops_id: OpsId,
    /// The extension, and its file name in the variant; none for noarch.
    pub extension: Option<OutputRef>,
    /// The objects that it is linked from, by source; without those that Kiln adds.
    pub objects: Vec<ObjectFile>,
    /// The components that it is made of, in build order.
    pub components: Arc<[Component]>,
    /// What its device code is compiled for, as metadata list it.
    pub archs: Vec<String>,
    /// What differs from what its components ask for, by table.
    pub notes: Vec<(String, String)>,
}

/// What the steps of one compiled variant make.
struct Extended {
    extension: OutputRef,
    objects: Vec<ObjectFile>,
    components: Arc<[Component]>,
    archs: Vec<String>,
    notes: Vec<(String, String)>,
}

/// One graph for all variants.
#[derive(Debug)]
pub struct BuildPlan {
    /// The graph. Each compiled variant is a target of its name.
    pub graph: Graph,
    /// The variants in build order.
    pub variants: Vec<PlannedVariant>,
    /// The steps that compile a unit together with others.
    pub parts: BTreeMap<StepId, UnitPart>,
}

/// Why a variant cannot be planned.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The variant is compiled, and this Kiln has no compiler for its backend.
    #[error("`{variant}` cannot be built: this version compiles nothing for {backend}")]
    NoBackend {
        /// Name of the variant.
        variant: String,
        /// Its backend.
        backend: BackendName,
    },
    /// The variant has nothing to compile.
    #[error("`{variant}` has no translation unit: neither its framework nor its kernels list a source that is compiled")]
    NoUnit {
        /// Name of the variant.
        variant: String,
    },
    /// A toolchain that was not provided: a fault of Kiln.
    #[error("internal error: no toolchain was provided for `{variant}`")]
    NoToolchain {
        /// Name of the variant.
        variant: String,
    },
    /// A component cannot be lowered to steps.
    #[error("[{table}]: {source}")]
    Component {
        /// The table.
        table: String,
        /// The cause.
        source: BackendError,
    },
    /// The graph refused a root or a target: a fault of Kiln.
    #[error("internal error in the step graph: {0}")]
    Graph(#[from] GraphError),
}

impl PlanError {
    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoBackend { .. } => "cannot-build",
            Self::NoUnit { .. } => "no-translation-unit",
            Self::NoToolchain { .. } | Self::Graph(_) => "internal",
            Self::Component { source, .. } => match source {
                BackendError::UnknownSource { .. } => "unknown-source",
                BackendError::CxxLevel { .. } => "cxx-level",
                BackendError::NoStableAbi { .. } => "no-stable-abi",
                BackendError::Architectures { .. } => "no-architecture",
                BackendError::ToolkitFlag { .. } => "toolkit-flag",
                BackendError::UnknownProcessor { .. } => "unknown-processor",
                BackendError::HostLimit { .. } => "host-compiler-limit",
                BackendError::DevicePath { .. } => "cuda-path",
                BackendError::MissingTool { .. } => "missing-tool",
                BackendError::Graph(_) => "internal",
            },
        }
    }

    /// What the author can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Component { source, .. } => source.hint(),
            Self::NoBackend { .. } => Some("choose others with `--backend` or `--variant`".to_owned()),
            Self::NoUnit { .. } => Some("headers are inputs only; a kernel without C++ belongs under [torch-noarch]".to_owned()),
            Self::NoToolchain { .. } | Self::Graph(_) => None,
        }
    }
}

/// Whether this machine can compile `selected` at all, and if not, why.
///
/// # Errors
/// The reason, for people.
pub fn can_build(selected: &Selected) -> Result<(), String> {
    match (&selected.kind, vendor(selected.backend)) {
        (Kind::Noarch, _) => Ok(()),
        (Kind::TorchStable(_), Some(vendor)) => match vendor.no_stable_abi() {
            Some(reason) => Err(format!("torch's stable ABI cannot be used for {}: {reason}", selected.backend)),
            None => Ok(()),
        },
        (Kind::Torch | Kind::TvmFfi(_), Some(_)) => Ok(()),
        (Kind::Torch | Kind::TorchStable(_) | Kind::TvmFfi(_), None) => {
            Err(format!("this version compiles nothing for {}", selected.backend))
        }
    }
}

/// Plans every variant of the request.
///
/// # Errors
/// The first variant that cannot be planned, with the reason.
pub fn plan(request: &PlanRequest<'_>) -> Result<BuildPlan, PlanError> {
    let mut graph = Graph::new();
    let project = RootName::new(PROJECT);
    graph.bind_root(project.clone(), RootBinding { dir: request.project_dir.to_owned(), kind: RootKind::Mutable })?;
    let mut runtime = None;
    let mut known = Known::default();
    let mut variants = Vec::new();
    let mut parts = BTreeMap::new();
    for selected in request.variants {
        let variant = selected.variant.name();
        let no_toolchain = || PlanError::NoToolchain { variant: variant.clone() };
        let ops_id = request.ops_ids.get(&selected.backend).cloned().ok_or_else(no_toolchain)?;
        let extended = match selected.kind {
            Kind::Noarch => None,
            Kind::Torch | Kind::TorchStable(_) | Kind::TvmFfi(_) => {
                let compute = selected.row.as_ref().map(|row| row.compute).ok_or_else(no_toolchain)?;
                let backend = match request.backends.get(compute) {
                    Some(backend) => backend,
                    None if is_compiled(selected.backend) => return Err(no_toolchain()),
                    None => return Err(PlanError::NoBackend { variant, backend: selected.backend }),
                };
                let framework = request.frameworks.bind(request.build, selected, &ops_id).ok_or_else(no_toolchain)?;
                for (root, binding) in framework.roots() {
                    graph.bind_root(root, binding)?;
                }
                if let Some(floor) = request.floor {
                    let (root, binding) = floor.root();
                    graph.bind_root(root, binding)?;
                }
                let (host, runtime) = match backend.host().filter(|host| host.is_for_macos()) {
                    // A compiler for another system has the names of its own.
                    Some(host) => (host, Arc::new(RuntimeNames::new(host.runtime.clone()))),
                    None => {
                        let host = request.host.ok_or_else(no_toolchain)?;
                        let names = runtime.get_or_insert_with(|| Arc::new(runtime_names(host, request.floor)));
                        // The machine's own compiler says what the C++ library is that both link.
                        (backend.host().unwrap_or(host), Arc::clone(names))
                    }
                };
                let ambient: BTreeMap<String, PathBuf> = request.ambient.clone().into_iter().chain(backend.host_ambient()).collect();
                let machine = machine(selected).ok_or_else(no_toolchain)?;
                let mut lowering = Lowering {
                    graph: &mut graph,
                    host,
                    runtime,
                    floor: request.floor.map(|floor| floor.link()),
                    machine,
                    project: project.clone(),
                    launcher: request.launcher,
                    processor: request.processor,
                    ambient: &ambient,
                    parts: BTreeMap::new(),
                    notes: Vec::new(),
                };
                let extended = extend(request, &variant, (compute, backend), &*framework, &mut lowering, &mut known)?;
                for (step, part) in lowering.parts {
                    // A step of several units speaks for the first.
                    parts.entry(step).or_insert(part);
                }
                Some(extended)
            }
        };
        let selected = selected.clone();
        variants.push(match extended {
            None => PlannedVariant {
                selected,
                ops_id,
                extension: None,
                objects: Vec::new(),
                components: Arc::new([]),
                archs: Vec::new(),
                notes: Vec::new(),
            },
            Some(Extended { extension, objects, components, archs, notes }) => {
                graph.add_target(variant, vec![extension.clone()])?;
                PlannedVariant { selected, ops_id, extension: Some(extension), objects, components, archs, notes }
            }
        });
    }
    Ok(BuildPlan { graph, variants, parts })
}

/// The names that a link finds without the framework.
pub(crate) fn runtime_names(host: &HostCompiler, floor: Option<&Arc<Floor>>) -> RuntimeNames {
    let of_host = host.runtime.clone();
    match floor {
        Some(floor) => RuntimeNames::of_floor(Arc::clone(floor), of_host),
        None => RuntimeNames::new(of_host),
    }
}

/// The processor of a compiled variant, as object files name it.
pub(crate) fn machine(selected: &Selected) -> Option<Machine> {
    selected.target.map(Target::machine)
}

/// What variants have in common.
#[derive(Default)]
struct Known {
    lowered: Vec<Lowered>,
    /// The components of a backend, by what it runs on.
    components: BTreeMap<Compute, Arc<[Component]>>,
}

/// A component that was lowered for one variant. Another variant that would lower it alike takes the same objects: to describe every
/// step again, only to find that it is in the graph, takes as long as to describe it the first time.
struct Lowered {
    /// What runs it, the processor, and the component's place among those of the backend.
    of: (Compute, Machine, usize),
    profile: CompileProfile,
    objects: Vec<ObjectFile>,
    /// What lowering it had to say.
    notes: Vec<String>,
}

/// Adds the steps of one compiled variant.
fn extend(
    request: &PlanRequest<'_>,
    variant: &str,
    (compute, backend): (Compute, &dyn Backend),
    framework: &dyn Framework,
    lowering: &mut Lowering<'_>,
    known: &mut Known,
) -> Result<Extended, PlanError> {
    let part = backend.framework_part();
    let in_table = |table: &str| {
        let table = table.to_owned();
        move |source| PlanError::Component { table, source }
    };
    let framework_table = request.build.framework.table_name();
    for tree in request.headers.of(compute) {
        lowering.graph.bind_root(tree.root.clone(), tree.binding.clone())?;
    }
    let (mut objects, mut architectures, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let components = Arc::clone(known.components.entry(compute).or_insert_with(|| {
        let mut all = components(request, backend.name(), &lowering.project);
        all.retain(|component| backend.takes(component));
        all.into()
    }));
    let lowered = &mut known.lowered;
    for (index, component) in components.iter().enumerate() {
        let Architectures { names, notes: said } = backend.architectures(component).map_err(in_table(&component.table))?;
        notes.extend(said.into_iter().map(|note| (component.table.clone(), note)));
        architectures.push(Architectures { names, notes: Vec::new() });
        let mut profile = framework.profile(lowering, &part, component).map_err(in_table(&component.table))?;
        request.headers.of(compute).for_each(|tree| tree.add_to(&mut profile));
        let alike = (compute, lowering.machine, index);
        let is_alike = |known: &&Lowered| known.of == alike && known.profile == profile;
        if lowered.iter().find(is_alike).is_none() {
            let made = backend.lower(lowering, component, &profile).map_err(in_table(&component.table))?;
            let notes = std::mem::take(&mut lowering.notes);
            lowered.push(Lowered { of: alike, profile: profile.clone(), objects: made, notes });
        }
        if let Some(known) = lowered.iter().find(is_alike) {
            objects.extend(known.objects.iter().cloned());
            notes.extend(known.notes.iter().map(|note| (component.table.clone(), note.clone())));
        }
    }
    if objects.is_empty() {
        return Err(PlanError::NoUnit { variant: variant.to_owned() });
    }
    let linked = backend.device_link(lowering, &components, &objects).map_err(in_table(framework_table))?;
    objects.extend(linked);
    let extension = framework.link(lowering, &part, &objects).map_err(in_table(framework_table))?;
    Ok(Extended { extension, objects, components, archs: backend.merge(&architectures), notes })
}

/// The framework's own sources, then the backend's kernels in file order.
fn components(request: &PlanRequest<'_>, backend: BackendName, project: &RootName) -> Vec<Component> {
    let build = request.build;
    let paths = |paths: &[Spanned<ProjectPath>]| {
        paths.iter().map(|path| PathRef { root: project.clone(), path: path.value.as_str().to_owned() }).collect::<Vec<_>>()
    };
    // Other files may be listed to be there when these are compiled; the configuration check has a warning for them.
    let inputs = |listed: &[Spanned<ProjectPath>], backend: Option<BackendName>| {
        let used: Vec<_> = listed.iter().filter(|path| is_input(path.file_name(), backend)).cloned().collect();
        paths(&used)
    };
    let csrc = request.project_dir.join(CSRC).is_dir().then(|| PathRef { root: project.clone(), path: CSRC.to_owned() });
    let include_dirs = |own: &[Spanned<ProjectPath>]| paths(own).into_iter().chain(csrc.clone()).collect();
    let flags = |flags: &[Spanned<String>]| flags.iter().map(|flag| flag.value.clone()).collect();
    // Nothing in `depends` stands for tvm-ffi: its headers are there for every kernel.
    let always_uses = matches!(build.framework, FrameworkTable::TvmFfi(_));
    let own = Component {
        table: build.framework.table_name().to_owned(),
        sources: inputs(build.framework.src(), None),
        include_dirs: include_dirs(build.framework.include()),
        cxx_flags: flags(build.framework.cxx_flags()),
        c_flags: Vec::new(),
        uses_framework: true,
        options: None,
    };
    let kernels = build.kernels_for(backend).map(|kernel| Component {
        table: format!("kernel.{}", kernel.name.value),
        sources: inputs(&kernel.src, Some(backend)),
        include_dirs: include_dirs(&kernel.include),
        cxx_flags: flags(&kernel.cxx_flags),
        c_flags: Vec::new(),
        uses_framework: always_uses || kernel.depends.iter().any(|dependency| dependency.value == Dependency::Torch),
        options: Some(kernel.options.clone()),
    });
    std::iter::once(own).chain(kernels).collect()
}

#[cfg(test)]
mod tests;
