//! Entries of libraries of headers.

use kiln_toolchain::make_catalog::{Registry, make_headers};

use super::files::Made;

/// Downloads and reads the wheel of a release of a library of headers, which is the same for every platform.
pub(super) fn make(registry: &Registry<'_>, project: &str, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let listing = registry.list(project)?;
    let file = format!("{}-{version}-py3-none-any.whl", project.replace('-', "_"));
    println!("reading {file}");
    let scratch = tempfile::tempdir()?;
    made.headers.push(make_headers(&registry.download(&listing, &file, scratch.path())?)?);
    Ok(())
}
