//! The libraries of headers that kernels name in `depends`: which variants want which, and where each comes from.
//!
//! In this order: the directory that `kiln.toml` names, the wheel that carries the release, the directory that a variable names. The
//! variable stands last, so that what is left in somebody's environment changes no build that does without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kiln_backend::{CompileProfile, MajorMinor, PathRef, RootBinding, RootKind, RootName, Version};
use kiln_format::variant::Compute;
use kiln_format::{Build, Dependency};
use kiln_toolchain::{HeaderLibrary, Provisioner, cutlass_version, metal_cpp_version};
use thiserror::Error;

use crate::backends::vendor;
use crate::build_error::BuildError;

/// The variable that names a directory with CUTLASS.
pub const CUTLASS_VARIABLE: &str = "CUTLASS_SRC_DIR";
/// The key of `kiln.toml` that does.
pub const CUTLASS_KEY: &str = "headers.cutlass";
/// The key of `kiln.toml` that names a directory with metal-cpp.
pub const METAL_CPP_KEY: &str = "headers.metal-cpp";
/// What states the release there.
const METAL_VERSION_H: &str = "Metal/MTLVersion.hpp";
/// The variable that names a directory with SYCL*TLA.
pub const TLA_VARIABLE: &str = "SYCL_TLA_SRC_DIR";
/// Where the headers are in a source tree of CUTLASS.
const INCLUDE: &str = "include";
/// What states the release there.
const VERSION_H: &str = "include/cutlass/version.h";

/// Where libraries of headers come from.
#[derive(Clone, Copy)]
pub struct HeaderSource<'a> {
    /// Fetches wheels.
    pub provisioner: &'a Provisioner<'a>,
    /// The directory with CUTLASS that the project names, absolute.
    pub cutlass: Option<&'a Path>,
    /// The directory with metal-cpp that the project names, absolute.
    pub metal_cpp: Option<&'a Path>,
    /// The caller's environment.
    pub environment: &'a BTreeMap<String, String>,
}

/// Who provides headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderProvider {
    /// A wheel of the catalog.
    Wheel,
    /// A directory of the user's.
    Directory,
}

/// A library of headers that is here.
#[derive(Clone, Debug)]
pub struct HeaderTree {
    /// What `depends` calls it.
    pub dependency: Dependency,
    /// The release that the headers state; of SYCL*TLA in a directory of the user's, that of CUTLASS, which is all that they state.
    pub version: Version,
    /// Who provides it.
    pub provider: HeaderProvider,
    /// The compiler that it goes with, where a compiler decides which release is meant.
    pub compiler: Option<MajorMinor>,
    /// The directory that its include directories are in: a root of its own.
    pub root: RootName,
    /// The include directories below it.
    pub include_dirs: &'static [&'static str],
    /// Where that lies.
    pub binding: RootBinding,
    /// What tells it from others, as lower-case hexadecimal text. Each file of a directory of the user's counts by itself, and this is
    /// that of the header that states the release.
    pub identity: String,
}

/// Headers cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// No wheel carries them, and nobody named a directory.
    #[error("`{dependency}` wants the headers of {} {release}, which no wheel carries", library(*dependency))]
    NoWheel {
        /// What `depends` says.
        dependency: Dependency,
        /// The release that it means.
        release: &'static str,
    },
    /// No release of the library goes with the compiler.
    #[error("`{dependency}` means no release with the compiler of oneAPI {compiler}")]
    NoRelease {
        /// What `depends` says.
        dependency: Dependency,
        /// The compiler.
        compiler: MajorMinor,
    },
    /// The directory that was named has none.
    #[error("`{}`, which {origin} names, has no `{header}`", path.display())]
    NoHeaders {
        /// The directory.
        path: PathBuf,
        /// What named it.
        origin: &'static str,
        /// The header that is missing.
        header: &'static str,
    },
}

impl HeaderError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoWheel { dependency: Dependency::SyclTla, release } => format!(
                "get the sources of SYCL*TLA {release} (tag `v{release}` of intel/sycl-tla) and name their directory in the variable \
                 {TLA_VARIABLE}"
            ),
            Self::NoRelease { .. } => "it does with those of oneAPI 2025.3 and 2026.0".to_owned(),
            Self::NoWheel { dependency: Dependency::MetalCpp, .. } => {
                format!("get Apple's metal-cpp and name its directory with `{METAL_CPP_KEY}` in `kiln.toml`")
            }
            Self::NoHeaders { origin: METAL_CPP_KEY, .. } => {
                "name the directory that holds `Foundation/` and `Metal/` of metal-cpp".to_owned()
            }
            Self::NoHeaders { origin: TLA_VARIABLE, .. } => "name the directory that holds `include/` and `tools/` of SYCL*TLA".to_owned(),
            Self::NoWheel { release, .. } => format!(
                "get the sources of CUTLASS {release} (tag `v{release}` of NVIDIA/cutlass) and name their directory in the variable \
                 {CUTLASS_VARIABLE} or with `{CUTLASS_KEY}` in `kiln.toml`"
            ),
            Self::NoHeaders { .. } => "name the directory that holds `include/` and `tools/` of CUTLASS".to_owned(),
        }
    }
}

/// A library for people.
fn library(dependency: Dependency) -> &'static str {
    match dependency {
        Dependency::SyclTla => "SYCL*TLA",
        Dependency::MetalCpp => "metal-cpp",
        _ => "CUTLASS",
    }
}

/// The libraries that one build has, by what `depends` calls them and by the compiler that decides which release is meant.
#[derive(Clone, Debug, Default)]
pub struct HeaderTrees(BTreeMap<(Dependency, Option<MajorMinor>), HeaderTree>);

impl HeaderTrees {
    /// Provides what the kernels of variants for `computes` want; tells of what is not quite what they ask for. Without `fetch` only names and
    /// digests of wheels are known: the directories may not be there.
    ///
    /// # Errors
    /// When a library cannot be had.
    pub fn provide(
        build: &Build,
        computes: &BTreeSet<Compute>,
        source: &HeaderSource<'_>,
        fetch: bool,
        warn: &dyn Fn(String),
    ) -> Result<Self, BuildError> {
        let mut wanted = BTreeSet::new();
        for compute in computes {
            let listed = build.kernels_for(compute.backend()).flat_map(|kernel| kernel.depends.iter().map(|listed| listed.value));
            let own = listed.filter(|dependency| dependency.only_for() == Some(compute.backend()));
            wanted.extend(own.map(|dependency| (dependency, compute.version().filter(|_| dependency == Dependency::SyclTla))));
        }
        let mut trees = BTreeMap::new();
        for (dependency, compiler) in wanted {
            let tree = match (dependency.cutlass_release(), compiler) {
                _ if dependency == Dependency::MetalCpp => provide_metal_cpp(source, fetch)?,
                (Some(release), _) => provide(dependency, release, source, fetch, warn)?,
                (None, Some(compiler)) => provide_tla(compiler, source, fetch)?,
                // What the other libraries are for is not compiled.
                (None, None) => continue,
            };
            trees.insert((dependency, compiler), tree);
        }
        Ok(Self(trees))
    }

    /// Those that the kernels of a variant want: every unit of it may include them.
    pub fn of(&self, compute: Compute) -> impl Iterator<Item = &HeaderTree> {
        let is_of = move |tree: &&HeaderTree| tree.dependency.only_for() == Some(compute.backend());
        self.0.values().filter(is_of).filter(move |tree| tree.compiler.is_none() || tree.compiler == compute.version())
    }
}

impl HeaderTree {
    /// Lets the units of a profile include the library.
    pub fn add_to(&self, profile: &mut CompileProfile) {
        let dirs = self.include_dirs.iter().map(|dir| PathRef { root: self.root.clone(), path: (*dir).to_owned() });
        profile.include_dirs.extend(dirs);
        let name = if self.dependency == Dependency::MetalCpp { "metal-cpp" } else { "cutlass" };
        profile.mapped_roots.push((self.root.clone(), name.to_owned()));
    }
}

fn provide(
    dependency: Dependency,
    release: &'static str,
    source: &HeaderSource<'_>,
    fetch: bool,
    warn: &dyn Fn(String),
) -> Result<HeaderTree, BuildError> {
    if let Some(dir) = source.cutlass {
        return of_directory(dependency, release, dir, CUTLASS_KEY, warn);
    }
    if let Some(library) = source.provisioner.catalog().headers(dependency.as_str()) {
        return of_wheel(dependency, library, source.provisioner, fetch);
    }
    match source.environment.get(CUTLASS_VARIABLE).filter(|dir| !dir.is_empty()) {
        Some(dir) => of_directory(dependency, release, Path::new(dir), CUTLASS_VARIABLE, warn),
        None => Err(HeaderError::NoWheel { dependency, release }.into()),
    }
}

/// metal-cpp: of the directory that the project names, or of the wheel.
fn provide_metal_cpp(source: &HeaderSource<'_>, fetch: bool) -> Result<HeaderTree, BuildError> {
    let dependency = Dependency::MetalCpp;
    let Some(dir) = source.metal_cpp else {
        let library = source.provisioner.catalog().headers(dependency.as_str());
        let library = library.ok_or(HeaderError::NoWheel { dependency, release: "26" })?;
        return of_wheel(dependency, library, source.provisioner, fetch);
    };
    let none = || HeaderError::NoHeaders { path: dir.to_owned(), origin: METAL_CPP_KEY, header: METAL_VERSION_H };
    let header = fs::read(dir.join(METAL_VERSION_H)).map_err(|_| none())?;
    let version = metal_cpp_version(&String::from_utf8_lossy(&header)).ok_or_else(none)?;
    Ok(HeaderTree {
        dependency,
        version,
        provider: HeaderProvider::Directory,
        compiler: None,
        root: RootName::new("metal-cpp"),
        include_dirs: &[""],
        binding: RootBinding { dir: fs::canonicalize(dir).map_err(|_| none())?, kind: RootKind::Mutable },
        identity: blake3::hash(&header).to_hex().to_string(),
    })
}

/// SYCL*TLA of the release that goes with a compiler.
fn provide_tla(compiler: MajorMinor, source: &HeaderSource<'_>, fetch: bool) -> Result<HeaderTree, BuildError> {
    let dependency = Dependency::SyclTla;
    let release = kiln_xpu::tla_release(compiler).ok_or(HeaderError::NoRelease { dependency, compiler })?;
    let is_it = |library: &&HeaderLibrary| library.is_tla() && library.version.as_str().strip_suffix(".0").unwrap_or_default() == release;
    let tree = if let Some(library) = source.provisioner.catalog().header_libraries().iter().find(is_it) {
        of_wheel(dependency, library, source.provisioner, fetch)?
    } else {
        let named = source.environment.get(TLA_VARIABLE).filter(|dir| !dir.is_empty());
        let dir = Path::new(named.ok_or(HeaderError::NoWheel { dependency, release })?);
        let (version, identity) = stated(dir, TLA_VARIABLE)?;
        let place =
            fs::canonicalize(dir).map_err(|_| HeaderError::NoHeaders { path: dir.to_owned(), origin: TLA_VARIABLE, header: VERSION_H })?;
        HeaderTree {
            dependency,
            version,
            provider: HeaderProvider::Directory,
            compiler: None,
            root: RootName::new("sycl-tla"),
            include_dirs: &[],
            binding: RootBinding { dir: place, kind: RootKind::Mutable },
            identity,
        }
    };
    Ok(HeaderTree { compiler: Some(compiler), include_dirs: &HeaderLibrary::TLA_INCLUDE_DIRS, ..tree })
}

/// The release that the headers in a source tree state, and the digest of what states it.
fn stated(dir: &Path, origin: &'static str) -> Result<(Version, String), HeaderError> {
    let none = || HeaderError::NoHeaders { path: dir.to_owned(), origin, header: VERSION_H };
    let header = fs::read(dir.join(VERSION_H)).map_err(|_| none())?;
    let version = cutlass_version(&String::from_utf8_lossy(&header)).ok_or_else(none)?;
    Ok((version, blake3::hash(&header).to_hex().to_string()))
}

fn of_wheel(dependency: Dependency, library: &HeaderLibrary, provisioner: &Provisioner<'_>, fetch: bool) -> Result<HeaderTree, BuildError> {
    let (name, parts) = (library.tree_name(), [library.part()]);
    let tree = if fetch { provisioner.assemble(&name, &parts)? } else { provisioner.planned_tree(&name, &parts) };
    Ok(HeaderTree {
        dependency,
        version: library.version.clone(),
        provider: HeaderProvider::Wheel,
        compiler: None,
        include_dirs: &[""],
        root: RootName::new(tree.id),
        binding: RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest.clone() } },
        identity: tree.digest,
    })
}

fn of_directory(
    dependency: Dependency,
    release: &'static str,
    dir: &Path,
    origin: &'static str,
    warn: &dyn Fn(String),
) -> Result<HeaderTree, BuildError> {
    let (version, identity) = stated(dir, origin)?;
    let place =
        fs::canonicalize(dir.join(INCLUDE)).map_err(|_| HeaderError::NoHeaders { path: dir.to_owned(), origin, header: VERSION_H })?;
    if let Some(vendor) = dependency.only_for().and_then(vendor) {
        vendor.check_dir(&place)?;
    }
    if version.as_str() != release {
        warn(format!("`{dependency}` means CUTLASS {release}, and `{}`, which {origin} names, holds {version}", dir.display()));
    }
    Ok(HeaderTree {
        dependency,
        version,
        provider: HeaderProvider::Directory,
        compiler: None,
        include_dirs: &[""],
        root: RootName::new("cutlass"),
        binding: RootBinding { dir: place, kind: RootKind::Mutable },
        identity,
    })
}
