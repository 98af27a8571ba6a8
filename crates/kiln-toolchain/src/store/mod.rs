//! The store: immutable trees, named by what they were made from, shared between processes.
//!
//! ```text
//! <cache>/toolchains-v1/
//!   trees/<id>/files/...    what was taken out of a wheel, read-only
//!   trees/<id>/manifest     sha256, size and path of each of those files
//!   locks/<id>              locked by the process that makes the tree
//!   work/<id>/              a tree that is being made; renamed to trees/<id> when it is complete
//! ```
//!
//! A tree is there whole or not at all. Whoever holds the lock of an id owns its work directory: what a killed process
//! left there is removed by the next one.

mod lock;
mod manifest;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

pub(crate) use self::lock::Lock;
use self::manifest::Manifest;
use crate::error::Error;

/// Name of the directory that holds a tree's files.
const FILES: &str = "files";
/// Name of the file that says what a tree holds.
const MANIFEST: &str = "manifest";

/// A store below a cache directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// The store of the cache directory `cache`. Nothing is created before something is put into it.
    pub(crate) fn new(cache: &Path) -> Self {
        Self { root: cache.join("toolchains-v1") }
    }

    /// The files of the tree called `id`, if it is there.
    pub(crate) fn tree(&self, id: &str) -> Option<PathBuf> {
        let files = self.place(id);
        files.is_dir().then_some(files)
    }

    /// Where the files of the tree called `id` are once it is made.
    pub(crate) fn place(&self, id: &str) -> PathBuf {
        self.root.join("trees").join(id).join(FILES)
    }

    /// The file that is locked while the tree called `id` is made.
    pub(crate) fn lock_file(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(id)
    }

    /// Makes the tree called `id`, whose lock the caller holds. `fill` writes its files; on any error nothing is left.
    pub(crate) fn create(&self, id: &str, _lock: &Lock, fill: impl FnOnce(&mut TreeWriter) -> Result<(), Error>) -> Result<PathBuf, Error> {
        let work = self.root.join("work").join(id);
        remove(&work)?;
        let result = self.fill(id, &work, fill);
        // After an error this only saves space: whoever makes the tree next removes it as well.
        let _ = remove(&work);
        result
    }

    /// Writes a tree into `work` and moves it to its place.
    fn fill(&self, id: &str, work: &Path, fill: impl FnOnce(&mut TreeWriter) -> Result<(), Error>) -> Result<PathBuf, Error> {
        let made = work.join("tree");
        create_dirs(&made.join(FILES))?;
        let mut writer =
            TreeWriter { work: work.to_owned(), files: made.join(FILES), dirs: BTreeSet::new(), manifest: Manifest::default() };
        fill(&mut writer)?;
        let manifest = made.join(MANIFEST);
        fs::write(&manifest, writer.manifest.to_text()).map_err(Error::store("write", &manifest))?;
        let place = self.root.join("trees").join(id);
        create_dirs(&self.root.join("trees"))?;
        fs::rename(&made, &place).map_err(Error::store("create", &place))?;
        Ok(place.join(FILES))
    }

    /// Hashes the files of the tree called `id` again.
    pub(crate) fn verify(&self, id: &str) -> Result<(), Error> {
        let tree = self.root.join("trees").join(id);
        let damaged = |reason: String| Error::Damaged { path: tree.clone(), reason };
        let text = fs::read_to_string(tree.join(MANIFEST)).map_err(|cause| damaged(format!("its manifest cannot be read: {cause}")))?;
        let manifest = Manifest::parse(&text).map_err(|reason| damaged(format!("its manifest {reason}")))?;
        manifest.verify(&tree.join(FILES)).map_err(damaged)
    }
}

/// Writes the files of a new tree.
pub(crate) struct TreeWriter {
    work: PathBuf,
    files: PathBuf,
    dirs: BTreeSet<PathBuf>,
    manifest: Manifest,
}

impl TreeWriter {
    /// A place for a file that is needed only until the tree is complete.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Starts anew, without the files that were written so far.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        remove(&self.files)?;
        self.dirs.clear();
        self.manifest = Manifest::default();
        create_dirs(&self.files)
    }

    /// Adds a file. `path` is relative, without `.` and `..` parts.
    pub(crate) fn file(&mut self, path: &str, content: &[u8], sha256: &[u8; 32]) -> Result<(), Error> {
        let place = self.files.join(path);
        if let Some(dir) = place.parent()
            && !self.dirs.contains(dir)
        {
            create_dirs(dir)?;
            self.dirs.insert(dir.to_owned());
        }
        // `create_new` follows no link and overwrites nothing.
        let mut file = fs::File::options().write(true).create_new(true).mode(0o444).open(&place).map_err(Error::store("create", &place))?;
        file.write_all(content).map_err(Error::store("write", &place))?;
        self.manifest.add(path, HEXLOWER.encode(sha256), content.len() as u64);
        Ok(())
    }
}

/// Creates a directory and those above it.
pub(crate) fn create_dirs(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(Error::store("create", dir))
}

/// Removes a directory with all that is in it, if it is there.
fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::store("remove", dir)(cause)),
        _ => Ok(()),
    }
}
