//! Diagnostics as text for people: the reason, the place, the line with a caret, a note and a hint.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use crate::diagnostic::Diagnostic;
use crate::source::SourceFile;

/// How many columns a tab takes in a shown line.
const TAB: &str = "    ";

/// Longest line, in characters, that is shown whole.
const LONGEST_LINE: usize = 200;
/// How many characters of a longer one are shown before what is marked.
const BEFORE: usize = 60;
/// Stands for what is left out of it.
const LEFT_OUT: &str = "...";

/// The text for `diagnostics` of `file`, in the given order, an empty line between two; without colour, and with a line
/// break at the end where there is any.
pub fn render(file: &SourceFile, diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        render_one(&mut out, file, diagnostic);
    }
    out
}

fn render_one(out: &mut String, file: &SourceFile, diagnostic: &Diagnostic) {
    let report = file.report(diagnostic);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}[{}]: {}", report.level, report.code, visible(report.message));
    let number = report.line.to_string();
    let margin = " ".repeat(number.len());
    let _ = writeln!(out, "{margin} --> {}:{}:{}", report.file, report.line, report.column);
    if let Some(span) = diagnostic.span {
        let line = file.line(report.line);
        let start = file.line_head(report.line, span.start).len();
        // A span over several lines is marked to the end of its first line.
        let end = file.line_head(report.line, span.end).len().max(start);
        let Excerpt { text, indent, carets } = excerpt(line, start, end);
        let _ = writeln!(out, "{margin} |");
        let _ = writeln!(out, "{}", format!("{number} | {text}").trim_end());
        let _ = writeln!(out, "{margin} | {}{}", " ".repeat(indent), "^".repeat(carets));
    }
    if let Some(note) = report.note {
        let _ = writeln!(out, "{margin} = {}", visible(note));
    }
    if let Some(hint) = report.hint {
        let _ = writeln!(out, "hint: {}", visible(hint));
    }
}

/// A line as it is shown.
struct Excerpt {
    text: String,
    /// Columns before the first caret.
    indent: usize,
    /// Number of carets.
    carets: usize,
}

/// `line`, or of a long one what stands around the bytes `start..end`, which the carets mark.
fn excerpt(line: &str, start: usize, end: usize) -> Excerpt {
    let part = |from: usize, to: usize| line.get(from..to).unwrap_or_default();
    let (from, to) = window(line, start);
    // What is secret of an address shows only in all of it.
    let (word_start, word_end) = if line.contains("://") { words(line, from, to) } else { (from, to) };
    let hidden = without_secrets(part(word_start, word_end));
    let columns = |from: usize, to: usize| width(&shown(part(from, to)));
    let text = cut(&shown(&hidden), columns(word_start, from), columns(from, to));
    let before = if from > 0 { LEFT_OUT } else { "" };
    let after = if to < line.len() { LEFT_OUT } else { "" };
    Excerpt {
        text: format!("{before}{text}{after}"),
        indent: before.len() + columns(from, start),
        carets: columns(start, end.min(to)).max(1),
    }
}

/// The bytes `from..to` of `line`, and the rest of the words at both ends.
fn words(line: &str, from: usize, to: usize) -> (usize, usize) {
    let part = |from: usize, to: usize| line.get(from..to).unwrap_or_default();
    let start = part(0, from).char_indices().rev().find(|&(_, c)| ends_address(c)).map_or(0, |(at, c)| at + c.len_utf8());
    (start, part(to, line.len()).find(ends_address).map_or(line.len(), |at| to + at))
}

/// Whether the character is in no address.
fn ends_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>')
}

/// The bytes of `line` that are shown when those from `start` on matter.
fn window(line: &str, start: usize) -> (usize, usize) {
    if line.len() <= LONGEST_LINE || line.chars().nth(LONGEST_LINE).is_none() {
        return (0, line.len());
    }
    let back = |from: usize, chars: usize| {
        let head = line.get(..from).unwrap_or_default();
        head.char_indices().rev().nth(chars.saturating_sub(1)).map_or(0, |(at, _)| at)
    };
    let from = back(start, BEFORE);
    match line.get(from..).unwrap_or_default().char_indices().nth(LONGEST_LINE) {
        Some((at, _)) => (from, from + at),
        None => (back(line.len(), LONGEST_LINE), line.len()),
    }
}

/// The columns of `text` from `skip` on, `keep` of them; half a wide character is a space.
fn cut(text: &str, skip: usize, keep: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        let next = column + c.width().unwrap_or(0);
        if column >= skip && next <= skip + keep {
            out.push(c);
        } else if next > skip && column < skip + keep {
            out.extend(std::iter::repeat_n(' ', next.min(skip + keep) - column.max(skip)));
        }
        column = next;
    }
    out
}

/// `text` with everything that a terminal would obey instead of showing it written as `\u{1b}`: control characters but the end of a
/// line, and those that turn the direction of what follows.
pub fn visible(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c != '\n' && (c.is_control() || is_direction(c));
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether the character turns the direction of text.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` as a terminal may show it: tabs as spaces, other characters that it would obey replaced.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str(TAB),
            c if c.is_control() || is_direction(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// `line` with what may be secret of the addresses in it hidden behind as many stars: user name and password, and queries.
fn without_secrets(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(ends_address).unwrap_or(after.len());
        let (address, after) = after.split_at(end);
        let login = address.split(['/', '?', '#']).next().and_then(|host| host.rfind('@')).unwrap_or(0);
        let query = address.find('?').map_or(address.len(), |at| at + 1);
        for (at, c) in address.char_indices() {
            if at < login || at >= query { out.extend(std::iter::repeat_n('*', c.width().unwrap_or(0))) } else { out.push(c) }
        }
        rest = after;
    }
    out + rest
}

/// How many terminal columns `text` takes, character by character, so that the width of a whole is the sum of its parts.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(visible("plain\nü日"), "plain\nü日");
        assert_eq!(visible("\u{1b}[31mred\t\u{202e}x\u{7f}"), "\\u{1b}[31mred\\u{9}\\u{202e}x\\u{7f}");
        let diagnostic = Diagnostic::error("code", Span::new(4, 5), "`\u{1b}[31m`").with_hint("\u{9b}".to_owned());
        let text = render(&SourceFile::new("build.toml", "a = \u{202e}\"x\""), &[diagnostic]);
        assert_eq!(text.find(|c: char| c != '\n' && (c.is_control() || is_direction(c))), None, "{text:?}");
    }

    fn show(text: &str, from: &str, to: &str) -> String {
        let start = text.find(from).unwrap();
        let end = text[start..].find(to).unwrap() + start + to.len();
        render(&SourceFile::new("build.toml", text), &[Diagnostic::error("code", Span::new(start, end), "message")])
    }

    #[test]
    fn whole() {
        let text = "[torch]\n".repeat(9) + "srcs = [\"a.cpp\"]\n";
        let start = text.find("srcs").unwrap();
        let file = SourceFile::new("build.toml", text);
        let diagnostic = Diagnostic::error("unknown-key", Span::new(start, start + 4), "unknown key `srcs` in [torch]")
            .with_note("allowed here: `src`")
            .with_hint("did you mean `src`?".to_owned());
        let other = Diagnostic::warning("whole-file", None, "the file is odd");
        insta::assert_snapshot!(render(&file, &[diagnostic, other]), @r#"
        error[unknown-key]: unknown key `srcs` in [torch]
           --> build.toml:10:1
           |
        10 | srcs = ["a.cpp"]
           | ^^^^
           = allowed here: `src`
        hint: did you mean `src`?

        warning[whole-file]: the file is odd
          --> build.toml:1:1
        "#);
        assert_eq!(render(&file, &[]), "");
    }

    #[test]
    fn carets_stand_below_what_they_mean() {
        insta::assert_snapshot!(show("\ta\t= \"x\"\n", "\"x", "\""), @r#"
        error[code]: message
          --> build.toml:1:6
          |
        1 |     a    = "x"
          |            ^
        "#);
        insta::assert_snapshot!(show("\"日本é\" = \"日x\"\r\n", "\"日x", "x\""), @r#"
        error[code]: message
          --> build.toml:1:9
          |
        1 | "日本é" = "日x"
          |           ^^^^^
        "#);
        insta::assert_snapshot!(show("\u{feff}a = 1", "a", "a"), @"
        error[code]: message
          --> build.toml:1:1
          |
        1 | a = 1
          | ^
        ");
        insta::assert_snapshot!(show("a = [\n 1,\n]", "[", "]"), @"
        error[code]: message
          --> build.toml:1:5
          |
        1 | a = [
          |     ^
        ");
        insta::assert_snapshot!(show("a = \u{1b}[31m1", "1m", "1"), @"
        error[code]: message
          --> build.toml:1:8
          |
        1 | a = �[31m1
          |        ^
        ");
    }

    #[test]
    fn what_may_be_secret_of_an_address_is_hidden() {
        insta::assert_snapshot!(show("a = { url = \"https://us:pass@host/simple?token=x\", b = 1 }", "b = ", "1"), @r#"
        error[code]: message
          --> build.toml:1:52
          |
        1 | a = { url = "https://*******@host/simple?*******", b = 1 }
          |                                                    ^^^^^
        "#);
        for line in ["", "no address", "a = \"https://host/a@b\" # https://host", "://", "x://日@h?日", "a ://@?"] {
            assert_eq!(width(&without_secrets(line)), width(line), "{line}");
        }
        assert_eq!(without_secrets("https://host/a@b 'git://u@h' c"), "https://host/a@b 'git://*@h' c");
    }

    #[test]
    fn a_place_after_the_end() {
        let file = SourceFile::new("build.toml", "a = ");
        insta::assert_snapshot!(render(&file, &[Diagnostic::note("syntax", Span::new(4, 4), "nothing there")]), @"
        note[syntax]: nothing there
          --> build.toml:1:5
          |
        1 | a =
          |     ^
        ");
    }
}
