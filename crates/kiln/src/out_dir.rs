//! Where variants go: a directory that Kiln may fill, and that nothing reads as a source.

use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

use crate::build_error::BuildError;
use crate::package::METADATA;
use crate::project::WORK;

/// Refuses an output directory whose contents the next build would read: `package`, the project's Python package, and its work
/// directory. Links and `..` are looked through.
///
/// # Errors
/// [`BuildError::OutDirInside`].
pub fn check_place(out_dir: &Path, root: &Path, package: &Path) -> Result<(), BuildError> {
    let resolved = resolve(out_dir);
    let places = [(package.to_owned(), "the Python package, which is shipped"), (root.join(WORK), "the work directory, which is cleaned")];
    match places.into_iter().find(|(place, _)| resolved.starts_with(resolve(place))) {
        Some((_, place)) => Err(BuildError::OutDirInside { path: out_dir.to_owned(), place }),
        None => Ok(()),
    }
}

/// The place of an absolute path of which the last parts need not exist: links followed, no `.` and `..`.
pub fn resolve(path: &Path) -> PathBuf {
    let mut at = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            part => {
                at.push(part);
                at = at.canonicalize().unwrap_or(at);
            }
        }
    }
    at
}

/// Makes the output directory and sees that it can be written to and that the places of `variants` are free for directories, before
/// anything is compiled for it.
///
/// # Errors
/// When it cannot be made or written to, or something else than a directory stands in a variant's place.
pub fn make(out_dir: &Path, variants: impl IntoIterator<Item = String>) -> Result<(), BuildError> {
    if let Err(source) = fs::create_dir_all(out_dir) {
        let blocks = |place: &&Path| fs::symlink_metadata(place).is_ok() && !fs::metadata(place).is_ok_and(|meta| meta.is_dir());
        let path = out_dir.to_owned();
        return Err(match out_dir.ancestors().find(blocks) {
            Some(by) => BuildError::OutDirBlocked { path, by: by.to_owned() },
            None => BuildError::OutDir { what: "make", path, source },
        });
    }
    // Asked, not tried: a build with nothing to do leaves no trace in the directory, not even its time.
    access(out_dir, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| BuildError::OutDir {
        what: "write to",
        path: out_dir.to_owned(),
        source: errno.into(),
    })?;
    see_free(out_dir, variants)
}

/// Sees, without making it, that [`make`] would make the output directory.
///
/// # Errors
/// Those of [`make`].
pub fn would_make(out_dir: &Path, variants: impl IntoIterator<Item = String>) -> Result<(), BuildError> {
    if fs::symlink_metadata(out_dir).is_ok() || !can_make(out_dir) {
        // What is there is not made, and what cannot be made is not made either.
        return make(out_dir, variants);
    }
    Ok(())
}

/// Whether a directory that is not there could be made.
pub fn can_make(dir: &Path) -> bool {
    let above = dir.ancestors().find(|dir| fs::symlink_metadata(dir).is_ok());
    above.is_some_and(|above| above.is_dir() && access(above, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

fn see_free(out_dir: &Path, variants: impl IntoIterator<Item = String>) -> Result<(), BuildError> {
    for path in variants.into_iter().map(|name| out_dir.join(name)) {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if !meta.is_dir() {
            return Err(BuildError::PlaceTaken { path });
        }
        if fs::symlink_metadata(path.join(METADATA)).is_err() && fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(BuildError::NoVariant { path });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_no_build_has_made_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let free = || see_free(dir.path(), ["one".to_owned()]).map_err(|error| error.to_string());
        let place = dir.path().join("one");
        assert_eq!(free(), Ok(()));
        fs::create_dir(&place).unwrap();
        assert_eq!(free(), Ok(()));
        fs::write(place.join("notes.txt"), "").unwrap();
        assert_eq!(free(), Err(format!("`{}` is no variant: it has no `metadata.json`, but other files", place.display())));
        fs::write(place.join(METADATA), "").unwrap();
        assert_eq!(free(), Ok(()));
    }

    #[test]
    fn no_build_ships_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("p");
        let package = root.join("torch-ext/tiny");
        fs::create_dir_all(&package).unwrap();
        symlink("p/torch-ext/tiny", dir.path().join("link")).unwrap();
        let refused = |out: &str| check_place(&root.join(out), &root, &package).is_err();
        for inside in
            ["torch-ext/tiny", "torch-ext/tiny/out", "torch-ext/other/../tiny/out", "../link", "../link/a/b", "./.kiln/x", "../p/.kiln"]
        {
            assert!(refused(inside), "{inside}");
        }
        for outside in ["torch-ext/tiny_out", "out", "torch-ext/tiny/../out", "../link/../out", ".", "build"] {
            assert!(!refused(outside), "{outside}");
        }
    }
}
