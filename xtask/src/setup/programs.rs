//! Compilers and programs of the distribution: what of them is missing is installed where that is possible, else named in one line.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::{environments, lock, quiet};
use crate::process;
use crate::workspace::Workspace;

/// Compilers for the processors that the floor has lists of.
pub(crate) fn cross_compilers() -> anyhow::Result<()> {
    let packages = [("x86_64-linux-gnu-g++", "g++-x86-64-linux-gnu"), ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")];
    programs(&packages, "the libraries of both processors are read")
}

/// The compilers and linkers that only the full run uses: each program with the package that has it.
const OTHER_COMPILERS: &[(&str, &str)] = &[
    ("clang++", "clang"),
    ("g++-11", "g++-11"),
    ("g++-12", "g++-12"),
    ("clang++-19", "clang-19"),
    ("ld.lld-19", "lld-19"),
    ("ld.mold", "mold"),
    ("ld.gold", "binutils"),
];

/// The compilers and programs for other platforms that `cargo test` runs, with their packages.
const TEST_PROGRAMS: &[(&str, &str)] = &[
    ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
    ("g++-12", "g++-12"),
    ("clang++-19", "clang-19"),
    ("ld.lld-19", "lld-19"),
    ("make", "make"),
    ("qemu-aarch64", "qemu-user"),
];

/// The compiler for AMD devices, with its packages.
const AMD_PROGRAMS: &[(&str, &str)] = &[("clang++-19", "clang-19"), ("ld.lld-19", "lld-19"), ("hipcc", "hipcc")];

/// What it compiles with: HIP's headers, names and device code, and what torch's headers include for HIP.
const AMD_FILES: &[(&str, &str)] = &[
    ("/usr/include/hip/hip_runtime.h", "libamdhip64-dev"),
    ("/usr/lib/cmake/AMDDeviceLibs/AMDDeviceLibsConfig.cmake", "rocm-device-libs"),
    ("/usr/include/thrust/complex.h", "libthrust-dev"),
    ("/usr/include/cub/cub.cuh", "libcub-dev"),
];

/// What the tests of the crates need beside the machine's own compiler.
pub(super) fn test_programs() -> anyhow::Result<()> {
    programs(TEST_PROGRAMS, "the tests also build for other platforms, and under make")?;
    amd_compiler()
}

/// The distribution's compiler for AMD devices.
pub(crate) fn amd_compiler() -> anyhow::Result<()> {
    const WHY: &str = "examples and tests are also built for AMD devices";
    programs(AMD_PROGRAMS, WHY)?;
    let missing: Vec<&str> = AMD_FILES.iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { system_packages(&missing, WHY) }
}

/// A directory with the distribution's run time for AMD devices by the name that extensions for ROCm 7 ask for.
pub(crate) fn amd_run_time(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so";
    let dir = environments(workspace).join("amd-run-time");
    let link = dir.join("libamdhip64.so.7");
    let _lock = lock(workspace)?;
    std::fs::create_dir_all(&dir)?;
    if !link.is_symlink() {
        std::os::unix::fs::symlink(LIBRARY, &link).with_context(|| format!("cannot make `{}`", link.display()))?;
    }
    Ok(dir)
}

/// The second compiler family, older compilers and other linkers, for the full run.
pub(crate) fn other_compilers() -> anyhow::Result<()> {
    programs(OTHER_COMPILERS, "the full run also builds with other compilers and linkers")
}

/// Installs the packages of those programs that are not there.
fn programs(wanted: &[(&str, &str)], why: &str) -> anyhow::Result<()> {
    let is_missing = |program: &str| Command::new(program).arg("--version").output().is_err();
    let missing: Vec<&str> = wanted.iter().filter(|(program, _)| is_missing(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { system_packages(&missing, why) }
}

/// Installs packages of the system where that is possible, else says in one line what to install.
pub(super) fn system_packages(packages: &[&str], why: &str) -> anyhow::Result<()> {
    let listed = packages.iter().map(|package| format!("`{package}`")).collect::<Vec<_>>().join(", ");
    let is_root = process::output(Command::new("id").arg("-u")).is_ok_and(|text| text.trim() == "0");
    if !is_root || Command::new("apt-get").arg("--version").output().is_err() {
        bail!("{why}: install {listed}");
    }
    println!("installing {listed}: {why}");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["--quiet", "--quiet"]).args(arguments);
        quiet(&mut command)
    };
    apt(&["update"]).with_context(|| format!("{why}: install {listed}"))?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat()).with_context(|| format!("{why}: install {listed}"))
}
