//! The trait that each vendor implements, and what it works with.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_format::BackendName;
use kiln_format::build::KernelOptions;
use kiln_graph::{Arg, Args, Graph, PathRef, Piece, Program, RootName, StepId};
use kiln_object::elf::Machine;
use kiln_toolchain::floor::FloorLink;
use kiln_toolchain::host::HostCompiler;
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{Launcher, LibraryExports, Processor};

use crate::compile::{CompileProfile, ObjectFile, fixed_environment};
use crate::error::BackendError;
use crate::toolkits::ToolkitRecord;

/// What frameworks must know of a backend, as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameworkPart {
    /// The define of every translation unit of the variant, whatever the framework: `CPU_KERNEL`.
    pub define: &'static str,
    /// What only torch must know.
    pub torch: TorchPart,
    /// Libraries of the backend's own runtime that an extension may need, after the framework's.
    pub runtime: Vec<LibraryExports>,
    /// What the link has of the backend.
    pub link: LinkPart,
}

/// What the link of an extension has of its backend, where the compiler's driver makes or finishes device code then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkPart {
    /// Static libraries, of which the link takes what nothing else provides.
    pub archives: Vec<PathRef>,
    /// Arguments behind all others, in order and with their repetitions.
    pub args: Vec<String>,
    /// Variables that decide what is made.
    pub env: BTreeMap<String, String>,
    /// Directories in front of `PATH`, with programs that the driver starts. What is in them counts by the compiler's identity.
    pub path: Vec<PathBuf>,
}

/// What torch must know of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchPart {
    /// Defines of every translation unit of the variant beside that of the backend, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Defines that torch's own package adds for this backend to units that include its headers.
    pub package_defines: Vec<String>,
    /// Flags of the device compiler that torch's own package adds to units that include its headers.
    pub package_device_flags: Vec<String>,
    /// Whether kernels run on streams as CUDA's do, of which torch has a current one.
    pub has_streams: bool,
    /// SONAMEs of torch's libraries that an extension of this backend may need, in link order.
    pub libraries: Vec<String>,
    /// Those among them that only torch's build for this backend has, each with the library of another build that has the same
    /// names: its names count where the torch at hand is that other build.
    pub stand_ins: &'static [(&'static str, &'static str)],
    /// What is known of those among them that only torch's own build for the backend has: another build may stand in for it.
    pub known: Vec<LibraryExports>,
}

/// The libraries of a torch as a build of it for another backend has them: each of `stand_ins` that the torch at hand lacks stands in the
/// place of the library whose names it has.
pub fn with_stand_ins(torch: &[LibraryExports], stand_ins: &[(&str, &str)]) -> Vec<LibraryExports> {
    let has = |soname: &str| torch.iter().any(|library| library.soname == soname);
    let renamed = |library: &LibraryExports| {
        let new = stand_ins.iter().find(|(new, other)| *other == library.soname && !has(new)).map(|(new, _)| (*new).to_owned());
        LibraryExports { soname: new.unwrap_or_else(|| library.soname.clone()), names: Arc::clone(&library.names) }
    };
    torch.iter().map(renamed).collect()
}

/// A group of sources that share flags: a `[kernel.*]` table, or the framework's own `src`.
///
/// A source that two components list is compiled once for each, with that component's flags.
#[derive(Clone, Debug)]
pub struct Component {
    /// The table as written: `kernel.relu_cpu`, `torch`.
    pub table: String,
    /// Sources in file order, below the project.
    pub sources: Vec<PathRef>,
    /// Include directories of the component, in file order.
    pub include_dirs: Vec<PathRef>,
    /// Flags for the component's C++ units, as written.
    pub cxx_flags: Vec<String>,
    /// Flags for the component's C units, as written. No key of `build.toml` has any.
    pub c_flags: Vec<String>,
    /// Whether the units may include the framework's headers. Without them a unit is one action for every torch. Where nothing in
    /// `depends` stands for the framework, all may.
    pub uses_framework: bool,
    /// What only kernels of the backend say; none for the framework's own sources.
    pub options: Option<KernelOptions>,
}

impl Component {
    /// A component without sources or flags of its own, for units that Kiln generates.
    pub fn generated(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            sources: Vec::new(),
            include_dirs: Vec::new(),
            cxx_flags: Vec::new(),
            c_flags: Vec::new(),
            uses_framework: false,
            options: None,
        }
    }
}

/// Name of the depfile of a unit in its step's output directory.
pub(crate) const DEPFILE: &str = "unit.d";

/// What lowering works on: the graph that receives steps, and the compilers that the steps run.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// The graph of all variants.
    pub graph: &'a mut Graph,
    /// The host compiler.
    pub host: &'a HostCompiler,
    /// The names of what the host compiler links by itself: of the host's libraries, or of the floor's.
    pub runtime: Arc<RuntimeNames>,
    /// How links keep to the portability floor; none to take what the host has.
    pub floor: Option<FloorLink>,
    /// The processor that is compiled for.
    pub machine: Machine,
    /// The root that sources are relative to.
    pub project: RootName,
    /// What stands in front of the compilers of units.
    pub launcher: Option<&'a Launcher>,
    /// The processor that compilers look at where they are told to.
    pub processor: &'a Processor,
    /// Directories that a compiler process needs to work and that never decide its result.
    pub ambient: &'a BTreeMap<String, PathBuf>,
    /// The steps that compile a unit together, if there are several.
    pub parts: BTreeMap<StepId, UnitPart>,
    /// What the user should know of how things are compiled, and what stops nothing: lower case, without full stop.
    pub notes: Vec<String>,
}

impl Lowering<'_> {
    /// A run of the program at `path`, which `tool` identifies, in the project's directory and the environment of every compiler; without
    /// a depfile.
    pub fn program(&self, path: impl Into<Arc<Path>>, tool: impl Into<Arc<str>>, args: impl Into<Args>) -> Program {
        Program {
            path: path.into(),
            launcher: None,
            tool: tool.into(),
            args: args.into(),
            cwd: PathRef { root: self.project.clone(), path: String::new() },
            env: Arc::new(fixed_environment()),
            ambient: Arc::new(self.ambient.clone()),
            depfile: None,
            then: Vec::new(),
        }
    }

    /// A run of a compiler that is given [`depfile_args`] among its arguments: what it reads counts.
    pub fn unit_program(&self, path: impl Into<Arc<Path>>, tool: impl Into<Arc<str>>, args: impl Into<Args>) -> Program {
        Program { depfile: Some(DEPFILE.to_owned()), ..self.program(path, tool, args) }
    }
}

/// The arguments with which a compiler writes the names of what it reads into the depfile of [`Lowering::unit_program`].
pub fn depfile_args() -> [Arg; 3] {
    [Arg::from("-MD"), Arg::from("-MF"), Arg(vec![Piece::Own(DEPFILE.to_owned())])]
}

/// A step that compiles a unit together with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPart {
    /// What all parts of the unit have in common, and those of no other one.
    pub unit: String,
    /// The source, relative to the project.
    pub source: String,
    /// The part's place among those of the unit.
    pub place: usize,
    /// What its device code is for, as metadata name it. Empty for a part of the host's half.
    pub capabilities: Vec<String>,
}

/// What a component's device code is compiled for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Architectures {
    /// The architectures in the backend's order, as metadata name them. Empty for a backend without any.
    pub names: Vec<String>,
    /// What differs from what the component asked for: lower case, without full stop.
    pub notes: Vec<String>,
}

/// One vendor: how its components become steps.
pub trait Backend: Debug + Send + Sync {
    /// The name in `build.toml`.
    fn name(&self) -> BackendName;

    /// What frameworks must know of this backend.
    fn framework_part(&self) -> FrameworkPart;

    /// Whether `component` belongs to a variant of this backend's toolkit: one that needs a newer toolkit is left out.
    fn takes(&self, component: &Component) -> bool {
        let _ = component;
        true
    }

    /// Whether the toolkit goes with a host compiler.
    ///
    /// # Errors
    /// [`BackendError::HostLimit`], with both versions.
    fn check_host(&self, host: &HostCompiler) -> Result<(), BackendError> {
        let _ = host;
        Ok(())
    }

    /// What the device code of `component` is compiled for.
    ///
    /// # Errors
    /// When nothing is left of what the component asks for, or the toolkit cannot make it.
    fn architectures(&self, component: &Component) -> Result<Architectures, BackendError> {
        let _ = component;
        Ok(Architectures::default())
    }

    /// What a variant is compiled for whose components have `lists`, in the backend's order, each once.
    fn merge(&self, lists: &[Architectures]) -> Vec<String> {
        let _ = lists;
        Vec::new()
    }

    /// What the build record says of the toolkit; none for a backend without one.
    fn record(&self) -> Option<ToolkitRecord> {
        None
    }

    /// What users are to be told of the toolkit whenever it compiles: lower case, without full stop.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Libraries of the toolkit that a process must have before an extension is loaded in it, where the machine need not have them.
    fn preloads(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The compiler of everything in a variant, host code and link included, where that is the toolkit's own; none for the machine's.
    fn host(&self) -> Option<&HostCompiler> {
        None
    }

    /// Variables that the backend's own compiler needs to work and that never decide its result.
    fn host_ambient(&self) -> BTreeMap<String, PathBuf> {
        BTreeMap::new()
    }

    /// Adds the steps that compile `component` and gives the objects to link, in source order.
    ///
    /// # Errors
    /// When a source is of no kind that this backend compiles, or a flag is refused.
    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError>;

    /// Adds the steps between the objects of all components and their link, and gives what is linked beside them.
    ///
    /// # Errors
    /// When the graph refuses a step.
    fn device_link(
        &self,
        lowering: &mut Lowering<'_>,
        components: &[Component],
        objects: &[ObjectFile],
    ) -> Result<Vec<ObjectFile>, BackendError> {
        let _ = (lowering, components, objects);
        Ok(Vec::new())
    }

    /// Whether the device code in `file`, a linked extension or a static library, is what `components` plan.
    ///
    /// # Errors
    /// What is inside and what should be.
    fn verify(&self, components: &[Component], file: &[u8]) -> Result<(), WrongCode> {
        let _ = (components, file);
        Ok(())
    }
}

/// The device code in an extension is not what was planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WrongCode {
    /// What is inside and what should be.
    pub message: String,
    /// What the author can do about it.
    pub hint: Option<String>,
}

impl WrongCode {
    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        "device-code"
    }
}
