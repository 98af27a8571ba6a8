//! What a tree holds: written when it is made, compared when it is verified.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Sha256 (lower-case hexadecimal) and size of each file, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest(BTreeMap<String, (String, u64)>);

impl Manifest {
    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, sha256: String, size: u64) {
        self.0.insert(path.to_owned(), (sha256, size));
    }

    /// One line a file: sha256, size, path.
    pub(super) fn to_text(&self) -> String {
        self.0.iter().map(|(path, (sha256, size))| format!("{sha256} {size} {path}\n")).collect()
    }

    /// Reads what [`Manifest::to_text`] wrote.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut manifest = Self::default();
        for (index, line) in text.lines().enumerate() {
            let mut fields = line.splitn(3, ' ');
            let (sha256, size, path) = (fields.next(), fields.next().and_then(|size| size.parse().ok()), fields.next());
            let (Some(sha256), Some(size), Some(path)) = (sha256, size, path) else {
                return Err(format!("is damaged in line {}", index + 1));
            };
            manifest.add(path, sha256.to_owned(), size);
        }
        Ok(manifest)
    }

    /// Compares the files below `dir` with the manifest: each one's content, none missing, none beyond. Fails with the first
    /// difference.
    pub(super) fn verify(&self, dir: &Path) -> Result<(), String> {
        for (path, (sha256, size)) in &self.0 {
            let content = fs::read(dir.join(path)).map_err(|cause| format!("`{path}` cannot be read: {cause}"))?;
            let found = HEXLOWER.encode(&Sha256::digest(&content));
            if content.len() as u64 != *size || found != *sha256 {
                return Err(format!("`{path}` was changed"));
            }
        }
        let mut names = Vec::new();
        walk(dir, "", &mut names).map_err(|cause| format!("it cannot be listed: {cause}"))?;
        names.sort();
        match names.iter().find(|name| !self.0.contains_key(*name)) {
            Some(extra) => Err(format!("`{extra}` does not belong there")),
            None => Ok(()),
        }
    }
}

/// Lists everything below `dir` that is no directory.
fn walk(dir: &Path, prefix: &str, names: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}
