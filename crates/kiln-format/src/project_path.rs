//! Paths of files of a project, relative to its root and never outside it.

use std::fmt;

use crate::suggest::quoted;

/// A path inside the project: relative, `/`-separated, without `.`, `..` or empty components; empty for the root itself.
///
/// Holds what the file says after `a/./b` and `a/../b` were resolved by name; links on disk are for the caller to check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectPath(String);

/// Why a text is no [`ProjectPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectPathError {
    /// Nothing.
    #[error("a path cannot be empty")]
    Empty,
    /// Starts at a file-system root or a drive.
    #[error("{} is an absolute path: paths are relative to the project", quoted(.0))]
    Absolute(String),
    /// Has more `..` than directories.
    #[error("path {} leaves the project", quoted(.0))]
    Outside(String),
    /// Uses the separator of Windows.
    #[error("{} contains a backslash: `/` separates the parts of a path on every platform", quoted(.0))]
    Backslash(String),
    /// Holds a control character, which compilers' dependency files cannot carry.
    #[error("{} contains a control character", quoted(.0))]
    Control(String),
}

impl ProjectPath {
    /// Checks and normalises `text`.
    ///
    /// # Errors
    /// When the text is empty, absolute (also with a drive), leaves the project, or holds a backslash or a control character.
    pub fn new(text: &str) -> Result<Self, ProjectPathError> {
        let owned = || text.to_owned();
        if text.is_empty() {
            return Err(ProjectPathError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(ProjectPathError::Control(owned()));
        }
        if text.starts_with(['/', '\\']) || has_drive(text) {
            return Err(ProjectPathError::Absolute(owned()));
        }
        if text.contains('\\') {
            return Err(ProjectPathError::Backslash(owned()));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(ProjectPathError::Outside(owned()));
                    }
                }
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        // `./C:/x` was relative as it stood; what it comes to is not.
        if has_drive(&path) { Err(ProjectPathError::Absolute(owned())) } else { Ok(Self(path)) }
    }

    /// The normalised path; empty for the project's root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component; empty for the root.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// What follows the last dot of the last component, if there is one with something on both sides.
    pub fn extension(&self) -> Option<&str> {
        self.file_name()
            .rsplit_once('.')
            .filter(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
            .map(|(_, extension)| extension)
    }
}

/// Whether `text` starts like `C:\x` or `C:/x`.
fn has_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn normalised() {
        for (text, path) in [
            ("a/b.cpp", "a/b.cpp"),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            (".", ""),
            ("a/..", ""),
            ("ü x/日.cu", "ü x/日.cu"),
            ("..a", "..a"),
        ] {
            assert_eq!(ProjectPath::new(text).unwrap().as_str(), path);
        }
        assert_eq!(ProjectPath::new(".").unwrap().to_string(), ".");
        assert_eq!(ProjectPath::new("a/b").unwrap().to_string(), "a/b");
    }

    #[test]
    fn names_and_extensions() {
        for (text, name, extension) in [
            ("a.d/b.tar.gz", "b.tar.gz", Some("gz")),
            ("a.d/b", "b", None),
            ("a/.hidden", ".hidden", None),
            ("a.", "a.", None),
            (".", "", None),
        ] {
            let path = ProjectPath::new(text).unwrap();
            assert_eq!((path.file_name(), path.extension()), (name, extension), "{text}");
        }
    }

    #[test]
    fn refused() {
        let messages: Vec<String> = ["", "/etc/x", "C:/x", r"C:\x", "./C:/x", r"\x", r"a\b", "../x", "a/../../x", "a\nb"]
            .iter()
            .map(|text| ProjectPath::new(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        a path cannot be empty
        `/etc/x` is an absolute path: paths are relative to the project
        `C:/x` is an absolute path: paths are relative to the project
        `C:\x` is an absolute path: paths are relative to the project
        `./C:/x` is an absolute path: paths are relative to the project
        `\x` is an absolute path: paths are relative to the project
        `a\b` contains a backslash: `/` separates the parts of a path on every platform
        path `../x` leaves the project
        path `a/../../x` leaves the project
        `a\nb` contains a control character
        ");
    }

    proptest! {
        #[test]
        fn never_outside(text in "[./a\\\\:]{0,10}") {
            if let Ok(path) = ProjectPath::new(&text) {
                prop_assert!(!path.as_str().starts_with('/'));
                prop_assert!(path.as_str().is_empty() || path.as_str().split('/').all(|part| !matches!(part, "" | "." | "..")));
                if !path.as_str().is_empty() {
                    prop_assert_eq!(ProjectPath::new(path.as_str()), Ok(path));
                }
            }
        }
    }
}
