//! Releases of torch-npu, which makes torch run on Ascend NPUs.

use kiln_format::Version;
use serde::Deserialize;

use super::pin::{checked, no};
use crate::error::Error;
use crate::names::LibraryExports;
use crate::part::{Members, Part, WheelPin};
use crate::store::TreeInfo;

/// One build of torch-npu: a wheel for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchNpuRelease {
    /// The release of torch that it is for, as the wheel's own metadata require it.
    pub torch: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// The wheel. Its version is the release: `2.12.0.post3`.
    pub wheel: WheelPin,
    /// The license that the wheel names.
    pub license: String,
    /// Name of the data file that holds the names its library exports.
    pub names: String,
}

/// An entry as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTorchNpu {
    torch: String,
    platform: String,
    wheel: String,
    size: u64,
    sha256: String,
    record_sha256: String,
    license: String,
    names: String,
}

impl TorchNpuRelease {
    /// The project on the index.
    pub const PROJECT: &'static str = "torch-npu";
    /// Include directories in the wheel, in their order. Headers of the first include some of the second by names of their own.
    pub const INCLUDE_DIRS: [&'static str; 2] = ["torch_npu/include", "torch_npu/include/third_party/hccl/inc"];
    /// The library that extensions link with.
    pub const LIBRARY: &'static str = "torch_npu/lib/libtorch_npu.so";

    /// What its library exports: one library.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn exports(&self) -> Result<Vec<LibraryExports>, Error> {
        crate::names::of_catalog(&self.names)
    }

    /// The tree of a release: its one part.
    pub(crate) fn tree(&self) -> TreeInfo {
        let part = self.part();
        TreeInfo::new(format!("torch-npu-{}-{}", self.wheel.version(), self.platform), part.digest(), vec![part])
    }

    /// What a build needs of the wheel: all headers.
    pub fn part(&self) -> Part {
        let dirs = vec![format!("{}/", Self::INCLUDE_DIRS[0])];
        Part::whole(self.wheel.clone(), Members { dirs, max_size: 64 << 20, ..Members::default() })
    }
}

/// Checks one entry.
pub(super) fn release(raw: RawTorchNpu) -> Result<TorchNpuRelease, Error> {
    let place = format!("torch-npu for torch {} and {}", raw.torch, raw.platform);
    let RawTorchNpu { torch, platform, wheel: file, size, sha256, record_sha256, license, names } = raw;
    let wheel = WheelPin { project: TorchNpuRelease::PROJECT.to_owned(), file, size, sha256, record_sha256 };
    Ok(TorchNpuRelease {
        torch: Version::parse(&torch).map_err(|_| no(&place, &torch, "version"))?,
        wheel: checked(wheel, &place)?,
        platform,
        license,
        names,
    })
}
