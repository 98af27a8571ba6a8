//! The store: immutable trees, named by what they were made from, shared between processes.
//!
//! ```text
//! <cache>/toolchains-v1/
//!   trees/<id>/files/...    what was taken out of wheels, read-only
//!   trees/<id>/manifest     sha256, size, run bit and path of each of those files
//!   trees/<id>/tree.json    the wheels and members that it was made from, and their terms
//!   trees/<id>/terms/...    the license texts of the wheels
//!   trees/<id>/boot         the run of the machine in which the tree was made
//!   trees/<id>/settled      the tree is known to be on the disk as it should be
//!   locks/<id>              locked by the process that makes the tree
//!   use/<id>                locked, together with others, by each process that uses the tree; alone by the one that removes it
//!   work/<id>/              a tree that is being made; renamed to trees/<id> when it is complete
//!   names/<digest>          the names that the libraries of a locked release export
//! ```
//!
//! A tree is there whole or not at all. Whoever holds the lock of an id owns its work directory: what a killed process
//! left there is removed by the next one.
//!
//! **What must survive.** A process may be killed at any instruction, and the disk may be full: both end before the rename, and
//! nothing is there. When the whole machine stops, a rename may reach the disk before the contents of the files do. Bringing ten
//! thousand small files to the disk one by one costs more than fetching them, and the loss costs only a fetch. So a tree is not
//! synced: it carries the run of the machine in which it was made. In another run it is hashed once against its manifest
//! before it is used, and then marked as settled, or made anew. Where the system cannot tell its runs apart, every file is synced.
//!
//! **Layers.** Behind the user's own store there may be others that are only read. A tree is taken from the first that has it.

mod collect;
mod lock;
mod manifest;
mod room;
mod settle;
mod tree;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

pub(crate) use self::collect::Links;
pub use self::collect::Removal;
pub(crate) use self::lock::Lock;
use self::manifest::Manifest;
pub(crate) use self::tree::{TreeInfo, TreeWriter};
use crate::error::Error;
use crate::part::Part;
use crate::terms::Terms;

/// Name of the directory that holds a tree's files.
const FILES: &str = "files";
/// Name of the file that says what a tree holds.
const MANIFEST: &str = "manifest";
/// Name of the file that says what a tree is made of.
const INFO: &str = "tree.json";
/// Name of the directory that holds the license texts.
const TERMS: &str = "terms";

/// A tree of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreTree {
    /// Its name in the store: changes with its content.
    pub id: String,
    /// What decides its content, as 64 hexadecimal digits.
    pub digest: String,
    /// The directory that holds its files.
    pub dir: PathBuf,
    /// The terms of the wheels that it comes from, in the order of its parts; empty for a tree that was only planned.
    pub terms: Vec<Terms>,
}

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it cannot be removed now, whoever needs its place next does it.
        let _ = remove(&self.0);
    }
}

/// A store below a cache directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
    lower: Vec<PathBuf>,
}

impl Store {
    /// The store of the cache directory `cache`, with those of `lower` behind it. Nothing is created before something is put into it.
    pub(crate) fn new(cache: &Path, lower: &[PathBuf]) -> Self {
        let root = |cache: &Path| cache.join("toolchains-v1");
        Self { root: root(cache), lower: lower.iter().map(|cache| root(cache)).collect() }
    }

    /// The files of the tree called `id`, if it is there and sound. A store behind is taken at its owner's word.
    pub(crate) fn tree(&self, id: &str) -> Option<PathBuf> {
        let tree = self.trees().join(id);
        if tree.join(FILES).is_dir() && settle::is_sound(&tree) {
            return Some(tree.join(FILES));
        }
        self.lower.iter().map(|root| root.join("trees").join(id).join(FILES)).find(|files| files.is_dir())
    }

    /// The tree that `info` describes, if it is there, with the terms that were found when it was made.
    pub(crate) fn find(&self, info: &TreeInfo) -> Option<StoreTree> {
        let dir = self.tree(&info.id())?;
        let kept = TreeInfo::read(dir.parent()?).ok()?;
        Some(StoreTree { id: info.id(), digest: info.digest.clone(), dir, terms: kept.terms })
    }

    /// Where the files of the tree called `id` are, or will be once it is made.
    pub(crate) fn place(&self, id: &str) -> PathBuf {
        self.tree(id).unwrap_or_else(|| self.trees().join(id).join(FILES))
    }

    /// The file that is locked while the tree called `id` is made.
    pub(crate) fn lock_file(&self, id: &str) -> PathBuf {
        self.root.join("locks").join(id)
    }

    /// Marks the tree called `id` as used for as long as the file is held. None where no mark can be made, as in a store that cannot
    /// be written to: nobody can remove a tree there either.
    pub(crate) fn mark_used(&self, id: &str) -> Option<File> {
        let path = self.root.join("use").join(id);
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match open() {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && self.root.is_dir() => {
                fs::create_dir_all(self.root.join("use")).ok()?;
                open()
            }
            other => other,
        };
        let file = file.or_else(|_| File::open(&path)).ok()?;
        file.lock_shared().ok()?;
        Some(file)
    }

    /// Makes the tree that `info` describes, whose lock the caller holds. `fill` writes its files; on any error nothing is left.
    pub(crate) fn create(
        &self,
        info: TreeInfo,
        _lock: &Lock,
        fill: impl FnOnce(&mut TreeWriter) -> Result<(), Error>,
    ) -> Result<StoreTree, Error> {
        let work = self.root.join("work").join(info.id());
        remove(&work)?;
        let result = self.fill(info, &work, fill);
        // After an error this only saves space: whoever makes the tree next removes it as well.
        let _ = remove(&work);
        result
    }

    /// Writes a tree into `work` and moves it to its place. A damaged one that is there makes way.
    fn fill(&self, info: TreeInfo, work: &Path, fill: impl FnOnce(&mut TreeWriter) -> Result<(), Error>) -> Result<StoreTree, Error> {
        let (id, digest) = (info.id(), info.digest.clone());
        let boot = settle::boot();
        let mut writer = TreeWriter::new(work, info, boot.is_none())?;
        fill(&mut writer)?;
        let terms = writer.info.terms.clone();
        let made = writer.finish()?;
        settle::mark(&made, boot.as_deref())?;
        let place = self.trees().join(&id);
        create_dirs(&self.trees())?;
        put(&made, &place, &work.join("damaged"))?;
        if boot.is_none() {
            tree::sync_dir(&self.trees())?;
        }
        Ok(StoreTree { id, digest, dir: place.join(FILES), terms })
    }

    /// An empty directory for what is needed only until its lock, which the caller holds, is given back. Removed when dropped, or else
    /// by the next one who asks for it.
    pub(crate) fn scratch(&self, id: &str, _lock: &Lock) -> Result<Scratch, Error> {
        let work = self.root.join("work").join(id);
        remove(&work)?;
        create_dirs(&work)?;
        Ok(Scratch(work))
    }

    /// Keeps a names file with this sha256, by which it is found again.
    pub(crate) fn put_names(&self, digest: &str, content: &[u8]) -> Result<(), Error> {
        if self.names(digest).is_none() {
            let (dir, place) = (self.root.join("names"), self.names_place(digest));
            create_dirs(&dir)?;
            let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(Error::store("write to", &dir))?;
            file.write_all(content).map_err(Error::store("write", &place))?;
            file.persist(&place).map_err(|cause| Error::Store { action: "write", path: place.clone(), source: cause.error })?;
        }
        Ok(())
    }

    /// Where the names file with this sha256 is, or will be.
    pub(crate) fn names_place(&self, digest: &str) -> PathBuf {
        self.root.join("names").join(digest)
    }

    /// The names file with this sha256. A damaged one counts as none.
    pub(crate) fn names(&self, digest: &str) -> Option<Vec<u8>> {
        let sound = |content: &Vec<u8>| HEXLOWER.encode(&Sha256::digest(content)) == digest;
        let mut roots = std::iter::once(&self.root).chain(&self.lower);
        roots.find_map(|root| fs::read(root.join("names").join(digest)).ok().filter(sound))
    }

    /// Puts trees together in a new one: the files of each part, which the store has, at the places that the part gives them.
    pub(crate) fn link(&self, parts: &[(Part, StoreTree)], tree: &mut TreeWriter) -> Result<(), Error> {
        for (part, from) in parts {
            let whole = from.dir.parent().unwrap_or(&from.dir);
            let manifest = read_manifest(whole).map_err(|reason| Error::Damaged { path: whole.to_owned(), reason })?;
            tree.link(&from.dir, &manifest, &part.wheel.file, &|member| part.place(member))?;
            tree.link_terms(&whole.join(TERMS), &from.terms)?;
        }
        Ok(())
    }

    /// Hashes the files of the tree called `id` again.
    pub(crate) fn verify(&self, id: &str) -> Result<(), Error> {
        let tree = self.trees().join(id);
        verify(&tree).map_err(|reason| Error::Damaged { path: tree.clone(), reason })
    }

    fn trees(&self) -> PathBuf {
        self.root.join("trees")
    }
}

/// Moves a directory to its place. One that is there, damaged, goes to `aside`: in one step where the system can do it, since somebody
/// may be reading the sound part of it.
fn put(made: &Path, place: &Path, aside: &Path) -> Result<(), Error> {
    let failed = |cause: std::io::Error| Error::store("create", place)(cause);
    if fs::symlink_metadata(place).is_err() {
        return fs::rename(made, place).map_err(failed);
    }
    match rustix::fs::renameat_with(rustix::fs::CWD, made, rustix::fs::CWD, place, rustix::fs::RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(_) => {
            fs::rename(place, aside).map_err(failed)?;
            fs::rename(made, place).map_err(failed)
        }
    }
}

/// Reads the manifest of the tree in `tree`.
fn read_manifest(tree: &Path) -> Result<Manifest, String> {
    let text = fs::read_to_string(tree.join(MANIFEST)).map_err(|cause| format!("its manifest cannot be read: {cause}"))?;
    Manifest::parse(&text).map_err(|reason| format!("its manifest {reason}"))
}

/// Compares the tree in `tree` with its manifest. Fails with the first difference.
fn verify(tree: &Path) -> Result<(), String> {
    read_manifest(tree)?.verify(&tree.join(FILES))?;
    TreeInfo::read(tree).map(|_| ())
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
