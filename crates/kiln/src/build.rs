//! `kiln build`: from a project to variant directories.

pub mod hipify;
pub mod lint;
mod load;
mod packaging;
mod records;
mod toolkits;
mod unobjected;
mod work_dir;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_backend::{Backend, FoundToolkit, Sources};
use kiln_format::build::Framework;
use kiln_format::lock::Lock;
use kiln_format::metadata::Builder;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build, Diagnostic, Level, OpsId, Version, first_of_many};
use kiln_graph::{ActionCache, Config, Executor, Interrupt, JobServer};
use kiln_toolchain::floor::Floor;
use kiln_toolchain::host::{Family, HostCompiler};
use kiln_toolchain::{Launcher, Processor, Provisioner};

use self::packaging::package_variant;
use self::unobjected::Unobjected;
use crate::arch::ArchRequests;
use crate::backends::Backends;
use crate::build_error::{BuildError, chain};
use crate::call::runtime::RuntimeFiles;
use crate::compiler_messages::CompilerMessages;
use crate::config_check;
use crate::dependencies::{HeaderSource, HeaderTrees};
use crate::disk;
use crate::event::Event;
use crate::floor;
use crate::frameworks::{FoundFramework, FrameworkSource, FrameworkUse, Frameworks, TorchSource};
use crate::git::{self, GitTool, Scm};
use crate::host::HostSource;
use crate::known_projects;
use crate::matrix::{Filters, Kind, LeftOut, Matrix, Reason, Selected, Selection, Set, Target, choose};
use crate::ops_id::{self, Purpose};
use crate::out_dir;
use crate::package::Placed;
use crate::plan::{BuildPlan, PlanRequest, can_build, plan};
use crate::project::{self, Project};
use crate::record::BuildRecord;
use crate::replace;
use crate::stale::Stale;

pub use load::{LoadCheck, Loader};
pub(crate) use work_dir::see_room;

/// Where Linux says what the processor is.
const CPUINFO: &str = "/proc/cpuinfo";

/// A project whose configuration was checked, and the matrix that it is built for.
#[derive(Debug)]
pub struct Checked {
    /// The project, with the remarks of all checks.
    pub project: Project,
    /// The matrix, with rows for the releases that are pinned.
    pub matrix: Matrix,
    /// The torch releases that the project and its user have pinned.
    pub lock: Lock,
}

/// What to do about a pin that no row is for.
pub const ROW_HINT: &str = "a matrix file that `file` in `[matrix]` of `kiln.toml` names can have the row";

/// Whether this machine can build a variant, and if not, why.
pub type CanBuild<'a> = dyn Fn(&Selected) -> Result<(), String> + 'a;

impl Checked {
    /// Opens the project in `dir` and checks its configuration. `user_lock` holds what the user has pinned for all projects. Faults in its files are remarks, not errors.
    ///
    /// # Errors
    /// When `dir` is no project.
    pub fn open(dir: &Path, user_lock: &Lock) -> Result<Self, BuildError> {
        let mut project = Project::open(dir)?;
        let matrix = match project.read_matrix() {
            Some(matrix) => matrix,
            None => Matrix::builtin()?,
        };
        // What the project pins stands before what its user does.
        let mut lock = project.lock.clone();
        for torch in user_lock.torch() {
            if !lock.torch().iter().any(|known| known.is_same_build(&torch.version, torch.local(), &torch.platform)) {
                lock.add(torch.clone());
            }
        }
        let matrix = matrix.with_locked(&lock);
        if let Some(remarks) = &mut project.lock_toml {
            let unplanned = project.lock.torch().iter().filter_map(|torch| matrix.unplanned(torch));
            remarks.diagnostics.extend(unplanned.map(|message| Diagnostic::warning("lock", None, message).with_hint(ROW_HINT.to_owned())));
        }
        if let Some(build) = &project.build {
            let found = config_check::check(&project.root, build, &matrix);
            project.build_toml.diagnostics.extend(found);
            let mut all = std::mem::take(&mut project.build_toml.diagnostics);
            all.sort_by_key(|diagnostic| (diagnostic.span.map(|span| span.start), diagnostic.level));
            project.build_toml.diagnostics = first_of_many(all);
        }
        project.silence();
        Ok(Self { project, matrix, lock })
    }

    /// Makes errors of what a published kernel may not have, silenced or not: flags that compile for the machine that builds.
    pub fn for_release(&mut self) {
        let Some(build) = &self.project.build else { return };
        let found = config_check::machine_flags(&self.project.root, build);
        let remarks = &mut self.project.build_toml.diagnostics;
        remarks.retain(|diagnostic| diagnostic.code != "machine-flag");
        remarks.extend(found.into_iter().map(|diagnostic| Diagnostic { level: Level::Error, ..diagnostic }));
        remarks.sort_by_key(|diagnostic| (diagnostic.span.map(|span| span.start), diagnostic.level));
    }

    /// The model, if the configuration has no error.
    ///
    /// # Errors
    /// [`BuildError::Configuration`]: the remarks say what is wrong.
    pub fn build(&self) -> Result<&Build, BuildError> {
        match (&self.project.build, self.project.count(Level::Error)) {
            (Some(build), 0) => Ok(build),
            (_, errors) => Err(BuildError::Configuration { errors }),
        }
    }

    /// The variants that a command is about. `can_build` counts for all sets but [`Set::Release`].
    ///
    /// # Errors
    /// As [`Checked::build`], and when a filter names something that does not exist.
    pub fn choose(&self, target: Target, set: Set, filters: &Filters, can_build: &CanBuild<'_>) -> Result<Selection, BuildError> {
        Ok(choose(self.build()?, &self.matrix, target, set, filters, can_build)?)
    }
}

/// What is to be built, and how.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The system that variants are for.
    pub target: Target,
    /// This machine. What is compiled for another operating system needs one of its own machines.
    pub machine: Target,
    /// Which set of variants.
    pub set: Set,
    /// What narrows the set.
    pub filters: Filters,
    /// What the build is for.
    pub purpose: Purpose,
    /// The last part of the ops id, instead of one from the sources.
    pub unique_id: Option<String>,
    /// Where variants go; `build/` of the project by default.
    pub out_dir: Option<PathBuf>,
    /// Whether to remove variants of earlier builds that do not go with those of this one.
    pub prune: bool,
    /// How many steps run at once.
    pub jobs: NonZeroUsize,
    /// How much memory steps may take together, in MiB; none for no limit.
    pub memory_mib: Option<u64>,
    /// Whether to go on with what does not depend on a failure.
    pub keep_going: bool,
    /// What `--arch` narrows device code to.
    pub arch: Option<ArchRequests>,
    /// Whether variants are loaded before they are put in place.
    pub load_check: LoadCheck,
    /// Whether toolchains are fetched. A build that is only planned needs their names and digests alone.
    pub fetch: bool,
    /// Whether what is asked for by name is planned without its toolkit too, where the vendor can: nothing runs then.
    pub without_toolkits: bool,
}

impl BuildOptions {
    /// A build of the preferred variants for development, one step at a time, with whatever it needs fetched.
    pub fn preferred(target: Target, machine: Target) -> Self {
        Self {
            target,
            machine,
            set: Set::Preferred,
            filters: Filters::default(),
            purpose: Purpose::Development,
            unique_id: None,
            out_dir: None,
            prune: false,
            jobs: NonZeroUsize::MIN,
            memory_mib: None,
            keep_going: false,
            arch: None,
            load_check: LoadCheck::default(),
            fetch: true,
            without_toolkits: false,
        }
    }
}

/// What a build works with.
pub struct Services<'a> {
    /// Provides toolchains from wheels.
    pub provisioner: &'a Provisioner<'a>,
    /// Where torch comes from.
    pub torch: TorchSource,
    /// Where the host compiler comes from.
    pub host: HostSource,
    /// What stands in front of the compilers of units.
    pub launcher: Option<Launcher>,
    /// Where vendors' toolkits may come from.
    pub sources: Sources<'a>,
    /// How to ask git.
    pub git: &'a GitTool,
    /// Variables that a compiler process needs to work and that never decide its result.
    pub ambient: &'a BTreeMap<String, PathBuf>,
    /// Where work goes when the project cannot be written to.
    pub cache_dir: &'a Path,
    /// Who builds, for the metadata.
    pub builder: Builder,
    /// Tells the program that builds from every other one, also of the same version; none when that is not known.
    pub program: Option<String>,
    /// Results of steps that all builds of this user share; none to run whatever is not up to date.
    pub actions: Option<&'a ActionCache>,
    /// Loads what was built; none when this machine cannot.
    pub loader: Option<Loader>,
    /// Stops the build.
    pub interrupt: Interrupt,
    /// The make that lets steps run, if there is one.
    pub job_server: Option<JobServer>,
    /// Takes what happens.
    pub events: &'a (dyn Fn(&Event) + Sync),
}

/// A build that is ready to run.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// The project.
    pub checked: &'a Checked,
    /// The options.
    pub options: BuildOptions,
    /// The graph and the variants.
    pub plan: BuildPlan,
    scm: Scm,
    dirty: bool,
    host: Option<HostCompiler>,
    /// The host compiler that a toolkit refuses, where another one is taken.
    refused_host: Option<HostCompiler>,
    backends: Backends,
    frameworks: Frameworks,
    headers: HeaderTrees,
    floor: Option<Arc<Floor>>,
    /// What variants of tvm-ffi are loaded with at the end.
    runtime: Option<RuntimeFiles>,
}

impl Prepared<'_> {
    /// The host compiler; none when nothing is compiled.
    pub fn host(&self) -> Option<&HostCompiler> {
        self.host.as_ref()
    }

    /// The backend that compiles a variant; none for Python only.
    fn backend(&self, selected: &Selected) -> Option<&dyn Backend> {
        self.backends.get(selected.row.as_ref().filter(|_| selected.kind != Kind::Noarch)?.compute)
    }
}

/// What became of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Where the variants are.
    pub out_dir: PathBuf,
    /// Variants that stand in the output directory.
    pub built: usize,
    /// Those among them whose directory changed.
    pub changed: usize,
    /// Variants that could not be made.
    pub failed: usize,
    /// Steps of the graph by what became of them.
    pub steps: kiln_graph::Counts,
    /// Whether the build was interrupted.
    pub interrupted: bool,
}

/// Chooses the variants, provides toolchains and plans the graph. Runs no compiler.
///
/// # Errors
/// When the configuration has errors, nothing is selected, a toolchain cannot be provided or a variant cannot be planned.
pub fn prepare<'a>(checked: &'a Checked, options: BuildOptions, services: &Services<'_>) -> Result<Prepared<'a>, BuildError> {
    // What could not be found out because the user wants to stop is no fault of what was asked.
    prepare_all(checked, options, services).map_err(|error| if services.interrupt.is_set() { BuildError::Interrupted } else { error })
}

fn prepare_all<'a>(checked: &'a Checked, options: BuildOptions, services: &Services<'_>) -> Result<Prepared<'a>, BuildError> {
    let build = checked.build()?;
    let root = &checked.project.root;
    if let Some(out) = &options.out_dir {
        out_dir::check_place(out, root, &root.join(build.ext_dir()).join(build.python_name()))?;
    }
    toolkits::see_framework(build, &options.filters)?;
    let platform = options.target.platform();
    let filters = with_system_torch(options.filters.clone(), &services.torch, build);
    let with_toolkit = |selected: &Selected| {
        can_build(selected)?;
        toolkits::is_of_system(selected, options.machine)?;
        // What is not asked for by name is planned only where it could be built.
        let is_bare = options.without_toolkits && filters.backends.contains(&selected.backend) && toolkits::plans_without(selected);
        if is_bare { Ok(()) } else { toolkits::have_that_of(selected, checked, services, &platform) }
    };
    let selection = checked.choose(options.target, options.set, &filters, &with_toolkit)?;
    if selection.variants.is_empty() {
        return Err(BuildError::NothingSelected { reasons: selection.reasons() });
    }
    match options.set {
        Set::All => tell_left_out(&selection, services),
        _ => see_named(&filters, &selection)?,
    }
    for selected in selection.variants.iter().filter(|selected| selected.kind != Kind::Noarch) {
        // What was named is not asked before; no compiler is looked for where none would do.
        let can = can_build(selected).and_then(|()| toolkits::is_of_system(selected, options.machine));
        can.map_err(|reason| BuildError::CannotBuild { variant: selected.variant.name(), reason })?;
    }
    load::require(&selection.variants, &options, services)?;
    let sources = project::source_set(root, build)?;
    let mut own: Vec<&Path> = project::OWN.iter().map(Path::new).collect();
    let out = options.out_dir.as_deref().map(out_dir::resolve);
    own.extend(out.as_deref().and_then(|out| out.strip_prefix(root).ok()));
    let scm = git::inspect(root, services.git, &own);
    if services.interrupt.is_set() {
        return Err(BuildError::Interrupted);
    }
    if let Scm::Unusable(reason) = &scm {
        (services.events)(&Event::Warning {
            message: format!("the git state of the project cannot be read, its content stands in: {reason}"),
        });
    }
    let unique_id = match &options.unique_id {
        Some(id) => id.clone(),
        None => ops_id::unique_id(&scm, &sources, options.purpose)?,
    };
    let dirty = ops_id::is_dirty(&scm, &sources).unwrap_or(false);
    let mut ops_ids = BTreeMap::new();
    for selected in &selection.variants {
        ops_ids.insert(selected.backend, OpsId::new(&build.general.name.value, selected.backend, &unique_id)?);
    }
    let compiled = || selection.variants.iter().filter(|selected| selected.kind != Kind::Noarch);
    let backends = toolkits::provide(checked, &selection.variants, &options, services)?;
    let brings_host = |selected: &Selected| {
        let backend = selected.row.as_ref().and_then(|row| backends.get(row.compute));
        backend.and_then(Backend::host).is_some_and(HostCompiler::is_for_macos)
    };
    let host = if compiled().all(brings_host) { None } else { Some(services.host.usual()?) };
    if let (Some(launcher), Some(compiler)) = (&services.launcher, host.as_ref().and_then(HostCompiler::behind_launcher)) {
        return Err(BuildError::TwoLaunchers { launcher: launcher.path.clone(), compiler: compiler.to_owned() });
    }
    let uses: BTreeSet<FrameworkUse> = compiled().filter_map(FrameworkUse::of).collect();
    let frameworks = Frameworks::provide(&uses, &framework_source(checked, services, &platform), options.fetch)?;
    let warn = |message: String| (services.events)(&Event::Warning { message });
    let (host, refused_host) = match host {
        None => (None, None),
        Some(usual) => {
            let fitting = services.host.fitting(usual, &backends.all());
            fitting.note.into_iter().for_each(warn);
            (Some(fitting.compiler), fitting.instead_of)
        }
    };
    let cutlass = checked.project.settings.cutlass.as_ref().map(|dir| root.join(&dir.value));
    let metal_cpp = checked.project.settings.metal_cpp.as_ref().map(|dir| root.join(&dir.value));
    let source = HeaderSource {
        provisioner: services.provisioner,
        cutlass: cutlass.as_deref(),
        metal_cpp: metal_cpp.as_deref(),
        environment: services.sources.environment,
    };
    let compiled_for: BTreeSet<Compute> = compiled().filter_map(|selected| Some(selected.row.as_ref()?.compute)).collect();
    let headers = HeaderTrees::provide(build, &compiled_for, &source, options.fetch, &warn)?;
    let choice = checked.project.settings.floor.as_ref().map(|floor| floor.value).unwrap_or_default();
    let floor = match &host {
        Some(host) => floor::choose(choice, options.purpose, options.target, host, services)?,
        None => None,
    };
    let plan = plan(&PlanRequest {
        build,
        project_dir: root,
        variants: &selection.variants,
        ops_ids: &ops_ids,
        host: host.as_ref(),
        backends: &backends,
        frameworks: &frameworks,
        headers: &headers,
        floor: floor.as_ref(),
        launcher: services.launcher.as_ref(),
        processor: &Processor::described_by(CPUINFO),
        ambient: services.ambient,
    })?;
    let runtime = load::runtime(&selection.variants, &options, services)?;
    Ok(Prepared { checked, options, plan, scm, dirty, host, refused_host, backends, frameworks, headers, floor, runtime })
}

/// Tells of the variants that were asked for together with all others and that this machine cannot build.
/// Refuses to leave out a backend that was asked for by name because it cannot be built here.
fn see_named(filters: &Filters, selection: &Selection) -> Result<(), BuildError> {
    let is_selected = |backend: &BackendName| selection.variants.iter().any(|selected| selected.backend == *backend);
    for backend in filters.backends.iter().filter(|backend| !is_selected(backend)) {
        let of_backend = selection.left_out.iter().filter(|left_out| left_out.backend == *backend);
        let cannot = |left_out: &LeftOut| matches!(left_out.reason, Reason::CannotBuild(_)).then(|| left_out.reason.to_string());
        let reasons: BTreeSet<String> = of_backend.filter_map(cannot).collect();
        if !reasons.is_empty() {
            return Err(BuildError::NamedBackend { backend: *backend, reasons: reasons.into_iter().collect() });
        }
    }
    Ok(())
}

fn tell_left_out(selection: &Selection, services: &Services<'_>) {
    for left_out in selection.left_out.iter().filter(|left_out| matches!(left_out.reason, Reason::CannotBuild(_))) {
        let name = left_out.name.as_deref().unwrap_or_default();
        (services.events)(&Event::Warning { message: format!("`{name}` is left out: {}", left_out.reason) });
    }
}

/// Runs a prepared build: the graph, then the packages of all variants whose steps ended well, then the record.
///
/// # Errors
/// When the work directory or the output directory cannot be used. A failing step or variant is no error here: the report tells.
pub fn run(prepared: &Prepared<'_>, services: &Services<'_>) -> Result<BuildReport, BuildError> {
    let project = &prepared.checked.project;
    let out_dir = prepared.options.out_dir.clone().unwrap_or_else(|| project.root.join("build"));
    out_dir::make(&out_dir, prepared.plan.variants.iter().map(|variant| variant.selected.variant.name()))?;
    // Before anything is made with the trees: from now on they are needed.
    let uses = services.provisioner.given_out();
    known_projects::note(services.cache_dir, &project.root, prepared.options.out_dir.as_deref(), uses, &project.lock);
    replace::recover(&out_dir)?;

    if let (Some(floor), Some(host)) = (&prepared.floor, &prepared.host) {
        floor::provide(floor, host, prepared.options.jobs, services)?;
    }
    let work_dir = work_dir::open(&project.root, services)?;
    let config = Config {
        jobs: prepared.options.jobs,
        keep_going: prepared.options.keep_going,
        interrupt: services.interrupt.clone(),
        cache: services.actions.cloned(),
        memory_mib: prepared.options.memory_mib,
        job_server: services.job_server.clone(),
        ..Config::default()
    };
    let full = AtomicBool::new(false);
    for message in prepared.frameworks.uncompared() {
        (services.events)(&Event::Warning { message });
    }
    let backends = prepared.plan.variants.iter().filter_map(|variant| prepared.backend(&variant.selected));
    for message in backends.flat_map(Backend::remarks).collect::<BTreeSet<_>>() {
        (services.events)(&Event::Warning { message });
    }
    for (table, note) in prepared.plan.variants.iter().flat_map(|variant| &variant.notes).collect::<BTreeSet<_>>() {
        (services.events)(&Event::Warning { message: format!("[{table}]: {note}") });
    }
    let messages = Mutex::new(CompilerMessages::new(&prepared.plan.parts));
    let outcome = Executor::new(&work_dir, config).run(&prepared.plan.graph, &|event| {
        if disk::is_full(event, work_dir.path()) {
            full.store(true, Ordering::Relaxed);
        }
        (services.events)(&Event::Graph(event.clone()));
        let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages.take(event) {
            (services.events)(&Event::Compiler(message));
        }
        if let Some(message) = messages.advice(event) {
            (services.events)(&Event::Warning { message });
        }
    });
    if full.into_inner() {
        let directory = work_dir.path().to_owned();
        (services.events)(&Event::DiskFull { left: disk::left(&directory).unwrap_or_default(), directory });
    }

    let mut report = BuildReport { out_dir: out_dir.clone(), steps: outcome.counts(), ..BuildReport::default() };
    report.interrupted = outcome.is_interrupted() || services.interrupt.is_set();
    // A record that is unreadable says nothing about the variants that are there; a new one is begun.
    let mut record = BuildRecord::read(&out_dir).unwrap_or_else(|error| {
        (services.events)(&Event::Warning { message: format!("{}; a new one is begun", chain(&error)) });
        BuildRecord::default()
    });
    let steps = records::steps(&prepared.plan);
    let unobjected = Unobjected::of(work_dir.path());
    for variant in &prepared.plan.variants {
        let name = variant.selected.variant.name();
        let made = if report.interrupted {
            Err(None)
        } else {
            package_variant(prepared, services, variant, &outcome, &out_dir, &unobjected, &work_dir.tmp_dir())
        };
        let event = match made {
            Ok((placed, stage)) => {
                report.built += 1;
                let changed = placed != Placed::Unchanged;
                report.changed += usize::from(changed);
                record.set(&name, &records::variant(prepared, services, variant, stage, steps.get(&name).cloned().unwrap_or_default()));
                Event::VariantFinished { directory: out_dir.join(&name), variant: name, changed, stage }
            }
            Err(reason) => {
                report.failed += 1;
                // Whoever stopped the checks of a variant knows why it is not there.
                report.interrupted |= services.interrupt.is_set();
                Event::VariantFailed { variant: name, reason: reason.filter(|_| !report.interrupted) }
            }
        };
        (services.events)(&event);
    }
    earlier_variants(prepared, services, &record, &out_dir, report.failed > 0)?;
    record.retain(|variant| out_dir.join(variant).is_dir());
    record.write(&out_dir)?;
    Ok(report)
}

/// Tells of variants that do not go with what was built now, or removes them; after a failure they may be all that there is.
fn earlier_variants(
    prepared: &Prepared<'_>,
    services: &Services<'_>,
    record: &BuildRecord,
    out_dir: &Path,
    failed: bool,
) -> Result<(), BuildError> {
    let variants = &prepared.plan.variants;
    let made = variants.iter().map(|variant| variant.selected.variant.name()).collect();
    let ids = variants.iter().map(|variant| (variant.selected.backend, variant.ops_id.clone())).collect();
    let stale = Stale::find(out_dir, record, prepared.checked.build()?, &prepared.checked.matrix, &made, &ids);
    if !prepared.options.prune || failed {
        for message in stale.warnings(out_dir) {
            (services.events)(&Event::Warning { message });
        }
        return Ok(());
    }
    for name in stale.names() {
        replace::remove(out_dir, name)?;
        (services.events)(&Event::VariantRemoved { variant: name.to_owned(), directory: out_dir.join(name) });
    }
    Ok(())
}

/// Where the frameworks of a project come from.
fn framework_source<'a>(checked: &'a Checked, services: &'a Services<'_>, platform: &'a str) -> FrameworkSource<'a> {
    let tvm_ffi = checked.project.settings.tvm_ffi.as_ref().map(|release| &release.value);
    FrameworkSource { provisioner: services.provisioner, torch: &services.torch, tvm_ffi, platform }
}

/// What a build that starts would use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WouldUse {
    /// The frameworks.
    pub frameworks: Vec<FoundFramework>,
    /// The vendors' toolkits that are worth a word.
    pub toolkits: Vec<FoundToolkit>,
}

/// Sees, without making anything, that [`run`] would come as far as its first step; gives what it would use.
///
/// # Errors
/// Those with which a build would end before its first step.
pub fn would_start(prepared: &Prepared<'_>, services: &Services<'_>) -> Result<WouldUse, BuildError> {
    let platform = prepared.options.target.platform();
    let frameworks = prepared.frameworks.would_provide(&framework_source(prepared.checked, services, &platform))?;
    let variants = || prepared.plan.variants.iter().map(|variant| &variant.selected);
    let toolkits = toolkits::would_provide(prepared.checked, variants(), &prepared.options, services)?;
    load::would_provide(variants(), &prepared.options, services)?;
    let root = &prepared.checked.project.root;
    let out_dir = prepared.options.out_dir.clone().unwrap_or_else(|| root.join("build"));
    out_dir::would_make(&out_dir, prepared.plan.variants.iter().map(|variant| variant.selected.variant.name()))?;
    if let Some(floor) = &prepared.floor {
        floor::would_provide(floor)?;
    }
    work_dir::would_open(root, services)?;
    Ok(WouldUse { frameworks, toolkits })
}

/// With a torch of the system, only the rows of its minor can be built, if they are built against torch at all.
fn with_system_torch(mut filters: Filters, torch: &TorchSource, build: &Build) -> Filters {
    if let (TorchSource::System(toolchain), false) = (torch, matches!(build.framework, Framework::TvmFfi(_))) {
        let minor = toolchain.version.major_minor();
        if filters.torch.is_empty() {
            filters.torch = vec![Version::from(minor)];
        }
    }
    filters
}

/// A compiler for people: its family's program and its release.
pub(crate) fn compiler_name(host: &HostCompiler) -> String {
    match host.family {
        Family::Gnu => format!("g++ {}", host.version),
        Family::Clang => format!("clang++ {}", host.version),
    }
}

#[cfg(test)]
mod tests {
    use kiln_format::lock::{self, LockedTorch};

    use super::*;
    use crate::lock_file::testing::locked_torch;

    /// What a project pins stands in place of the same build of its user's, and of no other.
    #[test]
    fn a_user_pins_builds_beside_those_of_a_project() {
        let pin = |local: &str, size: u64| {
            let wheel = format!("torch-2.11.0{local}-cp311-cp311-manylinux_2_28_x86_64.whl");
            LockedTorch { wheel, size, ..locked_torch("2.11.0") }
        };
        let (mut of_project, mut of_user) = (Lock::default(), Lock::default());
        of_project.add(pin("", 1));
        of_user.add(pin("", 2));
        of_user.add(pin("+cu126", 3));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(project::BUILD_TOML), "").unwrap();
        std::fs::write(dir.path().join(lock::FILE_NAME), of_project.render()).unwrap();
        let checked = Checked::open(dir.path(), &of_user).unwrap();
        let pinned: Vec<_> = checked.lock.torch().iter().map(|torch| (torch.shown(), torch.size)).collect();
        assert_eq!(pinned, [("2.11.0+cu126".to_owned(), 3), ("2.11.0".to_owned(), 1)]);
    }
}
