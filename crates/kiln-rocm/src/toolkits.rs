//! Where the ROCm of a variant comes from, and torch's converter for it.

use std::path::Path;
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind, Need, pythons};
use kiln_backend::{
    Asked, Backend, BackendName, Build, Compute, FoundIn, FoundToolkit, MajorMinor, Members, Part, ProvideError, RootBinding, RootKind,
    RootName, Sources, Toolkits, TorchWanted, Wanted, WrongCode, also,
};

use crate::arch::{ArchRequest, is_target};
use crate::backend::{RocmBackend, TORCH_STAND_INS};
use crate::hipify::{Hipify, is_cuda};
use crate::toolkit::{RocmToolkit, ToolkitError};
use crate::verify::verify_recorded;

/// The option that names a ROCm's directory.
const OPTION: &str = "--rocm-from";
/// The code of errors of toolkits.
const NO_ROCM: fn(String) -> ProvideError = |message| ProvideError::new("no-rocm", message);
/// What the names of HIP's run time begin with, whatever its release.
const HIP: &str = "libamdhip64.so.";
/// The directory of torch's converter in what holds `torch/`.
const CONVERTER: &str = "torch/utils/hipify/";
/// The directory that holds the converter's package.
const PACKAGES: &str = "torch/utils";

/// The ROCms. One that an option names stands in for every release.
#[derive(Clone, Copy, Debug)]
pub struct RocmToolkits;

impl Toolkits for RocmToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Rocm
    }

    fn kit(&self) -> Option<KitKind> {
        Some(KitKind::Rocm)
    }

    fn option(&self) -> Option<&'static str> {
        Some(OPTION)
    }

    fn unit_extensions(&self) -> &'static [&'static str] {
        &["cu", "hip"]
    }

    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.cu"]
    }

    fn check_named(&self, sources: &Sources<'_>) -> Result<(), ProvideError> {
        let Some(dir) = named(sources) else { return Ok(()) };
        match candidates(sources).first() {
            None => Err(NO_ROCM(format!("there is no ROCm in `{}`", dir.display()))),
            Some(kit) => Ok(RocmToolkit::check(kit)?),
        }
    }

    fn claims_arch(&self, entry: &str) -> bool {
        is_target(entry)
    }

    fn check_arch(&self, list: &str) -> Result<(), String> {
        list.parse::<ArchRequest>().map(|_| ()).map_err(|error| error.to_string())
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let Some(wanted) = asked.compute.version() else { return Ok(()) };
        let candidates = candidates(sources);
        if candidates.iter().any(|kit| fits(kit, wanted, sources)) {
            return Ok(());
        }
        let mut others: Vec<String> = candidates.iter().map(described).collect();
        others.dedup();
        Err(match others.is_empty() {
            true => format!("there is no ROCm {wanted}: this machine has none"),
            false => format!("there is no ROCm {wanted}: {}; `{OPTION}` lets one stand in", others.join(", ")),
        })
    }

    fn verify_recorded(&self, _: Compute, archs: &[String], file: &[u8]) -> Result<(), WrongCode> {
        if archs.is_empty() { Ok(()) } else { verify_recorded(archs, file) }
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        let release = wanted.compute.version().unwrap_or(MajorMinor::new(0, 0));
        let toolkit = toolkit(release, sources)?;
        let backend = RocmBackend::new(toolkit, wanted.arch.and_then(|list| list.parse().ok())).for_release(release);
        if !needs_converter(wanted) {
            return Ok(Arc::new(backend));
        }
        Ok(Arc::new(match converter(&ConverterWanted::of(wanted), sources)? {
            Some(hipify) => backend.with_hipify(hipify),
            None => backend,
        }))
    }

    fn would_provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Option<FoundToolkit>, ProvideError> {
        let toolkit = toolkit(wanted.compute.version().unwrap_or(MajorMinor::new(0, 0)), sources)?;
        if needs_converter(wanted)
            && let Some((name, part)) = converter_tree(&ConverterWanted::of(wanted), sources)?
        {
            sources.provisioner.would_assemble(&name, &[part])?;
        }
        Ok(Some(FoundToolkit { name: "ROCm", version: toolkit.version, place: FoundIn::Machine }))
    }

    fn torch_stand_ins(&self) -> &'static [(&'static str, &'static str)] {
        &TORCH_STAND_INS
    }

    /// No wheel has the run time. All that it offers to programs begins so.
    fn offers(&self, soname: &str, name: &str) -> Option<bool> {
        soname.starts_with(HIP).then(|| name.starts_with("hip") || name.starts_with("__hip"))
    }
}

impl From<ToolkitError> for ProvideError {
    fn from(error: ToolkitError) -> Self {
        NO_ROCM(error.to_string()).with_hint(error.hint())
    }
}

fn named<'a>(sources: &Sources<'a>) -> Option<&'a Path> {
    sources.named(BackendName::Rocm)
}

fn candidates(sources: &Sources<'_>) -> Vec<Candidate> {
    RocmToolkit::candidates(sources.environment, named(sources).map(|dir| (OPTION, dir)))
}

fn fits(kit: &Candidate, release: MajorMinor, sources: &Sources<'_>) -> bool {
    named(sources).is_some() || kit.version.as_ref().map(|version| version.major_minor()) == Some(release)
}

/// The ROCm for variants of a release: the one that was named, or the first complete one of the machine that is of that release.
fn toolkit(release: MajorMinor, sources: &Sources<'_>) -> Result<RocmToolkit, ProvideError> {
    let candidates = candidates(sources);
    let fitting = || candidates.iter().filter(|kit| fits(kit, release, sources));
    if let Some(kit) = fitting().find(|kit| kit.is_complete()).or_else(|| fitting().next()) {
        return Ok(RocmToolkit::of_machine(kit, release, sources.cache_dir)?);
    }
    let found: Vec<String> = candidates.iter().map(described).collect();
    let hint = format!("name the directory of one with `{OPTION}`, or set ROCM_PATH to it");
    Err(NO_ROCM(format!("no ROCm {release} was found{}", also(&found))).with_hint(hint).with_need(Need::Hip))
}

/// A ROCm and its release, for people.
fn described(kit: &Candidate) -> String {
    kit.described(kit.version.as_ref().map(|version| format!("ROCm {version}")))
}

/// Which converter of torch's is wanted.
#[derive(Clone, Copy, Debug)]
pub struct ConverterWanted<'a> {
    /// Whose it is.
    pub torch: TorchWanted<'a>,
    /// What the machine that kernels run on is called in the catalog.
    pub platform: &'a str,
    /// Whether it may be fetched.
    pub fetch: bool,
}

impl<'a> ConverterWanted<'a> {
    fn of(wanted: &Wanted<'a>) -> Self {
        Self { torch: wanted.torch, platform: wanted.platform, fetch: wanted.fetch }
    }
}

/// Torch's converter, and the first Python of the machine to run it; none without a Python. It is that of the torch that variants are
/// built for, or of the catalog's newest one.
///
/// # Errors
/// Those of a fetch.
pub fn converter(wanted: &ConverterWanted<'_>, sources: &Sources<'_>) -> Result<Option<Hipify>, ProvideError> {
    let Some(python) = pythons(&sources.view(), None).0.into_iter().next().map(|found| found.python) else { return Ok(None) };
    let Ok(bytes) = std::fs::read(&python) else { return Ok(None) };
    let python_identity = blake3::hash(&bytes).to_hex().to_string();
    let hipify = |root, binding| Some(Hipify { python, python_identity, root, binding, package_dir: PACKAGES.to_owned() });
    if let Some(packages) = wanted.torch.installed {
        let binding = RootBinding { dir: packages.to_owned(), kind: RootKind::Mutable };
        return Ok(hipify(RootName::new("hipify-of-python"), binding));
    }
    let Some((name, part)) = converter_tree(wanted, sources)? else { return Ok(None) };
    let parts = [part];
    let tree = match wanted.fetch {
        true => sources.provisioner.assemble(&name, &parts)?,
        false => sources.provisioner.planned_tree(&name, &parts),
    };
    let binding = RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest } };
    Ok(hipify(RootName::new(tree.id), binding))
}

/// The tree of the converter out of a wheel, and what it is made of; none where an installed torch has it.
fn converter_tree(wanted: &ConverterWanted<'_>, sources: &Sources<'_>) -> Result<Option<(String, Part)>, ProvideError> {
    if wanted.torch.installed.is_some() {
        return Ok(None);
    }
    let catalog = sources.provisioner.catalog();
    let newest = catalog.releases().iter().filter(|release| release.platform == wanted.platform).map(|release| &release.version).max();
    let Some(version) = wanted.torch.newest.or(newest) else { return Ok(None) };
    let wheel = catalog.torch_for(version, Compute::Rocm(MajorMinor::new(0, 0)), wanted.platform)?.release.wheel.clone();
    let members = Members { dirs: vec![CONVERTER.to_owned()], max_size: 4 << 20, ..Members::default() };
    Ok(Some((format!("hipify-{version}"), Part::whole(wheel, members))))
}

/// Whether there is something to convert: CUDA sources of a kernel, or headers of torch, which are the same for all devices only in the
/// stable ABI.
fn needs_converter(wanted: &Wanted<'_>) -> bool {
    wanted.torch.cxx || has_cuda_sources(wanted.build)
}

/// Whether a kernel for ROCm has CUDA sources.
fn has_cuda_sources(build: &Build) -> bool {
    build.kernels_for(BackendName::Rocm).any(|kernel| kernel.src.iter().any(|source| is_cuda(source.value.as_str())))
}
