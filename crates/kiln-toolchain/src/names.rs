//! Names that shared libraries export.

use std::sync::Arc;

/// A set of exported names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSet(std::collections::BTreeSet<String>);

/// What one shared library exports.
#[derive(Clone, Debug)]
pub struct LibraryExports {
    /// SONAME of the library.
    pub soname: String,
    /// The names.
    pub names: Arc<NameSet>,
}

/// The exports of the libraries of a catalog entry, by the entry's names file.
pub(crate) fn of_catalog(_file: &str) -> Result<Vec<LibraryExports>, crate::Error> {
    Ok(Vec::new())
}
