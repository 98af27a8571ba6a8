//! `coverage`: the share of lines that the tests of the core crates run, and its threshold.
//!
//! rustup's `llvm-tools` are not needed: LLVM's own programs come from a Python package of the same major release.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::process;
use crate::setup;
use crate::stages::Counts;
use crate::test::cargo_tests;
use crate::workspace::Workspace;

/// The crates whose code is pure enough that little excuses an untested line.
pub(crate) const CRATES: [&str; 3] = ["kiln-format", "kiln-graph", "kiln-object"];
/// Percent of lines that each must reach.
const THRESHOLD: f64 = 85.0;

/// Options of `coverage`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Also write a page for each file, and say where
    #[arg(long)]
    html: bool,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    check(workspace)?;
    if options.html {
        let dir = workspace.target.join("coverage");
        process::aloud(tool(workspace)?.args(["report", "--html", "--output-dir"]).arg(&dir))?.check()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs their tests, measures and compares. Counts the tests and the crates.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let json = workspace.target.join("coverage.json");
    let mut test = tool(workspace)?;
    test.args(["--locked", "--no-fail-fast", "--json", "--summary-only", "--output-path"]).arg(&json);
    for name in CRATES {
        test.args(["--package", name]);
    }
    let tests = cargo_tests(&mut test)?;
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json)?)?;
    let lines = lines_by_crate(&report);
    let mut counts = tests;
    println!("{} tests ran; lines that they reached, in percent (threshold {THRESHOLD}):", tests.passed);
    for (name, (covered, all)) in CRATES.iter().zip(lines) {
        if all == 0 {
            bail!("no line of `{name}` was measured");
        }
        #[expect(clippy::cast_precision_loss, reason = "far fewer lines than a double can count")]
        let percent = 100.0 * covered as f64 / all as f64;
        let good = percent >= THRESHOLD;
        println!("  {name:<12} {percent:>6.2}  ({covered} of {all}){}", if good { "" } else { "  too few" });
        counts = counts.plus(if good { Counts::ONE } else { Counts { passed: 0, failed: 1 } });
    }
    Ok(counts)
}

/// Lines covered and lines there are, for each of [`CRATES`].
fn lines_by_crate(report: &serde_json::Value) -> [(u64, u64); CRATES.len()] {
    let mut sums = [(0, 0); CRATES.len()];
    let files = report["data"][0]["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    for file in files {
        let name = file["filename"].as_str().unwrap_or_default();
        let lines = &file["summary"]["lines"];
        for (sum, owner) in sums.iter_mut().zip(CRATES) {
            if name.contains(&format!("/crates/{owner}/src/")) {
                sum.0 += lines["covered"].as_u64().unwrap_or(0);
                sum.1 += lines["count"].as_u64().unwrap_or(0);
            }
        }
    }
    sums
}

fn tool(workspace: &Workspace) -> anyhow::Result<Command> {
    let tools = setup::coverage_tools(workspace)?;
    // By path only: the package has other programs beside it that must not take the place of the system's.
    let mut command = Command::new(tools.cargo_llvm_cov);
    command.current_dir(&workspace.root).arg("llvm-cov").env("LLVM_COV", tools.llvm_cov).env("LLVM_PROFDATA", tools.llvm_profdata);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_up_by_crate() {
        let report = serde_json::json!({"data": [{"files": [
            {"filename": "/x/crates/kiln-graph/src/a.rs", "summary": {"lines": {"covered": 8, "count": 10}}},
            {"filename": "/x/crates/kiln-graph/src/b/c.rs", "summary": {"lines": {"covered": 1, "count": 10}}},
            {"filename": "/x/crates/kiln-graph/tests/t.rs", "summary": {"lines": {"covered": 5, "count": 5}}},
            {"filename": "/x/crates/kiln-format/src/lib.rs", "summary": {"lines": {"covered": 3, "count": 4}}},
        ]}]});
        assert_eq!(lines_by_crate(&report), [(3, 4), (9, 20), (0, 0)]);
    }
}
