//! What checks established, and which of them could not run.

use std::collections::BTreeSet;
use std::fmt;

use kiln_format::Level;
use serde::Serialize;

use crate::rule::Rule;

/// One fact that a check established against a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How serious it is.
    pub level: Level,
    /// The file, as the caller calls it.
    pub file: String,
    /// The symbol it is about, mangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// What is wrong: lower case, no full stop, one line.
    pub detail: String,
    /// What was read in the file, such as `pow@GLIBC_2.29 from libm.so.6`.
    pub evidence: String,
    /// Labels of the objects that brought it in, such as `cpu/relu.cpp`; empty where no object is known.
    pub caused_by: Vec<String>,
    /// What to do about it.
    pub fix: String,
}

/// Why a check could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The file or directory cannot be read.
    Unreadable,
    /// The file has no content.
    EmptyFile,
    /// The file has the name of a shared object and is none.
    NotAnObject,
    /// The file is an object, but damaged or cut short.
    Damaged,
    /// The file is of a format that this version cannot look into.
    UnsupportedFormat,
    /// There is no policy or list for the file's processor.
    UnsupportedMachine,
    /// It is not known what a library that the file needs exports.
    UnknownExports,
    /// The directory's name says nothing about what is inside.
    UnknownVariant,
}

impl FailureKind {
    /// Every kind, in the order of the manual.
    pub const ALL: &'static [Self] = &[
        Self::Unreadable,
        Self::EmptyFile,
        Self::NotAnObject,
        Self::Damaged,
        Self::UnsupportedFormat,
        Self::UnsupportedMachine,
        Self::UnknownExports,
        Self::UnknownVariant,
    ];

    /// Its code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::EmptyFile => "empty-file",
            Self::NotAnObject => "not-an-object",
            Self::Damaged => "damaged",
            Self::UnsupportedFormat => "unsupported-format",
            Self::UnsupportedMachine => "unsupported-machine",
            Self::UnknownExports => "unknown-exports",
            Self::UnknownVariant => "unknown-variant",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A check that could not run. Not a finding, and no pass either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Why.
    pub kind: FailureKind,
    /// The file or directory, as the caller calls it.
    pub file: String,
    /// The cause, for people.
    pub cause: String,
}

/// The outcome of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The shared objects that were looked at, in the order of looking.
    pub files: Vec<String>,
    /// What was found, by file in the order of looking.
    pub findings: Vec<Finding>,
    /// What could not be checked.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Whether every check ran and none found an error.
    pub fn is_ok(&self) -> bool {
        self.failures.is_empty() && self.errors().next().is_none()
    }

    /// The findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Error)
    }

    /// The rules that were broken or doubted.
    pub fn rules(&self) -> BTreeSet<Rule> {
        self.findings.iter().map(|finding| finding.rule).collect()
    }

    /// Drops the findings of all rules but these. Failures stay.
    pub fn retain_rules(&mut self, only: &[Rule]) {
        self.findings.retain(|finding| only.contains(&finding.rule));
    }

    /// Adds what another report says.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.findings.extend(other.findings);
        self.failures.extend(other.failures);
    }

    pub(crate) fn fail(&mut self, kind: FailureKind, file: &str, cause: impl Into<String>) {
        self.failures.push(Failure { kind, file: file.to_owned(), cause: cause.into() });
    }
}
