//! Entries of torch-npu.

use anyhow::bail;
use kiln_toolchain::TorchNpuRelease;
use kiln_toolchain::make_catalog::{Registry, make_torch_npu};

use super::PLATFORMS;
use super::files::{Made, wheel_for};

/// Downloads and reads one wheel a platform. Which Python it is for does not matter: wheels of one release differ in one header, whose
/// functions are in another order, and their libraries have the same names.
pub(super) fn make(registry: &Registry<'_>, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let listing = registry.list(TorchNpuRelease::PROJECT)?;
    let mut found = 0;
    for platform in PLATFORMS {
        let Some(file) = wheel_for(&listing, &format!("torch_npu-{version}-cp311-cp311-"), platform) else { continue };
        println!("reading {file}");
        let scratch = tempfile::tempdir()?;
        let wheel = registry.download(&listing, file, scratch.path())?;
        let entry = make_torch_npu(&wheel, scratch.path())?;
        made.names.insert(entry.release.names.clone(), entry.names_file);
        made.torch_npu.push(entry.release);
        found += 1;
    }
    if found == 0 {
        bail!("the index has no wheel of it for Python 3.11");
    }
    Ok(())
}
