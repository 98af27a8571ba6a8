//! One module per command: resolved values in, an exit code out.

pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod check_config;
pub(crate) mod doctor;
pub(crate) mod hash;
pub(crate) mod hipify;
pub(crate) mod lint;
pub(crate) mod toolchain;
pub(crate) mod update_build;
pub(crate) mod variants;

pub(crate) mod scratch;
mod system;

use std::path::Path;

use kiln::build::Checked;
use kiln::matrix::Filters;
use kiln::settings_file;
use kiln_format::{BackendName, Version};

use crate::args::{Filter, Project};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// The filters of the command line as values.
fn filters(filter: &Filter) -> Result<Filters, Failure> {
    let versions = |option: &str, texts: &[String]| {
        texts
            .iter()
            .map(|text| {
                Version::parse(text)
                    .map_err(|error| Failure::usage(format!("`{option} {}`: {error}", if text.is_empty() { "''" } else { text.as_str() })))
            })
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(Filters {
        variants: filter.variants.clone(),
        backends: filter.backends.iter().map(|name| backend("--backend ", name)).collect::<Result<_, _>>()?,
        torch: versions("--torch", &filter.torch)?,
        cuda: versions("--cuda", &filter.cuda)?,
    })
}

/// The backend called `name`, which stands behind `option`.
fn backend(option: &str, name: &str) -> Result<BackendName, Failure> {
    name.parse().map_err(|error| {
        let shown = if name.is_empty() { "''" } else { name };
        let failure = Failure::usage(format!("`{option}{shown}`: {error}"));
        match BackendName::meant_by(name) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`? {}", known_backends())),
            None => failure.hint(known_backends()),
        }
    })
}

fn known_backends() -> String {
    let names: Vec<String> = BackendName::ALL.into_iter().map(|name| format!("`{name}`")).collect();
    format!("there is {}", names.join(", "))
}

/// Opens the project of a command; with `deny_legacy`, a file of an old edition is an error.
fn open(project: &Project, settings: &Settings) -> Result<Checked, Failure> {
    let mut checked = Checked::open(&project.dir.path, &settings.user_lock()?)?;
    if project.deny_legacy {
        checked.project.deny("old-edition");
    }
    Ok(checked)
}

/// What a project's `kiln.toml` says. Its faults are for the commands that are about the project.
fn settings_of(project: &Path) -> settings_file::Settings {
    let text = std::fs::read_to_string(project.join(settings_file::FILE_NAME)).unwrap_or_default();
    settings_file::parse(&text).0
}

/// Shows the remarks on the project's files.
fn show_remarks(checked: &Checked, printer: &Printer) {
    let text = checked.project.render();
    if !text.is_empty() {
        printer.stderr(text.as_bytes());
    }
    if printer.json {
        for report in checked.project.reports() {
            // A report holds nothing that JSON cannot say.
            if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&report) {
                let reason = std::iter::once(("reason".to_owned(), "diagnostic".into()));
                printer.object(&serde_json::Value::Object(reason.chain(fields).collect()));
            }
        }
    }
}
