//! What checks say, in one form.

use kiln_abi::{DATA_SOURCES, Failure, Finding, Report};
use kiln_format::{DiagnosticReport, Level};
use serde::Serialize;
use serde_json::{Value, json};

/// Whether a check found something or could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RemarkKind {
    /// A fact that a check established.
    Finding,
    /// A check that could not run, which is no pass.
    Failure,
}

/// One thing that a check says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Whether it found something or could not run.
    pub kind: RemarkKind,
    /// The rule, or why the check could not run.
    pub rule: String,
    /// How serious it is.
    pub level: Level,
    /// The file or directory.
    pub file: String,
    /// The line of a text file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The symbol it is about, mangled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// What is wrong: lower case, no full stop.
    pub detail: String,
    /// What was read in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The objects that brought it in.
    pub caused_by: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl From<Finding> for Remark {
    fn from(finding: Finding) -> Self {
        let Finding { rule, level, file, symbol, detail, evidence, caused_by, fix } = finding;
        let (evidence, fix) = (Some(evidence), Some(fix));
        let (kind, rule, line, column) = (RemarkKind::Finding, rule.code().to_owned(), None, None);
        Self { kind, rule, level, file, line, column, symbol, detail, evidence, caused_by, fix }
    }
}

impl From<Failure> for Remark {
    fn from(Failure { kind, file, cause }: Failure) -> Self {
        Self::failure(kind.code(), file, cause, None)
    }
}

impl From<DiagnosticReport<'_>> for Remark {
    fn from(report: DiagnosticReport<'_>) -> Self {
        Self {
            kind: RemarkKind::Finding,
            rule: report.code.to_owned(),
            level: report.level,
            file: report.file.to_owned(),
            line: Some(report.line),
            column: Some(report.column),
            symbol: None,
            detail: match report.note {
                Some(note) => format!("{} ({note})", report.message),
                None => report.message.to_owned(),
            },
            evidence: None,
            caused_by: Vec::new(),
            fix: report.hint.map(str::to_owned),
        }
    }
}

impl Remark {
    /// A check of `file` that could not run.
    pub fn failure(code: &str, file: String, cause: String, fix: Option<String>) -> Self {
        Self {
            kind: RemarkKind::Failure,
            rule: code.to_owned(),
            level: Level::Error,
            file,
            line: None,
            column: None,
            symbol: None,
            detail: cause,
            evidence: None,
            caused_by: Vec::new(),
            fix,
        }
    }

    /// The file, with the place in it where there is one.
    pub fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.file),
            _ => self.file.clone(),
        }
    }
}

/// The outcome of all checks of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The files and directories that were looked at.
    pub files: Vec<String>,
    /// What the checks say, by file in the order of looking.
    pub remarks: Vec<Remark>,
}

impl Outcome {
    /// How many remarks have this level. A check that could not run counts as an error.
    pub fn count(&self, level: Level) -> usize {
        self.remarks.iter().filter(|remark| remark.level == level).count()
    }

    /// Whether every check ran and none found an error.
    pub fn is_ok(&self) -> bool {
        self.count(Level::Error) == 0
    }

    /// Drops the findings of all rules but these. What could not be checked stays.
    pub fn retain_rules(&mut self, only: &[String]) {
        self.remarks.retain(|remark| remark.kind == RemarkKind::Failure || only.contains(&remark.rule));
    }

    /// Adds what the checks of objects say.
    pub fn extend(&mut self, report: Report) {
        self.files.extend(report.files);
        self.remarks.extend(report.findings.into_iter().map(Remark::from));
        self.remarks.extend(report.failures.into_iter().map(Remark::from));
    }

    /// The report as JSON: `files`, `findings`, `failures`, and what the tables were made from. Field names are stable.
    pub fn to_json(&self) -> Value {
        let of_kind = |kind| self.remarks.iter().filter(|remark| remark.kind == kind).collect::<Vec<_>>();
        let data: serde_json::Map<String, Value> =
            DATA_SOURCES.iter().map(|(table, source)| ((*table).to_owned(), json!(source))).collect();
        json!({
            "ok": self.is_ok(),
            "data": data,
            "files": self.files,
            "findings": of_kind(RemarkKind::Finding),
            "failures": of_kind(RemarkKind::Failure),
        })
    }
}
