//! Why a variant directory could not be made.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::replace::{ReplaceError, hint_of};
use crate::shipped::ShippedError;

/// A variant directory could not be assembled or put in place.
#[derive(Debug, Error)]
pub enum PackageError {
    /// A file of the package cannot be shipped.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// A file could not be read or written.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file had another content when it was copied than when it was hashed.
    #[error("`{}` changed while it was packaged", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The project has no licence, which metadata need.
    #[error("`general.license` is missing: published metadata need it")]
    NoLicense,
    /// Two files want one name.
    #[error("`{name}` of the package has the name of a generated file")]
    Clash {
        /// The name.
        name: String,
    },
    /// The checks refused the directory, and have said why.
    #[error("the checks refuse what was built")]
    Refused,
    /// The directory could not be made or put in place.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

impl PackageError {
    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Shipped(_) | Self::Changed { .. } | Self::NoLicense | Self::Clash { .. } => "package",
            Self::Refused => "checks",
            Self::Io { .. } | Self::Replace(_) => "output",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Shipped(error) => return error.hint().map(str::to_owned),
            Self::Replace(error) => return error.hint().map(str::to_owned),
            Self::Io { what: "write", source, .. } => return hint_of(source).map(str::to_owned),
            Self::Changed { .. } => "run the command again",
            Self::NoLicense => "add `license` under `[general]`",
            Self::Clash { .. } => "rename the file",
            Self::Io { .. } | Self::Refused => return None,
        };
        Some(hint.to_owned())
    }
}

pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> PackageError {
    PackageError::Io { what, path: path.to_owned(), source }
}
