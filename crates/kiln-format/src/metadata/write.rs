//! Writing: keys in the fixed order, two spaces of indentation, a line break at the end.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{Builder, Commit, Metadata, MetadataBackend, MetadataError, Provenance};
use crate::digest::Digest;

impl Metadata {
    /// The text of `metadata.json`. Equal metadata give equal bytes.
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

/// `text` with its digest replaced by `digest`; every other key, known or not, keeps its value and its place. A digest
/// that was missing goes before `provenance`, or to the end.
///
/// # Errors
/// When `text` is no JSON object.
pub fn with_digest(text: &str, digest: &Digest) -> Result<String, MetadataError> {
    let Value::Object(object) = serde_json::from_str(text)? else { return Err(MetadataError::NotAnObject) };
    let digest = serde_json::to_value(digest)?;
    let mut out = serde_json::Map::new();
    let replaced = object.contains_key("digest");
    for (key, value) in object {
        match key.as_str() {
            "digest" => {
                out.insert(key, digest.clone());
            }
            "provenance" if !replaced => {
                out.insert("digest".to_owned(), digest.clone());
                out.insert(key, value);
            }
            _ => {
                out.insert(key, value);
            }
        }
    }
    out.entry("digest").or_insert(digest);
    Ok(pretty(&out))
}

fn pretty(value: &impl Serialize) -> String {
    // Neither a failing writer nor a key that is no text can occur.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("version", &self.version)?;
        if let Some(version) = self.kernels_minver {
            map.serialize_entry("kernels-minver", &version.to_string())?;
        }
        map.serialize_entry("license", &self.license)?;
        if let Some(upstream) = &self.upstream {
            map.serialize_entry("upstream", upstream)?;
        }
        if let Some(source) = &self.source {
            map.serialize_entry("source", source)?;
        }
        map.serialize_entry("python-depends", &self.python_depends)?;
        map.serialize_entry("kernel-depends", &self.kernel_depends)?;
        map.serialize_entry("backend", &self.backend)?;
        if let Some(digest) = &self.digest {
            map.serialize_entry("digest", digest)?;
        }
        if let Some(provenance) = &self.provenance {
            map.serialize_entry("provenance", provenance)?;
        }
        map.end()
    }
}

impl Serialize for MetadataBackend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &self.kind)?;
        if let Some(archs) = &self.archs {
            map.serialize_entry("archs", archs)?;
        }
        map.end()
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kernel-builder", &self.builder)?;
        if let Some(kernel) = &self.kernel {
            map.serialize_entry("kernel", kernel)?;
        }
        map.end()
    }
}

impl Serialize for Builder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &self.version)?;
        if let Some(commit) = &self.commit {
            map.serialize_entry("commit", commit.id.as_str())?;
            map.serialize_entry("dirty", &commit.dirty)?;
        }
        map.end()
    }
}

impl Serialize for Commit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("commit", self.id.as_str())?;
        map.serialize_entry("dirty", &self.dirty)?;
        map.end()
    }
}
