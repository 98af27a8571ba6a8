//! Assembles a variant directory and puts it in place whole.
//!
//! A directory holds the shipped files of the Python package, the generated `_ops.py`, the shared object of a compiled variant, and
//! `metadata.json` with the digest of all others. Equal contents give equal bytes, names and modes; a directory that already has
//! them is not touched at all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kiln_format::build::Framework;
use kiln_format::metadata::{Builder, Commit, LoaderVersion, MetadataBackend, Provenance};
use kiln_format::variant::Os;
use kiln_format::{BackendName, Build, Digest, DigestAlgorithm, Metadata, OpsId};
use thiserror::Error;

use crate::git::Scm;
use crate::matrix::Kind;
use crate::ops_py;
use crate::replace::{ReplaceError, Staging};
use crate::shipped::{ShippedError, shipped_files};

/// Name of the metadata file.
pub const METADATA: &str = "metadata.json";

/// A variant directory could not be assembled or put in place.
#[derive(Debug, Error)]
pub enum PackageError {
    /// A file of the package cannot be shipped.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// A file could not be read or written.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file had another content when it was copied than when it was hashed.
    #[error("`{}` changed while it was packaged", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The project has no licence, which metadata need.
    #[error("`general.license` is missing: published metadata need it")]
    NoLicense,
    /// Two files want one name.
    #[error("`{name}` of the package has the name of a generated file")]
    Clash {
        /// The name.
        name: String,
    },
    /// The directory could not be made or put in place.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

/// Where a file's bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Bytes(Vec<u8>),
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    source: Source,
    executable: bool,
}

impl Entry {
    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// The files of a variant directory but for its metadata: relative path to content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    files: BTreeMap<String, Entry>,
}

/// The file name of a compiled torch variant's shared object on `os`.
pub fn library_name(id: &OpsId, os: Os) -> String {
    match os {
        Os::Linux | Os::Darwin => format!("{id}.abi3.so"),
        Os::Windows => format!("{id}.pyd"),
    }
}

impl Contents {
    /// The files of a variant: those of the package of the project in `root` that are shipped, and `_ops.py`; for a compiled variant
    /// also the shared object in the file `library`, under the name that `os` wants.
    ///
    /// # Errors
    /// When a file of the package cannot be shipped, or has the name of the shared object.
    pub fn collect(root: &Path, build: &Build, id: &OpsId, library: Option<(&Path, Os)>) -> Result<Self, PackageError> {
        let package = format!("{}/{}", build.ext_dir(), build.python_name());
        let shipped = shipped_files(root, &package, &build.shipped_extensions())?;
        let mut files: BTreeMap<String, Entry> =
            shipped.into_iter().map(|(name, path)| (name, Entry { source: Source::File(path), executable: false })).collect();
        let ops = match library {
            Some(_) => ops_py::torch(id.as_str()),
            None => ops_py::torch_noarch(id.as_str()),
        };
        files.insert(ops_py::FILE_NAME.to_owned(), Entry { source: Source::Bytes(ops.into_bytes()), executable: false });
        if let Some((path, os)) = library {
            let name = library_name(id, os);
            // Python would find a module or package of the same stem in place of the shared object, or beside it.
            if let Some(clash) = files.keys().find(|file| file.split(['.', '/']).next() == Some(id.as_str())) {
                return Err(PackageError::Clash { name: clash.clone() });
            }
            files.insert(name, Entry { source: Source::File(path.to_owned()), executable: true });
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

fn io_error(what: &'static str, path: &Path, source: io::Error) -> PackageError {
    PackageError::Io { what, path: path.to_owned(), source }
}

/// Who builds, and from which state of the project.
pub fn provenance(builder: Builder, scm: &Scm, dirty: bool) -> Provenance {
    let kernel = match scm {
        Scm::Git(state) => state.commit.parse().ok().map(|id| Commit { id, dirty }),
        Scm::None | Scm::Unusable(_) => None,
    };
    Provenance { builder, kernel }
}

/// The metadata of a variant, without the digest. `archs` are the architectures that were compiled, in order; empty where the backend
/// has none. A noarch variant's are what `build.toml` restricts it to.
///
/// # Errors
/// When the project has no licence.
pub fn metadata(
    build: &Build,
    backend: BackendName,
    kind: Kind,
    id: &OpsId,
    archs: &[String],
    provenance: Provenance,
) -> Result<Metadata, PackageError> {
    let general = &build.general;
    let license = general.license.as_ref().ok_or(PackageError::NoLicense)?;
    let kernel_depends: Vec<_> = build.kernel_depends_for(backend).into_iter().cloned().collect();
    let archs = match kind {
        Kind::Noarch => noarch_archs(build, backend),
        _ if archs.is_empty() => None,
        _ => Some(archs.to_vec()),
    };
    Ok(Metadata {
        name: general.name.value.clone(),
        id: id.as_str().to_owned(),
        version: general.version.value,
        kernels_minver: Some(LoaderVersion::needed_for(&kernel_depends)),
        license: license.value.clone(),
        upstream: general.upstream.as_ref().map(|url| url.value.clone()),
        source: general.source.as_ref().map(|url| url.value.clone()),
        python_depends: build.python_depends_for(backend).into_iter().map(|depends| depends.name().to_owned()).collect(),
        kernel_depends,
        backend: MetadataBackend { kind: backend, archs },
        digest: None,
        provenance: Some(provenance),
    })
}

fn noarch_archs(build: &Build, backend: BackendName) -> Option<Vec<String>> {
    let Framework::TorchNoarch(noarch) = &build.framework else { return None };
    match backend {
        BackendName::Cuda => noarch.cuda_capabilities.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        BackendName::Rocm => noarch.rocm_archs.as_ref().map(|archs| archs.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}

/// What [`place`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The directory had the same contents and was not touched.
    Unchanged,
    /// There was none before.
    New,
    /// The old one was replaced.
    Replaced,
}

/// Puts the directory `out/variant` in place, whole or not at all. The digest of `contents` is added to `metadata`.
///
/// # Errors
/// When a file cannot be read or written; what was in place is then still there.
pub fn place(out: &Path, variant: &str, contents: &Contents, metadata: &Metadata) -> Result<Placed, PackageError> {
    let digest = contents.digest()?;
    let text = Metadata { digest: Some(digest.clone()), ..metadata.clone() }.to_json();
    let mut all = contents.clone();
    all.files.insert(METADATA.to_owned(), Entry { source: Source::Bytes(text.into_bytes()), executable: false });

    let dir = out.join(variant);
    if is_equal(&dir, &all, &digest) {
        return Ok(Placed::Unchanged);
    }
    let existed = fs::symlink_metadata(&dir).is_ok();
    let staging = Staging::new(out, variant)?;
    for (name, entry) in &all.files {
        write(staging.path(), name, entry, digest.files.get(name))?;
    }
    staging.commit()?;
    Ok(if existed { Placed::Replaced } else { Placed::New })
}

fn write(dir: &Path, name: &str, entry: &Entry, hash: Option<&String>) -> Result<(), PackageError> {
    let path = dir.join(name);
    let error = |source| io_error("write", &path, source);
    make_parents(dir, name).map_err(error)?;
    let mut file = File::create_new(&path).map_err(error)?;
    match &entry.source {
        Source::Bytes(bytes) => file.write_all(bytes).map_err(error)?,
        Source::File(from) => {
            let input = File::open(from).map_err(|source| io_error("read", from, source))?;
            // Hashed again on the way: the digest must be that of the bytes that were written.
            let mut copy = Copy { input, output: &mut file };
            let written = DigestAlgorithm::Sha256.hash(&mut copy).map_err(error)?;
            if hash != Some(&written) {
                return Err(PackageError::Changed { path: from.clone() });
            }
        }
    }
    file.set_permissions(fs::Permissions::from_mode(entry.mode())).map_err(error)
}

/// The directories of a file, with the mode that every directory has, whatever the umask.
fn make_parents(dir: &Path, name: &str) -> io::Result<()> {
    let mut at = dir.to_owned();
    let parents = name.rsplit_once('/').map_or("", |(parents, _)| parents);
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        at.push(part);
        match fs::create_dir(&at) {
            Ok(()) => fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A reader that also writes what it reads.
struct Copy<'a> {
    input: File,
    output: &'a mut File,
}

impl Read for Copy<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.output.write_all(buffer.get(..length).unwrap_or_default())?;
        Ok(length)
    }
}

/// Whether `dir` holds exactly these files with these bytes and modes, and nothing else. Anything that cannot be read is a difference.
fn is_equal(dir: &Path, contents: &Contents, digest: &Digest) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) && compare(dir, contents, digest).unwrap_or(false)
}

fn compare(dir: &Path, contents: &Contents, digest: &Digest) -> io::Result<bool> {
    let mut seen = 0;
    let mut pending = vec![(dir.to_owned(), String::new())];
    while let Some((at, prefix)) = pending.pop() {
        if fs::symlink_metadata(&at)?.permissions().mode() & 0o7777 != 0o755 {
            return Ok(false);
        }
        let mut entries = 0;
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            entries += 1;
            let Ok(name) = entry.file_name().into_string() else { return Ok(false) };
            let (name, meta) = (format!("{prefix}{name}"), fs::symlink_metadata(entry.path())?);
            if meta.is_dir() {
                pending.push((entry.path(), format!("{name}/")));
                continue;
            }
            let Some(wanted) = contents.files.get(&name) else { return Ok(false) };
            if !meta.is_file() || meta.permissions().mode() & 0o7777 != wanted.mode() {
                return Ok(false);
            }
            seen += 1;
            let equal = match (&wanted.source, digest.files.get(&name)) {
                (Source::Bytes(bytes), _) => meta.len() == bytes.len() as u64 && fs::read(entry.path())? == *bytes,
                (Source::File(_), Some(hash)) => digest.algorithm.hash(File::open(entry.path())?)? == *hash,
                (Source::File(_), None) => false,
            };
            if !equal {
                return Ok(false);
            }
        }
        if entries == 0 {
            return Ok(false);
        }
    }
    Ok(seen == contents.files.len())
}
