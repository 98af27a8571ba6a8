//! CUDA in build scripts of others.
//!
//! With the feature `wheels` the toolkit comes out of wheels, whatever the machine has; without it there is no network code, and the
//! toolkit is the machine's. `.toolkit(dir)` names one in both cases.

use std::path::Path;

use kiln_backend::build_script::{BuildError, DeviceCode, DeviceOptions, Provided, Request, Vendor};
use kiln_backend::discover::{Candidate, KitKind};
use kiln_backend::{KernelOptions, MajorMinor, Span, Spanned, Version};

use crate::backend::CudaBackend;
use crate::capability::ArchRequest;
use crate::dry_run::DryRuns;
use crate::toolkit::{CudaToolkit, ToolkitError, unusable_letter};

/// A static library of CUDA, C++ and C.
pub type Build = kiln_backend::build_script::Build<Cuda>;

/// The vendor of [`Build`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cuda;

/// How errors name `.toolkit(dir)`.
const NAMED: &str = ".toolkit(..)";

/// A toolkit, and what keeps its files from being removed.
type Ready = (CudaToolkit, Option<Box<dyn Send>>);

impl DeviceCode for Cuda {}

impl Vendor for Cuda {
    fn provide(&self, request: &Request<'_>) -> Result<Provided, BuildError> {
        let cargo = request.cargo;
        if cargo.is_cross() {
            return Err(BuildError::Cross { backend: "CUDA".to_owned(), target: cargo.target().to_owned() });
        }
        for path in [cargo.package(), cargo.out_dir(), request.cache_dir] {
            if let Some(letter) = unusable_letter(path) {
                let reason = format!("nvcc cannot work in a directory with `{}` in its path", letter.escape_default());
                return Err(BuildError::Path { path: path.to_owned(), reason });
            }
        }
        let arch = arch_request(request.device)?;
        let release = request.device.release.as_deref().map(release_of).transpose()?;
        let (toolkit, held) = match &request.device.toolkit {
            Some(dir) => (of_machine(request, Some(&cargo.in_package(dir)), release)?, None),
            None => unnamed(request, release)?,
        };
        let flags = request.device.flags.iter().map(|flag| Spanned::new(flag.clone(), Span::new(0, 0))).collect();
        let runtime_dir = toolkit.runtime_dir();
        Ok(Provided {
            runtime_dir: request.has_device_code.then_some(runtime_dir),
            variables: KitKind::Cuda.variables().map(str::to_owned).collect(),
            held,
            ..Provided::plain(
                CudaBackend::new(toolkit, arch).with_dry_runs(DryRuns::kept_in(request.cache_dir).into()),
                Some(KernelOptions::Cuda { capabilities: None, flags, minver: None }),
            )
        })
    }
}

impl From<ToolkitError> for BuildError {
    fn from(error: ToolkitError) -> Self {
        Self::Toolkit { message: error.to_string(), hint: error.hint() }
    }
}

/// What a build script asks for is what it gets: it is no list to choose from.
fn arch_request(device: &DeviceOptions) -> Result<Option<ArchRequest>, BuildError> {
    let Some(list) = &device.capabilities else { return Ok(None) };
    let what = "compute capability";
    let hint = "capabilities are written as `8.0`, `9.0a`, `10.0f` or `12.0+PTX`";
    let wrong = |entry: &str| BuildError::Capability { entry: entry.to_owned(), what, hint };
    if list.is_empty() {
        return Err(wrong(""));
    }
    ArchRequest::of_entries(list.iter().map(String::as_str)).map(Some).map_err(wrong)
}

fn release_of(text: &str) -> Result<MajorMinor, BuildError> {
    let none = |_| BuildError::Capability { entry: text.to_owned(), what: "release of CUDA", hint: "a release is written as `13.0`" };
    Ok(Version::parse(text).map_err(none)?.major_minor())
}

/// The toolkit where none is named: the machine's.
#[cfg(not(feature = "wheels"))]
fn unnamed(request: &Request<'_>, release: Option<MajorMinor>) -> Result<Ready, BuildError> {
    Ok((of_machine(request, None, release)?, None))
}

/// The toolkit where none is named: out of wheels.
#[cfg(feature = "wheels")]
fn unnamed(request: &Request<'_>, release: Option<MajorMinor>) -> Result<Ready, BuildError> {
    use kiln_backend::{Catalog, CudaUse, Network, ProvisionOptions, Provisioner, RetryPolicy};

    let cargo = request.cargo;
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let catalog = Catalog::embedded()?;
    let releases: Vec<MajorMinor> = {
        let of_platform = catalog.cuda_toolkits().iter().filter(|toolkit| toolkit.platform == platform);
        of_platform.map(|toolkit| toolkit.version.major_minor()).collect()
    };
    let wanted = release.or_else(|| widest(&releases));
    let Some(known) = wanted.and_then(|release| catalog.cuda(&Version::from(release), &platform)) else {
        let known: Vec<String> = releases.iter().map(ToString::to_string).collect();
        let message = match wanted {
            Some(release) => format!("there is no CUDA {release} out of wheels: they have {}", known.join(", ")),
            None => format!("there is no CUDA out of wheels for {platform}"),
        };
        return Err(BuildError::Toolkit { message, hint: Some("name the directory of a toolkit with `.toolkit(..)`".to_owned()) });
    };
    let options = ProvisionOptions {
        cache_dir: request.cache_dir.to_owned(),
        lower: cargo.shared_caches(),
        offline: cargo.variable("CARGO_NET_OFFLINE") == Some("true"),
        retry: RetryPolicy::default(),
    };
    let network = || Network::of_machine(cargo.variables(), cargo.package(), request.cache_dir);
    let provisioner = Provisioner::new(&catalog, options, &network, &|_| {});
    let mut uses = vec![CudaUse::Compile];
    if request.device.flags.iter().any(|flag| crate::flags::is_relocatable(flag)) {
        uses.push(CudaUse::DeviceLink);
    }
    let toolkit = CudaToolkit::fetched::<BuildError>(&provisioner, known, &uses)?;
    Ok((toolkit, Some(Box::new(provisioner.into_marks()))))
}

/// The release whose code the most drivers run: the first of the newest major.
#[cfg(any(feature = "wheels", test))]
fn widest(releases: &[MajorMinor]) -> Option<MajorMinor> {
    let newest = releases.iter().map(|release| release.major).max()?;
    releases.iter().filter(|release| release.major == newest).min().copied()
}

/// A toolkit of this machine: the one in `named`, or the first complete one that is found.
fn of_machine(request: &Request<'_>, named: Option<&Path>, release: Option<MajorMinor>) -> Result<CudaToolkit, BuildError> {
    let candidates = CudaToolkit::candidates(request.cargo.variables(), named.map(|dir| (NAMED, dir)));
    let is_wanted = |kit: &&Candidate| release.is_none() || kit.version.as_ref().map(Version::major_minor) == release;
    let fitting: Vec<&Candidate> = candidates.iter().filter(is_wanted).collect();
    if let Some(kit) = fitting.iter().find(|kit| kit.is_complete()).or_else(|| fitting.first()) {
        return Ok(CudaToolkit::of_machine(kit, request.cache_dir)?);
    }
    Err(none_found(named, release, &candidates))
}

fn none_found(named: Option<&Path>, release: Option<MajorMinor>, candidates: &[Candidate]) -> BuildError {
    let what = release.map_or_else(|| "CUDA toolkit".to_owned(), |release| format!("toolkit of CUDA {release}"));
    let place = named.map_or_else(|| "on this machine".to_owned(), |dir| format!("in `{}`", dir.display()));
    let others: Vec<String> =
        candidates.iter().filter_map(|kit| Some(format!("`{}` is CUDA {}", kit.root.display(), kit.version.as_ref()?))).collect();
    let others = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
    let ways = "set CUDA_HOME to the directory of one, or name it with `.toolkit(..)`";
    let hint = match cfg!(feature = "wheels") {
        true => ways.to_owned(),
        false => format!("{ways}; the feature `wheels` of `kiln-cuda` fetches one"),
    };
    BuildError::Toolkit { message: format!("there is no {what} {place}{others}"), hint: Some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_of(list: &[&str]) -> Result<Option<ArchRequest>, String> {
        let capabilities = Some(list.iter().map(|entry| (*entry).to_owned()).collect());
        arch_request(&DeviceOptions { capabilities, ..DeviceOptions::default() }).map_err(|error| error.to_string())
    }

    #[test]
    fn capabilities_are_taken_as_they_are_asked_for() {
        assert_eq!(request_of(&["9.0a", "8.0", "12.0+PTX"]).unwrap(), Some("8.0,9.0a,12.0+PTX".parse().unwrap()));
        assert_eq!(request_of(&["sm_90"]).unwrap_err(), "`sm_90` is no compute capability");
        assert_eq!(request_of(&["native"]).unwrap_err(), "`native` is no compute capability");
        assert_eq!(request_of(&["8.0,9.0"]).unwrap_err(), "`8.0,9.0` is no compute capability", "an entry is one");
        assert!(request_of(&[]).is_err(), "code for nothing is no code");
        assert_eq!(arch_request(&DeviceOptions::default()).unwrap(), None);
    }

    #[test]
    fn without_a_wish_most_drivers_are_served() {
        let releases = [(12, 9), (13, 0), (13, 2)].map(|(major, minor)| MajorMinor::new(major, minor));
        assert_eq!(widest(&releases), Some(MajorMinor::new(13, 0)));
        assert_eq!(widest(&[]), None);
        assert_eq!(release_of("13.2").unwrap(), MajorMinor::new(13, 2));
        assert_eq!(release_of("new").unwrap_err().to_string(), "`new` is no release of CUDA");
    }
}
