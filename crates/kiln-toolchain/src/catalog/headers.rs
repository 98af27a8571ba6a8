//! Libraries of headers that kernels name in `depends`, and that wheels carry.

use kiln_format::Version;
use serde::Deserialize;

use super::pin::{checked, no};
use crate::error::Error;
use crate::part::{Members, Part, WheelPin};

/// One release of a library of headers: a wheel for every platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLibrary {
    /// Its name in `depends`: `cutlass_3_5`.
    pub name: String,
    /// The release, as its own headers state it; for SYCL*TLA, whose headers state that of CUTLASS, as the wheel does.
    pub version: Version,
    /// The wheel.
    pub wheel: WheelPin,
    /// The licence that the wheel names.
    pub license: String,
}

/// An entry of `[[headers]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHeaders {
    name: String,
    version: String,
    project: String,
    file: String,
    size: u64,
    sha256: String,
    record_sha256: String,
    license: String,
}

impl HeaderLibrary {
    /// Where the headers are in the wheel: the tree of a release is this directory.
    pub const INCLUDE: &'static str = "cutlass_library/source/include/";

    /// The name of the project whose wheels have SYCL*TLA, which is CUTLASS for Intel's GPUs.
    pub const TLA_PROJECT: &'static str = "sycl-tla";
    /// Where a library's sources are in the wheel.
    const SOURCE: &'static str = "cutlass_library/source/";
    /// Where the headers of SYCL*TLA are below its sources.
    pub const TLA_INCLUDE_DIRS: [&'static str; 2] = ["include", "tools/util/include"];

    /// The name of the project whose wheels have metal-cpp.
    pub const METAL_CPP_PROJECT: &'static str = "mlx-metal";
    /// Where metal-cpp is in the wheel.
    pub const METAL_CPP: &'static str = "mlx/include/metal_cpp/";

    /// What a build needs of the wheel: the headers, and nothing of the library's tools. Those of SYCL*TLA are in two directories, as in
    /// its sources.
    pub fn part(&self) -> Part {
        let (strip, dirs) = match self.is_tla() {
            _ if self.is_metal_cpp() => (Self::METAL_CPP, vec![Self::METAL_CPP.to_owned()]),
            true => (Self::SOURCE, Self::TLA_INCLUDE_DIRS.map(|dir| format!("{}{dir}/", Self::SOURCE)).to_vec()),
            false => (Self::INCLUDE, vec![Self::INCLUDE.to_owned()]),
        };
        let members = Members { dirs, max_size: 128 << 20, ..Members::default() };
        Part { strip: strip.to_owned(), ..Part::whole(self.wheel.clone(), members) }
    }

    /// What its tree is called.
    pub fn tree_name(&self) -> String {
        let name = match () {
            () if self.is_tla() => Self::TLA_PROJECT,
            () if self.is_metal_cpp() => self.name.as_str(),
            () => self.name.split('_').next().unwrap_or_default(),
        };
        format!("{name}-{}", self.version)
    }

    /// Whether it is metal-cpp.
    pub fn is_metal_cpp(&self) -> bool {
        self.wheel.project == Self::METAL_CPP_PROJECT
    }

    /// Whether it is SYCL*TLA.
    pub fn is_tla(&self) -> bool {
        self.wheel.project == Self::TLA_PROJECT
    }
}

/// The release that metal-cpp states in its `Metal/MTLVersion.hpp`; none where that is no such header.
pub fn metal_cpp_version(header: &str) -> Option<Version> {
    stated(header, ["METALCPP_VERSION_MAJOR", "METALCPP_VERSION_MINOR", "METALCPP_VERSION_PATCH"])
}

/// The release that a library of CUTLASS states in its `cutlass/version.h`; none where that is no such header.
pub fn cutlass_version(header: &str) -> Option<Version> {
    stated(header, ["CUTLASS_MAJOR", "CUTLASS_MINOR", "CUTLASS_PATCH"])
}

/// The version whose three numbers macros of these names have.
fn stated(header: &str, names: [&str; 3]) -> Option<Version> {
    let number = |name: &str| {
        let value = |line: &str| line.trim().strip_prefix("#define")?.trim().strip_prefix(name)?.trim().parse::<u64>().ok();
        header.lines().find_map(value)
    };
    let [major, minor, patch] = names.map(number);
    Version::parse(&format!("{}.{}.{}", major?, minor?, patch?)).ok()
}

/// Checks one entry.
pub(super) fn library(raw: RawHeaders) -> Result<HeaderLibrary, Error> {
    let place = format!("headers {}", raw.name);
    let RawHeaders { name, version, project, file, size, sha256, record_sha256, license } = raw;
    Ok(HeaderLibrary {
        version: Version::parse(&version).map_err(|_| no(&place, &version, "version"))?,
        wheel: checked(WheelPin { project, file, size, sha256, record_sha256 }, &place)?,
        name,
        license,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_what_the_header_states() {
        let header = "#pragma once\n#define CUTLASS_MAJOR 3\n#define CUTLASS_MINOR 5\n  #define CUTLASS_PATCH   1\n\
            #define CUTLASS_VERSION ((CUTLASS_MAJOR)*100 + (CUTLASS_MINOR)*10 + CUTLASS_PATCH)\n";
        assert_eq!(cutlass_version(header).unwrap().as_str(), "3.5.1");
        assert_eq!(cutlass_version(&header.replace("CUTLASS_PATCH  ", "PATCH  ")), None);
        assert_eq!(cutlass_version(""), None);
    }
}
