//! A report in SARIF 2.1.0, which code hosts and editors read.

use std::collections::BTreeMap;

use kiln_abi::Rule;
use kiln_format::Level;
use serde_json::{Value, json};

use super::builds::BuildRule;
use super::remark::{Outcome, Remark, RemarkKind};

/// The report as one run. A check that could not run is a notification, and the run then did not succeed.
pub fn sarif(outcome: &Outcome, version: &str) -> Value {
    let summaries: BTreeMap<&str, &str> = Rule::ALL
        .iter()
        .map(|rule| (rule.code(), rule.summary()))
        .chain(BuildRule::ALL.iter().map(|rule| (rule.code(), rule.summary())))
        .collect();
    let rules: Vec<Value> = summaries.iter().map(|(code, summary)| json!({"id": code, "shortDescription": {"text": summary}})).collect();
    let (findings, failures): (Vec<&Remark>, Vec<&Remark>) = outcome.remarks.iter().partition(|remark| remark.kind == RemarkKind::Finding);
    let results: Vec<Value> = findings.into_iter().map(result).collect();
    let notifications: Vec<Value> = failures
        .iter()
        .map(|remark| json!({"level": "error", "descriptor": {"id": remark.rule}, "message": {"text": remark.detail}, "locations": [location(remark)]}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "kiln", "version": version, "rules": rules}},
            "invocations": [{"executionSuccessful": failures.is_empty(), "toolExecutionNotifications": notifications}],
            "results": results,
        }],
    })
}

fn result(remark: &Remark) -> Value {
    let mut text = remark.detail.clone();
    if let Some(fix) = &remark.fix {
        text.push_str(&format!(". To fix it: {fix}"));
    }
    let level = match remark.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    json!({
        "ruleId": remark.rule,
        "level": level,
        "message": {"text": text},
        "locations": [location(remark)],
        "properties": {"symbol": remark.symbol, "evidence": remark.evidence, "causedBy": remark.caused_by},
    })
}

fn location(remark: &Remark) -> Value {
    let mut physical = json!({"artifactLocation": {"uri": uri(&remark.file)}});
    if let (Some(line), Some(column)) = (remark.line, remark.column) {
        physical["region"] = json!({"startLine": line, "startColumn": column});
    }
    json!({"physicalLocation": physical})
}

/// A path as a URI reference (RFC 3986): what may not stand in one is escaped byte by byte.
fn uri(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
