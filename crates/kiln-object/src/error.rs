//! What can be wrong with an object file.

use std::path::PathBuf;

/// Why an object file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not of the format that was asked for.
    #[error("not {expected}")]
    Format {
        /// What was asked for, with its article: `an ELF file`.
        expected: &'static str,
    },
    /// The file is of the right format, but damaged or cut short.
    #[error("damaged {what}: {cause}")]
    Damaged {
        /// The part that cannot be read, such as `dynamic symbol table`.
        what: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The file is of a kind that this crate does not handle.
    #[error("{what} is not supported")]
    Unsupported {
        /// The kind, such as `a thin archive`.
        what: String,
    },
    /// A stub was described that no file can hold.
    #[error("cannot write a stub for `{soname}`: {cause}")]
    Stub {
        /// SONAME of the stub.
        soname: String,
        /// What is wrong with the description.
        cause: String,
    },
    /// A static library was described that no file can hold.
    #[error("cannot write a static library: {cause}")]
    Archive {
        /// What is wrong with the description.
        cause: String,
    },
    /// The file could not be opened.
    #[error("cannot read `{}`: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
}

impl Error {
    /// Makes an error of the reader an error of this crate that says which part was read.
    pub(crate) fn damaged(what: &'static str) -> impl FnOnce(object::read::Error) -> Self {
        move |cause| Self::Damaged { what, cause: cause.to_string() }
    }
}
