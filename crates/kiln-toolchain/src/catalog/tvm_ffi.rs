//! Releases of tvm-ffi.

use kiln_format::Version;
use serde::Deserialize;

use super::pin::{checked, no};
use crate::error::Error;
use crate::names::LibraryExports;
use crate::part::{Members, Part, WheelPin};
use crate::store::TreeInfo;

/// One tvm-ffi build: a wheel for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TvmFfiRelease {
    /// Release, without a post-release part (`0.1.15` for `0.1.15.post2`: the headers and names are those of the newest post-release).
    pub version: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// The wheel.
    pub wheel: WheelPin,
    /// The licence that the wheel names.
    pub license: String,
    /// Name of the data file that holds the names its library exports.
    pub names: String,
}

/// An entry as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTvmFfi {
    version: String,
    platform: String,
    wheel: String,
    size: u64,
    sha256: String,
    record_sha256: String,
    license: String,
    names: String,
}

impl TvmFfiRelease {
    /// Include directories in the wheel, in their order.
    pub const INCLUDE_DIRS: [&'static str; 2] = ["tvm_ffi/include", "tvm_ffi/3rdparty/dlpack/include"];

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
        TreeInfo::new(format!("tvm-ffi-{}-{}", self.version, self.platform), part.digest(), vec![part])
    }

    /// What a build needs of the wheel: all headers, and on Windows the import library.
    pub fn part(&self) -> Part {
        let windows = self.platform.starts_with("windows-").then(|| "tvm_ffi/lib/tvm_ffi.lib".to_owned());
        let members = Members {
            dirs: Self::INCLUDE_DIRS.iter().map(|dir| format!("{dir}/")).collect(),
            files: windows.into_iter().collect(),
            programs: Vec::new(),
            max_size: 64 << 20,
        };
        Part::whole(self.wheel.clone(), members)
    }

    /// What a process needs of the wheel that loads kernels: the library.
    pub fn runtime_part(&self) -> Part {
        let members = Members { files: vec![self.runtime_library().to_owned()], max_size: 64 << 20, ..Members::default() };
        Part::whole(self.wheel.clone(), members)
    }

    /// Where the library lies in a tree with [`TvmFfiRelease::runtime_part`].
    pub fn runtime_library(&self) -> &'static str {
        match self.platform.split('-').next() {
            Some("windows") => "tvm_ffi/lib/tvm_ffi.dll",
            Some("darwin") => "tvm_ffi/lib/libtvm_ffi.dylib",
            _ => "tvm_ffi/lib/libtvm_ffi.so",
        }
    }
}

/// Checks one entry.
pub(super) fn release(raw: RawTvmFfi) -> Result<TvmFfiRelease, Error> {
    let place = format!("tvm-ffi {} for {}", raw.version, raw.platform);
    let RawTvmFfi { version, platform, wheel: file, size, sha256, record_sha256, license, names } = raw;
    let wheel = WheelPin { project: "apache-tvm-ffi".to_owned(), file, size, sha256, record_sha256 };
    Ok(TvmFfiRelease {
        version: Version::parse(&version).map_err(|_| no(&place, &version, "version"))?,
        wheel: checked(wheel, &place)?,
        platform,
        license,
        names,
    })
}
