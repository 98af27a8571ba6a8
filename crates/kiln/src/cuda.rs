//! Where the CUDA toolkit of a variant comes from, and what `--arch` asks for.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_cuda::{ArchRequest, CudaToolkit, NATIVE, unusable_letter};
use kiln_format::{MajorMinor, Version};
use kiln_toolchain::discover::Candidate;
use kiln_toolchain::{Availability, Catalog, CudaToolkit as CatalogToolkit, CudaUse, Error as ToolchainError, Part, Provisioner};
use thiserror::Error;

use crate::build_error::BuildError;

/// The option that names a toolkit's directory.
pub const OPTION: &str = "--cuda-from";

/// What toolkits that are fetched by themselves serve beside compiling: kernels without torch, and those with it.
pub const FETCHED: [&[CudaUse]; 2] = [&[], &[CudaUse::TorchHeaders]];

/// The CUDA toolkits that a build can have.
#[derive(Clone, Copy)]
pub struct CudaToolkits<'a> {
    /// Toolkits whose compilers wheels carry.
    pub catalog: &'a Catalog,
    /// Fetches wheels.
    pub provisioner: &'a Provisioner<'a>,
    /// The directory that was named; nothing else counts then.
    pub named: Option<&'a Path>,
    /// The caller's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Where to keep what was found.
    pub cache_dir: &'a Path,
}

/// Which toolkit a variant wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The release.
    pub release: MajorMinor,
    /// What the machine is called in the catalog: `linux-x86_64`.
    pub platform: &'a str,
    /// What it is wanted for, beside compiling.
    pub uses: Vec<CudaUse>,
    /// Whether it may be fetched; a plan does without its files.
    pub fetch: bool,
}

impl CudaToolkits<'_> {
    /// The releases that this machine has: of the directory that was named, or else of every toolkit that is found.
    pub fn of_system(&self) -> Vec<MajorMinor> {
        self.candidates().iter().filter_map(release).collect()
    }

    /// Checks the directory that was named, if one was.
    ///
    /// # Errors
    /// When there is no toolkit in it, or one that lacks a part.
    pub fn check_named(&self) -> Result<(), BuildError> {
        let Some(dir) = self.named else { return Ok(()) };
        match self.candidates().first() {
            None => Err(BuildError::EmptyCudaDirectory { path: dir.to_owned() }),
            Some(kit) if !kit.is_complete() => Ok(CudaToolkit::of_kit(kit, String::new()).map(|_| ())?),
            Some(_) => Ok(()),
        }
    }

    /// Whether a toolkit for variants of `release` can be had.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn has(&self, release: MajorMinor, platform: &str) -> Result<(), String> {
        if self.in_catalog(release, platform).is_some() {
            return Ok(());
        }
        let releases = self.of_system();
        if releases.contains(&release) {
            return Ok(());
        }
        let others = if releases.is_empty() { String::new() } else { format!(", but {}", listed(&releases)) };
        let what = if self.named.is_some() { "it is not there" } else { "no wheel has the compiler, and this machine has no such toolkit" };
        Err(format!("there is no CUDA {release}: {what}{others}"))
    }

    /// The toolkit for variants of a release: the one that was named, or out of wheels, or the first complete one of the machine.
    ///
    /// # Errors
    /// When there is none, with what there is instead; those of a fetch.
    pub fn toolkit(&self, wanted: &Wanted<'_>) -> Result<CudaToolkit, BuildError> {
        match self.in_catalog(wanted.release, wanted.platform) {
            Some(known) => self.of_wheels(known, wanted),
            None => self.of_machine(wanted.release),
        }
    }

    /// The catalog's toolkit of a release; none when a directory was named.
    fn in_catalog(&self, release: MajorMinor, platform: &str) -> Option<&CatalogToolkit> {
        self.catalog.cuda(&Version::from(release), platform).filter(|_| self.named.is_none())
    }

    /// Whether [`CudaToolkits::toolkit`] would fetch wheels for a release, or has them; none for a toolkit of the machine.
    ///
    /// # Errors
    /// Those with which a fetch would end.
    pub fn would_provide(&self, wanted: &Wanted<'_>) -> Result<Option<(Version, Availability)>, BuildError> {
        let Some(known) = self.in_catalog(wanted.release, wanted.platform) else { return Ok(None) };
        let (name, parts) = CudaToolkit::wheel_tree(self.catalog, known, &compiling(&wanted.uses));
        let availability = self.provisioner.would_assemble(&name, &parts).map_err(|error| offline(error, known, wanted))?;
        Ok(Some((known.version.clone(), availability)))
    }

    fn of_wheels(&self, known: &CatalogToolkit, wanted: &Wanted<'_>) -> Result<CudaToolkit, BuildError> {
        let uses = compiling(&wanted.uses);
        match wanted.fetch {
            false => Ok(CudaToolkit::to_fetch(self.provisioner, known, &uses)),
            true => match CudaToolkit::fetched(self.provisioner, known, &uses) {
                Err(BuildError::Toolchain(error)) => Err(offline(error, known, wanted).into()),
                toolkit => toolkit,
            },
        }
    }

    fn of_machine(&self, release: MajorMinor) -> Result<CudaToolkit, BuildError> {
        let candidates = self.candidates();
        let fitting = || candidates.iter().filter(|kit| self::release(kit) == Some(release));
        if let Some(kit) = fitting().find(|kit| kit.is_complete()) {
            return Ok(CudaToolkit::of_machine(kit, self.cache_dir)?);
        }
        if let Some(kit) = fitting().next().or_else(|| candidates.first().filter(|_| self.named.is_some())) {
            // What it lacks is the better message.
            if !kit.is_complete() {
                CudaToolkit::of_kit(kit, String::new())?;
            }
        }
        let of = |kit: &Candidate| match &kit.version {
            Some(version) => format!("`{}` ({}) is CUDA {version}", kit.root.display(), kit.origin),
            None => format!("`{}` ({}) does not say which release it is", kit.root.display(), kit.origin),
        };
        let found = candidates.iter().map(of).collect();
        let hint = format!("name the directory of one with `{OPTION}`, or set CUDA_HOME to it; `--cuda` chooses among the variants");
        Err(BuildError::NoCuda { release, found, hint })
    }

    fn candidates(&self) -> Vec<Candidate> {
        CudaToolkit::candidates(self.environment, self.named.map(|dir| (OPTION, dir)))
    }
}

/// Name and parts of the tree of a toolkit out of wheels; none for a release that the catalog lacks.
pub fn wheel_tree(catalog: &Catalog, version: &Version, platform: &str, uses: &[CudaUse]) -> Option<(String, Vec<Part>)> {
    Some(CudaToolkit::wheel_tree(catalog, catalog.cuda(version, platform)?, &compiling(uses)))
}

/// What compiles, and what `uses` need beside it.
fn compiling(uses: &[CudaUse]) -> Vec<CudaUse> {
    [CudaUse::Compile].into_iter().chain(uses.iter().copied()).collect()
}

/// The command that fetches a toolkit by itself.
pub fn fetch_command(version: &Version) -> String {
    format!("kiln toolchain fetch cuda=={}", version.major_minor())
}

/// What fetches a toolkit by itself, if that is what `error` asks for; headers for torch and what compiles are fetched so.
fn offline(error: ToolchainError, known: &CatalogToolkit, wanted: &Wanted<'_>) -> ToolchainError {
    match error {
        error if FETCHED.iter().any(|uses| wanted.uses == *uses) => error.fetched_by(fetch_command(&known.version)),
        error => error,
    }
}

/// Refuses a directory that nvcc cannot work in.
///
/// # Errors
/// [`BuildError::CudaPath`].
pub fn check_path(path: &Path) -> Result<(), BuildError> {
    match unusable_letter(path) {
        Some(letter) => Err(BuildError::CudaPath { path: path.to_owned(), letter }),
        None => Ok(()),
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

/// Why `--arch` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchError {
    /// An entry is no capability.
    #[error(transparent)]
    Form(#[from] kiln_cuda::ArchRequestError),
    /// An entry is no architecture of AMD's.
    #[error(transparent)]
    RocmForm(#[from] kiln_rocm::ArchRequestError),
    /// The devices of this machine are not known.
    #[error("`--arch native` cannot be used: {0}")]
    Native(String),
}

/// What `--arch` asks for. `devices` is asked only for `native`, and gives the capabilities of this machine's devices.
///
/// # Errors
/// When it asks for something that is no capability, or there is no device.
pub fn arch_request(text: &str, devices: &dyn Fn() -> Result<Vec<String>, String>) -> Result<ArchRequest, ArchError> {
    if text.trim() != NATIVE {
        return Ok(text.parse()?);
    }
    let capabilities = devices().map_err(ArchError::Native)?;
    if capabilities.is_empty() {
        return Err(ArchError::Native("this machine has no NVIDIA device".to_owned()));
    }
    let listed = capabilities.join(",");
    listed.parse().map_err(|_| ArchError::Native(format!("the driver's answer is not understood: `{listed}`")))
}

/// The capabilities of this machine's NVIDIA devices, as the driver itself says.
///
/// # Errors
/// When there is no driver, or it does not answer.
pub fn device_capabilities() -> Result<Vec<String>, String> {
    match kiln_ffi::devices(kiln_ffi::Api::Cuda) {
        Ok(devices) => Ok(devices.into_iter().map(|device| device.arch).collect()),
        Err(error @ kiln_ffi::FfiError::Load { .. }) => Err(format!("there is no NVIDIA driver to ask: {error}")),
        Err(error) => Err(format!("the NVIDIA driver does not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_is_what_the_driver_says() {
        let asked = |answer: Result<&[&str], &str>| {
            let answer = answer.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect()).map_err(str::to_owned);
            arch_request("native", &move || answer.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(asked(Ok(&["9.0", "9.0", "8.6"])), Ok("8.6,9.0".parse().unwrap()));
        assert_eq!(asked(Ok(&[])).unwrap_err(), "`--arch native` cannot be used: this machine has no NVIDIA device");
        assert_eq!(asked(Err("no driver")).unwrap_err(), "`--arch native` cannot be used: no driver");
        assert_eq!(asked(Ok(&["[N/A]"])).unwrap_err(), "`--arch native` cannot be used: the driver's answer is not understood: `[N/A]`");
        let never = || panic!("nobody asked for the devices");
        assert_eq!(arch_request("9.0a, 10.0", &never), Ok("10.0,9.0a".parse().unwrap()));
    }
}
