//! The floors that a user's cache holds, and when each was last used.
//!
//! A floor belongs to one compiler and one version of Kiln: updates of either leave old ones behind. A directory's time of change tells
//! when it was last used, for nothing in it is ever changed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Floor, WORK};

/// A floor in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFloor {
    /// Its key, which is its directory's name.
    pub key: String,
    /// Its directory.
    pub path: PathBuf,
    /// Size of its files in bytes.
    pub bytes: u64,
    /// When a build last used it, to within an hour.
    pub last_used: SystemTime,
}

/// How much older a note of the last use may be than the use: a build that has nothing to do writes nothing.
const PRECISION: Duration = Duration::from_secs(3600);

/// The floors in `store`, by key ascending; none when there is no store.
///
/// # Errors
/// When a directory cannot be read.
pub fn stored(store: &Path) -> io::Result<Vec<StoredFloor>> {
    let entries = match fs::read_dir(store) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut floors = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(key) = entry.file_name().into_string() else { continue };
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Another process removed it.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(cause),
        };
        if key == WORK || key.starts_with('.') || !meta.is_dir() {
            continue;
        }
        floors.push(StoredFloor { bytes: size(&entry.path())?, key, path: entry.path(), last_used: meta.modified()? });
    }
    floors.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(floors)
}

fn size(dir: &Path) -> io::Result<u64> {
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(cause) => return Err(cause),
    };
    let mut bytes = 0;
    for file in files {
        bytes += file?.metadata().map_or(0, |meta| meta.len());
    }
    Ok(bytes)
}

/// Removes the floors of `store` that were last used more than `unused` before `now`, but for the one called `keep`. A build that is
/// about to use one of them makes it again. Gives what was removed.
///
/// # Errors
/// When the store cannot be read; a floor that cannot be removed stays.
pub fn remove_unused(store: &Path, keep: &str, unused: Duration, now: SystemTime) -> io::Result<Vec<StoredFloor>> {
    let is_old = |floor: &StoredFloor| now.duration_since(floor.last_used).is_ok_and(|age| age > unused);
    let old = stored(store)?.into_iter().filter(|floor| floor.key != keep && is_old(floor));
    Ok(old.filter(|floor| remove(store, floor).is_ok()).collect())
}

/// Removes a floor: first from its place, so that no part of it is ever taken for the whole.
///
/// # Errors
/// When it cannot be moved or removed.
pub fn remove(store: &Path, floor: &StoredFloor) -> io::Result<()> {
    let grave = tempfile::Builder::new().prefix(".old-").tempdir_in(store)?;
    fs::rename(&floor.path, grave.path().join(&floor.key))?;
    grave.close()
}

impl Floor {
    /// Notes that the floor is used at `now`. What cannot be noted, as in a store that is only to be read, is left.
    pub fn note_use(&self, now: SystemTime) {
        let Ok(dir) = File::open(self.dir()) else { return };
        let noted = dir.metadata().and_then(|meta| meta.modified());
        if noted.is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age > PRECISION)) {
            let _unnoted = dir.set_modified(now);
        }
    }
}
