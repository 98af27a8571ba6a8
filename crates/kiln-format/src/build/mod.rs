//! `build.toml`: from text to the current model, with every error at once.
//!
//! [`parse`] reads the text as TOML with the place of every value, decides which edition of the format it is written in,
//! lets that edition's module check it and make the current model, and checks the model. Which edition that was is nobody
//! else's business: everything outside this folder sees [`Build`] only.
//!
//! Every diagnostic has a stable code: `syntax`, `duplicate-key`, `unknown-key`, `missing-key`, `wrong-type`,
//! `invalid-value`, `invalid-name`, `invalid-version`, `invalid-url`, `invalid-path`, `invalid-arch`, `invalid-repo-id`,
//! `unknown-backend`, `unknown-dependency`, `unknown-python-dependency`, `invalid-kernel-dependency`, `empty-range`,
//! `framework`, `missing-component` and `edition` are errors; `duplicate-backend`, `unused-kernel`, `unused-dependency`,
//! `leading-dot`, `arch-flag` and `not-loadable` are warnings; `noarch-backend` and `not-portable` are notes.

mod checks;
mod detect;
mod model;
mod queries;
mod reader;
mod v5;
mod values;

use std::sync::Arc;

use toml::de::DeTable;

use self::detect::Edition;
use self::model::Contents;
pub use self::model::{BackendDepends, Build, Framework, General, Hub, Kernel, KernelOptions, StableAbi, Torch, TorchNoarch, TvmFfi};
use self::reader::{Reader, Table};
use crate::code;
use crate::diagnostic::{Diagnostic, Level};
use crate::source::SourceFile;
use crate::suggest::{escaped, list, quoted};

/// How the file of one edition is checked and becomes the model.
type Read = for<'a> fn(&mut Reader<'a>, &Table<'a>) -> Option<Contents>;

/// The editions that can be read. Another one is one more module and one more line.
const EDITIONS: &[(u64, Read)] = &[(5, v5::read)];

/// What became of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The text, which the places in `build` and `diagnostics` point into.
    pub source: Arc<SourceFile>,
    /// The model, when there is no error.
    pub build: Option<Build>,
    /// Errors, warnings and notes, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// The diagnostics that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.level == Level::Error)
    }
}

/// Reads `text`, called `file_name` in messages. The disk is not touched: whether the named files exist is not asked.
pub fn parse(file_name: &str, text: &str) -> Parsed {
    let source = Arc::new(SourceFile::new(file_name, text));
    let mut reader = Reader::new(&source);
    let (document, errors) = DeTable::parse_recoverable(text);
    // What remains of a document with broken syntax is a guess, but one with a key that stands twice is whole.
    let mut whole = true;
    for error in errors {
        let duplicate = error.message().starts_with("duplicate key");
        whole &= duplicate;
        let span = error.span().map(|span| reader.inside(span.into()));
        reader.push(match span {
            Some(span) if duplicate => {
                Diagnostic::error(code::DUPLICATE_KEY, span, format!("duplicate key {}", quoted(source.slice(span))))
            }
            _ => Diagnostic::error(code::SYNTAX, span, escaped(error.message())),
        });
    }
    let contents = if whole { read(&mut reader, &Table::root(&source, document.get_ref())) } else { None };
    let diagnostics = reader.finish();
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.level == Level::Error);
    let build = contents.filter(|_| !failed).map(|contents| Build {
        source: Arc::clone(&source),
        general: contents.general,
        framework: contents.framework,
        kernels: contents.kernels,
    });
    Parsed { source, build, diagnostics }
}

fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    let edition = detect::edition(reader, root)?;
    match EDITIONS.iter().find(|(number, _)| *number == edition.number) {
        Some((_, read)) => read(reader, root),
        None => {
            reader.push(not_read(&edition));
            None
        }
    }
}

/// The answer to a file of an edition that has no module.
fn not_read(edition: &Edition) -> Diagnostic {
    let message = format!("this file is written in edition {}, which this version of Kiln does not read", edition.number);
    let diagnostic = Diagnostic::error(code::EDITION, edition.span, message);
    let hint = format!("write it in edition {0}, with `edition = {0}` under `[general]`", detect::CURRENT);
    let diagnostic = diagnostic.with_hint(hint);
    if edition.marks.is_empty() {
        return diagnostic;
    }
    diagnostic.with_note(format!(
        "there is no `edition`, and the keys are those of edition {}: {}",
        edition.number,
        list(edition.marks.iter().map(String::as_str))
    ))
}
