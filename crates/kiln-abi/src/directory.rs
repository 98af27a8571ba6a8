//! A variant directory.

use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::Level;

use crate::expectation::Expectation;
use crate::file::{Kind, check_kind, head, is_named_shared};
use crate::report::{FailureKind, Finding, Report};
use crate::rule::Rule;

/// What a directory should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape<'a> {
    /// Compiled code, with the extension in the file of this name where it is known.
    Compiled(Option<&'a str>),
    /// Python only.
    Noarch,
    /// No variant's: whatever shared objects there are.
    Any,
}

/// Checks all files of a variant directory by their content. In the report, files are called `name/path`.
pub fn check_variant(dir: &Path, name: &str, shape: Shape<'_>, expected: &Expectation<'_>, report: &mut Report) {
    let mut shared = Vec::new();
    let mut files = Vec::new();
    collect(dir, String::new(), name, &mut files, report);
    files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (relative, path) in &files {
        let label = format!("{name}/{relative}");
        let kind = match head(path) {
            Ok(head) => Kind::of(&head),
            Err(cause) => {
                report.fail(FailureKind::Unreadable, &label, cause.to_string());
                continue;
            }
        };
        if matches!(kind, Kind::Empty | Kind::Other) && !is_named_shared(relative) {
            continue;
        }
        if kind.is_shared() {
            shared.push(relative.as_str());
        }
        let is_extension = matches!(shape, Shape::Compiled(Some(extension)) if extension == relative);
        let expected = if is_extension { *expected } else { expected.without_id() };
        check_kind(path, &label, kind, &expected, report);
    }
    let fault = match shape {
        Shape::Noarch => shared
            .first()
            .map(|file| (format!("a Python-only variant holds the shared object `{file}`"), "leave it out, or build a compiled variant")),
        Shape::Compiled(Some(extension)) if !shared.contains(&extension) => {
            Some((format!("the extension `{extension}` is missing"), "build the variant again"))
        }
        Shape::Compiled(_) if shared.is_empty() => {
            Some(("a compiled variant holds no shared object".to_owned(), "build the variant again"))
        }
        Shape::Any if shared.is_empty() => {
            Some(("there is no shared object in the directory".to_owned(), "name a directory that holds some, or a project that was built"))
        }
        Shape::Compiled(_) | Shape::Any => None,
    };
    if let Some((detail, fix)) = fault {
        let evidence = format!("shared objects: {}", if shared.is_empty() { "none".to_owned() } else { shared.join(", ") });
        report.findings.push(Finding {
            rule: Rule::FileKind,
            level: Level::Error,
            file: name.to_owned(),
            symbol: None,
            detail,
            evidence,
            caused_by: Vec::new(),
            fix: fix.to_owned(),
        });
    }
}

/// Regular files and links to files below `dir`, with their paths relative to it. Linked directories are not entered.
fn collect(dir: &Path, prefix: String, name: &str, files: &mut Vec<(String, PathBuf)>, report: &mut Report) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(cause) => return report.fail(FailureKind::Unreadable, &format!("{name}/{prefix}"), cause.to_string()),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(cause) => {
                report.fail(FailureKind::Unreadable, &format!("{name}/{prefix}"), cause.to_string());
                continue;
            }
        };
        let relative = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), format!("{relative}/"), name, files, report),
            Ok(kind) if kind.is_symlink() && entry.path().is_dir() => {}
            // Opening anything else could wait without end.
            Ok(_) => match fs::metadata(entry.path()) {
                Ok(meta) if meta.is_file() => files.push((relative, entry.path())),
                Ok(_) => report.fail(FailureKind::Unreadable, &format!("{name}/{relative}"), "it is no regular file"),
                Err(cause) => report.fail(FailureKind::Unreadable, &format!("{name}/{relative}"), cause.to_string()),
            },
            Err(cause) => report.fail(FailureKind::Unreadable, &format!("{name}/{relative}"), cause.to_string()),
        }
    }
}
