//! What `kiln doctor` says, as text and as JSON.

use kiln_format::Version;
use serde_json::{Value, json};

use super::{DoctorReport, FrameworkFrom, Item, Section, State, Verdict};
use crate::build_error::Report;

/// The report for people. With `verbose`, also the places that were looked at and what things are made of.
pub fn text(report: &DoctorReport, verbose: bool) -> String {
    let mut text = format!("{}, {}\n", report.system, report.target);
    for section in &report.sections {
        text.push('\n');
        text.push_str(&section_text(section, verbose));
    }
    let of = report.project.as_ref().map_or_else(|| "of a kernel".to_owned(), |root| format!("of `{}`", root.display()));
    text.push_str(&format!("\nWould a build {of} start?\n"));
    for verdict in &report.verdicts {
        verdict_text(&mut text, verdict);
    }
    text
}

/// One section; every line of it ends with a line break.
pub(super) fn section_text(section: &Section, verbose: bool) -> String {
    let mut text = format!("{}\n", section.title);
    for item in &section.items {
        text.push_str(&line(item.state.as_str(), &item_text(item)));
        if let Some(install) = &item.install {
            hints(&mut text, install);
        }
        if let Some(identity) = item.identity.as_ref().filter(|_| verbose) {
            text.push_str(&line("", &format!("identity {identity}")));
        }
    }
    if verbose && !section.looked.is_empty() {
        text.push_str(&line("", &format!("looked at {}", section.looked.join(", "))));
    }
    text
}

/// A line with a word in front.
fn line(word: &str, rest: &str) -> String {
    format!("  {word:<9}{rest}\n")
}

fn item_text(item: &Item) -> String {
    if matches!(item.state, State::None | State::Skipped) && item.origin.is_none() {
        return item.detail.clone().unwrap_or_else(|| "nothing was found".to_owned());
    }
    let mut text = item.name.clone();
    if let Some(version) = &item.version {
        text.push_str(&format!(" {version}"));
    }
    if let Some(path) = &item.path {
        text.push_str(&format!(" at {}", path.display()));
    }
    if let Some(origin) = &item.origin {
        text.push_str(&format!(", from {origin}"));
    }
    if !item.lacks.is_empty() {
        let names: Vec<String> = item.lacks.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!(": {}", names.join(", ")));
    }
    if let Some(detail) = &item.detail {
        text.push_str(&format!(": {detail}"));
    }
    text
}

fn hints(text: &mut String, hint: &str) {
    for part in hint.lines() {
        let head = if part.starts_with(' ') { "" } else { "hint: " };
        text.push_str(&line("", &format!("{head}{part}")));
    }
}

fn verdict_text(text: &mut String, verdict: &Verdict) {
    match &verdict.start {
        Ok(start) => {
            let mut with: Vec<String> = start.compiler.iter().map(|compiler| format!("with {compiler}")).collect();
            with.extend(
                start
                    .frameworks
                    .iter()
                    .chain(&start.toolkits)
                    .map(|(name, release, from)| format!("{name} {release} of the {}", from.as_str())),
            );
            let with = if with.is_empty() { String::new() } else { format!(" {}", with.join(", ")) };
            text.push_str(&line("yes", &format!("{}: {}{with}", verdict.backend, start.variants.join(", "))));
        }
        Err(Report { code, message, causes, hint }) => {
            text.push_str(&line("no", &format!("{}: error[{code}]: {message}", verdict.backend)));
            for cause in causes {
                text.push_str(&line("", &format!("caused by: {cause}")));
            }
            // The command for this very distribution, or else what is known in general.
            match (&verdict.install, hint) {
                (Some(install), _) => hints(text, install),
                (None, Some(hint)) => hints(text, hint),
                (None, None) => {}
            }
        }
    }
}

/// The report for programs.
pub fn json(report: &DoctorReport) -> Value {
    let sections: Vec<Value> = report
        .sections
        .iter()
        .map(|section| json!({"name": section.key, "items": section.items.iter().map(item_json).collect::<Vec<_>>(), "looked": section.looked}))
        .collect();
    json!({
        "system": report.system,
        "target": report.target,
        "project": report.project,
        "sections": sections,
        "verdicts": report.verdicts.iter().map(verdict_json).collect::<Vec<_>>(),
    })
}

fn item_json(item: &Item) -> Value {
    json!({
        "state": item.state.as_str(), "name": item.name, "version": item.version, "path": item.path, "origin": item.origin,
        "lacks": item.lacks, "detail": item.detail, "install": item.install, "identity": item.identity,
    })
}

fn verdict_json(verdict: &Verdict) -> Value {
    let backend = verdict.backend.as_str();
    match &verdict.start {
        Ok(start) => {
            let framework = |(name, release, from): &(&str, Version, FrameworkFrom)| json!({"name": name, "release": release.to_string(), "from": from.as_str()});
            let frameworks: Vec<Value> = start.frameworks.iter().map(framework).collect();
            let toolkits: Vec<Value> = start.toolkits.iter().map(framework).collect();
            json!({"backend": backend, "starts": true, "variants": start.variants, "compiler": start.compiler, "frameworks": frameworks, "toolkits": toolkits})
        }
        Err(Report { code, message, causes, hint }) => json!({
            "backend": backend, "starts": false,
            "error": {"code": code, "message": message, "causes": causes, "hint": hint}, "install": verdict.install,
        }),
    }
}
