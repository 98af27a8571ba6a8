//! What a kernel may depend on: libraries of headers (`depends`), and other kernels (`kernel-depends`).

use std::str::FromStr;

use serde::Serialize;

use crate::backend::BackendName;
use crate::suggest::quoted;
use crate::text_value::text_value;

/// An entry of a kernel's `depends`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// Torch's headers and libraries.
    Torch,
    /// CUTLASS 2.10.
    Cutlass2_10,
    /// CUTLASS 3.5.
    Cutlass3_5,
    /// CUTLASS 3.6.
    Cutlass3_6,
    /// CUTLASS 3.8.
    Cutlass3_8,
    /// CUTLASS 3.9.
    Cutlass3_9,
    /// CUTLASS 4.0.
    Cutlass4_0,
    /// CUTLASS 4.4.
    Cutlass4_4,
    /// CUTLASS 4.5.
    Cutlass4_5,
    /// SYCL*TLA, CUTLASS for Intel GPUs.
    SyclTla,
    /// Apple's C++ binding of Metal.
    MetalCpp,
}

/// A text that names no [`Dependency`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dependency {}", quoted(.0))]
pub struct UnknownDependency(
    /// The text.
    pub String,
);

impl Dependency {
    /// Every dependency.
    pub const ALL: [Self; 11] = [
        Self::Torch,
        Self::Cutlass2_10,
        Self::Cutlass3_5,
        Self::Cutlass3_6,
        Self::Cutlass3_8,
        Self::Cutlass3_9,
        Self::Cutlass4_0,
        Self::Cutlass4_4,
        Self::Cutlass4_5,
        Self::SyclTla,
        Self::MetalCpp,
    ];

    /// The spelling in `build.toml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Cutlass2_10 => "cutlass_2_10",
            Self::Cutlass3_5 => "cutlass_3_5",
            Self::Cutlass3_6 => "cutlass_3_6",
            Self::Cutlass3_8 => "cutlass_3_8",
            Self::Cutlass3_9 => "cutlass_3_9",
            Self::Cutlass4_0 => "cutlass_4_0",
            Self::Cutlass4_4 => "cutlass_4_4",
            Self::Cutlass4_5 => "cutlass_4_5",
            Self::SyclTla => "sycl_tla",
            Self::MetalCpp => "metal-cpp",
        }
    }

    /// The release of CUTLASS that this dependency means; `None` for other libraries.
    pub const fn cutlass_release(self) -> Option<&'static str> {
        match self {
            Self::Cutlass2_10 => Some("2.10.0"),
            Self::Cutlass3_5 => Some("3.5.1"),
            Self::Cutlass3_6 => Some("3.6.0"),
            Self::Cutlass3_8 => Some("3.8.0"),
            Self::Cutlass3_9 => Some("3.9.2"),
            Self::Cutlass4_0 => Some("4.0.0"),
            Self::Cutlass4_4 => Some("4.4.2"),
            Self::Cutlass4_5 => Some("4.5.2"),
            Self::Torch | Self::SyclTla | Self::MetalCpp => None,
        }
    }

    /// The one backend that this dependency is of use for; `None` when it fits every backend.
    pub const fn only_for(self) -> Option<BackendName> {
        match self {
            Self::Torch => None,
            Self::SyclTla => Some(BackendName::Xpu),
            Self::MetalCpp => Some(BackendName::Metal),
            _ => Some(BackendName::Cuda),
        }
    }
}

text_value!(Dependency: Display);

impl FromStr for Dependency {
    type Err = UnknownDependency;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|dependency| dependency.as_str() == text).ok_or_else(|| UnknownDependency(text.to_owned()))
    }
}

/// Another kernel of the Hub that a kernel needs at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelDependency {
    /// The repository, `owner/name` in a `build.toml`; metadata of others may hold any text.
    pub repo_id: String,
    /// Which state of the repository.
    pub version: KernelDependencyVersion,
}

/// Which state of a repository a [`KernelDependency`] means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KernelDependencyVersion {
    /// A kernel version.
    Version(u64),
    /// A branch, tag or commit.
    Revision(String),
}

impl Serialize for KernelDependency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;

        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("repo-id", &self.repo_id)?;
        match &self.version {
            KernelDependencyVersion::Version(version) => map.serialize_entry("version", version)?,
            KernelDependencyVersion::Revision(revision) => map.serialize_entry("revision", revision)?,
        }
        map.end()
    }
}

/// The id of a repository on the Hub: `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoId(String);

/// A text that is no [`RepoId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("repository id {} is not of the form `owner/name`", quoted(.0))]
pub struct RepoIdError(
    /// The text.
    pub String,
);

impl RepoId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the slash.
    pub fn owner(&self) -> &str {
        self.0.split_once('/').map_or("", |(owner, _)| owner)
    }

    /// What stands after the slash.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }
}

impl FromStr for RepoId {
    type Err = RepoIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |part: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !part.is_empty() && part != "." && part != ".." && part.chars().all(allowed)
        };
        match text.split_once('/') {
            Some((owner, name)) if part(owner) && part(name) => Ok(Self(text.to_owned())),
            _ => Err(RepoIdError(text.to_owned())),
        }
    }
}

text_value!(RepoId: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies() {
        for dependency in Dependency::ALL {
            assert_eq!(dependency.as_str().parse(), Ok(dependency));
            assert_eq!(dependency.to_string(), dependency.as_str());
            let minor = dependency.cutlass_release().and_then(|release| release.rsplit_once('.')).map(|(minor, _)| minor.replace('.', "_"));
            assert_eq!(minor.as_deref(), dependency.as_str().strip_prefix("cutlass_"));
        }
        assert_eq!("cutlass_9_9".parse::<Dependency>().unwrap_err().to_string(), "unknown dependency `cutlass_9_9`");
        assert_eq!(Dependency::Torch.only_for(), None);
        assert_eq!(Dependency::Cutlass3_6.only_for(), Some(BackendName::Cuda));
        assert_eq!(Dependency::SyclTla.only_for(), Some(BackendName::Xpu));
        assert_eq!(Dependency::MetalCpp.only_for(), Some(BackendName::Metal));
    }

    #[test]
    fn repo_ids() {
        let id: RepoId = "team/every-key9".parse().unwrap();
        assert_eq!(
            (id.owner(), id.name(), id.as_str(), id.to_string().as_str()),
            ("team", "every-key9", "team/every-key9", "team/every-key9")
        );
        for text in ["justname", "a/", "/b", "a/b/c", "a b/c", "../c", ""] {
            assert!(text.parse::<RepoId>().is_err(), "{text}");
        }
    }

    #[test]
    fn kernel_dependencies_as_json() {
        let of = |version| KernelDependency { repo_id: "a/b".into(), version };
        let list = [of(KernelDependencyVersion::Version(2)), of(KernelDependencyVersion::Revision("main".into()))];
        assert_eq!(serde_json::to_string(&list).unwrap(), r#"[{"repo-id":"a/b","version":2},{"repo-id":"a/b","revision":"main"}]"#);
    }
}
