//! Where things lie: the checkout, the target directory, the examples.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process;

/// The checkout and its build directory.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// The checkout's root.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo, which started this program.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("start this with `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask lies in no workspace")?.to_path_buf();
        let text = process::output(cargo().current_dir(&root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value = serde_json::from_str(&text).context("`cargo metadata` wrote no JSON")?;
        let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
        Ok(Self { root, target: PathBuf::from(target) })
    }

    /// Directories of the example kernels, by name.
    pub(crate) fn examples(&self) -> anyhow::Result<Vec<PathBuf>> {
        let dir = self.root.join("kernels-examples");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&dir).with_context(|| format!("cannot read `{}`", dir.display()))? {
            let path = entry?.path();
            if path.join("build.toml").is_file() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Files that git tracks, relative to the root, in git's order.
    pub(crate) fn tracked_files(&self) -> anyhow::Result<Vec<String>> {
        let text = process::output(Command::new("git").current_dir(&self.root).args(["ls-files", "-z"]))?;
        Ok(text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Copies the tracked files of the directory `from`, which lies in the checkout, to `to`.
    pub(crate) fn copy_tracked(&self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let prefix = from.strip_prefix(&self.root)?.to_str().context("the directory has an odd name")?.to_owned() + "/";
        for file in self.tracked_files()? {
            let Some(name) = file.strip_prefix(&prefix) else { continue };
            let target = to.join(name);
            std::fs::create_dir_all(target.parent().context("a file lies in a directory")?)?;
            std::fs::copy(self.root.join(&file), target)?;
        }
        Ok(())
    }
}

/// The cargo that started this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    forget_us(&mut command);
    command
}

/// Takes away what `cargo run` says about this program. It is not meant for another cargo that `command` may start: build
/// scripts that ask for it would run again, each time.
pub(crate) fn forget_us(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// The last component of `path` as text.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
