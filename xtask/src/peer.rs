//! The command lines for XPU beside those of kernel-builder's CMake files, both as a recorder of them has them.
//!
//! No machine of ours has `icpx`, so `recording-icpx` stands in its place for both: what is compared are command lines alone. The newest
//! release of kernel-builder in the crates registry is older than the rules for SYCL that Kiln follows; each difference is named here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol};
use serde_json::Value;

use crate::kiln::Kiln;
use crate::process;
use crate::setup;
use crate::stages::Counts;
use crate::workspace::Workspace;

/// The release of the compiler that kernel-builder's SYCL*TLA knows.
const RELEASE: &str = "2025.3";
/// Options that later releases have: division and square roots as IEEE 754 has them.
const LATER: [&str; 2] = ["-foffload-fp32-prec-div", "-foffload-fp32-prec-sqrt"];
/// What `recording-icpx` says that its translator is told by default. Without it, the option would take those away.
const DEFAULT_EXTENSIONS: &str = "+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes,";

/// Compares the lines of a kernel without a library of headers, and of one on SYCL*TLA. Counts lines.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let kiln = Kiln::build(workspace)?;
    let scratch = tempfile::tempdir()?;
    let kit = Kit::make(workspace, scratch.path())?;
    let mut counts = Counts { passed: 0, failed: 0 };
    for sycl_tla in [false, true] {
        let project = scratch.path().join(format!("tla-{sycl_tla}"));
        write_project(&project, sycl_tla)?;
        let theirs = kit.theirs(workspace, &project, sycl_tla)?;
        let ours = kit.ours(&kiln, &project)?;
        for (what, ours, theirs) in
            [("compile", later_left_out(&ours.compile), theirs.compile), ("link", ours_as_theirs(&ours.link), theirs_as_ours(&theirs.link))]
        {
            let equal = ours == theirs;
            if !equal {
                println!("the {what} lines differ:\n  kiln           {ours:?}\n  kernel-builder {theirs:?}");
            }
            counts.passed += usize::from(equal);
            counts.failed += usize::from(!equal);
        }
    }
    Ok(counts)
}

fn later_left_out(line: &[String]) -> Vec<String> {
    line.iter().filter(|arg| !LATER.contains(&arg.as_str())).cloned().collect()
}

/// A link of ours without what later releases have: the compiler of a target is told by its name, each translator too, and the compiler's
/// own extensions of SPIR-V stay.
fn ours_as_theirs(line: &[String]) -> Vec<String> {
    let older = |arg: String| match arg.split_once('=') {
        Some(("-Xsycl-target-backend", _)) => "-Xs".to_owned(),
        Some(("-Xspirv-translator", _)) => "-Xspirv-translator".to_owned(),
        _ => arg.replace(DEFAULT_EXTENSIONS, ""),
    };
    later_left_out(line).into_iter().map(older).collect()
}

/// A link of theirs without a blank that means nothing, and without options for a target that is not compiled for.
fn theirs_as_ours(line: &[String]) -> Vec<String> {
    let mut line: Vec<String> = line.iter().map(|arg| arg.replace("' -cl", "'-cl")).collect();
    if line.iter().any(|arg| arg == "-fsycl-targets=spir64")
        && let Some(at) = line.iter().position(|arg| arg == "-Xs")
    {
        line.drain(at..(at + 2).min(line.len()));
    }
    line
}

/// The SYCL part of the lines of a build.
struct Lines {
    compile: Vec<String>,
    link: Vec<String>,
}

/// A toolkit whose compilers are recorders.
struct Kit {
    root: PathBuf,
    dir: PathBuf,
    tla: PathBuf,
}

impl Kit {
    fn make(workspace: &Workspace, scratch: &Path) -> anyhow::Result<Self> {
        let root = scratch.join("oneapi");
        let dir = root.join("compiler").join(RELEASE);
        for part in ["bin", "include/sycl", "lib"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let sources = workspace.root.join("crates/kiln/tests/support/icpx");
        for name in ["options.py", "recording_icpx.py"] {
            fs::copy(sources.join(name), dir.join("bin").join(name))?;
        }
        let python = process::output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
        for name in ["icpx", "icx", "ocloc"] {
            let program = dir.join("bin").join(name);
            fs::write(&program, format!("#!{}\nimport recording_icpx\n", python.trim()))?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        }
        fs::write(dir.join("include/sycl/sycl.hpp"), "#pragma once\n")?;
        let register = Symbol::plain("__sycl_register_lib", SymbolKind::Function);
        fs::write(dir.join("lib/libsycl.so"), Stub::new("libsycl.so.8", Machine::X86_64, vec![register]).write()?)?;
        let tla = scratch.join("tla");
        fs::create_dir_all(tla.join("include/cutlass"))?;
        fs::create_dir_all(tla.join("tools/util/include"))?;
        let version = "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n";
        fs::write(tla.join("include/cutlass/version.h"), version)?;
        let places = [("CUTLASS_INCLUDE_DIR", "include"), ("CUTLASS_TOOLS_UTIL_INCLUDE_DIR", "tools/util/include")];
        let set = places.map(|(name, dir)| format!("set({name} \"${{CMAKE_CURRENT_SOURCE_DIR}}/{dir}\" CACHE PATH \"\")\n"));
        fs::write(tla.join("CMakeLists.txt"), set.concat())?;
        Ok(Self { root, dir, tla })
    }

    /// What CMake runs of the files that kernel-builder writes. The link itself fails, for want of oneDNN.
    fn theirs(&self, workspace: &Workspace, project: &Path, sycl_tla: bool) -> anyhow::Result<Lines> {
        let (generator, tools) = (setup::kernel_builder(workspace)?, setup::cmake(workspace)?);
        setup::tvm_ffi_pythons(workspace)?;
        let environments = setup::environments(workspace);
        let (python, runtime) = (environments.join("base/bin/python"), environments.join("tvm-ffi-oldest"));
        let out = project.with_extension("cmake");
        write_project(&out, sycl_tla)?;
        process::output(Command::new(generator).arg("create-pyproject").arg(project).arg(&out).args(["--force", "--unique-id", "peer"]))?;
        let path = std::env::join_paths(
            [self.dir.join("bin"), tools].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )?;
        let run = |program: &str| {
            let mut command = Command::new(program);
            command.current_dir(&out).env("PATH", &path).env("PYTHONPATH", &runtime).env("SYCL_TLA_SRC_DIR", &self.tla);
            command
        };
        process::output(
            run("cmake").args(["-G", "Ninja", "-S", ".", "-B", "build"]).arg(format!("-DPython_EXECUTABLE={}", python.display())),
        )?;
        self.forget()?;
        let _fails = run("ninja").args(["-C", "build", "-k", "0"]).output()?;
        self.lines()
    }

    fn ours(&self, kiln: &Kiln, project: &Path) -> anyhow::Result<Lines> {
        // It has the file of the edition before.
        process::output(kiln.command().arg("update-build").arg(project))?;
        self.forget()?;
        let mut build = kiln.command();
        build.arg("build").arg(project).args(["--backend", "xpu"]).env("ONEAPI_ROOT", &self.root).env("SYCL_TLA_SRC_DIR", &self.tla);
        process::output(&mut build)?;
        self.lines()
    }

    fn log(&self) -> PathBuf {
        self.dir.join("command-lines-only.log")
    }

    fn forget(&self) -> anyhow::Result<()> {
        if self.log().exists() { Ok(fs::remove_file(self.log())?) } else { Ok(()) }
    }

    /// What was recorded of the kernel's unit and of the link.
    fn lines(&self) -> anyhow::Result<Lines> {
        let text = fs::read_to_string(self.log()).context("no compiler was started")?;
        let mut lines = Lines { compile: Vec::new(), link: Vec::new() };
        for line in text.lines() {
            let line: Value = serde_json::from_str(line)?;
            let argv = line["argv"].as_array().context("a line without arguments")?.iter();
            let argv: Vec<String> = argv.filter_map(|arg| Some(arg.as_str()?.to_owned())).collect();
            let has = |wanted: &str| argv.iter().any(|arg| arg == wanted);
            let of_sycl = argv.iter().skip_while(|arg| *arg != "-fsycl");
            if has("-c") && argv.iter().any(|arg| arg.ends_with("k.cpp")) {
                let end = argv.iter().position(|arg| arg.starts_with("-fsycl-targets=")).unwrap_or_default();
                lines.compile = argv.iter().take(end + 1).skip_while(|arg| *arg != "-fsycl").cloned().collect();
            } else if has("-shared") {
                lines.link = of_sycl.take_while(|arg| !arg.starts_with("-Wl,") && *arg != "-o").cloned().collect();
            }
        }
        ensure!(!lines.compile.is_empty() && !lines.link.is_empty(), "the kernel was not compiled and linked:\n{text}");
        Ok(lines)
    }
}

/// Writes a project that both read.
fn write_project(dir: &Path, sycl_tla: bool) -> anyhow::Result<()> {
    fs::create_dir_all(dir.join("tvm-ffi-ext/peer"))?;
    let depends = if sycl_tla { "\"sycl_tla\"" } else { "" };
    let text = format!(
        "[general]\nname = \"peer\"\nversion = 1\nlicense = \"Apache-2.0\"\nbackends = [\"xpu\"]\n\n\
         [tvm-ffi]\nsrc = [\"tvm-ffi-ext/binding.cpp\"]\n\n[kernel.k]\nbackend = \"xpu\"\ndepends = [{depends}]\nsrc = [\"k.cpp\"]\n"
    );
    fs::write(dir.join("build.toml"), text)?;
    fs::write(dir.join("tvm-ffi-ext/peer/__init__.py"), "")?;
    fs::write(dir.join("tvm-ffi-ext/binding.cpp"), "int k(int);\nextern \"C\" int use_k() { return k(1); }\n")?;
    Ok(fs::write(dir.join("k.cpp"), "int k(int x) { return x; }\n")?)
}
