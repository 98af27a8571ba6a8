//! Recomputes the digests of finished variants.
//!
//! Variants are found by one rule, shared by every command that reads them: the first of `result`, `build` and the directory itself
//! that has a sub-directory with a `metadata.json`.

use std::fs;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kiln_format::metadata::{MetadataError, with_digest};
use kiln_format::{Digest, DigestAlgorithm, DigestError};
use thiserror::Error;

use crate::package::METADATA;
use crate::replace::{is_staging_name, remove_unfinished_files, write_file};

const SIGNATURE: &str = "metadata.json.sigstore";

/// Variants could not be found or hashed.
#[derive(Debug, Error)]
pub enum HashError {
    /// No variant in any of the places.
    #[error("no variants found: none of {} holds a directory with a `metadata.json`", list(places))]
    NoVariants {
        /// The places that were looked at, in order.
        places: Vec<PathBuf>,
    },
    /// There is no such directory.
    #[error("there is no directory `{}`", path.display())]
    NoDirectory {
        /// The path.
        path: PathBuf,
    },
    /// A directory or file could not be read or written.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The metadata are signed: rewriting them would break the signature.
    #[error("`{}` is signed: a new digest would break its signature", path.display())]
    Signed {
        /// The metadata.
        path: PathBuf,
    },
    /// The metadata are no JSON object.
    #[error("`{}` is malformed", path.display())]
    Malformed {
        /// The metadata.
        path: PathBuf,
        /// What is wrong with them.
        #[source]
        source: MetadataError,
    },
    /// A file of the variant could not be hashed.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

impl HashError {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoVariants { .. } => Some("`kiln build` makes them"),
            Self::Signed { .. } => Some("`--force` rewrites it all the same; sign it again afterwards"),
            _ => None,
        }
    }
}

fn list(places: &[PathBuf]) -> String {
    places.iter().map(|place| format!("`{}`", place.display())).collect::<Vec<_>>().join(", ")
}

/// A finished variant on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantDir {
    /// The directory's name; not checked to be a variant's.
    pub name: String,
    /// The directory.
    pub path: PathBuf,
}

/// The finished variants of the project or output directory `dir`, sorted by name. Directories under construction are none.
///
/// # Errors
/// When `dir` is no directory or there are none.
pub fn find_variants(dir: &Path) -> Result<Vec<VariantDir>, HashError> {
    if !dir.is_dir() {
        return Err(HashError::NoDirectory { path: dir.to_owned() });
    }
    let places = [dir.join("result"), dir.join("build"), dir.to_owned()];
    for place in &places {
        let Ok(entries) = fs::read_dir(place) else { continue };
        let mut found: Vec<VariantDir> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some(VariantDir { name: entry.file_name().into_string().ok()?, path: entry.path() }))
            .filter(|variant| !is_staging_name(&variant.name) && variant.path.join(METADATA).is_file())
            .collect();
        if !found.is_empty() {
            found.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(found);
        }
    }
    Err(HashError::NoVariants { places: places.into() })
}

/// What [`rehash`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehashed {
    /// The digest was right already; nothing was written.
    Unchanged,
    /// The metadata were rewritten.
    Rewritten,
}

/// Hashes the files of `variant` and writes the digest into its metadata, all other keys kept. Signed metadata are rewritten with
/// `force` only.
///
/// # Errors
/// When the metadata are signed or malformed, or a file cannot be read or written.
pub fn rehash(variant: &Path, force: bool) -> Result<Rehashed, HashError> {
    let path = variant.join(METADATA);
    let old = fs::read_to_string(&path).map_err(|source| HashError::Io { what: "read", path: path.clone(), source })?;
    // A rewriting that was killed must not end up in the digest.
    remove_unfinished_files(variant);
    let digest = Digest::of_directory(variant, DigestAlgorithm::Sha256)?;
    let new = with_digest(&old, &digest).map_err(|source| HashError::Malformed { path: path.clone(), source })?;
    if new == old {
        return Ok(Rehashed::Unchanged);
    }
    if !force && fs::symlink_metadata(variant.join(SIGNATURE)).is_ok() {
        return Err(HashError::Signed { path });
    }
    write_file(&path, |file| file.write_all(new.as_bytes())).map_err(|source| HashError::Io { what: "write", path, source })?;
    Ok(Rehashed::Rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "name": "relu",
  "id": "_relu_cpu_1",
  "own-key": [1, 2],
  "backend": {"type": "cpu"}
}
"#;

    fn variant(out: &Path, name: &str) -> PathBuf {
        let dir = out.join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(METADATA), TEXT).unwrap();
        fs::write(dir.join("__init__.py"), "x = 1\n").unwrap();
        dir
    }

    #[test]
    fn places_in_order() {
        let tmp = tempfile::tempdir().unwrap();
        let names = |dir: &Path| find_variants(dir).map(|v| v.into_iter().map(|v| v.name).collect::<Vec<_>>());
        let error = names(tmp.path()).unwrap_err();
        assert!(error.to_string().starts_with("no variants found: none of `"), "{error}");
        assert_eq!(error.hint(), Some("`kiln build` makes them"));
        variant(tmp.path(), "torch-cpu");
        assert_eq!(names(tmp.path()).unwrap(), ["torch-cpu"]);
        for name in ["b", "a", ".kiln-tmp-abcdef-c"] {
            variant(&tmp.path().join("build"), name);
        }
        fs::create_dir(tmp.path().join("build/empty")).unwrap();
        assert_eq!(names(tmp.path()).unwrap(), ["a", "b"]);
        variant(&tmp.path().join("result"), "r");
        assert_eq!(names(tmp.path()).unwrap(), ["r"]);
    }

    #[test]
    fn unknown_keys_stay_and_the_second_time_is_quiet() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = variant(tmp.path(), "v");
        assert_eq!(rehash(&dir, false).unwrap(), Rehashed::Rewritten);
        let text = fs::read_to_string(dir.join(METADATA)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["own-key"], serde_json::json!([1, 2]));
        assert_eq!(value["digest"]["files"], serde_json::json!({"__init__.py": "nia/NpkRxFwkPGhBR7I/yeHc/PJX0pmhxjIBam/NM/Q="}));
        // What a killed run leaves is neither hashed nor kept.
        fs::write(dir.join(".kiln-tmp-abcdef"), "{").unwrap();
        assert_eq!(rehash(&dir, false).unwrap(), Rehashed::Unchanged);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    }

    #[test]
    fn signed_metadata_need_force() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = variant(tmp.path(), "v");
        fs::write(dir.join(SIGNATURE), "{}").unwrap();
        let error = rehash(&dir, false).unwrap_err();
        assert!(matches!(error, HashError::Signed { .. }) && error.hint().is_some());
        assert_eq!(fs::read_to_string(dir.join(METADATA)).unwrap(), TEXT);
        assert_eq!(rehash(&dir, true).unwrap(), Rehashed::Rewritten);
        // Right already: nothing to break.
        assert_eq!(rehash(&dir, false).unwrap(), Rehashed::Unchanged);
    }

    #[test]
    fn malformed_metadata_are_named() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = variant(tmp.path(), "v");
        fs::write(dir.join(METADATA), "[]").unwrap();
        assert!(matches!(rehash(&dir, true).unwrap_err(), HashError::Malformed { .. }));
        fs::remove_file(dir.join(METADATA)).unwrap();
        assert!(matches!(rehash(&dir, true).unwrap_err(), HashError::Io { what: "read", .. }));
    }
}
