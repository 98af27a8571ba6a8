//! `bench cuda-cold`: the example `relu` with `torch/all.h`, from nothing, beside CMake and ninja with the same nvcc and flags.
//!
//! The other way is the best that CMake can do here: a project of one language, whose `.cu` file is compiled by a command of its own, so that
//! configuring it costs no trial of the CUDA compiler and no search for torch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use kiln_object::fatbin;
use serde_json::Value;
use wait4::Wait4 as _;

use super::copy_tree;
use crate::kiln::Kiln;
use crate::process;
use crate::setup;
use crate::workspace::Workspace;

/// What one variant is built for.
const TORCH: &str = "2.15";
const CUDA: &str = "13.2";
/// All that a component without a list of its own is compiled for, as `docs/backends.md` says.
const DEFAULT: &str = "7.5,8.0,8.6,8.7,8.9,9.0,10.0,11.0,12.0,12.1+PTX";
/// Each, with CMake's `--threads=2`, as many.
const JOBS: &str = "2";

/// Times both, `runs` times in turns.
pub(super) fn run(workspace: &Workspace, capabilities: Option<&str>, runs: u32) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let project = scratch.path().join("relu");
    copy_tree(&workspace.root.join("kernels-examples/relu"), &project)?;
    for file in ["torch-ext/torch_binding.cpp", "relu_cuda/relu_cuda.cu"] {
        let path = project.join(file);
        fs::write(&path, format!("#include <torch/all.h>\n{}", fs::read_to_string(&path)?))?;
    }
    let kiln = Kiln::build_optimized(workspace)?;
    let tools = setup::cmake(workspace)?;
    println!("relu with torch/all.h, torch {TORCH}, CUDA {CUDA}, {}", capabilities.unwrap_or(DEFAULT));
    // What both share is fetched and read once before anything is timed, for one capability.
    let places = Places::ask(&kiln, &project)?;
    fs::write(project.join("CMakeLists.txt"), cmake_lists(&places, capabilities.unwrap_or(DEFAULT)))?;
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for round in 0..runs {
        let mut both: [&mut dyn FnMut() -> anyhow::Result<()>; 2] = [
            &mut || {
                ours.push(timed("kiln build", &project, [".kiln", "build"], &[build(&kiln, &project, capabilities)])?);
                Ok(())
            },
            &mut || {
                others.push(timed("cmake, ninja", &project, ["ninja", "ninja"], &ninja(&tools, &project))?);
                Ok(())
            },
        ];
        if round % 2 == 1 {
            both.reverse();
        }
        both.iter_mut().try_for_each(|side| side())?;
    }
    same_code(&project)?;
    for (name, all) in [("kiln build", &ours), ("cmake, ninja", &others)] {
        for took in all {
            let share = took.wall.as_secs_f64() / (took.cpu.as_secs_f64() / cores());
            println!(
                "{:>9.1} s wall {:>9.1} s cpu   wall {share:.2} of cpu over cores   {name}",
                took.wall.as_secs_f64(),
                took.cpu.as_secs_f64()
            );
        }
    }
    for (ours, others) in ours.iter().zip(&others) {
        let ratio = |of: fn(&Took) -> Duration| of(ours).as_secs_f64() / of(others).as_secs_f64();
        println!("{:>9.3} wall, {:.3} cpu of the other way", ratio(|took| took.wall), ratio(|took| took.cpu));
    }
    Ok(())
}

/// Sees that both ways have made code for the same devices: else they were no two ways to one thing.
fn same_code(project: &Path) -> anyhow::Result<()> {
    let variants = fs::read_dir(project.join("build"))?.collect::<Result<Vec<_>, _>>()?;
    let files = variants.iter().filter_map(|variant| fs::read_dir(variant.path()).ok()).flatten().collect::<Result<Vec<_>, _>>()?;
    let extension = files.iter().map(fs::DirEntry::path).find(|path| path.extension().is_some_and(|end| end == "so"));
    let code = |path: &Path| -> anyhow::Result<Vec<String>> {
        let fatbins = fatbin::of_elf(&fs::read(path)?)?;
        let mut code: Vec<String> = fatbins.iter().flat_map(|fatbin| &fatbin.images).map(ToString::to_string).collect();
        code.sort();
        Ok(code)
    };
    let (ours, others) = (code(&extension.context("no extension was built")?)?, code(&project.join("ninja/librelu.so"))?);
    ensure!(!ours.is_empty() && ours == others, "the code is not the same: {} and {}", ours.join(", "), others.join(", "));
    Ok(())
}

/// What a run took, all of its processes together.
struct Took {
    wall: Duration,
    cpu: Duration,
}

fn timed(name: &str, project: &Path, made: [&str; 2], commands: &[Command]) -> anyhow::Result<Took> {
    for dir in made.map(|dir| project.join(dir)).iter().filter(|dir| dir.exists()) {
        fs::remove_dir_all(dir)?;
    }
    let start = Instant::now();
    let mut cpu = Duration::ZERO;
    for command in commands {
        let mut again = Command::new(command.get_program());
        again.args(command.get_args()).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let log = project.join("log");
        let file = fs::File::create(&log)?;
        let child = again.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
        let used = child.wait4()?;
        if !used.status.success() {
            bail!("`{name}` failed:\n{}", fs::read_to_string(&log).unwrap_or_default());
        }
        cpu += used.rusage.utime + used.rusage.stime;
    }
    Ok(Took { wall: start.elapsed(), cpu })
}

fn cores() -> f64 {
    let jobs: u32 = JOBS.parse().unwrap_or(1);
    f64::from(jobs.min(std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))))
}

fn build(kiln: &Kiln, project: &Path, capabilities: Option<&str>) -> Command {
    let mut command = kiln.command();
    command.arg("build").arg(project).args(["--backend", "cuda", "--torch", TORCH, "--cuda", CUDA, "--no-cache", "-j", JOBS]);
    if let Some(capabilities) = capabilities {
        command.args(["--arch", capabilities]);
    }
    command
}

fn ninja(tools: &Path, project: &Path) -> [Command; 2] {
    let dir = project.join("ninja");
    let mut configure = Command::new(tools.join("cmake"));
    configure.args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]).arg(format!("-DCMAKE_MAKE_PROGRAM={}", tools.join("ninja").display()));
    configure.arg("-S").arg(project).arg("-B").arg(&dir);
    let mut ninja = Command::new(tools.join("ninja"));
    ninja.args(["-j", JOBS, "-C"]).arg(&dir);
    [configure, ninja]
}

/// Where Kiln keeps what both compile with.
struct Places {
    nvcc: PathBuf,
    toolkit: PathBuf,
    torch: PathBuf,
}

impl Places {
    /// By the commands of a build.
    fn ask(kiln: &Kiln, project: &Path) -> anyhow::Result<Self> {
        let said = process::output(build(kiln, project, Some("8.0")).args(["--message-format", "json"]))?;
        let mut words = Vec::new();
        for line in said.lines() {
            let message: Value = serde_json::from_str(line)?;
            if message["reason"] == "step-started" && message["label"] == "relu_cuda/relu_cuda.cu (sm_80)" {
                words.extend(message["command"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            }
        }
        let cicc = words.iter().find(|word| word.ends_with("/cicc")).context("no capability was compiled by itself")?;
        let toolkit = Path::new(cicc).ancestors().find(|dir| dir.join("bin/nvcc").is_file()).context("no nvcc above cicc")?.to_owned();
        let torch = words.iter().find_map(|word| word.strip_suffix("/torch/csrc/api/include")).context("no torch among the arguments")?;
        ensure!(Path::new(torch).join("torch/all.h").exists() || Path::new(torch).join("torch/csrc").exists(), "`{torch}` is no torch");
        Ok(Self { nvcc: toolkit.join("bin/nvcc"), toolkit, torch: PathBuf::from(torch) })
    }
}

/// What the other way's binding includes: Kiln's own names a function that Kiln compiles into each extension.
const REGISTRATION: &str = r#"#pragma once
#define CONCAT_(A, B) A##B
#define CONCAT(A, B) CONCAT_(A, B)
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)
#define REGISTER_EXTENSION(NAME) extern "C" __attribute__((visibility("default"))) void *CONCAT(PyInit_, NAME)() { return nullptr; }
"#;

/// The project for CMake: the same sources, compilers and flags.
fn cmake_lists(places: &Places, capabilities: &str) -> String {
    let gencode = capabilities.split(',').map(|capability| {
        let (number, ptx) = capability.strip_suffix("+PTX").map_or((capability, false), |number| (number, true));
        let number = number.replace('.', "");
        let code = if ptx { format!("[sm_{number},compute_{number}]") } else { format!("sm_{number}") };
        format!("-gencode=arch=compute_{number},code={code}")
    });
    let gencode = gencode.collect::<Vec<_>>().join(" ");
    let Places { nvcc, toolkit, torch } = places;
    let defines = "CUDA_KERNEL USE_CUDA=1 USE_DISTRIBUTED USE_C10D_GLOO USE_RPC USE_TENSORPIPE USE_NVSHMEM USE_C10D_NCCL Py_LIMITED_API=3 \
                   TORCH_EXTENSION_NAME=_relu_cuda_bench ENABLE_FP8";
    let suppressed = [
        "cc_clobber_ignored",
        "field_without_dll_interface",
        "base_class_has_different_dll_interface",
        "dll_interface_conflict_none_assumed",
        "dll_interface_conflict_dllexport_assumed",
        "bad_friend_decl",
    ];
    let suppressed = suppressed.map(|name| format!("-Xcudafe --diag_suppress={name}")).join(" ");
    let of_device = defines.split(' ').map(|define| format!("-D{define}")).collect::<Vec<_>>().join(" ");
    format!(
        r#"cmake_minimum_required(VERSION 3.26)
project(relu LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
file(WRITE "${{CMAKE_BINARY_DIR}}/registration.h" [[{REGISTRATION}]])
set(RELU_DEFINES {defines})
set(RELU_OBJECT "${{CMAKE_BINARY_DIR}}/relu_cuda.o")
add_custom_command(OUTPUT "${{RELU_OBJECT}}"
  COMMAND "{nvcc}" -ccbin "${{CMAKE_CXX_COMPILER}}" -cudart shared -O3 -DNDEBUG -std=c++20 --threads=2
    -Xcompiler -fPIC -Xcompiler -fvisibility=hidden -Xcompiler -fno-gnu-unique
    -DONNX_NAMESPACE=onnx_c2 {suppressed} --expt-relaxed-constexpr --expt-extended-lambda
    {of_device} "{gencode_flags}"
    -I"${{CMAKE_SOURCE_DIR}}/torch-ext" -I"${{CMAKE_SOURCE_DIR}}/relu_common" -I"${{CMAKE_BINARY_DIR}}"
    -isystem "{torch}" -isystem "{torch}/torch/csrc/api/include"
    -MD -MF "${{RELU_OBJECT}}.d" -c "${{CMAKE_SOURCE_DIR}}/relu_cuda/relu_cuda.cu" -o "${{RELU_OBJECT}}"
  DEPENDS relu_cuda/relu_cuda.cu DEPFILE "${{RELU_OBJECT}}.d" VERBATIM)
add_library(relu MODULE torch-ext/torch_binding.cpp "${{RELU_OBJECT}}")
target_compile_definitions(relu PRIVATE ${{RELU_DEFINES}})
target_include_directories(relu PRIVATE torch-ext relu_common "${{CMAKE_BINARY_DIR}}")
target_include_directories(relu SYSTEM PRIVATE "{torch}" "{torch}/torch/csrc/api/include" "{toolkit}/include" "{toolkit}/include/cccl")
"#,
        nvcc = nvcc.display(),
        toolkit = toolkit.display(),
        torch = torch.display(),
        gencode_flags = gencode.replace(' ', "\" \""),
    )
}
