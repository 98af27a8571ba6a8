//! Variants for NPUs. No machine of ours has a CANN toolkit: `recording-bisheng` checks command lines and makes no device code. Everything
//! of the host is real: headers and names are those of torch-npu's wheel, and its library is linked as it is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use kiln_object::archive::{self, NewMember};
use kiln_object::elf;
use serde_json::Value;
use support::project::{ProjectBuilder, kept, write};
use support::started::real_program;
use support::{Run, Sandbox, kiln_program, shared_cache, text, tree};

const VARIANT: &str = "torch212-cxx11-cann85-x86_64-linux";
/// A kernel and its launcher.
const KERNEL: &str = "#include \"kernel_operator.h\"\n#include \"k.h\"\n__global__ __vector__ void k(GM_ADDR p) {}\n\
    extern \"C\" uint32_t aclrtlaunch_k(uint32_t blocks, void *stream, void *p) {\n  k<<<blocks, nullptr, stream>>>((GM_ADDR)p);\n  \
    return 0;\n}\n";
/// What calls the launcher, in the stream's library.
const HOST: &str = "#include <acl/acl.h>\n#include <cstdint>\n\
    extern \"C\" uint32_t aclrtlaunch_k(uint32_t blocks, void *stream, void *p);\n\
    int tiny_go(void *stream, void *p) { return aclrtlaunch_k(1, stream, p) + aclrtSynchronizeStream(stream); }\n";

/// A CANN toolkit whose compiler is `recording-bisheng`. Its libraries have the names that the tests use.
struct Recorded {
    sandbox: Sandbox,
    kit: PathBuf,
}

impl Recorded {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let kit = sandbox.path("cann");
        make_kit(&kit);
        let this = Self { sandbox, kit };
        this.fetch();
        this
    }

    /// Headers of torch 2.12 and torch-npu come once, with the caller's way to the index.
    fn fetch(&self) {
        static FETCHED: OnceLock<()> = OnceLock::new();
        FETCHED.get_or_init(|| {
            let dir = self.project("").write(&self.sandbox.path("fetch"));
            let mut command = Command::new(kiln_program());
            command.args(["build", "--backend", "cann"]).current_dir(&dir).env("KILN_CACHE_DIR", shared_cache());
            let output = command.env("ASCEND_HOME_PATH", &self.kit).stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            let _from_the_cache = fs::remove_file(self.log());
        });
    }

    /// A project with a kernel for NPUs and one for the processor, neither of which includes anything of torch.
    fn project(&self, keys: &str) -> ProjectBuilder {
        ProjectBuilder::new()
            .for_backend("cann")
            .file("npu/k.asc", KERNEL)
            .file("npu/k.h", "#include <stdint.h>\n")
            .file("npu/go.cpp", &format!("{HOST}{}", kept("tiny_go(nullptr, nullptr)")))
            .component("cann", "k", &[], &["npu/k.asc", "npu/k.h", "npu/go.cpp"], &format!("cxx-flags = [\"-DMINE\"]\n{keys}"))
    }

    fn run(&self, dir: &Path, args: &[&str]) -> Run {
        Run::of(self.sandbox.kiln(dir, args).env("ASCEND_HOME_PATH", &self.kit))
    }

    fn build(&self, dir: &Path, args: &[&str]) -> Run {
        let run = self.run(dir, &[&["build", "--message-format", "json"], args].concat());
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        run
    }

    fn log(&self) -> PathBuf {
        self.kit.join("command-lines-only.log")
    }

    /// The command lines since the last call.
    fn lines(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let _missing = fs::remove_file(self.log());
        let line = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            value["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
        };
        text.lines().map(line).collect()
    }
}

fn make_kit(kit: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/bisheng/recording_bisheng.py");
    let start = format!("#!{}\n{}", real_program("python3").unwrap().display(), fs::read_to_string(script).unwrap());
    write(kit, "bin/bisheng", &start);
    fs::set_permissions(kit.join("bin/bisheng"), fs::Permissions::from_mode(0o755)).unwrap();
    write(kit, "include/acl/acl.h", "#pragma once\nextern \"C\" int aclrtSynchronizeStream(void *stream);\n");
    write(kit, "asc/include/kernel_operator.h", "#pragma once\n");
    write(kit, "x86_64-linux/ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.5.0\n");
    fs::create_dir(kit.join("lib64")).unwrap();
    let gcc = |args: &[&str], source: &str| {
        let file = kit.join("source.c");
        fs::write(&file, source).unwrap();
        let made =
            Command::new("gcc").args(["-fPIC", "-x", "c"]).arg(&file).args(["-x", "none"]).args(args).current_dir(kit).status().unwrap();
        assert!(made.success());
        fs::remove_file(file).unwrap();
    };
    gcc(&["-shared", "-Wl,-soname,libruntime.so", "-o", "lib64/libruntime.so"], "int rtDevBinaryRegister(void) { return 0; }");
    let library = ["-shared", "-Wl,-soname,libascendcl.so", "-Wl,--no-as-needed", "lib64/libruntime.so", "-o", "lib64/libascendcl.so"];
    gcc(&library, "int aclrtSynchronizeStream(void *stream) { return stream == 0; }");
    let launch = "int rtDevBinaryRegister(void); unsigned recording_bisheng_launch(void) { return rtDevBinaryRegister() + 1; }";
    gcc(&["-c", "-o", "launch.o"], launch);
    let data = fs::read(kit.join("launch.o")).unwrap();
    let member = NewMember { name: "launch.o".to_owned(), data, defines: vec!["recording_bisheng_launch".to_owned()] };
    fs::write(kit.join("lib64/libascendc_runtime.a"), archive::write(&[member]).unwrap()).unwrap();
}

/// A library or program of the tests.
fn test_env(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name);
    assert!(path.exists(), "`{}` is missing: run `cargo xtask setup`", path.display());
    path
}

/// The directories of variants below `build/` of a project.
fn variants(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("build")).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// SONAMEs that a library needs.
fn needed(library: &Path) -> Vec<String> {
    let mut needed = elf::dynamic_file(library).unwrap().needed;
    needed.sort();
    needed
}

/// `bisheng` makes the object of a device source, the host's compiler everything else, and a build with nothing to do runs neither.
#[test]
fn command_lines_of_a_build() {
    let recorded = Recorded::new();
    let dir = recorded.project("asc-flags = [\"-DMARK=1\", \"-O2\"]").write(&recorded.sandbox.path("project"));
    let run = recorded.build(&dir, &[]);
    let lines = recorded.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: Vec<&str> = lines[0].iter().map(String::as_str).collect();
    assert_eq!(line[..7], ["-x", "asc", "--npu-arch=dav-2201", "-O3", "-DNDEBUG", "-fPIC", "-std=c++17"]);
    let own = line.iter().position(|word| *word == "-DMARK=1").unwrap();
    assert_eq!(line[own..own + 2], ["-DMARK=1", "-O2"]);
    assert!(line[..own].contains(&"-DCANN_KERNEL") && line.contains(&"./npu/k.asc") && !line.contains(&"-DMINE"), "{line:?}");
    let said = run.reason("compiler-output").iter().map(Value::to_string).collect::<String>() + &run.stdout + &run.stderr;
    assert!(said.contains("command line only, no device code was made"), "{said}");

    assert_eq!(variants(&dir), [VARIANT]);
    let extension = tree::only_extension(&dir);
    // What the launch's library has of another one, an extension has by AscendCL.
    assert!(needed(&extension).contains(&"libascendcl.so".to_owned()), "{:?}", needed(&extension));
    assert!(!needed(&extension).contains(&"libruntime.so".to_owned()), "{:?}", needed(&extension));
    let exports: Vec<String> = elf::dynamic_file(&extension).unwrap().exports.into_iter().map(|export| export.name).collect();
    assert!(exports.len() == 1 && exports[0].starts_with("PyInit__tiny_cann_"), "{exports:?}");
    let metadata: Value = serde_json::from_slice(&fs::read(dir.join("build").join(VARIANT).join("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["backend"], serde_json::json!({ "type": "cann" }), "loaders know no architectures of NPUs");
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let toolchains = &record["variants"][VARIANT]["toolchains"];
    assert_eq!(toolchains["cann"]["version"], "8.5.0", "{toolchains}");
    assert_eq!(toolchains["torch-npu"]["version"], "2.12.0.post3", "{toolchains}");
    assert!(toolchains["cxx"].is_object() && toolchains["torch"].is_object(), "{toolchains}");
    let report = recorded.run(&dir, &["check-abi", "build"]);
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);

    assert_eq!(recorded.build(&dir, &[]).steps().0, 0);
    assert_eq!(recorded.lines().len(), 0, "a build with nothing to do runs nothing");
    // What the source includes counts.
    write(&dir, "npu/k.h", "#include <stdint.h>\n#define NEW 1\n");
    let again = recorded.build(&dir, &[]);
    assert!(again.ran("Compiling").contains(&"npu/k.asc (dav-2201)".to_owned()), "{:?}", again.ran("Compiling"));
    assert!(!again.ran("Compiling").contains(&"npu/go.cpp".to_owned()), "{:?}", again.ran("Compiling"));
    assert_eq!(recorded.lines().len(), 1);
}

#[test]
fn other_architectures() {
    let recorded = Recorded::new();
    let of = |name: &str, keys: &str, args: &[&str]| {
        let dir = recorded.project(keys).write(&recorded.sandbox.path(name));
        let run = recorded.run(&dir, &[&["build", "--backend", "cann"], args].concat());
        let lines = recorded.lines();
        let archs: Vec<String> = lines.iter().flatten().filter(|word| word.starts_with("--npu-arch=")).cloned().collect();
        (run, archs)
    };
    let (run, archs) = of("listed", "npu-archs = [\"dav-3510\"]", &[]);
    assert_eq!((run.code, archs), (Some(0), vec!["--npu-arch=dav-3510".to_owned()]), "{}", run.stderr);
    let (run, archs) = of("asked", "", &["--arch", "dav-2002"]);
    assert_eq!((run.code, archs), (Some(0), vec!["--npu-arch=dav-2002".to_owned()]), "{}", run.stderr);
    let (run, archs) = of("both", "npu-archs = [\"dav-2201\", \"dav-1001\"]", &["--arch", "dav-1001"]);
    assert_eq!((run.code, archs), (Some(0), vec!["--npu-arch=dav-1001".to_owned()]), "{}", run.stderr);
    let (run, archs) = of("several", "npu-archs = [\"dav-2201\", \"dav-3510\"]", &[]);
    assert_eq!((run.code, archs.len()), (Some(1), 0));
    assert!(run.stderr.contains("`npu-archs` lists dav-2201 dav-3510: `bisheng` compiles for one architecture"), "{}", run.stderr);
    let (run, _) = of("wrong", "", &["--arch", "dav2201"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("which is no architecture of Ascend NPUs"), "{}", run.stderr);
}

/// A stand-in that took every option would prove nothing.
#[test]
fn the_recorder_refuses_what_bisheng_does_not_have() {
    let recorded = Recorded::new();
    let dir = recorded.project("asc-flags = [\"--nonsense\"]").write(&recorded.sandbox.path("project"));
    let run = recorded.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let said = "recording-bisheng (command line only, no device code was made): unknown option: --nonsense";
    assert!(run.stderr.contains(said), "{}", run.stderr);
}

#[test]
fn the_stable_abi_has_no_npu() {
    let recorded = Recorded::new();
    let dir = recorded.project("").torch("stable-abi = { cann = \"2.11\" }").write(&recorded.sandbox.path("project"));
    for args in [&["build"][..], &["build", "--plan"]] {
        let run = recorded.run(&dir, args);
        assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("error[selection]: no variant is left to build"), "{}", run.stderr);
        assert!(run.stderr.contains("torch's stable ABI cannot be used for cann: it has no NPU"), "{}", run.stderr);
    }
    // Among others it breaks nothing.
    let text = std::fs::read_to_string(dir.join("build.toml")).unwrap();
    let text = text.replace("[\"cann\"]", "[\"cann\", \"tpu\"]");
    std::fs::write(dir.join("build.toml"), text).unwrap();
    let all = recorded.run(&dir, &["build", "--all"]);
    assert_eq!(all.code, Some(0), "{}{}", all.stdout, all.stderr);
    assert!(all.stderr.contains("is left out: it cannot be built here: torch's stable ABI cannot be used for cann"), "{}", all.stderr);
    assert_eq!(recorded.lines().len(), 0);
}

/// The example's host half, against torch 2.12 and torch-npu: what it takes of them is checked by name, and once more by a link with the
/// real library, whose own names out of CANN stay open.
#[test]
fn the_example_links_with_the_real_torch_npu() {
    let recorded = Recorded::new();
    let dir = recorded.sandbox.path("relu");
    tree::copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples/relu"), &dir);
    recorded.build(&dir, &["--backend", "cann"]);
    assert_eq!(variants(&dir), [VARIANT]);
    let extension = tree::only_extension(&dir);
    let libraries = needed(&extension);
    for library in ["libc10.so", "libtorch_cpu.so", "libtorch_npu.so"] {
        assert!(libraries.contains(&library.to_owned()), "{library}: {libraries:?}");
    }
    let wanted: Vec<String> = elf::dynamic_file(&extension).unwrap().imports.into_iter().map(|import| import.name).collect();
    assert!(wanted.iter().any(|name| name.contains("c10_npu19getCurrentNPUStream")), "{wanted:?}");
    let launchers: Vec<&String> = wanted.iter().filter(|name| name.starts_with("aclrtlaunch_")).collect();
    assert!(launchers.is_empty(), "what the device source defines is inside: {launchers:?}");

    let real = test_env("torch-npu/libtorch_npu.so");
    let entries = walkdir::WalkDir::new(dir.join(".kiln")).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    let (mut objects, mut stubs) = (Vec::new(), Vec::new());
    for path in entries.filter(|path| path.is_file()) {
        match path.file_name().unwrap().to_str().unwrap() {
            "unit.o" => objects.push(path),
            name if name.ends_with(".so") && name.starts_with("lib") && name != "libtorch_npu.so" => stubs.push(path),
            _ => {}
        }
    }
    let runtime = recorded.kit.join("lib64/libascendc_runtime.a");
    let linked = recorded.sandbox.path("linked.so");
    let mut link = Command::new("g++");
    link.args(["-shared", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-Wl,--warn-unresolved-symbols", "-Wl,--as-needed", "-o"]);
    let run = Run::of(link.arg(&linked).args(&objects).arg(runtime).args(&stubs).arg(&real));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let open: Vec<&str> = run.stderr.lines().filter(|line| line.contains("undefined reference")).collect();
    assert!(open.iter().all(|line| line.contains("`Py")), "only Python's names are not there: {open:?}");
    assert!(needed(&linked).contains(&"libtorch_npu.so".to_owned()), "{:?}", needed(&linked));
    // CANN's own names in it are not there, and are nobody's business here.
    let names = elf::dynamic_file(&real).unwrap();
    assert!(
        names.needed.contains(&"libascendcl.so".to_owned()) && names.imports.iter().any(|import| import.name == "aclrtSynchronizeStream")
    );
}

/// A kernel under tvm-ffi, for NPUs and the processor.
fn tvm_ffi_project(dir: &Path) {
    let export = "#include <tvm/ffi/function.h>\n\
                  #if defined(CANN_KERNEL)\nint tiny_go(void *stream, void *p);\n\
                  static int64_t go(int64_t n) { return tiny_go(nullptr, nullptr) + n; }\n\
                  #else\nstatic int64_t go(int64_t n) { return n; }\n#endif\n\
                  TVM_FFI_DLL_EXPORT_TYPED_FUNC(go, go);\n";
    for (name, content) in [
        (
            "build.toml",
            "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cann\", \"cpu\"]\n\n\
             [tvm-ffi]\nsrc = [\"binding.cpp\"]\n\n\
             [kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"c.cpp\"]\n\n\
             [kernel.k]\nbackend = \"cann\"\ndepends = []\nsrc = [\"npu/k.asc\", \"npu/k.h\", \"npu/go.cpp\"]\n",
        ),
        ("tvm-ffi-ext/tiny/__init__.py", "from ._ops import ops\n"),
        ("binding.cpp", export),
        ("c.cpp", ""),
        ("npu/k.asc", KERNEL),
        ("npu/k.h", "#include <stdint.h>\n"),
        ("npu/go.cpp", HOST),
    ] {
        write(dir, name, content);
    }
}

/// A kernel under tvm-ffi needs no torch, and AscendCL alone.
#[test]
fn tvm_ffi() {
    let recorded = Recorded::new();
    let dir = recorded.sandbox.path("project");
    tvm_ffi_project(&dir);
    recorded.build(&dir, &["--backend", "cann"]);
    assert_eq!(variants(&dir), ["tvm-ffi01-cann85-x86_64-linux"]);
    let libraries = needed(&tree::only_extension(&dir));
    for library in ["libascendcl.so", "libtvm_ffi.so"] {
        assert!(libraries.contains(&library.to_owned()), "{library}: {libraries:?}");
    }
    assert!(!libraries.iter().any(|name| name.contains("torch")), "{libraries:?}");
    assert_eq!(recorded.lines().len(), 1);
    let report = recorded.run(&dir, &["check-abi", "build"]);
    assert_eq!(report.code, Some(0), "{}{}", report.stdout, report.stderr);
}

/// Who asks for NPUs on a machine without the toolkit is told what is missing, where it was looked for, and how to have it. Who asks for
/// everything gets the rest.
#[test]
fn a_machine_without_the_toolkit() {
    let recorded = Recorded::new();
    let dir = recorded.sandbox.path("project");
    tvm_ffi_project(&dir);
    let sandbox = &recorded.sandbox;
    let alone = sandbox.run(&dir, &["build", "--backend", "cann"]);
    assert_eq!(alone.code, Some(1), "{}{}", alone.stdout, alone.stderr);
    let places = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "`bisheng` on PATH", "/usr/local/Ascend/ascend-toolkit/latest"];
    for part in ["no `bisheng` of CANN 8.5 was found"].into_iter().chain(places) {
        assert!(alone.stderr.contains(part), "{part}: {}", alone.stderr);
    }
    assert!(alone.stderr.contains("install Huawei's CANN toolkit 8.5, or name its directory in ASCEND_HOME_PATH"), "{}", alone.stderr);
    assert!(!dir.join("build").exists());

    for args in [&["build"][..], &["build", "--all"]] {
        let run = sandbox.run(&dir, args);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(variants(&dir), ["tvm-ffi01-cpu-x86_64-linux"]);
        let left_out = "`tvm-ffi01-cann85-x86_64-linux` is left out: it cannot be built here: no `bisheng` of CANN 8.5 was found";
        assert!(args.len() == 1 || run.stderr.contains(left_out), "{}", run.stderr);
    }

    // A part is missing: it is named. Another release is no toolkit for the variant, and named too.
    fs::remove_file(recorded.kit.join("include/acl/acl.h")).unwrap();
    let lacking = recorded.run(&dir, &["build", "--backend", "cann"]);
    assert!(lacking.stderr.contains("lacks `acl/acl.h`"), "{}", lacking.stderr);
    make_older(&recorded.kit);
    let older = recorded.run(&dir, &["build", "--backend", "cann"]);
    assert!(older.stderr.contains("(ASCEND_HOME_PATH) is 8.3"), "{}", older.stderr);
}

fn make_older(kit: &Path) {
    fs::write(kit.join("x86_64-linux/ascend_toolkit_install.info"), "version=8.3.RC1\n").unwrap();
}

#[test]
fn doctor_tells_of_the_toolkit() {
    let recorded = Recorded::new();
    let home = recorded.sandbox.path("home");
    let run = recorded.run(&home, &["doctor", "cann", "--offline"]);
    assert!(run.stdout.contains(&format!("found    CANN 8.5.0 at {}", recorded.kit.display())), "{}{}", run.stdout, run.stderr);
    let run = recorded.sandbox.run(&home, &["doctor", "cann", "--offline"]);
    assert!(run.stdout.contains("hint: install Huawei's CANN toolkit"), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
}
