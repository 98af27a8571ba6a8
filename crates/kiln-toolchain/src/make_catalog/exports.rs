//! The names that an extension may take from a library.

use std::path::Path;

use kiln_object::elf;

use crate::names::{self, CodedSet};

/// What `library` is called by those who link with it, and the names that an extension may take from it, coded.
pub(super) fn coded(path: &Path, library: &str) -> Result<(String, CodedSet), String> {
    let _ = library;
    let library = elf::dynamic_file(path).map_err(|cause| cause.to_string())?;
    let soname = library.soname.ok_or("it has no SONAME")?;
    let names = library.exports.iter().map(|export| export.name.as_str()).filter(|name| !names::is_of_runtime(name));
    Ok((soname, CodedSet::new(names)))
}
