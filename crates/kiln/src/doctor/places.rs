//! The store of toolchains and the index that fills it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::{Examination, Item, Section, State};
use crate::build_error::{BuildError, Report};
use crate::disk;

/// Bytes that a build with several releases of torch takes in the store and in the work directory: below them it is worth a word.
const ROOM: u64 = 1 << 30;

/// Bytes without which nothing is written there.
const LEAST: u64 = 1 << 20;

/// The cache directory: where it is, whether it can be written to, whether locks work there, and how much room is left.
pub(super) fn store(cache_dir: Option<&Path>) -> Section {
    let item = match cache_dir {
        Some(cache_dir) => directory(cache_dir),
        None => Item {
            detail: Some(
                "none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set: each project keeps what it needs in `.kiln/cache`".to_owned(),
            ),
            install: Some("a directory for all projects can be given with `--cache-dir DIR`".to_owned()),
            ..Item::new(State::None, "directory")
        },
    };
    Section { key: "store", title: "Store".to_owned(), items: vec![item], looked: Vec::new() }
}

fn directory(cache_dir: &Path) -> Item {
    let mut item = Item { path: Some(cache_dir.to_owned()), ..Item::new(State::Taken, "directory") };
    let dir = existing(cache_dir);
    let mut details: Vec<String> = Vec::new();
    match locks(&dir) {
        Ok(true) => {}
        Ok(false) => {
            item.state = State::Unusable;
            details.push("file locks do not work there: processes would disturb one another".to_owned());
        }
        Err(cause) => {
            item.state = State::Unusable;
            details.push(format!("cannot write to `{}`: {}", dir.display(), io::Error::from(cause.kind())));
        }
    }
    match disk::left(&dir) {
        Some(room) if room < LEAST => {
            item.state = State::Unusable;
            details.push("the file system is full".to_owned());
        }
        Some(room) => details.push(format!("{} free{}", bytes(room), if room < ROOM { ", which is little" } else { "" })),
        None => {}
    }
    if !cache_dir.exists() {
        details.push("not made yet".to_owned());
    }
    item.detail = Some(details.join(", "));
    if item.state == State::Unusable {
        item.install = Some("another directory can be given with `--cache-dir DIR`".to_owned());
    }
    item
}

/// The directory, or the nearest one above it that is there.
pub(super) fn existing(dir: &Path) -> PathBuf {
    dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Whether a second holder of a lock is refused, tried with a file that is removed again.
fn locks(dir: &Path) -> io::Result<bool> {
    let file = tempfile::Builder::new().prefix(".kiln-doctor-").tempfile_in(dir)?;
    let second = File::open(file.path())?;
    match file.as_file().try_lock() {
        Ok(()) => Ok(matches!(second.try_lock(), Err(TryLockError::WouldBlock))),
        Err(_) => Ok(false),
    }
}

/// A number of bytes for people.
fn bytes(count: u64) -> String {
    let gib = count / (1 << 20) * 10 / (1 << 10);
    if gib >= 10 { format!("{}.{} GiB", gib / 10, gib % 10) } else { format!("{} MiB", count / (1 << 20)) }
}

/// The index: its address, who named it, whether it answers.
pub(super) fn index(examination: &Examination<'_>) -> Section {
    let item = match (examination.index)() {
        Err(error) => {
            let report = Report::from(&BuildError::from(error));
            Item { detail: Some(report.message), install: report.hint, ..Item::new(State::None, "index") }
        }
        Ok(shown) => {
            let item = Item { origin: Some(shown.origin), ..Item::new(State::Taken, shown.address) };
            if examination.offline && !shown.is_local {
                Item { state: State::Skipped, detail: Some("not asked: `--offline`".to_owned()), ..item }
            } else {
                match (examination.ask_index)() {
                    Ok(()) => Item { detail: Some("answers".to_owned()), ..item },
                    Err(error) => {
                        let report = Report::from(&BuildError::from(error));
                        Item { state: State::Unusable, detail: Some(report.message), install: report.hint, ..item }
                    }
                }
            }
        }
    };
    Section { key: "index", title: "Package index".to_owned(), items: vec![item], looked: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_rounded_down() {
        assert_eq!(bytes(0), "0 MiB");
        assert_eq!(bytes((1 << 30) - 1), "1023 MiB");
        assert_eq!(bytes(1 << 30), "1.0 GiB");
        assert_eq!(bytes(u64::MAX), "17179869183.9 GiB");
    }

    #[test]
    fn locks_are_tried_for_real() {
        let dir = tempfile::tempdir().unwrap();
        assert!(locks(dir.path()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(existing(&dir.path().join("a/b")), dir.path());
    }
}
