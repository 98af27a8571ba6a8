//! An existing Python that has torch, as a provider of the torch toolchain (`--torch-from PYTHON`).
//!
//! The Python is asked once where its packages are, importing nothing but `sysconfig`; torch is never imported. What it says
//! and what torch's libraries export is kept in the cache directory, and believed as long as the files are the same.

mod ask;
mod exports;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kiln_format::Version;
use kiln_graph::{PathRef, RootBinding, RootKind, RootName};

use crate::names::LibraryExports;
use crate::toolchain::{CxxLevel, Provider, TorchToolchain};
use crate::version_py::VersionPy;

/// The oldest torch whose headers and limited-API registration kernels can be built with.
const OLDEST: (u64, u64) = (2, 9);

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
}

/// The torch of a Python.
#[derive(Clone, Debug)]
pub struct SystemTorch {
    /// The toolchain.
    pub toolchain: TorchToolchain,
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
            Self::NotPython { .. } | Self::Cache { .. } => None,
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
    let Some(site_packages) = answer.packages.iter().find(|dir| dir.join("torch/version.py").is_file()) else {
        return Err(SystemError::NoTorch { python, directories: answer.packages });
    };
    let damaged = |reason: String| SystemError::Damaged { site_packages: site_packages.clone(), reason };
    let version_py = std::fs::read_to_string(site_packages.join("torch/version.py")).map_err(|cause| damaged(cause.to_string()))?;
    let VersionPy { version, cuda, .. } = VersionPy::parse(&version_py).map_err(damaged)?;
    if (version.major(), version.minor()) < OLDEST {
        return Err(SystemError::TooOld { python, version });
    }
    for dir in INCLUDE_DIRS {
        if !site_packages.join(dir).is_dir() {
            return Err(damaged(format!("it has no `{dir}`")));
        }
    }
    let exports = exports::read(site_packages, search.cache_dir)?;
    let identity = identity(&version_py, &record(site_packages), &exports);
    let root = RootName::new(format!("torch-{version}-system-{}", identity.get(..16).unwrap_or(&identity)));
    let toolchain = TorchToolchain {
        cxx_level: CxxLevel::of_torch(&version),
        include_dirs: INCLUDE_DIRS.iter().map(|dir| PathRef { root: root.clone(), path: (*dir).to_owned() }).collect(),
        binding: RootBinding { dir: site_packages.clone(), kind: RootKind::Mutable },
        provider: Provider::System { python, site_packages: site_packages.clone() },
        version,
        cuda,
        root,
        exports,
        identity,
        terms: Vec::new(),
    };
    Ok(SystemTorch { toolchain, python_include: answer.include, probes })
}

const INCLUDE_DIRS: &[&str] = &["torch/include", "torch/include/torch/csrc/api/include"];

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
