//! Where every key, value, comma and comment of a TOML text stands, so that single ones can be changed.
//!
//! Built from the parser's events for a text that was already parsed without error; texts that were not give a document
//! with holes, never a panic.

use std::borrow::Cow;

use toml_parser::parser::{Event, EventKind, parse_document};
use toml_parser::{ErrorSink, Source};

use crate::span::Span;

/// The path component below which the elements of a list are: no key of a `build.toml` is looked up there.
const ELEMENT: &str = "\0";

/// The places of a text.
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    /// `[a.b]` and `[[a.b]]`, in the order of the text.
    pub(super) headers: Vec<Header>,
    /// Every `key = value`, in the order of the text, those of inline tables included.
    pub(super) pairs: Vec<Pair>,
    /// Every comment with its `#`.
    pub(super) comments: Vec<Span>,
}

/// The header of a table.
pub(super) struct Header {
    pub(super) path: Vec<String>,
    /// The keys inside the brackets.
    pub(super) keys: Vec<Span>,
    /// From the first to the last bracket.
    pub(super) span: Span,
}

/// A `key = value`.
pub(super) struct Pair {
    /// The keys from the top of the file.
    pub(super) path: Vec<String>,
    /// How many keys of `path` come from the header or the tables around it; the others are its own, dotted.
    pub(super) scope: usize,
    /// Its own keys.
    pub(super) keys: Vec<Span>,
    /// Its value.
    pub(super) value: Span,
    /// The pair whose inline table it stands in.
    pub(super) inside: Option<usize>,
    /// The elements and commas of a list.
    pub(super) list: List,
}

/// What a list consists of.
#[derive(Clone, Default)]
pub(super) struct List {
    pub(super) elements: Vec<Span>,
    pub(super) commas: Vec<Span>,
}

impl Pair {
    /// From its first key to the end of its value.
    pub(super) fn span(&self) -> Span {
        Span::new(self.keys.first().map_or(self.value.start, |key| key.start), self.value.end)
    }
}

impl<'a> Document<'a> {
    /// The places of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        let source = Source::new(text);
        let tokens = source.lex().into_vec();
        let mut events: Vec<Event> = Vec::with_capacity(tokens.len());
        let mut ignored = ();
        let errors: &mut dyn ErrorSink = &mut ignored;
        parse_document(&tokens, &mut events, errors);
        let mut walk = Walk { source, events: &events, at: 0, document: Self::empty(text) };
        walk.block();
        walk.document
    }

    fn empty(text: &'a str) -> Self {
        Self { text, headers: Vec::new(), pairs: Vec::new(), comments: Vec::new() }
    }

    /// The text at `span`.
    pub(super) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The offset of the first byte of the line of `offset`.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        let start = self.text.get(..offset).and_then(|head| head.rfind('\n')).map_or(0, |newline| newline + 1);
        // A byte order mark belongs to no line.
        if start == 0 && self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { start }
    }

    /// The offset behind the last character of the line of `offset`, before its end of line.
    pub(super) fn line_end(&self, offset: usize) -> usize {
        let rest = self.text.get(offset..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let line = if rest.len() > line.len() { line.strip_suffix('\r').unwrap_or(line) } else { line };
        offset + line.len()
    }

    /// The end of line that the line of `offset` has; that of the first line, where it is the last one and has none.
    pub(super) fn newline(&self, offset: usize) -> &'static str {
        let of = |text: &str| text.find('\n').map(|at| if text.get(..at).is_some_and(|head| head.ends_with('\r')) { "\r\n" } else { "\n" });
        of(self.text.get(offset..).unwrap_or_default()).or_else(|| of(self.text)).unwrap_or("\n")
    }

    /// The text of the comments inside `span`.
    pub(super) fn comments_in(&self, span: Span) -> Vec<&'a str> {
        let from = self.comments.partition_point(|comment| comment.start < span.start);
        let inside = self.comments.get(from..).unwrap_or_default().iter().take_while(|comment| comment.end <= span.end);
        inside.map(|comment| self.slice(*comment)).collect()
    }
}

/// Walks the events of a text once.
struct Walk<'a, 'e> {
    source: Source<'a>,
    events: &'e [Event],
    at: usize,
    document: Document<'a>,
}

impl Walk<'_, '_> {
    fn peek(&self) -> Option<(EventKind, Span)> {
        self.events.get(self.at).map(|event| (event.kind(), Span::new(event.span().start(), event.span().end())))
    }

    /// The next event that is neither white space nor a comment.
    fn next(&mut self) -> Option<(EventKind, Span)> {
        while let Some((kind, span)) = self.peek() {
            match kind {
                EventKind::Comment => self.document.comments.push(span),
                EventKind::Whitespace | EventKind::Newline | EventKind::Error => {}
                _ => return Some((kind, span)),
            }
            self.at += 1;
        }
        None
    }

    fn block(&mut self) {
        let mut path: Vec<String> = Vec::new();
        while let Some((kind, span)) = self.next() {
            match kind {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => path = self.header(span, kind == EventKind::ArrayTableOpen),
                EventKind::SimpleKey => self.pair(&path, None),
                _ => self.at += 1,
            }
        }
    }

    fn header(&mut self, open: Span, list: bool) -> Vec<String> {
        self.at += 1;
        let (mut path, mut keys, mut end) = (Vec::new(), Vec::new(), open.end);
        while let Some((kind, span)) = self.next() {
            match kind {
                EventKind::SimpleKey => {
                    path.push(self.key());
                    keys.push(span);
                }
                EventKind::StdTableClose | EventKind::ArrayTableClose => {
                    end = span.end;
                    self.at += 1;
                    break;
                }
                EventKind::KeySep => {}
                _ => break,
            }
            self.at += 1;
        }
        if list {
            path.push(ELEMENT.to_owned());
        }
        self.document.headers.push(Header { path: path.clone(), keys, span: Span::new(open.start, end) });
        path
    }

    /// The key at hand as a name.
    fn key(&self) -> String {
        let mut name = Cow::Borrowed("");
        if let Some(raw) = self.events.get(self.at).and_then(|event| self.source.get(event)) {
            let mut ignored = ();
            raw.decode_key(&mut name, &mut ignored);
        }
        name.into_owned()
    }

    fn pair(&mut self, scope: &[String], inside: Option<usize>) {
        let (mut path, mut keys) = (scope.to_vec(), Vec::new());
        while let Some((kind, span)) = self.next() {
            match kind {
                EventKind::SimpleKey => {
                    path.push(self.key());
                    keys.push(span);
                }
                EventKind::KeySep => {}
                EventKind::KeyValSep => {
                    self.at += 1;
                    break;
                }
                _ => return,
            }
            self.at += 1;
        }
        let index = self.document.pairs.len();
        let value = Span::default();
        self.document.pairs.push(Pair { path: path.clone(), scope: scope.len(), keys, value, inside, list: List::default() });
        let (value, list) = self.value(&path, index);
        if let Some(pair) = self.document.pairs.get_mut(index) {
            (pair.value, pair.list) = (value, list);
        }
    }

    /// The value at hand, which belongs to the pair `owner`.
    fn value(&mut self, path: &[String], owner: usize) -> (Span, List) {
        let Some((kind, span)) = self.next() else { return (Span::default(), List::default()) };
        self.at += 1;
        let mut list = List::default();
        let end = match kind {
            EventKind::ArrayOpen => {
                let mut below = path.to_vec();
                below.push(ELEMENT.to_owned());
                loop {
                    let Some((kind, at)) = self.next() else { break span.end };
                    match kind {
                        EventKind::ArrayClose => {
                            self.at += 1;
                            break at.end;
                        }
                        EventKind::ValueSep => {
                            list.commas.push(at);
                            self.at += 1;
                        }
                        EventKind::Scalar | EventKind::ArrayOpen | EventKind::InlineTableOpen => {
                            let (element, _) = self.value(&below, owner);
                            list.elements.push(element);
                        }
                        _ => self.at += 1,
                    }
                }
            }
            EventKind::InlineTableOpen => loop {
                let Some((kind, at)) = self.next() else { break span.end };
                match kind {
                    EventKind::InlineTableClose => {
                        self.at += 1;
                        break at.end;
                    }
                    EventKind::SimpleKey => self.pair(path, Some(owner)),
                    _ => self.at += 1,
                }
            },
            _ => span.end,
        };
        (Span::new(span.start, end), list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> Vec<String> {
        let document = Document::new(text);
        let pair = |pair: &Pair| {
            let inside = if pair.inside.is_some() { " inside" } else { "" };
            format!("{} ({}){inside} = {}", pair.path.join(".").replace('\0', "[]"), pair.scope, document.slice(pair.value))
        };
        document.pairs.iter().map(pair).collect()
    }

    #[test]
    fn every_way_to_write_a_table() {
        let text = "\u{feff}a.\"b.c\" . d = 1 # x\r\n[t]\nk = { l = { m = [1, # y\n 2,] }, 'n'.o = \"}\" }\n[[u.v]]\nw = '''\n]'''\n[ x . y ]\nz=1";
        assert_eq!(
            described(text),
            [
                "a.b.c.d (0) = 1",
                "t.k (1) = { l = { m = [1, # y\n 2,] }, 'n'.o = \"}\" }",
                "t.k.l (2) inside = { m = [1, # y\n 2,] }",
                "t.k.l.m (3) inside = [1, # y\n 2,]",
                "t.k.n.o (2) inside = \"}\"",
                "u.v.[].w (3) = '''\n]'''",
                "x.y.z (2) = 1",
            ]
        );
        let document = Document::new(text);
        assert_eq!(document.comments.iter().map(|span| document.slice(*span)).collect::<Vec<_>>(), ["# x", "# y"]);
        assert_eq!(document.headers.iter().map(|header| document.slice(header.span)).collect::<Vec<_>>(), ["[t]", "[[u.v]]", "[ x . y ]"]);
        assert_eq!((document.pairs[3].list.elements.len(), document.pairs[3].list.commas.len()), (2, 2));
        assert_eq!((document.newline(5), document.newline(text.len())), ("\r\n", "\r\n"));
        assert_eq!((document.line_start(8), document.slice(Span::new(3, document.line_end(8)))), (3, "a.\"b.c\" . d = 1 # x"));
    }

    #[test]
    fn texts_that_are_no_toml_give_holes() {
        for text in ["a = ", "a", "[", "[a", "a = [", "a = {b", "a = {b = [1,", "= 1", "a = 1 b = 2", "{", "]]", "a.b.", "\"", "'''"] {
            Document::new(text);
        }
    }
}
