//! Entries of libraries of headers.

use kiln_toolchain::make_catalog::{Registry, make_headers};

use super::files::Made;

/// Downloads and reads the wheel of a release of CUTLASS, which is the same for every platform.
pub(super) fn make(registry: &Registry<'_>, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let listing = registry.list("nvidia-cutlass")?;
    let file = format!("nvidia_cutlass-{version}-py3-none-any.whl");
    println!("reading {file}");
    let scratch = tempfile::tempdir()?;
    made.headers.push(make_headers(&registry.download(&listing, &file, scratch.path())?)?);
    Ok(())
}
