//! The names that an extension may take from any CPython: its stable ABI.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// The table and where it comes from; its head says how to read it.
const TABLE: &str = include_str!("../../data/python-limited-api.txt");

/// Where the table comes from, for reports.
pub const PYTHON_TABLE_SOURCE: &str = "abi3info 2026.9.25";

/// Macros that no CPython defines on Linux, in a release build. The table's other ones always are.
const NOT_ON_LINUX: &[&str] = &["MS_WINDOWS", "USE_STACKCHECK", "Py_REF_DEBUG"];

/// A Python release, such as 3.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PythonVersion {
    /// The first number.
    pub major: u8,
    /// The second number.
    pub minor: u8,
}

impl PythonVersion {
    /// The oldest release that kernels are built for.
    pub const FLOOR: Self = Self { major: 3, minor: 9 };

    /// Reads `3.9`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

static ADDED: LazyLock<BTreeMap<&'static str, PythonVersion>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (name, _kind, added) = (words.next()?, words.next()?, PythonVersion::parse(words.next()?)?);
            words.all(|word| !NOT_ON_LINUX.contains(&word)).then_some((name, added))
        })
        .collect()
});

/// The release that added `name` to the stable ABI on Linux; none for a name that is not in it.
pub fn added_to_stable_abi(name: &str) -> Option<PythonVersion> {
    ADDED.get(name).copied()
}

/// Whether `name` looks like one of CPython's.
pub fn is_of_python(name: &str) -> bool {
    name.starts_with("Py") || name.starts_with("_Py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert!(TABLE.contains(PYTHON_TABLE_SOURCE));
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.clone().count(), 968);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words.len() >= 3 && is_of_python(words[0]) && PythonVersion::parse(words[2]).is_some(), "{line}");
            assert!(matches!(words[1], "function" | "data"), "{line}");
        }
        // 806 of 3.9 and older, less 12 for Windows and one for a build with stack checks.
        assert_eq!(ADDED.values().filter(|added| **added <= PythonVersion::FLOOR).count(), 793);
    }

    #[test]
    fn names_have_their_release() {
        let added = |name| added_to_stable_abi(name).map(|version| version.to_string());
        assert_eq!(added("PyModule_Create2").as_deref(), Some("3.2"));
        assert_eq!(added("PyObject_CallNoArgs").as_deref(), Some("3.10"));
        assert_eq!(added("Py_Version").as_deref(), Some("3.11"));
        assert_eq!(added("PyOS_AfterFork_Child").as_deref(), Some("3.7"));
        assert_eq!(added("PyErr_SetFromWindowsErr"), None);
        assert_eq!(added("PyUnicode_AsUTF8"), None);
        assert_eq!(added("PyCFunction_Call").as_deref(), Some("3.2"), "kept for the ABI only");
    }
}
