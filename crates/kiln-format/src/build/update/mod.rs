//! Bringing a file to the current form: the text is edited key by key, and what is not edited keeps its bytes.
//!
//! What has to change is said by the modules of the editions; this module carries it out, and refuses a result that it cannot
//! read back to the same model, that lost a comment, or that would change again.

mod document;
mod editor;
mod general;
mod versions;

use std::fmt;

pub(super) use self::editor::Editor;
pub(super) use self::general::{add as add_to_general, complete, name_edition};
pub(super) use self::versions::literal as version_literal;
use super::model::{Build, Framework};
use super::{EDITIONS, Edition, Parsed, edition_of, parse_in};

/// What an older file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The new text: the old one when there is nothing to change.
    pub text: String,
    /// What was changed, key by key, in the order in which it was done.
    pub changes: Vec<Change>,
}

/// What was done to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What kind of change.
    pub kind: ChangeKind,
    /// The key with its tables, `general.version`.
    pub key: String,
    /// From what, to what, or why.
    pub detail: String,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The key is new.
    Added,
    /// The key has another name or value.
    Changed,
    /// The key is gone.
    Dropped,
    /// Nothing was done, although `kernel-builder` will not read what stands there.
    Kept,
}

/// A file that cannot be brought to the current form.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpdateError {
    /// The file has errors, or is newer than what is known.
    #[error("the file has errors")]
    Refused(Box<Parsed>),
    /// The file names no license, and none was given.
    #[error("the file names no license")]
    NoLicense,
    /// The edited text does not say the same as the old one: a mistake of this program.
    #[error("the edited file would not say the same as the old one: {0}")]
    NotTheSame(String),
}

impl UpdateError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoLicense => Some("name it with `--license ID`, such as `--license Apache-2.0`"),
            Self::NotTheSame(_) => Some("this is a mistake of kiln: nothing was written; please report it with the file"),
            Self::Refused(_) => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            ChangeKind::Added => "added",
            ChangeKind::Changed => "changed",
            ChangeKind::Dropped => "dropped",
            ChangeKind::Kept => "kept",
        };
        write!(f, "{verb} `{}`: {}", self.key, self.detail)
    }
}

/// How a file of one edition becomes one of the next.
pub(super) type Step = fn(&mut Editor<'_>, &Build, Option<&str>) -> Result<(), UpdateError>;

/// Brings `text`, called `file_name` in messages, to the current form. `license` is used only where the file has none.
///
/// # Errors
/// When the file has errors, has no license and none is given, or when the result would not say the same.
pub fn update(file_name: &str, text: &str, license: Option<&str>) -> Result<Update, UpdateError> {
    update_in(EDITIONS, file_name, text, license)
}

/// As [`update`], where `editions` are all there are.
pub(super) fn update_in(editions: &[Edition], file_name: &str, text: &str, license: Option<&str>) -> Result<Update, UpdateError> {
    let old = model(editions, file_name, text)?;
    let updated = steps(editions, file_name, text, license).map_err(unread)?;
    let lost = |what: &str| Err(UpdateError::NotTheSame(what.to_owned()));
    let new = model(editions, file_name, &updated.text).map_err(unread)?;
    if !same(&old, &new) {
        return lost("another model is read from it");
    }
    if let Some(comment) = lost_comment(text, &updated.text) {
        return lost(&format!("it lacks the comment `{}`", comment.escape_debug()));
    }
    if steps(editions, file_name, &updated.text, license).map_err(unread)?.text != updated.text {
        return lost("it would change again");
    }
    Ok(updated)
}

/// An edited text that has errors, unlike the one that it was made from, is no fault of the user.
fn unread(error: UpdateError) -> UpdateError {
    match error {
        UpdateError::Refused(parsed) => {
            let first = parsed.errors().next().map(|error| error.message.clone()).unwrap_or_default();
            UpdateError::NotTheSame(first)
        }
        other => other,
    }
}

/// The edited text and how it came about, unchecked.
fn steps(editions: &[Edition], file_name: &str, text: &str, license: Option<&str>) -> Result<Update, UpdateError> {
    let mut text = text.to_owned();
    let mut changes = Vec::new();
    // Each step leads to a newer edition, so there are fewer of them than editions.
    for _ in editions {
        let Some(step) = edition_of(editions, &text).and_then(|number| step_from(editions, number)) else { break };
        let build = model(editions, file_name, &text)?;
        let mut editor = Editor::new(&text);
        step(&mut editor, &build, license)?;
        text = apply(editor, &mut changes)?;
    }
    let build = model(editions, file_name, &text)?;
    let mut editor = Editor::new(&text);
    versions::rewrite(&mut editor, &build);
    let text = apply(editor, &mut changes)?;
    Ok(Update { text, changes })
}

fn apply(editor: Editor<'_>, changes: &mut Vec<Change>) -> Result<String, UpdateError> {
    let (text, done) = editor.finish().map_err(|_| UpdateError::NotTheSame("two changes are in one place".to_owned()))?;
    changes.extend(done);
    Ok(text)
}

fn step_from(editions: &[Edition], number: u64) -> Option<Step> {
    editions.iter().flat_map(|edition| edition.steps).find(|(from, _)| *from == number).map(|(_, step)| *step)
}

fn model(editions: &[Edition], file_name: &str, text: &str) -> Result<Build, UpdateError> {
    let parsed = parse_in(editions, file_name, text);
    match &parsed.build {
        Some(build) => Ok(build.clone()),
        None => Err(UpdateError::Refused(Box::new(parsed))),
    }
}

/// Whether two files say the same, apart from a license that one of them lacks and from how the stable ABI is spelled.
fn same(old: &Build, new: &Build) -> bool {
    let stable_abi = |build: &Build| build.backends().map(|backend| build.stable_abi_for(backend).cloned()).collect::<Vec<_>>();
    if stable_abi(old) != stable_abi(new) {
        return false;
    }
    let mut old = old.clone();
    if old.general.license.is_none() {
        old.general.license.clone_from(&new.general.license);
    }
    if let (Framework::Torch(old), Framework::Torch(new)) = (&mut old.framework, &new.framework) {
        old.stable_abi.clone_from(&new.stable_abi);
    }
    old == *new
}

/// A comment that `old` has more often than `new`.
fn lost_comment<'a>(old: &'a str, new: &str) -> Option<&'a str> {
    let (old, new) = (document::Document::new(old), document::Document::new(new));
    let mut left: Vec<&str> = new.comments.iter().map(|span| new.slice(*span)).collect();
    left.sort_unstable();
    let mut wanted: Vec<&str> = old.comments.iter().map(|span| old.slice(*span)).collect();
    wanted.sort_unstable();
    let mut left = left.into_iter().peekable();
    wanted.into_iter().find(|comment| {
        while left.peek().is_some_and(|other| other < comment) {
            left.next();
        }
        left.next_if(|other| other == comment).is_none()
    })
}

/// `name` as a key of TOML: bare where possible.
pub(super) fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bare { name.to_owned() } else { string(name) }
}

/// `text` as a TOML string.
fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
