//! build.toml, variant names, metadata.json and the digest as pure data.
