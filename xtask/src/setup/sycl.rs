//! `sycl-shim`: what tests of the xpu backend compile and run kernels with, on the processor.
//!
//! No package has Intel's compiler. The SYCL runtime of its wheels has the front end as a library, and an OpenCL device for the processor
//! comes with it; two scripts make of them something that can be called like `icpx`. Intel's terms come with the wheels; nothing of them
//! is a part of Kiln.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{digest_of, environment_with, environments, lock, piece, quiet};
use crate::workspace::Workspace;

/// Intel's SYCL runtime, whose library is `libsycl.so.8` as in oneAPI 2025, and its OpenCL device for the processor.
const PACKAGES: &[&str] = &["intel-sycl-rt==2025.3.3", "intel-opencl-rt==2025.3.3"];
/// The release that the directory says it is.
const RELEASE: &str = "2025.3";
/// The scripts, and the program that compiles device code.
const SOURCES: &str = "crates/kiln/tests/support/icpx";

/// What compiles kernels for XPU, and runs them on the processor.
pub(crate) struct SyclShim {
    root: PathBuf,
    lib: PathBuf,
    no_vendors: PathBuf,
}

impl SyclShim {
    /// Lets a build find the compiler.
    pub(crate) fn compile(&self, command: &mut Command) {
        command.env("ONEAPI_ROOT", &self.root);
    }

    /// Lets a kernel find its runtime, and no device but the processor.
    pub(crate) fn run(&self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", &self.lib).env("OCL_ICD_FILENAMES", self.lib.join("libintelocl.so"));
        command.env("OCL_ICD_VENDORS", &self.no_vendors).env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu");
    }
}

/// Sets up both.
pub(crate) fn sycl(workspace: &Workspace) -> anyhow::Result<SyclShim> {
    let runtime = environment_with(workspace, "sycl", PACKAGES, "a SYCL compiler for tests of the xpu backend", |_| Ok(()))?;
    let _lock = lock(workspace)?;
    let dir = environments(workspace).join("sycl-shim");
    let sources = workspace.root.join(SOURCES);
    let recipe = format!("{PACKAGES:?}\n{RELEASE}\n{}\n{}", runtime.display(), digest_of(&sources)?);
    piece(&dir, &recipe, "`sycl-shim`, which stands in for icpx in tests", || make(&dir, &sources, &runtime))?;
    Ok(SyclShim { lib: runtime.join("lib"), no_vendors: dir.join("no-vendors"), root: dir })
}

fn make(dir: &Path, sources: &Path, runtime: &Path) -> anyhow::Result<()> {
    let kit = dir.join("compiler").join(RELEASE);
    let (bin, compiler) = (kit.join("bin"), kit.join("bin/compiler"));
    std::fs::create_dir_all(&compiler)?;
    std::fs::create_dir(dir.join("no-vendors"))?;
    for name in ["lib", "include"] {
        symlink(runtime.join(name), kit.join(name))?;
    }
    for name in ["options.py", "sycl_shim.py"] {
        std::fs::copy(sources.join(name), bin.join(name)).with_context(|| format!("cannot copy `{name}`"))?;
    }
    // The name of the compiler's file counts, and what is in it: the scripts beside it are a part of it.
    let start = format!("#!{}\n# sycl-shim {}\nimport sycl_shim\n", runtime.join("bin/python").display(), digest_of(sources)?);
    for name in ["icpx", "icx"] {
        std::fs::write(bin.join(name), &start)?;
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755))?;
    }
    let mut build = Command::new("c++");
    build.args(["-std=c++17", "-O1", "-w", "-isystem"]).arg(runtime.join("include")).arg(sources.join("device.cpp"));
    build.arg("-o").arg(compiler.join("sycl-device")).arg("-L").arg(runtime.join("lib")).arg("-lsycl");
    quiet(&mut build)
}
