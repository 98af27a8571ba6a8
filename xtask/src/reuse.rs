//! `kernels-examples/rust-reuse`: a Rust program with kernels in it, built as anybody's would be.
//!
//! It is a workspace of its own, so that cargo settles features for it alone: what the crates are without their network code is seen
//! here and nowhere else.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use kiln_object::{archive, fatbin};

use crate::process;
use crate::stages::Counts;
use crate::workspace::{self, Workspace};

/// The project, below the root.
pub(crate) const PROJECT: &str = "kernels-examples/rust-reuse";
/// What fetches, and what makes it safe: none of it is compiled where toolkits are the machine's.
const NETWORK: [&str; 5] = ["ureq", "rustls", "ring", "rustls-native-certs", "webpki-roots"];
/// What the build script asks for, as it is called in the objects.
const CODE: [&str; 3] = ["compute_90", "sm_80", "sm_90"];

/// Builds the program in both ways, runs it, and looks into its libraries.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let dir = workspace.root.join(PROJECT);
    let target = workspace.target.join("rust-reuse");
    process::aloud(cargo(&dir).args(["fmt", "--check"]))?.check()?;
    network_code(&dir)?;
    // The toolkit out of wheels.
    let cargo_build = || {
        let mut command = cargo(&dir);
        command.args(["build", "--locked", "--features", "wheels", "--target-dir"]).arg(&target);
        command
    };
    process::aloud(&mut cargo_build())?.check()?;
    let toolkit = prove(&target)?;
    let again = process::aloud(&mut cargo_build())?.check()?;
    if again.output.contains("Compiling") {
        bail!("a build with nothing to do compiled something");
    }
    // The same toolkit as one of the machine, without any network code.
    let mut of_machine = cargo(&dir);
    of_machine.args(["build", "--locked", "--target-dir"]).arg(&target).env("CUDA_HOME", &toolkit);
    process::aloud(&mut of_machine)?.check()?;
    prove(&target)?;
    Ok(Counts { passed: 4, failed: 0 })
}

/// Network code is compiled with the feature, and not without it.
fn network_code(dir: &Path) -> anyhow::Result<()> {
    let tree = |features: &[&str]| {
        let mut command = cargo(dir);
        command.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]).args(features);
        process::output(&mut command)
    };
    let names = |tree: &str| -> Vec<&str> {
        NETWORK.into_iter().filter(|name| tree.lines().any(|line| line.split(' ').next() == Some(name))).collect()
    };
    let (without, with) = (tree(&[])?, tree(&["--features", "wheels"])?);
    if !names(&without).is_empty() {
        bail!("without `wheels`, {} would be compiled", names(&without).join(", "));
    }
    if !names(&with).contains(&"ureq") {
        bail!("with `wheels` nothing fetches: is this list behind? {}", NETWORK.join(", "));
    }
    Ok(())
}

/// Runs what was built, and reads the code in its library for devices. Gives the directory of the toolkit that it was built with.
pub(crate) fn prove(target: &Path) -> anyhow::Result<PathBuf> {
    let printed = process::output(&mut Command::new(target.join("debug/rust-reuse")))?;
    print!("{printed}");
    if !printed.starts_with("cpu: [12.0, 24.0, 36.0]\ncuda: ") {
        bail!("the program printed something else");
    }
    let out = newest(&target.join("debug/build"), "rust-reuse-", "out/libsaxpy_cuda.a")?;
    let library = std::fs::read(out.join("out/libsaxpy_cuda.a"))?;
    let mut code = Vec::new();
    for member in archive::members(&library)? {
        let fatbins = fatbin::of_elf(member.data)?;
        code.extend(fatbins.iter().flat_map(|fatbin| &fatbin.images).map(ToString::to_string));
    }
    code.sort();
    println!("in `libsaxpy_cuda.a`: {}", code.join(", "));
    if code != CODE {
        bail!("that is not {}", CODE.join(", "));
    }
    let lines = std::fs::read_to_string(out.join("output"))?;
    let run_path = lines.lines().find_map(|line| line.strip_prefix("cargo:rustc-link-arg-bins=-Wl,-rpath,"));
    let run_path = PathBuf::from(run_path.context("the build script names no run path")?);
    Ok(run_path.parent().unwrap_or(&run_path).to_owned())
}

/// The directory of a build script that ran last, of those whose name begins with `prefix` and that made `file`.
fn newest(dir: &Path, prefix: &str, file: &str) -> anyhow::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read `{}`", dir.display()))? {
        let path = entry?.path();
        if workspace::file_name(&path).starts_with(prefix) && path.join(file).is_file() {
            found.push((std::fs::metadata(path.join("output"))?.modified()?, path));
        }
    }
    found.sort();
    Ok(found.pop().with_context(|| format!("no build script made `{file}`"))?.1)
}

/// Cargo in the project's directory. Nothing of this machine's toolkits is seen there.
fn cargo(dir: &Path) -> Command {
    let mut command = workspace::cargo();
    command.current_dir(dir).env_remove("CUDA_HOME").env_remove("CUDA_PATH").env_remove("CUDACXX");
    command
}
