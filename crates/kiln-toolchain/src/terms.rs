//! What a wheel says of how its files may be used.

use serde::{Deserialize, Serialize};

/// The terms under which a wheel's files come, as its `METADATA` states them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Terms {
    /// Name of the project.
    pub project: String,
    /// Its version.
    pub version: String,
    /// `License-Expression`, or else the `License` field, or else the license classifiers; none where the wheel states nothing.
    pub license: Option<String>,
    /// Its license texts, relative to the tree's directory of terms (`<project>-<version>/LICENSE`), sorted.
    pub files: Vec<String>,
}
