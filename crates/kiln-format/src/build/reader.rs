//! Walking a TOML document with places: typed values, and a diagnostic for everything that is not what it should be.
//!
//! Nothing here knows an edition. Every function returns what it could read and goes on after an error, so that one run
//! finds all of them.

use toml::Spanned as Located;
use toml::de::{DeTable, DeValue};

use crate::code;
use crate::diagnostic::{Diagnostic, Level, MOST, first_of_many};
use crate::source::SourceFile;
use crate::span::{Span, Spanned};
use crate::suggest::{list, quoted};

/// Longest value, in bytes, that a hint repeats.
const LONGEST_HINT: usize = 60;

/// Collects what there is to say about one file.
pub(super) struct Reader<'a> {
    source: &'a SourceFile,
    diagnostics: Vec<Diagnostic>,
}

/// A table of the document.
pub(super) struct Table<'a> {
    /// How messages call it, such as `[general.cuda]`; empty for the top of the file.
    pub(super) label: String,
    /// Where its name stands; `None` for the top of the file.
    pub(super) name_span: Option<Span>,
    /// Its keys in the order of the file.
    pub(super) entries: Vec<Entry<'a>>,
}

/// A key and its value.
pub(super) struct Entry<'a> {
    /// The key.
    pub(super) key: &'a str,
    /// Where the key stands.
    pub(super) key_span: Span,
    /// Where the value stands; for a table with a header the key in the header.
    pub(super) span: Span,
    /// The value.
    pub(super) value: &'a DeValue<'a>,
    /// Where a table's name stands: the whole name in its header, or the key.
    name_span: Span,
}

/// An element of a list.
pub(super) struct Item<'a> {
    /// Where it stands.
    pub(super) span: Span,
    /// What it is.
    pub(super) value: &'a DeValue<'a>,
}

/// What a key wants, for messages about values of another type.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// A string.
    String,
    /// A version in quotes.
    Version,
    /// An integer.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    List,
    /// A table.
    Table,
    /// A list of tables.
    Tables,
    /// A version in quotes, or a table.
    VersionOrTable,
}

impl<'a> Table<'a> {
    /// The top of the document.
    pub(super) fn root(source: &SourceFile, document: &'a DeTable<'a>) -> Self {
        Self { label: String::new(), name_span: None, entries: entries(source, document) }
    }

    /// The entry of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Whether there is an entry of `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// ` in [label]`, or nothing for the top of the file.
    pub(super) fn within(&self) -> String {
        if self.label.is_empty() { String::new() } else { format!(" in {}", self.label) }
    }
}

/// The entries of `table`, sorted by where their keys stand: the parser moves a table to the end when its header follows
/// those of its children.
fn entries<'a>(source: &SourceFile, table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = table.iter().map(|(key, value)| Entry::new(source, key, value)).collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

impl<'a> Entry<'a> {
    fn new(source: &SourceFile, key: &'a Located<toml::de::DeString<'a>>, value: &'a Located<DeValue<'a>>) -> Self {
        let key_span = Span::from(key.span());
        let span = Span::from(value.span());
        // The place of a table with a header is the header, which begins before the key.
        let has_header = span.start < key_span.start;
        let (span, name_span) = if has_header { (key_span, header_name(source, span)) } else { (span, key_span) };
        Self { key: key.get_ref(), key_span, span, value: value.get_ref(), name_span }
    }

    /// Whether it stands in a header before the name of another table: others may stand there beside it.
    pub(super) fn joins_tables(&self, source: &SourceFile) -> bool {
        let line = source.line_of(self.key_span.start);
        let in_header = source.line_head(line, self.key_span.start).trim_start().starts_with('[');
        let rest = source.slice(Span::new(self.key_span.end, source.text().len()));
        in_header && rest.trim_start_matches([' ', '\t']).starts_with('.')
    }

    /// The value as a table called `label`, if it is one; says nothing otherwise.
    pub(super) fn peek_table(&self, source: &SourceFile, label: &str) -> Option<Table<'a>> {
        let table = self.value.as_table()?;
        Some(Table { label: label.to_owned(), name_span: Some(self.name_span), entries: entries(source, table) })
    }
}

/// The name inside the brackets of a header.
fn header_name(source: &SourceFile, header: Span) -> Span {
    let text = source.slice(header);
    let edge = |c: char| matches!(c, '[' | ']' | ' ' | '\t');
    let start = header.start + (text.len() - text.trim_start_matches(edge).len());
    let end = header.start + text.trim_end_matches(edge).len();
    if start < end { Span::new(start, end) } else { header }
}

impl<'a> Reader<'a> {
    /// A reader that has nothing to say about `source` yet.
    pub(super) fn new(source: &'a SourceFile) -> Self {
        Self { source, diagnostics: Vec::new() }
    }

    /// The file.
    pub(super) fn source(&self) -> &'a SourceFile {
        self.source
    }

    /// `span` cut to the text and to whole characters: the parser may point behind the end.
    pub(super) fn inside(&self, span: Span) -> Span {
        let floor = |mut offset: usize| {
            while !self.source.text().is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let start = floor(span.start.min(self.source.text().len()));
        Span::new(start, floor(span.end.min(self.source.text().len())).max(start))
    }

    /// Says `diagnostic`.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Whether so much was said that nobody will read more.
    pub(super) fn has_said_enough(&self) -> bool {
        self.diagnostics.len() > 2 * MOST
    }

    /// Everything said, in the order of the file; of more than anybody reads the first, and how many there are beyond.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        first_of_many(self.diagnostics)
    }

    /// Says that `key` is not there, with `example` as what to write; gives `None` for use as a value.
    pub(super) fn missing<T>(&mut self, table: &Table<'_>, key: &str, example: &str) -> Option<T> {
        let message = format!("`{key}` is required{}", table.within());
        self.push(Diagnostic::error(code::MISSING_KEY, table.name_span, message).with_hint(format!("add `{example}`")));
        None
    }

    /// Says that the value at `span`, under `key` (`None` in a list), is not what was wanted; gives `None`. `literal` is what was
    /// probably meant, as it should be written: it must be right there.
    pub(super) fn wrong_type<T>(
        &mut self,
        key: Option<&str>,
        span: Span,
        value: &DeValue<'_>,
        wanted: Wanted,
        literal: Option<String>,
    ) -> Option<T> {
        let subject = key.map_or_else(|| "every element of this list".to_owned(), quoted);
        let message = format!("{subject} must be {}, found {}", wanted.describe(), describe(value));
        let hint = literal.map(|literal| match key {
            Some(key) => format!("write `{key} = {literal}`"),
            None => format!("write `{literal}`"),
        });
        self.push(Diagnostic::error(code::WRONG_TYPE, span, message).with_hint(hint));
        None
    }

    /// The value at `span` as a string in quotes, where `read` takes what it then says.
    fn in_quotes<T>(
        &self,
        span: Span,
        value: &'a DeValue<'a>,
        read: &mut impl FnMut(&mut Self, Spanned<&'a str>) -> Option<T>,
    ) -> Option<String> {
        let raw = self.source.slice(span);
        if raw.is_empty() || raw.len() > LONGEST_HINT || raw.contains(char::is_control) {
            return None;
        }
        let (text, literal) = match value {
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => (raw, format!("\"{raw}\"")),
            DeValue::String(text) => (text.as_ref(), raw.to_owned()),
            DeValue::Array(_) | DeValue::Table(_) => return None,
        };
        // What it says on the way is of no value that the file has.
        let mut trial = Reader::new(self.source);
        let taken = read(&mut trial, Spanned::new(text, span)).is_some();
        let fits = taken && trial.diagnostics.iter().all(|diagnostic| diagnostic.level != Level::Error);
        fits.then_some(literal)
    }

    /// The value as a table called `label`.
    pub(super) fn table(&mut self, entry: &Entry<'a>, label: &str) -> Option<Table<'a>> {
        match entry.peek_table(self.source, label) {
            Some(table) => Some(table),
            None => self.wrong_type(Some(entry.key), entry.span, entry.value, Wanted::Table, None),
        }
    }

    /// The value as a string, as `read` takes it.
    pub(super) fn string<T>(
        &mut self,
        entry: &Entry<'a>,
        wanted: Wanted,
        mut read: impl FnMut(&mut Self, Spanned<&'a str>) -> Option<T>,
    ) -> Option<T> {
        match entry.value.as_str() {
            Some(text) => read(self, Spanned::new(text, entry.span)),
            None => {
                let literal = self.in_quotes(entry.span, entry.value, &mut read);
                self.wrong_type(Some(entry.key), entry.span, entry.value, wanted, literal)
            }
        }
    }

    /// The value as a string that is not blank.
    pub(super) fn text(&mut self, entry: &Entry<'a>) -> Option<Spanned<String>> {
        self.string(entry, Wanted::String, |reader, text| {
            if text.trim().is_empty() {
                reader.push(Diagnostic::error(code::INVALID_VALUE, text.span, format!("{} is empty", quoted(entry.key))));
                return None;
            }
            Some(text.map(str::to_owned))
        })
    }

    /// The value as an integer of 0 or more.
    pub(super) fn unsigned(&mut self, entry: &Entry<'a>) -> Option<Spanned<u64>> {
        let Some(integer) = entry.value.as_integer() else {
            let meant = number_meant(entry.value).map(|number| number.to_string());
            return self.wrong_type(Some(entry.key), entry.span, entry.value, Wanted::Integer, meant);
        };
        let message = match i64::from_str_radix(integer.as_str(), integer.radix()).map(u64::try_from) {
            Ok(Ok(value)) => return Some(Spanned::new(value, entry.span)),
            Ok(Err(_)) => format!("`{}` must be 0 or more", entry.key),
            Err(_) => format!("`{}` is too large", entry.key),
        };
        self.push(Diagnostic::error(code::INVALID_VALUE, entry.span, message));
        None
    }

    /// The value as a boolean.
    pub(super) fn boolean(&mut self, entry: &Entry<'a>) -> Option<Spanned<bool>> {
        match entry.value.as_bool() {
            Some(value) => Some(Spanned::new(value, entry.span)),
            None => {
                let meant = entry.value.as_str().filter(|text| ["true", "false"].contains(text)).map(str::to_owned);
                self.wrong_type(Some(entry.key), entry.span, entry.value, Wanted::Boolean, meant)
            }
        }
    }

    /// The elements of a list. `meant` is what was probably meant by a value that is none.
    fn items(&mut self, entry: &Entry<'a>, wanted: Wanted, meant: impl FnOnce(&Self) -> Option<String>) -> Option<Vec<Item<'a>>> {
        let Some(array) = entry.value.as_array() else {
            let literal = meant(self);
            return self.wrong_type(Some(entry.key), entry.span, entry.value, wanted, literal);
        };
        let item = |item: &'a Located<DeValue<'a>>| {
            let mut span = Span::from(item.span());
            if item.get_ref().is_table() && self.source.slice(span).starts_with('[') {
                span = header_name(self.source, span);
            }
            Item { span, value: item.get_ref() }
        };
        Some(array.iter().map(item).collect())
    }

    /// The elements of a list of tables.
    pub(super) fn tables(&mut self, entry: &Entry<'a>) -> Option<Vec<Item<'a>>> {
        self.items(entry, Wanted::Tables, |_| None)
    }

    /// A list of strings, each read by `read`. Elements that are wrong are left out after it was said; `None` only when
    /// the value is no list. `example` is an element that `read` takes.
    pub(super) fn list<T>(
        &mut self,
        entry: &Entry<'a>,
        example: &'static str,
        mut read: impl FnMut(&mut Self, Spanned<&'a str>) -> Option<T>,
    ) -> Option<Vec<Spanned<T>>> {
        let mut values = Vec::new();
        let meant = |reader: &Self| {
            let element = reader.in_quotes(entry.span, entry.value, &mut read);
            Some(format!("[{}]", element.unwrap_or_else(|| format!("\"{example}\""))))
        };
        for item in self.items(entry, Wanted::List, meant)? {
            let value = match item.value.as_str() {
                Some(text) => read(self, Spanned::new(text, item.span)),
                None => {
                    let literal = self.in_quotes(item.span, item.value, &mut read);
                    self.wrong_type(None, item.span, item.value, Wanted::String, literal)
                }
            };
            if let Some(value) = value {
                values.push(Spanned::new(value, item.span));
            }
        }
        Some(values)
    }

    /// The elements of a table in a list, or a message.
    pub(super) fn item_table(&mut self, item: &Item<'a>, label: &str) -> Option<Table<'a>> {
        match item.value.as_table() {
            Some(table) => Some(Table { label: label.to_owned(), name_span: Some(item.span), entries: entries(self.source, table) }),
            None => self.wrong_type(None, item.span, item.value, Wanted::Table, None),
        }
    }

    /// Says that `entry` has no place in `table`, where only `allowed` are, with advice.
    pub(super) fn unknown_key(&mut self, table: &Table<'_>, entry: &Entry<'_>, allowed: &[&str], hint: Option<String>) {
        let message = format!("unknown key {}{}", quoted(entry.key), table.within());
        let diagnostic = Diagnostic::error(code::UNKNOWN_KEY, entry.key_span, message);
        self.push(diagnostic.with_note(allowed_here(allowed)).with_hint(hint));
    }
}

/// The number that a string or a float probably means.
pub(super) fn number_meant(value: &DeValue<'_>) -> Option<u64> {
    let number = match value {
        DeValue::String(text) => text.trim(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    let number = number.strip_suffix(".0").unwrap_or(number);
    let plain = number.len() < 19 && number.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| number.parse().ok()).flatten()
}

/// The note that lists `allowed`.
pub(super) fn allowed_here(allowed: &[&str]) -> String {
    format!("allowed here: {}", list(allowed.iter().copied()))
}

impl Wanted {
    fn describe(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Version => "a quoted version",
            Self::Integer => "an integer",
            Self::Boolean => "`true` or `false`",
            Self::List => "a list of strings",
            Self::Table => "a table",
            Self::Tables => "a list of tables",
            Self::VersionOrTable => "a quoted version or a table",
        }
    }
}

/// What `value` is, with its article.
fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
