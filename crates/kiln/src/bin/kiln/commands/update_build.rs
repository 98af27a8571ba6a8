//! `kiln update-build`.

use std::io::Write;

use kiln::build_error::causes;
use kiln::update_build::{FileUpdate, UpdateBuildError};
use kiln_format::build::ChangeKind;

use crate::args::UpdateBuild;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub(crate) fn run(args: &UpdateBuild, printer: &Printer) -> Result<Exit, Failure> {
    if args.license.as_deref().is_some_and(|license| license.trim().is_empty()) {
        return Err(Failure::usage("`--license` needs an id, such as `Apache-2.0`"));
    }
    let mut exit = Exit::Success;
    // Every file is told about, also behind one that fails.
    for path in &args.paths {
        let result = FileUpdate::plan(path, args.license.as_deref()).and_then(|update| {
            if !args.check && !args.diff {
                update.write()?;
            }
            Ok(update)
        });
        match result {
            Ok(update) => {
                show(args, &update, printer);
                if update.is_changed() && (args.check || args.diff) {
                    exit = Exit::Failure;
                }
            }
            Err(error) => {
                if let Some(remarks) = error.remarks() {
                    printer.stderr(remarks.as_bytes());
                }
                printer.failure(&failure(&error));
                exit = Exit::Failure;
            }
        }
    }
    Ok(exit)
}

/// Says what was, or would be, done to one file.
fn show(args: &UpdateBuild, update: &FileUpdate, printer: &Printer) {
    let name = update.shown.display();
    if args.diff {
        printer.stdout(|out| write!(out, "{}", update.diff()));
    } else if args.check {
        if update.is_changed() {
            printer.stdout(|out| update.update.changes.iter().try_for_each(|change| writeln!(out, "{name}: {change}")));
        }
        return;
    } else {
        printer.status(if update.is_changed() { "Updated" } else { "Unchanged" }, &name.to_string());
        for change in update.update.changes.iter().filter(|change| change.kind != ChangeKind::Kept) {
            printer.status("", &change.to_string());
        }
    }
    for change in update.update.changes.iter().filter(|change| change.kind == ChangeKind::Kept) {
        printer.warning(&format!("{name}: {change}"));
    }
}

fn failure(error: &UpdateBuildError) -> Failure {
    Failure { causes: causes(error), hint: error.hint(), ..Failure::new(error.code(), error.to_string()) }
}
