//! torch-npu's library, which tests of the cann backend link with as it is: builds use its names alone.

use std::path::PathBuf;

use anyhow::Context as _;

use super::{base, complete_python, environments, install_alone, lock, piece, quiet};
use crate::workspace::Workspace;

/// The release whose names variants for torch 2.12 are linked by.
const TORCH_NPU: &str = "torch-npu==2.12.0.post3";
/// The library in it. The tests look for it under its own name.
const LIBRARY: &str = "libtorch_npu.so";

/// The directory of the library. It is for Linux on x86_64, on whatever machine: it is linked with, and never loaded.
pub(crate) fn torch_npu(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let dir = environments(workspace).join("torch-npu");
    piece(&dir, TORCH_NPU, "torch-npu's library, for a link of the cann backend", || {
        let scratch = dir.join("scratch");
        std::fs::create_dir_all(&scratch)?;
        let mut pip = install_alone(&base, &scratch, &[TORCH_NPU]);
        pip.args(["--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]);
        quiet(pip.env("TMPDIR", &scratch))?;
        let library = scratch.join("torch_npu/lib").join(LIBRARY);
        std::fs::rename(&library, dir.join(LIBRARY)).with_context(|| format!("cannot move `{}`", library.display()))?;
        Ok(std::fs::remove_dir_all(&scratch)?)
    })?;
    Ok(dir)
}
