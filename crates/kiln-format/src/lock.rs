//! `kiln.lock`: the torch releases that a project (or a user) has pinned beyond those that Kiln knows.
//!
//! ```toml
//! version = 1
//!
//! [[torch]]
//! version = "2.12.0"
//! platform = "linux-x86_64"
//! wheel = "torch-2.12.0-cp311-cp311-manylinux_2_28_x86_64.whl"
//! size = 530600000
//! sha256 = ".."            # of the wheel
//! record-sha256 = ".."     # of the wheel's RECORD, which vouches for each file
//! cuda = "13.0"            # what the wheel was built with; absent for a CPU build
//! license = "BSD-3-Clause" # what the wheel states
//! cxx = "gnu++20"          # the language level of its umbrella headers
//! names-sha256 = ".."      # of the names that its libraries export
//! ```
//!
//! Entries are sorted by version, platform and wheel. Unknown keys are refused: another Kiln may mean something by them that
//! this one would not keep.

use serde::Deserialize;
use toml::Spanned;

use crate::{Diagnostic, Span, Version};

/// The file's name, beside `build.toml`.
pub const FILE_NAME: &str = "kiln.lock";

/// The version of the file's form.
const VERSION: u32 = 1;

/// The first lines of the file.
const HEAD: &str = "\
# Releases of torch that are pinned. Written by `kiln toolchain add` and `kiln toolchain update`; a project's is kept in version control.
version = 1
";

/// What a `kiln.lock` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    torch: Vec<LockedTorch>,
}

/// A torch release that is pinned: one wheel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedTorch {
    /// Release, without a local part.
    pub version: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// File name of the wheel.
    pub wheel: String,
    /// Size of the wheel in bytes.
    pub size: u64,
    /// Sha256 of the wheel, as lower-case hexadecimal text.
    pub sha256: String,
    /// Sha256 of the wheel's `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
    /// The CUDA release that it was built with; none for a CPU build.
    pub cuda: Option<Version>,
    /// The language level that its umbrella headers want, such as `gnu++20`.
    pub cxx: String,
    /// The license that the wheel states.
    pub license: String,
    /// Sha256 of the file with the names that its libraries export, as lower-case hexadecimal text.
    pub names_sha256: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    #[serde(default)]
    torch: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    version: Spanned<String>,
    platform: Spanned<String>,
    wheel: Spanned<String>,
    size: u64,
    sha256: Spanned<String>,
    record_sha256: Spanned<String>,
    cuda: Option<Spanned<String>>,
    cxx: Spanned<String>,
    license: String,
    names_sha256: Spanned<String>,
}

impl Lock {
    /// Reads the text of a lock file.
    ///
    /// # Errors
    /// With the first fault, pointing into the text.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        if let Some(at) = conflict(text) {
            let message = "the file has the marks of a merge: take one side, or both of what is between them, and remove the marks";
            return Err(Diagnostic::error("lock", at, message));
        }
        let unreadable = |e: toml::de::Error| Diagnostic::error("lock", e.span().map(Span::from), e.message().replace('\n', ", "));
        let file: File = toml::from_str(text).map_err(unreadable)?;
        if *file.version.get_ref() != VERSION {
            let message = format!("this Kiln reads `{FILE_NAME}` files of version {VERSION} only");
            return Err(Diagnostic::error("lock", Span::from(file.version.span()), message));
        }
        let mut lock = Self::default();
        for entry in file.torch {
            let span = Span::from(entry.version.span());
            let locked = entry.check()?;
            if lock.torch.iter().any(|known| known.is_same_build(&locked.version, locked.local(), &locked.platform)) {
                let message = format!("torch {} for {} stands here twice", locked.shown(), locked.platform);
                return Err(Diagnostic::error("lock", span, message));
            }
            lock.torch.push(locked);
        }
        lock.torch.sort();
        Ok(lock)
    }

    /// The text of the file. Equal locks give equal texts.
    pub fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for torch in &self.torch {
            text.push_str(&format!("\n[[torch]]\nversion = \"{}\"\nplatform = \"{}\"\n", torch.version, torch.platform));
            text.push_str(&format!("wheel = \"{}\"\nsize = {}\n", torch.wheel, torch.size));
            text.push_str(&format!("sha256 = \"{}\"\nrecord-sha256 = \"{}\"\n", torch.sha256, torch.record_sha256));
            if let Some(cuda) = &torch.cuda {
                text.push_str(&format!("cuda = \"{cuda}\"\n"));
            }
            let license = storable(&torch.license);
            text.push_str(&format!("cxx = \"{}\"\nlicense = \"{license}\"\nnames-sha256 = \"{}\"\n", torch.cxx, torch.names_sha256));
        }
        text
    }

    /// The releases, by ascending version, then platform.
    pub fn torch(&self) -> &[LockedTorch] {
        &self.torch
    }

    /// Pins a release, in place of what was pinned for the same version, local part and platform.
    pub fn add(&mut self, torch: LockedTorch) {
        self.remove(&torch.version, torch.local(), &torch.platform);
        self.torch.push(torch);
        self.torch.sort();
    }

    /// Takes a release out; `local` is the local part of its version.
    pub fn remove(&mut self, version: &Version, local: Option<&str>, platform: &str) {
        self.torch.retain(|known| !known.is_same_build(version, local, platform));
    }
}

impl LockedTorch {
    /// The local part of the wheel's version, such as `cu126`, where it has one: builds of one release that were configured otherwise.
    pub fn local(&self) -> Option<&str> {
        Some(self.wheel.split('-').nth(1)?.split_once('+')?.1)
    }

    /// The version with its local part, for people.
    pub fn shown(&self) -> String {
        self.local().map_or_else(|| self.version.to_string(), |local| format!("{}+{local}", self.version))
    }

    /// Whether it is this build of a release for this platform; `local` is the local part of the version.
    pub fn is_same_build(&self, version: &Version, local: Option<&str>, platform: &str) -> bool {
        (&self.version, self.local(), self.platform.as_str()) == (version, local, platform)
    }
}

impl Entry {
    fn check(self) -> Result<LockedTorch, Diagnostic> {
        for (digest, key) in [(&self.sha256, "sha256"), (&self.record_sha256, "record-sha256"), (&self.names_sha256, "names-sha256")] {
            if digest.get_ref().len() != 64 || !digest.get_ref().bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(fault(digest, format!("`{key}` must be 64 lower-case hexadecimal digits")));
            }
        }
        // Both become parts of file names.
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+'))
        };
        if !plain(self.platform.get_ref()) {
            return Err(fault(&self.platform, format!("`{}` is no platform", self.platform.get_ref().escape_debug())));
        }
        if !plain(self.wheel.get_ref()) || !self.wheel.get_ref().ends_with(".whl") {
            return Err(fault(&self.wheel, format!("`{}` is no file name of a wheel", self.wheel.get_ref().escape_debug())));
        }
        if !matches!(self.cxx.get_ref().as_str(), "gnu++17" | "gnu++20") {
            return Err(fault(&self.cxx, format!("`{}` is no language level", self.cxx.get_ref().escape_debug())));
        }
        let version = |text: &Spanned<String>| Version::parse(text.get_ref()).map_err(|cause| fault(text, cause.to_string()));
        let named = self.wheel.get_ref().split('-').nth(1).map(|named| named.split('+').next().unwrap_or(named));
        if named.and_then(|named| Version::parse(named).ok()).is_some_and(|named| Ok(named) != Version::parse(self.version.get_ref())) {
            return Err(fault(
                &self.version,
                format!("`{}` is not the version of its wheel `{}`", self.version.get_ref().escape_debug(), self.wheel.get_ref()),
            ));
        }
        Ok(LockedTorch {
            version: version(&self.version)?,
            cuda: self.cuda.as_ref().map(version).transpose()?,
            platform: self.platform.into_inner(),
            wheel: self.wheel.into_inner(),
            size: self.size,
            sha256: self.sha256.into_inner(),
            record_sha256: self.record_sha256.into_inner(),
            cxx: self.cxx.into_inner(),
            license: self.license,
            names_sha256: self.names_sha256.into_inner(),
        })
    }
}

/// A text as a lock file holds it: a basic string takes everything but quotes, backslashes and control characters as it is.
pub fn storable(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '"' | '\\') && !c.is_control()).collect()
}

/// Where a merge has left its marks: no line of TOML begins so.
fn conflict(text: &str) -> Option<Span> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if ["<<<<<<< ", ">>>>>>> ", "||||||| "].iter().any(|mark| line.starts_with(mark)) || line.trim_end() == "=======" {
            return Some(Span::from(start..start + line.trim_end().len()));
        }
        start += line.len();
    }
    None
}

fn fault<T>(at: &Spanned<T>, message: String) -> Diagnostic {
    Diagnostic::error("lock", Span::from(at.span()), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SourceFile, render};

    fn locked(version: &str, platform: &str) -> LockedTorch {
        LockedTorch {
            version: Version::parse(version).unwrap(),
            platform: platform.to_owned(),
            wheel: format!("torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"),
            size: 530,
            sha256: "a".repeat(64),
            record_sha256: "b".repeat(64),
            cuda: Version::parse("13.0").ok(),
            cxx: "gnu++20".to_owned(),
            license: "BSD-3-Clause".to_owned(),
            names_sha256: "c".repeat(64),
        }
    }

    #[test]
    fn the_wheel_of_another_version_is_refused() {
        let mut lock = Lock::default();
        lock.add(LockedTorch { version: Version::parse("2.16.2").unwrap(), ..locked("2.16.1", "linux-x86_64") });
        let fault = Lock::parse(&lock.render()).unwrap_err();
        assert_eq!(fault.message, "`2.16.2` is not the version of its wheel `torch-2.16.1-cp311-cp311-manylinux_2_28_x86_64.whl`");
    }

    #[test]
    fn entries_are_sorted_and_read_back() {
        let mut lock = Lock::default();
        for (version, platform) in [("2.14.0", "linux-x86_64"), ("2.9.1", "linux-x86_64"), ("2.14.0", "linux-aarch64")] {
            lock.add(LockedTorch { cuda: None, ..locked(version, platform) });
        }
        lock.add(locked("2.9.1", "linux-x86_64"));
        let shown: Vec<String> = lock.torch().iter().map(|torch| format!("{} {}", torch.version, torch.platform)).collect();
        assert_eq!(shown, ["2.9.1 linux-x86_64", "2.14.0 linux-aarch64", "2.14.0 linux-x86_64"]);
        assert_eq!(Lock::parse(&lock.render()).unwrap(), lock);
        assert_eq!(Lock::parse(&Lock::default().render()).unwrap(), Lock::default());
    }

    #[test]
    fn what_other_programs_make_of_the_file() {
        let mut lock = Lock::default();
        lock.add(locked("2.12.0", "linux-x86_64"));
        let sound = lock.render();
        assert_eq!(Lock::parse(&sound.replace('\n', "\r\n")).unwrap(), lock);
        assert_eq!(Lock::parse(sound.trim_end()).unwrap(), lock);
        let (head, entry) = sound.split_at(sound.find("[[torch]]").unwrap());
        let merged = format!("{head}<<<<<<< HEAD\r\n{entry}=======\n{}>>>>>>> theirs\n", entry.replace("2.12.0", "2.12.1"));
        let fault = Lock::parse(&merged).unwrap_err();
        let shown = render(&SourceFile::new(FILE_NAME, merged.as_str()), &[fault]);
        assert!(shown.contains("the file has the marks of a merge") && shown.contains("kiln.lock:4:1"), "{shown}");
    }

    #[test]
    fn builds_of_one_release_stand_beside_each_other() {
        let build = |local: &str| LockedTorch {
            wheel: format!("torch-2.11.0{local}-cp311-cp311-manylinux_2_28_x86_64.whl"),
            ..locked("2.11.0", "linux-x86_64")
        };
        let mut lock = Lock::default();
        for local in ["+rocm6.4", "+cu126", "", "+cu126"] {
            lock.add(build(local));
        }
        let shown: Vec<String> = lock.torch().iter().map(LockedTorch::shown).collect();
        assert_eq!(shown, ["2.11.0+cu126", "2.11.0+rocm6.4", "2.11.0"]);
        assert_eq!(Lock::parse(&lock.render()).unwrap(), lock);
        lock.remove(&Version::parse("2.11.0").unwrap(), Some("cu126"), "linux-x86_64");
        assert_eq!(lock.torch().len(), 2);
        let twice = format!("{}{}", lock.render(), &Lock { torch: vec![build("+rocm6.4")] }.render()[HEAD.len()..]);
        assert_eq!(Lock::parse(&twice).unwrap_err().message, "torch 2.11.0+rocm6.4 for linux-x86_64 stands here twice");
    }

    #[test]
    fn the_text_is_this() {
        let mut lock = Lock::default();
        lock.add(LockedTorch { sha256: "0".repeat(64), ..locked("2.12.0", "linux-x86_64") });
        insta::assert_snapshot!(lock.render());
    }

    #[test]
    fn faults_point_into_the_file() {
        let mut lock = Lock::default();
        lock.add(locked("2.12.0", "linux-x86_64"));
        let sound = lock.render();
        let entry = &sound[sound.find("[[torch]]").unwrap()..];
        let changed = |from: &str, to: &str| {
            assert!(sound.contains(from), "{from}");
            sound.replacen(from, to, 1)
        };
        let texts = [
            changed("version = 1", "version = 2"),
            changed("size = 530", "size = 530\nindex = \"x\""),
            changed(&"a".repeat(64), "abc"),
            changed(&"b".repeat(64), &"B".repeat(64)),
            changed("size = 530\n", ""),
            changed("size = 530", "size = -1"),
            changed("linux-x86_64", "../x"),
            changed("wheel = \"torch", "wheel = \"/torch"),
            changed("gnu++20", "c++98"),
            changed("\"2.12.0\"", "\"2.12.0+cu130\""),
            format!("{sound}{entry}"),
            changed("[[torch]]", "[[torch]"),
            String::new(),
        ];
        let messages: Vec<String> = texts
            .iter()
            .map(|text| {
                let fault = Lock::parse(text).unwrap_err();
                let shown = render(&SourceFile::new(FILE_NAME, text.as_str()), &[fault]);
                shown.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ")
            })
            .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(text in "(version = 1|\\[\\[torch\\]\\]|[a-z0-9-]{0,9} = |\"|[0-9]|\n|=|[a-zé ]){0,40}") {
            let _ = Lock::parse(&text);
        }
    }
}
