//! Entries of libraries of headers.

use kiln_toolchain::HeaderLibrary;
use kiln_toolchain::make_catalog::{Registry, make_headers};

use super::files::Made;

/// Downloads and reads the wheel of a release of a library of headers, which is the same for every platform.
pub(super) fn make(registry: &Registry<'_>, project: &str, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let listing = registry.list(project)?;
    // metal-cpp is in a wheel with code for macOS beside it; the headers are the same in all of them.
    let platform = if project == HeaderLibrary::METAL_CPP_PROJECT { "macosx_15_0_arm64" } else { "any" };
    let file = format!("{}-{version}-py3-none-{platform}.whl", project.replace('-', "_"));
    println!("reading {file}");
    let scratch = tempfile::tempdir()?;
    made.headers.push(make_headers(&registry.download(&listing, &file, scratch.path())?)?);
    Ok(())
}
