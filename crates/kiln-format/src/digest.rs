//! Hashes of the files of a variant directory, and what differs from them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde::Serialize;
use sha2::{Sha256, Sha512};

use crate::suggest::quoted;

/// Files at the top of a directory that describe the others and so cannot be among them.
const DESCRIPTIONS: [&str; 2] = ["metadata.json", "metadata.json.sigstore"];

/// How files are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestAlgorithm {
    /// SHA-256, the one that is written.
    #[default]
    Sha256,
    /// SHA-512, accepted when verifying.
    Sha512,
}

/// The hash of every file of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Digest {
    /// How the files were hashed.
    pub algorithm: DigestAlgorithm,
    /// From relative path, with `/`, to the hash in standard base64 with padding; sorted by the bytes of the path.
    pub files: BTreeMap<String, String>,
}

/// Why a directory could not be hashed.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// A file or directory could not be read.
    #[error("could not read `{}`", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A name that is not UTF-8 and so cannot stand in metadata.
    #[error("the name of `{}` is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

/// One difference between an expected and an actual [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestViolation {
    /// The algorithms differ, so no hash can be compared.
    #[error("the digest was made with {}, not with {}", .actual.as_str(), .expected.as_str())]
    Algorithm {
        /// What is expected.
        expected: DigestAlgorithm,
        /// What was found.
        actual: DigestAlgorithm,
    },
    /// A file that is expected is not there.
    #[error("{} is missing", quoted(.0))]
    Missing(String),
    /// A file has other content.
    #[error("{} has another content than its digest says", quoted(.0))]
    Mismatch(String),
    /// A file is there that is not expected.
    #[error("{} is not in the digest", quoted(.0))]
    Unknown(String),
}

impl DigestAlgorithm {
    /// The name in metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// The algorithm called `name` in metadata.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    /// The hash of what `reader` gives, in standard base64 with padding.
    ///
    /// # Errors
    /// Those of `reader`.
    pub fn hash(self, reader: impl Read) -> io::Result<String> {
        match self {
            Self::Sha256 => hash_with::<Sha256>(reader),
            Self::Sha512 => hash_with::<Sha512>(reader),
        }
    }
}

fn hash_with<H: sha2::Digest>(mut reader: impl Read) -> io::Result<String> {
    let mut hasher = H::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(BASE64.encode(&hasher.finalize())),
            Ok(length) => hasher.update(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Digest {
    /// Hashes the files below `dir`.
    ///
    /// Left out are `metadata.json` and its signature at the top, paths with a `__pycache__` component, `*.pyc`, and what
    /// is no regular file. A link to a file counts as that file under the link's name; linked directories are not entered.
    ///
    /// # Errors
    /// When something cannot be read or a name is not UTF-8.
    pub fn of_directory(dir: &Path, algorithm: DigestAlgorithm) -> Result<Self, DigestError> {
        let mut files = BTreeMap::new();
        let mut pending = vec![(dir.to_owned(), String::new())];
        while let Some((dir, prefix)) = pending.pop() {
            let io_at = |path: &Path| {
                let path = path.to_owned();
                |source| DigestError::Io { path, source }
            };
            for entry in fs::read_dir(&dir).map_err(io_at(&dir))? {
                let entry = entry.map_err(io_at(&dir))?;
                let path = entry.path();
                let name = entry.file_name().into_string().map_err(|_| DigestError::NotUtf8(path.clone()))?;
                let kind = entry.file_type().map_err(io_at(&path))?;
                if name == "__pycache__" || (prefix.is_empty() && DESCRIPTIONS.contains(&name.as_str())) {
                    continue;
                }
                let relative = format!("{prefix}{name}");
                if kind.is_dir() {
                    pending.push((path, format!("{relative}/")));
                } else if !has_extension_pyc(&name) && is_file_or_link_to_one(&path, kind).map_err(io_at(&path))? {
                    let hash = File::open(&path).and_then(|file| algorithm.hash(file)).map_err(io_at(&path))?;
                    files.insert(relative, hash);
                }
            }
        }
        Ok(Self { algorithm, files })
    }

    /// Every difference between the files below `dir` and this digest, in the order of [`Self::compare`].
    ///
    /// # Errors
    /// When `dir` cannot be hashed.
    pub fn validate(&self, dir: &Path) -> Result<Vec<DigestViolation>, DigestError> {
        Ok(self.compare(&Self::of_directory(dir, self.algorithm)?))
    }

    /// Every way in which `actual` differs from this digest: the algorithm, then each expected file that is missing or
    /// differs by path, then each unknown file by path.
    pub fn compare(&self, actual: &Self) -> Vec<DigestViolation> {
        let mut violations = Vec::new();
        if self.algorithm != actual.algorithm {
            violations.push(DigestViolation::Algorithm { expected: self.algorithm, actual: actual.algorithm });
        }
        for (path, hash) in &self.files {
            match actual.files.get(path) {
                None => violations.push(DigestViolation::Missing(path.clone())),
                Some(found) if found != hash => violations.push(DigestViolation::Mismatch(path.clone())),
                Some(_) => {}
            }
        }
        let unknown = actual.files.keys().filter(|path| !self.files.contains_key(*path));
        violations.extend(unknown.cloned().map(DigestViolation::Unknown));
        violations
    }
}

fn has_extension_pyc(name: &str) -> bool {
    name.ends_with(".pyc")
}

fn is_file_or_link_to_one(path: &Path, kind: fs::FileType) -> io::Result<bool> {
    if !kind.is_symlink() {
        return Ok(kind.is_file());
    }
    match fs::metadata(path) {
        Ok(target) => Ok(target.is_file()),
        // A link that leads nowhere is no file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors() {
        for (text, algorithm, expected) in [
            ("hello world", DigestAlgorithm::Sha256, "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="),
            (
                "hello world",
                DigestAlgorithm::Sha512,
                "MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw==",
            ),
            ("", DigestAlgorithm::Sha256, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            ("x = 1\n", DigestAlgorithm::Sha256, "nia/NpkRxFwkPGhBR7I/yeHc/PJX0pmhxjIBam/NM/Q="),
        ] {
            assert_eq!(algorithm.hash(text.as_bytes()).unwrap(), expected);
            assert_eq!(DigestAlgorithm::from_name(algorithm.as_str()), Some(algorithm));
        }
        assert_eq!(DigestAlgorithm::from_name("md5"), None);
    }

    #[test]
    fn a_failing_reader_is_an_error() {
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                // Once interrupted, which is no failure.
                let kind = if std::mem::replace(&mut self.0, true) { io::ErrorKind::Other } else { io::ErrorKind::Interrupted };
                Err(kind.into())
            }
        }
        assert_eq!(DigestAlgorithm::Sha256.hash(Failing(false)).unwrap_err().kind(), io::ErrorKind::Other);
    }
}
