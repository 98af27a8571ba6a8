//! What the text of a file that a compiler read says beyond its depfile: names that it looks for, and words that it mentions.
//!
//! A depfile lists what was found. What was looked for in vain, or only asked for (`__has_include`), and what the assembler reads
//! (`.incbin`) is in nobody's list, so it is taken from the text. Nothing here follows conditions or long comments: a name too many
//! costs a look at a directory, a word too many costs a shared result; neither can give a wrong one.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

/// How a file asks for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum How {
    /// `#include "name"`: beside the file first.
    Quoted,
    /// `#include <name>`.
    Angled,
    /// `__has_include("name")`.
    ProbeQuoted,
    /// `__has_include(<name>)`.
    ProbeAngled,
    /// `.incbin "name"` or `#embed`: below the working directory first; in no depfile, or not in everybody's.
    Bytes,
}

/// A name that a file asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ask {
    pub(crate) how: How,
    pub(crate) name: Vec<u8>,
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Names that it asks for, in order.
    pub(crate) asks: Vec<Ask>,
    /// Whether it asks for a name that only the compiler knows: `__has_include(MACRO)`.
    pub(crate) asks_in_riddles: bool,
    /// Whether it has the assembler read a file whose name only the compiler knows.
    pub(crate) reads_in_riddles: bool,
    /// For each of the words that were looked for: whether it occurs.
    pub(crate) words: Vec<bool>,
}

/// Reads a text, looking for `words`.
pub(crate) fn scan(text: &[u8], words: &[Arc<str>]) -> Scan {
    let text = joined(text);
    let mut scan = Scan { words: words.iter().map(|word| mentions(&text, word.as_bytes())).collect(), ..Scan::default() };
    directives(&text, &mut scan);
    probes(&text, &mut scan);
    incbins(&text, &mut scan);
    scan
}

/// Whether `text` has the identifier `word`, or a token from which `##` could make it: a beginning or end of at least half of it.
pub(crate) fn mentions(text: &[u8], word: &[u8]) -> bool {
    if word.is_empty() {
        return false;
    }
    let text = joined(text);
    let (head, tail) = word.split_at(word.len().div_ceil(2));
    let starts = |at: usize| at.checked_sub(1).and_then(|before| text.get(before)).is_none_or(|byte| !is_word(*byte));
    // `head…` up to the end of the token.
    let begins = memmem::find_iter(&text, head).any(|at| {
        let token = text.get(at..).map(word_at).unwrap_or_default();
        starts(at) && word.starts_with(token) && !in_comment(&text, at)
    });
    let tail = if tail.is_empty() { word } else { tail };
    begins
        || memmem::find_iter(&text, tail).any(|at| {
            let end = at + tail.len();
            let start = text.get(..at).map_or(0, |before| before.iter().rposition(|byte| !is_word(*byte)).map_or(0, |last| last + 1));
            text.get(end).is_none_or(|byte| !is_word(*byte))
                && text.get(start..end).is_some_and(|token| word.ends_with(token))
                && !in_comment(&text, at)
        })
}

/// Whether what stands at `at` is sure to be in a comment that begins on its line, as in `#endif /* NAME */`. Where something on the
/// line before it may be text in quotes, nothing is sure.
fn in_comment(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(start) = memmem::find(line, b"/*") else { return false };
    let (code, comment) = line.split_at(start);
    memchr::memchr2(b'"', b'\'', code).is_none() && memmem::find(comment.get(2..).unwrap_or_default(), b"*/").is_none()
}

/// The text with lines that end in a backslash joined to the next ones, as a compiler sees it.
fn joined(text: &[u8]) -> Cow<'_, [u8]> {
    let splice = |at: usize| match text.get(at + 1..) {
        Some([b'\n', ..]) => Some(2),
        Some([b'\r', b'\n', ..]) => Some(3),
        _ => None,
    };
    let mut out = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\\', text) {
        if let Some(len) = splice(at) {
            out.extend_from_slice(text.get(from..at).unwrap_or_default());
            from = at + len;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// `#include`, `#include_next`, `#import` and `#embed`.
fn directives(text: &[u8], scan: &mut Scan) {
    for at in memchr::memchr_iter(b'#', text) {
        let rest = blank(text.get(at + 1..).unwrap_or_default());
        let word = word_at(rest);
        let operand = blank(rest.get(word.len()..).unwrap_or_default());
        match word {
            b"include" | b"include_next" | b"import" => {
                if let Some((how, name)) = literal(operand, How::Quoted, How::Angled) {
                    scan.asks.push(Ask { how, name: name.to_vec() });
                }
            }
            b"embed" => match literal(operand, How::Bytes, How::Bytes) {
                Some((how, name)) => scan.asks.push(Ask { how, name: name.to_vec() }),
                None => scan.reads_in_riddles |= !operand.is_empty(),
            },
            _ => {}
        }
    }
}

/// `__has_include`, `__has_include_next` and `__has_embed`.
fn probes(text: &[u8], scan: &mut Scan) {
    for at in memmem::find_iter(text, b"__has_") {
        let rest = text.get(at..).unwrap_or_default();
        let word = word_at(rest);
        if !matches!(word, b"__has_include" | b"__has_include_next" | b"__has_embed") {
            continue;
        }
        let Some(operand) = blank(rest.get(word.len()..).unwrap_or_default()).strip_prefix(b"(") else { continue };
        match literal(blank(operand), How::ProbeQuoted, How::ProbeAngled) {
            Some((how, name)) => scan.asks.push(Ask { how, name: name.to_vec() }),
            // `#define __has_include(x) 0` for old compilers asks for nothing.
            None => scan.asks_in_riddles |= !text.get(..at).unwrap_or_default().trim_ascii_end().ends_with(b"define"),
        }
    }
}

/// `.incbin` of assembly, alone or in a string of C.
fn incbins(text: &[u8], scan: &mut Scan) {
    for at in memmem::find_iter(text, b".incbin") {
        let rest = text.get(at + b".incbin".len()..).unwrap_or_default();
        if rest.first().is_some_and(|byte| is_word(*byte)) {
            continue;
        }
        let operand = rest.trim_ascii_start();
        let (open, close): (&[u8], &[u8]) = if operand.starts_with(b"\\\"") { (b"\\\"", b"\\\"") } else { (b"\"", b"\"") };
        let name = operand.strip_prefix(open).and_then(|name| name.get(..memmem::find(name, close)?));
        match name {
            // A quote that ends the string of C instead of beginning the name: the name comes from a macro.
            Some(name) if !name.is_empty() && name.iter().all(|byte| !matches!(byte, b'\n' | b'\\' | b'"')) => {
                scan.asks.push(Ask { how: How::Bytes, name: name.to_vec() });
            }
            _ => scan.reads_in_riddles = true,
        }
    }
}

/// `"name"` or `<name>` at the start of `text`.
fn literal(text: &[u8], quoted: How, angled: How) -> Option<(How, &[u8])> {
    let (how, close) = match text.first()? {
        b'"' => (quoted, b'"'),
        b'<' => (angled, b'>'),
        _ => return None,
    };
    let name = text.get(1..)?;
    let name = name.get(..memchr::memchr2(close, b'\n', name)?)?;
    // Without its end on the same line it is no name.
    (text.get(name.len() + 1) == Some(&close) && !name.is_empty()).then_some((how, name))
}

/// `text` without blanks and comments at its start.
fn blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [b' ' | b'\t', rest @ ..] => rest,
            [b'/', b'*', rest @ ..] => memmem::find(rest, b"*/").and_then(|end| rest.get(end + 2..)).unwrap_or_default(),
            _ => return text,
        };
    }
}

/// The identifier at the start of `text`, perhaps empty.
fn word_at(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str) -> Vec<(How, String)> {
        scan(text.as_bytes(), &[]).asks.into_iter().map(|ask| (ask.how, String::from_utf8(ask.name).unwrap())).collect()
    }

    fn ask(how: How, name: &str) -> Vec<(How, String)> {
        vec![(how, name.to_owned())]
    }

    #[test]
    fn names_that_are_asked_for() {
        assert_eq!(asks("#include <a/b.h>\n"), ask(How::Angled, "a/b.h"));
        assert_eq!(asks("  # /* why */ include_next\t\"../b.h\" // x\n"), ask(How::Quoted, "../b.h"));
        assert_eq!(asks("#inc\\\nlude \\\r\n <c>"), ask(How::Angled, "c"));
        assert_eq!(asks("#include MACRO\n#includes <x>\n#include <open\n#include \"\"\n#pragma once\n"), []);
        assert_eq!(asks("#if defined(X) && __has_include ( <x y.h> )"), ask(How::ProbeAngled, "x y.h"));
        assert_eq!(asks("#embed \"data.bin\" limit(3)"), ask(How::Bytes, "data.bin"));
        assert_eq!(asks(r#"asm(".incbin \"k.bin\"\n");"#), ask(How::Bytes, "k.bin"));
        assert_eq!(asks("x: .incbin \"k.bin\", 4\n"), ask(How::Bytes, "k.bin"));
    }

    #[test]
    fn riddles() {
        let riddles = |text: &str| {
            let scan = scan(text.as_bytes(), &[]);
            (scan.asks_in_riddles, scan.reads_in_riddles)
        };
        assert_eq!(riddles("#ifdef __has_include\n#if __has_include(<x>)"), (false, false));
        assert_eq!(riddles("# define __has_include(x) 0"), (false, false));
        assert_eq!(riddles("#define HAS(x) __has_include(x)"), (true, false));
        assert_eq!(riddles(r#"asm(".incbin \"" FILE "\"");"#), (false, true));
        assert_eq!(riddles("#embed FILE\n"), (false, true));
    }

    #[test]
    fn words_in_a_comment_at_the_end_of_a_line_are_none() {
        let has = |text: &str| mentions(text.as_bytes(), b"A_LONG_NAME");
        assert!(!has("#endif /* A_LONG_NAME */\n") && !has("x /* A_LONG_ */\n"));
        assert!(has("/* a */ A_LONG_NAME") && has("\"/*\" A_LONG_NAME") && has("'\"' /* A_LONG_NAME */") && has("/* a\n b */ A_LONG_NAME"));
    }

    #[test]
    fn words_and_what_could_become_one() {
        let has = |text: &str| mentions(text.as_bytes(), b"EXTENSION_NAME");
        assert!(has("x EXTENSION_NAME y") && has("EXTENSION_NAME") && has("EXTEN\\\nSION_NAME"));
        assert!(!has("MY_EXTENSION_NAME") && !has("EXTENSION_NAMES") && !has("EXT NAME"));
        assert!(has("EXTENSION_ ## NAME") && has("a(EXT, ENSION_NAME)"), "glued of two");
        assert!(!has("EXT ## NAME"));
        assert!(mentions(b"a", b"a") && !mentions(b"b", b"a") && !mentions(b"a", b""));
    }
}
