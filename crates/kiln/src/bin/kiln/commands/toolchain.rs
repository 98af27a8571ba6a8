//! `kiln toolchain`.

use std::io::Write;

use kiln::Event;
use kiln_format::Version;
use kiln_graph::Interrupt;
use kiln_toolchain::{Catalog, Provisioner};

use crate::args::{ReportFormat, ToolchainCommand};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::signals;

pub(crate) fn run(command: &ToolchainCommand, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let cache_dir = settings.cache_dir(None)?;
    let network = || settings.network(&cache_dir, None);
    let human = HumanReporter::new(printer, Detail::default(), None);
    let fetching = |event| human.event(&Event::Fetch(event));
    let catalog = Catalog::embedded()?;
    let interrupt = Interrupt::new();
    let provisioner =
        Provisioner::new(&catalog, settings.provision_options(cache_dir.clone()), &network, &fetching).interrupted_by(interrupt.clone());
    let platform = format!("{}-{}", settings.target.os, settings.target.cpu);
    match command {
        ToolchainCommand::List { format } => list(&provisioner, *format, printer),
        ToolchainCommand::Fetch { releases } => {
            let versions = match releases.as_slice() {
                [] => catalog
                    .releases()
                    .iter()
                    .filter(|release| release.platform == platform)
                    .map(|release| release.version.clone())
                    .collect(),
                releases => releases.iter().map(|text| release(text)).collect::<Result<Vec<_>, _>>()?,
            };
            signals::listen(&interrupt)?;
            for version in &versions {
                signals::unless_stuck(&interrupt, printer, || provisioner.fetch(version, &platform))?;
            }
            Ok(Exit::Success)
        }
        ToolchainCommand::Path { release: text } => {
            let version = release(text)?;
            let Some(dir) = provisioner.path(&version, &platform)? else {
                return Err(Failure::new("not-fetched", format!("torch {version} is not in the store"))
                    .hint(format!("fetch it with `kiln toolchain fetch torch=={version}`")));
            };
            printer.stdout(|out| writeln!(out, "{}", dir.display()));
            Ok(Exit::Success)
        }
    }
}

fn list(provisioner: &Provisioner<'_>, format: ReportFormat, printer: &Printer) -> Result<Exit, Failure> {
    let entries = provisioner.list();
    printer.stdout(|out| match format {
        ReportFormat::Json => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| {
                    let release = &entry.release;
                    serde_json::json!({
                        "name": "torch", "version": release.version.to_string(), "platform": release.platform, "wheel": release.wheel.file,
                        "sha256": release.wheel.sha256, "record_sha256": release.wheel.record_sha256,
                        "cuda": release.cuda.as_ref().map(ToString::to_string), "cxx": release.cxx_level.as_str(), "path": entry.dir,
                    })
                })
                .collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&entries).map_err(std::io::Error::other)?)
        }
        ReportFormat::Human => {
            for entry in &entries {
                let release = &entry.release;
                let cuda = release.cuda.as_ref().map_or("cpu".to_owned(), |cuda| format!("CUDA {cuda}"));
                let place = entry.dir.as_ref().map_or("not fetched".to_owned(), |dir| dir.display().to_string());
                writeln!(
                    out,
                    "torch=={:<8} {:<14} {:<10} {:<8} {place}",
                    release.version,
                    release.platform,
                    cuda,
                    release.cxx_level.as_str()
                )?;
            }
            Ok(())
        }
    });
    Ok(Exit::Success)
}

/// A release of the form `torch==X.Y.Z`.
fn release(text: &str) -> Result<Version, Failure> {
    let wrong = || Failure::usage(format!("`{text}` names no release")).hint("write it as `torch==2.13.0`");
    Version::parse(text.strip_prefix("torch==").ok_or_else(wrong)?).map_err(|_| wrong())
}
