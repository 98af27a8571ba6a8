//! `kiln list-variants` and `kiln matrix`.

use std::io::Write;

use kiln::BuildError;
use kiln::matrix::{Set, report};
use kiln_format::Level;

use crate::args::{ListVariants, Matrix, MatrixFormat, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) fn list(args: &ListVariants, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let mut checked = super::open(&args.project, settings)?;
    checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
    super::show_remarks(&checked, printer);
    let selection = checked.choose(settings.target, Set::All, &super::filters(&args.filter)?, &|_| Ok(()))?;
    let text = match (args.format, args.reasons) {
        (ReportFormat::Json, _) => report::json(&selection),
        (ReportFormat::Human, true) => report::table(&selection),
        (ReportFormat::Human, false) => report::names(&selection),
    };
    printer.stdout(|out| write!(out, "{text}"));
    Ok(Exit::Success)
}

pub(crate) fn matrix(args: &Matrix, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let mut checked = super::open(&args.project, settings)?;
    checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
    super::show_remarks(&checked, printer);
    let set = if args.all { Set::All } else { Set::Release };
    let selection = checked.choose(settings.target, set, &super::filters(&args.filter)?, &|_| Ok(()))?;
    if selection.variants.is_empty() {
        // No CI system takes a matrix without a row.
        return Err(BuildError::NothingSelected { reasons: selection.reasons() }.into());
    }
    let format = match args.format {
        MatrixFormat::Github => report::CiFormat::Github,
        MatrixFormat::Json => report::CiFormat::Json,
    };
    let text = report::ci_matrix(&selection.variants, format);
    printer.stdout(|out| write!(out, "{text}"));
    Ok(Exit::Success)
}
