//! `build.toml`: from text to the current model, with every error at once.
//!
//! [`parse`] reads the text as TOML with the place of every value, decides which edition of the format it is written in,
//! lets that edition's module check it and make the current model, and checks the model. Which edition that was is nobody
//! else's business: everything outside this folder sees [`Build`] only.
//!
//! Every diagnostic has a stable code: `syntax`, `duplicate-key`, `unknown-key`, `missing-key`, `wrong-type`,
//! `invalid-value`, `invalid-name`, `invalid-version`, `invalid-url`, `invalid-path`, `invalid-arch`, `invalid-repo-id`,
//! `unknown-backend`, `unknown-dependency`, `unknown-python-dependency`, `invalid-kernel-dependency`, `empty-range`,
//! `framework`, `missing-component` and `edition` are errors; `old-edition`, `duplicate-backend`, `unused-kernel`, `unused-dependency`,
//! `leading-dot`, `arch-flag` and `not-loadable` are warnings; `noarch-backend` and `not-portable` are notes. `and-more` counts what
//! is not shown, and is as serious as that.

mod checks;
mod detect;
mod model;
mod queries;
mod reader;
mod reference;
mod tables;
mod universal;
mod update;
mod v1;
mod v2;
mod v3;
mod v4;
mod v5;
mod values;

use std::sync::Arc;

use toml::de::DeTable;

use self::model::Contents;
pub use self::model::{BackendDepends, Build, Framework, General, Hub, Kernel, KernelOptions, StableAbi, Torch, TorchNoarch, TvmFfi};
use self::reader::{Reader, Table};
pub use self::reference::{json_schema, reference_page};
use self::tables::Schema;
pub use self::update::{Change, ChangeKind, Update, UpdateError, update};
use crate::code;
use crate::diagnostic::{Diagnostic, Level};
use crate::source::SourceFile;
use crate::span::Span;
use crate::suggest::{escaped, list, quoted};

/// An edition of the format. Everything that belongs to one alone is in its module.
struct Edition {
    /// Its number.
    number: u64,
    /// Which keys its tables have.
    schema: &'static Schema,
    /// How a file of it is checked and becomes the model.
    read: Read,
    /// How files of other editions, by their numbers, become files of a newer one: this, or the one that its files are brought to.
    steps: &'static [(u64, update::Step)],
    /// What the manual says of its tables and keys, when it is the newest.
    texts: &'static reference::Texts,
}

type Read = for<'a> fn(&mut Reader<'a>, &Table<'a>) -> Option<Contents>;

/// The editions that can be read, oldest first. Another one is one more module and one more line.
const EDITIONS: &[Edition] = &[v1::EDITION, v2::EDITION, v3::EDITION, v4::EDITION, v5::EDITION];

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
    parse_in(EDITIONS, file_name, text)
}

/// Whether a list or an inline table was opened and not closed: the lines that follow are taken for its parts.
fn is_unclosed(error: &toml::de::Error) -> bool {
    ["unclosed array,", "unclosed inline table"].iter().any(|start| error.message().starts_with(start))
}

/// What to say of a fault of the syntax: the parser's words, where they are not misleading.
fn syntax_message(source: &SourceFile, span: Option<Span>, message: &str) -> String {
    let rest = span.map(|span| source.slice(Span::new(span.start, source.text().len())));
    match rest.map(|rest| rest.trim_start_matches([' ', '\t'])) {
        // The parser takes nothing for a string that lacks its quotes.
        Some(rest) if message.starts_with("string values must be quoted") && (rest.is_empty() || rest.starts_with(['\n', '\r', '#'])) => {
            "a value is missing".to_owned()
        }
        _ => escaped(message),
    }
}

/// As [`parse`], where `editions` are all there are.
fn parse_in(editions: &[Edition], file_name: &str, text: &str) -> Parsed {
    let source = Arc::new(SourceFile::new(file_name, text));
    let mut reader = Reader::new(&source);
    let (document, errors) = DeTable::parse_recoverable(text);
    // What remains of a document with broken syntax is a guess, but one with a key that stands twice is whole.
    let mut whole = true;
    let unclosed = errors.iter().any(is_unclosed);
    let mut told_line = 0;
    for error in errors {
        let duplicate = error.message().starts_with("duplicate key");
        whole &= duplicate;
        let span = error.span().map(|span| reader.inside(span.into()));
        let line = span.map_or(0, |span| source.line_of(span.start));
        match span {
            Some(span) if duplicate => {
                reader.push(Diagnostic::error(code::DUPLICATE_KEY, span, format!("duplicate key {}", quoted(source.slice(span)))));
            }
            // The parser stumbles on after a slip. What it says of the rest of the line, or of what an open bracket has
            // swallowed, helps nobody.
            _ if (unclosed && !is_unclosed(&error)) || (line > 0 && line == told_line) => {}
            _ => {
                told_line = line;
                reader.push(Diagnostic::error(code::SYNTAX, span, syntax_message(&source, span, error.message())));
            }
        }
    }
    let contents = if whole { read(editions, &mut reader, &Table::root(&source, document.get_ref())) } else { None };
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

fn read<'a>(editions: &[Edition], reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    let newest = newest(editions);
    let told = detect::edition(reader, root, newest)?;
    let edition = editions.iter().find(|edition| edition.number == told.number)?;
    if edition.number < newest {
        reader.push(outdated(reader, &told, newest));
    }
    (edition.read)(reader, root)
}

/// The edition that `text` is of, if that can be told.
fn edition_of(editions: &[Edition], text: &str) -> Option<u64> {
    let source = SourceFile::new("", text);
    let (document, _) = DeTable::parse_recoverable(text);
    let mut reader = Reader::new(&source);
    Some(detect::edition(&mut reader, &Table::root(&source, document.get_ref()), newest(editions))?.number)
}

fn newest(editions: &[Edition]) -> u64 {
    editions.iter().map(|edition| edition.number).max().unwrap_or_default()
}

/// The warning about a file that is not of the newest edition.
fn outdated(reader: &Reader<'_>, told: &detect::Edition, newest: u64) -> Diagnostic {
    let message = format!("this file is written in edition {} of the format; it is read as one of edition {newest}", told.number);
    let warning = Diagnostic::warning(code::OLD_EDITION, told.span, message);
    let warning = warning.with_hint(format!("`kiln update-build {}` brings it up to date", directory(reader.source().name())));
    if told.marks.is_empty() {
        return warning;
    }
    warning.with_note(format!("there is no `edition`, and it has {}", list(told.marks.iter().map(String::as_str))))
}

/// The directory of the file `name` as an argument of a shell's command.
fn directory(name: &str) -> String {
    let directory = match name.rsplit_once('/') {
        None => ".",
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
    };
    let plain = |c: char| c.is_alphanumeric() || "-_=+./,:@%".contains(c);
    if directory.chars().all(plain) && !directory.starts_with('-') {
        directory.to_owned()
    } else {
        format!("'{}'", directory.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
