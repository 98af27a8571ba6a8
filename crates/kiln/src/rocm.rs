//! Where the ROCm of a variant comes from.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_backend::{RootBinding, RootKind, RootName};
use kiln_format::build::Framework;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build, MajorMinor, Version};
use kiln_rocm::{Hipify, RocmToolkit};
use kiln_toolchain::discover::{Candidate, View, pythons};
use kiln_toolchain::{Members, Part, Provider, Provisioner};

use crate::build_error::BuildError;
use crate::frameworks::TorchSource;

/// The option that names a ROCm's directory.
pub const OPTION: &str = "--rocm-from";

/// The ROCms that a build can have.
#[derive(Clone, Copy)]
pub struct RocmToolkits<'a> {
    /// The directory that was named; nothing else counts then, and it stands in for every release.
    pub named: Option<&'a Path>,
    /// The caller's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Where to keep what was found.
    pub cache_dir: &'a Path,
}

impl RocmToolkits<'_> {
    /// Checks the directory that was named, if one was.
    ///
    /// # Errors
    /// When there is no ROCm in it, or one that lacks a part.
    pub fn check_named(&self) -> Result<(), BuildError> {
        let Some(dir) = self.named else { return Ok(()) };
        match self.candidates().first() {
            None => Err(BuildError::EmptyRocmDirectory { path: dir.to_owned() }),
            Some(kit) => Ok(RocmToolkit::check(kit)?),
        }
    }

    /// Whether a ROCm for variants of `release` can be had.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn has(&self, release: MajorMinor) -> Result<(), String> {
        let candidates = self.candidates();
        if candidates.iter().any(|kit| self.fits(kit, release)) {
            return Ok(());
        }
        let mut others: Vec<String> = candidates.iter().map(described).collect();
        others.dedup();
        Err(match others.is_empty() {
            true => format!("there is no ROCm {release}: this machine has none"),
            false => format!("there is no ROCm {release}: {}; `{OPTION}` lets one stand in", others.join(", ")),
        })
    }

    /// The ROCm for variants of a release: the one that was named, or the first complete one of the machine that is of that release.
    ///
    /// # Errors
    /// When there is none, with what there is instead.
    pub fn toolkit(&self, release: MajorMinor) -> Result<RocmToolkit, BuildError> {
        let candidates = self.candidates();
        let fitting = || candidates.iter().filter(|kit| self.fits(kit, release));
        if let Some(kit) = fitting().find(|kit| kit.is_complete()).or_else(|| fitting().next()) {
            return Ok(RocmToolkit::of_machine(kit, release, self.cache_dir)?);
        }
        let hint = format!("name the directory of one with `{OPTION}`, or set ROCM_PATH to it");
        Err(BuildError::NoRocm { release, found: candidates.iter().map(described).collect(), hint })
    }

    fn fits(&self, kit: &Candidate, release: MajorMinor) -> bool {
        self.named.is_some() || self::release(kit) == Some(release)
    }

    fn candidates(&self) -> Vec<Candidate> {
        RocmToolkit::candidates(self.environment, self.named.map(|dir| (OPTION, dir)))
    }
}

fn release(kit: &Candidate) -> Option<MajorMinor> {
    kit.version.as_ref().map(|version| version.major_minor())
}

/// A ROCm and its release, for people.
fn described(kit: &Candidate) -> String {
    match &kit.version {
        Some(version) => format!("`{}` ({}) is ROCm {version}", kit.root.display(), kit.origin),
        None => format!("`{}` ({}) does not say which release it is", kit.root.display(), kit.origin),
    }
}

/// What is to be said of a ROCm that compiles for another release than its own.
pub fn stands_in(toolkit: &RocmToolkit, release: MajorMinor) -> Option<String> {
    (toolkit.version.major_minor() != release).then(|| {
        format!(
            "ROCm {} stands in for {release}: its headers are compiled, and the run time is linked by the names that it has",
            toolkit.version
        )
    })
}

/// The directory of torch's converter in what holds `torch/`.
const CONVERTER: &str = "torch/utils/hipify/";

/// Where torch's converter comes from.
pub struct ConverterSource<'a> {
    /// Fetches parts of wheels.
    pub provisioner: &'a Provisioner<'a>,
    /// Where torch comes from.
    pub torch: &'a TorchSource,
    /// The release that is built for; none for the newest of the catalog.
    pub release: Option<&'a Version>,
    /// What the catalog calls the target.
    pub platform: &'a str,
    /// Whether it may be fetched; a plan does without its files.
    pub fetch: bool,
}

/// Torch's converter, and the Python of `environment` to run it; none without a Python.
///
/// # Errors
/// Those of a fetch, and when Python cannot be read.
pub fn converter(source: &ConverterSource<'_>, environment: &BTreeMap<String, String>) -> Result<Option<Hipify>, BuildError> {
    let view = View { root: Path::new("/"), environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH };
    let Some(python) = pythons(&view, None).0.into_iter().next().map(|found| found.python) else { return Ok(None) };
    let Ok(bytes) = std::fs::read(&python) else { return Ok(None) };
    let python_identity = blake3::hash(&bytes).to_hex().to_string();
    let package_dir = "torch/utils".to_owned();
    if let TorchSource::System(toolchain) = source.torch
        && let Provider::System { site_packages, .. } = &toolchain.provider
    {
        let binding = RootBinding { dir: site_packages.clone(), kind: RootKind::Mutable };
        return Ok(Some(Hipify { python, python_identity, root: RootName::new("hipify-of-python"), binding, package_dir }));
    }
    let catalog = source.provisioner.catalog();
    let newest = catalog.releases().iter().filter(|release| release.platform == source.platform).map(|release| &release.version).max();
    let Some(version) = source.release.or(newest) else { return Ok(None) };
    let wheel = catalog.torch_for(version, Compute::Rocm(MajorMinor::new(0, 0)), source.platform)?.release.wheel.clone();
    let members = Members { dirs: vec![CONVERTER.to_owned()], max_size: 4 << 20, ..Members::default() };
    let (name, parts) = (format!("hipify-{version}"), [Part::whole(wheel, members)]);
    let tree = match source.fetch {
        true => source.provisioner.assemble(&name, &parts)?,
        false => source.provisioner.planned_tree(&name, &parts),
    };
    let binding = RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest } };
    Ok(Some(Hipify { python, python_identity, root: RootName::new(tree.id), binding, package_dir }))
}

/// Whether there is something to convert: CUDA sources of a kernel for ROCm, or headers of torch, which are the same for all devices only in
/// the stable ABI.
pub fn needs_converter(build: &Build) -> bool {
    let is_under_torchs_own_abi = matches!(build.framework, Framework::Torch(_)) && build.stable_abi_for(BackendName::Rocm).is_none();
    is_under_torchs_own_abi
        || build.kernels_for(BackendName::Rocm).any(|kernel| kernel.src.iter().any(|source| source.value.as_str().ends_with(".cu")))
}
