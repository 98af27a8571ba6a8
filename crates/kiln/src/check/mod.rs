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
pub use names::TorchNames;
pub use on_demand::{CheckError, CheckOptions, Checks, NO_VARIANTS, check_paths};
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
        let page = include_str!("../../../../docs/checks.md");
        let rows: BTreeSet<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
            .map(|(code, _)| code)
            .filter(|code| !code.starts_with('-'))
            .collect();
        let rules = Rule::ALL.iter().map(|rule| rule.code()).chain(BuildRule::ALL.iter().map(|rule| rule.code()));
        let known: BTreeSet<&str> = rules.chain(FailureKind::ALL.iter().map(|kind| kind.code())).chain([NO_VARIANTS]).collect();
        assert_eq!(rows, known);
        for (table, source) in DATA_SOURCES {
            let last = source.rsplit(' ').next().unwrap_or_default();
            assert!(page.contains(last), "{table}: {source}");
        }
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
        let run = &sarif(&outcome, "1.0")["runs"][0];
        assert_eq!(run["results"][0]["ruleId"], "floor-version");
        assert_eq!(run["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        assert_eq!(run["tool"]["driver"]["rules"].as_array().map(Vec::len), Some(Rule::ALL.len() + BuildRule::ALL.len()));
        outcome.retain_rules(&["run-path".to_owned()]);
        assert_eq!(outcome.remarks.len(), 1, "what could not be checked stays");
        assert!(!outcome.is_ok());
    }
}
