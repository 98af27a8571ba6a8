//! Extensions for AMD devices, made by the machine's Clang with Debian's HIP: what is inside, what converting does, and what is said where
//! something lacks. No device is needed for any of it, and nothing runs on one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use kiln_object::{elf, offload};
use support::project::{ProjectBuilder, kept, write};
use support::tree::only_extension as extension;
use support::{Run, Sandbox, kiln_program, shared_cache, text, tree};

/// Debian's HIP stands in for the ROCm of the variant.
const ONLY: [&str; 6] = ["--backend", "rocm", "--rocm-from", "/usr", "--torch", "2.13"];
/// Of the first architecture Debian's device libraries know, of the others they do not.
const ARCHS: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];

/// A kernel in an anonymous namespace and a template, with how to keep them.
const KERNEL: &str = "#include <hip/hip_runtime.h>\n\
    namespace { __global__ void hidden(int *p) { *p = 2; } }\n\
    template <typename T> __global__ void typed(T *p) { *p = sinf(*p); }\n\
    void tiny_go(int *p, float *q) { hidden<<<1, 1, 0, nullptr>>>(p); typed<float><<<1, 1, 0, nullptr>>>(q); }\n";

fn sandbox() -> Sandbox {
    Sandbox::new()
}

/// An example whose kernels for CUDA are those for AMD devices too.
fn example_called(name: &str, dir: &Path) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples");
    tree::copy_sources(&examples.join(name), dir);
    // Torch's converter is fetched once, with the caller's way to the index.
    static FETCHED: OnceLock<()> = OnceLock::new();
    FETCHED.get_or_init(|| {
        let scratch = tempfile::tempdir().unwrap();
        tree::copy_sources(&examples.join("rms-norm"), scratch.path());
        let mut command = Command::new(kiln_program());
        command.arg("build").args(ONLY).args(["--arch", "gfx90a"]).current_dir(scratch.path()).env("KILN_CACHE_DIR", shared_cache());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    });
    dir.to_owned()
}

/// The one within the stable ABI.
fn example(dir: &Path) -> PathBuf {
    example_called("rms-norm", dir)
}

/// A project whose only unit with device code is [`KERNEL`], which needs no torch.
fn project(keys: &str) -> ProjectBuilder {
    ProjectBuilder::new()
        .for_backend("rocm")
        .torch("stable-abi = { rocm = \"2.11\" }")
        .file("gpu/k.hip", &format!("{KERNEL}{}", kept("(tiny_go(nullptr, nullptr), 0)")))
        .component("rocm", "k", &[], &["gpu/k.hip"], keys)
}

fn build(sandbox: &Sandbox, dir: &Path, more: &[&str]) -> Run {
    sandbox.build(dir, &[&ONLY[..], more].concat())
}

/// What a build that must fail says.
fn fails(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> String {
    let run = sandbox.run(dir, &[&["build"][..], args].concat());
    assert_ne!(run.code, Some(0), "{}", run.stderr);
    run.stderr
}

/// The targets that an extension has code for, by its bundles and by the code itself, and the kernels that all have.
fn code(extension: &Path) -> (Vec<String>, Vec<String>) {
    let bundles = offload::of_elf(&fs::read(extension).unwrap()).unwrap();
    assert_eq!(bundles.len(), 1, "one unit has device code");
    let kernels = bundles[0].entries[0].code.kernels.clone();
    for entry in &bundles[0].entries {
        assert_eq!((&entry.target, &kernels), (&entry.code.target, &entry.code.kernels));
    }
    (bundles[0].entries.iter().map(|entry| entry.target.clone()).collect(), kernels)
}

fn archs(extension: &Path) -> Vec<String> {
    let metadata = fs::read_to_string(extension.with_file_name("metadata.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    metadata["backend"]["archs"].as_array().unwrap().iter().map(|arch| arch.as_str().unwrap().to_owned()).collect()
}

/// The names of the programs that compiled device code, each once, by the build's record.
fn programs(dir: &Path) -> Vec<String> {
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let steps = record["variants"].as_object().unwrap().values().flat_map(|variant| variant["steps"].as_array().unwrap());
    let device = steps.filter(|step| step["args"].as_array().unwrap().iter().any(|arg| arg == "hip"));
    let mut names: Vec<String> = device.map(|step| step["program"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect();
    names.dedup();
    names
}

/// The labels of the steps that a build ran, in order, by their verb.
fn ran(run: &Run, verb: &str) -> Vec<String> {
    let events = run.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let started = events.filter(|event| event["reason"] == "step-started" && event["verb"] == verb);
    started.map(|event| event["label"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_kernel_for_cuda_becomes_one_for_amd_devices() {
    let sandbox = sandbox();
    let dir = example(&sandbox.path("rms-norm"));
    let listed = ARCHS.join(",");
    let only = ["--arch", listed.as_str()];
    let before = tree::files(&dir.join("rms_norm_cuda"));
    let run = build(&sandbox, &dir, &only);
    assert!(run.stdout.contains("ROCm 5.2.21153 stands in for 7.1"), "{}", run.stdout);
    let extension = extension(&dir);
    assert!(extension.parent().unwrap().ends_with("torch-stable-abi211-rocm71-x86_64-linux"), "{}", extension.display());

    let (targets, kernels) = code(&extension);
    assert_eq!((targets, archs(&extension)), (ARCHS.map(str::to_owned).to_vec(), ARCHS.map(str::to_owned).to_vec()));
    assert_eq!(kernels.len(), 9, "three kernels for three types: {kernels:?}");
    let needed = elf::dynamic(&fs::read(&extension).unwrap()).unwrap().needed;
    for library in ["libamdhip64.so.7", "libtorch_hip.so", "libtorch_cpu.so"] {
        assert!(needed.iter().any(|needed| needed == library), "{library}: {needed:?}");
    }
    let check = sandbox.run(&dir, &["check"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);

    // Nothing is written beside the sources, and a conversion is made once.
    assert_eq!(tree::files(&dir.join("rms_norm_cuda")), before);
    assert!(!dir.join("rms_norm_hip").exists());
    let again = build(&sandbox, &dir, &only);
    assert_eq!([ran(&again, "Converting"), ran(&again, "Compiling"), ran(&again, "Linking")], [const { Vec::<String>::new() }; 3]);

    // An edit is converted again and compiled again.
    let source = dir.join("rms_norm_cuda/rms_norm_cuda.cu");
    let written = fs::read_to_string(&source).unwrap();
    fs::write(&source, written.replace("constexpr int kThreads = 256;", "constexpr int kThreads = 128;")).unwrap();
    let edited = build(&sandbox, &dir, &only);
    assert_eq!(ran(&edited, "Converting"), ["rms_norm_cuda/rms_norm_cuda.cu"]);
    // The binding has the ops id in it, which an edit changes where there is no git.
    let compiled: Vec<String> = ran(&edited, "Compiling").into_iter().filter(|label| label.contains(".cu")).collect();
    assert_eq!(compiled.len(), ARCHS.len() + 1, "all device code, and the host's half: {compiled:?}");
}

#[test]
fn an_authors_own_hip_source_is_taken_as_it_is() {
    let sandbox = sandbox();
    let dir = ProjectBuilder::new()
        .for_backend("rocm")
        .torch("stable-abi = { rocm = \"2.11\" }")
        .file("k_hip/k.hip", &format!("{KERNEL}{}", kept("(tiny_go(nullptr, nullptr), 0)")))
        .file("k_cuda/k.cu", "#error it is not compiled\n")
        .component("rocm", "k", &[], &["k_cuda/k.cu", "k_hip/k.hip"], "rocm-archs = [\"gfx90a\", \"gfx1030\"]")
        .write(&sandbox.path("own"));
    // A plan needs no file of torch's converter, and nothing here is converted.
    let run = build(&sandbox, &dir, &[]);
    assert!(!run.stdout.contains("Converting"), "{}", run.stdout);
    assert_eq!(code(&extension(&dir)).0, ["gfx90a", "gfx1030"]);
    assert_eq!(archs(&extension(&dir)), ["gfx90a", "gfx1030"]);
}

/// A source that includes headers through include directories, one of which includes the other, and a source that has no counterpart.
fn with_headers() -> ProjectBuilder {
    let unit = "#include \"x.cuh\"\n#include <cuda_runtime.h>\n\
        __global__ void k(int *p) { *p = 1; }\nvoid tiny_go(int *p, float *) { k<<<1, 1, 0, stream()>>>(p); }\n";
    ProjectBuilder::new()
        .for_backend("rocm")
        .torch("stable-abi = { rocm = \"2.11\" }")
        .file("gpu_cuda/k.cu", &format!("{unit}{}", kept("(tiny_go(nullptr, nullptr), 0)")))
        .file("a_cuda/x.cuh", "#pragma once\n#include \"../b/y.cuh\"\ninline cudaStream_t stream() { return none; }\n")
        .file("b/y.cuh", "#pragma once\n#include <cuda_runtime.h>\nstatic cudaStream_t none = nullptr;\n")
        .file("b/plain.h", "#pragma once\n")
        .component(
            "rocm",
            "k",
            &[],
            &["gpu_cuda/k.cu", "a_cuda/x.cuh", "b/y.cuh", "b/plain.h"],
            "include = [\"a_cuda\", \"b\"]\nrocm-archs = [\"gfx90a\"]",
        )
}

#[test]
fn headers_are_converted_wherever_they_are_included_from() {
    let sandbox = sandbox();
    example(&sandbox.path("fetched"));
    let dir = with_headers().write(&sandbox.path("headers"));
    let converted = ["gpu_cuda/k.cu"];
    assert_eq!(ran(&build(&sandbox, &dir, &[]), "Converting"), converted);
    assert_eq!(code(&extension(&dir)), (vec!["gfx90a".to_owned()], vec!["_Z1kPi".to_owned()]));
    // A header is converted again when it has changed, and nothing is when a file is only written again.
    let header = dir.join("b/y.cuh");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, &text).unwrap();
    assert_eq!(ran(&build(&sandbox, &dir, &[]), "Converting"), Vec::<String>::new());
    fs::write(&header, format!("{text}static cudaStream_t more = nullptr;\n")).unwrap();
    let edited = build(&sandbox, &dir, &[]);
    assert_eq!(ran(&edited, "Converting"), converted);
    assert!(ran(&edited, "Compiling").iter().any(|label| label == "gpu_cuda/k.cu (gfx90a)"), "{}", edited.stdout);
}

#[test]
fn what_is_converted_can_be_looked_at() {
    let sandbox = sandbox();
    example(&sandbox.path("fetched"));
    let dir = with_headers().write(&sandbox.path("headers"));
    let before = tree::files(&dir);
    let shown = |args: &[&str]| sandbox.run(&dir, &[&["hipify"], args].concat());
    let listed = shown(&["--torch", "2.13"]);
    assert_eq!(
        listed.stdout,
        "[kernel.k]\n  converted  gpu_cuda/k.cu -> gpu_hip/k.hip, 4 new lines\n  converted  a_cuda/x.cuh -> a_hip/x.cuh, 3 new lines\n  \
         converted  b/y.cuh -> b/y_hip.cuh, 3 new lines\n  same       b/plain.h\n",
        "{}",
        listed.stderr
    );
    let diff = shown(&["--torch", "2.13", "--diff"]).stdout;
    for part in ["--- b/y.cuh\n+++ b/y_hip.cuh\n", "-static cudaStream_t none = nullptr;\n", "+static hipStream_t none = nullptr;\n"] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    let mut after = tree::files(&dir);
    after.retain(|name, _| !name.starts_with(".kiln/"));
    assert_eq!(after, before, "the project is as it was");
    // A build takes what was shown.
    let built = build(&sandbox, &dir, &[]);
    assert_eq!(ran(&built, "Converting"), Vec::<String>::new(), "{}", built.stdout);

    let plain = project("").write(&sandbox.path("plain"));
    assert_eq!(sandbox.run(&plain, &["hipify"]).stdout, "[kernel.k]\n  left       gpu/k.hip\n");
    let json: serde_json::Value = serde_json::from_str(&shown(&["--torch", "2.13", "--format", "json"]).stdout).unwrap();
    assert_eq!((&json["sources"][2]["became"], &json["sources"][2]["name"]), (&"converted".into(), &"b/y_hip.cuh".into()));
    assert_eq!(shown(&["--torch", "x"]).code, Some(2));
}

#[test]
fn development_compiles_for_families_and_settings() {
    let sandbox = sandbox();
    let dir = project("").write(&sandbox.path("tiny"));
    let run = build(&sandbox, &dir, &["--arch", "gfx11-generic,gfx90a:xnack+"]);
    assert_eq!(code(&extension(&dir)).0, ["gfx90a:xnack+", "gfx11-generic"], "{}", run.stdout);
    // One target more is one compile more, and the host's half with all code in it.
    let more = build(&sandbox, &dir, &["--arch", "gfx11-generic,gfx90a:xnack+,gfx1030"]);
    assert_eq!(ran(&more, "Compiling"), ["gpu/k.hip (gfx1030)", "gpu/k.hip"]);
}

/// Checks on demand find device code that the metadata promise and the extension lacks.
#[test]
fn code_that_went_is_told_by_checks() {
    let sandbox = sandbox();
    let dir = project("").write(&sandbox.path("tiny"));
    build(&sandbox, &dir, &["--arch", "gfx90a,gfx1030"]);
    let check = || sandbox.run(&dir, &["check", "build", "--only", "metadata-archs"]);
    assert_eq!(check().code, Some(0), "{}", check().stdout);
    let file = extension(&dir);
    let good = fs::read(&file).unwrap();
    let places: Vec<usize> = (0..good.len()).filter(|at| good[*at..].starts_with(b"gfx1030")).collect();
    assert!(!places.is_empty());
    let mut other = good.clone();
    places.iter().for_each(|at| other[*at..*at + 7].copy_from_slice(b"gfx1031"));
    fs::write(&file, other).unwrap();
    let said = check();
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("metadata-archs") && said.stderr.contains("gfx1031"), "{}", said.stderr);
    fs::write(&file, good).unwrap();
    let status = Command::new("objcopy").args(["--remove-section", ".hip_fatbin"]).arg(&file).status().unwrap();
    assert!(status.success());
    let said = check();
    assert!(said.stderr.contains("has no code for"), "{}", said.stderr);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
}

/// What was asked for by name is not left out in silence.
#[test]
fn a_backend_that_is_named_among_others_is_an_error_where_it_cannot_be_built() {
    let sandbox = sandbox();
    let dir = project("").component("cpu", "c", &[], &["c.cpp"], "").file("c.cpp", "int c;\n").write(&sandbox.path("tiny"));
    let text = fs::read_to_string(dir.join("build.toml")).unwrap();
    let text = text.replace("[\"rocm\"]", "[\"cpu\", \"rocm\"]").replace("{ rocm = ", "{ cpu = \"2.11\", rocm = ");
    fs::write(dir.join("build.toml"), text).unwrap();
    let said = fails(&sandbox, &dir, &["--backend", "rocm", "--backend", "cpu"]);
    assert!(said.contains("error[selection]: no variant of backend `rocm` can be built here"), "{said}");
    assert!(
        said.contains("there is no ROCm 7.1") && said.contains("hint: leave rocm out, or build what can be built with `--all`"),
        "{said}"
    );
}

#[test]
fn a_kernel_for_tvm_ffi_needs_the_run_time_of_its_rocm() {
    let sandbox = sandbox();
    let binding = "#include <tvm/ffi/function.h>\nint64_t tiny_go(int64_t);\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(tiny_go, tiny_go);\n";
    let toml = "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"rocm\"]\n\n\
        [tvm-ffi]\nsrc = [\"binding.cpp\"]\n\n\
        [kernel.k]\nbackend = \"rocm\"\ndepends = []\nsrc = [\"gpu/k.hip\"]\nrocm-archs = [\"gfx90a\"]\n";
    let dir = sandbox.path("tvm");
    let unit = format!("{KERNEL}#include <cstdint>\nint64_t tiny_go(int64_t x) {{ tiny_go(nullptr, nullptr); return x; }}\n");
    for (name, content) in [("build.toml", toml), ("binding.cpp", binding), ("gpu/k.hip", &unit), ("tvm-ffi-ext/tiny/__init__.py", "")] {
        write(&dir, name, content);
    }
    sandbox.build(&dir, &["--backend", "rocm", "--rocm-from", "/usr"]);
    let extension = extension(&dir);
    assert!(extension.parent().unwrap().ends_with("tvm-ffi01-rocm71-x86_64-linux"), "{}", extension.display());
    assert_eq!(code(&extension).0, ["gfx90a"]);
    let needed = elf::dynamic(&fs::read(&extension).unwrap()).unwrap().needed;
    assert!(needed.iter().any(|needed| needed == "libamdhip64.so.7"), "{needed:?}");
    assert!(!needed.iter().any(|needed| needed.starts_with("libtorch")), "{needed:?}");
}

/// Torch's headers for HIP are made of those for CUDA. Its libraries for AMD devices are on no index: what an extension needs of them is
/// linked by the names that those for CUDA have.
#[test]
fn units_under_torchs_own_abi_compile() {
    let sandbox = sandbox();
    let dir = example_called("relu", &sandbox.path("relu"));
    let only = ["--arch", "gfx90a,gfx1100"];
    let run = build(&sandbox, &dir, &only);
    assert_eq!(ran(&run, "Converting"), ["headers of torch", "relu_cuda/relu_cuda.cu"]);
    let extension = extension(&dir);
    assert!(extension.parent().unwrap().ends_with("torch213-cxx11-rocm71-x86_64-linux"), "{}", extension.display());
    let (targets, kernels) = code(&extension);
    assert_eq!((targets, kernels.len()), (["gfx90a", "gfx1100"].map(str::to_owned).to_vec(), 8), "two kernels for four types");
    let needed = elf::dynamic(&fs::read(&extension).unwrap()).unwrap().needed;
    for library in ["libamdhip64.so.7", "libc10_hip.so", "libtorch_cpu.so"] {
        assert!(needed.iter().any(|needed| needed == library), "{library}: {needed:?}");
    }
    assert!(!needed.iter().any(|needed| needed.contains("cuda")), "{needed:?}");
    // That is what is said to be proven: without those libraries nobody knows whether it would load.
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let proven = &record["variants"]["torch213-cxx11-rocm71-x86_64-linux"]["proven"];
    assert_eq!(proven["stage"], "compiled", "{proven}");

    // The headers are made once; an edit of the source does not make them again.
    let source = dir.join("relu_cuda/relu_cuda.cu");
    fs::write(&source, fs::read_to_string(&source).unwrap().replace("kThreads = 256", "kThreads = 128")).unwrap();
    assert_eq!(ran(&build(&sandbox, &dir, &only), "Converting"), ["relu_cuda/relu_cuda.cu"]);
}

#[test]
fn torchs_current_stream_is_had_under_either_abi() {
    let sandbox = sandbox();
    example(&sandbox.path("fetched"));
    let unit = "#include <kiln_stream.h>\n__global__ void on_stream(int *p) { *p = 1; }\n\
        void tiny_go(int *p, float *) { on_stream<<<1, 1, 0, kiln::current_stream(0)>>>(p); }\n";
    for abi in ["stable-abi = { rocm = \"2.11\" }", ""] {
        let project = ProjectBuilder::new().for_backend("rocm").torch(abi);
        let project = project.file("gpu/k.cu", &format!("{unit}{}", kept("(tiny_go(nullptr, nullptr), 0)")));
        let dir = project.component("rocm", "k", &["torch"], &["gpu/k.cu"], "rocm-archs = [\"gfx90a\"]").write(&sandbox.path("stream"));
        build(&sandbox, &dir, &["--prune"]);
        let extension = extension(&dir);
        assert_eq!(code(&extension).1, ["_Z9on_streamPi"]);
        let imports = elf::dynamic(&fs::read(&extension).unwrap()).unwrap().imports;
        let stream = if abi.is_empty() { "_ZN3c104cuda20getCurrentCUDAStreamEa" } else { "aoti_torch_get_current_cuda_stream" };
        assert!(imports.iter().any(|import| import.name == stream), "{abi}: {imports:?}");
    }
}

/// No device is here, and Debian's run time is of another release: by the name that the extension asks for, it loads all the same.
#[test]
fn a_kernel_for_tvm_ffi_loads_and_refuses_what_is_not_on_its_device() {
    let sandbox = sandbox();
    let run_time = sandbox.path("run-time");
    fs::create_dir(&run_time).unwrap();
    std::os::unix::fs::symlink("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5", run_time.join("libamdhip64.so.7")).unwrap();
    for (name, function, said) in [
        ("rms-norm-tvm-ffi", "rms_norm_forward", "rms_norm_forward: expected `input` on a ROCm device"),
        ("relu-tvm-ffi", "relu", "relu: expected tensors on a ROCm device"),
    ] {
        let dir = example_called(name, &sandbox.path(name));
        sandbox.build(&dir, &["--backend", "rocm", "--rocm-from", "/usr", "--arch", "gfx90a,gfx1201"]);
        let extension = extension(&dir);
        assert_eq!(code(&extension).0, ["gfx90a", "gfx1201"]);
        let environments = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env");
        for tvm_ffi in ["tvm-ffi-oldest", "tvm-ffi-newest"] {
            let mut python = Command::new(environments.join("base/bin/python"));
            python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/refused.py")).arg(&extension).arg(function);
            python.env("PYTHONPATH", environments.join(tvm_ffi)).env("LD_LIBRARY_PATH", &run_time);
            let run = Run::of(&mut python);
            assert_eq!((run.code, run.stdout.trim()), (Some(0), format!("ValueError: {said}").as_str()), "{tvm_ffi}: {}", run.stderr);
        }
    }
}

#[test]
fn a_compiler_may_be_named_and_hipcc_is_one() {
    let sandbox = sandbox();
    let dir = example(&sandbox.path("rms-norm"));
    let by = |compiler: &str| ["--backend", "rocm", "--rocm-from", compiler, "--torch", "2.13", "--arch", "gfx90a"].map(str::to_owned);
    let run = |compiler: &str| sandbox.build(&dir, &by(compiler).iter().map(String::as_str).collect::<Vec<_>>());
    // What is inside is what Clang of another release makes of the same plan.
    let inside = ["/usr/bin/hipcc", "/usr/bin/clang++-15", "/usr"].map(|compiler| {
        let run = run(compiler);
        let compiled: Vec<String> = ran(&run, "Compiling").into_iter().filter(|label| label.contains(".cu")).collect();
        assert_eq!(compiled, ["rms_norm_cuda/rms_norm_cuda.cu (gfx90a)", "rms_norm_cuda/rms_norm_cuda.cu"]);
        let check = sandbox.run(&dir, &["check"]);
        assert_eq!(check.code, Some(0), "{}", check.stderr);
        (code(&extension(&dir)), archs(&extension(&dir)), programs(&dir))
    });
    let [hipcc, clang_15, newest] = &inside;
    assert_eq!((hipcc.0.0.as_slice(), hipcc.1.as_slice()), (["gfx90a".to_owned()].as_slice(), ["gfx90a".to_owned()].as_slice()));
    assert_eq!((&hipcc.0, &clang_15.0), (&clang_15.0, &newest.0));
    assert_eq!([&hipcc.2, &clang_15.2, &newest.2], [&["hipcc"], &["clang++-15"], &["clang++-19"]]);

    let all = ["--backend", "rocm", "--rocm-from", "/usr/bin/hipcc", "--torch", "2.13", "--arch", "gfx942"];
    assert!(fails(&sandbox, &dir, &all).contains("Clang 15 does not compile for gfx942"));
    let other = ["--backend", "rocm", "--rocm-from", "/usr/bin/g++"];
    assert!(fails(&sandbox, &dir, &other).starts_with("error[no-rocm]: there is no ROCm in `/usr/bin/g++`"));
}

#[test]
fn doctor_tells_of_the_rocm_and_of_the_converter_that_a_build_takes() {
    let sandbox = sandbox();
    let dir = example(&sandbox.path("rms-norm"));
    let asked = sandbox.run(&dir, &["doctor", "rocm", "--rocm-from", "/usr"]);
    assert_eq!(asked.code, Some(0), "{}{}", asked.stdout, asked.stderr);
    assert!(asked.stdout.contains("rocm: torch-stable-abi211-rocm71-x86_64-linux"), "{}", asked.stdout);
    assert!(asked.stdout.contains("ROCm 5.2.21153 of the machine"), "{}", asked.stdout);
    // What is not in the store and cannot be fetched is told before a build begins.
    let bare = Sandbox::without_torch();
    let asked = bare.run(&dir, &["doctor", "rocm", "--rocm-from", "/usr", "--offline"]);
    assert_eq!(asked.code, Some(1), "{}{}", asked.stdout, asked.stderr);
}

#[test]
fn two_checkouts_give_equal_bytes() {
    let sandbox = sandbox();
    let bytes = ["one", "a/deeper/two"].map(|name| {
        let dir = project("rocm-archs = [\"gfx90a\"]").write(&sandbox.path(name));
        build(&sandbox, &dir, &["--no-cache", "--unique-id", "same"]);
        fs::read(extension(&dir)).unwrap()
    });
    assert!(bytes[0] == bytes[1], "the same sources give the same extension wherever they lie");
}

#[test]
fn what_lacks_is_said() {
    let sandbox = sandbox();
    let dir = project("rocm-archs = [\"gfx1151\"]").write(&sandbox.path("tiny"));
    let empty = sandbox.path("empty");
    fs::create_dir(&empty).unwrap();
    let said = fails(&sandbox, &dir, &["--backend", "rocm", "--rocm-from", empty.to_str().unwrap()]);
    assert!(said.starts_with(&format!("error[no-rocm]: there is no ROCm in `{}`", empty.display())), "{said}");
    let said = fails(&sandbox, &dir, &["--backend", "rocm"]);
    assert!(said.contains("there is no ROCm 7.1: `/usr`") && said.contains("`--rocm-from` lets one stand in"), "{said}");
    let said = fails(&sandbox, &dir, &ONLY);
    assert!(said.contains("error[no-architecture]: [kernel.k]: empty set of architectures: `rocm-archs` lists gfx1151"), "{said}");
    let said = fails(&sandbox, &dir, &[&ONLY[..], &["--arch", "gfx11:wave+"]].concat());
    assert!(said.contains("`--arch` has `gfx11:wave+`, which is no AMD architecture"), "{said}");
}
