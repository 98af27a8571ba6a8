//! Entries of tvm-ffi.

use std::path::Path;

use kiln_format::Version;

use super::{MakeError, WholeWheel, exports, platform};
use crate::catalog::TvmFfiRelease;
use crate::names;

/// The library that an extension links with.
fn library(platform: &str) -> &'static str {
    match platform.split_once('-').map_or(platform, |(os, _)| os) {
        "darwin" => "libtvm_ffi.dylib",
        "windows" => "tvm_ffi.dll",
        _ => "libtvm_ffi.so",
    }
}

/// An entry of the catalog and its names file.
#[derive(Clone, Debug)]
pub struct MadeTvmFfi {
    /// The entry.
    pub release: TvmFfiRelease,
    /// Content of the names file.
    pub names_file: Vec<u8>,
}

/// Makes the entry of a whole wheel of tvm-ffi, whose library is unpacked into `scratch` for a moment.
///
/// # Errors
/// When the file cannot be read, is no wheel of tvm-ffi for a known platform, or is damaged.
pub fn make_tvm_ffi(wheel: &Path, scratch: &Path) -> Result<MadeTvmFfi, MakeError> {
    let mut wheel = WholeWheel::open(wheel)?;
    let platform = platform(&wheel.pin().file).ok_or_else(|| wheel.failed("it is not for a known platform".to_owned()))?;
    let full = wheel.pin().version().to_owned();
    let release = full.split(".post").next().unwrap_or_default();
    let version = Version::parse(release).map_err(|cause| wheel.failed(cause.to_string()))?;
    for dir in TvmFfiRelease::INCLUDE_DIRS {
        if !wheel.names().any(|name| name.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/') && rest.ends_with(".h"))) {
            return Err(wheel.failed(format!("`{dir}` has no header")));
        }
    }
    let member = format!("tvm_ffi/lib/{}", library(platform));
    let unpacked = wheel.unpack(&member, scratch)?;
    let set = exports::coded(unpacked.path()).map_err(|cause| wheel.failed(format!("`{member}`: {cause}")))?;
    let release = TvmFfiRelease {
        names: format!("tvm-ffi-{version}-{platform}.names"),
        version,
        platform: platform.to_owned(),
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
    };
    Ok(MadeTvmFfi { release, names_file: names::encode(&[set]) })
}
