//! What is wrong, doubtful or worth knowing about a file, as data.

use std::fmt;

use serde::Serialize;

use crate::code;
use crate::source::{LineColumn, SourceFile};
use crate::span::Span;
use crate::suggest::ends;

/// Longest message and note, in characters, and longest hint, in bytes. Values are shortened where they are put into a message; this is
/// for what slipped through.
const LONGEST: usize = 2000;

/// Most diagnostics of one file.
pub(crate) const MOST: usize = 1000;

/// `diagnostics`; of more than anybody reads the first, and how many there are beyond, which is as serious as they are.
pub fn first_of_many(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let beyond = diagnostics.split_off(MOST.min(diagnostics.len()));
    if let Some(level) = beyond.iter().map(|diagnostic| diagnostic.level).min() {
        let left_out = Diagnostic::note(code::AND_MORE, None, format!("{} more are not shown", beyond.len()));
        diagnostics.push(Diagnostic { level, ..left_out });
    }
    diagnostics
}

/// How serious a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The file cannot be used.
    Error,
    /// The file can be used, but it probably does not mean what its author thinks.
    Warning,
    /// Worth knowing for some.
    Note,
}

/// One thing to say about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious it is.
    pub level: Level,
    /// A stable, kebab-case name of the rule, such as `unknown-key`.
    pub code: &'static str,
    /// Where in the file; `None` when the file as a whole is meant.
    pub span: Option<Span>,
    /// What it is: lower case, no full stop, one line.
    pub message: String,
    /// More about it, such as what would be allowed.
    pub note: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Level::Error, code, span, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Level::Warning, code, span, message)
    }

    /// A note.
    pub fn note(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(Level::Note, code, span, message)
    }

    fn new(level: Level, code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        let message = ends(&message.into(), LONGEST).into_owned();
        Self { level, code, span: span.into(), message, note: None, hint: None }
    }

    /// The same with more about it.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(ends(&note.into(), LONGEST).into_owned());
        self
    }

    /// The same with advice, or unchanged where there is none. Advice that is too long to be read is none: a part of it would be wrong.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into().filter(|hint| hint.len() <= LONGEST);
        self
    }
}

impl Level {
    /// `error`, `warning` or `note`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A [`Diagnostic`] with its place as editors count it, for JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiagnosticReport<'a> {
    /// How serious it is.
    pub level: Level,
    /// The rule.
    pub code: &'static str,
    /// What it is.
    pub message: &'a str,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
    /// The file's name.
    pub file: &'a str,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Line and column after the last character.
    pub end: LineColumn,
}

impl SourceFile {
    /// `diagnostic` with its place in this file. One about the file as a whole is at 1:1.
    pub fn report<'a>(&'a self, diagnostic: &'a Diagnostic) -> DiagnosticReport<'a> {
        let span = diagnostic.span.unwrap_or_default();
        let LineColumn { line, column } = self.line_column(span.start);
        DiagnosticReport {
            level: diagnostic.level,
            code: diagnostic.code,
            message: &diagnostic.message,
            note: diagnostic.note.as_deref(),
            hint: diagnostic.hint.as_deref(),
            file: self.name(),
            line,
            column,
            end: self.line_column(span.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_json() {
        let file = SourceFile::new("build.toml", "[torch]\nsrcs = []\n");
        let diagnostic = Diagnostic::error("unknown-key", Span::new(8, 12), "unknown key `srcs`").with_note("n").with_hint("h".to_owned());
        insta::assert_snapshot!(serde_json::to_string(&file.report(&diagnostic)).unwrap(), @r#"{"level":"error","code":"unknown-key","message":"unknown key `srcs`","note":"n","hint":"h","file":"build.toml","line":2,"column":1,"end":{"line":2,"column":5}}"#);
        let whole = Diagnostic::warning("w", None, "m").with_hint(None);
        insta::assert_snapshot!(serde_json::to_string(&file.report(&whole)).unwrap(), @r#"{"level":"warning","code":"w","message":"m","file":"build.toml","line":1,"column":1,"end":{"line":1,"column":1}}"#);
        assert_eq!(Diagnostic::note("n", None, "m").level.to_string(), "note");
        assert_eq!(Level::Warning.to_string(), "warning");
    }
}
