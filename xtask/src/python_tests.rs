//! The examples' own Python tests, in each torch.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::process;
use crate::setup::{self, TorchPython};
use crate::stages::{Counts, TestsFailed, junit_counts};
use crate::workspace::{self, Workspace};

/// Keeps a Python process off the user's files and off the network, and its compiled leftovers in one place.
pub(crate) fn isolate(command: &mut Command, workspace: &Workspace, python: &TorchPython) -> anyhow::Result<()> {
    let home = setup::environments(workspace).join("home");
    std::fs::create_dir_all(&home)?;
    command.env("HOME", &home).env("HF_HUB_OFFLINE", "1").env_remove("LOCAL_KERNELS").env_remove("PYTHONPATH");
    command.env("TORCHINDUCTOR_CACHE_DIR", home.join(format!("inductor-{}", python.torch)));
    // Bytecode is kept, for torch is large, but neither beside the tests nor in a variant.
    command.env("PYTHONPYCACHEPREFIX", setup::environments(workspace).join("bytecode"));
    Ok(())
}

/// Runs the tests of `project`.
pub(crate) fn run(workspace: &Workspace, python: &TorchPython, project: &Path) -> anyhow::Result<Counts> {
    let results = setup::environments(workspace).join("results");
    std::fs::create_dir_all(&results)?;
    let report = results.join(format!("{}-{}.xml", workspace::file_name(project), python.torch));
    if report.exists() {
        std::fs::remove_file(&report)?;
    }
    let mut command = Command::new(&python.python);
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg("--junitxml").arg(&report).arg(project.join("tests"));
    isolate(&mut command, workspace, python)?;
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
