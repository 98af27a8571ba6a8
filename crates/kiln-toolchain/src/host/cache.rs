//! What is known of compilers, from one run to the next. An entry holds for as long as every file it was made from is the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::HostCompiler;
use super::choice;
use super::probe::Probed;
use crate::file_state::FileState;
use crate::whole_file::write_whole;

/// Raised whenever an entry means something else.
const VERSION: u32 = 3;
/// Entries that are kept: compilers come and go with their PATH.
const KEPT: usize = 16;

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

/// What is known under `key`, when it still holds.
pub(super) fn load(cache: &Path, key: &str, search_path: &OsStr) -> Option<HostCompiler> {
    let entry = read(cache).remove(key)?;
    let found = entry.lookups.iter().all(|(name, path)| choice::on_path(name, search_path).as_ref() == Some(path));
    (found && entry.files.iter().all(FileState::is_unchanged)).then_some(entry.compiler)
}

/// Keeps what was found under `key` for as long as none of its files changes.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn save(cache: &Path, key: &str, probed: &Probed) -> std::io::Result<()> {
    FileState::outlast_clock_step(&probed.files);
    // A compiler that was replaced while it was asked: the answers are good enough for this once.
    if !probed.files.iter().all(FileState::is_unchanged) {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let known = probed.files.clone();
    let (compiler, lookups) = (probed.compiler.clone(), probed.lookups.clone());
    // Whoever else has asked a compiler meanwhile adds to the same file.
    let _alone = alone(cache)?;
    let mut entries = read(cache);
    entries.insert(key.to_owned(), Entry { made: now.as_secs(), compiler, files: known, lookups });
    while entries.len() > KEPT {
        let oldest = entries.iter().filter(|(known, _)| *known != key).min_by_key(|(_, entry)| entry.made).map(|(known, _)| known.clone());
        match oldest {
            Some(oldest) => entries.remove(&oldest),
            None => break,
        };
    }
    let content = serde_json::to_vec_pretty(&File { version: VERSION, entries }).unwrap_or_default();
    write_whole(cache, &content)
}

/// Keeps other processes from changing the cache file until the result is dropped.
fn alone(cache: &Path) -> std::io::Result<std::fs::File> {
    if let Some(dir) = cache.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let file = std::fs::File::options().write(true).create(true).truncate(false).open(cache.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// The entries of a cache file; none when it is missing, damaged or of another version.
fn read(cache: &Path) -> BTreeMap<String, Entry> {
    let file: Option<File> = std::fs::read(cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    file.filter(|file| file.version == VERSION).map(|file| file.entries).unwrap_or_default()
}
