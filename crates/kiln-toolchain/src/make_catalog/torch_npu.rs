//! Entries of torch-npu.

use std::path::Path;

use kiln_format::Version;

use super::{MakeError, WholeWheel, exports, platform};
use crate::catalog::TorchNpuRelease;
use crate::names;

/// An entry of the catalog and its names file.
#[derive(Clone, Debug)]
pub struct MadeTorchNpu {
    /// The entry.
    pub release: TorchNpuRelease,
    /// Content of the names file.
    pub names_file: Vec<u8>,
}

/// Makes the entry of a whole wheel of torch-npu, whose library is unpacked into `scratch` for a moment.
///
/// # Errors
/// When the file cannot be read, is no wheel of torch-npu for a known platform, does not say which torch it is for, or is damaged.
pub fn make_torch_npu(wheel: &Path, scratch: &Path) -> Result<MadeTorchNpu, MakeError> {
    let mut wheel = WholeWheel::open(wheel)?;
    wheel.see_name()?;
    let platform = platform(&wheel.pin().file).ok_or_else(|| wheel.failed("it is not for a known platform".to_owned()))?;
    let torch = required_torch(&wheel.metadata()?).ok_or_else(|| wheel.failed("it does not require one release of torch".to_owned()))?;
    for dir in TorchNpuRelease::INCLUDE_DIRS {
        if !wheel.names().any(|name| name.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/') && rest.ends_with(".h"))) {
            return Err(wheel.failed(format!("`{dir}` has no header")));
        }
    }
    let member = TorchNpuRelease::LIBRARY;
    let unpacked = wheel.unpack(member, scratch)?;
    let set = exports::coded(unpacked.path()).map_err(|cause| wheel.failed(format!("`{member}`: {cause}")))?;
    let release = TorchNpuRelease {
        names: format!("torch-npu-{}-{platform}.names", wheel.pin().version()),
        torch,
        platform: platform.to_owned(),
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
    };
    Ok(MadeTorchNpu { release, names_file: names::encode(&[set]) })
}

/// The one release of torch that metadata require: `torch==2.12.0`, `torch ==2.11.0+cpu`, `torch==2.13.0.*`.
fn required_torch(metadata: &str) -> Option<Version> {
    let fields = metadata.lines().take_while(|line| !line.is_empty());
    let required = fields.filter_map(|line| line.strip_prefix("Requires-Dist:")?.trim().strip_prefix("torch"));
    let exact = required.filter_map(|rest| rest.trim().trim_matches(['(', ')']).strip_prefix("==")).collect::<Vec<_>>();
    let [one] = exact.as_slice() else { return None };
    let release = one.split(['+', ';']).next().unwrap_or_default().trim();
    Version::parse(release.strip_suffix(".*").unwrap_or(release)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_release_of_torch_is_required() {
        let of = |requires: &str| required_torch(&format!("Name: torch_npu\nRequires-Dist: {requires}\nRequires-Dist: numpy\n\ntext"));
        for requires in ["torch==2.12.0", "torch ==2.12.0", "torch ==2.12.0+cpu", "torch==2.12.0.*", "torch (==2.12.0)"] {
            assert_eq!(of(requires).unwrap().as_str(), "2.12.0", "{requires}");
        }
        for requires in ["torch", "torch>=2.12.0", "torchvision==0.1", "torch==2.12.0\nRequires-Dist: torch==2.13.0"] {
            assert_eq!(of(requires), None, "{requires}");
        }
        assert_eq!(required_torch("Name: x\n\nRequires-Dist: torch==2.12.0"), None);
    }
}
