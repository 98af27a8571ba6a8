//! `kiln build`.

use std::path::Path;
use std::time::{Duration, Instant};

use kiln::Event;
use kiln::arch::{ArchRequests, device_capabilities};
use kiln::build::{BuildOptions, BuildReport, LoadCheck, Loader, Prepared, Services, prepare, run as run_build};
use kiln::build_error::causes;
use kiln::matrix::Set;
use kiln::ops_id::Purpose;
use kiln_format::Level;
use kiln_graph::{Interrupt, JobServer, quoted};
use kiln_toolchain::{Catalog, Launcher, Provisioner};

use super::system;
use crate::args::{Build, MessageFormat};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter};
use crate::jobs::Jobs;
use crate::json::JsonReporter;
use crate::memory;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

pub(crate) fn run(args: &Build, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let started = Instant::now();
    let mut checked = super::open(&args.project, settings)?;
    if args.release {
        checked.for_release();
    }
    checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
    super::show_remarks(&checked, printer);
    checked.build()?;

    let root = &checked.project.root;
    let directory = (*root != settings.environment.current_dir).then(|| root.clone());
    let human =
        HumanReporter::new(printer, Detail { commands: args.print_commands, explain: args.explain, verbose: args.verbose }, directory);
    let json = JsonReporter::new(printer);
    let report = |event: &Event| match args.message_format {
        MessageFormat::Human => human.event(event),
        MessageFormat::Json => json.event(event),
    };

    let cache_dir = settings.cache_dir(Some(&checked.project.root))?;
    let network = || settings.network(&cache_dir, Some((root, &checked.project.settings)));
    let fetching = |event| report(&Event::Fetch(event));
    let catalog = Catalog::embedded()?.with_locked(&checked.lock);
    let interrupt = Interrupt::new();
    let Jobs { most, server } = Jobs::new(args.jobs, &settings.environment, printer)?;
    let held = server.clone();
    signals::listen(&interrupt, move || held.iter().for_each(JobServer::give_back))?;
    let provisioner =
        Provisioner::new(&catalog, settings.provision_options(cache_dir.clone()), &network, &fetching).interrupted_by(interrupt.clone());
    let torch = system::torch_source(&args.system, settings, &cache_dir, &interrupt)?;
    let mut filters = super::filters(&args.filter)?;
    let out_dir = args.out.as_ref().map(|dir| settings.environment.current_dir.join(dir));
    system::fits(&torch, &filters)?;
    let host = system::host(&args.system, settings, &checked.project.settings, &cache_dir, &interrupt);
    let named = system::named(&args.system, settings);
    let (ambient, compiler_at) = (settings.ambient(), |path: &Path| system::compiler_at(path, settings, &cache_dir, &interrupt));
    let ask = |program: &Path, question: &[&str]| kiln::host::ask(program, question, &ambient, &interrupt);
    let sources = system::sources(&named, settings, &provisioner, &cache_dir, &compiler_at, &ask);
    system::take_named(&sources, &mut filters)?;
    let arch = args.arch.as_ref().map(|list| ArchRequests::parse(list, &device_capabilities)).transpose();
    let arch = arch.map_err(|error| Failure { exit: Exit::Usage, ..Failure::new("arch", error.to_string()) })?;
    let actions = if args.no_cache { None } else { Some(settings.actions(&cache_dir)?) };
    let timeout = Duration::from_secs(args.load_timeout);
    // Without this program's own file, nothing is loaded, and variants count as linked.
    let loader = super::call::worker().ok().map(|worker| Loader { worker, elsewhere: settings.environment.temporary_dir(), timeout });
    let launcher = args.launcher.as_ref().map(|value| launcher(value, settings, &cache_dir)).transpose()?;
    let services = Services {
        loader,
        launcher,
        sources,
        provisioner: &provisioner,
        torch,
        host,
        git: &settings.git(&interrupt),
        ambient: &ambient,
        cache_dir: &cache_dir,
        builder: Settings::builder(),
        program: Settings::program(),
        actions: actions.as_ref(),
        interrupt: interrupt.clone(),
        job_server: server,
        events: &report,
    };
    let set = match (args.release, args.all) {
        (true, _) => Set::Release,
        (false, true) => Set::All,
        (false, false) => Set::Preferred,
    };
    let options = BuildOptions {
        target: settings.target,
        machine: settings.machine,
        set,
        filters,
        purpose: if args.release { Purpose::Release } else { Purpose::Development },
        unique_id: args.unique_id.clone(),
        out_dir,
        prune: args.prune,
        jobs: most,
        memory_mib: memory::budget(args.memory.as_deref(), Path::new("/"))?,
        keep_going: args.keep_going,
        arch,
        load_check: match (args.no_load_check, args.require_load_check) {
            (true, _) => LoadCheck::Never,
            (false, true) => LoadCheck::Required,
            (false, false) => LoadCheck::WherePossible,
        },
        fetch: !args.plan,
        without_toolkits: args.plan,
    };
    let prepared = signals::unless_stuck(&interrupt, printer, || prepare(&checked, options, &services))?;
    if args.plan {
        print_plan(&prepared, args.message_format, printer);
        return Ok(Exit::Success);
    }
    human.set_plan(&prepared.plan);
    let result = run_build(&prepared, &services)?;
    Ok(finish(&result, started, args.message_format, printer))
}

/// What `--launcher` names.
fn launcher(value: &str, settings: &Settings, cache_dir: &Path) -> Result<Launcher, Failure> {
    let environment = &settings.environment;
    Launcher::find(value, &environment.variables, &environment.current_dir, cache_dir).map_err(|error| Failure {
        exit: Exit::Usage,
        hint: error.hint(),
        causes: causes(&error),
        ..Failure::new("launcher", error.to_string())
    })
}

fn finish(report: &BuildReport, started: Instant, format: MessageFormat, printer: &Printer) -> Exit {
    let exit = match (report.interrupted, report.failed) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Success,
        (false, _) => Exit::Failure,
    };
    let steps = &report.steps;
    let seconds = format!("{:.1} s", started.elapsed().as_secs_f64());
    match exit {
        Exit::Success if format == MessageFormat::Human => {
            let mut counts = format!(
                "{} of {} ({} changed), {} ran, {} up to date",
                report.built,
                count(report.built + report.failed, "variant"),
                report.changed,
                count(steps.ran, "step"),
                steps.up_to_date,
            );
            let elsewhere = steps.cached + steps.shared;
            if elsewhere > 0 {
                counts += &format!(", {} from the cache, {} shared", steps.cached, steps.shared);
                // Of the steps that had something to do, those that had not to run.
                counts += &format!(" ({} % hits)", 100 * elsewhere / (elsewhere + steps.ran));
            }
            counts += &format!(", in {seconds}");
            printer.status("Finished", &counts);
        }
        Exit::Success => {}
        Exit::Interrupted => {
            let made = format!("{} of {} stand", report.built, count(report.built + report.failed, "variant"));
            printer.failure(&Failure { exit, ..Failure::new("interrupted", format!("the build was interrupted: {made}")) });
        }
        Exit::Failure | Exit::Usage => {
            let mut message = format!("{} of {} could not be made", report.failed, count(report.built + report.failed, "variant"));
            if steps.failed > 0 {
                message.push_str(&format!(": {} failed, {} skipped", count(steps.failed, "step"), steps.skipped));
            }
            printer.failure(&Failure::new("build-failed", message));
        }
    }
    if format == MessageFormat::Json {
        printer.object(&serde_json::json!({
            "reason": "build-finished", "success": exit == Exit::Success, "built": report.built, "changed": report.changed,
            "failed": report.failed, "interrupted": report.interrupted,
            "steps": {"ran": steps.ran, "up_to_date": steps.up_to_date, "cached": steps.cached, "shared": steps.shared, "failed": steps.failed, "skipped": steps.skipped},
        }));
    }
    exit
}

/// A number with its noun.
fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Prints the graph: what would run if nothing were up to date.
fn print_plan(prepared: &Prepared<'_>, format: MessageFormat, printer: &Printer) {
    let plan = prepared.plan.graph.plan();
    let variants = prepared.plan.variants.iter();
    printer.stdout(|out| {
        use std::io::Write;
        if format == MessageFormat::Json {
            let variants: Vec<_> = variants
                .map(|variant| {
                    serde_json::json!({
                        "variant": variant.selected.variant.name(), "backend": variant.selected.backend.to_string(),
                        "id": variant.ops_id.to_string(),
                        "torch": variant.selected.torch().map(|torch| torch.release.to_string()),
                        "extension": variant.extension.as_ref().map(|output| output.name.clone()),
                    })
                })
                .collect();
            return writeln!(out, "{}", serde_json::json!({"reason": "plan", "variants": variants, "graph": plan}));
        }
        for variant in variants {
            let torch = variant.selected.torch().map(|torch| format!(" with torch {}", torch.release)).unwrap_or_default();
            let made = variant.extension.as_ref().map_or("Python only", |extension| extension.name.as_str());
            writeln!(out, "variant {}{torch}: {made}", variant.selected.variant.name())?;
        }
        for step in &plan.steps {
            writeln!(out, "{} {} ({})", step.verb.to_lowercase(), step.label, step.id)?;
            match &step.action {
                kiln_graph::PlanAction::Run { argv, .. } => writeln!(out, "  {}", quoted(argv))?,
                kiln_graph::PlanAction::Builtin { name, .. } => writeln!(out, "  builtin {name}")?,
            }
            writeln!(out, "  makes {}", step.outputs.join(", "))?;
            if !step.targets.is_empty() {
                writeln!(out, "  for {}", step.targets.join(", "))?;
            }
        }
        Ok(())
    });
}
