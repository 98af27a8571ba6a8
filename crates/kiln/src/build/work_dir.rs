//! Where a build works.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kiln_graph::{LockedWorkDir, WorkDir, WorkDirError};

use super::Services;
use crate::build_error::BuildError;
use crate::disk;
use crate::event::Event;
use crate::out_dir;
use crate::project;

/// The project's `.kiln`, or, in a project that cannot be written to, a directory of the cache. Locked.
pub(super) fn open(root: &Path, services: &Services<'_>) -> Result<LockedWorkDir, BuildError> {
    let work_dir = find(root, services)?;
    Ok(work_dir.lock(None, &services.interrupt, &mut |pid| (services.events)(&Event::Waiting { preparing: None, pid }))?)
}

fn find(root: &Path, services: &Services<'_>) -> Result<WorkDir, BuildError> {
    let inside = root.join(project::WORK);
    match WorkDir::open(&inside) {
        Ok(work_dir) => {
            ignore_in_git(&inside);
            Ok(work_dir)
        }
        Err(error) if is_refused(&error) => WorkDir::open(elsewhere(root, services)).map_err(|_| error.into()),
        Err(_) if fs::symlink_metadata(&inside).is_ok() && !inside.is_dir() => Err(BuildError::WorkDirTaken { path: inside }),
        Err(error) => Err(error.into()),
    }
}

/// Sees, without making it, that there is a work directory or that one could be made.
///
/// # Errors
/// Those of [`open`], but for its lock.
pub(super) fn would_open(root: &Path, services: &Services<'_>) -> Result<(), BuildError> {
    let inside = root.join(project::WORK);
    let is_new = fs::symlink_metadata(&inside).is_err();
    let elsewhere = elsewhere(root, services);
    let place = match (out_dir::can_make(&inside), out_dir::can_make(&elsewhere)) {
        (true, _) if is_new => inside,
        (false, true) if is_new => elsewhere,
        // What is there is not made, and what cannot be made is not made either.
        _ => find(root, services)?.path().to_owned(),
    };
    see_room(&place)
}

/// Bytes without which no step begins: its console output alone is a block of the file system.
const LEAST: u64 = 1 << 20;

/// Sees that the file system of `place`, which need not be there, is not full.
///
/// # Errors
/// [`WorkDirError::Io`], as when something is written there.
pub(crate) fn see_room(place: &Path) -> Result<(), BuildError> {
    let there = place.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    match disk::left(there) {
        Some(left) if left < LEAST => Err(WorkDirError::Io { path: place.to_owned(), source: io::ErrorKind::StorageFull.into() }.into()),
        _ => Ok(()),
    }
}

/// The directory of the cache that stands in for a project's work directory.
fn elsewhere(root: &Path, services: &Services<'_>) -> PathBuf {
    let digest = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    services.cache_dir.join("work").join(digest.get(..32).unwrap_or(&digest))
}

/// Whether nobody may write there: no fault of what stands in the place.
fn is_refused(error: &WorkDirError) -> bool {
    let WorkDirError::Io { source, .. } = error else { return false };
    matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Keeps git from offering the work directory for a commit. Not worth an error: the directory works without it.
fn ignore_in_git(work_dir: &Path) {
    let file = work_dir.join(".gitignore");
    if !file.exists() {
        let _unignored = fs::write(file, "*\n");
    }
}
