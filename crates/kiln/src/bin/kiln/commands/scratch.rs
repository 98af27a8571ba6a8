//! Temporary files.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::exit::Failure;
use crate::settings::Settings;

/// The directories that are there. A signal ends the process past the ends of all functions, and so past what they would remove.
static THERE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory for files that nobody needs afterwards; removed with everything in it.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// In the first of the usual places that can be written to.
    pub(super) fn new(prefix: &str, settings: &Settings) -> Result<Self, Failure> {
        let places = [Some(settings.environment.temporary_dir()), Some(PathBuf::from("/tmp")), settings.cache_dir(None).ok()];
        let made = places.into_iter().flatten().find_map(|place| tempfile::Builder::new().prefix(prefix).tempdir_in(place).ok());
        let failure = || Failure::new("work-directory", "there is no directory for temporary files that can be written to");
        let made = made.ok_or_else(|| failure().hint("set TMPDIR to one"))?;
        // The process may be somewhere else when it ends.
        let path = std::path::absolute(made.path()).unwrap_or_else(|_| made.path().to_owned());
        THERE.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        Ok(Self(made))
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes all that there are: for a process that ends now.
pub(crate) fn remove_all() {
    for dir in THERE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // Of one that was removed as usual, nothing is left.
        let _gone = std::fs::remove_dir_all(dir);
    }
}
