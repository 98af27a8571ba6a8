//! Assembles a variant directory and puts it in place whole.
//!
//! A directory holds the shipped files of the Python package, the generated `_ops.py`, the shared object of a compiled variant, and
//! `metadata.json` with the digest of all others. Equal contents give equal bytes, names and modes; a directory that already has
//! them is not touched at all.

//!
//! * [`Contents`]: the files but for the metadata;
//! * [`metadata`]: what `metadata.json` says, but for the digest;
//! * [`place`]: both together, into the output directory.

mod contents;
mod error;
mod meta;
mod place;
#[cfg(test)]
mod tests;

pub use self::contents::Contents;
pub use self::error::PackageError;
pub use self::meta::{metadata, provenance};
pub use self::place::{Inspect, Placed, place};

/// Name of the metadata file.
pub const METADATA: &str = "metadata.json";
