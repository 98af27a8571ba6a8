//! `metadata.json`: what a variant directory says about itself.
//!
//! [`Metadata::read`] reads as a loader reads, [`Metadata::to_json`] writes in the fixed order and layout, and
//! [`with_digest`] replaces the digest of a text and nothing else.

mod read;
mod write;

use std::fmt;
use std::str::FromStr;

pub use self::read::MetadataError;
pub use self::write::with_digest;

use crate::backend::BackendName;
use crate::dependency::KernelDependency;
use crate::digest::Digest;
use crate::git_url::GitUrl;
use crate::name::KernelName;
use crate::suggest::quoted;
use crate::text_value::text_value;

/// What `metadata.json` holds, in the order in which it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The kernel's name.
    pub name: KernelName,
    /// The ops id. Kiln writes an [`OpsId`](crate::OpsId); loaders accept any text.
    pub id: String,
    /// The kernel's version.
    pub version: u64,
    /// The oldest `kernels` package that loads the variant. Always written.
    pub kernels_minver: Option<LoaderVersion>,
    /// The licence.
    pub license: String,
    /// Where the kernel comes from.
    pub upstream: Option<GitUrl>,
    /// Where its `build.toml` is.
    pub source: Option<GitUrl>,
    /// Names of the Python dependencies' registry: general ones first, then the backend's.
    pub python_depends: Vec<String>,
    /// Kernels that this one loads.
    pub kernel_depends: Vec<KernelDependency>,
    /// The backend.
    pub backend: MetadataBackend,
    /// The files' hashes. Always written in finished builds.
    pub digest: Option<Digest>,
    /// Who built it from what. Always written.
    pub provenance: Option<Provenance>,
}

/// The backend that a variant was built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataBackend {
    /// Its name; never `npu`.
    pub kind: BackendName,
    /// Exactly the architectures that were compiled, or those that a Python-only kernel is restricted to. Loaders refuse
    /// other devices; `None` is no restriction.
    pub archs: Option<Vec<String>>,
}

/// A version of the `kernels` package: exactly three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoaderVersion(pub u64, pub u64, pub u64);

/// A text that is no [`LoaderVersion`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a version of exactly three numbers", quoted(.0))]
pub struct LoaderVersionError(
    /// The text.
    pub String,
);

impl LoaderVersion {
    /// What loads any variant.
    pub const BASE: Self = Self(0, 14, 0);
    /// What resolves dependencies on other kernels.
    pub const KERNEL_DEPENDS: Self = Self(0, 17, 0);

    /// The oldest package that loads a variant with `kernel_depends`.
    pub fn needed_for(kernel_depends: &[KernelDependency]) -> Self {
        if kernel_depends.is_empty() { Self::BASE } else { Self::KERNEL_DEPENDS }
    }
}

impl fmt::Display for LoaderVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for LoaderVersion {
    type Err = LoaderVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || LoaderVersionError(text.to_owned());
        let number = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().map_err(|_| error()),
            false => Err(error()),
        };
        match text.trim().split('.').collect::<Vec<_>>().as_slice() {
            [major, minor, patch] => Ok(Self(number(major)?, number(minor)?, number(patch)?)),
            _ => Err(error()),
        }
    }
}

/// Who built a variant, and from which state of the kernel's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The builder: `kernel-builder` in the file, whoever it is.
    pub builder: Builder,
    /// The kernel's sources, when they are in a git work tree.
    pub kernel: Option<Commit>,
}

/// The program that built a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builder {
    /// Its name and version; `kiln <version>` for Kiln.
    pub version: String,
    /// Its own sources, when known.
    pub commit: Option<Commit>,
}

/// A state of a git work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The commit.
    pub id: CommitId,
    /// Whether tracked files differed from it.
    pub dirty: bool,
}

/// A commit's whole object id: 40 or 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

/// A text that is no [`CommitId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a commit id of 40 or 64 lower-case hexadecimal digits", quoted(.0))]
pub struct CommitIdError(
    /// The text.
    pub String,
);

impl CommitId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CommitId {
    type Err = CommitIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if valid { Ok(Self(text.to_owned())) } else { Err(CommitIdError(text.to_owned())) }
    }
}

text_value!(CommitId: Display);
