//! Puts a finished directory in the place of an old one, whole or not at all.
//!
//! A directory is made under a *staging name* beside its final place and moved there when it is complete:
//!
//! | state of the final place | how |
//! |---|---|
//! | nothing there | one rename |
//! | something there | `renameat2(RENAME_EXCHANGE)`: both names change hands in one step, then the old directory is removed |
//! | something there, and the file system cannot exchange | two renames; the names themselves are the journal (below) |
//!
//! Journal: the finished directory becomes `.kiln-tmp-new-NAME`, the old one `.kiln-tmp-old-NAME`, then the new one takes its
//! place. Whatever instant a process dies at, [`recover`] finds from the names alone which of the two is whole and finishes.
//!
//! A staging directory is locked (`flock`) for as long as its process lives, so that cleaning up after a killed build never takes
//! the directory of a running one. Readers (loaders, variant discovery) skip staging names: no variant name starts with a dot.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What every name that this module makes begins with.
pub const STAGING_PREFIX: &str = ".kiln-tmp-";
const JOURNAL_NEW: &str = ".kiln-tmp-new-";
const JOURNAL_OLD: &str = ".kiln-tmp-old-";

/// A directory could not be made, moved or removed.
#[derive(Debug, Error)]
#[error("failed to {what} `{}`", path.display())]
pub struct ReplaceError {
    /// The act that failed, as it fits after "failed to".
    pub what: &'static str,
    /// The file or directory it was tried on.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

impl ReplaceError {
    fn new(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self { what, path: path.to_owned(), source }
    }

    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        hint_of(&self.source)
    }
}

/// What the user can do about an error of the file system below the output directory, if anything.
pub(crate) fn hint_of(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some("make the output directory writable or choose another one with `--out`"),
        io::ErrorKind::ReadOnlyFilesystem => Some("the file system is read-only: choose another output directory with `--out`"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space or choose another output directory with `--out`")
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Some("a file stands where the output directory should be"),
        _ => None,
    }
}

/// Whether `name` is one of a directory that is being made or was left by a killed process, never a variant.
pub fn is_staging_name(name: &str) -> bool {
    name.starts_with(STAGING_PREFIX)
}

/// A directory under construction. Dropping it without [`Staging::commit`] removes it.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    name: String,
    dir: PathBuf,
    lock: File,
    committed: bool,
}

impl Staging {
    /// Makes an empty directory in `out` (which is made when missing) that is to become `out/name`.
    ///
    /// # Errors
    /// When `out` cannot be made or written to.
    pub fn new(out: &Path, name: &str) -> Result<Self, ReplaceError> {
        fs::create_dir_all(out).map_err(|e| ReplaceError::new("make the output directory", out, e))?;
        // A cleaner may take the directory between its making and its locking; then another one is made.
        for _ in 0..64 {
            let made = tempfile::Builder::new()
                .prefix(STAGING_PREFIX)
                .suffix(&format!("-{name}"))
                .permissions(fs::Permissions::from_mode(0o755))
                .tempdir_in(out)
                .map_err(|e| ReplaceError::new("make a directory in", out, e))?;
            let dir = made.keep();
            let Ok(lock) = File::open(&dir) else { continue };
            if lock.try_lock().is_err() || !dir.is_dir() {
                continue;
            }
            // The mode above passes through the umask.
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).map_err(|e| ReplaceError::new("set the mode of", &dir, e))?;
            return Ok(Self { out: out.to_owned(), name: name.to_owned(), dir, lock, committed: false });
        }
        Err(ReplaceError::new("keep a directory in", out, io::Error::other("another process keeps removing it")))
    }

    /// The directory to fill.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Moves the directory to its place and removes what was there before.
    ///
    /// # Errors
    /// When a rename fails; the old directory is then still in its place. Failing to remove the old directory after the exchange
    /// is no error: [`recover`] tries again later.
    pub fn commit(self) -> Result<(), ReplaceError> {
        self.commit_with(exchange)
    }

    fn commit_with(mut self, exchange: impl Fn(&Path, &Path) -> io::Result<()>) -> Result<(), ReplaceError> {
        let place = self.out.join(&self.name);
        let moved = match fs::symlink_metadata(&place) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::rename(&self.dir, &place).map_err(|e| ReplaceError::new("put in place", &place, e))
            }
            Err(e) => Err(ReplaceError::new("look at", &place, e)),
            Ok(_) => match exchange(&self.dir, &place) {
                Ok(()) => {
                    let _left_for_recover = remove_any(&self.dir);
                    Ok(())
                }
                Err(e) if cannot_exchange(&e) => self.journalled(&place),
                Err(e) => Err(ReplaceError::new("replace", &place, e)),
            },
        };
        self.committed = moved.is_ok();
        moved
    }

    /// The fallback: two renames whose names tell [`recover`] where a killed process stood.
    fn journalled(&mut self, place: &Path) -> Result<(), ReplaceError> {
        let new = self.out.join(format!("{JOURNAL_NEW}{}", self.name));
        let old = self.out.join(format!("{JOURNAL_OLD}{}", self.name));
        remove_any(&old).map_err(|e| ReplaceError::new("remove", &old, e))?;
        fs::rename(&self.dir, &new).map_err(|e| ReplaceError::new("prepare", &new, e))?;
        self.dir = new;
        fs::rename(place, &old).map_err(|e| ReplaceError::new("set aside", place, e))?;
        if let Err(e) = fs::rename(&self.dir, place) {
            // Back to where we started, so that the old directory stays visible.
            fs::rename(&old, place).map_err(|e| ReplaceError::new("restore", place, e))?;
            return Err(ReplaceError::new("put in place", place, e));
        }
        let _left_for_recover = remove_any(&old);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.committed {
            let _left_for_recover = remove_any(&self.dir);
        }
        // Explicit, because the lock must outlive the removal.
        let _closed_anyway = self.lock.unlock();
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the error says that this kernel or file system has no exchange at all.
fn cannot_exchange(error: &io::Error) -> bool {
    // EINVAL is how file systems without the flag answer; ENOSYS and EOPNOTSUPP come from old kernels and FUSE.
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Writes a file under a staging name in its own directory, with mode `0644`, and renames it over `path`.
pub(crate) fn write_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(STAGING_PREFIX).tempfile_in(dir)?;
    write(file.as_file_mut())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// Removes what a killed [`write_file`] left in `dir`. Failing to is no error: the next time may succeed.
pub(crate) fn remove_unfinished_files(dir: &Path) {
    for name in staging_names(dir).unwrap_or_default() {
        let _next_time = fs::remove_file(dir.join(name));
    }
}

/// What [`recover`] found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Names of directories that a killed process had moved away and that are in their place again, sorted.
    pub restored: Vec<String>,
    /// Names of leftovers that were removed, sorted.
    pub removed: Vec<String>,
    /// Leftovers that could not be removed, with the cause, sorted.
    pub stuck: Vec<(String, String)>,
}

/// Takes the directory `name` out of `out`: gone at once, however long its files take. What then cannot be removed is left to
/// [`recover`].
///
/// # Errors
/// When it cannot be moved.
pub fn remove(out: &Path, name: &str) -> Result<(), ReplaceError> {
    let (place, aside) = (out.join(name), out.join(format!("{STAGING_PREFIX}gone-{name}")));
    remove_any(&aside).map_err(|e| ReplaceError::new("remove", &aside, e))?;
    fs::rename(&place, &aside).map_err(|e| ReplaceError::new("remove", &place, e))?;
    let _left_for_recover = remove_any(&aside);
    Ok(())
}

/// Finishes or undoes what killed processes left in `out`, and removes their unfinished directories. Leaves those of running
/// processes alone. A missing `out` has nothing to recover.
///
/// # Errors
/// When `out` cannot be read or an interrupted replacement cannot be finished.
pub fn recover(out: &Path) -> Result<Recovered, ReplaceError> {
    let mut found = Recovered::default();
    let names = match staging_names(out) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        other => other.map_err(|e| ReplaceError::new("read", out, e))?,
    };
    // First the journal: a complete new directory goes into an empty place, else the old one goes back.
    for prefix in [JOURNAL_NEW, JOURNAL_OLD] {
        for name in &names {
            let Some(target) = name.strip_prefix(prefix) else { continue };
            let (from, place) = (out.join(name), out.join(target));
            let new = out.join(format!("{JOURNAL_NEW}{target}"));
            if target.is_empty() || fs::symlink_metadata(&place).is_ok() || in_use(&new) || fs::symlink_metadata(&from).is_err() {
                continue;
            }
            fs::rename(&from, &place).map_err(|e| ReplaceError::new("restore", &place, e))?;
            found.restored.push(target.to_owned());
        }
    }
    for name in names {
        let path = out.join(&name);
        if fs::symlink_metadata(&path).is_err() || in_use(&path) {
            continue;
        }
        match remove_any(&path) {
            Ok(()) => found.removed.push(name),
            Err(e) => found.stuck.push((name, e.to_string())),
        }
    }
    Ok(found)
}

/// The staging names in `out`, sorted. Names that are not UTF-8 are none of ours.
fn staging_names(out: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        if let Ok(name) = entry?.file_name().into_string().map_err(|_: OsString| ())
            && is_staging_name(&name)
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a running process holds the lock of this staging directory.
fn in_use(path: &Path) -> bool {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    is_dir && File::open(path).is_ok_and(|dir| matches!(dir.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// Removes a directory with all in it, a file or a link. Nothing there is fine.
fn remove_any(path: &Path) -> io::Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(out: &Path, name: &str, text: &str) -> Staging {
        let staging = Staging::new(out, name).unwrap();
        fs::write(staging.path().join("file"), text).unwrap();
        staging
    }

    fn content(out: &Path, name: &str) -> String {
        fs::read_to_string(out.join(name).join("file")).unwrap()
    }

    fn names(out: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(out).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn no_exchange(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(22))
    }

    #[test]
    fn first_and_second_time() {
        let tmp = tempfile::tempdir().unwrap();
        let out = tmp.path().join("deep/build");
        staged(&out, "v", "one").commit().unwrap();
        staged(&out, "v", "two").commit().unwrap();
        assert_eq!((content(&out, "v").as_str(), names(&out)), ("two", vec!["v".to_owned()]));
        assert_eq!(fs::metadata(out.join("v")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn without_exchange_the_journal_does_it() {
        let tmp = tempfile::tempdir().unwrap();
        staged(tmp.path(), "v", "one").commit().unwrap();
        staged(tmp.path(), "v", "two").commit_with(no_exchange).unwrap();
        assert_eq!((content(tmp.path(), "v").as_str(), names(tmp.path())), ("two", vec!["v".to_owned()]));
    }

    #[test]
    fn a_dropped_staging_leaves_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        staged(tmp.path(), "v", "one").commit().unwrap();
        drop(staged(tmp.path(), "v", "two"));
        assert_eq!((content(tmp.path(), "v").as_str(), names(tmp.path())), ("one", vec!["v".to_owned()]));
    }

    #[test]
    fn a_link_or_file_in_the_way_is_replaced_not_followed() {
        let tmp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), tmp.path().join("v")).unwrap();
        fs::write(tmp.path().join("w"), "a file").unwrap();
        staged(tmp.path(), "v", "new").commit().unwrap();
        staged(tmp.path(), "w", "new").commit_with(no_exchange).unwrap();
        assert_eq!((content(tmp.path(), "v").as_str(), content(tmp.path(), "w").as_str()), ("new", "new"));
        assert!(elsewhere.path().join("kept").exists());
        assert_eq!(names(tmp.path()), ["v", "w"]);
    }

    /// Every state in which a process can die between two system calls of either way, and what must come of it.
    #[test]
    fn every_interrupted_state_is_recovered() {
        for (dirs, expected, restored) in [
            (vec![("v", "old"), (".kiln-tmp-aaaaaa-v", "half")], "old", false),
            (vec![("v", "new"), (".kiln-tmp-aaaaaa-v", "old")], "new", false),
            (vec![("v", "old"), (".kiln-tmp-new-v", "new")], "old", false),
            (vec![(".kiln-tmp-old-v", "old"), (".kiln-tmp-new-v", "new")], "new", true),
            (vec![("v", "new"), (".kiln-tmp-old-v", "old")], "new", false),
            (vec![(".kiln-tmp-old-v", "old")], "old", true),
        ] {
            let tmp = tempfile::tempdir().unwrap();
            for (name, text) in &dirs {
                fs::create_dir(tmp.path().join(name)).unwrap();
                fs::write(tmp.path().join(name).join("file"), text).unwrap();
            }
            let found = recover(tmp.path()).unwrap();
            assert_eq!((content(tmp.path(), "v").as_str(), names(tmp.path())), (expected, vec!["v".to_owned()]), "{dirs:?}");
            assert_eq!(!found.restored.is_empty(), restored, "{dirs:?}");
            assert_eq!(found.stuck, []);
        }
    }

    #[test]
    fn running_processes_keep_their_directories() {
        let tmp = tempfile::tempdir().unwrap();
        let staging = staged(tmp.path(), "v", "mine");
        assert_eq!(recover(tmp.path()).unwrap(), Recovered::default());
        staging.commit().unwrap();
        assert_eq!(content(tmp.path(), "v"), "mine");
        assert_eq!(recover(&tmp.path().join("missing")).unwrap(), Recovered::default());
    }

    #[test]
    fn an_output_directory_that_cannot_be_made_is_explained() {
        let tmp = tempfile::tempdir().unwrap();
        fs::write(tmp.path().join("build"), "a file").unwrap();
        let error = Staging::new(&tmp.path().join("build"), "v").unwrap_err();
        assert!(error.to_string().starts_with("failed to make the output directory `"), "{error}");
        assert_eq!(error.hint(), Some("a file stands where the output directory should be"));
    }
}
