//! Temporary files.

use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::settings::Settings;

/// A directory for files that nobody needs afterwards; removed with everything in it.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// In the first of the usual places that can be written to.
    pub(super) fn new(prefix: &str, settings: &Settings) -> Result<Self, Failure> {
        let places = [Some(settings.environment.temporary_dir()), Some(PathBuf::from("/tmp")), settings.cache_dir(None).ok()];
        let made = places.into_iter().flatten().find_map(|place| tempfile::Builder::new().prefix(prefix).tempdir_in(place).ok());
        let failure = || Failure::new("work-directory", "there is no directory for temporary files that can be written to");
        made.map(Self).ok_or_else(|| failure().hint("set TMPDIR to one"))
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}
