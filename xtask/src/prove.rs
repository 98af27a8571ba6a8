//! Loading built variants with the unchanged `kernels` package, and running each project's example on them.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::build_kernels::Stage;
use crate::test_python::TestPython;
use crate::workspace::Workspace;

/// A variant to be loaded.
pub(crate) struct Case {
    /// The project.
    pub(crate) project: PathBuf,
    /// The variant's name.
    pub(crate) variant: String,
    /// The backend to ask the loader for.
    pub(crate) backend: String,
    /// Whether its example can run on this machine.
    pub(crate) runs: bool,
}

/// How far each of `cases` gets in one Python, in their order. One process tries all of them: importing torch takes longer
/// than everything else. A case that ends the process leaves those after it unproven.
pub(crate) fn in_python(workspace: &Workspace, python: &TestPython, cases: &[&Case]) -> anyhow::Result<Vec<Stage>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = python.command(workspace)?;
    command.arg(workspace.root.join("xtask/python/prove.py"));
    for case in cases {
        command.arg(&case.project).args([case.variant.as_str(), case.backend.as_str(), if case.runs { "ran" } else { "loaded" }]);
    }
    let result = command.output().with_context(|| format!("cannot run `{}`", python.python.display()))?;
    let errors = String::from_utf8_lossy(&result.stderr);
    if !errors.trim().is_empty() {
        println!("{}", errors.trim_end());
    }
    if !result.status.success() {
        println!("{}: {}", python.name, result.status);
    }
    Ok(reached(&String::from_utf8_lossy(&result.stdout), cases.len()))
}

/// The last stage that the script printed for each case.
fn reached(output: &str, cases: usize) -> Vec<Stage> {
    let mut stages = vec![Stage::Linked; cases];
    for line in output.lines() {
        let Some((number, stage)) = line.split_once(' ') else { continue };
        let slot = number.parse::<usize>().ok().and_then(|number| stages.get_mut(number));
        if let (Some(slot), Some(stage)) = (slot, Stage::parse(stage)) {
            *slot = stage.max(*slot);
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_printed_is_proven() {
        assert_eq!(reached("0 loaded\n0 ran\n2 loaded\nnoise\n9 ran\n", 3), [Stage::Ran, Stage::Linked, Stage::Loaded]);
        assert_eq!(reached("", 1), [Stage::Linked]);
    }
}
