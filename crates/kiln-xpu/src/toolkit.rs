//! What an installation of oneAPI's DPC++ compiler is.
//!
//! Where its parts lie is discovery's knowledge, and what its compiler says of itself is asked by who asks all compilers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::{Candidate, identity};
use kiln_backend::discover::{Findings, KitKind, Lack, View, find};
use kiln_backend::{Family, HostCompiler, LibraryExports, MajorMinor, NameSet, RootBinding, RootKind, RootName, Version, elf, normalize};

/// A DPC++ compiler with its headers and its runtime.
#[derive(Clone, Debug)]
pub struct XpuToolkit {
    /// The release: `2025.3`.
    pub version: Version,
    /// By what it was found.
    pub origin: String,
    /// `icpx`, as everything else knows a compiler. Its identity is that of the whole toolkit.
    pub compiler: HostCompiler,
    /// Name of the root that its headers are below.
    pub root: RootName,
    /// Where that root lies, and how its files count.
    pub binding: RootBinding,
    /// The runtime, and the libraries that the compiler calls by itself.
    pub runtime: Vec<LibraryExports>,
    /// The compiler that makes code ahead of time, if it is there.
    pub ocloc: Option<PathBuf>,
    /// oneDNN, if it is there.
    pub dnnl: Option<Dnnl>,
}

/// oneDNN: headers, and a static library.
#[derive(Clone, Debug)]
pub struct Dnnl {
    /// The root of its include directory, and where that is.
    pub include: (RootName, RootBinding),
    /// The root of its library's directory, and where that is.
    pub lib: (RootName, RootBinding),
}

impl Dnnl {
    /// The file name of the library.
    pub const LIBRARY: &'static str = "libdnnl.a";

    /// What is beside `kit`, or in it; none unless both parts are there.
    fn of(kit: &Candidate) -> Option<Self> {
        let root = |name: &str, part: &str| {
            let dir = kit.part(part)?.parent()?.canonicalize().ok()?;
            Some((RootName::new(name), RootBinding { dir, kind: RootKind::Mutable }))
        };
        Some(Self { include: root("onednn-include", "dnnl.hpp")?, lib: root("onednn-lib", Self::LIBRARY)? })
    }
}

/// Why an installation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolkitError {
    /// Files that it needs are not there.
    #[error("the oneAPI compiler in `{}` lacks {}", dir.display(), quoted(.missing))]
    Incomplete {
        /// The directory.
        dir: PathBuf,
        /// The missing parts.
        missing: Vec<String>,
    },
    /// A file is there and cannot be used.
    #[error("the oneAPI compiler in `{}` cannot be used: `{file}`: {reason}", dir.display())]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// The file below it.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl ToolkitError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Incomplete { .. } => Some("Intel's installer of the oneAPI DPC++ compiler brings all of it".to_owned()),
            Self::Damaged { .. } => None,
        }
    }
}

/// Libraries that Intel's compiler calls by itself: for copies of memory, mathematics, random numbers, and vectors.
const OF_COMPILER: [&str; 4] = ["libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"];

/// Those of the names that a library of an installation offers that count.
fn exports(kit: &Candidate, library: &Path, counts: impl Fn(&str) -> bool) -> Result<LibraryExports, ToolkitError> {
    let dynamic = elf::dynamic_file(library).map_err(|cause| damaged(kit, library, cause.to_string()))?;
    let soname = dynamic.soname.ok_or_else(|| damaged(kit, library, "it has no SONAME".to_owned()))?;
    let names = NameSet::exact(dynamic.exports.into_iter().map(|export| export.name).filter(|name| counts(name)));
    Ok(LibraryExports { soname, names: Arc::new(names) })
}

fn damaged(kit: &Candidate, file: &Path, reason: String) -> ToolkitError {
    let file = file.strip_prefix(&kit.root).unwrap_or(file).display().to_string();
    ToolkitError::Damaged { dir: kit.root.clone(), file, reason }
}

impl XpuToolkit {
    /// What this machine has in `environment` and its usual places, installations that lack something included.
    pub fn find(environment: &BTreeMap<String, String>) -> Findings {
        let view = View { root: Path::new("/"), environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH };
        find(KitKind::OneApi, &view, None)
    }

    /// The program of an installation that compiles.
    ///
    /// # Errors
    /// When it lacks something, all of which is named.
    pub fn icpx(kit: &Candidate) -> Result<&Path, ToolkitError> {
        let missing: Vec<&Lack> = kit.lacks.iter().filter(|lack| lack.must).collect();
        match kit.part("icpx") {
            Some(icpx) if missing.is_empty() => Ok(icpx),
            _ => {
                Err(ToolkitError::Incomplete { dir: kit.root.clone(), missing: missing.iter().map(|lack| lack.name.to_owned()).collect() })
            }
        }
    }

    /// The installation `kit` of a release, whose `icpx` is `compiler`. What was found out of its files is kept in `cache_dir`.
    ///
    /// # Errors
    /// When it lacks a part, or one cannot be read.
    pub fn of_machine(kit: &Candidate, release: MajorMinor, compiler: HostCompiler, cache_dir: &Path) -> Result<Self, ToolkitError> {
        let icpx = Self::icpx(kit)?;
        if compiler.family != Family::Clang {
            return Err(damaged(kit, icpx, "it is GCC, and no compiler of Intel's".to_owned()));
        }
        let damaged = |file, reason| damaged(kit, file, reason);
        let files = identity(kit, cache_dir).map_err(|cause| damaged(Path::new("."), cause.to_string()))?;
        let identity = blake3::hash(format!("{files}\n{}", compiler.identity).as_bytes()).to_hex().to_string();
        let root = RootName::new(format!("oneapi-{release}-{}", identity.get(..16).unwrap_or(&identity)));
        // The driver starts other programs and finds its headers by itself: what is made depends on all of them.
        let compiler = HostCompiler { identity, ..compiler };
        Ok(Self {
            version: Version::from(release),
            origin: kit.origin.to_string(),
            compiler,
            root,
            binding: RootBinding { dir: kit.root.clone(), kind: RootKind::Mutable },
            runtime: Self::runtime(kit)?,
            ocloc: kit.part("ocloc").map(Path::to_owned),
            dnnl: Dnnl::of(kit),
        })
    }

    /// Whether the compiler of an installation is of the release that its directory says: `said` is its answer to `--version`. Loaders
    /// take variants by that number.
    ///
    /// # Errors
    /// When it is another one.
    pub fn check_release(kit: &Candidate, release: MajorMinor, said: &str) -> Result<(), ToolkitError> {
        match normalize::xpu_compiler(said) {
            Some(own) if own == release => Ok(()),
            Some(own) => {
                let reason = format!("it says that it is {own}, and its directory is of {release}");
                Err(damaged(kit, Self::icpx(kit)?, reason))
            }
            None => Err(damaged(kit, Self::icpx(kit)?, "it does not say which release it is".to_owned())),
        }
    }

    /// The runtime of an installation, and the libraries that its compiler calls by itself: it turns copies of memory and mathematical
    /// functions into calls of them, which names that begin with `_` are for. The runtime needs them too, so that they are where it is.
    ///
    /// # Errors
    /// When the runtime is missing, or one of them cannot be read.
    pub fn runtime(kit: &Candidate) -> Result<Vec<LibraryExports>, ToolkitError> {
        let sycl = kit.part("libsycl.so").unwrap_or(Path::new("lib/libsycl.so"));
        let mut runtime = vec![exports(kit, sycl, |_| true)?];
        for library in OF_COMPILER.into_iter().filter_map(|name| kit.part(name)) {
            runtime.push(exports(kit, library, |name| name.starts_with('_'))?);
        }
        Ok(runtime)
    }

    /// Major and minor.
    pub fn release(&self) -> MajorMinor {
        self.version.major_minor()
    }
}
