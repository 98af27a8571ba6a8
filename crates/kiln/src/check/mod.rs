//! Static checks of what was built: by a build on each variant, and on demand on projects, variants and single files.
//!
//! [`check_paths`] finds out what each path is and runs every check there is for it. What the checks say is a list of [`Remark`]s,
//! whichever crate established it.

mod builds;
mod names;
mod on_demand;
mod remark;
mod sarif;
mod variant;

pub use builds::BuildRule;
pub use names::FrameworkNames;
pub use on_demand::{CheckError, CheckOptions, Checks, DAMAGED_RECORD, HOST_FLOOR, NO_VARIANTS, check_paths};
pub use remark::{Outcome, Remark, RemarkKind};
pub use sarif::sarif;
pub(crate) use variant::floor_policy;
pub use variant::{BuiltVariant, check_built};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kiln_abi::{DATA_SOURCES, FailureKind, Rule};

    use super::*;

    /// The page of the manual has a row for each rule and for each reason why a check could not run, and no other.
    #[test]
    fn the_manual_has_every_rule() {
        // Read when it runs: a package of the crate does not have it.
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checks.md")).unwrap();
        let rows: BTreeSet<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
            .map(|(code, _)| code)
            .filter(|code| !code.starts_with('-'))
            .collect();
        let rules = Rule::ALL.iter().map(|rule| rule.code()).chain(BuildRule::ALL.iter().map(|rule| rule.code()));
        let known: BTreeSet<&str> =
            rules.chain(FailureKind::ALL.iter().map(|kind| kind.code())).chain([NO_VARIANTS, DAMAGED_RECORD]).collect();
        assert_eq!(rows, known);
        for (table, source) in DATA_SOURCES {
            let last = source.rsplit(' ').next().unwrap_or_default();
            assert!(page.contains(last), "{table}: {source}");
        }
    }

    /// What the schema of SARIF 2.1.0 demands of the objects that a report has.
    fn assert_sarif(log: &serde_json::Value) {
        let text = |value: &serde_json::Value| value.as_str().is_some_and(|text| !text.is_empty());
        let place = |value: &serde_json::Value| {
            let place = &value["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(uri.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'), "{uri}");
            assert!(place.get("region").is_none_or(|region| region["startLine"].as_u64() >= Some(1)), "{place}");
        };
        assert_eq!(log["version"], "2.1.0");
        for run in log["runs"].as_array().unwrap() {
            let driver = &run["tool"]["driver"];
            assert!(text(&driver["name"]));
            assert!(driver["rules"].as_array().unwrap().iter().all(|rule| text(&rule["id"]) && text(&rule["shortDescription"]["text"])));
            for invocation in run["invocations"].as_array().unwrap() {
                assert!(invocation["executionSuccessful"].is_boolean());
                for notification in invocation["toolExecutionNotifications"].as_array().unwrap() {
                    assert!(text(&notification["message"]["text"]) && text(&notification["descriptor"]["id"]), "{notification}");
                    notification["locations"].as_array().unwrap().iter().for_each(place);
                }
            }
            for result in run["results"].as_array().unwrap() {
                assert!(text(&result["message"]["text"]) && text(&result["ruleId"]), "{result}");
                assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()), "{result}");
                result["locations"].as_array().unwrap().iter().for_each(place);
            }
        }
    }

    /// A remark on a line of a file whose name no URI has as it is.
    #[test]
    fn places_in_files() {
        let file = kiln_format::SourceFile::new("a b/b\u{fc}.toml", "x = 1\ny = 2\n");
        let diagnostic =
            kiln_format::Diagnostic::warning("unused-key", kiln_format::Span::new(6, 7), "`y` has no use").with_note("see `x`");
        let mut outcome = Outcome::default();
        outcome.remarks.push(Remark::from(file.report(&diagnostic)));
        assert_eq!(outcome.remarks[0].place(), "a b/b\u{fc}.toml:2:1");
        assert_eq!(outcome.to_json()["findings"][0]["line"], 2);
        let log = sarif(&outcome, "1.0");
        assert_sarif(&log);
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/b%C3%BC.toml");
        assert_eq!(place["region"], serde_json::json!({"startLine": 2, "startColumn": 1}));
        assert_eq!(outcome.remarks[0].detail, "`y` has no use (see `x`)");
    }

    #[test]
    fn reports_as_data() {
        let failure = kiln_abi::Failure { kind: FailureKind::Damaged, file: "v/a.so".into(), cause: "cut short".into() };
        let finding = kiln_abi::Finding {
            rule: Rule::FloorVersion,
            level: kiln_format::Level::Error,
            file: "v/b.so".into(),
            symbol: Some("pow".into()),
            detail: "`pow` is too new".into(),
            evidence: "undefined `pow@GLIBC_2.29`".into(),
            caused_by: vec!["cpu/a.cpp".into()],
            fix: "use another".into(),
        };
        let mut outcome = Outcome::default();
        outcome.extend(kiln_abi::Report { files: vec!["v/a.so".into()], findings: vec![finding], failures: vec![failure] });
        let json = outcome.to_json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["findings"][0]["caused_by"][0], "cpu/a.cpp");
        assert_eq!((&json["failures"][0]["rule"], &json["findings"][0]["rule"]), (&"damaged".into(), &"floor-version".into()));
        assert_eq!(json["data"]["python-stable-abi"], "abi3info 2026.9.25");
        let log = sarif(&outcome, "1.0");
        assert_sarif(&log);
        let run = &log["runs"][0];
        assert_eq!(run["results"][0]["ruleId"], "floor-version");
        assert_eq!(run["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(Rule::ALL.len() + BuildRule::ALL.len()));
        outcome.retain_rules(&["run-path".to_owned()]);
        assert_eq!(outcome.remarks.len(), 1, "what could not be checked stays");
        assert!(!outcome.is_ok());
    }
}
