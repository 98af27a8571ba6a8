//! Variants for XPU. No machine of ours has Intel's compiler, so there are two stand-ins.
//!
//! `recording-icpx` refuses options that icpx does not have and keeps the rest: of what it makes, **only the command line was checked**.
//! `sycl-shim` compiles the device code of our examples with the compiler inside Intel's SYCL runtime, so that they run on the
//! processor; it knows nothing of icpx's own work, of code made ahead of time, or of a GPU.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod robust;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_object::archive::{self, NewMember};
use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol};
use kiln_object::sycl::{self, Code};
use serde_json::Value;
use support::started::real_program;
use support::{Run, Sandbox, shared_cache, text, tree};

/// What the tests of the workspace are set up with.
fn test_env(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name);
    assert!(dir.is_dir(), "`{}` is missing: run `cargo xtask setup`", dir.display());
    dir
}

/// The directories of variants below `build/` of a project.
fn variants(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("build")).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A copy of an example in a sandbox.
fn example(sandbox: &Sandbox, name: &str) -> PathBuf {
    let dir = sandbox.path(name);
    tree::copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples").join(name), &dir);
    dir
}

/// An installation of oneAPI whose compilers are `recording-icpx`.
struct Recorded {
    sandbox: Sandbox,
    root: PathBuf,
    kit: PathBuf,
}

impl Recorded {
    fn new(release: &str) -> Self {
        let sandbox = Sandbox::new();
        let root = sandbox.path("oneapi");
        let kit = root.join("compiler").join(release);
        for dir in ["bin", "include/sycl", "lib"] {
            fs::create_dir_all(kit.join(dir)).unwrap();
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/icpx");
        for name in ["options.py", "recording_icpx.py"] {
            fs::copy(sources.join(name), kit.join("bin").join(name)).unwrap();
        }
        let start = format!("#!{}\nimport recording_icpx\n", real_program("python3").unwrap().display());
        for name in ["icpx", "icx", "ocloc"] {
            fs::write(kit.join("bin").join(name), &start).unwrap();
            fs::set_permissions(kit.join("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(kit.join("include/sycl/sycl.hpp"), "#pragma once\n").unwrap();
        let register = Symbol::plain("__sycl_register_lib", SymbolKind::Function);
        fs::write(kit.join("lib/libsycl.so"), Stub::new("libsycl.so.8", Machine::X86_64, vec![register]).write().unwrap()).unwrap();
        Self { sandbox, root, kit }
    }

    /// A project with a kernel for XPU and one for the processor, under torch's stable ABI.
    fn project(&self, flags: &str) -> PathBuf {
        let dir = self.sandbox.path("project");
        let text = format!(
            "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\", \"xpu\"]\n\n\
             [torch]\nsrc = [\"binding.cpp\"]\nstable-abi = {{ cpu = \"2.11\", xpu = \"2.11\" }}\n\n\
             [kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"c.cpp\"]\n\n\
             [kernel.k]\nbackend = \"xpu\"\ndepends = []\nsrc = [\"k.cpp\"]\ncxx-flags = [\"-DMINE\"]\nsycl-flags = [{flags}]\n"
        );
        let kept = support::project::kept;
        for (name, content) in [
            ("build.toml", text),
            ("torch-ext/tiny/__init__.py", "from ._ops import ops\n".to_owned()),
            ("binding.cpp", support::project::BINDING.to_owned()),
            ("c.cpp", format!("int tiny_c(int x) {{ return x; }}\n{}", kept("tiny_c(1)"))),
            ("k.cpp", format!("int tiny_k(int x) {{ return x; }}\n{}", kept("tiny_k(1)"))),
        ] {
            support::project::write(&dir, name, &content);
        }
        dir
    }

    fn run(&self, dir: &Path, args: &[&str]) -> Run {
        Run::of(self.sandbox.kiln(dir, args).env("ONEAPI_ROOT", &self.root))
    }

    fn build(&self, dir: &Path, args: &[&str]) -> Run {
        let run = self.run(dir, &[&["build", "--message-format", "json"], args].concat());
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run
    }

    /// The command lines since the last call.
    fn lines(&self) -> Vec<Line> {
        let log = self.kit.join("command-lines-only.log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _missing = fs::remove_file(&log);
        let words = |value: &Value| value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
        let line = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            Line {
                argv: words(&value["argv"]),
                environment: value["environment"].clone(),
                path: value["path"].as_str().unwrap().to_owned(),
            }
        };
        text.lines().map(line).collect()
    }
}

struct Line {
    argv: Vec<String>,
    environment: Value,
    path: String,
}

impl Line {
    fn has(&self, word: &str) -> bool {
        self.argv.iter().any(|known| known == word)
    }

    /// Whether it compiles the source.
    fn compiles(&self, source: &str) -> bool {
        self.has("-c") && self.argv.iter().any(|word| word.ends_with(source))
    }
}

/// Everything of a variant is compiled and linked by `icpx`, device code is finished at the link, and a build with nothing to do runs
/// nothing.
#[test]
fn command_lines_of_a_build() {
    let recorded = Recorded::new("2025.3");
    let dir = recorded.project("\"-DMARK=1\"");
    recorded.build(&dir, &[]);
    let lines = recorded.lines();
    let of = |source: &str| lines.iter().find(|line| line.compiles(source)).unwrap_or_else(|| panic!("nothing compiles {source}"));
    for mark in ["-fsycl", "-fsycl-targets=spir64_gen,spir64", "-DMARK=1", "-DMINE", "-DXPU_KERNEL", "-DUSE_XPU"] {
        assert!(of("k.cpp").has(mark), "{mark}");
    }
    for mark in ["-fsycl", "-DMARK=1", "-DMINE"] {
        assert!(!of("binding.cpp").has(mark), "{mark}");
    }
    let links: Vec<&Line> = lines.iter().filter(|line| line.has("-shared")).collect();
    assert_eq!(links.len(), 1);
    assert!(links[0].has("-Xsycl-target-backend=spir64_gen") && links[0].has("-fsycl-targets=spir64_gen,spir64"));
    // The compiler for code that is made ahead of time is found.
    let bin = recorded.kit.join("bin");
    assert!(links[0].path.starts_with(&format!("{}:", bin.display())), "{}", links[0].path);
    assert_eq!(links[0].environment, serde_json::json!({}));
    // Nothing of the processor's variant is made by it.
    assert!(!lines.iter().any(|line| line.compiles("c.cpp")));

    let made = variants(&dir);
    let xpu = made.iter().find(|name| name.contains("xpu")).unwrap();
    assert_eq!(xpu, "torch-stable-abi211-xpu20253-x86_64-linux");
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let kept = &record["variants"][xpu];
    assert_eq!(kept["proven"]["by"], "icpx 2025.3", "{kept}");
    assert_eq!(kept["toolchains"]["oneapi"]["version"], "2025.3", "{kept}");
    assert!(kept["toolchains"]["cxx"].is_null());
    let metadata: Value = serde_json::from_slice(&fs::read(dir.join("build").join(xpu).join("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["backend"], serde_json::json!({ "type": "xpu" }));

    recorded.build(&dir, &[]);
    assert_eq!(recorded.lines().len(), 0, "a build with nothing to do runs nothing");
    // An edit compiles its unit and links. Without git the binding follows, which has the name of the operators.
    fs::write(dir.join("k.cpp"), format!("int tiny_k(int x) {{ return x + 1; }}\n{}", support::project::kept("tiny_k(1)"))).unwrap();
    recorded.build(&dir, &[]);
    let again = recorded.lines();
    let compiled = |source: &str| again.iter().filter(|line| line.compiles(source)).count();
    assert_eq!((compiled("k.cpp"), compiled("module_init.c"), again.iter().filter(|line| line.has("-shared")).count()), (1, 0, 1));
}

/// oneDNN beside the compiler: its headers are there for kernels, and what they use of it is linked statically.
#[test]
fn one_dnn_is_linked_where_it_is_used() {
    let recorded = Recorded::new("2025.3");
    let dnnl = recorded.root.join("dnnl/latest");
    support::project::write(&dnnl, "include/dnnl.hpp", "#pragma once\nextern \"C\" int dnnl_version();\n");
    let source = recorded.sandbox.path("dnnl.cpp");
    fs::write(&source, "extern \"C\" int dnnl_version() { return 3; }\n").unwrap();
    let object = recorded.sandbox.path("dnnl.o");
    let compiled = Command::new("g++").args(["-fPIC", "-c", "-o"]).args([&object, &source]).status().unwrap();
    assert!(compiled.success());
    let member = NewMember { name: "dnnl.o".to_owned(), data: fs::read(&object).unwrap(), defines: vec!["dnnl_version".to_owned()] };
    fs::create_dir_all(dnnl.join("lib")).unwrap();
    fs::write(dnnl.join("lib/libdnnl.a"), archive::write(&[member]).unwrap()).unwrap();

    let dir = recorded.project("");
    let kept = support::project::kept("dnnl_version()");
    fs::write(dir.join("k.cpp"), format!("#include <dnnl.hpp>\n{kept}")).unwrap();
    recorded.build(&dir, &["--backend", "xpu"]);
    let lines = recorded.lines();
    let link = lines.iter().find(|line| line.has("-shared")).unwrap();
    assert!(link.argv.iter().any(|word| word.ends_with("/dnnl/latest/lib/libdnnl.a")), "{:?}", link.argv);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    assert!(!needed(&extension).iter().any(|library| library.contains("dnnl")), "{:?}", needed(&extension));

    // Without it the name is told.
    fs::remove_dir_all(&dnnl).unwrap();
    fs::write(dir.join("k.cpp"), format!("extern \"C\" int dnnl_version();\n{kept}")).unwrap();
    let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert!(run.stderr.contains("undefined symbol `dnnl_version`"), "{}", run.stderr);
}

/// SYCL*TLA of a release that no wheel has: without a directory the error says how to have it, with one its headers are found, and every
/// target's translator is told the compiler's own extensions and the library's.
#[test]
fn sycl_tla_comes_out_of_a_directory() {
    let recorded = Recorded::new("2026.0");
    let dir = recorded.project("");
    let text = fs::read_to_string(dir.join("build.toml")).unwrap();
    let (head, kernel) = text.split_once("[kernel.k]").unwrap();
    let kernel = kernel.replace("depends = []", "depends = [\"sycl_tla\"]");
    fs::write(dir.join("build.toml"), format!("{head}[kernel.k]{kernel}")).unwrap();
    let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("`sycl_tla` wants the headers of SYCL*TLA 0.9.2, which no wheel carries"), "{}", run.stderr);
    assert!(run.stderr.contains("name their directory in the variable SYCL_TLA_SRC_DIR"), "{}", run.stderr);

    let tla = recorded.sandbox.path("tla");
    let version = "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n";
    support::project::write(&tla, "include/cutlass/version.h", version);
    support::project::write(&tla, "tools/util/include/cutlass/util/more.h", "#define MORE 1\n");
    let includes = "#include <cutlass/version.h>\n#include <cutlass/util/more.h>\n";
    fs::write(dir.join("k.cpp"), format!("{includes}int tiny_k(int x) {{ return x + MORE; }}\n{}", support::project::kept("tiny_k(1)")))
        .unwrap();
    let run = Run::of(
        recorded.sandbox.kiln(&dir, &["build", "--backend", "xpu"]).env("ONEAPI_ROOT", &recorded.root).env("SYCL_TLA_SRC_DIR", &tla),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let lines = recorded.lines();
    let unit = lines.iter().find(|line| line.compiles("k.cpp")).unwrap();
    for mark in ["-DCUTLASS_ENABLE_SYCL=1", "-DDPCPP_SYCL_TARGET=intel_gpu_bmg_g21,intel_gpu_pvc", "-DSYCL_INTEL_TARGET=1"] {
        assert!(unit.has(mark), "{mark}");
    }
    let link = lines.iter().find(|line| line.has("-shared")).unwrap();
    for target in ["spir64_gen", "spir64"] {
        let at = link.argv.iter().position(|word| *word == format!("-Xspirv-translator={target}")).unwrap();
        assert_eq!(
            link.argv[at + 1],
            "-spirv-ext=+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes,+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io,\
             +SPV_INTEL_subgroup_matrix_multiply_accumulate"
        );
    }
    for line in [unit, link] {
        assert_eq!(line.environment["IGC_VISAOptions"], "-perfmodel");
    }
    // The compiler is asked for its own extensions once.
    assert_eq!(lines.iter().filter(|line| line.has("-###")).count(), 1);
}

/// What a compiler that says nothing leaves out is missed: after the link, and by checks of what was built.
#[test]
fn device_code_must_be_inside() {
    let recorded = Recorded::new("2025.3");
    for (target, inside) in [("spir64_gen", "SPIR-V for `spir64`"), ("spir64", "GPU code for `spir64_gen`")] {
        let forgets = recorded.kit.join(format!("without-{target}"));
        fs::write(&forgets, "").unwrap();
        // The link is the same by all that Kiln sees of it, and kept.
        let dir = recorded.project(&format!("\"-DWITHOUT_{target}\""));
        let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let message = format!("the extension has no code for `{target}`, which was planned; inside is {inside}");
        assert!(run.stderr.contains("error[device-code]") && run.stderr.contains(&message), "{}", run.stderr);
        assert_eq!(variants(&dir), [""; 0]);
        fs::remove_file(forgets).unwrap();
    }
    let dir = recorded.project("");
    recorded.build(&dir, &["--backend", "xpu"]);
    let check = || recorded.run(&dir, &["check-builds", "build"]);
    assert_eq!(check().code, Some(0), "{}", check().stderr);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    let objcopy = |args: &[&str]| assert!(Command::new("objcopy").args(args).arg(&extension).status().unwrap().success());
    let (gpu, jit) = ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen", "__CLANG_OFFLOAD_BUNDLE__sycl-spir64");
    objcopy(&["--rename-section", &format!("{gpu}={jit}")]);
    let swapped = check();
    assert!(swapped.stderr.contains("error[device-code]"), "{}", swapped.stderr);
    assert!(swapped.stderr.contains("the extension has GPU code for `spir64`, which is no code for it"), "{}", swapped.stderr);
    objcopy(&["--rename-section", &format!("{jit}=.other")]);
    let none = check();
    assert!(none.stderr.contains("error[device-code]") && none.stderr.contains("the extension has no device code"), "{}", none.stderr);
    assert_eq!(none.code, Some(1));
}

/// A stand-in that took every option would prove nothing.
#[test]
fn the_recorder_refuses_what_icpx_does_not_have() {
    let recorded = Recorded::new("2025.3");
    let dir = recorded.project("\"-fsycl-nonsense\"");
    let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("recording-icpx (only the command line was checked): unknown option: -fsycl-nonsense"), "{}", run.stderr);
}

/// Each release of the compiler has variants of its own.
#[test]
fn the_release_of_the_compiler_names_the_variant() {
    let recorded = Recorded::new("2026.0");
    let dir = recorded.project("");
    recorded.build(&dir, &["--backend", "xpu"]);
    assert_eq!(variants(&dir), ["torch-stable-abi211-xpu20260-x86_64-linux"]);
    // A directory that does not say which release it is: its compiler does.
    let unnamed = recorded.kit.with_file_name("latest");
    fs::rename(&recorded.kit, &unnamed).unwrap();
    let program = fs::read_to_string(unnamed.join("bin/options.py")).unwrap();
    fs::write(unnamed.join("bin/options.py"), program.replace("{release}.2", "2025.3.2")).unwrap();
    recorded.build(&dir, &["--backend", "xpu"]);
    assert!(variants(&dir).contains(&"torch-stable-abi211-xpu20253-x86_64-linux".to_owned()));
}

/// Who asks for XPU on a machine without the compiler is told what is missing, where it was looked for, and how to have it. Who asks for
/// everything gets the rest.
#[test]
fn a_machine_without_the_compiler() {
    let recorded = Recorded::new("2025.3");
    let dir = recorded.project("");
    let sandbox = &recorded.sandbox;
    let alone = sandbox.run(&dir, &["build", "--backend", "xpu"]);
    assert_eq!(alone.code, Some(1));
    for part in ["`icpx` of oneAPI 2025.3", "ONEAPI_ROOT", "CMPLR_ROOT", "`icpx` on PATH", "/opt/intel/oneapi/compiler/latest"] {
        assert!(alone.stderr.contains(part), "{part}: {}", alone.stderr);
    }
    assert!(alone.stderr.contains("install Intel's oneAPI DPC++ compiler 2025.3, or name its directory in"), "{}", alone.stderr);
    assert!(!dir.join("build").exists());

    sandbox.build(&dir, &[]);
    assert_eq!(variants(&dir), ["torch-stable-abi211-cpu-x86_64-linux"]);

    let all = sandbox.run(&dir, &["build", "--all"]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert_eq!(variants(&dir), ["torch-stable-abi211-cpu-x86_64-linux"]);
    for name in ["torch-stable-abi211-xpu20253-x86_64-linux", "torch-stable-abi211-xpu20260-x86_64-linux"] {
        assert!(all.stderr.contains(&format!("`{name}` is left out: it cannot be built here: no `icpx` of oneAPI")), "{}", all.stderr);
    }

    // A part is missing: it is named.
    fs::remove_file(recorded.kit.join("include/sycl/sycl.hpp")).unwrap();
    let lacking = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert!(lacking.stderr.contains("lacks `sycl/sycl.hpp`"), "{}", lacking.stderr);
}

#[test]
fn doctor_tells_of_the_compiler() {
    let recorded = Recorded::new("2025.3");
    let run = recorded.run(&recorded.sandbox.path("home"), &["doctor", "xpu", "--offline"]);
    assert!(run.stdout.contains(&format!("found    oneAPI 2025.3 at {}", recorded.kit.display())), "{}{}", run.stdout, run.stderr);
    let run = recorded.sandbox.run(&recorded.sandbox.path("home"), &["doctor", "xpu", "--offline"]);
    assert!(run.stdout.contains("hint: install Intel's oneAPI DPC++ compiler"), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
}

/// What finds the run-time libraries of the shim, and nothing but its OpenCL device.
fn on_the_processor(command: &mut Command, sandbox: &Sandbox) {
    let (lib, none) = (test_env("sycl").join("lib"), sandbox.path("no-vendors"));
    fs::create_dir_all(&none).unwrap();
    command.env("OCL_ICD_FILENAMES", lib.join("libintelocl.so")).env("OCL_ICD_VENDORS", none);
    command.env("LD_LIBRARY_PATH", lib).env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu");
}

/// Builds an example with `sycl-shim` and gives its extension.
fn built_by_shim(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> PathBuf {
    let args = [&["build", "--backend", "xpu"], args].concat();
    let run = Run::of(sandbox.kiln(dir, &args).env("ONEAPI_ROOT", test_env("sycl-shim")));
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let made = tree::extensions(&dir.join("build"));
    made.into_iter().find(|extension| extension.to_string_lossy().contains("-xpu20253-")).unwrap()
}

/// SONAMEs that a library needs.
fn needed(library: &Path) -> Vec<String> {
    let dynamic = kiln_object::elf::dynamic_file(library).unwrap();
    let mut needed = dynamic.needed;
    needed.sort();
    needed
}

/// The kernels in an extension, as `libsycl-jit.so` made them, by their names.
fn kernels_in(extension: &Path) -> Vec<String> {
    let images = sycl::of_elf(&fs::read(extension).unwrap()).unwrap();
    let of = |image: &sycl::Image| if let Code::SpirV { kernels, .. } = &image.code { kernels.clone() } else { Vec::new() };
    images.iter().filter(|image| image.target == "spir64").flat_map(of).collect()
}

/// The example runs on the processor's OpenCL device: by `kiln call`, which compares with numbers that were computed by hand, and in
/// Python with NumPy.
#[test]
fn the_example_for_tvm_ffi_runs_on_the_processor() {
    let sandbox = Sandbox::new().with_cache(shared_cache().to_owned());
    let dir = example(&sandbox, "rms-norm-tvm-ffi");
    // Some calls are compared with the variant for the processor.
    let extension = built_by_shim(&sandbox, &dir, &["--backend", "cpu"]);
    assert_eq!(variants(&dir), ["tvm-ffi01-cpu-x86_64-linux", "tvm-ffi01-xpu20253-x86_64-linux"]);
    assert!(needed(&extension).contains(&"libsycl.so.8".to_owned()), "{:?}", needed(&extension));
    let kernels = kernels_in(&extension);
    let has = |name: &str| kernels.iter().any(|kernel| kernel.contains(name));
    assert!(has("rms_norm_forward_kernel") && has("rms_norm_grad_input_kernel") && has("rms_norm_grad_weight_kernel"), "{kernels:?}");
    let report = Run::of(sandbox.kiln(&dir, &["check", "build"]).env("ONEAPI_ROOT", test_env("sycl-shim")));
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);
    // A machine without oneAPI knows its names by their form.
    let elsewhere = sandbox.run(&dir, &["check", "build"]);
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);

    let mut call = sandbox.kiln(&dir, &["call", text(extension.as_os_str().as_encoded_bytes()).as_str(), "--runtime", support::TVM_FFI]);
    on_the_processor(&mut call, &sandbox);
    let run = Run::of(&mut call);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    let in_python = |script: &str| {
        let script = format!("import sys; sys.path.insert(0, {:?})\n{script}", test_env("tvm-ffi-oldest").display().to_string());
        let mut command = Command::new(test_env("base").join("bin/python"));
        on_the_processor(command.env_clear().args(["-c", &script]).arg(&extension), &sandbox);
        Run::of(&mut command)
    };
    let run = in_python(PYTHON);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    // Both tell a wrong number.
    let wrong = in_python(&PYTHON.replace("shared = r[:, None] ** 2", "shared = 1.01 * r[:, None] ** 2"));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("Not equal to tolerance"), "{}{}", wrong.stdout, wrong.stderr);
    let reference = dir.join("tests/reference.toml");
    let text = fs::read_to_string(&reference).unwrap();
    fs::write(&reference, text.replacen("values = [1.2, 0.8, 0, 0, 1, -0.5, 1, -2]", "values = [1.2, 0.8, 0, 0, 1, -0.5, 1, -2.01]", 1))
        .unwrap();
    let wrong = Run::of(&mut call);
    assert_eq!(wrong.code, Some(1), "{}{}", wrong.stdout, wrong.stderr);
}

const PYTHON: &str = r#"
import numpy as np, tvm_ffi
ops = tvm_ffi.load_module(sys.argv[1])
rng = np.random.default_rng(0)
for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 2e-3)):
    for shape in ((1, 1), (3, 5), (257, 33), (5, 1025)):
        x = rng.standard_normal(shape).astype(dtype)
        w = rng.standard_normal(shape[-1]).astype(dtype)
        y, rstd = np.empty_like(x), np.empty(shape[0], np.float32)
        ops.rms_norm_forward(x, w, y, rstd, 1e-6)
        wide = x.astype(np.float64)
        r = 1 / np.sqrt((wide * wide).mean(-1) + 1e-6)
        np.testing.assert_allclose(rstd, r, rtol=1e-5)
        np.testing.assert_allclose(y.astype(np.float64), wide * r[:, None] * w, rtol=tolerance, atol=tolerance)
        g = rng.standard_normal(shape).astype(dtype)
        dx, dw = np.empty_like(x), np.empty_like(w)
        ops.rms_norm_backward(g, x, w, rstd, dx, dw)
        gw = g.astype(np.float64) * w
        shared = r[:, None] ** 2 * (gw * wide).mean(-1, keepdims=True)
        np.testing.assert_allclose(dx.astype(np.float64), r[:, None] * (gw - wide * shared), rtol=tolerance, atol=5 * tolerance)
        np.testing.assert_allclose(dw.astype(np.float64), (g.astype(np.float64) * wide * r[:, None]).sum(0), rtol=tolerance, atol=20 * tolerance)
try:
    ops.rms_norm_forward(x.astype(np.float64), w, y, rstd, 1e-6)
except TypeError as error:
    assert "unsupported dtype float64" in str(error), error
else:
    raise AssertionError("float64 was taken")
"#;

/// The smaller example: all calls of its reference, NaN and numbers at the ends among them, and a reference with a wrong number fails.
#[test]
fn the_smaller_example_for_tvm_ffi_runs_on_the_processor() {
    let sandbox = Sandbox::new().with_cache(shared_cache().to_owned());
    let dir = example(&sandbox, "relu-tvm-ffi");
    let extension = built_by_shim(&sandbox, &dir, &["--backend", "cpu"]);
    let call = || {
        let mut call = sandbox.kiln(&dir, &["call", extension.to_str().unwrap(), "--runtime", support::TVM_FFI]);
        on_the_processor(&mut call, &sandbox);
        Run::of(&mut call)
    };
    let right = call();
    assert_eq!(right.code, Some(0), "{}{}", right.stdout, right.stderr);
    let reference = dir.join("tests/reference.toml");
    let text = fs::read_to_string(&reference).unwrap();
    fs::write(&reference, text.replacen("values = [0, 2, 0, 4.25, 0, 0]", "values = [0, 2, 0, 4.5, 0, 0]", 1)).unwrap();
    let wrong = call();
    assert_eq!(wrong.code, Some(1), "{}{}", wrong.stdout, wrong.stderr);
}

/// The example under torch's C++ interface compiles and links for the release of torch that goes with the compiler.
#[test]
fn the_example_for_torchs_cxx_interface_compiles_and_links() {
    let sandbox = Sandbox::new().with_cache(shared_cache().to_owned());
    let dir = example(&sandbox, "relu");
    let extension = built_by_shim(&sandbox, &dir, &["--torch", "2.12"]);
    assert_eq!(variants(&dir), ["torch212-cxx11-xpu20253-x86_64-linux"]);
    let libraries = needed(&extension);
    for library in ["libsycl.so.8", "libtorch_cpu.so", "libtorch_xpu.so", "libc10.so"] {
        assert!(libraries.contains(&library.to_owned()), "{library}: {libraries:?}");
    }
    assert!(!kernels_in(&extension).is_empty());
}

/// The example under torch's stable ABI compiles and links, for torch 2.11 and newer, against no build of torch for XPU.
#[test]
fn the_example_for_torch_compiles_and_links() {
    let sandbox = Sandbox::new().with_cache(shared_cache().to_owned());
    let dir = example(&sandbox, "rms-norm");
    let extension = built_by_shim(&sandbox, &dir, &["--torch", "2.12"]);
    assert_eq!(variants(&dir), ["torch-stable-abi211-xpu20253-x86_64-linux"]);
    let libraries = needed(&extension);
    for library in ["libsycl.so.8", "libtorch_cpu.so", "libtorch_xpu.so"] {
        assert!(libraries.contains(&library.to_owned()), "{library}: {libraries:?}");
    }
    let names: Vec<String> = kiln_object::elf::dynamic_file(&extension).unwrap().exports.into_iter().map(|export| export.name).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("PyInit__rms_norm_xpu_"), "{names:?}");
}
