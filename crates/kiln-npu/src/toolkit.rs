//! What an installation of CANN is.
//!
//! Where its parts lie is discovery's knowledge. Nothing of it is run to find out what it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::{Candidate, identity, loaded_beside};
use kiln_backend::{LibraryExports, MajorMinor, NameSet, PathRef, RootBinding, RootKind, RootName, Version};

/// The variable by which `bisheng` finds the rest of its toolkit.
const HOME: &str = "ASCEND_HOME_PATH";
/// The variable by which the libraries of `bisheng` find others.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// The library that extensions are linked with.
const RUNTIME: &str = "libascendcl.so";
/// The static library behind what `bisheng` makes of a launch.
const LAUNCH: &str = "libascendc_runtime.a";

/// A CANN toolkit: `bisheng`, the headers of AscendCL, and the names of its run time.
#[derive(Clone, Debug)]
pub struct NpuToolkit {
    /// The release, by its own files.
    pub version: Version,
    /// What it was found by.
    pub origin: String,
    /// The compiler of device sources, absolute.
    pub bisheng: PathBuf,
    /// What it needs of its environment to find its own parts: directories, by variable.
    pub environment: BTreeMap<String, PathBuf>,
    /// Name of the root that its directories are relative to.
    pub root: RootName,
    /// Where that root lies, and how its files count.
    pub binding: RootBinding,
    /// The directories with AscendCL's headers.
    pub include_dirs: Vec<PathRef>,
    /// The static library with what launches need, where it has one.
    pub launch: Option<PathRef>,
    /// AscendCL. It loads others of the toolkit, and what these have an extension has by it.
    pub runtime: LibraryExports,
    /// Digest of its programs, libraries and headers, as lower-case hexadecimal text.
    pub identity: String,
}

/// Why an installation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    /// Files that it needs are not there.
    #[error("the CANN toolkit in `{}` lacks {}", dir.display(), missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))]
    Incomplete {
        /// The directory.
        dir: PathBuf,
        /// The missing parts.
        missing: Vec<String>,
    },
    /// A file is there and cannot be used.
    #[error("the CANN toolkit in `{}` cannot be used: `{file}`: {reason}", dir.display())]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// The file below it.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ToolkitError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Incomplete { .. } => Some("Huawei's installer of the CANN toolkit brings all of it".to_owned()),
            Self::Damaged { .. } => None,
        }
    }
}

fn damaged(kit: &Candidate, file: &Path, reason: String) -> ToolkitError {
    let file = file.strip_prefix(&kit.root).unwrap_or(file).display().to_string();
    ToolkitError::Damaged { dir: kit.root.clone(), file, reason }
}

impl NpuToolkit {
    /// Whether an installation has all that compiling needs.
    ///
    /// # Errors
    /// When parts are missing, all of which are named.
    pub fn check(kit: &Candidate) -> Result<(), ToolkitError> {
        let missing: Vec<String> = kit.lacks.iter().filter(|lack| lack.must).map(|lack| lack.name.to_owned()).collect();
        if missing.is_empty() { Ok(()) } else { Err(ToolkitError::Incomplete { dir: kit.root.clone(), missing }) }
    }

    /// The installation that was found as `kit`. What was found out of its files is kept in `cache_dir`.
    ///
    /// # Errors
    /// When it lacks a part, or one cannot be read.
    pub fn of_machine(kit: &Candidate, cache_dir: &Path) -> Result<Self, ToolkitError> {
        Self::check(kit)?;
        let damaged = |file: &Path, reason: String| damaged(kit, file, reason);
        let part = |name: &str| kit.part(name).ok_or_else(|| damaged(Path::new(name), "it is missing".to_owned()));
        let version = kit.version.clone().ok_or_else(|| damaged(Path::new("version.cfg"), "it tells no release".to_owned()))?;
        let identity = identity(kit, cache_dir).map_err(|cause| damaged(Path::new("."), cause.to_string()))?;
        let root = RootName::new(format!("cann-{}-{}", version.major_minor(), identity.get(..16).unwrap_or(&identity)));
        let place = |path: &Path| {
            let relative = path.strip_prefix(&kit.root).ok().and_then(Path::to_str);
            let relative = relative.ok_or_else(|| damaged(path, "its path is not UTF-8".to_owned()))?;
            Ok(PathRef { root: root.clone(), path: relative.to_owned() })
        };
        let libraries = part(RUNTIME)?.parent().unwrap_or(&kit.root).to_owned();
        let home = libraries.parent().unwrap_or(&kit.root).to_owned();
        Ok(Self {
            version,
            origin: kit.origin.to_string(),
            bisheng: part("bisheng")?.to_owned(),
            environment: BTreeMap::from([(HOME.to_owned(), home), (LIBRARY_PATH.to_owned(), libraries)]),
            include_dirs: kit.include_dirs().iter().map(|dir| place(dir)).collect::<Result<_, _>>()?,
            launch: kit.part(LAUNCH).map(&place).transpose()?,
            runtime: Self::runtime(kit)?,
            binding: RootBinding { dir: kit.root.clone(), kind: RootKind::Mutable },
            root,
            identity,
        })
    }

    /// AscendCL of an installation, with the names of all libraries beside it that it loads: whoever needs it has these too.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn runtime(kit: &Candidate) -> Result<LibraryExports, ToolkitError> {
        let first = kit.part(RUNTIME).unwrap_or(Path::new(RUNTIME));
        let libraries = loaded_beside(first).map_err(|(library, cause)| damaged(kit, &library, cause.to_string()))?;
        let soname = libraries.first().and_then(|library| library.soname.clone());
        let soname = soname.ok_or_else(|| damaged(kit, first, "it has no SONAME".to_owned()))?;
        let names = libraries.into_iter().flat_map(|library| library.exports).map(|export| export.name);
        Ok(LibraryExports { soname, names: Arc::new(NameSet::exact(names)) })
    }

    /// Major and minor.
    pub fn release(&self) -> MajorMinor {
        self.version.major_minor()
    }
}
