//! What is known of compilers, from one run to the next.
//!
//! An entry holds for as long as size, times and inode of every file it was made from are the same. A file that was
//! changed just before the entry was made could change once more within the clock's step and look the same: such an
//! entry is not written before the step is over.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::choice;
use super::probe::Probed;
use super::{HostCompiler, HostError};

/// Raised whenever an entry means something else.
const VERSION: u32 = 1;
/// Entries that are kept: compilers come and go with their PATH.
const KEPT: usize = 16;
/// Longer than the step of any file system's clock that a compiler lies on.
const CLOCK_STEP: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    entries: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// When it was made, in seconds since 1970: the oldest are dropped.
    made: u64,
    compiler: HostCompiler,
    files: Vec<FileState>,
    /// Names, and where on PATH each was found.
    lookups: Vec<(String, PathBuf)>,
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    path: PathBuf,
    size: u64,
    mtime_ns: i128,
    ctime_ns: i128,
    inode: u64,
}

impl FileState {
    pub(super) fn now(path: &Path) -> std::io::Result<Self> {
        let data = std::fs::metadata(path)?;
        let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Ok(Self {
            path: path.to_owned(),
            size: data.len(),
            mtime_ns: time(data.mtime(), data.mtime_nsec()),
            ctime_ns: time(data.ctime(), data.ctime_nsec()),
            inode: data.ino(),
        })
    }
}

/// What is known under `key`, when it still holds.
pub(super) fn load(cache: &Path, key: &str, search_path: &OsStr) -> Option<HostCompiler> {
    let entry = read(cache).remove(key)?;
    let found = entry.lookups.iter().all(|(name, path)| choice::on_path(name, search_path).as_ref() == Some(path));
    (found && unchanged(&entry.files)).then_some(entry.compiler)
}

fn unchanged(files: &[FileState]) -> bool {
    files.iter().all(|known| FileState::now(&known.path).is_ok_and(|now| now == *known))
}

/// Keeps what was found under `key` for as long as none of its files changes.
pub(super) fn save(cache: &Path, key: &str, probed: &Probed) -> Result<(), HostError> {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let newest = probed.files.iter().map(|file| file.ctime_ns).max().unwrap_or_default();
    let age = i128::try_from(clock().as_nanos()).unwrap_or_default() - newest;
    if age < i128::try_from(CLOCK_STEP.as_nanos()).unwrap_or_default() {
        std::thread::sleep(CLOCK_STEP);
    }
    // A compiler that was replaced while it was asked: the answers are good enough for this once.
    if !unchanged(&probed.files) {
        return Ok(());
    }
    let (now, known) = (clock(), probed.files.clone());
    let (compiler, lookups) = (probed.compiler.clone(), probed.lookups.clone());
    let mut entries = read(cache);
    entries.insert(key.to_owned(), Entry { made: now.as_secs(), compiler, files: known, lookups });
    while entries.len() > KEPT {
        let oldest = entries.iter().filter(|(known, _)| *known != key).min_by_key(|(_, entry)| entry.made).map(|(known, _)| known.clone());
        match oldest {
            Some(oldest) => entries.remove(&oldest),
            None => break,
        };
    }
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(cache.parent().unwrap_or(Path::new(".")))?;
        file.write_all(&serde_json::to_vec_pretty(&File { version: VERSION, entries })?)?;
        file.persist(cache)?;
        Ok(())
    };
    write().map_err(HostError::io("write", cache))
}

/// The entries of a cache file; none when it is missing, damaged or of another version.
fn read(cache: &Path) -> BTreeMap<String, Entry> {
    let file: Option<File> = std::fs::read(cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    file.filter(|file| file.version == VERSION).map(|file| file.entries).unwrap_or_default()
}
