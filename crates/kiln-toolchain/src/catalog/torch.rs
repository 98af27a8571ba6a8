//! Releases of torch.

use kiln_format::Version;
use kiln_format::lock::LockedTorch;
use serde::Deserialize;

use super::pin::{checked, no};
use crate::error::Error;
use crate::index::WheelName;
use crate::names::LibraryExports;
use crate::part::WheelPin;
use crate::toolchain::CxxLevel;

/// One torch build: a wheel for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchRelease {
    /// Release, without a local part.
    pub version: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// The wheel.
    pub wheel: WheelPin,
    /// The CUDA release it was built with; none for a CPU build.
    pub cuda: Option<Version>,
    /// The language level that its umbrella headers want.
    pub cxx_level: CxxLevel,
    /// The license that the wheel names: an SPDX expression.
    pub license: String,
    /// The names its libraries export: name of the data file of the catalog, or sha256 of the store's file for a locked release.
    pub names: String,
    /// Whether it comes from a lock file.
    pub locked: bool,
}

impl From<&LockedTorch> for TorchRelease {
    fn from(locked: &LockedTorch) -> Self {
        let LockedTorch { version, platform, wheel, size, sha256, record_sha256, cuda, cxx, license, names_sha256 } = locked.clone();
        Self {
            cxx_level: CxxLevel::parse(&cxx).unwrap_or_else(|| CxxLevel::of_torch(&version)),
            wheel: WheelPin { project: "torch".to_owned(), file: wheel, size, sha256, record_sha256 },
            version,
            platform,
            cuda,
            license,
            names: names_sha256,
            locked: true,
        }
    }
}

/// An entry as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTorch {
    version: String,
    platform: String,
    wheel: String,
    size: u64,
    sha256: String,
    record_sha256: String,
    cuda: Option<String>,
    cxx: String,
    license: String,
    names: String,
}

impl TorchRelease {
    /// The local part of the wheel's version, such as `cu126`, where it has one.
    pub fn local(&self) -> Option<&str> {
        WheelName::parse(&self.wheel.file)?.local
    }

    /// Its version with the local part: `2.11.0+cu126`.
    pub fn shown(&self) -> String {
        shown(&self.version, self.local())
    }

    /// What its libraries export, in link order.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn exports(&self) -> Result<Vec<LibraryExports>, Error> {
        crate::names::of_catalog(&self.names)
    }
}

/// A version with its local part.
pub(crate) fn shown(version: &Version, local: Option<&str>) -> String {
    local.map_or_else(|| version.to_string(), |local| format!("{version}+{local}"))
}

/// Checks one entry.
pub(super) fn release(raw: RawTorch) -> Result<TorchRelease, Error> {
    let place = format!("torch {} for {}", raw.version, raw.platform);
    let version = |field: &str, text: &str| Version::parse(text).map_err(|_| no(&place, text, field));
    let wheel =
        WheelPin { project: "torch".to_owned(), file: raw.wheel, size: raw.size, sha256: raw.sha256, record_sha256: raw.record_sha256 };
    Ok(TorchRelease {
        version: version("version", &raw.version)?,
        cuda: raw.cuda.as_deref().map(|text| version("CUDA version", text)).transpose()?,
        cxx_level: CxxLevel::parse(&raw.cxx).ok_or_else(|| no(&place, &raw.cxx, "language level"))?,
        wheel: checked(wheel, &place)?,
        platform: raw.platform,
        license: raw.license,
        names: raw.names,
        locked: false,
    })
}
