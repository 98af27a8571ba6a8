//! What a tree holds: written when it is made, compared when it is verified.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Sha256 as lower-case hexadecimal text.
    pub(super) sha256: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Whether it has the run bit.
    pub(super) program: bool,
}

/// Every file, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest(BTreeMap<String, Entry>);

impl Manifest {
    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, entry: Entry) {
        self.0.insert(path.to_owned(), entry);
    }

    /// The file at `path`.
    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.0.get(path)
    }

    /// Every file, by ascending path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// One line a file: sha256, size, `x` for a program or `-`, path; then a line with the number of files, so that a text that
    /// was cut off at the end of a line is known for it.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for (path, Entry { sha256, size, program }) in &self.0 {
            text.push_str(&format!("{sha256} {size} {} {path}\n", if *program { 'x' } else { '-' }));
        }
        text.push_str(&format!("{} files\n", self.0.len()));
        text
    }

    /// Reads what [`Manifest::to_text`] wrote.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut manifest = Self::default();
        let (lines, last) = match text.trim_end_matches('\n').rsplit_once('\n') {
            Some((lines, last)) => (lines, last),
            None => ("", text.trim_end_matches('\n')),
        };
        for (index, line) in lines.lines().enumerate() {
            let mut fields = line.splitn(4, ' ');
            let (sha256, size) = (fields.next(), fields.next().and_then(|size| size.parse().ok()));
            let (program, path) = (fields.next(), fields.next());
            let (Some(sha256), Some(size), Some(program @ ("x" | "-")), Some(path)) = (sha256, size, program, path) else {
                return Err(format!("is damaged in line {}", index + 1));
            };
            manifest.add(path, Entry { sha256: sha256.to_owned(), size, program: program == "x" });
        }
        if last != format!("{} files", manifest.0.len()) || !text.ends_with('\n') {
            return Err("is cut off".to_owned());
        }
        Ok(manifest)
    }

    /// Compares the files below `dir` with the manifest: each one's content and run bit, none missing, none beyond. Fails with the
    /// first difference.
    pub(super) fn verify(&self, dir: &Path) -> Result<(), String> {
        for (path, entry) in &self.0 {
            let unreadable = |cause: std::io::Error| format!("`{path}` cannot be read: {cause}");
            let place = dir.join(path);
            let content = fs::read(&place).map_err(unreadable)?;
            let found = HEXLOWER.encode(&Sha256::digest(&content));
            if content.len() as u64 != entry.size || found != entry.sha256 {
                return Err(format!("`{path}` was changed"));
            }
            let meta = fs::symlink_metadata(&place).map_err(unreadable)?;
            if !meta.is_file() {
                return Err(format!("`{path}` is no file any more"));
            }
            if (meta.permissions().mode() & 0o111 != 0) != entry.program {
                return Err(format!("the run bit of `{path}` was changed"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_cut_off_is_known_for_it() {
        let mut manifest = Manifest::default();
        for (path, program) in [("a b.h", false), ("bin/x", true)] {
            manifest.add(path, Entry { sha256: "ab".repeat(32), size: 7, program });
        }
        let text = manifest.to_text();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
        for end in 0..text.len() {
            assert!(Manifest::parse(&text[..end]).is_err(), "{end}");
        }
        assert_eq!(Manifest::parse("0 files\n").unwrap(), Manifest::default());
    }
}
