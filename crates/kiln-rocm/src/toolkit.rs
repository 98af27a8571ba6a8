//! What the ROCm in a directory is.
//!
//! Where its parts lie is discovery's knowledge. Nothing of it is run to find out what it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind, STARTER, clang_release, identity, of_this_machine};
use kiln_backend::{LibraryExports, MajorMinor, NameSet, PathRef, RootBinding, RootKind, RootName, Version, elf};

/// A ROCm: a HIP compiler with its headers, its device libraries and the names of its run time.
#[derive(Clone, Debug)]
pub struct RocmToolkit {
    /// The release, by its own files.
    pub version: Version,
    /// What it was found by.
    pub origin: String,
    /// The Clang that compiles, absolute.
    pub clang: PathBuf,
    /// Its release.
    pub clang_release: u64,
    /// The `hipcc` that it is started through, absolute; none where it is called itself.
    pub hipcc: Option<PathBuf>,
    /// Name of the root that its directories are relative to.
    pub root: RootName,
    /// Where that root lies, and how its files count.
    pub binding: RootBinding,
    /// Directories with headers for the host compiler, in order. Empty where they are in the compiler's own ones.
    pub include_dirs: Vec<PathRef>,
    /// The directory with the device libraries.
    pub device_libs: PathRef,
    /// The names of the files in it, ascending.
    pub device_lib_names: Vec<String>,
    /// Whether its thrust is AMD's; that of distributions is NVIDIA's and must be told that there is no CUDA.
    pub has_rocthrust: bool,
    /// The shared run time; its SONAME is that of the ROCm that variants are for.
    pub runtime: LibraryExports,
    /// Digest of what decides its results but for the headers, as lower-case hexadecimal text.
    pub identity: String,
}

/// Why a directory is no ROCm that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    /// Files that it needs are not there.
    #[error("the ROCm in `{}` lacks {}", dir.display(), missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))]
    Incomplete {
        /// The directory.
        dir: PathBuf,
        /// The missing parts.
        missing: Vec<String>,
    },
    /// A file is there and cannot be used.
    #[error("the ROCm in `{}` cannot be used: `{file}`: {reason}", dir.display())]
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
            Self::Incomplete { .. } => Some(
                "AMD's packages bring all of it; Debian's are `hipcc`, `libamdhip64-dev` and `rocm-device-libs`, with `clang` and `lld` of one release"
                    .to_owned(),
            ),
            Self::Damaged { .. } => None,
        }
    }
}

impl RocmToolkit {
    /// The program that units are compiled with.
    pub fn compiler(&self) -> &Path {
        self.hipcc.as_deref().unwrap_or(&self.clang)
    }

    /// What compiles, for people: `Clang 19`, `hipcc with Clang 15`.
    pub fn compiler_name(&self) -> String {
        let starter = if self.hipcc.is_some() { "hipcc with " } else { "" };
        format!("{starter}Clang {}", self.clang_release)
    }

    /// What this machine has in `environment` and its usual places, installations that lack something included; only what is in the
    /// directory that `named` tells, or around the compiler that it tells, if there is one, by the option's name.
    pub fn candidates(environment: &BTreeMap<String, String>, named: Option<(&str, &Path)>) -> Vec<Candidate> {
        of_this_machine(KitKind::Rocm, environment, named)
    }

    /// Whether a ROCm that was found has all that compiling needs.
    ///
    /// # Errors
    /// When parts are missing, all of which are named.
    pub fn check(kit: &Candidate) -> Result<(), ToolkitError> {
        let missing: Vec<String> = kit.lacks.iter().filter(|lack| lack.must).map(|lack| lack.name.to_owned()).collect();
        if missing.is_empty() { Ok(()) } else { Err(ToolkitError::Incomplete { dir: kit.root.clone(), missing }) }
    }

    /// The ROCm that was found as `kit`, for variants of `release`; what was found out about it is kept in `cache_dir`.
    ///
    /// # Errors
    /// When a part is missing, all of which are named, or damaged.
    pub fn of_machine(kit: &Candidate, release: MajorMinor, cache_dir: &Path) -> Result<Self, ToolkitError> {
        Self::check(kit)?;
        let damaged = |file: &Path, reason: String| {
            let file = file.strip_prefix(&kit.root).unwrap_or(file).display().to_string();
            ToolkitError::Damaged { dir: kit.root.clone(), file, reason }
        };
        let part = |name: &str| kit.part(name).ok_or_else(|| damaged(Path::new(name), "it is missing".to_owned()));
        let identity = identity(kit, cache_dir).map_err(|cause| damaged(Path::new("."), cause.to_string()))?;
        let version =
            kit.version.clone().ok_or_else(|| damaged(Path::new("include/hip/hip_version.h"), "it tells no release".to_owned()))?;
        let clang = part("clang++")?.to_owned();
        let clang_release = clang_release(&clang).ok_or_else(|| damaged(&clang, "its release is not known".to_owned()))?;
        let root = RootName::new(format!("rocm-{}-{}", version.major_minor(), identity.get(..16).unwrap_or(&identity)));
        let place = |path: &Path| {
            let relative = path.strip_prefix(&kit.root).ok().and_then(Path::to_str);
            let relative = relative.ok_or_else(|| damaged(path, "its path is not UTF-8".to_owned()))?;
            Ok(PathRef { root: root.clone(), path: relative.to_owned() })
        };
        let libs = part("ocml.bc")?.parent().unwrap_or(&kit.root).to_owned();
        let entries = std::fs::read_dir(&libs).map_err(|cause| damaged(&libs, cause.to_string()))?;
        let mut device_lib_names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.ends_with(".bc")).collect();
        device_lib_names.sort_unstable();
        let library = part("libamdhip64.so")?;
        let dynamic = elf::dynamic_file(library).map_err(|cause| damaged(library, cause.to_string()))?;
        let names = NameSet::exact(dynamic.exports.into_iter().map(|export| export.name));
        // The compiler's own directory, given as another one, is looked into too late for its `#include_next`.
        let include_dirs = kit.include_dirs();
        let include_dirs =
            include_dirs.iter().filter(|dir| *dir != Path::new("/usr/include")).map(|dir| place(dir)).collect::<Result<_, _>>()?;
        Ok(Self {
            version,
            origin: kit.origin.to_string(),
            clang,
            clang_release,
            hipcc: kit.part(STARTER).map(Path::to_owned),
            include_dirs,
            device_libs: place(&libs)?,
            device_lib_names,
            has_rocthrust: kit.part("thrust/system/hip").is_some(),
            runtime: LibraryExports { soname: soname(release), names: Arc::new(names) },
            binding: RootBinding { dir: kit.root.clone(), kind: RootKind::Mutable },
            root,
            identity,
        })
    }
}

/// The SONAME of the run time of a ROCm: its number is the ROCm's major.
fn soname(release: MajorMinor) -> String {
    format!("libamdhip64.so.{}", release.major)
}
