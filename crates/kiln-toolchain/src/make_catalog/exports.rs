//! The names that an extension may take from a library.

use std::path::Path;

use kiln_object::exports;

use crate::names::{self, CodedSet};

/// What a library is called by those who link with it, and the names that an extension may take from it, coded.
pub(super) fn coded(path: &Path) -> Result<(String, CodedSet), String> {
    let exports = exports::of_file(path).map_err(|cause| cause.to_string())?;
    let library = exports.library.ok_or("it has no name of its own")?;
    let names = exports.names.iter().map(String::as_str).filter(|name| !names::is_of_runtime(name));
    Ok((library, CodedSet::new(names)))
}
