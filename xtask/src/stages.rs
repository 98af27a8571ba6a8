//! A row of stages that all run, whatever fails, and the table and counts at their end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::process;

/// How many tests a stage ran. A stage that runs no single tests counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
}

impl Counts {
    /// One check that passed.
    pub(crate) const ONE: Self = Self { passed: 1, failed: 0 };

    /// The sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// Tests of which some failed, with the lines that tell why.
#[derive(Debug)]
pub(crate) struct TestsFailed {
    /// How many passed and failed.
    pub(crate) counts: Counts,
    /// What of their output tells why.
    pub(crate) evidence: String,
}

impl std::fmt::Display for TestsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed\n{}", self.counts.failed, self.evidence)
    }
}

impl std::error::Error for TestsFailed {}

struct Stage {
    name: String,
    counts: Counts,
    elapsed: Duration,
    problem: Option<String>,
}

/// The stages that have run.
#[derive(Default)]
pub(crate) struct Stages {
    done: Vec<Stage>,
}

impl Stages {
    /// Runs one stage. Gives whether it passed; whatever it says, the row goes on.
    pub(crate) fn run(&mut self, name: &str, body: impl FnOnce() -> anyhow::Result<Counts>) -> bool {
        println!("\n=== {name}");
        let started = Instant::now();
        let (counts, problem) = match body() {
            Ok(counts) if counts.failed == 0 && counts.passed > 0 => (counts, None),
            Ok(counts) if counts.failed > 0 => (counts, Some(format!("{} failed", counts.failed))),
            Ok(_) => (Counts { passed: 0, failed: 1 }, Some("ran no test".to_owned())),
            Err(error) => {
                let counts = error.downcast_ref::<TestsFailed>().map_or(Counts { passed: 0, failed: 1 }, |tests| tests.counts);
                (counts, Some(format!("{error:#}")))
            }
        };
        if let Some(problem) = &problem {
            println!("stage `{name}` failed: {}", problem.lines().next().unwrap_or_default());
        }
        let passed = problem.is_none();
        self.done.push(Stage { name: name.to_owned(), counts, elapsed: started.elapsed(), problem });
        passed
    }

    /// Notes a stage that cannot run because `what` failed: a failure of its own.
    pub(crate) fn blocked(&mut self, name: &str, what: &str) -> bool {
        self.run(name, || anyhow::bail!("cannot run: {what} failed"))
    }

    /// Prints the table and, alone on the last line, the counts.
    pub(crate) fn finish(self) -> ExitCode {
        let width = self.done.iter().map(|stage| stage.name.len()).max().unwrap_or(0);
        let mut total = Counts::default();
        let mut elapsed = Duration::ZERO;
        println!("\n{:width$}  {:>14}  passed  failed", "stage", "time");
        for stage in &self.done {
            total = total.plus(stage.counts);
            elapsed += stage.elapsed;
            let Counts { passed, failed } = stage.counts;
            println!("{:width$}  {:>14}  {passed:>6}  {failed:>6}", stage.name, process::duration(stage.elapsed));
        }
        println!("{:width$}  {:>14}", "all", process::duration(elapsed));
        // With the causes: who sees only the end of a log must not have to run everything again.
        for stage in &self.done {
            if let Some(problem) = &stage.problem {
                println!("failed: {}: {problem}", stage.name);
            }
        }
        println!("\n{} passed, {} failed", total.passed, total.failed);
        if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Adds up the summaries of cargo's test runner in `output`.
pub(crate) fn cargo_test_counts(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some(rest) = line.trim_start().strip_prefix("test result: ") else { continue };
        for part in rest.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match what {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                _ => {}
            }
        }
    }
    counts
}

/// What the `--junitxml` file of pytest says: tests, failures and errors of its suites.
pub(crate) fn junit_counts(xml: &str) -> anyhow::Result<Counts> {
    let suite = xml.find("<testsuite ").and_then(|start| xml.get(start..)).and_then(|rest| rest.split('>').next());
    let Some(suite) = suite else { anyhow::bail!("pytest wrote no result") };
    let number = |name: &str| {
        let value = suite.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next());
        value.and_then(|value| value.parse::<usize>().ok()).ok_or_else(|| anyhow::anyhow!("pytest's result has no `{name}`"))
    };
    // A skipped test has proven nothing.
    let failed = number("failures")? + number("errors")? + number("skipped")?;
    Ok(Counts { passed: number("tests")?.saturating_sub(failed), failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_summaries_are_added_up() {
        let output = "running 3 tests\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.29s\n\
                      test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.50s\n";
        assert_eq!(cargo_test_counts(output), Counts { passed: 7, failed: 1 });
        assert_eq!(cargo_test_counts("error: could not compile"), Counts::default());
    }

    #[test]
    fn pytest_results_count_skips_as_failures() {
        let xml = r#"<?xml version="1.0"?><testsuites name="x"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.0">"#;
        assert_eq!(junit_counts(xml).unwrap(), Counts { passed: 4, failed: 6 });
        assert!(junit_counts("").is_err());
    }

    #[test]
    fn a_stage_without_tests_fails() {
        let mut stages = Stages::default();
        assert!(!stages.run("nothing", || Ok(Counts::default())));
        assert!(stages.run("one", || Ok(Counts::ONE)));
        assert_eq!(stages.finish(), ExitCode::FAILURE);
    }
}
