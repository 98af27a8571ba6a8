//! The `kiln` binary of this checkout, and what it says about a project.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::process;
use crate::workspace::{self, Workspace};

/// The built binary.
#[derive(Clone, Debug)]
pub(crate) struct Kiln {
    program: PathBuf,
}

/// One variant of a project, as `kiln list-variants` tells it.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// The directory name.
    pub(crate) name: String,
    /// The backend.
    pub(crate) backend: String,
    /// `torch`, `torch-stable-abi`, `tvm-ffi` or `torch-noarch`.
    pub(crate) framework: String,
    /// The torch release that it is compiled with; none for noarch.
    pub(crate) torch: Option<String>,
    /// The release of the device's platform, where it has one.
    pub(crate) compute: Option<String>,
    /// Whether a plain `kiln build` takes it.
    pub(crate) preferred: bool,
    /// Whether it is in the set that is published.
    pub(crate) default: bool,
}

impl Variant {
    /// Whether it carries no compiled code.
    pub(crate) fn is_noarch(&self) -> bool {
        self.framework == "torch-noarch"
    }
}

impl Kiln {
    /// Builds the binary, in the profile that the tests share.
    pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<Self> {
        process::aloud(&mut Self::cargo_build(workspace))?.check()?;
        Self::built(workspace)
    }

    /// The same without a word on stdout.
    pub(crate) fn build_quietly(workspace: &Workspace) -> anyhow::Result<Self> {
        process::output(&mut Self::cargo_build(workspace))?;
        Self::built(workspace)
    }

    /// Builds the binary as it is installed, for what is timed.
    pub(crate) fn build_optimized(workspace: &Workspace) -> anyhow::Result<Self> {
        process::aloud(Self::cargo_build(workspace).arg("--release"))?.check()?;
        Self::built_in(workspace, "release")
    }

    fn cargo_build(workspace: &Workspace) -> Command {
        let mut command = workspace::cargo();
        command.current_dir(&workspace.root).args(["build", "--locked", "--package", "kiln"]);
        command
    }

    fn built(workspace: &Workspace) -> anyhow::Result<Self> {
        Self::built_in(workspace, "debug")
    }

    fn built_in(workspace: &Workspace, profile: &str) -> anyhow::Result<Self> {
        let program = workspace.target.join(profile).join("kiln");
        if !program.is_file() {
            bail!("cargo built no `{}`", program.display());
        }
        Ok(Self { program })
    }

    /// A command of the binary.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// The variants of `project` for this system, all of the matrix.
    pub(crate) fn variants(&self, project: &Path) -> anyhow::Result<Vec<Variant>> {
        self.variants_by(&[], project)
    }

    /// The variants of `project` for the system `target`.
    pub(crate) fn variants_for(&self, target: &str, project: &Path) -> anyhow::Result<Vec<Variant>> {
        self.variants_by(&["--target", target], project)
    }

    fn variants_by(&self, options: &[&str], project: &Path) -> anyhow::Result<Vec<Variant>> {
        let text = process::output(self.command().args(["list-variants", "--format", "json"]).args(options).arg(project))?;
        let report: Value = serde_json::from_str(&text).context("`kiln list-variants` wrote no JSON")?;
        let variants = report["variants"].as_array().context("`kiln list-variants` lists no `variants`")?;
        variants.iter().map(|entry| variant(entry).with_context(|| format!("odd entry of `kiln list-variants`: {entry}"))).collect()
    }

    /// The jobs of a CI matrix for `project`.
    pub(crate) fn matrix(&self, project: &Path) -> anyhow::Result<Vec<Value>> {
        let text = process::output(self.command().args(["matrix", "--format", "github"]).arg(project))?;
        let matrix: Value = serde_json::from_str(&text).context("`kiln matrix` wrote no JSON")?;
        Ok(matrix["include"].as_array().context("`kiln matrix` has no `include`")?.clone())
    }
}

fn variant(entry: &Value) -> Option<Variant> {
    Some(Variant {
        name: entry["name"].as_str()?.to_owned(),
        backend: entry["backend"].as_str()?.to_owned(),
        framework: entry["framework"].as_str()?.to_owned(),
        torch: entry["torch"].as_str().map(str::to_owned),
        compute: entry["compute"].as_str().map(str::to_owned),
        preferred: entry["preferred"].as_bool()?,
        default: entry["default"].as_bool()?,
    })
}
