//! The libraries of headers that kernels name in `depends`: which variants want which, and where each comes from.
//!
//! In this order: the directory that `kiln.toml` names, the wheel that carries the release, the directory that a variable names. The
//! variable stands last, so that what is left in somebody's environment changes no build that does without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kiln_backend::{CompileProfile, PathRef, RootBinding, RootKind, RootName, Version};
use kiln_format::{BackendName, Build, Dependency};
use kiln_toolchain::{HeaderLibrary, Provisioner, cutlass_version};
use thiserror::Error;

use crate::build_error::BuildError;
use crate::cuda::check_path;

/// The variable that names a directory with CUTLASS.
pub const CUTLASS_VARIABLE: &str = "CUTLASS_SRC_DIR";
/// The key of `kiln.toml` that does.
pub const CUTLASS_KEY: &str = "headers.cutlass";
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
    /// The release that the headers state.
    pub version: Version,
    /// Who provides it.
    pub provider: HeaderProvider,
    /// The include directory: a root of its own.
    pub root: RootName,
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
    #[error("`{dependency}` wants the headers of CUTLASS {release}, which no wheel carries")]
    NoWheel {
        /// What `depends` says.
        dependency: Dependency,
        /// The release that it means.
        release: &'static str,
    },
    /// The directory that was named has none.
    #[error("`{}`, which {origin} names, has no `{VERSION_H}`", path.display())]
    NoHeaders {
        /// The directory.
        path: PathBuf,
        /// What named it.
        origin: &'static str,
    },
}

impl HeaderError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoWheel { release, .. } => format!(
                "get the sources of CUTLASS {release} (tag `v{release}` of NVIDIA/cutlass) and name their directory in the variable \
                 {CUTLASS_VARIABLE} or with `{CUTLASS_KEY}` in `kiln.toml`"
            ),
            Self::NoHeaders { .. } => "name the directory that holds `include/` and `tools/` of CUTLASS".to_owned(),
        }
    }
}

/// The libraries that one build has, by what `depends` calls them.
#[derive(Clone, Debug, Default)]
pub struct HeaderTrees(BTreeMap<Dependency, HeaderTree>);

impl HeaderTrees {
    /// Provides what the kernels of `backends` want; tells of what is not quite what they ask for. Without `fetch` only names and
    /// digests of wheels are known: the directories may not be there.
    ///
    /// # Errors
    /// When a library cannot be had.
    pub fn provide(
        build: &Build,
        backends: &BTreeSet<BackendName>,
        source: &HeaderSource<'_>,
        fetch: bool,
        warn: &dyn Fn(String),
    ) -> Result<Self, BuildError> {
        let mut wanted = BTreeSet::new();
        for backend in backends {
            let listed = build.kernels_for(*backend).flat_map(|kernel| kernel.depends.iter().map(|listed| listed.value));
            wanted.extend(listed.filter(|dependency| dependency.only_for() == Some(*backend)));
        }
        let mut trees = BTreeMap::new();
        for dependency in wanted {
            // What the other libraries are for is not compiled.
            let Some(release) = dependency.cutlass_release() else { continue };
            trees.insert(dependency, provide(dependency, release, source, fetch, warn)?);
        }
        Ok(Self(trees))
    }

    /// Those that the kernels of a backend want: every unit of its variants may include them.
    pub fn of(&self, backend: BackendName) -> impl Iterator<Item = &HeaderTree> {
        self.0.values().filter(move |tree| tree.dependency.only_for() == Some(backend))
    }
}

impl HeaderTree {
    /// Lets the units of a profile include the library.
    pub fn add_to(&self, profile: &mut CompileProfile) {
        profile.include_dirs.push(PathRef { root: self.root.clone(), path: String::new() });
        profile.mapped_roots.push((self.root.clone(), "cutlass".to_owned()));
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

fn of_wheel(dependency: Dependency, library: &HeaderLibrary, provisioner: &Provisioner<'_>, fetch: bool) -> Result<HeaderTree, BuildError> {
    let (name, parts) = (library.tree_name(), [library.part()]);
    let tree = if fetch { provisioner.assemble(&name, &parts)? } else { provisioner.planned_tree(&name, &parts) };
    Ok(HeaderTree {
        dependency,
        version: library.version.clone(),
        provider: HeaderProvider::Wheel,
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
    let none = || HeaderError::NoHeaders { path: dir.to_owned(), origin };
    let header = fs::read(dir.join(VERSION_H)).map_err(|_| none())?;
    let version = cutlass_version(&String::from_utf8_lossy(&header)).ok_or_else(none)?;
    let place = fs::canonicalize(dir.join(INCLUDE)).map_err(|_| none())?;
    check_path(&place)?;
    if version.as_str() != release {
        warn(format!("`{dependency}` means CUTLASS {release}, and `{}`, which {origin} names, holds {version}", dir.display()));
    }
    Ok(HeaderTree {
        dependency,
        version,
        provider: HeaderProvider::Directory,
        root: RootName::new("cutlass"),
        binding: RootBinding { dir: place, kind: RootKind::Mutable },
        identity: blake3::hash(&header).to_hex().to_string(),
    })
}
