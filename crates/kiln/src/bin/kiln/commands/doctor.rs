//! `kiln doctor`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use kiln::Event;
use kiln::build::{BuildOptions, Checked, Loader, Services};
use kiln::build_error::Report;
use kiln::doctor::{self, Examination, IndexShown};
use kiln::frameworks::TorchSource;
use kiln::project::BUILD_TOML;
use kiln::settings_file;
use kiln_format::{BackendName, Level};
use kiln_graph::Interrupt;
use kiln_toolchain::discover::View;
use kiln_toolchain::{Catalog, Provisioner, RetryPolicy};

use super::scratch::Scratch;
use super::system;
use crate::args::{Doctor, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::jobs::Jobs;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

/// The backend called `name`. People give the directory of their project, as other commands take it.
fn backend(name: &str, settings: &Settings) -> Result<BackendName, Failure> {
    super::backend("", name).map_err(|failure| {
        if !name.contains(['/', '\\'])
            && name != "."
            && name != ".."
            && (name.is_empty() || !settings.environment.current_dir.join(name).exists())
        {
            return failure;
        }
        Failure::usage(format!("`{name}` is a path, and `kiln doctor` takes names of backends"))
            .hint(format!("for the backends of a project run `kiln doctor` in its directory; else {}", super::known_backends()))
    })
}

pub(crate) fn run(args: &Doctor, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let backends = args.backends.iter().map(|name| backend(name, settings)).collect::<Result<Vec<BackendName>, _>>()?;
    let interrupt = Interrupt::new();
    signals::listen(&interrupt, || ())?;
    let project = open_project(settings)?;
    if let Some(checked) = &project {
        super::show_remarks(checked, printer);
    }
    let scratch = Scratch::new("kiln-doctor-", settings)?;
    let home = project.as_ref().map_or(scratch.path(), |checked| checked.project.root.as_path());
    let cache_dir = settings.cache_dir(Some(home))?;
    // Without a project, what a user without a home would have is kept beside the kernels that stand in for one, for this time.
    let is_kept = project.is_some() || settings.cache_dir(None).is_ok();

    let none = settings_file::Settings::default();
    let kiln_toml = project.as_ref().map_or(&none, |checked| &checked.project.settings);
    let of_project = project.as_ref().map(|checked| (checked.project.root.as_path(), kiln_toml));
    let network = || settings.network(&cache_dir, of_project);
    let user_lock = settings.user_lock()?;
    let catalog = Catalog::embedded()?.with_locked(project.as_ref().map_or(&user_lock, |checked| &checked.lock));
    // What does not answer at once is told, not tried again: somebody waits for the report.
    let options = kiln_toolchain::ProvisionOptions {
        retry: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        ..settings.provision_options(cache_dir.clone())
    };
    let provisioner = Provisioner::new(&catalog, options, &network, &|_| {}).interrupted_by(interrupt.clone());
    let told = |Failure { code, message, causes, hint, .. }| Report { code, message, causes, hint };
    let (torch, torch_error) = match system::torch_source(&args.system, settings, &cache_dir, &interrupt) {
        Ok(torch) => (torch, None),
        Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
        Err(failure) => (TorchSource::Wheels, Some(told(failure))),
    };
    let (actions, refusal) = match settings.actions(&cache_dir) {
        Ok(actions) => (Some(actions), torch_error),
        Err(failure) => (None, torch_error.or_else(|| Some(told(failure)))),
    };
    let named = system::named(&args.system, settings);
    let (ambient, compiler_at) = (settings.ambient(), |path: &Path| system::compiler_at(path, settings, &cache_dir, &interrupt));
    let ask = |program: &Path, question: &[&str]| kiln::host::ask(program, question, &ambient, &interrupt);
    let sources = system::sources(&named, settings, &provisioner, &cache_dir, &compiler_at, &ask);
    let refusal = refusal.or_else(|| system::check_named(&sources).err().map(|error| Report::from(&error)));
    let jobs = Jobs::new(None, &settings.environment, printer)?;
    let services = Services {
        // Nothing is loaded, but what a build would load with is looked for.
        loader: super::call::worker().ok().map(|worker| Loader {
            worker,
            elsewhere: settings.environment.temporary_dir(),
            timeout: Duration::ZERO,
        }),
        launcher: None,
        actions: actions.as_ref(),
        sources,
        provisioner: &provisioner,
        torch,
        host: system::host(&args.system, settings, kiln_toml, &cache_dir, &interrupt),
        git: &settings.git(&interrupt),
        ambient: &ambient,
        cache_dir: &cache_dir,
        builder: Settings::builder(),
        program: Settings::program(),
        interrupt: interrupt.clone(),
        job_server: None,
        events: &|event| {
            if let Event::Warning { message } = event {
                printer.warning(message);
            }
        },
    };
    let examination = Examination {
        view: View {
            root: Path::new("/"),
            environment: &settings.environment.variables,
            os: std::env::consts::OS,
            cpu: std::env::consts::ARCH,
        },
        backends: &backends,
        project: project.as_ref(),
        store: Some(cache_dir.as_path()).filter(|_| is_kept),
        scratch: scratch.path(),
        user_lock: &user_lock,
        options: BuildOptions { jobs: jobs.most, fetch: false, ..BuildOptions::preferred(settings.target, settings.machine) },
        services: &services,
        torch_from: args.system.torch_from.as_deref(),
        refusal,
        compiler_at: &compiler_at,
        torch_of: &|python| system::torch_of(python, settings, &cache_dir, &interrupt),
        index: &|| {
            let index = settings.index(&cache_dir, of_project)?;
            let is_local = index.url.local().is_some();
            Ok(IndexShown { address: index.url.server(), origin: index.origin.to_string(), is_local })
        },
        ask_index: &|| provisioner.ask_index(),
        devices: &kiln_ffi::devices,
        offline: settings.offline,
    };
    let report = signals::unless_stuck(&interrupt, printer, || doctor::examine(&examination));
    if interrupt.is_set() {
        return Err(Failure { exit: Exit::Interrupted, ..Failure::new("interrupted", "interrupted while the machine was examined") });
    }
    match args.format {
        ReportFormat::Human => printer.text(&doctor::text(&report, args.verbose)),
        ReportFormat::Json => printer.stdout(|out| {
            let text = serde_json::to_string_pretty(&doctor::json(&report)).map_err(std::io::Error::other)?;
            writeln!(out, "{text}")
        }),
    }
    Ok(if report.is_well(&backends) { Exit::Success } else { Exit::Failure })
}

/// The project in the working directory, if there is one.
fn open_project(settings: &Settings) -> Result<Option<Checked>, Failure> {
    let dir = &settings.environment.current_dir;
    if fs::symlink_metadata(dir.join(BUILD_TOML)).is_err() {
        return Ok(None);
    }
    let mut checked = Checked::open(Path::new("."), &settings.user_lock()?)?;
    checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
    Ok(Some(checked))
}
