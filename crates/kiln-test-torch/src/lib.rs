//! Test only: lets a CUDA build of torch be imported, and compute on the CPU, where no CUDA library is.
//!
//! The wheels of torch need a dozen CUDA libraries just to be loaded. [`missing`] reads from torch's own libraries
//! which ones are absent and what is wanted of them; [`build`] makes loadable libraries with just those names. They
//! say "no device" ([`code`]) and do nothing else. They are no substitute for CUDA in any test of device code.

mod build;
mod missing;

use std::path::{Path, PathBuf};

pub use build::{build, code};
pub use missing::{Missing, Name, missing};

/// Why the libraries could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory or file could not be read or written.
    #[error("`{}`: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// A library of torch could not be read.
    #[error("`{}`: {cause}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: kiln_object::Error,
    },
    /// No run path of torch leads to a CUDA library directory.
    #[error("`{}` has no run path to a CUDA library directory", path.display())]
    NoDirectory {
        /// The library whose run paths were looked at.
        path: PathBuf,
    },
    /// The C compiler failed.
    #[error("cannot build `{soname}`: {message}")]
    Compiler {
        /// The library.
        soname: String,
        /// What the compiler said.
        message: String,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io { path, cause }
    }
}

/// The directory in `site_packages` where torch looks for its CUDA libraries: libraries that are put there are found
/// without any environment variable.
///
/// # Errors
/// When there is no torch, or its run paths (`$ORIGIN/../../nvidia/cu13/lib`) name no such directory.
pub fn library_dir(site_packages: &Path) -> Result<PathBuf, Error> {
    let path = site_packages.join("torch/lib/libtorch_cpu.so");
    let library = kiln_object::elf::dynamic_file(&path).map_err(|cause| Error::Object { path: path.clone(), cause })?;
    let entries = library.rpath.iter().chain(&library.runpath).flat_map(|paths| paths.split(':'));
    let inside = entries.filter_map(|entry| entry.strip_prefix("$ORIGIN/../../"));
    let mut toolkits = inside.filter(|entry| entry.starts_with("nvidia/cu") && entry.split('/').nth(1).is_some_and(is_toolkit));
    toolkits.next_back().map(|entry| site_packages.join(entry)).ok_or(Error::NoDirectory { path })
}

/// `cu13`, not `cudnn`.
fn is_toolkit(name: &str) -> bool {
    name.strip_prefix("cu").is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
