//! The files of a variant directory but for its metadata.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use kiln_format::build::Framework;
use kiln_format::{Build, Digest, DigestAlgorithm, OpsId};

use super::METADATA;
use super::error::{PackageError, io_error};
use crate::ops_py;
use crate::shipped::shipped_files;

/// Where a file's bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) source: Source,
    pub(super) executable: bool,
}

impl Entry {
    pub(super) fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// The files of a variant directory but for its metadata: relative path to content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub(super) files: BTreeMap<String, Entry>,
}

impl Contents {
    /// The files of a variant: those of the package of the project in `root` that are shipped, and `_ops.py`; for a compiled variant
    /// also the shared object in the file `library`, under the name that comes with it.
    ///
    /// # Errors
    /// When a file of the package cannot be shipped, or has the name of the shared object.
    pub fn collect(root: &Path, build: &Build, id: &OpsId, library: Option<(&Path, &str)>) -> Result<Self, PackageError> {
        let package = format!("{}/{}", build.ext_dir(), build.python_name());
        let shipped = shipped_files(root, &package, &build.shipped_extensions())?;
        let mut files: BTreeMap<String, Entry> =
            shipped.into_iter().map(|(name, path)| (name, Entry { source: Source::File(path), executable: false })).collect();
        let ops = match (library, &build.framework) {
            (Some(_), Framework::TvmFfi(_)) => ops_py::tvm_ffi(id.as_str()),
            (Some(_), _) => ops_py::torch(id.as_str()),
            (None, _) => ops_py::torch_noarch(id.as_str()),
        };
        files.insert(ops_py::FILE_NAME.to_owned(), Entry { source: Source::Bytes(ops.into_bytes()), executable: false });
        if let Some((path, name)) = library {
            // Python would find a module or package of the same stem in place of the shared object, or beside it.
            if let Some(clash) = files.keys().find(|file| file.split(['.', '/']).next() == Some(id.as_str())) {
                return Err(PackageError::Clash { name: clash.clone() });
            }
            files.insert(name.to_owned(), Entry { source: Source::File(path.to_owned()), executable: true });
        }
        Ok(Self { files })
    }

    /// The relative paths, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The hash of every file.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self) -> Result<Digest, PackageError> {
        let algorithm = DigestAlgorithm::Sha256;
        let hash = |entry: &Entry| match &entry.source {
            Source::Bytes(bytes) => algorithm.hash(bytes.as_slice()).map_err(|source| io_error("hash", Path::new(METADATA), source)),
            Source::File(path) => File::open(path).and_then(|file| algorithm.hash(file)).map_err(|source| io_error("read", path, source)),
        };
        let files = self.files.iter().map(|(name, entry)| Ok((name.clone(), hash(entry)?))).collect::<Result<_, PackageError>>()?;
        Ok(Digest { algorithm, files })
    }
}
