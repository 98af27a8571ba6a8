//! The examples' own Python tests, in each Python that can run them.

use anyhow::Context as _;

use crate::process;
use crate::setup;
use crate::stages::{Counts, TestsFailed, junit_counts};
use crate::test_python::TestPython;
use crate::workspace::Workspace;

/// Runs the tests of every example that `python` can run, in one process: importing torch takes longer than most of them.
pub(crate) fn run(workspace: &Workspace, python: &TestPython) -> anyhow::Result<Counts> {
    let results = setup::environments(workspace).join("results");
    std::fs::create_dir_all(&results)?;
    let report = results.join(format!("{}.xml", python.slug()));
    if report.exists() {
        std::fs::remove_file(&report)?;
    }
    let mut command = python.command(workspace)?;
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg("--junitxml").arg(&report);
    command.args(workspace.examples()?.iter().filter(|project| python.tests(project)).map(|project| project.join("tests")));
    let finished = process::aloud(command.current_dir(&workspace.root))?;
    let Ok(xml) = std::fs::read_to_string(&report) else {
        anyhow::bail!("pytest wrote no result: {}\n{}", finished.status, finished.evidence())
    };
    let counts = junit_counts(&xml).with_context(|| format!("`{}`", report.display()))?;
    if counts.failed > 0 {
        anyhow::bail!(TestsFailed { counts, evidence: finished.evidence() });
    }
    finished.check()?;
    Ok(counts)
}
