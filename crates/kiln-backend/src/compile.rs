//! Host compilation: one translation unit, one step.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use kiln_graph::{Action, Arg, Args, OutputRef, PathRef, Piece, Program, ResourceClass, RootName, Scope, Step, StepId, Weight};
use kiln_toolchain::host::{Family, HostCompiler};

use crate::backend::{Component, DEPFILE, Lowering, depfile_args};
use crate::error::BackendError;
use crate::flags::{FlagList, machine_flag};
use crate::source::{Language, SourceKind, classify_source};

/// What a framework wants every unit of an extension to be compiled with, whoever compiles it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileProfile {
    /// Value of `-std=` for C++.
    pub cxx_std: &'static str,
    /// Defines, `NAME` or `NAME=VALUE`, in order.
    pub defines: Vec<String>,
    /// Defines like those, which come after them and have no effect on a unit that does not mention their names: they are equal in few
    /// variants, and should not keep the others from sharing what they compile alike.
    pub scoped_defines: Vec<String>,
    /// The step whose output directory holds the generated headers.
    pub generated_headers: Option<StepId>,
    /// The step whose output directory holds what the backend generates for this extension, and the name that every unit mentions which
    /// includes it: without effect on the others.
    pub backend_headers: Option<(StepId, &'static str)>,
    /// The ops id of the extension. What depends on it must have a scope.
    pub ops_id: String,
    /// Flags of the device compiler that the framework's package adds, in order.
    pub device_flags: Vec<String>,
    /// Include directories of libraries that the component depends on, in order.
    pub include_dirs: Vec<PathRef>,
    /// Headers of the framework that the backend has to make its own of, if there are any.
    pub foreign_headers: Option<HeaderFiles>,
    /// Headers that steps make of the framework's, as system directories in front of those.
    pub made_headers: Vec<MadeHeaders>,
    /// Include directories of the framework, as system directories, in order.
    pub system_include_dirs: Vec<PathRef>,
    /// Roots whose location must not reach an object, with the text that stands for each.
    pub mapped_roots: Vec<(RootName, String)>,
    /// Variables of the compilers' environment that decide what they make.
    pub env: BTreeMap<String, String>,
    /// Expected cost of a C++ unit.
    pub weight: Option<Weight>,
}

/// Headers of a framework, for what makes others of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderFiles {
    /// The include directory that they are below.
    pub dir: PathRef,
    /// Their names, as they are included, ascending: `c10/cuda/CUDAStream.h`.
    pub names: Vec<String>,
}

/// Headers that a step makes of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeHeaders {
    /// The step; its output directory is an include directory.
    pub step: StepId,
    /// The root of the headers that they were made of, and include: a unit that reads nothing of it reads none of them.
    pub root: RootName,
}

/// An object file and what it was made from, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFile {
    /// The file.
    pub output: OutputRef,
    /// The source, relative to the project.
    pub source: String,
}

/// Where a unit's source comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitSource {
    /// A file of the project.
    Project(PathRef),
    /// A file that another step makes.
    Generated(OutputRef),
}

impl UnitSource {
    /// The source for messages: relative to the project, or the generated file's name.
    pub fn label(&self) -> &str {
        match self {
            Self::Project(path) => &path.path,
            Self::Generated(output) => &output.name,
        }
    }

    fn arg(&self) -> Arg {
        match self {
            Self::Project(path) => Arg::from(path.clone()),
            Self::Generated(output) => Arg::from(output.clone()),
        }
    }
}

/// Name of the object in its step's output directory. The directory is named by the step's digest, so that equal base
/// names in two folders cannot meet.
const OBJECT: &str = "unit.o";

/// Expected cost of a unit that includes no framework header.
const PLAIN_UNIT: Weight = Weight { cpu_ms: 500, memory_mib: 200 };

/// The units of a component that the host compiler compiles alike. What their steps have in common is described once, when it is first
/// needed, and shared by all of them.
#[derive(Debug)]
pub struct HostUnits<'a> {
    component: &'a Component,
    profile: &'a CompileProfile,
    alike: BTreeMap<Language, Alike>,
}

/// What units of one language have in common.
#[derive(Debug)]
struct Alike {
    /// What runs, without arguments.
    program: Program,
    /// The arguments before the one that names the unit, between it and the source, and after the source.
    lists: [Arc<[Arg]>; 3],
}

impl<'a> HostUnits<'a> {
    /// Units of `component`, compiled as the framework wants it.
    pub fn new(component: &'a Component, profile: &'a CompileProfile) -> Self {
        Self { component, profile, alike: BTreeMap::new() }
    }

    /// Adds the steps that compile all sources of the component, where `backend` has no sources but those of a host compiler, and gives
    /// the objects in source order.
    ///
    /// # Errors
    /// When a source is of another kind, the graph refuses a step, or a flag asks for a processor that nobody knows.
    pub fn compile_all(&mut self, lowering: &mut Lowering<'_>, backend: &'static str) -> Result<Vec<ObjectFile>, BackendError> {
        let mut objects = Vec::new();
        for source in &self.component.sources {
            match classify_source(&source.path) {
                SourceKind::Header => {}
                SourceKind::Host(language) => objects.push(self.compile(lowering, &UnitSource::Project(source.clone()), language)?),
                SourceKind::Other => {
                    return Err(BackendError::UnknownSource {
                        source_path: source.path.clone(),
                        backend,
                        hint: format!("{backend} components take `.cpp`, `.cc`, `.cxx`, `.c++`, `.c` and headers"),
                    });
                }
            }
        }
        Ok(objects)
    }

    /// Adds the step that compiles `source` with the host compiler.
    ///
    /// Flags in order: Kiln's own, defines, include directories (the component's, the project's `csrc/` when present, the
    /// generated headers, those of libraries, the framework's as system directories), then the component's own flags, which therefore win.
    ///
    /// # Errors
    /// When the graph refuses the step, or a flag asks for a processor that nobody knows.
    pub fn compile(&mut self, lowering: &mut Lowering<'_>, source: &UnitSource, language: Language) -> Result<ObjectFile, BackendError> {
        let alike = match self.alike.entry(language) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Alike::new(lowering, self.component, self.profile, language)?),
        };
        let mut program = alike.program.clone();
        let [before, between, after] = &alike.lists;
        program.args = Args::with_capacity(5);
        program.args.share(before);
        if lowering.host.family == Family::Gnu {
            // Without a seed gcc names the initialisers of a unit that exports nothing at random.
            program.args.push(Arg::text("-frandom-seed=").and(source.label()));
        }
        program.args.share(between);
        program.args.push(source.arg());
        program.args.share(after);
        let step = lowering.graph.add(Step {
            verb: "Compiling",
            label: source.label().to_owned(),
            action: Action::Run(program),
            inputs: Vec::new(),
            outputs: vec![OBJECT.to_owned()],
            weight: self.profile.weight.unwrap_or(PLAIN_UNIT),
            resource: ResourceClass::Cpu,
        })?;
        Ok(ObjectFile { output: OutputRef { step, name: OBJECT.to_owned() }, source: source.label().to_owned() })
    }
}

impl Alike {
    fn new(lowering: &Lowering<'_>, component: &Component, profile: &CompileProfile, language: Language) -> Result<Self, BackendError> {
        let flags = match language {
            Language::C | Language::ObjC => &component.c_flags,
            Language::Cxx | Language::ObjCxx => &component.cxx_flags,
        };
        let scoped = !shows_arguments(flags);
        let mut args = mapped_args(lowering.host, &lowering.project, profile, scoped);
        match language {
            Language::C => args.extend([Arg::from("-x"), Arg::from("c")]),
            Language::ObjC => args.extend([Arg::from("-x"), Arg::from("objective-c")]),
            Language::ObjCxx => args.extend([Arg::from("-x"), Arg::from("objective-c++"), Arg::text("-std=").and(profile.cxx_std)]),
            Language::Cxx => args.push(Arg::text("-std=").and(profile.cxx_std)),
        }
        args.extend(profile.defines.iter().map(|define| Arg::text("-D").and(define.as_str())));
        args.extend(profile.scoped_defines.iter().map(|define| {
            let name = define.split('=').next().unwrap_or_default();
            scoped_by(scoped, Arg::text("-D").and(define.as_str()), || Scope::Word(name.into()))
        }));
        args.extend(component.include_dirs.iter().map(|dir| Arg::text("-I").with(Piece::Path(dir.clone()))));
        if let Some(step) = &profile.generated_headers {
            args.push(Arg::text("-I").with(Piece::OutputDir(step.clone())));
        }
        if let Some((step, word)) = &profile.backend_headers {
            let dir = Arg::text("-I").with(Piece::OutputDir(step.clone()));
            args.push(scoped_by(scoped, dir, || Scope::Word((*word).into())));
        }
        for dir in &profile.include_dirs {
            args.push(scoped_by(scoped, Arg::text("-I").with(Piece::Path(dir.clone())), || Scope::Root(dir.root.clone())));
        }
        for made in &profile.made_headers {
            let of_root = |arg: Arg| scoped_by(scoped, arg, || Scope::Root(made.root.clone()));
            args.extend([of_root(Arg::from("-isystem")), of_root(Arg(vec![Piece::OutputDir(made.step.clone())]))]);
        }
        for dir in &profile.system_include_dirs {
            let of_root = |arg: Arg| scoped_by(scoped, arg, || Scope::Root(dir.root.clone()));
            args.extend([of_root(Arg::from("-isystem")), of_root(Arg::from(dir.clone()))]);
        }
        args.extend(flags.iter().map(|flag| Arg::from(flag.as_str())));
        args.extend(depfile_args());
        args.push(Arg::from("-c"));
        let after = [Arg::from("-o"), Arg(vec![Piece::Own(OBJECT.to_owned())])].into();
        let mut program = Program { depfile: Some(DEPFILE.to_owned()), ..host_program(lowering, common_args(lowering.host)) };
        Arc::make_mut(&mut program.env).extend(profile.env.iter().map(|(name, value)| (name.clone(), Arg::from(value.as_str()))));
        let before = std::mem::take(&mut program.args).iter().cloned().collect();
        let program = unit_compiler(lowering, &[(FlagList::Host, flags)], program)?;
        Ok(Self { program, lists: [before, args.into(), after] })
    }
}

/// The objects, each once: a source that is named twice, or that two components compile alike, is one step.
pub(crate) fn once<'o>(objects: impl IntoIterator<Item = &'o ObjectFile>) -> Vec<&'o ObjectFile> {
    let mut known = HashSet::new();
    objects.into_iter().filter(|object| known.insert(&object.output)).collect()
}

/// A run of the host compiler in the project's directory, with `args` after those that are the compiler's own.
pub(crate) fn host_program(lowering: &Lowering<'_>, args: Vec<Arg>) -> Program {
    let own = lowering.host.args.iter().map(|arg| Arg::from(arg.as_str()));
    lowering.program(lowering.host.path.as_path(), lowering.host.identity.as_str(), own.chain(args).collect::<Args>())
}

/// `program`, which compiles a unit with the author's `flags`, as it is run: behind the launcher, if there is one. Where a flag makes it
/// look at the processor of this machine, that is part of what it is.
///
/// # Errors
/// When a flag makes it look and nobody knows what it sees.
pub fn unit_compiler(lowering: &Lowering<'_>, flags: &[(FlagList, &[String])], program: Program) -> Result<Program, BackendError> {
    let own = (FlagList::Host, lowering.host.args.as_slice());
    let looking = flags.iter().chain([&own]).find_map(|(list, flags)| machine_flag(*list, flags));
    let processor = match looking {
        None => None,
        Some(flag) => Some(
            lowering
                .processor
                .identity()
                .ok_or_else(|| BackendError::UnknownProcessor { flag, file: lowering.processor.file().to_owned() })?,
        ),
    };
    let mut program = program;
    let parts = [processor, lowering.launcher.map(|launcher| launcher.identity.as_str())];
    for (name, part) in ["processor", "launcher"].into_iter().zip(parts) {
        if let Some(part) = part {
            program.tool = blake3::hash(format!("{}\n{name} {part}", program.tool).as_bytes()).to_hex().as_str().into();
        }
    }
    if let Some(launcher) = lowering.launcher {
        program.launcher = Some(launcher.path.as_path().into());
        Arc::make_mut(&mut program.ambient).extend(launcher.ambient.clone());
    }
    Ok(program)
}

/// The environment that may decide a result, the same for everyone: messages in one language, and a fixed time for
/// `__DATE__` and `__TIME__`.
pub(crate) fn fixed_environment() -> BTreeMap<String, Arg> {
    BTreeMap::from([("LC_ALL".to_owned(), Arg::from("C.UTF-8")), ("SOURCE_DATE_EPOCH".to_owned(), Arg::from("0"))])
}

/// Whether flags make a compiler write its arguments, or all macros, into what it makes: then no argument is without effect.
pub fn shows_arguments(flags: &[String]) -> bool {
    let shows = |flag: &String| {
        let debug = flag.starts_with("-g") && !matches!(flag.as_str(), "-g0" | "-gno-record-gcc-switches");
        debug || ["-frecord", "-fdebug", "-dD", "-dM", "-save-temps"].iter().any(|start| flag.starts_with(start))
    };
    flags.iter().any(shows)
}

/// `arg` in its scope, if `scoped` says that it may have one.
fn scoped_by(scoped: bool, arg: Arg, scope: impl FnOnce() -> Scope) -> Arg {
    if scoped { arg.scoped(scope()) } else { arg }
}

/// Optimisation, position independence and visibility.
fn common_args(host: &HostCompiler) -> Vec<Arg> {
    let mut args: Vec<Arg> = ["-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden"].into_iter().map(Arg::from).collect();
    if host.accepts_no_gnu_unique {
        // Unique symbols join the inline statics of all loaded extensions.
        args.push(Arg::from("-fno-gnu-unique"));
    }
    args
}

/// What keeps the names of directories out of what is made.
fn mapped_args(host: &HostCompiler, project: &RootName, profile: &CompileProfile, scoped: bool) -> Vec<Arg> {
    let mut args = Vec::new();
    if host.family == Family::Gnu {
        // It resolves links in the names of system headers where that makes them shorter, and no map fits any longer.
        args.push(Arg::from("-fno-canonical-system-headers"));
    }
    // Compilers try the last map first, so the work directory, which may lie inside the project, comes after it.
    args.push(Arg::text("-ffile-prefix-map=").with(Piece::Path(PathRef { root: project.clone(), path: String::new() })).and("=."));
    for (root, text) in &profile.mapped_roots {
        let dir = PathRef { root: root.clone(), path: String::new() };
        let map = Arg::text("-ffile-prefix-map=").with(Piece::Path(dir)).and("=").and(text.as_str());
        args.push(scoped_by(scoped, map, || Scope::Root(root.clone())));
    }
    args.push(Arg::text("-ffile-prefix-map=").with(Piece::WorkDir).and("=.kiln"));
    args
}
