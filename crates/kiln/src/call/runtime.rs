//! The runtime of tvm-ffi that a kernel is called with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kiln_format::variant::ArchFramework;
use kiln_format::{MajorMinor, Version};
use kiln_toolchain::{Catalog, Part, Provisioner, StoreTree, TvmFfiRelease};

use super::{CallError, Kernel};
use crate::matrix::Target;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The newest release that the catalog has for the kernel.
    Newest,
    /// A release of the catalog.
    Release(Version),
    /// A library on this machine, or the directory that it is in.
    Path(PathBuf),
}

impl Choice {
    /// What `--runtime` asks for: what reads like a version is one.
    pub fn parse(text: &str) -> Self {
        match Version::parse(text) {
            Ok(version) => Self::Release(version),
            Err(_) => Self::Path(PathBuf::from(text)),
        }
    }
}

/// A runtime, ready to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeFiles {
    /// Its name, for people.
    pub name: String,
    /// The library.
    pub library: PathBuf,
    /// Libraries that the kernel needs, and that a machine need not have.
    pub preload: Vec<PathBuf>,
}

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The catalog has none.
    #[error("the catalog has no tvm-ffi {wanted} for {platform}: it has {}", .known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The release.
        wanted: String,
        /// What the machine is called in the catalog.
        platform: String,
        /// What there is.
        known: Vec<Version>,
    },
    /// It cannot be fetched.
    #[error(transparent)]
    Toolchain(#[from] kiln_toolchain::Error),
    /// There is none at the path.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Finds or fetches the runtime that is asked for, and what else `kernel` needs of what wheels have.
///
/// # Errors
/// When there is no such runtime, or it cannot be fetched.
pub fn provide(
    choice: &Choice,
    kernel: &Kernel,
    machine: Target,
    catalog: &Catalog,
    provisioner: &Provisioner<'_>,
) -> Result<RuntimeFiles, RuntimeError> {
    let runtime = of_minor(choice, version_of(kernel), machine, catalog, provisioner)?;
    Ok(RuntimeFiles { preload: cuda_runtime(kernel, machine, catalog, provisioner)?, ..runtime })
}

/// Finds or fetches the runtime that is asked for, for kernels of a release line.
///
/// # Errors
/// As [`provide`].
pub fn of_minor(
    choice: &Choice,
    minor: Option<MajorMinor>,
    machine: Target,
    catalog: &Catalog,
    provisioner: &Provisioner<'_>,
) -> Result<RuntimeFiles, RuntimeError> {
    let (name, library) = match choice {
        Choice::Path(path) => of_path(path)?,
        Choice::Newest => of_catalog(None, minor, machine, catalog, provisioner)?,
        Choice::Release(version) => of_catalog(Some(version), None, machine, catalog, provisioner)?,
    };
    Ok(RuntimeFiles { name, library, preload: Vec::new() })
}

/// The version that the kernel's variant names.
fn version_of(kernel: &Kernel) -> Option<MajorMinor> {
    match kernel.variant.as_ref()?.framework {
        ArchFramework::TvmFfi { version } => Some(version),
        _ => None,
    }
}

fn of_path(path: &Path) -> Result<(String, PathBuf), CallError> {
    let library = if path.is_dir() { path.join(format!("libtvm_ffi{}", std::env::consts::DLL_SUFFIX)) } else { path.to_owned() };
    if !library.is_file() {
        return Err(CallError::Missing { path: library });
    }
    Ok((format!("`{}`", library.display()), library))
}

/// Sees that the newest runtime for kernels of a release line is there or could be fetched.
///
/// # Errors
/// Those with which [`of_minor`] would end.
pub fn would_have(minor: MajorMinor, machine: Target, catalog: &Catalog, provisioner: &Provisioner<'_>) -> Result<(), RuntimeError> {
    let release = release_of(None, Some(minor), machine, catalog)?;
    let (name, parts) = wheel_tree(release);
    provisioner.would_assemble(&name, &parts).map_err(|error| error.fetched_by(fetch_command(release)))?;
    Ok(())
}

/// Fetches the runtime of a release for `platform`, as builds take it that load what they have made.
///
/// # Errors
/// When the catalog lacks it, or it cannot be fetched.
pub fn fetch(version: &Version, platform: &str, provisioner: &Provisioner<'_>) -> Result<(), kiln_toolchain::Error> {
    tree(provisioner.catalog().tvm_ffi(version, platform)?, provisioner).map(drop)
}

/// The releases of tvm-ffi that builds for `platform` use unless they are told otherwise: of each release line the oldest, which is
/// compiled against, and the newest, which loads what was compiled. Ascending.
pub fn usual_releases(catalog: &Catalog, platform: &str) -> Vec<Version> {
    let here = || catalog.tvm_ffi_releases().iter().filter(|release| release.platform == platform).map(|release| &release.version);
    let same_line = |a: &Version, b: &Version| a.major_minor() == b.major_minor();
    let is_end = |version: &&Version| {
        let line = || here().filter(|other| same_line(other, version));
        line().all(|other| other >= *version) || line().all(|other| other <= *version)
    };
    here().filter(is_end).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn tree(release: &TvmFfiRelease, provisioner: &Provisioner<'_>) -> Result<StoreTree, kiln_toolchain::Error> {
    let (name, parts) = wheel_tree(release);
    provisioner.assemble(&name, &parts).map_err(|error| error.fetched_by(fetch_command(release)))
}

fn fetch_command(release: &TvmFfiRelease) -> String {
    format!("kiln toolchain fetch tvm-ffi=={}", release.version)
}

fn of_catalog(
    wanted: Option<&Version>,
    minor: Option<MajorMinor>,
    machine: Target,
    catalog: &Catalog,
    provisioner: &Provisioner<'_>,
) -> Result<(String, PathBuf), RuntimeError> {
    let release = release_of(wanted, minor, machine, catalog)?;
    let tree = tree(release, provisioner)?;
    Ok((format!("tvm-ffi {}", release.version), tree.dir.join(release.runtime_library())))
}

/// Name and parts of the tree that has the runtime of a release.
pub fn wheel_tree(release: &TvmFfiRelease) -> (String, Vec<Part>) {
    (format!("tvm-ffi-{}-{}-runtime", release.version, release.platform), vec![release.runtime_part()])
}

/// The newest release that fits.
fn release_of<'c>(
    wanted: Option<&Version>,
    minor: Option<MajorMinor>,
    machine: Target,
    catalog: &'c Catalog,
) -> Result<&'c TvmFfiRelease, RuntimeError> {
    let platform = machine.platform();
    let known = || catalog.tvm_ffi_releases().iter().filter(|release| release.platform == platform);
    let fits =
        |version: &Version| wanted.is_none_or(|wanted| wanted == version) && minor.is_none_or(|minor| version.major_minor() == minor);
    known().filter(|release| fits(&release.version)).max_by(|a, b| a.version.cmp(&b.version)).ok_or_else(|| {
        let wanted = wanted.map(ToString::to_string).or_else(|| Some(minor?.to_string())).unwrap_or_default();
        let known = known().map(|release| release.version.clone()).collect();
        RuntimeError::Unknown { wanted, platform: platform.clone(), known }
    })
}

/// The run-time library of CUDA, if the kernel needs it and the catalog has it: it loads without a device.
fn cuda_runtime(kernel: &Kernel, machine: Target, catalog: &Catalog, provisioner: &Provisioner<'_>) -> Result<Vec<PathBuf>, RuntimeError> {
    let platform = machine.platform();
    let newest = catalog.cuda_toolkits().iter().filter(|toolkit| toolkit.platform == platform).max_by(|a, b| a.version.cmp(&b.version));
    let part = newest.and_then(|toolkit| Some((toolkit, toolkit.runtime_part()?)));
    let Some((toolkit, (part, library))) = part else { return Ok(Vec::new()) };
    let file = Path::new(&library).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !kernel.needed.iter().any(|needed| needed == file) {
        return Ok(Vec::new());
    }
    let tree = provisioner.assemble(&format!("cuda-runtime-{}-{platform}", toolkit.version), &[part])?;
    Ok(vec![tree.dir.join(library)])
}
