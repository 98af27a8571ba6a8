//! The text of a file, and lines and columns in it.

use serde::Serialize;

use crate::span::Span;

/// A byte order mark, which editors on Windows put before UTF-8 text.
const BOM: char = '\u{feff}';

/// A file that was read: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    name: String,
    text: String,
    /// Offset of the first byte of each line, a byte order mark left out.
    line_starts: Vec<usize>,
}

/// A place as editors count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LineColumn {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1. A byte order mark is no column.
    pub column: usize,
}

impl SourceFile {
    /// The file called `name` (as messages should show it) with `text`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let first = if text.starts_with(BOM) { BOM.len_utf8() } else { 0 };
        let line_starts = std::iter::once(first).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text, with a byte order mark where the file has one.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text at `span`; empty where `span` is not inside the text or cuts a character.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Line and column of the byte at `offset`; offsets beyond the text count as its end.
    pub fn line_column(&self, offset: usize) -> LineColumn {
        let line = self.line_of(offset);
        let column = self.line_head(line, offset).chars().count() + 1;
        LineColumn { line, column }
    }

    /// The line of the byte at `offset`. Takes no longer in a long line.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).max(1)
    }

    /// The text of `line` (from 1), without its end of line.
    pub fn line(&self, line: usize) -> &str {
        let Some(&start) = line.checked_sub(1).and_then(|index| self.line_starts.get(index)) else { return "" };
        let rest = self.text.get(start..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// The part of `line` (from 1) before `offset`; its end of line never counts.
    pub(crate) fn line_head(&self, line: usize, offset: usize) -> &str {
        let text = self.line(line);
        let Some(&start) = line.checked_sub(1).and_then(|index| self.line_starts.get(index)) else { return "" };
        let mut length = offset.saturating_sub(start).min(text.len());
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        text.get(..length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(file: &SourceFile, needle: &str) -> (usize, usize) {
        let place = file.line_column(file.text().find(needle).unwrap());
        (place.line, place.column)
    }

    #[test]
    fn lines_and_columns() {
        let file = SourceFile::new("build.toml", "a = 1\nüü = \"x\"\n\tb\n");
        assert_eq!(
            (file.name(), at(&file, "a"), at(&file, "="), at(&file, "\"x"), at(&file, "b")),
            ("build.toml", (1, 1), (1, 3), (2, 6), (3, 2))
        );
        assert_eq!(file.line_column(999), LineColumn { line: 4, column: 1 });
        assert_eq!((file.line(1), file.line(2), file.line(4), file.line(0), file.line(5)), ("a = 1", "üü = \"x\"", "", "", ""));
        assert_eq!(file.slice(Span::new(0, 1)), "a");
        assert_eq!(file.slice(Span::new(7, 8)), "", "half a character");
        assert_eq!(file.line_column(7), LineColumn { line: 2, column: 1 }, "half a character");
    }

    #[test]
    fn byte_order_mark_and_carriage_returns() {
        let file = SourceFile::new("x", "\u{feff}[a]\r\nb = 1\r\n");
        assert_eq!((at(&file, "["), at(&file, "b")), ((1, 1), (2, 1)));
        assert_eq!((file.line(1), file.line(2)), ("[a]", "b = 1"));
        assert_eq!(file.line_column(0), LineColumn { line: 1, column: 1 });
        let end_of_first = file.text().find('\n').unwrap();
        assert_eq!(file.line_column(end_of_first), LineColumn { line: 1, column: 4 });
    }

    proptest! {
        #[test]
        fn every_offset_has_a_place(text in "[a\\n\\r\\tü日\u{feff}]{0,20}", offset in 0usize..80) {
            let file = SourceFile::new("x", text.clone());
            let place = file.line_column(offset);
            prop_assert!(place.line >= 1 && place.line <= text.matches('\n').count() + 1);
            prop_assert!(place.column <= file.line(place.line).chars().count() + 1);
            if offset < 79 {
                prop_assert!(place <= file.line_column(offset + 1));
            }
        }
    }
}
