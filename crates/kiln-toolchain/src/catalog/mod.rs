//! The catalog: which wheel carries which torch or part of a toolkit, pinned by digest.
//!
//! It is data: `catalog/*.toml` and the names files beside them, written by `cargo xtask catalog`. It names packages, files and
//! digests, never a place to fetch them from: that is what the index at use says.

mod cuda;
mod flavour;
mod headers;
mod pin;
#[cfg(test)]
mod tests;
mod torch;
mod torch_npu;
mod tvm_ffi;

use kiln_format::lock::Lock;
use kiln_format::{MajorMinor, Version};
use serde::Deserialize;

use self::cuda::{RawCuda, RawMembers};
use self::headers::RawHeaders;
use self::torch::RawTorch;
use self::torch_npu::RawTorchNpu;
use self::tvm_ffi::RawTvmFfi;
use crate::error::Error;
use crate::part::{Part, WheelPin};

pub use self::cuda::{CudaMembers, CudaToolkit, CudaUse};
pub use self::flavour::{TorchBuild, torch_build_serves, torch_compute_of, torch_local_for};
pub use self::headers::{HeaderLibrary, cutlass_version, metal_cpp_version};
pub use self::torch::TorchRelease;
pub(crate) use self::torch::shown;
pub use self::torch_npu::TorchNpuRelease;
pub use self::tvm_ffi::TvmFfiRelease;

/// The catalog that is compiled in.
const EMBEDDED: &str = concat!(
    include_str!("../../catalog/torch.toml"),
    "\n",
    include_str!("../../catalog/torch-npu.toml"),
    "\n",
    include_str!("../../catalog/tvm-ffi.toml"),
    "\n",
    include_str!("../../catalog/cuda.toml"),
    "\n",
    include_str!("../../catalog/cuda-members.toml"),
    "\n",
    include_str!("../../catalog/headers.toml"),
);

/// Everything that Kiln can provision from wheels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    releases: Vec<TorchRelease>,
    torch_npu: Vec<TorchNpuRelease>,
    tvm_ffi: Vec<TvmFfiRelease>,
    cuda: Vec<CudaToolkit>,
    cuda_members: Vec<CudaMembers>,
    headers: Vec<HeaderLibrary>,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalog {
    #[serde(default)]
    torch: Vec<RawTorch>,
    #[serde(default, rename = "torch-npu")]
    torch_npu: Vec<RawTorchNpu>,
    #[serde(default, rename = "tvm-ffi")]
    tvm_ffi: Vec<RawTvmFfi>,
    #[serde(default)]
    cuda: Vec<RawCuda>,
    #[serde(default, rename = "cuda-members")]
    cuda_members: Vec<RawMembers>,
    #[serde(default)]
    headers: Vec<RawHeaders>,
}

impl Catalog {
    /// The catalog that is compiled in.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse(EMBEDDED)
    }

    /// Reads a catalog in TOML: `[[torch]]` tables with the fields of [`TorchRelease`] (`cxx` for the language level), `[[torch-npu]]` with those
    /// of [`TorchNpuRelease`], `[[tvm-ffi]]` with those of [`TvmFfiRelease`], `[[cuda]]`
    /// tables with those of [`CudaToolkit`], `[[cuda-members]]` with those of [`CudaMembers`], `[[headers]]` with those of
    /// [`HeaderLibrary`]. Releases are kept by ascending
    /// version, then platform.
    ///
    /// # Errors
    /// [`Error::Catalog`] when the text is no TOML, an entry lacks a field, has one too many or a malformed one, or two
    /// entries are for one version and platform.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let raw: RawCatalog = toml::from_str(text).map_err(|cause| damaged(cause.message().to_owned()))?;
        let mut releases = raw.torch.into_iter().map(torch::release).collect::<Result<Vec<_>, _>>()?;
        releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
        once("torch", releases.iter().map(|release| (&release.version, release.platform.as_str())))?;
        let mut torch_npu = raw.torch_npu.into_iter().map(torch_npu::release).collect::<Result<Vec<_>, _>>()?;
        torch_npu.sort_by(|a, b| (&a.torch, &a.platform).cmp(&(&b.torch, &b.platform)));
        once("torch-npu for torch", torch_npu.iter().map(|release| (&release.torch, release.platform.as_str())))?;
        let mut tvm_ffi = raw.tvm_ffi.into_iter().map(tvm_ffi::release).collect::<Result<Vec<_>, _>>()?;
        tvm_ffi.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
        once("tvm-ffi", tvm_ffi.iter().map(|release| (&release.version, release.platform.as_str())))?;
        let mut cuda = raw.cuda.into_iter().map(cuda::toolkit).collect::<Result<Vec<_>, _>>()?;
        cuda.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
        once("CUDA", cuda.iter().map(|toolkit| (&toolkit.version, toolkit.platform.as_str())))?;
        let cuda_members = raw.cuda_members.into_iter().map(cuda::members).collect::<Result<Vec<_>, _>>()?;
        let mut headers = raw.headers.into_iter().map(headers::library).collect::<Result<Vec<_>, _>>()?;
        headers.sort_by(|a, b| a.name.cmp(&b.name));
        let twice = headers.iter().zip(headers.iter().skip(1)).find(|(library, next)| library.name == next.name);
        if let Some((library, _)) = twice {
            return Err(damaged(format!("the headers `{}` have two entries", library.name)));
        }
        Ok(Self { releases, torch_npu, tvm_ffi, cuda, cuda_members, headers })
    }

    /// The same with the releases that a lock file pins. They stand in place of those for the same version, local part and platform.
    #[must_use]
    pub fn with_locked(mut self, lock: &Lock) -> Self {
        for torch in lock.torch().iter().map(TorchRelease::from) {
            let same =
                |known: &TorchRelease| (&known.version, &known.platform, known.local()) == (&torch.version, &torch.platform, torch.local());
            if self.releases.iter().any(|known| same(known) && known.wheel == torch.wheel) {
                // Its names are at hand.
                continue;
            }
            self.releases.retain(|known| !same(known));
            self.releases.push(torch);
        }
        self.releases.sort_by(|a, b| (&a.version, &a.platform, a.local()).cmp(&(&b.version, &b.platform, b.local())));
        self
    }

    /// All releases of torch, by ascending version, then platform, then local part of the version, those without one first.
    pub fn releases(&self) -> &[TorchRelease] {
        &self.releases
    }

    /// The release `version` of torch for `platform`: the build without a local part of its version, or else the first of those that
    /// have one.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`] with what there is for the platform.
    pub fn torch(&self, version: &Version, platform: &str) -> Result<&TorchRelease, Error> {
        let mut of_release = self.releases.iter().filter(|release| release.version == *version && release.platform == platform);
        of_release.next().ok_or_else(|| self.unknown_torch(version, None, platform))
    }

    /// The build of `version` of torch for `platform` with just this local part of its version, such as `cu126`, or with none.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`] with what there is for the platform.
    pub fn torch_build(&self, version: &Version, local: Option<&str>, platform: &str) -> Result<&TorchRelease, Error> {
        let is_it = |release: &&TorchRelease| (&release.version, release.platform.as_str(), release.local()) == (version, platform, local);
        self.releases.iter().find(is_it).ok_or_else(|| self.unknown_torch(version, local, platform))
    }

    fn unknown_torch(&self, version: &Version, local: Option<&str>, platform: &str) -> Error {
        let known = self.releases.iter().filter(|release| release.platform == platform).map(TorchRelease::shown).collect();
        Error::UnknownTorch { version: torch::shown(version, local), platform: platform.to_owned(), known }
    }

    /// All releases of torch-npu, by the release of torch that each is for, then platform.
    pub fn torch_npu_releases(&self) -> &[TorchNpuRelease] {
        &self.torch_npu
    }

    /// The torch-npu that goes with a release of torch for `platform`: the one that was made for it, or else for another one of the same
    /// minor version, within which torch keeps its interfaces. Its variants are named after the minor alone.
    ///
    /// # Errors
    /// [`Error::UnknownTorchNpu`] with those that there are for the platform.
    pub fn torch_npu_for(&self, torch: &Version, platform: &str) -> Result<&TorchNpuRelease, Error> {
        let of_platform = || self.torch_npu.iter().filter(|release| release.platform == platform);
        let of_minor = || of_platform().rev().find(|release| release.torch.major_minor() == torch.major_minor());
        of_platform().find(|release| release.torch == *torch).or_else(of_minor).ok_or_else(|| Error::UnknownTorchNpu {
            torch: torch.to_string(),
            platform: platform.to_owned(),
            known: of_platform().map(|release| release.torch.to_string()).collect(),
        })
    }

    /// All releases of tvm-ffi, by ascending version, then platform.
    pub fn tvm_ffi_releases(&self) -> &[TvmFfiRelease] {
        &self.tvm_ffi
    }

    /// The release `version` of tvm-ffi for `platform`.
    ///
    /// # Errors
    /// [`Error::UnknownTvmFfi`] with what there is for the platform.
    pub fn tvm_ffi(&self, version: &Version, platform: &str) -> Result<&TvmFfiRelease, Error> {
        let mut of_platform = self.tvm_ffi.iter().filter(|release| release.platform == platform);
        of_platform.clone().find(|release| release.version == *version).ok_or_else(|| Error::UnknownTvmFfi {
            version: version.to_string(),
            platform: platform.to_owned(),
            known: of_platform.by_ref().map(|release| release.version.to_string()).collect(),
        })
    }

    /// The oldest release of tvm-ffi with this minor version for `platform`: variants are named after the minor, so what is compiled
    /// for one must load with each of its releases, and later ones keep what earlier ones had.
    ///
    /// # Errors
    /// [`Error::UnknownTvmFfi`] when there is none.
    pub fn oldest_tvm_ffi(&self, minor: MajorMinor, platform: &str) -> Result<&TvmFfiRelease, Error> {
        let of_minor = |release: &&TvmFfiRelease| release.version.major_minor() == minor && release.platform == platform;
        self.tvm_ffi.iter().find(of_minor).map_or_else(|| self.tvm_ffi(&Version::from(minor), platform), Ok)
    }

    /// All libraries of headers, by ascending name.
    pub fn header_libraries(&self) -> &[HeaderLibrary] {
        &self.headers
    }

    /// The library of headers that `depends` calls `name`, if a wheel carries it.
    pub fn headers(&self, name: &str) -> Option<&HeaderLibrary> {
        self.headers.iter().find(|library| library.name == name)
    }

    /// All CUDA toolkits, by ascending version, then platform. The platform is the machine that the toolkit runs on.
    pub fn cuda_toolkits(&self) -> &[CudaToolkit] {
        &self.cuda
    }

    /// The newest toolkit of the same major and minor version as `version` for `platform`, if there is one.
    pub fn cuda(&self, version: &Version, platform: &str) -> Option<&CudaToolkit> {
        self.cuda.iter().rev().find(|toolkit| toolkit.version.major_minor() == version.major_minor() && toolkit.platform == platform)
    }

    /// The parts of a toolkit that serve `uses`, for one tree; in the order of the toolkit's wheels.
    pub fn cuda_parts(&self, toolkit: &CudaToolkit, uses: &[CudaUse]) -> Vec<Part> {
        let members_of = |wheel: &WheelPin| -> Vec<&CudaMembers> {
            let members = self.cuda_members.iter().filter(|members| members.project == wheel.project);
            members.filter(|members| uses.contains(&members.used_for)).collect()
        };
        let wheels = toolkit.wheels.iter().map(|wheel| (wheel, members_of(wheel)));
        wheels.filter(|(_, members)| !members.is_empty()).map(|(wheel, members)| toolkit.part(wheel, &members)).collect()
    }
}

fn damaged(reason: String) -> Error {
    Error::Catalog { reason }
}

/// Fails when two entries are for one version and platform; entries are sorted.
fn once<'c>(what: &str, entries: impl Iterator<Item = (&'c Version, &'c str)>) -> Result<(), Error> {
    let mut previous = None;
    for entry in entries {
        if previous == Some(entry) {
            return Err(damaged(format!("{what} {} for {} has two entries", entry.0, entry.1)));
        }
        previous = Some(entry);
    }
    Ok(())
}
