//! Making a tree: files out of a wheel, or linked from other trees.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::manifest::{Entry, Manifest};
use super::{FILES, INFO, MANIFEST, TERMS, create_dirs, remove};
use crate::error::Error;
use crate::part::{Part, digest_of};
use crate::terms::Terms;

/// The form of `tree.json`.
const SCHEMA: u32 = 1;

/// What a tree is made of, as `tree.json` keeps it: enough to make it again and to say under which terms it comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TreeInfo {
    schema: u32,
    /// The name without the digest, such as `torch-2.13.0-linux-x86_64`.
    pub(crate) name: String,
    /// What decides the content, as 64 hexadecimal digits.
    pub(crate) digest: String,
    /// The parts, in the order in which they were put in.
    pub(crate) parts: Vec<Part>,
    /// The terms of each wheel, in the order of the parts.
    pub(crate) terms: Vec<Terms>,
    /// Whether copies may be handed on. Never: what is under whose terms is for each user to settle with the publisher, so trees go
    /// into no shared cache and no artifact.
    pub(crate) redistributable: bool,
}

impl TreeInfo {
    /// Of a tree that is to be made; its terms are known later.
    pub(crate) fn new(name: String, digest: String, parts: Vec<Part>) -> Self {
        Self { schema: SCHEMA, name, digest, parts, terms: Vec::new(), redistributable: false }
    }

    /// Name in the store.
    pub(crate) fn id(&self) -> String {
        crate::part::id(&self.name, &self.digest)
    }

    /// Whether the digest is that of the parts.
    pub(crate) fn is_consistent(&self) -> bool {
        matches!(self.parts.as_slice(), [part] if part.digest() == self.digest) || digest_of(&self.parts) == self.digest
    }

    /// Reads the `tree.json` of the tree in `tree`.
    pub(super) fn read(tree: &Path) -> Result<Self, String> {
        let text = fs::read(tree.join(INFO)).map_err(|cause| format!("its `{INFO}` cannot be read: {cause}"))?;
        let info: Self = serde_json::from_slice(&text).map_err(|cause| format!("its `{INFO}` is damaged: {cause}"))?;
        if info.schema != SCHEMA {
            return Err(format!("its `{INFO}` has form {}, known is {SCHEMA}", info.schema));
        }
        Ok(info)
    }
}

/// Writes the files of a new tree.
pub(crate) struct TreeWriter {
    work: PathBuf,
    made: PathBuf,
    dirs: BTreeSet<PathBuf>,
    manifest: Manifest,
    /// What the tree is made of; the terms are to be filled in.
    pub(crate) info: TreeInfo,
    /// Whether each file is brought to the disk at once.
    sync: bool,
}

impl TreeWriter {
    /// Begins a tree in the directory `work`.
    pub(super) fn new(work: &Path, info: TreeInfo, sync: bool) -> Result<Self, Error> {
        let made = work.join("tree");
        create_dirs(&made.join(FILES))?;
        Ok(Self { work: work.to_owned(), made, dirs: BTreeSet::new(), manifest: Manifest::default(), info, sync })
    }

    /// A place for a file that is needed only until the tree is complete.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Starts anew, without the files that were written so far.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        remove(&self.made)?;
        self.dirs.clear();
        self.manifest = Manifest::default();
        self.info.terms.clear();
        create_dirs(&self.made.join(FILES))
    }

    /// Adds a file. `path` is relative, without `.` and `..` parts.
    pub(crate) fn file(&mut self, path: &str, content: &[u8], sha256: &[u8; 32], program: bool) -> Result<(), Error> {
        let place = self.place(path)?;
        self.write(&place, content, if program { 0o555 } else { 0o444 })?;
        self.manifest.add(path, Entry { sha256: HEXLOWER.encode(sha256), size: content.len() as u64, program });
        Ok(())
    }

    /// Adds a license text.
    pub(crate) fn term(&mut self, path: &str, content: &[u8]) -> Result<(), Error> {
        let place = self.made.join(TERMS).join(path);
        if let Some(dir) = place.parent() {
            create_dirs(dir)?;
        }
        self.write(&place, content, 0o444)
    }

    /// Adds the files of another tree, at the paths that `place` gives for theirs: as hard links where the file system allows them,
    /// else as copies, which share their blocks where it can do that. Two wheels may bring the same file; the same path with other
    /// content is an error.
    pub(super) fn link(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        wheel: &str,
        place: &dyn Fn(&str) -> Result<String, Error>,
    ) -> Result<(), Error> {
        for (member, entry) in manifest.iter() {
            let path = place(member)?;
            let clash = |reason: String| Err(Error::Member { file: wheel.to_owned(), member: member.to_owned(), reason });
            if let Some(fault) = crate::zip::unsafe_path(&path) {
                return clash(format!("{fault} in the tree"));
            }
            match self.manifest.get(&path) {
                Some(known) if known == entry => continue,
                Some(_) => return clash(format!("comes to `{path}`, where another wheel has a file with other content")),
                None => {}
            }
            let (source, target) = (from.join(member), self.place(&path)?);
            if fs::hard_link(&source, &target).is_err() {
                // Too many links, another file system, or one without links.
                fs::copy(&source, &target).map_err(Error::store("create", &target))?;
                let mode = if entry.program { 0o555 } else { 0o444 };
                fs::set_permissions(&target, fs::Permissions::from_mode(mode)).map_err(Error::store("create", &target))?;
                self.synced(&target)?;
            }
            self.manifest.add(&path, entry.clone());
        }
        Ok(())
    }

    /// Copies the license texts of another tree.
    pub(super) fn link_terms(&mut self, from: &Path, terms: &[Terms]) -> Result<(), Error> {
        for file in terms.iter().flat_map(|terms| &terms.files) {
            let (source, target) = (from.join(file), self.made.join(TERMS).join(file));
            if target.exists() {
                continue;
            }
            let content = fs::read(&source).map_err(Error::store("read", &source))?;
            self.term(file, &content)?;
        }
        self.info.terms.extend(terms.iter().cloned());
        Ok(())
    }

    /// Writes what the tree is and holds. Gives the directory to be moved to its place.
    pub(super) fn finish(self) -> Result<PathBuf, Error> {
        let info = serde_json::to_vec_pretty(&self.info).unwrap_or_default();
        self.write(&self.made.join(INFO), &info, 0o444)?;
        self.write(&self.made.join(MANIFEST), self.manifest.to_text().as_bytes(), 0o444)?;
        if self.sync {
            for dir in self.dirs.iter().map(PathBuf::as_path).chain([self.made.join(FILES).as_path(), self.made.as_path()]) {
                sync_dir(dir)?;
            }
        }
        Ok(self.made)
    }

    /// Where a file of the tree goes; its directory is made.
    fn place(&mut self, path: &str) -> Result<PathBuf, Error> {
        let place = self.made.join(FILES).join(path);
        if let Some(dir) = place.parent()
            && !self.dirs.contains(dir)
        {
            create_dirs(dir)?;
            self.dirs.insert(dir.to_owned());
        }
        Ok(place)
    }

    fn write(&self, place: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
        // `create_new` follows no link and overwrites nothing.
        let mut file = fs::File::options().write(true).create_new(true).mode(mode).open(place).map_err(Error::store("create", place))?;
        file.write_all(content).map_err(Error::store("write", place))?;
        // The run bit may not depend on the user's mask.
        if mode & 0o111 != 0 {
            file.set_permissions(fs::Permissions::from_mode(mode)).map_err(Error::store("write", place))?;
        }
        if self.sync { file.sync_all().map_err(Error::store("write", place)) } else { Ok(()) }
    }

    fn synced(&self, place: &Path) -> Result<(), Error> {
        if !self.sync {
            return Ok(());
        }
        fs::File::open(place).and_then(|file| file.sync_all()).map_err(Error::store("write", place))
    }
}

/// Brings a directory's entries to the disk.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    match fs::File::open(dir).and_then(|dir| dir.sync_all()) {
        // Some network file systems cannot.
        Err(cause) if cause.kind() != io::ErrorKind::InvalidInput => Err(Error::store("write", dir)(cause)),
        _ => Ok(()),
    }
}
