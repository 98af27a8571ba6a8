//! `kiln lint`.

use std::io::Write;
use std::path::Path;

use kiln::Event;
use kiln::build::{BuildOptions, LoadCheck, Services, lint, prepare};
use kiln_format::Level;
use kiln_graph::Interrupt;
use kiln_toolchain::{Catalog, Provisioner};

use super::system;
use crate::args::{Lint, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

pub(crate) fn run(args: &Lint, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let mut checked = super::open(&args.project, settings)?;
    checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
    super::show_remarks(&checked, printer);
    checked.build()?;

    let root = &checked.project.root;
    let human = HumanReporter::new(printer, Detail { commands: false, explain: false, verbose: false }, None);
    let report = |event: &Event| human.event(event);
    let cache_dir = settings.cache_dir(Some(root))?;
    let network = || settings.network(&cache_dir, Some((root, &checked.project.settings)));
    let fetching = |event| report(&Event::Fetch(event));
    let catalog = Catalog::embedded()?.with_locked(&checked.lock);
    let interrupt = Interrupt::new();
    signals::listen(&interrupt, || ())?;
    let provisioner =
        Provisioner::new(&catalog, settings.provision_options(cache_dir.clone()), &network, &fetching).interrupted_by(interrupt.clone());
    let torch = system::torch_source(&args.system, settings, &cache_dir, &interrupt)?;
    let mut filters = super::filters(&args.filter)?;
    system::fits(&torch, &filters)?;
    let host = system::host(&args.system, settings, &checked.project.settings, &cache_dir, &interrupt);
    let named = system::named(&args.system, settings);
    let (ambient, compiler_at) = (settings.ambient(), |path: &Path| system::compiler_at(path, settings, &cache_dir, &interrupt));
    let ask = |program: &Path, question: &[&str]| kiln::host::ask(program, question, &ambient, &interrupt);
    let sources = system::sources(&named, settings, &provisioner, &cache_dir, &compiler_at, &ask);
    system::take_named(&sources, &mut filters)?;
    let services = Services {
        loader: None,
        launcher: None,
        sources,
        provisioner: &provisioner,
        torch,
        host,
        git: &settings.git(&interrupt),
        ambient: &ambient,
        cache_dir: &cache_dir,
        builder: Settings::builder(),
        program: Settings::program(),
        actions: None,
        interrupt: interrupt.clone(),
        job_server: None,
        events: &report,
    };
    // Nothing is placed, so nothing is loaded.
    let options = BuildOptions { filters, load_check: LoadCheck::Never, ..BuildOptions::preferred(settings.target, settings.machine) };
    let prepared = signals::unless_stuck(&interrupt, printer, || prepare(&checked, options, &services))?;
    let found = lint::lint(&prepared, &services, &|unit| printer.status("Measuring", unit))?;
    if interrupt.is_set() {
        return Err(Failure { exit: Exit::Interrupted, ..Failure::new("interrupted", "interrupted while units were measured") });
    }
    match args.format {
        ReportFormat::Human => printer.text(&lint::text(&found)),
        ReportFormat::Json => printer.stdout(|out| {
            let text = serde_json::to_string_pretty(&lint::json(&found)).map_err(std::io::Error::other)?;
            writeln!(out, "{text}")
        }),
    }
    Ok(if found.units.iter().any(|unit| unit.unit.is_err()) { Exit::Failure } else { Exit::Success })
}
