//! `kiln toolchain`.

mod list;
mod pins;
mod store;

use std::io::Write;
use std::path::{Path, PathBuf};

use kiln::Event;
use kiln::call::runtime;
use kiln::{BuildError, known_projects, lock_file};
use kiln_format::Version;
use kiln_format::lock::{self, Lock};
use kiln_graph::Interrupt;
use kiln_toolchain::{Catalog, Provisioner};

use super::settings_of;
use crate::args::{Toolchain, ToolchainCommand};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

/// What the subcommands work with.
struct Context<'a> {
    settings: &'a Settings,
    printer: &'a Printer,
    provisioner: &'a Provisioner<'a>,
    interrupt: &'a Interrupt,
    cache_dir: PathBuf,
    /// The project whose pins count, if there is one.
    project: Option<PathBuf>,
    /// What that project pins.
    project_lock: Lock,
    /// What the catalog calls this machine.
    platform: String,
}

pub(crate) fn run(args: &Toolchain, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let project = project(args.project.as_deref(), settings)?;
    let cache_dir = settings.cache_dir(project.as_deref())?;
    let project_lock = project.as_ref().map_or(Ok(Lock::default()), |dir| lock_file::read(&dir.join(lock::FILE_NAME)));
    let project_lock = project_lock.map_err(BuildError::from)?;
    let catalog = Catalog::embedded()?.with_locked(&settings.user_lock()?).with_locked(&project_lock);
    let kiln_toml = project.as_deref().map(settings_of).unwrap_or_default();
    let network = || settings.network(&cache_dir, project.as_deref().map(|dir| (dir, &kiln_toml)));
    let human = HumanReporter::new(printer, Detail::default(), None);
    let fetching = |event| human.event(&Event::Fetch(event));
    let interrupt = Interrupt::new();
    let provisioner =
        Provisioner::new(&catalog, settings.provision_options(cache_dir.clone()), &network, &fetching).interrupted_by(interrupt.clone());
    let platform = settings.target.platform();
    let context = Context {
        settings,
        printer,
        provisioner: &provisioner,
        interrupt: &interrupt,
        cache_dir: cache_dir.clone(),
        project: project.clone(),
        project_lock,
        platform,
    };
    match &args.command {
        ToolchainCommand::List { verbose, format } => list::run(&context, *verbose, *format),
        ToolchainCommand::Fetch { releases } => fetch(&context, &catalog, releases),
        ToolchainCommand::Path { release } => path(&context, &catalog, release),
        ToolchainCommand::Add { releases, user } => pins::add(&context, releases, *user),
        ToolchainCommand::Update { names, user } => pins::update(&context, names, *user),
        ToolchainCommand::Verify { repair } => store::verify(&context, *repair),
        ToolchainCommand::Gc { dry_run, forget_missing } => store::collect(&context, *dry_run, *forget_missing),
    }
}

impl Context<'_> {
    /// Does work that a signal stops.
    fn heeding_signals<T>(&self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        signals::listen(self.interrupt, || ())?;
        Ok(signals::unless_stuck(self.interrupt, self.printer, work))
    }
}

/// The project that is named, or the one in the working directory.
fn project(named: Option<&Path>, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    let current = &settings.environment.current_dir;
    let has_one = |dir: &Path| dir.join(kiln::project::BUILD_TOML).is_file();
    match named {
        None => Ok(has_one(current).then(|| current.clone())),
        Some(dir) => {
            let dir = current.join(dir);
            // Links resolved, as builds note the project.
            let found = dir.canonicalize().ok().filter(|dir| has_one(dir));
            found.map(Some).ok_or_else(|| Failure::new("project", format!("`{}` has no build.toml", dir.display())))
        }
    }
}

fn fetch(context: &Context<'_>, catalog: &Catalog, releases: &[String]) -> Result<Exit, Failure> {
    let releases = match releases {
        [] => all(context, catalog),
        releases => releases.iter().map(|text| release(text)).collect::<Result<Vec<_>, _>>()?,
    };
    // What comes now for the project's pins is needed, also while the project is away.
    if let Some(project) = &context.project {
        known_projects::note_lock(&context.cache_dir, project, &context.project_lock);
    }
    context.heeding_signals(|| {
        for release in &releases {
            match release {
                Release::Torch(version, local) => {
                    context.provisioner.fetch_build(version, local.as_deref(), &context.platform).map(drop)?;
                }
                Release::TvmFfi(version) => {
                    context.provisioner.fetch_tvm_ffi(version, &context.platform)?;
                    // What is compiled for another machine is not loaded on this one.
                    if context.settings.target == context.settings.machine {
                        runtime::fetch(version, &context.platform, context.provisioner)?;
                    }
                }
                Release::Cuda(version) => fetch_cuda(context, catalog, version)?,
            }
        }
        Ok::<_, Failure>(Exit::Success)
    })?
}

/// Fetches a CUDA toolkit for kernels with and without torch.
fn fetch_cuda(context: &Context<'_>, catalog: &Catalog, version: &Version) -> Result<(), Failure> {
    for uses in kiln_cuda::FETCHED {
        let tree = kiln_cuda::wheel_tree(catalog, version, &context.platform, uses);
        let (name, parts) = tree.ok_or_else(|| unknown_cuda(context, catalog, version))?;
        context.provisioner.assemble(&name, &parts).map_err(|error| error.fetched_by(kiln_cuda::fetch_command(version)))?;
    }
    Ok(())
}

fn unknown_cuda(context: &Context<'_>, catalog: &Catalog, version: &Version) -> Failure {
    let here = catalog.cuda_toolkits().iter().filter(|toolkit| toolkit.platform == context.platform);
    let known: Vec<String> = here.map(|toolkit| toolkit.version.to_string()).collect();
    let hint = if known.is_empty() { "the catalog has none".to_owned() } else { format!("the catalog has {}", known.join(", ")) };
    Failure::new("unknown-cuda", format!("CUDA {version} for {} is not in the catalog", context.platform)).hint(hint)
}

/// The releases of torch and tvm-ffi that builds of this platform use unless they are told otherwise.
fn all(context: &Context<'_>, catalog: &Catalog) -> Vec<Release> {
    let torch = catalog.releases().iter().filter(|release| release.platform == context.platform);
    torch
        .map(|release| Release::Torch(release.version.clone(), release.local().map(str::to_owned)))
        .chain(runtime::usual_releases(catalog, &context.platform).into_iter().map(Release::TvmFfi))
        .collect()
}

fn path(context: &Context<'_>, catalog: &Catalog, text: &str) -> Result<Exit, Failure> {
    let (dir, name, version) = match release(text)? {
        Release::Torch(version, local) => {
            let dir = context.provisioner.path_of_build(&version, local.as_deref(), &context.platform)?;
            (dir, "torch", local.map_or_else(|| version.to_string(), |local| format!("{version}+{local}")))
        }
        Release::TvmFfi(version) => (context.provisioner.path_of_tvm_ffi(&version, &context.platform)?, "tvm-ffi", version.to_string()),
        Release::Cuda(version) => {
            let (name, parts) = kiln_cuda::wheel_tree(catalog, &version, &context.platform, kiln_cuda::FETCHED[1])
                .ok_or_else(|| unknown_cuda(context, catalog, &version))?;
            let dir = context.provisioner.planned_tree(&name, &parts).dir;
            (Some(dir).filter(|dir| dir.is_dir()), "cuda", version.to_string())
        }
    };
    let Some(dir) = dir else {
        return Err(Failure::new("not-fetched", format!("{name} {version} is not in the store"))
            .hint(format!("fetch it with `kiln toolchain fetch {name}=={version}`")));
    };
    context.printer.stdout(|out| writeln!(out, "{}", dir.display()));
    Ok(Exit::Success)
}

/// A release of the catalog.
enum Release {
    /// With the local part of its version, where it has one.
    Torch(Version, Option<String>),
    TvmFfi(Version),
    Cuda(Version),
}

/// The release in `torch==X.Y.Z`, `tvm-ffi==X.Y.Z` or `cuda==X.Y`.
fn release(text: &str) -> Result<Release, Failure> {
    if let Some(Ok(version)) = text.strip_prefix("cuda==").map(Version::parse) {
        return Ok(Release::Cuda(version));
    }
    if let Some(Ok(version)) = text.strip_prefix("tvm-ffi==").map(Version::parse) {
        return Ok(Release::TvmFfi(version));
    }
    let (version, local) = named(text)?;
    Ok(Release::Torch(version, local))
}

/// The version and the local part in `torch==X.Y.Z+local`.
fn named(text: &str) -> Result<(Version, Option<String>), Failure> {
    let wrong = || Failure::usage(format!("`{text}` names no release")).hint("write it as `torch==2.13.0`");
    let version = text.strip_prefix("torch==").ok_or_else(wrong)?;
    let (version, local) = match version.split_once('+') {
        Some((version, local)) if !local.is_empty() => (version, Some(local.to_owned())),
        Some(_) => return Err(wrong()),
        None => (version, None),
    };
    Ok((Version::parse(version).map_err(|_| wrong())?, local))
}
