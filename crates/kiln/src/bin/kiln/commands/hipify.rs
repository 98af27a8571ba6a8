//! `kiln hipify`.

use std::io::Write;
use std::path::Path;

use kiln::Event;
use kiln::build::Services;
use kiln::build::hipify::{self, HipifyOptions, hipify as convert};
use kiln_format::{Level, Version};
use kiln_graph::Interrupt;
use kiln_toolchain::{Catalog, Provisioner};

use super::system;
use crate::args::{Hipify, ReportFormat, System};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

pub(crate) fn run(args: &Hipify, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
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
    // Of the system only the Python of the option counts: nothing is compiled.
    let of_system = System { torch_from: args.torch_from.clone(), ..System::default() };
    let torch = system::torch_source(&of_system, settings, &cache_dir, &interrupt)?;
    let host = system::host(&of_system, settings, &checked.project.settings, &cache_dir, &interrupt);
    let (ambient, compiler_at) = (settings.ambient(), |path: &Path| system::compiler_at(path, settings, &cache_dir, &interrupt));
    let (named, ask) =
        (system::named(&of_system, settings), |program: &Path, question: &[&str]| kiln::host::ask(program, question, &ambient, &interrupt));
    let sources = system::sources(&named, settings, &provisioner, &cache_dir, &compiler_at, &ask);
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
    let release = |text: &String| Version::parse(text).map_err(|error| Failure::usage(format!("`--torch {text}`: {error}")));
    let options = HipifyOptions { target: settings.target, torch: args.torch.as_ref().map(release).transpose()? };
    let Some(converted) = signals::unless_stuck(&interrupt, printer, || convert(&checked, &options, &services))? else {
        return Ok(Exit::Failure);
    };
    match args.format {
        ReportFormat::Human if args.diff => printer.text(&converted.iter().map(hipify::ConvertedSource::diff).collect::<String>()),
        ReportFormat::Human => printer.text(&hipify::text(&converted)),
        ReportFormat::Json => printer.stdout(|out| {
            let text = serde_json::to_string_pretty(&hipify::json(&converted)).map_err(std::io::Error::other)?;
            writeln!(out, "{text}")
        }),
    }
    Ok(Exit::Success)
}
