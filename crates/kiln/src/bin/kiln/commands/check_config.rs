//! `kiln check-config`.

use std::io::Write;

use kiln_format::Level;

use crate::args::{CheckConfig, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) fn run(args: &CheckConfig, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let mut checked = super::open(&args.project, settings)?;
    if !args.verbose {
        checked.project.retain(|diagnostic| diagnostic.level != Level::Note || (args.peer && diagnostic.code == "not-portable"));
    }
    match args.format {
        ReportFormat::Human => super::show_remarks(&checked, printer),
        ReportFormat::Json => {
            let reports = checked.project.reports();
            printer.stdout(|out| {
                let text = serde_json::to_string_pretty(&reports).map_err(std::io::Error::other)?;
                writeln!(out, "{text}")
            });
        }
    }
    let (errors, warnings) = (checked.project.count(Level::Error), checked.project.count(Level::Warning));
    Ok(if errors > 0 || (args.strict && warnings > 0) { Exit::Failure } else { Exit::Success })
}
