//! What tests of the metal backend link with on any machine: a compiler for macOS, and Apple's headers for C++.

use std::path::PathBuf;
use std::process::Command;

use super::{base, complete_python, environments, install_alone, lock, piece, pip, quiet};
use crate::workspace::Workspace;

/// A Clang with a linker for macOS and the headers and names of its own library.
const ZIG: &str = "ziglang==0.17.1";
/// The wheel that has metal-cpp, and the platform that it is for.
const METAL_CPP: (&str, &str) = ("mlx-metal==0.32.4", "macosx_15_0_arm64");

/// Takes metal-cpp out of a wheel.
const TAKE_OUT: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = [name for name in wheel.namelist() if name.startswith('mlx/include/metal_cpp/')]
    assert len(names) > 100, 'the wheel has no metal-cpp'
    wheel.extractall(sys.argv[2], names)";

/// Sets both up: `zig` and `metal-cpp`.
pub(crate) fn apple(workspace: &Workspace) -> anyhow::Result<()> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let zig = environments(workspace).join("zig");
    piece(&zig, ZIG, "a compiler for macOS, for tests of the metal backend", || {
        quiet(&mut install_alone(&base, &zig, &[ZIG]))?;
        quiet(Command::new(zig.join("ziglang/zig")).arg("version"))
    })?;
    let dir = environments(workspace).join("metal-cpp");
    let (package, platform) = METAL_CPP;
    piece(&dir, package, "metal-cpp, for tests of the metal backend", || {
        std::fs::create_dir(&dir)?;
        let scratch: PathBuf = dir.join("scratch");
        let mut download = pip(&base);
        download.args(["download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--platform", platform]);
        quiet(download.arg("--dest").arg(&scratch).arg(package))?;
        for entry in std::fs::read_dir(&scratch)? {
            quiet(Command::new(base.join("bin/python")).args(["-c", TAKE_OUT]).arg(entry?.path()).arg(&dir))?;
        }
        Ok(std::fs::remove_dir_all(scratch)?)
    })
}
