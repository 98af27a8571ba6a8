//! What a tree of the store is made of: parts of wheels, and the terms that these come under.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::terms::Terms;

/// A wheel, pinned. Where it is comes from the index at use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WheelPin {
    /// Name of the project on the index, such as `nvidia-cuda-nvcc`.
    pub project: String,
    /// File name of the wheel.
    pub file: String,
    /// Size of the wheel in bytes.
    pub size: u64,
    /// Sha256 of the wheel, as lower-case hexadecimal text.
    pub sha256: String,
    /// Sha256 of the wheel's `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
}

impl WheelPin {
    /// The version, from the file name (`{distribution}-{version}-..`, PEP 427).
    pub fn version(&self) -> &str {
        self.file.split('-').nth(1).unwrap_or_default()
    }
}

/// Which members of a wheel are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Members {
    /// Whole directories, each ending in a slash. One that the wheel lacks is no error.
    pub dirs: Vec<String>,
    /// Single files. All of them must be there.
    pub files: Vec<String>,
    /// Those among the members that are programs: they get the run bit, whatever the zip file says of them.
    pub programs: Vec<String>,
    /// Bytes of all members together, inflated, at most.
    pub max_size: u64,
}

impl Members {
    /// Whether the member called `name` is wanted.
    pub fn takes(&self, name: &str) -> bool {
        self.files.iter().any(|file| file == name) || self.dirs.iter().any(|dir| name.starts_with(dir.as_str()))
    }

    /// Whether the member called `name` is a program.
    pub fn is_program(&self, name: &str) -> bool {
        self.programs.iter().any(|program| program == name)
    }

    /// The selection as text, for the digest of what comes of it.
    fn key(&self) -> String {
        let programs = self.programs.iter().map(|name| format!("program {name}\n"));
        self.dirs.iter().chain(&self.files).map(|name| format!("{name}\n")).chain(programs).collect()
    }
}

/// A part of a tree: members of one wheel, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// The wheel.
    pub wheel: WheelPin,
    /// Its members.
    pub members: Members,
    /// What is taken off the front of each member's path, ending in a slash; empty for nothing. All members must begin with it.
    #[serde(default)]
    pub strip: String,
    /// What is put in front of what is left, ending in a slash; empty for nothing.
    #[serde(default)]
    pub prefix: String,
}

impl Part {
    /// A part whose members keep their paths.
    pub fn whole(wheel: WheelPin, members: Members) -> Self {
        Self { wheel, members, strip: String::new(), prefix: String::new() }
    }

    /// What decides the content of the part, as 64 hexadecimal digits, wherever its members go.
    pub(crate) fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(format!("kiln part 1\n{}\n{}", self.wheel.record_sha256, self.members.key())))
    }

    /// Where a member goes.
    pub(crate) fn place(&self, member: &str) -> Result<String, Error> {
        let misplaced = || Error::Catalog { reason: format!("`{member}` of `{}` does not lie in `{}`", self.wheel.file, self.strip) };
        Ok(format!("{}{}", self.prefix, member.strip_prefix(&self.strip).ok_or_else(misplaced)?))
    }
}

/// What decides the content of a tree of several parts, as 64 hexadecimal digits.
pub(crate) fn digest_of(parts: &[Part]) -> String {
    let parts: String = parts.iter().map(|part| format!("{}\n{}\n{}\n", part.digest(), part.strip, part.prefix)).collect();
    HEXLOWER.encode(&Sha256::digest(format!("kiln tree 2\n{parts}")))
}

/// The name of a tree with the beginning of its digest.
pub(crate) fn id(name: &str, digest: &str) -> String {
    format!("{name}-{}", digest.get(..16).unwrap_or(digest))
}

impl Terms {
    /// Reads the text of a `METADATA` file: header fields up to the first empty line. Continued lines belong to the field before.
    pub(crate) fn of_metadata(pin: &WheelPin, metadata: &str) -> Self {
        let mut fields: Vec<(&str, String)> = Vec::new();
        for line in metadata.lines().take_while(|line| !line.is_empty()) {
            match (line.starts_with([' ', '\t']), line.split_once(':'), fields.last_mut()) {
                (true, _, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                (false, Some((name, value)), _) => fields.push((name, value.trim().to_owned())),
                _ => {}
            }
        }
        let all = |wanted: &str| {
            let values = fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| shown(value));
            values.filter(|value| !value.is_empty() && value != "UNKNOWN").collect::<Vec<_>>()
        };
        let classifiers = || {
            let all = all("Classifier").into_iter();
            let licenses: Vec<String> = all.filter_map(|value| Some(value.strip_prefix("License ::")?.trim().to_owned())).collect();
            (!licenses.is_empty()).then(|| licenses.join("; "))
        };
        let stated = all("License-Expression").into_iter().next().or_else(|| all("License").into_iter().next());
        Self { license: stated.or_else(classifiers), ..Self::unknown(pin) }
    }

    /// The terms of a wheel that states none.
    pub(crate) fn unknown(pin: &WheelPin) -> Self {
        Self { project: pin.project.clone(), version: pin.version().to_owned(), license: None, files: Vec::new() }
    }
}

/// A field as it may be printed: whole license texts stand in some `License` fields.
fn shown(value: &str) -> String {
    const LONGEST: usize = 200;
    let plain: String = value.chars().filter(|letter| !letter.is_control()).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", plain.get(..end).unwrap_or_default()),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> WheelPin {
        let digest = "0".repeat(64);
        let file = "nvidia_nvvm-13.0.88-py3-none-any.whl".to_owned();
        WheelPin { project: "nvidia-nvvm".to_owned(), file, size: 1, sha256: digest.clone(), record_sha256: digest }
    }

    #[test]
    fn terms_are_what_the_metadata_state() {
        let license = |text: &str| Terms::of_metadata(&pin(), text).license;
        let both = "Metadata-Version: 2.4\nLicense: old\nLicense-Expression: BSD-3-Clause AND MIT\n\nLicense-Expression: in the text";
        assert_eq!(license(both).unwrap(), "BSD-3-Clause AND MIT");
        assert_eq!(license("License: NVIDIA Proprietary\n  Software\nName: x\n").unwrap(), "NVIDIA Proprietary Software");
        let classified = "License: UNKNOWN\nClassifier: License :: Other/Proprietary License\nClassifier: Topic :: Software\n";
        assert_eq!(license(classified).unwrap(), "Other/Proprietary License");
        assert_eq!(license("Name: x\n"), None);
        assert_eq!(license(&format!("License: {}\n", "ü\u{1b}".repeat(400))).unwrap(), format!("{}..", "ü".repeat(200)));
        assert_eq!(Terms::unknown(&pin()).version, "13.0.88");
    }

    #[test]
    fn whatever_changes_a_tree_changes_its_name() {
        let members = Members { dirs: vec!["a/".to_owned()], files: vec!["b".to_owned()], programs: Vec::new(), max_size: 9 };
        let part = Part::whole(pin(), members);
        let with = |change: &dyn Fn(&mut Part)| {
            let mut changed = part.clone();
            change(&mut changed);
            digest_of(&[changed])
        };
        let digests = [
            with(&|_| {}),
            with(&|part| part.wheel.record_sha256 = "1".repeat(64)),
            with(&|part| part.members.dirs.clear()),
            with(&|part| part.members.programs.push("b".to_owned())),
            with(&|part| part.strip = "a/".to_owned()),
            with(&|part| part.prefix = "a/".to_owned()),
            digest_of(&[part.clone(), part.clone()]),
        ];
        assert_eq!(digests.iter().collect::<std::collections::BTreeSet<_>>().len(), digests.len());
        // Where a wheel came from and how large it is say nothing about its content.
        assert_eq!(digests[0], with(&|part| part.members.max_size = 10));
    }
}
