//! Entries of torch.

use std::path::Path;

use super::{MakeError, WholeWheel, exports, platform};
use crate::catalog::TorchRelease;
use crate::names::{self, CodedSet};
use crate::toolchain::{CxxLevel, torch_libraries};
use crate::version_py::VersionPy;

/// An entry of the catalog and its names file.
#[derive(Clone, Debug)]
pub struct MadeRelease {
    /// The entry.
    pub release: TorchRelease,
    /// Each library that extensions may link with, and how many of its names are in the names file.
    pub libraries: Vec<(String, usize)>,
    /// Content of the names file.
    pub names_file: Vec<u8>,
}

/// Makes the entry of a whole wheel of torch. Its large libraries are unpacked into `scratch`, one at a time, and removed again.
///
/// # Errors
/// When the file cannot be read, is no wheel of torch for a known platform, or is damaged.
pub fn make_release(wheel: &Path, scratch: &Path) -> Result<MadeRelease, MakeError> {
    let file_name = wheel.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let unknown = || MakeError { wheel: file_name.to_owned(), reason: "it is not for a known platform".to_owned() };
    let platform = platform(file_name).ok_or_else(unknown)?;
    let mut wheel = WholeWheel::open(wheel)?;
    wheel.see_name()?;
    let version_py = wheel.read("torch/version.py")?;
    let version_py = VersionPy::parse(&String::from_utf8_lossy(&version_py)).map_err(|reason| wheel.failed(reason))?;
    let mut sets: Vec<(String, CodedSet)> = Vec::new();
    for library in torch_libraries(platform) {
        let member = format!("torch/lib/{library}");
        if !wheel.has(&member) {
            continue;
        }
        let unpacked = wheel.unpack(&member, scratch)?;
        sets.push(exports::coded(unpacked.path()).map_err(|cause| wheel.failed(format!("`{member}`: {cause}")))?);
    }
    if sets.is_empty() {
        return Err(wheel.failed("it has no library to link with".to_owned()));
    }
    let names = format!("torch-{}-{platform}.names", version_py.version);
    let release = TorchRelease {
        cxx_level: CxxLevel::of_torch(&version_py.version),
        version: version_py.version,
        platform: platform.to_owned(),
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
        cuda: version_py.cuda,
        names,
        locked: false,
    };
    let libraries = sets.iter().map(|(name, set)| (name.clone(), set.len())).collect();
    Ok(MadeRelease { release, libraries, names_file: names::encode(&sets) })
}
