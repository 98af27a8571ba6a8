//! Recomputes the digests of finished variants.
//!
//! Variants are found by one rule, shared by every command that reads them: the first of `result`, `build` and the directory itself
//! that has a sub-directory with a `metadata.json`.

use std::fs;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kiln_format::metadata::{MetadataError, with_digest};
use kiln_format::variant::Variant;
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
    /// Directories with the names of variants have no metadata.
    #[error("{} no `metadata.json`", named(paths))]
    NoMetadata {
        /// The directories, sorted; at least one.
        paths: Vec<PathBuf>,
    },
    /// Something in a variant that no digest can say.
    #[error("`{}` {why}", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        why: &'static str,
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
            Self::NoMetadata { paths } if paths.len() > 1 => Some("`kiln build` makes them again; remove those that are none"),
            Self::NoMetadata { .. } => Some("`kiln build` makes it again; remove the directory if it is none"),
            Self::NoFile { .. } => Some("a variant holds plain files only: put one in its place, or remove it"),
            Self::Signed { .. } => Some("`--force` rewrites it all the same; sign it again afterwards"),
            _ => None,
        }
    }
}

/// The directories as the beginning of a sentence.
fn named(paths: &[PathBuf]) -> String {
    let has = if paths.len() == 1 { "has the name of a variant and" } else { "have the names of variants and" };
    format!("{} {has}", list(paths))
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
    match places.iter().map(|place| without_metadata(place)).find(|paths| !paths.is_empty()) {
        Some(paths) => Err(HashError::NoMetadata { paths }),
        None => Err(HashError::NoVariants { places: places.into() }),
    }
}

/// Like [`find_variants`], where none of their neighbours may lack its metadata: loaders find them by their names.
///
/// # Errors
/// As [`find_variants`], and [`HashError::NoMetadata`].
pub fn find_whole_variants(dir: &Path) -> Result<Vec<VariantDir>, HashError> {
    let found = find_variants(dir)?;
    let paths = found.first().and_then(|variant| variant.path.parent()).map(without_metadata).unwrap_or_default();
    if paths.is_empty() { Ok(found) } else { Err(HashError::NoMetadata { paths }) }
}

/// The directories in `place` that have the name of a variant and no metadata, sorted.
fn without_metadata(place: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(place).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.parse::<Variant>().is_ok()).collect();
    names.sort();
    names.iter().map(|name| place.join(name)).filter(|path| path.is_dir() && !path.join(METADATA).is_file()).collect()
}

/// What [`rehash`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehashed {
    /// The digest was right already; nothing was written.
    Unchanged,
    /// The metadata were rewritten.
    Rewritten,
}

/// Refuses what a digest cannot stand for. A digest takes the file that a link leads to under the link's name, which says nothing of
/// what others get when it lies elsewhere, and leaves out linked directories and what is no file.
pub(crate) fn check_plain(variant: &Path, dir: &Path) -> Result<(), HashError> {
    let io = |source| HashError::Io { what: "read", path: dir.to_owned(), source };
    let root = variant.canonicalize().map_err(io)?;
    let mut entries =
        fs::read_dir(dir).map_err(io)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(io)?;
    entries.sort();
    for path in entries {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        let why = match (fs::metadata(&path), path.canonicalize()) {
            (Err(_), _) | (_, Err(_)) if is_link => "is a link that leads nowhere",
            (Err(source), _) | (_, Err(source)) => return Err(HashError::Io { what: "read", path, source }),
            (Ok(meta), _) if is_link && meta.is_dir() => "is a link to a directory, whose files no digest holds",
            (_, Ok(target)) if is_link && !target.starts_with(&root) => "is a link that leaves the variant",
            (Ok(meta), _) if meta.is_dir() => {
                check_plain(variant, &path)?;
                continue;
            }
            (Ok(meta), _) if meta.is_file() => continue,
            _ => "is neither a file nor a directory",
        };
        return Err(HashError::NoFile { path, why });
    }
    Ok(())
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
    check_plain(variant, variant)?;
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
    fn a_neighbour_without_metadata_is_told() {
        let tmp = tempfile::tempdir().unwrap();
        let build = tmp.path().join("build");
        fs::create_dir_all(build.join("torch-cpu")).unwrap();
        let lacks = |error: HashError| matches!(error, HashError::NoMetadata { paths } if paths.len() == 1 && paths[0].ends_with("build/torch-cpu"));
        assert!(lacks(find_variants(tmp.path()).unwrap_err()));
        variant(&build, "torch-cuda");
        assert_eq!(find_variants(tmp.path()).unwrap().len(), 1);
        assert!(lacks(find_whole_variants(tmp.path()).unwrap_err()));
        fs::create_dir(build.join("torch-rocm")).unwrap();
        let both = find_whole_variants(tmp.path()).unwrap_err();
        let said = both.to_string().replace(&build.display().to_string(), "build");
        assert_eq!(said, "`build/torch-cpu`, `build/torch-rocm` have the names of variants and no `metadata.json`");
        fs::remove_dir(build.join("torch-rocm")).unwrap();
        fs::rename(build.join("torch-cpu"), build.join("benchmarks")).unwrap();
        assert_eq!(find_whole_variants(tmp.path()).unwrap().len(), 1);
    }

    #[test]
    fn links_and_pipes_are_refused_where_no_digest_holds_them() {
        use std::os::unix::fs::symlink;

        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let tmp = tempfile::tempdir().unwrap();
        let dir = variant(tmp.path(), "v");
        fs::create_dir(dir.join("sub")).unwrap();
        let refused = |why: &str| {
            let error = rehash(&dir, false).unwrap_err().to_string();
            assert_eq!(error, format!("`{}` {why}", dir.join("sub/x").display()));
            assert_eq!(fs::read_to_string(dir.join(METADATA)).unwrap(), TEXT);
            fs::remove_file(dir.join("sub/x")).unwrap();
        };
        fs::write(tmp.path().join("outside"), "").unwrap();
        for (target, why) in [
            ("../../outside", "is a link that leaves the variant"),
            ("nowhere", "is a link that leads nowhere"),
            ("x", "is a link that leads nowhere"),
            ("..", "is a link to a directory, whose files no digest holds"),
            ("/dev/null", "is a link that leaves the variant"),
        ] {
            symlink(target, dir.join("sub/x")).unwrap();
            refused(why);
        }
        mknodat(CWD, dir.join("sub/x"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        refused("is neither a file nor a directory");
        // As loaders do: by the link's name.
        symlink("../__init__.py", dir.join("sub/x")).unwrap();
        assert_eq!(rehash(&dir, false).unwrap(), Rehashed::Rewritten);
        assert!(fs::read_to_string(dir.join(METADATA)).unwrap().contains("\"sub/x\": \"nia/"));
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
