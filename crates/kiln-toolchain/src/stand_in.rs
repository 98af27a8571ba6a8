//! What is known of a build of torch that stands in for another one of the same release.

use serde::{Deserialize, Serialize};

/// That the headers of a build stand in for those of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The build that is stood in for, as the local part of its version: `cu126`.
    pub build: String,
    /// What they were compared with; none where no index is known that has that build.
    pub compared: Option<ComparedHeaders>,
}

/// Headers that were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComparedHeaders {
    /// File name of the other build's wheel.
    pub wheel: String,
    /// Sha256 of its `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
    /// How many headers are the same.
    pub same: usize,
    /// The generated headers that differ; what is compiled has those of the build that stands in.
    pub generated: Vec<String>,
    /// Other headers that differ, or that only one of the builds has; none if the headers may stand in.
    pub differing: Vec<String>,
}
