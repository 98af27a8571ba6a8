//! Makes the unique part of the ops id: it differs for all source states that may meet in one process.
//!
//! | state of the project | development build | `--release` |
//! |---|---|---|
//! | in git, nothing changed | `<tree7>` | `<tree7>` |
//! | in git, changed | `<tree7>_dirty` | `<tree7>_dirty_<8 hex of the source digest>` |
//! | not in git | 13 characters of base32 of the source digest | the same |
//!
//! `<tree7>` is the beginning of the id of HEAD's tree. A development build keeps its id while files are edited, so that an edit
//! does not rename the operators and recompile every binding; what is published gets an id of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::git::Scm;

/// The files that decide what a project is: path relative to the project to the file on disk. Never taken from depfiles, so that the
/// id is known before anything is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSet {
    /// The files, sorted by path.
    pub files: BTreeMap<String, PathBuf>,
}

/// What the build is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Trying out edits.
    Development,
    /// Publishing.
    Release,
}

/// A source file could not be read.
#[derive(Debug, Error)]
#[error("failed to read `{}`", path.display())]
pub struct SourceError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

impl SourceSet {
    /// SHA-256 over paths and contents, each with its length, in the order of paths.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], SourceError> {
        let mut hash = Sha256::new();
        for (name, path) in &self.files {
            let content = fs::read(path).map_err(|source| SourceError { path: path.clone(), source })?;
            for part in [name.as_bytes(), &content] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        Ok(hash.finalize().into())
    }

    /// The paths, relative to the project.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(Path::new)
    }
}

/// Whether the project differs from HEAD; none outside git.
pub fn is_dirty(scm: &Scm, sources: &SourceSet) -> Option<bool> {
    match scm {
        Scm::Git(state) => Some(state.is_dirty(sources.paths())),
        Scm::None | Scm::Unusable(_) => None,
    }
}

/// The unique id of a project in this state.
///
/// # Errors
/// When the digest is needed and a source cannot be read.
pub fn unique_id(scm: &Scm, sources: &SourceSet, purpose: Purpose) -> Result<String, SourceError> {
    let Scm::Git(state) = scm else {
        let text = BASE32_NOPAD.encode(&sources.digest()?).to_ascii_lowercase();
        return Ok(text.chars().take(13).collect());
    };
    let tree: String = state.tree.chars().take(7).collect();
    match (state.is_dirty(sources.paths()), purpose) {
        (false, _) => Ok(tree),
        (true, Purpose::Development) => Ok(format!("{tree}_dirty")),
        (true, Purpose::Release) => {
            let digest: String = HEXLOWER.encode(&sources.digest()?).chars().take(8).collect();
            Ok(format!("{tree}_dirty_{digest}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitState;

    fn sources(files: &[(&str, &str)]) -> (tempfile::TempDir, SourceSet) {
        let tmp = tempfile::tempdir().unwrap();
        let mut set = SourceSet::default();
        for (index, (name, content)) in files.iter().enumerate() {
            let path = tmp.path().join(index.to_string());
            fs::write(&path, content).unwrap();
            set.files.insert((*name).to_owned(), path);
        }
        (tmp, set)
    }

    fn git(tracked_changed: bool) -> Scm {
        Scm::Git(GitState { commit: "c".repeat(40), tree: "0123456789".repeat(4), tracked_changed, untracked: vec!["gen".into()] })
    }

    #[test]
    fn every_form() {
        let (_tmp, set) = sources(&[("build.toml", "x"), ("a.cpp", "y")]);
        let id = |scm: &Scm, purpose| unique_id(scm, &set, purpose).unwrap();
        assert_eq!(id(&git(false), Purpose::Development), "0123456");
        assert_eq!(id(&git(false), Purpose::Release), "0123456");
        assert_eq!(id(&git(true), Purpose::Development), "0123456_dirty");
        let release = id(&git(true), Purpose::Release);
        assert_eq!((release.len(), &release[..14]), (22, "0123456_dirty_"));
        for scm in [Scm::None, Scm::Unusable("why".into())] {
            let content = id(&scm, Purpose::Release);
            assert!(content.len() == 13 && content.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b)), "{content}");
            assert_eq!(content, id(&scm, Purpose::Development));
        }
        assert_eq!((is_dirty(&git(true), &set), is_dirty(&git(false), &set), is_dirty(&Scm::None, &set)), (Some(true), Some(false), None));
        let (_tmp, read_untracked) = sources(&[("gen/x.cpp", "")]);
        assert_eq!(unique_id(&git(false), &read_untracked, Purpose::Development).unwrap(), "0123456_dirty");
    }

    /// The digest of `build.toml` = `x` alone, computed by hand: length 10, name, length 1, content.
    #[test]
    fn digest_is_what_it_says() {
        let (_tmp, set) = sources(&[("build.toml", "x")]);
        let mut bytes = vec![10, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(b"build.toml\x01\0\0\0\0\0\0\0x");
        assert_eq!(set.digest().unwrap(), <[u8; 32]>::from(Sha256::digest(&bytes)));
    }

    #[test]
    fn digests_differ_for_differing_sets() {
        let sets: [&[(&str, &str)]; 6] =
            [&[("a", "bc")], &[("ab", "c")], &[("a", "bd")], &[("a", "bc"), ("d", "")], &[("a", "")], &[("a", "b"), ("c", "")]];
        let digests: std::collections::BTreeSet<_> = sets
            .iter()
            .map(|files| {
                let (_tmp, set) = sources(files);
                set.digest().unwrap()
            })
            .collect();
        assert_eq!(digests.len(), sets.len());
    }

    #[test]
    fn missing_sources_are_errors() {
        let set = SourceSet { files: BTreeMap::from([("a".into(), "/nowhere/a".into())]) };
        assert_eq!(set.digest().unwrap_err().to_string(), "failed to read `/nowhere/a`");
    }
}
