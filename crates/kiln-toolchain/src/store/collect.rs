//! Removing what nobody needs.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Store, TreeInfo, create_dirs, remove};
use crate::error::Error;
use crate::store::Lock;

/// Something that was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removal {
    /// What it is.
    pub id: String,
    /// Bytes that the disk has more without it. A file that other trees link to counts with the last of them.
    pub bytes: u64,
}

/// Files with several names: how many names each has that were not removed so far.
#[derive(Debug, Default)]
pub(crate) struct Links(HashMap<(u64, u64), u64>);

impl Links {
    /// Bytes that removing the directory `dir` frees.
    fn removed(&mut self, dir: &Path) -> u64 {
        let mut bytes: u64 = 0;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                bytes = bytes.saturating_add(self.removed(&entry.path()));
                continue;
            }
            let left = self.0.entry((meta.dev(), meta.ino())).or_insert(meta.nlink());
            *left = left.saturating_sub(1);
            if *left == 0 {
                bytes = bytes.saturating_add(meta.blocks().saturating_mul(512));
            }
        }
        bytes
    }
}

impl Store {
    /// Every tree of the own store with what it is made of, sorted by name.
    pub(crate) fn all(&self) -> Vec<(String, Result<TreeInfo, String>)> {
        let mut ids = names_in(&self.trees());
        ids.sort();
        ids.into_iter().map(|id| (id.clone(), TreeInfo::read(&self.trees().join(id)))).collect()
    }

    /// The names files of the own store, sorted.
    pub(crate) fn all_names(&self) -> Vec<String> {
        let mut names = names_in(&self.root.join("names"));
        // Others are being written.
        names.retain(|name| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
        names.sort();
        names
    }

    /// Bytes of a names file.
    pub(crate) fn names_size(&self, digest: &str) -> u64 {
        fs::metadata(self.root.join("names").join(digest)).map_or(0, |meta| meta.blocks().saturating_mul(512))
    }

    /// Removes a names file unless a process uses it, as one does that has pinned a release and not written so yet; then the answer is
    /// none.
    pub(crate) fn remove_names(&self, digest: &str, dry_run: bool) -> Result<Option<Removal>, Error> {
        let Some(_mark) = self.unused(digest)? else { return Ok(None) };
        let removal = Removal { id: format!("names/{digest}"), bytes: self.names_size(digest) };
        if !dry_run {
            self.discard_names(digest)?;
        }
        Ok(Some(removal))
    }

    /// Removes a names file.
    pub(crate) fn discard_names(&self, digest: &str) -> Result<(), Error> {
        let path = self.root.join("names").join(digest);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::store("remove", &path)(cause)),
            _ => Ok(()),
        }
    }

    /// The mark of something that no process uses, locked; none if one does.
    fn unused(&self, id: &str) -> Result<Option<File>, Error> {
        let mark = self.root.join("use").join(id);
        create_dirs(&self.root.join("use"))?;
        let file = File::options().write(true).create(true).truncate(false).open(&mark).map_err(Error::store("open", &mark))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(cause)) => Err(Error::store("lock", &mark)(cause)),
        }
    }

    /// Removes the tree called `id` unless a process uses it; then the answer is none. It disappears at once and is taken apart after.
    pub(crate) fn remove_unused(&self, id: &str, links: &mut Links, dry_run: bool) -> Result<Option<Removal>, Error> {
        let Some(_mark) = self.unused(id)? else { return Ok(None) };
        let tree = self.trees().join(id);
        let removal = Removal { id: id.to_owned(), bytes: links.removed(&tree) };
        if !dry_run {
            self.take_apart(&tree)?;
        }
        Ok(Some(removal))
    }

    /// Removes a tree that is damaged beyond repair; the caller holds its lock.
    pub(crate) fn discard(&self, id: &str, _lock: &Lock) -> Result<(), Error> {
        self.take_apart(&self.trees().join(id))
    }

    fn take_apart(&self, tree: &Path) -> Result<(), Error> {
        let work = self.root.join("work");
        create_dirs(&work)?;
        loop {
            let away = tempfile::Builder::new().prefix("removed-").tempdir_in(&work).map_err(Error::store("write to", &work))?;
            match fs::rename(tree, away.path().join("tree")) {
                // Another process that sweeps at the same time may have taken the empty directory away.
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && fs::symlink_metadata(tree).is_ok() => continue,
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(Error::store("move", tree)(cause)),
                _ => {}
            }
            // Or what is in it, which is the same to us.
            return match away.close() {
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(Error::store("remove", tree)(cause)),
                _ => Ok(()),
            };
        }
    }

    /// Removes what killed processes left: work directories whose lock nobody holds.
    pub(crate) fn sweep(&self, dry_run: bool) -> Result<Vec<Removal>, Error> {
        let mut swept = Vec::new();
        let mut names = names_in(&self.root.join("work"));
        names.sort();
        for name in names {
            let path = self.root.join("work").join(&name);
            // A tree on its way out has no lock; it is no trouble if two processes take it apart.
            let lock = if name.starts_with("removed-") {
                None
            } else {
                let lock = self.lock_file(&name);
                create_dirs(&self.root.join("locks"))?;
                let file = File::options().write(true).create(true).truncate(false).open(&lock).map_err(Error::store("open", &lock))?;
                if file.try_lock().is_err() {
                    continue;
                }
                Some(file)
            };
            let bytes = Links::default().removed(&path);
            if !dry_run {
                remove(&path)?;
            }
            drop(lock);
            swept.push(Removal { id: format!("work/{name}"), bytes });
        }
        Ok(swept)
    }
}

/// Names of the entries of a directory; none when it is not there.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
