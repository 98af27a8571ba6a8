//! Changing single keys of a TOML text and leaving every other byte as it is.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Document, Pair};
use super::{Change, ChangeKind};
use crate::span::Span;

/// A text and what is to become of it.
pub(in crate::build) struct Editor<'a> {
    document: Document<'a>,
    /// Where each pair is, by its path.
    places: BTreeMap<Vec<String>, usize>,
    edits: Vec<Edit>,
    removed: BTreeSet<usize>,
    /// Pairs that leave with their comments, because a copy carries them.
    moved: BTreeSet<usize>,
    changes: Vec<Change>,
}

struct Edit {
    span: Span,
    text: String,
}

/// Two changes that want the same bytes: a mistake of an edition's module.
#[derive(Debug)]
pub(super) struct Overlap;

impl<'a> Editor<'a> {
    /// Nothing to change in `text` yet.
    pub(super) fn new(text: &'a str) -> Self {
        let document = Document::new(text);
        let places = document.pairs.iter().enumerate().map(|(index, pair)| (pair.path.clone(), index)).collect();
        Self { document, places, edits: Vec::new(), removed: BTreeSet::new(), moved: BTreeSet::new(), changes: Vec::new() }
    }

    fn index(&self, path: &[&str]) -> Option<usize> {
        self.places.get(&path.iter().map(|&key| key.to_owned()).collect::<Vec<_>>()).copied()
    }

    fn pair(&self, path: &[&str]) -> Option<&Pair> {
        self.index(path).and_then(|index| self.document.pairs.get(index))
    }

    /// Whether there is a value at `path`.
    pub(in crate::build) fn has(&self, path: &[&str]) -> bool {
        self.index(path).is_some()
    }

    /// The value at `path` as it is written; empty where there is none.
    pub(in crate::build) fn raw(&self, path: &[&str]) -> &'a str {
        self.pair(path).map_or("", |pair| self.document.slice(pair.value))
    }

    /// Says what happened to `key`.
    pub(in crate::build) fn note(&mut self, kind: ChangeKind, key: impl Into<String>, detail: impl Into<String>) {
        self.changes.push(Change { kind, key: key.into(), detail: detail.into() });
    }

    fn edit(&mut self, span: Span, text: impl Into<String>) {
        self.edits.push(Edit { span, text: text.into() });
    }

    /// Writes `text` in the place of `span`.
    pub(super) fn replace(&mut self, span: Span, text: &str) {
        self.edit(span, text);
    }

    /// Gives the value at `path` another text.
    pub(in crate::build) fn set(&mut self, path: &[&str], value: &str) {
        let Some(span) = self.pair(path).map(|pair| pair.value) else { return };
        let old = self.document.slice(span);
        if old != value {
            self.note(ChangeKind::Changed, path.join("."), format!("`{}` became `{value}`", one_line(old)));
            self.edit(span, value);
        }
    }

    /// Gives the key at `path` another name, which may be dotted, and says so when the whole path of the new one is given.
    pub(in crate::build) fn rename(&mut self, path: &[&str], key: &str, new_path: &str) {
        let Some(span) = self.pair(path).and_then(|pair| pair.keys.last().copied()) else { return };
        self.note(ChangeKind::Changed, path.join("."), format!("is now `{new_path}`"));
        self.edit(span, key);
    }

    /// Adds `key = value` behind the pair at `path`, in the same table and written in the same manner. Several of them stand
    /// in the order in which they were added.
    pub(in crate::build) fn add_after(&mut self, path: &[&str], key: &str, value: &str) {
        let Some(pair) = self.pair(path) else { return };
        let prefix =
            pair.keys.first().zip(pair.keys.last()).map_or("", |(first, last)| self.document.slice(Span::new(first.start, last.start)));
        let line = format!("{prefix}{key} = {value}");
        let (at, text) = self.behind(pair, &line);
        let table = path.get(..path.len().saturating_sub(1)).unwrap_or_default().join(".");
        self.note(ChangeKind::Added, format!("{table}.{key}"), format!("`{value}`"));
        self.edit(Span::new(at, at), text);
    }

    /// Where and how `line` is inserted behind `pair`.
    fn behind(&self, pair: &Pair, line: &str) -> (usize, String) {
        if pair.inside.is_some() {
            return (pair.value.end, format!(", {line}"));
        }
        let at = self.document.line_end(pair.value.end);
        let indent = self.document.slice(Span::new(self.document.line_start(pair.span().start), pair.span().start));
        (at, format!("{}{indent}{line}", self.document.newline(at)))
    }

    /// Adds `key = value` as the first one of the table at `path`.
    pub(in crate::build) fn add_first(&mut self, path: &[&str], key: &str, value: &str) {
        let line = format!("{key} = {value}");
        if let Some(header) = self.document.headers.iter().find(|header| header.path == path) {
            let at = self.document.line_end(header.span.end);
            let indent = self.document.slice(Span::new(self.document.line_start(header.span.start), header.span.start));
            let text = format!("{}{indent}{line}", self.document.newline(at));
            self.edit(Span::new(at, at), text);
        } else if let Some(pair) = self.document.pairs.iter().find(|pair| is_below(&pair.path, path)) {
            let at = pair.span().start;
            let own = pair.keys.get(path.len().saturating_sub(pair.scope)).map_or(at, |key| key.start);
            let prefix = self.document.slice(Span::new(at, own));
            let indent = self.document.slice(Span::new(self.document.line_start(at), at));
            let text = match pair.inside {
                Some(_) => format!("{prefix}{line}, "),
                None => format!("{prefix}{line}{}{indent}", self.document.newline(at)),
            };
            self.edit(Span::new(at, at), text);
        } else {
            return;
        }
        self.note(ChangeKind::Added, format!("{}.{key}", path.join(".")), format!("`{value}`"));
    }

    /// Removes the pair at `path`. Its comments stay.
    pub(in crate::build) fn remove(&mut self, path: &[&str], why: &str) {
        if let Some(index) = self.index(path) {
            self.removed.insert(index);
            self.note(ChangeKind::Dropped, path.join("."), why);
        }
    }

    /// Removes the elements at `leaves` of the list at `path`. Everything between them stays.
    pub(in crate::build) fn remove_elements(&mut self, path: &[&str], leaves: &[Span]) {
        let Some(list) = self.pair(path).map(|pair| pair.list.clone()) else { return };
        let gone: Vec<&str> = leaves.iter().map(|element| self.document.slice(*element)).collect();
        self.note(ChangeKind::Changed, path.join("."), format!("without `{}`", gone.join("`, `")));
        for element in list.elements.iter().filter(|element| leaves.contains(element)) {
            let next = list.elements.iter().map(|other| other.start).find(|&start| start >= element.end).unwrap_or(usize::MAX);
            let comma = list.commas.iter().find(|comma| comma.start >= element.end && comma.start < next);
            match comma {
                Some(comma) if comma.start == element.end => {
                    let rest = self.document.text.get(comma.end..).unwrap_or_default();
                    let space = rest.len() - rest.trim_start_matches([' ', '\t']).len();
                    let on_the_line = rest.get(space..).is_some_and(|rest| !rest.starts_with(['\r', '\n', '#']));
                    self.edit(Span::new(element.start, comma.end + if on_the_line { space } else { 0 }), "");
                }
                Some(comma) => {
                    self.edit(*element, "");
                    self.edit(*comma, "");
                }
                None => self.edit(*element, ""),
            }
        }
    }

    /// Gives a table at the top of the file another name, however it is written. To be called after pairs of it were removed.
    pub(in crate::build) fn rename_table(&mut self, old: &str, new: &str) {
        self.note(ChangeKind::Changed, old, format!("is now `{new}`"));
        let is_it = |path: &[String]| path.first().is_some_and(|key| key == old);
        let mut keys: Vec<Span> =
            self.document.headers.iter().filter(|header| is_it(&header.path)).filter_map(|header| header.keys.first().copied()).collect();
        let pairs = || self.document.pairs.iter().enumerate().filter(|(_, pair)| pair.scope == 0 && is_it(&pair.path));
        let left = || pairs().filter(|(index, _)| !self.removed.contains(index));
        if keys.is_empty() && left().next().is_none() {
            // Nothing but dotted keys made it up, and all of them go: the first makes room for the empty table.
            let Some((index, span, value)) = pairs().next().map(|(index, pair)| (index, pair.span(), pair.value)) else { return };
            let indent = self.document.slice(Span::new(self.document.line_start(span.start), span.start));
            let newline = self.document.newline(span.start);
            let comments: String = self.document.comments_in(value).iter().map(|comment| format!("{comment}{newline}{indent}")).collect();
            self.removed.remove(&index);
            self.edit(span, format!("{comments}{new} = {{}}"));
            return;
        }
        keys.extend(left().filter_map(|(_, pair)| pair.keys.first().copied()));
        for key in keys {
            self.edit(key, new);
        }
    }

    /// Adds the empty table `[name]` at the end of the file.
    pub(in crate::build) fn append_table(&mut self, name: &str) {
        let text = self.document.text;
        let newline = self.document.newline(text.len());
        let addition = if text.ends_with('\n') { format!("{newline}[{name}]{newline}") } else { format!("{newline}{newline}[{name}]") };
        self.edit(Span::new(text.len(), text.len()), addition);
        self.note(ChangeKind::Added, name, "an empty table");
    }

    /// Adds, behind the table at `path`, one called `name` with the same pairs: without `without`, and with the pairs of `with` in
    /// the place of those of the same key. Pairs of `moves` go over to it.
    pub(in crate::build) fn copy_table(&mut self, path: &[&str], name: &str, without: &[&str], with: &[(&str, &str)], moves: &[&str]) {
        let below = |pair: &Pair| pair.path.len() == path.len() + 1 && is_below(&pair.path, path);
        let own: Vec<usize> = self.document.pairs.iter().enumerate().filter(|(_, pair)| below(pair)).map(|(index, _)| index).collect();
        let pairs = || own.iter().filter_map(|&index| self.document.pairs.get(index).map(|pair| (index, pair)));
        let key = |pair: &Pair| pair.path.last().cloned().unwrap_or_default();
        let header = self.document.headers.iter().find(|header| header.path == path);
        let mut lines: Vec<(String, String)> = with.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut moved = Vec::new();
        for (index, pair) in pairs() {
            let key = key(pair);
            if without.contains(&key.as_str()) || with.iter().any(|(replaced, _)| *replaced == key) {
                continue;
            }
            let mut end = pair.value.end;
            if moves.contains(&key.as_str()) {
                moved.push(index);
                // In a table of its own lines, the comment behind the value goes with it.
                end = if header.is_some() { self.document.line_end(end) } else { end };
            }
            lines.push((key, self.document.slice(Span::new(pair.value.start, end)).to_owned()));
        }
        let kept = || pairs().filter(|(index, _)| !moved.contains(index));
        let Some((_, last)) = kept().next_back().or_else(|| pairs().next()) else { return };
        let (at, text) = match header {
            Some(header) => {
                let at = self.document.line_end(last.value.end);
                let newline = self.document.newline(at);
                let parent = header.keys.last().map_or("", |key| self.document.slice(Span::new(header.span.start, key.start)));
                let lines: String = lines.iter().map(|(key, value)| format!("{newline}{key} = {value}")).collect();
                (at, format!("{newline}{newline}{parent}{name}]{lines}"))
            }
            None => {
                let table = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ");
                // The pair that holds the whole table, or the last one of those that make it up.
                let first_of_them = pairs().next().map_or(last, |(_, pair)| pair);
                let holder = self.pair(path).unwrap_or(if self.is_interrupted(path, &own) { first_of_them } else { last });
                let first = holder.span().start;
                let own = path.len().saturating_sub(holder.scope + 1);
                let prefix = holder.keys.get(own).map_or("", |key| self.document.slice(Span::new(first, key.start)));
                self.behind(holder, &format!("{prefix}{name} = {{ {table} }}"))
            }
        };
        let whole_lines = header.is_some();
        for index in moved {
            self.removed.insert(index);
            if whole_lines {
                self.moved.insert(index);
            }
        }
        self.edit(Span::new(at, at), text);
        let parent = path.get(..path.len().saturating_sub(1)).unwrap_or_default().join(".");
        self.note(ChangeKind::Added, format!("{parent}.{name}"), format!("a copy of `{}`", path.join(".")));
    }

    /// Whether pairs of other tables stand among `own`, which are those of the table at `path`.
    fn is_interrupted(&self, path: &[&str], own: &[usize]) -> bool {
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return false };
        self.document.pairs.get(*first..*last).unwrap_or_default().iter().any(|pair| !is_below(&pair.path, path))
    }

    /// The new text and what was done.
    pub(super) fn finish(mut self) -> Result<(String, Vec<Change>), Overlap> {
        self.removals();
        // Insertions at one place keep the order in which they were asked for.
        self.edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut text = String::with_capacity(self.document.text.len() + 64);
        let mut done = 0;
        for edit in &self.edits {
            if edit.span.start < done {
                return Err(Overlap);
            }
            text.push_str(self.document.slice(Span::new(done, edit.span.start)));
            text.push_str(&edit.text);
            done = edit.span.end;
        }
        text.push_str(self.document.slice(Span::new(done, self.document.text.len())));
        // Where the last line went that had no end, the one before it has none now.
        if !self.document.text.ends_with('\n') && text.ends_with('\n') {
            text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
        }
        Ok((text, self.changes))
    }

    /// Turns removed pairs into edits.
    fn removals(&mut self) {
        let removed: Vec<usize> = self.removed.iter().copied().collect();
        let mut tables: BTreeSet<usize> = BTreeSet::new();
        for index in removed {
            let Some(pair) = self.document.pairs.get(index) else { continue };
            match pair.inside {
                Some(table) => drop(tables.insert(table)),
                None => self.remove_line(index),
            }
        }
        for table in tables {
            self.remove_inline(table);
        }
    }

    /// Removes a pair that has lines of its own.
    fn remove_line(&mut self, index: usize) {
        let Some(pair) = self.document.pairs.get(index) else { return };
        let start = pair.span().start;
        let end = self.document.line_end(pair.value.end);
        let comments = if self.moved.contains(&index) { Vec::new() } else { self.document.comments_in(Span::new(pair.value.start, end)) };
        let line = self.document.line_start(start);
        if !comments.is_empty() {
            let indent = self.document.slice(Span::new(line, start));
            let text = comments.join(&format!("{}{indent}", self.document.newline(end)));
            self.edit(Span::new(start, end), text);
            return;
        }
        let rest = self.document.text.get(end..).unwrap_or_default();
        let newline = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        self.edit(Span::new(line, end + newline), "");
    }

    /// Removes pairs of the inline table of the pair `table`. Comments among them move above the line where the table begins.
    fn remove_inline(&mut self, table: usize) {
        let members: Vec<usize> =
            self.document.pairs.iter().enumerate().filter(|(_, pair)| pair.inside == Some(table)).map(|(index, _)| index).collect();
        let place = |index: &usize| self.document.pairs.get(*index).map_or_else(Span::default, Pair::span);
        let gone = |index: &usize| self.removed.contains(index);
        let mut spans: Vec<Span> = Vec::new();
        let kept: Vec<usize> = members.iter().copied().filter(|index| !gone(index)).collect();
        let holder = self.document.pairs.get(table).map_or_else(Span::default, |pair| pair.value);
        match kept.first() {
            None => spans.push(Span::new(holder.start + 1, holder.end.saturating_sub(1))),
            Some(first) => {
                for (nth, index) in members.iter().enumerate().filter(|(_, index)| gone(index)) {
                    if index < first {
                        let next = members.get(nth + 1).map_or_else(|| place(index).end, |next| place(next).start);
                        spans.push(Span::new(place(index).start, next));
                    } else {
                        let previous =
                            nth.checked_sub(1).and_then(|nth| members.get(nth)).map_or_else(|| place(index).start, |p| place(p).end);
                        spans.push(Span::new(previous, place(index).end));
                    }
                }
            }
        }
        let comments: Vec<String> = spans.iter().flat_map(|span| self.document.comments_in(*span)).map(str::to_owned).collect();
        if !comments.is_empty() {
            let mut outer = table;
            while let Some(holder) = self.document.pairs.get(outer).and_then(|pair| pair.inside) {
                outer = holder;
            }
            let start = place(&outer).start;
            let line = self.document.line_start(start);
            let indent = self.document.slice(Span::new(line, start));
            let newline = self.document.newline(start);
            let text: String = comments.iter().map(|comment| format!("{indent}{comment}{newline}")).collect();
            self.edit(Span::new(line, line), text);
        }
        for span in spans {
            self.edit(span, "");
        }
    }
}

/// Whether `path` leads to something inside the table at `table`.
fn is_below(path: &[String], table: &[&str]) -> bool {
    path.len() > table.len() && path.iter().zip(table).all(|(key, of_table)| key == of_table)
}

/// The first line of a value, marked where there are more.
fn one_line(value: &str) -> String {
    let mut lines = value.lines();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { format!("{first} ..") } else { first.to_owned() }
}
