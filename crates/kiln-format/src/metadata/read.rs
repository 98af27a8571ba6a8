//! Reading, as loaders read: unknown keys are ignored, known ones are checked.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::{Builder, Commit, CommitId, Metadata, MetadataBackend, Provenance};
use crate::backend::BackendName;
use crate::dependency::{KernelDependency, KernelDependencyVersion};
use crate::digest::{Digest, DigestAlgorithm};
use crate::git_url::GitUrl;
use crate::name::KernelName;
use crate::suggest::quoted;

/// Why a text is no metadata.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// No JSON, or a key that is missing or of a wrong type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// JSON, but no object.
    #[error("metadata must be a JSON object")]
    NotAnObject,
    /// A value that its key does not allow.
    #[error("`{key}`: {reason}")]
    Invalid {
        /// The key, with its parents, separated by dots.
        key: &'static str,
        /// Why.
        reason: String,
    },
}

impl Metadata {
    /// Reads the text of a `metadata.json` as loaders do.
    ///
    /// # Errors
    /// When the text is no JSON object, a required key is missing, or a value is malformed. `kernels-minver`, `upstream`,
    /// `source`, `digest` and `provenance` may be missing or null, `kernel-depends` may be missing; a digest or provenance
    /// that is there must be well formed. Hashes are not looked at: one that is no hash differs from every file's.
    pub fn read(text: &str) -> Result<Self, MetadataError> {
        let raw: RawMetadata = serde_json::from_str(text)?;
        Ok(Self {
            name: raw.name,
            id: raw.id,
            version: raw.version,
            kernels_minver: raw.kernels_minver.map(|text| parsed("kernels-minver", &text)).transpose()?,
            license: raw.license,
            upstream: raw.upstream,
            source: raw.source,
            python_depends: raw.python_depends,
            kernel_depends: raw.kernel_depends.into_iter().map(kernel_dependency).collect::<Result<_, _>>()?,
            backend: MetadataBackend { kind: raw.backend.kind, archs: raw.backend.archs },
            digest: raw.digest.map(digest).transpose()?,
            provenance: raw.provenance.map(provenance).transpose()?,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawMetadata {
    name: KernelName,
    id: String,
    version: u64,
    kernels_minver: Option<String>,
    license: String,
    upstream: Option<GitUrl>,
    source: Option<GitUrl>,
    python_depends: Vec<String>,
    #[serde(default)]
    kernel_depends: Vec<RawKernelDependency>,
    backend: RawBackend,
    digest: Option<RawDigest>,
    provenance: Option<RawProvenance>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawKernelDependency {
    repo_id: String,
    version: Option<u64>,
    revision: Option<String>,
}

#[derive(Deserialize)]
struct RawBackend {
    #[serde(rename = "type")]
    kind: BackendName,
    archs: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RawDigest {
    algorithm: String,
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawProvenance {
    kernel_builder: RawBuilder,
    kernel: Option<RawCommit>,
}

#[derive(Deserialize)]
struct RawBuilder {
    version: String,
    // `sha` is the key's old name.
    #[serde(default, alias = "sha", deserialize_with = "present")]
    commit: Option<String>,
    #[serde(default, deserialize_with = "present")]
    dirty: Option<bool>,
}

#[derive(Deserialize)]
struct RawCommit {
    #[serde(alias = "sha")]
    commit: String,
    dirty: bool,
}

/// A key that may be missing but not null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(key: &'static str, text: &str) -> Result<T, MetadataError> {
    text.parse().map_err(|error: T::Err| MetadataError::Invalid { key, reason: error.to_string() })
}

fn kernel_dependency(raw: RawKernelDependency) -> Result<KernelDependency, MetadataError> {
    let version = match (raw.version, raw.revision) {
        (Some(version), None) => KernelDependencyVersion::Version(version),
        (None, Some(revision)) => KernelDependencyVersion::Revision(revision),
        _ => {
            return Err(MetadataError::Invalid {
                key: "kernel-depends",
                reason: "an entry has exactly one of `version` and `revision`".to_owned(),
            });
        }
    };
    Ok(KernelDependency { repo_id: raw.repo_id, version })
}

fn digest(raw: RawDigest) -> Result<Digest, MetadataError> {
    let algorithm = DigestAlgorithm::from_name(&raw.algorithm).ok_or_else(|| MetadataError::Invalid {
        key: "digest.algorithm",
        reason: format!("{} is neither `sha256` nor `sha512`", quoted(&raw.algorithm)),
    })?;
    Ok(Digest { algorithm, files: raw.files })
}

/// A commit's id; upper-case digits, which are never written, are read as lower-case ones.
fn commit_id(key: &'static str, text: &str) -> Result<CommitId, MetadataError> {
    parsed(key, &text.to_ascii_lowercase())
}

fn provenance(raw: RawProvenance) -> Result<Provenance, MetadataError> {
    let commit = match (raw.kernel_builder.commit, raw.kernel_builder.dirty) {
        (Some(id), Some(dirty)) => Some(Commit { id: commit_id("provenance.kernel-builder.commit", &id)?, dirty }),
        (None, None) => None,
        _ => {
            return Err(MetadataError::Invalid {
                key: "provenance.kernel-builder",
                reason: "`commit` and `dirty` come together".to_owned(),
            });
        }
    };
    let kernel = match raw.kernel {
        Some(kernel) => Some(Commit { id: commit_id("provenance.kernel.commit", &kernel.commit)?, dirty: kernel.dirty }),
        None => None,
    };
    Ok(Provenance { builder: Builder { version: raw.kernel_builder.version, commit }, kernel })
}
