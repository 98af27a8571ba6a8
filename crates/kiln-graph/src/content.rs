//! What a path holds: its content by digest, and the stamp that may stand for an unchanged digest.
//!
//! A stamp is `(size, mtime, ctime, inode)`. Equal stamps mean equal content as long as the file had been left alone for
//! a while when it was hashed: a file system's clock moves in ticks, and a write in the tick of the last one, after the
//! hash was taken, would leave the stamp as it is. So a file that is as young as its own hash is hashed again.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::trace::Listing;

/// How long a file must have been left alone before its stamp stands for its content: a few ticks of a kernel's clock, in ns.
const SETTLED: i64 = 50_000_000;

/// The same on a file system that seems to keep whole seconds only (or two of them, as FAT does), in ns.
const SETTLED_COARSE: i64 = 2_500_000_000;

/// How often a file that changes while it is hashed is hashed again.
const ATTEMPTS: usize = 3;

/// A blake3 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

/// What changes whenever a file is written. Times in ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) inode: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let time = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            size: metadata.len(),
            mtime: time(metadata.mtime(), metadata.mtime_nsec()),
            ctime: time(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    /// Whether a file with this stamp had been left alone for long enough at `now`.
    fn is_settled(&self, now: i64) -> bool {
        let coarse = [self.mtime, self.ctime].iter().all(|time| time % 1_000_000_000 == 0);
        // Anybody may set an mtime, also to the future; only the kernel sets the ctime.
        let newest = if self.mtime <= now { self.ctime.max(self.mtime) } else { self.ctime };
        newest.saturating_add(if coarse { SETTLED_COARSE } else { SETTLED }) < now
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Absent,
    /// A directory or device: something whose content nobody compares.
    NotAFile,
    /// A file with this content.
    File(Digest),
    /// A file that nobody can say the content of: it changed while it was used, or cannot be read. Equals nothing.
    Unknown,
}

impl State {
    /// Whether both are known and the same.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        *self != Self::Unknown && self == other
    }
}

/// What was found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) state: State,
    /// The stamp that the file had before and after it was hashed.
    pub(crate) stamp: Option<Stamp>,
    /// Whether `stamp` may stand for the content later.
    pub(crate) settled: bool,
}

impl Content {
    pub(crate) const UNKNOWN: Self = Self { state: State::Unknown, stamp: None, settled: false };

    fn without_stamp(state: State) -> Self {
        Self { state, stamp: None, settled: false }
    }

    /// The stamp, if it may stand for the content later.
    pub(crate) fn settled_stamp(&self) -> Option<Stamp> {
        self.stamp.filter(|_| self.settled)
    }

    /// Whether the path still has what it had when this was taken, and had nothing else in between.
    pub(crate) fn is_untouched(&self, path: &Path) -> bool {
        match (self.state, stat(path)) {
            (State::Unknown, _) => false,
            (State::File(_), Stat::File(stamp)) => self.stamp == Some(stamp),
            (State::NotAFile, Stat::NotAFile) | (State::Absent, Stat::Absent) => true,
            _ => false,
        }
    }
}

/// What is at a path, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stat {
    Absent,
    NotAFile,
    File(Stamp),
    Unreadable,
}

/// Looks at a path, through symbolic links.
pub(crate) fn stat(path: &Path) -> Stat {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Stat::File(Stamp::of(&metadata)),
        Ok(_) => Stat::NotAFile,
        Err(error) if is_absence(&error) => Stat::Absent,
        Err(_) => Stat::Unreadable,
    }
}

/// Looks at a path and hashes it if it is a file.
pub(crate) fn read(path: &Path) -> Content {
    match stat(path) {
        Stat::Absent => Content::without_stamp(State::Absent),
        Stat::NotAFile => Content::without_stamp(State::NotAFile),
        Stat::Unreadable => Content::UNKNOWN,
        Stat::File(_) => (0..ATTEMPTS).find_map(|_| hash(path).ok().flatten()).unwrap_or(Content::UNKNOWN),
    }
}

/// Hashes a file; `None` if it changed meanwhile.
fn hash(path: &Path) -> io::Result<Option<Content>> {
    let now = now();
    let file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file)?;
    // The name may lead to another file by now.
    if stat(path) != Stat::File(stamp) {
        return Ok(None);
    }
    let digest = Digest(*hasher.finalize().as_bytes());
    Ok(Some(Content { state: State::File(digest), stamp: Some(stamp), settled: stamp.is_settled(now) }))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}

/// What one run has seen of the file system, so that a header of fifty units is looked at and hashed once.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// By the bytes of a path: to hash it part by part takes several times as long.
    seen: Mutex<HashMap<Box<[u8]>, Seen>>,
    listings: Mutex<HashMap<PathBuf, Arc<Listing>>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    stat: Stat,
    content: Option<Content>,
}

impl Files {
    /// What is at `path`, as it was when this run first looked.
    pub(crate) fn stat(&self, path: &Path) -> Stat {
        if let Some(seen) = self.get(path) {
            return seen.stat;
        }
        let stat = stat(path);
        self.put(path, Seen { stat, content: None });
        stat
    }

    /// What is in `path`, as it was when this run first hashed it.
    pub(crate) fn content(&self, path: &Path) -> Content {
        match self.get(path).and_then(|seen| seen.content) {
            Some(content) => content,
            None => self.read(path),
        }
    }

    /// The names in the directory `path`, as they were when this run first looked.
    pub(crate) fn listing(&self, path: &Path) -> Arc<Listing> {
        let known = self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        known.unwrap_or_else(|| {
            let listing = Arc::new(Listing::read(path));
            Arc::clone(self.listings.lock().unwrap_or_else(PoisonError::into_inner).entry(path.to_owned()).or_insert(listing))
        })
    }

    /// What is in `path` now.
    pub(crate) fn fresh(&self, path: &Path) -> Content {
        let known = self.get(path).and_then(|seen| seen.content);
        match known {
            Some(content) if content.settled && content.is_untouched(path) => content,
            _ => self.read(path),
        }
    }

    fn read(&self, path: &Path) -> Content {
        let content = read(path);
        let stat = match (content.state, content.stamp) {
            (State::Absent, _) => Stat::Absent,
            (State::NotAFile, _) => Stat::NotAFile,
            (State::File(_), Some(stamp)) => Stat::File(stamp),
            _ => Stat::Unreadable,
        };
        self.put(path, Seen { stat, content: Some(content) });
        content
    }

    fn get(&self, path: &Path) -> Option<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path.as_os_str().as_bytes()).copied()
    }

    fn put(&self, path: &Path, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path.as_os_str().as_bytes().into(), seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn stamp(mtime: i64, ctime: i64) -> Stamp {
        Stamp { size: 1, mtime, ctime, inode: 1 }
    }

    #[test]
    fn a_stamp_settles_by_its_newest_time() {
        let now = 100 * SECOND + 1;
        assert!(stamp(99 * SECOND + 1, 99 * SECOND + 1).is_settled(now));
        assert!(!stamp(now - 10_000_000, 99 * SECOND + 1).is_settled(now));
        assert!(!stamp(SECOND + 1, now - 10_000_000).is_settled(now), "an old mtime does not hide a new ctime");
        assert!(!stamp(99 * SECOND, 99 * SECOND).is_settled(now), "whole seconds need longer");
        assert!(stamp(97 * SECOND, 97 * SECOND).is_settled(now));
        assert!(stamp(200 * SECOND + 1, 99 * SECOND + 1).is_settled(now), "an mtime in the future does not count");
        assert!(!stamp(SECOND + 1, 200 * SECOND + 1).is_settled(now), "a ctime in the future does");
    }

    #[test]
    fn a_new_file_is_not_settled_and_its_content_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "one").unwrap();
        let content = read(&path);
        assert_eq!(content.state, State::File(Digest(*blake3::hash(b"one").as_bytes())));
        assert_eq!(content.settled_stamp(), None);
        assert!(content.is_untouched(&path));
        fs::write(&path, "two!").unwrap();
        assert!(!content.is_untouched(&path));
        assert!(!read(&path).state.matches(&content.state));
    }

    #[test]
    fn what_is_not_a_file_has_a_state() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        assert_eq!(read(dir.path()).state, State::NotAFile);
        assert_eq!(read(&gone).state, State::Absent);
        assert_eq!(read(Path::new("/dev/null")).state, State::NotAFile);
        fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(read(&dir.path().join("file/below")).state, State::Absent);
        assert!(read(&gone).is_untouched(&gone));
        assert!(read(dir.path()).is_untouched(dir.path()));
        assert!(!read(dir.path()).is_untouched(&gone));
        // A loop of links can be looked at by nobody.
        std::os::unix::fs::symlink("loop", dir.path().join("loop")).unwrap();
        let unknown = read(&dir.path().join("loop"));
        assert_eq!(unknown.state, State::Unknown);
        assert!(!unknown.state.matches(&unknown.state));
        assert!(!unknown.is_untouched(&dir.path().join("loop")));
    }

    #[test]
    fn a_run_remembers_what_it_saw_until_asked_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let files = Files::default();
        assert_eq!(files.stat(&path), Stat::Absent);
        fs::write(&path, "one").unwrap();
        assert_eq!(files.stat(&path), Stat::Absent);
        let one = files.content(&path);
        assert!(matches!(one.state, State::File(_)));
        fs::write(&path, "three").unwrap();
        assert_eq!(files.content(&path), one);
        assert!(!files.fresh(&path).state.matches(&one.state));
    }
}
