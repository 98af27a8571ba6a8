//! `kiln.lock` on disk: reading it, and changing it whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kiln_format::lock::{self, Lock};
use kiln_format::{SourceFile, render};
use thiserror::Error;

use crate::small_file;

/// A lock file could not be read or changed.
#[derive(Debug, Error)]
pub enum LockFileError {
    /// The file could not be read or written.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is no lock file that this Kiln understands. Holds the whole message, pointing into the file.
    #[error("`{}` cannot be used:\n{}", path.display(), shown.trim_end())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, for people.
        shown: String,
    },
}

/// Reads a lock file; an empty lock where there is none.
///
/// # Errors
/// When the file cannot be read or is malformed.
pub fn read(path: &Path) -> Result<Lock, LockFileError> {
    let text = match small_file::read_text(path) {
        Ok(text) => text,
        // A link that leads nowhere is there.
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => return Ok(Lock::default()),
        Err(source) => return Err(LockFileError::Io { what: "read", path: path.to_owned(), source }),
    };
    Lock::parse(&text).map_err(|fault| {
        let shown = render(&SourceFile::new(path.display().to_string(), text.as_str()), &[fault]);
        LockFileError::Malformed { path: path.to_owned(), shown }
    })
}

/// Changes a lock file: reads it, lets `change` work on it, and puts the result in its place if it differs. Processes that do this at
/// the same time come one after the other; `guard` is the file that they lock for it, which stays. Says whether anything changed.
///
/// # Errors
/// When a file cannot be read or written, or the lock file is malformed. The file is then what it was.
pub fn edit(path: &Path, guard: &Path, change: impl FnOnce(&mut Lock)) -> Result<bool, LockFileError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| LockFileError::Io { what, path, source }
    };
    if let Some(dir) = guard.parent() {
        fs::create_dir_all(dir).map_err(failed("make", dir))?;
    }
    let guard_file = File::options().write(true).create(true).truncate(false).open(guard).map_err(failed("open", guard))?;
    guard_file.lock().map_err(failed("lock", guard))?;
    let before = read(path)?;
    let mut after = before.clone();
    change(&mut after);
    if before == after {
        return Ok(false);
    }
    // Behind a link, so that the link stays one.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = place.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(failed("make", dir))?;
    let mode = fs::metadata(&place).map_or(0o644, |meta| meta.permissions().mode());
    let mut file = temporary(&place, dir).map_err(failed("write", path))?;
    // The one file here that nothing can make again: it must not come back empty after the machine has stopped.
    let written = file.write_all(after.render().as_bytes());
    let written = written.and_then(|()| file.as_file().set_permissions(Permissions::from_mode(mode)));
    written.and_then(|()| file.as_file().sync_all()).map_err(failed("write", path))?;
    file.persist(&place).map_err(|cause| failed("write", path)(cause.error))?;
    Ok(true)
}

/// The end of the names of files that are about to become a lock file.
const UNFINISHED: &str = ".unfinished";

/// A file that is to become `place`, locked while it is written. What a process left beside it that was killed goes.
fn temporary(place: &Path, dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let prefix = format!(".{}-", place.file_name().and_then(|name| name.to_str()).unwrap_or(lock::FILE_NAME));
    for entry in fs::read_dir(dir)?.flatten() {
        let is_one = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(UNFINISHED));
        let is_left =
            || entry.file_type().is_ok_and(|kind| kind.is_file()) && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_one && is_left() {
            let _gone_already: io::Result<()> = fs::remove_file(entry.path());
        }
    }
    let file = tempfile::Builder::new().prefix(&prefix).suffix(UNFINISHED).tempfile_in(dir)?;
    file.as_file().lock()?;
    Ok(file)
}

#[cfg(test)]
pub(crate) mod testing {
    use kiln_format::Version;
    use kiln_format::lock::LockedTorch;

    /// A release as a lock pins it.
    pub(crate) fn locked_torch(version: &str) -> LockedTorch {
        LockedTorch {
            version: Version::parse(version).unwrap(),
            platform: "linux-x86_64".to_owned(),
            wheel: format!("torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"),
            size: 1,
            sha256: "a".repeat(64),
            record_sha256: "b".repeat(64),
            cuda: None,
            cxx: "gnu++20".to_owned(),
            license: "BSD-3-Clause".to_owned(),
            names_sha256: "c".repeat(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::locked_torch;
    use super::*;

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, guard) = (dir.path().join("p/kiln.lock"), dir.path().join("locks/x"));
        std::thread::scope(|scope| {
            for index in 0..8 {
                let (path, guard) = (&path, &guard);
                scope.spawn(move || assert!(edit(path, guard, |lock| lock.add(locked_torch(&format!("2.{index}.0")))).unwrap()));
            }
        });
        assert_eq!(read(&path).unwrap().torch().len(), 8);
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(!edit(&path, &guard, |lock| lock.add(locked_torch("2.3.0"))).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn a_file_that_is_not_understood_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, guard) = (dir.path().join("kiln.lock"), dir.path().join("guard"));
        fs::write(&path, "version = 7\n").unwrap();
        let error = edit(&path, &guard, |lock| lock.add(locked_torch("2.3.0"))).unwrap_err().to_string();
        assert!(error.contains("reads `kiln.lock` files of version 1 only"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "version = 7\n");
    }

    #[test]
    fn what_a_killed_process_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, guard) = (dir.path().join("kiln.lock"), dir.path().join("guards/x"));
        let (left, busy, other) = (".kiln.lock-left.unfinished", ".kiln.lock-busy.unfinished", ".kiln.lock-of-a-user");
        for name in [left, busy, other] {
            fs::write(dir.path().join(name), "version").unwrap();
        }
        let writing = File::open(dir.path().join(busy)).unwrap();
        writing.lock().unwrap();
        assert!(edit(&path, &guard, |lock| lock.add(locked_torch("2.3.0"))).unwrap());
        let mut names: Vec<String> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [busy, other, "guards", "kiln.lock"]);
    }

    #[test]
    fn a_link_stays_one_and_one_to_nowhere_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (path, guard, target) = (dir.path().join("kiln.lock"), dir.path().join("guards/x"), dir.path().join("elsewhere"));
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let add = || edit(&path, &guard, |lock| lock.add(locked_torch("2.3.0")));
        assert!(matches!(add(), Err(LockFileError::Io { what: "read", .. })));
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink() && !target.exists());
        fs::write(&target, Lock::default().render()).unwrap();
        assert!(add().unwrap());
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink() && fs::read_to_string(&target).unwrap().contains("2.3.0"));
    }
}
