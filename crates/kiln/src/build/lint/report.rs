//! What `kiln lint` says, as text and as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Finding, LintReport, UnitCost, percent, seconds};

/// The form of the JSON report.
const SCHEMA: u64 = 1;

/// The report for people.
pub fn text(report: &LintReport) -> String {
    let mut text = String::new();
    for unit in &report.units {
        text.push_str(&format!("{} ([{}], {})\n", unit.source, unit.component, unit.variant));
        let each = unit.capability.as_ref().map(|(name, of)| format!(", for {name} of {of} capabilities")).unwrap_or_default();
        match (&unit.unit, unit.headers, unit.share()) {
            (Err(_), ..) => text.push_str("  does not compile\n"),
            (Ok(whole), Some(headers), Some(share)) => {
                text.push_str(&format!(
                    "  costs {}{each}; torch's headers alone {}, {}\n",
                    seconds(*whole),
                    seconds(headers),
                    percent(share)
                ));
            }
            (Ok(whole), ..) => text.push_str(&format!("  costs {}{each}; torch's headers do not compile alone\n", seconds(*whole))),
        }
        for Finding { code, place: (file, line), message, fix, saves } in &unit.findings {
            text.push_str(&format!("  note[{code}]: {file}:{line}: {message}\n    saves up to {}: {fix}\n", seconds(*saves)));
        }
    }
    text.push_str(&format!("{} measured, {} without torch\n", report.units.len(), report.without_torch));
    text
}

/// The report for programs: times in milliseconds of processor time.
pub fn json(report: &LintReport) -> Value {
    json!({
        "schema": SCHEMA,
        "units": report.units.iter().map(of_unit).collect::<Vec<_>>(),
        "without-torch": report.without_torch,
    })
}

fn of_unit(unit: &UnitCost) -> Value {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let findings = unit.findings.iter().map(|finding| {
        json!({
            "code": finding.code, "file": finding.place.0, "line": finding.place.1, "message": finding.message, "fix": finding.fix,
            "saves-ms": millis(finding.saves),
        })
    });
    json!({
        "variant": unit.variant,
        "component": unit.component,
        "unit": unit.source,
        "capability": unit.capability.as_ref().map(|(name, _)| name),
        "capabilities": unit.capability.as_ref().map(|(_, count)| count),
        "torch-headers": unit.torch_headers,
        "unit-ms": unit.unit.as_ref().ok().copied().map(millis),
        "error": unit.unit.as_ref().err(),
        "headers-ms": unit.headers.map(millis),
        "share": unit.share().map(|share| (share * 1000.0).round() / 1000.0),
        "findings": findings.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_in_both_forms() {
        let unit = UnitCost {
            variant: "torch215-cxx11-cu132-x86_64-linux".to_owned(),
            component: "kernel.k".to_owned(),
            source: "gpu/k.cu".to_owned(),
            capability: Some(("8.0".to_owned(), 3)),
            torch_headers: vec!["torch/all.h".to_owned()],
            unit: Ok(Duration::from_millis(40_000)),
            headers: Some(Duration::from_millis(38_000)),
            findings: vec![Finding {
                code: "umbrella-include",
                place: ("gpu/k.cu".to_owned(), 2),
                message: "m".to_owned(),
                fix: "include <ATen/core/Tensor.h>".to_owned(),
                saves: Duration::from_millis(30_000),
            }],
        };
        let broken = UnitCost { unit: Err("no".to_owned()), headers: None, findings: Vec::new(), capability: None, ..unit.clone() };
        let report = LintReport { units: vec![unit, broken], without_torch: 1 };
        insta::assert_snapshot!(text(&report), @r"
        gpu/k.cu ([kernel.k], torch215-cxx11-cu132-x86_64-linux)
          costs 40.0 s, for 8.0 of 3 capabilities; torch's headers alone 38.0 s, 95 %
          note[umbrella-include]: gpu/k.cu:2: m
            saves up to 30.0 s: include <ATen/core/Tensor.h>
        gpu/k.cu ([kernel.k], torch215-cxx11-cu132-x86_64-linux)
          does not compile
        2 measured, 1 without torch
        ");
        let json = json(&report);
        assert_eq!((json["units"][0]["share"].as_f64(), json["units"][0]["headers-ms"].as_u64()), (Some(0.95), Some(38_000)));
        assert_eq!((json["units"][1]["error"].as_str(), json["units"][1]["share"].is_null()), (Some("no"), true));
        assert_eq!(json["units"][0]["findings"][0]["saves-ms"], 30_000);
    }
}
