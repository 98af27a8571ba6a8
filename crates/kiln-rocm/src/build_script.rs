//! HIP in build scripts of others, by the machine's ROCm.

use std::path::Path;

use kiln_backend::build_script::{BuildError, DeviceCode, DeviceOptions, Provided, Request, Vendor};
use kiln_backend::discover::{Candidate, KitKind};
use kiln_backend::{KernelOptions, MajorMinor, Span, Spanned, Version};

use crate::arch::ArchRequest;
use crate::backend::RocmBackend;
use crate::toolkit::{RocmToolkit, ToolkitError};

/// A static library of HIP, C++ and C.
pub type Build = kiln_backend::build_script::Build<Rocm>;

/// The vendor of [`Build`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Rocm;

/// How errors name `.toolkit(dir)`.
const NAMED: &str = ".toolkit(..)";

impl DeviceCode for Rocm {}

impl Vendor for Rocm {
    fn provide(&self, request: &Request<'_>) -> Result<Provided, BuildError> {
        let cargo = request.cargo;
        if cargo.is_cross() {
            return Err(BuildError::Cross { backend: "HIP".to_owned(), target: cargo.target().to_owned() });
        }
        let arch = arch_request(request.device)?;
        let release = request.device.release.as_deref().map(release_of).transpose()?;
        let named = request.device.toolkit.as_ref().map(|dir| cargo.in_package(dir));
        let kit = kit(request, named.as_deref(), release)?;
        // The run time is that of the ROCm at hand: the program runs with it.
        let own = kit.version.as_ref().map_or(MajorMinor::new(0, 0), Version::major_minor);
        let toolkit = RocmToolkit::of_machine(&kit, own, request.cache_dir)?;
        let flags = request.device.flags.iter().map(|flag| Spanned::new(flag.clone(), Span::new(0, 0))).collect();
        let runtime_dir = kit.part("libamdhip64.so").and_then(Path::parent).map(Path::to_owned);
        Ok(Provided {
            runtime_dir: runtime_dir.filter(|_| request.has_device_code),
            variables: KitKind::Rocm.variables().map(str::to_owned).collect(),
            ..Provided::plain(RocmBackend::new(toolkit, arch), Some(KernelOptions::Rocm { archs: None, flags }))
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
    let hint = "architectures are written as `gfx942`, `gfx942:xnack+` or `gfx11-generic`";
    let wrong = |entry: &str| BuildError::Capability { entry: entry.to_owned(), what: "AMD architecture", hint };
    if list.is_empty() {
        return Err(wrong(""));
    }
    ArchRequest::of_entries(list.iter().map(String::as_str)).map(Some).map_err(|error| wrong(&error.entry))
}

fn release_of(text: &str) -> Result<MajorMinor, BuildError> {
    let none = |_| BuildError::Capability { entry: text.to_owned(), what: "release of ROCm", hint: "a release is written as `7.1`" };
    Ok(Version::parse(text).map_err(none)?.major_minor())
}

/// A ROCm of this machine: the one in `named`, or the first complete one that is found.
fn kit(request: &Request<'_>, named: Option<&Path>, release: Option<MajorMinor>) -> Result<Candidate, BuildError> {
    let candidates = RocmToolkit::candidates(request.cargo.variables(), named.map(|dir| (NAMED, dir)));
    let is_wanted = |kit: &&Candidate| release.is_none() || kit.version.as_ref().map(Version::major_minor) == release;
    let fitting: Vec<&Candidate> = candidates.iter().filter(is_wanted).collect();
    match fitting.iter().find(|kit| kit.is_complete()).or_else(|| fitting.first()) {
        Some(kit) => Ok((**kit).clone()),
        None => Err(none_found(named, release, &candidates)),
    }
}

fn none_found(named: Option<&Path>, release: Option<MajorMinor>, candidates: &[Candidate]) -> BuildError {
    let what = release.map_or_else(|| "ROCm".to_owned(), |release| format!("ROCm {release}"));
    let place = named.map_or_else(|| "on this machine".to_owned(), |dir| format!("in `{}`", dir.display()));
    let others: Vec<String> =
        candidates.iter().filter_map(|kit| Some(format!("`{}` is ROCm {}", kit.root.display(), kit.version.as_ref()?))).collect();
    let others = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
    let hint = "set ROCM_PATH to the directory of one, or name it with `.toolkit(..)`";
    BuildError::Toolkit { message: format!("there is no {what} {place}{others}"), hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_taken_as_they_are_asked_for() {
        let of = |list: &[&str]| {
            let capabilities = Some(list.iter().map(|entry| (*entry).to_owned()).collect());
            arch_request(&DeviceOptions { capabilities, ..DeviceOptions::default() }).map_err(|error| error.to_string())
        };
        assert_eq!(of(&["gfx942:xnack+", "gfx90a"]).unwrap(), Some("gfx90a,gfx942:xnack+".parse().unwrap()));
        assert_eq!(of(&["sm_90"]).unwrap_err(), "`sm_90` is no AMD architecture");
        assert_eq!(of(&["gfx90a,gfx942"]).unwrap_err(), "`gfx90a,gfx942` is no AMD architecture", "an entry is one");
        assert!(of(&[]).is_err(), "code for nothing is no code");
        assert_eq!(release_of("new").unwrap_err().to_string(), "`new` is no release of ROCm");
    }
}
