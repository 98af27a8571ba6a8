//! An existing Python that has torch, as a provider of the torch toolchain (`--torch-from PYTHON`).
//!
//! The Python is asked once where its packages are, importing nothing but `sysconfig`; torch is never imported. What it says
//! and what torch's libraries export is kept in the cache directory, and believed as long as the files are the same. Virtual
//! environments, conda's and the system's Pythons differ in where torch's parts are; `place` knows.

mod ask;
mod exports;
mod place;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use kiln_format::Version;
use kiln_graph::{Interrupt, PathRef, RootBinding, RootKind, RootName};

use crate::names::LibraryExports;
use crate::toolchain::{CxxLevel, Provider, TorchToolchain};
use crate::version_py::VersionPy;

/// The oldest torch whose headers and limited-API registration kernels can be built with.
const OLDEST: (u64, u64) = (2, 9);

/// How long a Python may take to say where its packages are, and a compiler for one answer: on a network's file system the start alone takes many seconds.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Which Python, and what is needed to ask it.
#[derive(Clone, Copy, Debug)]
pub struct SystemSearch<'a> {
    /// The Python: a path, or a name on PATH.
    pub python: &'a Path,
    /// The value of `PATH`.
    pub path: &'a OsStr,
    /// What the process gets beside `PATH` (`HOME`).
    pub ambient: &'a [(OsString, OsString)],
    /// Where to keep what was found. Made when missing.
    pub cache_dir: &'a Path,
    /// How long the Python may take to answer; usually [`ANSWER_LIMIT`].
    pub limit: Duration,
    /// Ends the wait for an answer.
    pub interrupt: &'a Interrupt,
}

/// The torch of a Python.
#[derive(Clone, Debug)]
pub struct SystemTorch {
    /// The toolchain.
    pub toolchain: TorchToolchain,
    /// The release of the Python: `3.11.7`.
    pub python_version: String,
    /// The directory of Python's own headers. It need not exist.
    pub python_include: PathBuf,
    /// How many processes were started: 0 or 1.
    pub probes: u32,
}

/// Why a Python cannot provide torch.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// There is no such program.
    #[error("there is no Python `{}`", python.display())]
    NoPython {
        /// What was named.
        python: PathBuf,
    },
    /// It does not do what a Python does.
    #[error("`{}` does not work as a Python: {reason}", python.display())]
    NotPython {
        /// The program.
        python: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It has no torch.
    #[error("the Python `{}` has no torch: {}", python.display(), looked(.directories))]
    NoTorch {
        /// The Python.
        python: PathBuf,
        /// Its release: `3.11.7`.
        version: String,
        /// The package directories that were looked into.
        directories: Vec<PathBuf>,
    },
    /// Its torch is too old.
    #[error("the Python `{}` has torch {version}, which is older than {}.{}", python.display(), OLDEST.0, OLDEST.1)]
    TooOld {
        /// The Python.
        python: PathBuf,
        /// The release that it has.
        version: Version,
    },
    /// Its torch is incomplete or damaged.
    #[error("the torch in `{}` cannot be used: {reason}", site_packages.display())]
    Damaged {
        /// The directory that holds `torch/`.
        site_packages: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The user does not want to wait for its answer.
    #[error("interrupted while a Python was asked")]
    Interrupted,
    /// The cache cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

fn looked(directories: &[PathBuf]) -> String {
    let directories: Vec<String> = directories.iter().map(|dir| format!("`{}`", dir.display())).collect();
    format!("no `torch/version.py` in {}", directories.join(" or "))
}

impl SystemError {
    /// What the user can do about it; to be printed after the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoPython { .. } => Some("give the path of a Python interpreter, such as `.venv/bin/python`".to_owned()),
            Self::NoTorch { .. } => {
                Some("install torch into it, or leave out `--torch-from`: wheels of torch are read without being installed".to_owned())
            }
            Self::TooOld { .. } => Some("install a newer torch into it, or leave out `--torch-from`".to_owned()),
            Self::Damaged { .. } => Some("install torch again".to_owned()),
            Self::Cache { .. } => {
                Some("what is known of a Python is kept in the cache directory: `--cache-dir DIR` chooses another".to_owned())
            }
            Self::NotPython { .. } | Self::Interrupted => None,
        }
    }

    fn cache(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Cache { path: path.to_owned(), source }
    }
}

/// The torch toolchain of a Python. Its files may change at any time, so each one that is read counts by its content.
///
/// # Errors
/// When there is no such Python, or it has no usable torch.
pub fn torch_from(search: &SystemSearch<'_>) -> Result<SystemTorch, SystemError> {
    let python = ask::resolve(search)?;
    let (answer, probes) = ask::ask(&python, search)?;
    let Some(torch) = place::find(&answer) else {
        let version = answer.version;
        let (there, not): (Vec<_>, Vec<_>) = answer.packages.into_iter().partition(|dir| dir.is_dir());
        return Err(SystemError::NoTorch { python, version, directories: if there.is_empty() { not } else { there } });
    };
    let damaged = |reason: String| SystemError::Damaged { site_packages: torch.site.clone(), reason };
    let version_py = std::fs::read_to_string(torch.package.join("version.py")).map_err(|cause| damaged(cause.to_string()))?;
    let VersionPy { version, cuda, .. } = VersionPy::parse(&version_py).map_err(damaged)?;
    if (version.major(), version.minor()) < OLDEST {
        return Err(SystemError::TooOld { python, version });
    }
    let (dir, include_dirs) = torch.headers(&answer).map_err(damaged)?;
    let libraries = torch.libraries(&answer).map_err(damaged)?;
    let exports = exports::read(&torch.site, &libraries, search.cache_dir)?;
    let identity = identity(&version_py, &record(&torch.site), &exports);
    let root = RootName::new(format!("torch-{version}-system-{}", identity.get(..16).unwrap_or(&identity)));
    let toolchain = TorchToolchain {
        cxx_level: CxxLevel::of_torch(&version),
        include_dirs: include_dirs.map(|dir| PathRef { root: root.clone(), path: dir.to_owned() }).into(),
        binding: RootBinding { dir, kind: RootKind::Mutable },
        provider: Provider::System { python, site_packages: torch.site },
        version,
        cuda,
        root,
        exports,
        identity,
        terms: Vec::new(),
        stand_in: None,
        addition: None,
    };
    Ok(SystemTorch { toolchain, python_version: answer.version, python_include: answer.include, probes })
}

/// The text of torch's `RECORD`: every file of the installation with its digest. Empty for one that has none (a build from
/// source).
fn record(site_packages: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(site_packages).into_iter().flatten().flatten();
    let mut records: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("torch-") && name.ends_with(".dist-info")))
        .map(|entry| entry.path().join("RECORD"))
        .collect();
    records.sort();
    records.iter().flat_map(|path| std::fs::read(path).unwrap_or_default()).collect()
}

/// Changes with torch's own version file, its record of files, and what its libraries export.
fn identity(version_py: &str, record: &[u8], exports: &[LibraryExports]) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    };
    add(version_py.as_bytes());
    add(record);
    for library in exports {
        add(library.soname.as_bytes());
        add(library.names.digest().as_bytes());
    }
    HEXLOWER.encode(hasher.finalize().as_bytes())
}
