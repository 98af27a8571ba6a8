//! Where the CUDA toolkit of a variant comes from: the directory that was named, wheels, or the machine.

use std::path::Path;
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind, Need};
use kiln_backend::{
    Asked, Availability, Backend, BackendName, Build, Catalog, CatalogToolkit, Compute, CudaUse, FetchError, FlagList, FoundIn,
    FoundToolkit, KernelOptions, MajorMinor, Part, ProvideError, Sources, Toolkits, Version, Wanted, WrongCode, also,
};

use crate::backend::CudaBackend;
use crate::capability::ArchRequest;
use crate::dry_run::DryRuns;
use crate::flags::is_relocatable;
use crate::toolkit::{CudaToolkit, ToolkitError, unusable_letter};
use crate::verify::verify_recorded;

/// The option that names a toolkit's directory.
const OPTION: &str = "--cuda-from";
/// The code of errors of toolkits.
const NO_TOOLKIT: fn(String) -> ProvideError = |message| ProvideError::new("no-cuda-toolkit", message);

/// What toolkits that are fetched by themselves serve beside compiling: kernels without torch, and those with it.
pub const FETCHED: [&[CudaUse]; 2] = [&[], &[CudaUse::TorchHeaders]];

/// Name and parts of the tree of a toolkit out of wheels; none for a release that the catalog lacks.
pub fn wheel_tree(catalog: &Catalog, version: &Version, platform: &str, uses: &[CudaUse]) -> Option<(String, Vec<Part>)> {
    Some(CudaToolkit::wheel_tree(catalog, catalog.cuda(version, platform)?, &compiling(uses)))
}

/// The command that fetches a toolkit by itself.
pub fn fetch_command(version: &Version) -> String {
    format!("kiln toolchain fetch cuda=={}", version.major_minor())
}

/// The CUDA toolkits.
#[derive(Clone, Copy, Debug)]
pub struct CudaToolkits;

impl CudaToolkits {
    /// The releases that this machine has: of the directory that was named, or else of every toolkit that is found.
    pub fn of_system(&self, sources: &Sources<'_>) -> Vec<MajorMinor> {
        candidates(sources).iter().filter_map(release).collect()
    }
}

impl Toolkits for CudaToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Cuda
    }

    fn kit(&self) -> Option<KitKind> {
        Some(KitKind::Cuda)
    }

    fn option(&self) -> Option<&'static str> {
        Some(OPTION)
    }

    fn unit_extensions(&self) -> &'static [&'static str] {
        &["cu"]
    }

    fn flag_list(&self) -> FlagList {
        FlagList::Nvcc
    }

    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.cu"]
    }

    fn check_named(&self, sources: &Sources<'_>) -> Result<(), ProvideError> {
        let Some(dir) = named(sources) else { return Ok(()) };
        match candidates(sources).first() {
            None => Err(NO_TOOLKIT(format!("there is no CUDA toolkit in `{}`", dir.display()))),
            Some(kit) if !kit.is_complete() => Ok(CudaToolkit::of_kit(kit, String::new()).map(|_| ())?),
            Some(_) => Ok(()),
        }
    }

    fn check_dir(&self, dir: &Path) -> Result<(), ProvideError> {
        let Some(letter) = unusable_letter(dir) else { return Ok(()) };
        let message = format!("nvcc does not work below `{}`: its parts do not take `{letter}` in a path", dir.display());
        Err(ProvideError::new("cuda-path", message).with_hint("rename the directory, or build a copy in another one".to_owned()))
    }

    /// Names of other vendors say whose they are; what nobody else claims is taken for a capability.
    fn claims_arch(&self, _: &str) -> bool {
        true
    }

    fn check_arch(&self, list: &str) -> Result<(), String> {
        list.parse::<ArchRequest>().map(|_| ()).map_err(|error| error.to_string())
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let Some(wanted) = asked.compute.version() else { return Ok(()) };
        if in_catalog(wanted, asked.platform, sources).is_some() {
            return Ok(());
        }
        let releases = self.of_system(sources);
        if releases.contains(&wanted) {
            return Ok(());
        }
        let others = if releases.is_empty() { String::new() } else { format!(", but {}", listed(&releases)) };
        let what = match named(sources) {
            Some(_) => "it is not there",
            None => "no wheel has the compiler, and this machine has no such toolkit",
        };
        Err(format!("there is no CUDA {wanted}: {what}{others}"))
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        self.check_dir(wanted.project_dir)?;
        self.check_dir(sources.cache_dir)?;
        let of = release_of(wanted);
        let toolkit = match in_catalog(of, wanted.platform, sources) {
            Some(known) => of_wheels(known, wanted, sources)?,
            None => of_machine(of, sources)?,
        };
        let arch = wanted.arch.and_then(|list| list.parse().ok());
        let backend = CudaBackend::new(toolkit, arch);
        // A toolkit that is only planned cannot be asked.
        Ok(Arc::new(if wanted.fetch { backend.with_dry_runs(Arc::new(DryRuns::kept_in(sources.cache_dir))) } else { backend }))
    }

    fn would_provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Option<FoundToolkit>, ProvideError> {
        let of = release_of(wanted);
        let Some(known) = in_catalog(of, wanted.platform, sources) else {
            return Ok(Some(FoundToolkit { name: "CUDA", version: of.into(), place: FoundIn::Machine }));
        };
        let uses = uses(wanted);
        let (name, parts) = CudaToolkit::wheel_tree(sources.provisioner.catalog(), known, &compiling(&uses));
        let place = match sources.provisioner.would_assemble(&name, &parts).map_err(|error| offline(error, known, &uses))? {
            Availability::Stored => FoundIn::Store,
            Availability::Listed => FoundIn::Index,
        };
        Ok(Some(FoundToolkit { name: "CUDA", version: known.version.clone(), place }))
    }

    /// The runtime is the toolkit's, and it asks for devices only when it is called.
    fn loads_without_device(&self) -> bool {
        true
    }

    fn verify_recorded(&self, compute: Compute, archs: &[String], file: &[u8]) -> Result<(), WrongCode> {
        // A builder that names none promises nothing.
        compute.version().filter(|_| !archs.is_empty()).map_or(Ok(()), |release| verify_recorded(archs, release, file))
    }
}

impl From<ToolkitError> for ProvideError {
    fn from(error: ToolkitError) -> Self {
        NO_TOOLKIT(error.to_string()).with_hint(error.hint())
    }
}

/// The release that variants are for.
fn release_of(wanted: &Wanted<'_>) -> MajorMinor {
    wanted.compute.version().unwrap_or(MajorMinor::new(0, 0))
}

fn named<'a>(sources: &Sources<'a>) -> Option<&'a Path> {
    sources.named(BackendName::Cuda)
}

fn candidates(sources: &Sources<'_>) -> Vec<Candidate> {
    CudaToolkit::candidates(sources.environment, named(sources).map(|dir| (OPTION, dir)))
}

/// The catalog's toolkit of a release; none when a directory was named.
fn in_catalog<'a>(release: MajorMinor, platform: &str, sources: &Sources<'a>) -> Option<&'a CatalogToolkit> {
    sources.provisioner.catalog().cuda(&Version::from(release), platform).filter(|_| named(sources).is_none())
}

fn of_wheels(known: &CatalogToolkit, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<CudaToolkit, ProvideError> {
    let uses = uses(wanted);
    match wanted.fetch {
        false => Ok(CudaToolkit::to_fetch(sources.provisioner, known, &compiling(&uses))),
        true => match CudaToolkit::fetched(sources.provisioner, known, &compiling(&uses)) {
            Err(ProvideError::Fetch(error)) => Err(offline(error, known, &uses).into()),
            toolkit => toolkit,
        },
    }
}

/// The first complete toolkit of the machine that is of `release`.
fn of_machine(release: MajorMinor, sources: &Sources<'_>) -> Result<CudaToolkit, ProvideError> {
    let candidates = candidates(sources);
    let fitting = || candidates.iter().filter(|kit| self::release(kit) == Some(release));
    if let Some(kit) = fitting().find(|kit| kit.is_complete()) {
        return Ok(CudaToolkit::of_machine(kit, sources.cache_dir)?);
    }
    if let Some(kit) = fitting().next().or_else(|| candidates.first().filter(|_| named(sources).is_some())) {
        // What it lacks is the better message.
        if !kit.is_complete() {
            CudaToolkit::of_kit(kit, String::new())?;
        }
    }
    let of = |kit: &Candidate| kit.described(kit.version.as_ref().map(|version| format!("CUDA {version}")));
    let found: Vec<String> = candidates.iter().map(of).collect();
    let hint = format!("name the directory of one with `{OPTION}`, or set CUDA_HOME to it; `--cuda` chooses among the variants");
    Err(NO_TOOLKIT(format!("no CUDA {release} toolkit was found{}", also(&found))).with_hint(hint).with_need(Need::Cuda))
}

/// What the variants for CUDA need of a toolkit beside its compilers.
fn uses(wanted: &Wanted<'_>) -> Vec<CudaUse> {
    let mut uses = Vec::new();
    if has_relocatable_code(wanted.build) {
        uses.push(CudaUse::DeviceLink);
    }
    if wanted.torch.cxx {
        uses.push(CudaUse::TorchHeaders);
    }
    uses
}

fn has_relocatable_code(build: &Build) -> bool {
    let flags = build.kernels_for(BackendName::Cuda).filter_map(|kernel| match &kernel.options {
        KernelOptions::Cuda { flags, .. } => Some(flags),
        _ => None,
    });
    flags.flatten().any(|flag| is_relocatable(&flag.value))
}

/// What compiles, and what `uses` need beside it.
fn compiling(uses: &[CudaUse]) -> Vec<CudaUse> {
    [CudaUse::Compile].into_iter().chain(uses.iter().copied()).collect()
}

/// What fetches a toolkit by itself, if that is what `error` asks for; headers for torch and what compiles are fetched so.
fn offline(error: FetchError, known: &CatalogToolkit, uses: &[CudaUse]) -> FetchError {
    match error {
        error if FETCHED.contains(&uses) => error.fetched_by(fetch_command(&known.version)),
        error => error,
    }
}

fn listed(releases: &[MajorMinor]) -> String {
    let mut releases: Vec<MajorMinor> = releases.to_vec();
    releases.sort_unstable();
    releases.dedup();
    releases.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn release(kit: &Candidate) -> Option<MajorMinor> {
    kit.version.as_ref().map(|version| version.major_minor())
}
