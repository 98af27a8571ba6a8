//! Entries of torch.

use anyhow::bail;
use kiln_toolchain::make_catalog::{Registry, make_release};

use super::PLATFORMS;
use super::files::{Made, wheel_for};

/// Which Python a wheel is for does not matter: headers and libraries are the same. One that all releases have.
const PYTHON: &str = "cp311-cp311";

/// Downloads and reads one wheel a platform.
pub(super) fn make(registry: &Registry<'_>, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let listing = registry.list("torch")?;
    let mut found = 0;
    for platform in PLATFORMS {
        // macOS wheels of some releases name no ABI.
        let tags = [PYTHON, "cp311-none"];
        let Some(file) = tags.iter().find_map(|tag| wheel_for(&listing, &format!("torch-{version}-{tag}-"), platform)) else { continue };
        println!("reading {file}");
        let scratch = tempfile::tempdir()?;
        let wheel = registry.download(&listing, file, scratch.path())?;
        let entry = make_release(&wheel, scratch.path())?;
        made.names.insert(entry.release.names.clone(), entry.names_file);
        made.torch.push(entry.release);
        found += 1;
    }
    if found == 0 {
        bail!("the index has no wheel of it for Python 3.11");
    }
    Ok(())
}
