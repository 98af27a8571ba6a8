//! Names that shared libraries export.
//!
//! Linking needs names, not code. A [`NameSet`] of a library that is at hand is exact. One of the catalog is *coded*: it
//! holds 20-bit fingerprints, so that all the libraries of a torch release fit into 0.3 MB, and takes a name for a member
//! that is none about once in a million lookups. Such a name would link and fail on import, as it does with every
//! other build tool; none of the right names is ever refused.
//!
//! A torch library also exports what its own link copied out of the C++ runtime. An extension must never bind to
//! these copies (another torch may lack them): [`LibraryExports::offers`] leaves them out, and so does whoever makes a
//! coded set ([`is_of_runtime`]).

mod coded;
#[cfg(feature = "wheels")]
mod embedded;
mod file;
#[cfg(feature = "wheels")]
mod files;

use std::sync::Arc;

use data_encoding::HEXLOWER;

pub use self::coded::CodedSet;
#[cfg(feature = "wheels")]
pub(crate) use self::file::encode;
pub use self::file::{NamesError, decode};
pub use kiln_object::names::{PythonVersion, added_to_stable_abi, is_of_python, is_of_runtime};

#[cfg(feature = "wheels")]
use crate::Error;

/// A set of exported names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSet(Repr);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Repr {
    /// Sorted, without duplicates.
    Exact(Vec<String>),
    Coded(CodedSet),
    Rule(Rule),
}

/// Names that a library has by what they begin with: of libraries of a system that is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Those with one of these beginnings.
    Begins(&'static [&'static str]),
    /// Those of the C++ runtime.
    CxxRuntime,
}

impl Default for NameSet {
    /// The empty set.
    fn default() -> Self {
        Self(Repr::Exact(Vec::new()))
    }
}

impl NameSet {
    /// The set of just these names.
    pub fn exact(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Self(Repr::Exact(names))
    }

    /// All names with one of these beginnings.
    pub const fn beginning_with(beginnings: &'static [&'static str]) -> Self {
        Self(Repr::Rule(Rule::Begins(beginnings)))
    }

    /// All names of the C++ runtime.
    pub const fn of_cxx_runtime() -> Self {
        Self(Repr::Rule(Rule::CxxRuntime))
    }

    /// Whether `name` is in the set. Never false for a name that is; for a coded set true once in about a million times
    /// for one that is not.
    pub fn contains(&self, name: &str) -> bool {
        match &self.0 {
            Repr::Exact(names) => names.binary_search_by(|known| known.as_str().cmp(name)).is_ok(),
            Repr::Coded(coded) => coded.contains(name),
            Repr::Rule(Rule::Begins(beginnings)) => beginnings.iter().any(|beginning| name.starts_with(beginning)),
            Repr::Rule(Rule::CxxRuntime) => is_of_runtime(name),
        }
    }

    /// How many names it has; for a rule, whose names nobody counts, how many beginnings.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Exact(names) => names.len(),
            Repr::Coded(coded) => coded.len(),
            Repr::Rule(Rule::Begins(beginnings)) => beginnings.len(),
            Repr::Rule(Rule::CxxRuntime) => 1,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names in ascending order; none for a coded set or a rule, which do not know them.
    pub fn names(&self) -> Option<&[String]> {
        match &self.0 {
            Repr::Exact(names) => Some(names),
            Repr::Coded(_) | Repr::Rule(_) => None,
        }
    }

    /// The versions that it has of `name`, in ascending order; none for a coded set.
    pub(crate) fn versions_of(&self, name: &str) -> Vec<String> {
        let start = versioned(name, "");
        let names = self.names().unwrap_or_default();
        let first = names.partition_point(|known| known.as_str() < start.as_str());
        names.iter().skip(first).map_while(|known| known.strip_prefix(start.as_str())).map(str::to_owned).collect()
    }

    /// Digest of the content, as lower-case hexadecimal text. An exact and a coded set of the same names differ.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        match &self.0 {
            Repr::Exact(names) => {
                hasher.update(b"exact\n");
                for name in names {
                    hasher.update(name.as_bytes()).update(b"\n");
                }
            }
            Repr::Coded(coded) => {
                hasher.update(b"coded\n").update(coded.digest().as_bytes());
            }
            Repr::Rule(rule) => {
                hasher.update(format!("rule {rule:?}\n").as_bytes());
            }
        }
        HEXLOWER.encode(hasher.finalize().as_bytes())
    }
}

/// How an object names `name` of one version (`.symver`).
pub(crate) fn versioned(name: &str, version: &str) -> String {
    format!("{name}@{version}")
}

impl From<CodedSet> for NameSet {
    fn from(coded: CodedSet) -> Self {
        Self(Repr::Coded(coded))
    }
}

/// What one shared library exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryExports {
    /// SONAME of the library.
    pub soname: String,
    /// The names.
    pub names: Arc<NameSet>,
}

impl LibraryExports {
    /// Whether an extension may take `name` from this library: it is exported and is not one of the C++ runtime's, unless the library is
    /// that runtime.
    pub fn offers(&self, name: &str) -> bool {
        self.names.contains(name) && (self.names.0 == Repr::Rule(Rule::CxxRuntime) || !is_of_runtime(name))
    }
}

/// The exports of the libraries of a catalog entry, by the entry's names file.
///
/// # Errors
/// [`Error::Catalog`] when there is no such file or it is damaged.
#[cfg(feature = "wheels")]
pub(crate) fn of_catalog(file: &str) -> Result<Vec<LibraryExports>, Error> {
    file::decode_embedded(catalog_file(file)?).map_err(|cause| Error::Catalog { reason: format!("names file `{file}`: {cause}") })
}

/// A names file of the catalog.
///
/// # Errors
/// [`Error::Catalog`] when there is no such file.
#[cfg(feature = "wheels")]
pub(crate) fn catalog_file(file: &str) -> Result<&'static [u8], Error> {
    embedded::find(file).ok_or_else(|| Error::Catalog { reason: format!("names file `{file}`: is not there") })
}

#[cfg(test)]
mod tests;
