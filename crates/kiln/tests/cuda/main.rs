//! Extensions with device code, made by the real nvcc out of wheels: what is inside, that equal sources give equal bytes, and what
//! flags and capabilities of all kinds come to. No device is needed for any of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod fresh;
mod headers;
mod hosts;
mod lint;
mod pitfalls;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use kiln_object::fatbin;
use support::drivers::stand_in_libcuda;
use support::project::{ProjectBuilder, kept};
use support::tree::only_extension as extension;
use support::{Run, Sandbox, kiln_program, shared_cache, text, tree};

/// The variants that are built here: by the newest torch of the shared cache and the toolkit that goes with it.
const ONLY: [&str; 4] = ["--torch", "2.15", "--cuda", "13.2"];

/// A kernel in an anonymous namespace, a template, and code that says where it stands: whatever takes its name from a place.
const KERNEL: &str = "#include <cassert>\n#include \"where.cuh\"\n\
    namespace { __device__ int count; __global__ void hidden(int *p) { assert(p != nullptr); *p = count++ + where(p); } }\n\
    template <typename T> __global__ void typed(T *p) { *p = T(1); }\n\
    const char *tiny_go(int *p) { hidden<<<1, 1, 0, nullptr>>>(p); typed<<<1, 1, 0, nullptr>>>(p); return __FILE__; }\n";
const WHERE: &str = "#pragma once\n#include <cassert>\nstatic __device__ int where(int *p) { assert(*p > 0); return 1; }\n";

/// A sandbox with the toolkit. It is fetched once for all tests, with the caller's way to the index.
fn sandbox() -> Sandbox {
    static FETCHED: OnceLock<()> = OnceLock::new();
    let sandbox = Sandbox::new();
    FETCHED.get_or_init(|| fetch(&project("").write(&sandbox.path("fetching")), &ONLY));
    sandbox
}

/// Builds with the caller's way to the index, which leaves in the shared cache what such builds need.
fn fetch(dir: &Path, args: &[&str]) {
    let mut command = Command::new(kiln_program());
    command.arg("build").args(args).current_dir(dir).env("KILN_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A project with [`KERNEL`] and other keys of its component.
fn project(keys: &str) -> ProjectBuilder {
    ProjectBuilder::new()
        .for_cuda()
        .torch("stable-abi = { cuda = \"2.11\" }")
        .file("gpu/k.cu", &format!("{KERNEL}{}", kept("tiny_go(nullptr)")))
        .file("gpu/where.cuh", WHERE)
        .cuda("k", &["gpu/k.cu", "gpu/where.cuh"], keys)
}

fn build(sandbox: &Sandbox, dir: &Path, more: &[&str]) -> Run {
    sandbox.build(dir, &[&ONLY[..], more].concat())
}

/// What a build that must fail says.
fn fails(sandbox: &Sandbox, dir: &Path, more: &[&str]) -> String {
    let run = sandbox.run(dir, &[&["build"][..], &ONLY, more].concat());
    assert_ne!(run.code, Some(0), "{}", run.stderr);
    run.stderr
}

/// The code in an extension, as `cuobjdump` would name it, of all units together.
fn code(extension: &Path) -> Vec<String> {
    let fatbins = fatbin::of_elf(&fs::read(extension).unwrap()).unwrap();
    let mut code: Vec<String> = fatbins.iter().flat_map(|fatbin| &fatbin.images).map(ToString::to_string).collect();
    code.sort();
    code.dedup();
    code
}

/// `metadata.json`'s list of architectures.
fn archs(extension: &Path) -> Vec<String> {
    let metadata: serde_json::Value = serde_json::from_slice(&fs::read(extension.with_file_name("metadata.json")).unwrap()).unwrap();
    metadata["backend"]["archs"].as_array().unwrap().iter().map(|arch| arch.as_str().unwrap().to_owned()).collect()
}

#[test]
fn checkouts_give_equal_bytes_and_know_no_place() {
    let (one, two) = (sandbox(), Sandbox::new());
    let keys = "cuda-capabilities = [\"9.0\", \"9.0a\", \"8.0\", \"12.0+PTX\"]";
    let first = project(keys).write(&one.path("one"));
    let second = project(keys).write(&two.path("deeper/zwei – Ünïcode 家/with spaces"));
    build(&one, &first, &["-j1"]);
    build(&two, &second, &["-j8"]);
    tree::assert_equal(&first.join("build"), &second.join("build"));
    let extension = extension(&first);
    assert_eq!(archs(&extension), ["8.0", "9.0", "9.0a", "12.0+PTX"]);
    assert_eq!(code(&extension), ["compute_120", "sm_120", "sm_80", "sm_90", "sm_90a"]);
    let bytes = fs::read(&extension).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("./gpu/k.cu"), "the unit says where it stands");
    for place in [one.path("").to_str().unwrap(), shared_cache().to_str().unwrap(), "tmpxft", ".kiln/tmp"] {
        assert!(!has(place), "`{place}` is in the extension");
    }
    // Nothing of a kernel is to be seen by other extensions.
    let exports = kiln_object::elf::dynamic(&bytes).unwrap().exports;
    assert!(exports.iter().all(|export| export.name.starts_with("PyInit_")), "{exports:?}");
    one.started();
    let run = build(&one, &first, &[]);
    assert_eq!(run.steps().0, 0, "a build with nothing to do");
    let started = one.started().0;
    assert!(started.iter().all(|words| words[0] == "git"), "{started:?}");
}

/// A unit that offers nothing to others has no name of its own: nvcc takes the number of a process for one.
#[test]
fn units_that_offer_nothing_give_equal_bytes() {
    let (one, two) = (sandbox(), Sandbox::new());
    let silent = "namespace { __device__ int c; __global__ void k(int *p) { *p = c++; }\n\
        const void *volatile at = reinterpret_cast<const void *>(&k); }\n";
    let write = |sandbox: &Sandbox, place: &str| {
        let dir = project("cuda-capabilities = [\"8.0\", \"9.0\"]").file("gpu/silent.cu", silent).write(&sandbox.path(place));
        // The same unit twice, each with flags of its own.
        let text = fs::read_to_string(dir.join("build.toml")).unwrap().replace("\"gpu/where.cuh\"", "\"gpu/where.cuh\", \"gpu/silent.cu\"");
        let again = "\n[kernel.again]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"gpu/silent.cu\"]\ncuda-flags = [\"-DAGAIN\"]\ncuda-capabilities = [\"8.0\"]\n";
        fs::write(dir.join("build.toml"), text + again).unwrap();
        dir
    };
    let (first, second) = (write(&one, "one"), write(&two, "else/where/two"));
    build(&one, &first, &[]);
    build(&two, &second, &[]);
    tree::assert_equal(&first.join("build"), &second.join("build"));
    assert_eq!(code(&extension(&first)), ["sm_80", "sm_90"]);
}

/// nvlink writes the directories that it is given into the code.
#[test]
fn relocatable_code_knows_no_place() {
    let (one, two) = (sandbox(), Sandbox::new());
    let keys = "cuda-capabilities = [\"8.0\"]\ncuda-flags = [\"-rdc=true\"]";
    let write = |sandbox: &Sandbox, place: &str| project(keys).write(&sandbox.path(place));
    let (first, second) = (write(&one, "one"), write(&two, "else/wo ü/two"));
    build(&one, &first, &[]);
    build(&two, &second, &[]);
    tree::assert_equal(&first.join("build"), &second.join("build"));
    let bytes = fs::read(extension(&first)).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for place in [one.path("").to_str().unwrap(), shared_cache().to_str().unwrap(), "tmpxft", ".kiln/tmp", "toolchains-v1"] {
        assert!(!has(place), "`{place}` is in the extension");
    }
}

#[test]
fn other_capabilities_are_other_code() {
    let sandbox = sandbox();
    let dir = project("").write(&sandbox.path("project"));
    build(&sandbox, &dir, &["--arch", "8.0"]);
    assert_eq!(code(&extension(&dir)), ["sm_80"]);
    build(&sandbox, &dir, &["--arch", "10.0f,9.0"]);
    assert_eq!(code(&extension(&dir)), ["sm_100f", "sm_90"]);
    assert_eq!(archs(&extension(&dir)), ["9.0", "10.0f"]);
    let record = fs::read_to_string(dir.join("build/kiln-build.json")).unwrap();
    assert!(record.contains("\"archs-narrowed\": true"), "{record}");
    // Two kernels with lists of their own: each unit has its list, metadata have both.
    let dir = project("cuda-capabilities = [\"8.0\"]")
        .file(
            "b/k.cu",
            &format!("__global__ void other() {{}}\nint tiny_b() {{ other<<<1, 1, 0, nullptr>>>(); return 1; }}\n{}", kept("tiny_b()")),
        )
        .cuda("b", &["b/k.cu"], "cuda-capabilities = [\"9.0a\"]")
        .write(&sandbox.path("two"));
    build(&sandbox, &dir, &[]);
    let fatbins = fatbin::of_elf(&fs::read(extension(&dir)).unwrap()).unwrap();
    let units: Vec<Vec<String>> = fatbins.iter().map(|fatbin| fatbin.images.iter().map(ToString::to_string).collect()).collect();
    assert_eq!(units, [["sm_80"], ["sm_90a"]]);
    assert_eq!(archs(&extension(&dir)), ["8.0", "9.0a"]);
}

#[test]
fn what_no_toolkit_has_is_told_before_compiling() {
    let sandbox = sandbox();
    let said = |keys: &str, args: &[&str]| {
        let dir = project(keys).write(&sandbox.path(format!("p{}", keys.len())));
        let said = fails(&sandbox, &dir, args);
        assert!(sandbox.started().0.iter().all(|words| !words.contains(&"-c".to_owned())), "a compiler ran");
        said
    };
    let empty = said("cuda-capabilities = [\"99.0\"]", &[]);
    assert!(empty.contains("error[no-architecture]: [kernel.k]: empty set of capabilities: none of `99.0`"), "{empty}");
    let other = said("", &["--arch", "7.0"]);
    assert!(other.contains("hint: `7.0` needs a CUDA toolkit from 11.8 on that is older than 13.0"), "{other}");
    let list = said("", &["--arch", "sm_90"]);
    assert!(list.contains("error[arch]: `--arch` has `sm_90`"), "{list}");
}

/// The driver itself is asked, and no program of the vendor's.
#[test]
fn native_is_what_the_driver_says() {
    let sandbox = sandbox();
    let dir = project("").write(&sandbox.path("project"));
    let native = |driver: &Path| {
        let mut kiln = sandbox.kiln(&dir, &[&["build", "--plan", "--message-format", "json", "--arch", "native"][..], &ONLY].concat());
        Run::of(kiln.env("LD_LIBRARY_PATH", driver))
    };
    let driver = |name: &str, devices: &[u32], init: u32| stand_in_libcuda(&sandbox.path(name), devices, init);
    let run = native(&driver("two devices", &[90, 86, 90], 0));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (code, planned) in [("sm_90", true), ("sm_86", true), ("sm_100", false)] {
        assert_eq!(run.stdout.contains(code), planned, "{code}: {}", run.stdout);
    }
    let broken = sandbox.path("no library");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("libcuda.so.1"), "this is no library, however long it may be: more than the head of one\n").unwrap();
    let why = |driver: &Path| {
        let run = native(driver);
        assert_eq!((run.code, run.stdout.contains("\"code\":\"arch\"")), (Some(2), true), "{}{}", run.stdout, run.stderr);
        run.stderr
    };
    let cannot = "error[arch]: `--arch native` cannot be used: ";
    for (driver, said) in [
        (driver("none", &[], 0), "this machine has no NVIDIA device"),
        (driver("no device", &[], 100), "this machine has no NVIDIA device"),
        (driver("failing", &[90], 999), "the NVIDIA driver does not start: `cuInit` failed: CUDA_ERROR_UNKNOWN: unknown error"),
        (broken, "there is no NVIDIA driver to ask: cannot load `libcuda.so.1`"),
    ] {
        let stderr = why(&driver);
        assert!(stderr.contains(&format!("{cannot}{said}")), "{said}: {stderr}");
    }
}

/// A list with an entry that CUDA 13 has no code for gets the next one, and everybody is told.
#[test]
fn a_stale_list_is_mended() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"7.0\", \"8.0\"]").write(&sandbox.path("project"));
    let run = build(&sandbox, &dir, &[]);
    assert_eq!(archs(&extension(&dir)), ["7.5", "8.0"]);
    assert_eq!(code(&extension(&dir)), ["sm_75", "sm_80"]);
    assert!(run.stdout.contains("`7.5` stands for it"), "{}", run.stdout);
}

#[test]
fn flags_reach_the_compiler_that_they_are_for() {
    let sandbox = sandbox();
    let source = "#include <cuda_fp16.h>\n\
        #if LIST(0, 1) != 1 || !defined(WORDS)\n#error \"a flag was lost\"\n#endif\n\
        constexpr bool same(const char *a, const char *b) { return *a == *b && (*a == 0 || same(a + 1, b + 1)); }\n\
        static_assert(same(ODD, R\"(a\"$b`c\\d)\") && same(MARK, \"'=;|\"), \"a flag has changed\");\n\
        __global__ void half_sum(__half *a, __half *b) { a[0] = a[0] + b[0]; }\n\
        const char *tiny_go(int *p) { return sizeof(WORDS) == 4 ? \"\" : nullptr; }\n";
    // A string that a shell and nvcc would both read.
    let odd = r#"'-DODD="a\"$b`c\\d"', '-D', "MARK=\"'=;|\"""#;
    let flags = format!(
        "cuda-flags = [\"-Wall\", \"-Wno-unused-variable\", \"-Werror=reorder\", \"-DLIST(a,b)=b\", \"-DWORDS=\\\"a b\\\"\", {odd}, \"--use_fast_math\", \"--threads=4\"]"
    );
    let dir = project(&format!("cuda-capabilities = [\"8.0\"]\n{flags}"))
        .file("gpu/k.cu", &format!("{source}{}", kept("tiny_go(nullptr)")))
        .write(&sandbox.path("project"));
    build(&sandbox, &dir, &[]);
    assert_eq!(code(&extension(&dir)), ["sm_80"]);
}

/// A device function of another unit needs relocatable code, and that needs a link of its own.
#[test]
fn relocatable_code_is_linked() {
    let sandbox = sandbox();
    let project = |flags: &str| {
        project(&format!("cuda-capabilities = [\"8.0\", \"9.0\"]\n{flags}"))
            .file("gpu/k.cu", "__device__ int twice(int x) { return 2 * x; }\n")
            .file("gpu/where.cuh", "")
            .file("gpu/use.cu", &format!("extern __device__ int twice(int);\n__global__ void use(int *p) {{ *p = twice(*p); }}\nint tiny_use() {{ use<<<1, 1, 0, nullptr>>>(nullptr); return 1; }}\n{}", kept("tiny_use()")))
    };
    let text = |flags: &str| project(flags).build_toml().replace("\"gpu/where.cuh\"", "\"gpu/use.cu\"");
    let write = |name: &str, flags: &str| {
        let dir = project(flags).write(&sandbox.path(name));
        fs::write(dir.join("build.toml"), text(flags)).unwrap();
        dir
    };
    let dir = write("linked", "cuda-flags = [\"-rdc=true\"]");
    // The link of device code needs a program more than other builds, which is fetched with the caller's way to the index.
    fetch(&dir, &ONLY);
    assert!(code(&extension(&dir)).contains(&"sm_90".to_owned()));
    let said = fails(&sandbox, &write("alone", ""), &[]);
    assert!(said.contains("Unresolved extern function '_Z5twicei'"), "{said}");
    let why = "warning: `gpu/use.cu` calls a device function of another unit, `twice(int)`: that needs `-rdc=true` in `cuda-flags` of both";
    assert_eq!(said.matches(why).count(), 1, "{said}");
}

/// From CUDA 13 on the kernels that a unit instantiates are its own: a launch elsewhere must not link in silence.
#[test]
fn a_template_that_is_launched_elsewhere_does_not_link_in_silence() {
    let sandbox = sandbox();
    let write = |name: &str, flags: &str| {
        let dir = project(&format!("cuda-capabilities = [\"8.0\"]\n{flags}"))
            .file("gpu/where.cuh", "#pragma once\ntemplate <typename T> __global__ void shared_kernel(T *p);\n")
            .file("gpu/k.cu", "#include \"where.cuh\"\ntemplate <typename T> __global__ void shared_kernel(T *p) { *p = T(1); }\ntemplate __global__ void shared_kernel<int>(int *);\n")
            .file("gpu/use.cu", &format!("#include \"where.cuh\"\nextern template __global__ void shared_kernel<int>(int *);\nint tiny_use() {{ shared_kernel<int><<<1, 1, 0, nullptr>>>(nullptr); return 1; }}\n{}", kept("tiny_use()")))
            .write(&sandbox.path(name));
        let text = fs::read_to_string(dir.join("build.toml")).unwrap().replace("\"gpu/where.cuh\"", "\"gpu/use.cu\"");
        fs::write(dir.join("build.toml"), text).unwrap();
        dir
    };
    let said = fails(&sandbox, &write("default", ""), &[]);
    assert!(said.contains("shared_kernel"), "{said}");
    assert!(said.contains("add `-static-global-template-stub=false` to `cuda-flags`"), "{said}");
    build(&sandbox, &write("opt-out", "cuda-flags = [\"-static-global-template-stub=false\"]"), &[]);
}

/// The code that is inside decides, not the commands that were run: a flag that takes some of it away ends in an error.
#[test]
fn code_that_differs_from_the_plan_is_not_put_in_place() {
    let sandbox = sandbox();
    let dir =
        project("cuda-capabilities = [\"8.0\", \"9.0\"]\ncuda-flags = [\"-Xfatbin=--no-asm\", \"-gencode=arch=compute_100,code=sm_100\"]")
            .write(&sandbox.path("more"));
    let run = sandbox.run(&dir, &[&["build"][..], &ONLY].concat());
    // Architectures in flags are the author's own affair, with a warning; those of the list must still be there.
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(archs(&extension(&dir)), ["8.0", "9.0"]);
    assert!(code(&extension(&dir)).contains(&"sm_100".to_owned()));
}

/// On demand, metadata are all that says what was planned.
#[test]
fn metadata_that_promise_more_code_than_there_is() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"8.0\"]").write(&sandbox.path("project"));
    build(&sandbox, &dir, &[]);
    let extension = extension(&dir);
    let check = || sandbox.run(&dir, &["check"]);
    assert_eq!(check().code, Some(0), "{}", check().stderr);
    let metadata = extension.with_file_name("metadata.json");
    let old = fs::read_to_string(&metadata).unwrap();
    assert!(old.contains("\"8.0\""), "{old}");
    fs::write(&metadata, old.replace("\"8.0\"", "\"9.0a\"")).unwrap();
    let run = check();
    assert!(run.code == Some(1) && run.stderr.contains("error[metadata-archs]") && run.stderr.contains("`sm_90a`"), "{}", run.stderr);
}

#[test]
fn a_toolkit_that_is_named_is_taken_or_told_about() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"8.0\"]").write(&sandbox.path("project"));
    build(&sandbox, &dir, &[]);
    let expected = fs::read(extension(&dir)).unwrap();
    let mut trees = fs::read_dir(shared_cache().join("toolchains-v1/trees")).unwrap().flatten().map(|entry| entry.path());
    let is_toolkit = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("cuda-13.2");
    let toolkit = trees.find(is_toolkit).unwrap().join("files");
    let named = ["--cuda-from", toolkit.to_str().unwrap()];
    let other = project("cuda-capabilities = [\"8.0\"]").write(&sandbox.path("other"));
    sandbox.build(&other, &named);
    assert_eq!(fs::read(extension(&other)).unwrap(), expected, "the same toolkit, however it is had, gives the same bytes");
    let nowhere = sandbox.path("nowhere");
    let said = fails(&sandbox, &other, &["--cuda-from", nowhere.to_str().unwrap()]);
    assert!(said.contains("error[no-cuda-toolkit]: there is no CUDA toolkit in"), "{said}");
    // A Python environment with one of the packages alone.
    let part = sandbox.path("venv/lib/python3.12/site-packages/nvidia/cu13");
    fs::create_dir_all(part.join("bin")).unwrap();
    for program in ["nvcc", "cudafe++", "ptxas", "fatbinary"] {
        fs::write(part.join("bin").join(program), "").unwrap();
    }
    let said = fails(&sandbox, &other, &["--cuda-from", part.to_str().unwrap()]);
    assert!(
        said.contains("lacks `cicc`, `libdevice.10.bc`, `crt/host_config.h`, `cuda_runtime.h`, `libcudart.so`, `cub/cub.cuh`"),
        "{said}"
    );
    let wheels = "hint: install `nvidia-cuda-cccl`, `nvidia-cuda-crt`, `nvidia-cuda-runtime`, `nvidia-nvvm` into the same place";
    assert!(said.contains(wheels), "{said}");
}

/// Its parts split what they are given at commas, and paste it into shell commands.
#[test]
fn a_place_that_nvcc_cannot_work_in_is_told_before_compiling() {
    let sandbox = sandbox();
    for name in ["a, b", "a$b", "a`b"] {
        let said = fails(&sandbox, &project("").write(&sandbox.path(name)), &[]);
        assert!(said.contains("error[cuda-path]: nvcc does not work below"), "{said}");
    }
    // Nor with a file or a directory of the project that is called so.
    for (src, include) in [("gpu/a$b.cu", "gpu"), ("gpu/a,b.cu", "gpu"), ("gpu/k.cu", "in`c")] {
        let dir = ProjectBuilder::new().for_cuda().file(src, "__global__ void k() {}\n").file("in`c/h.h", "");
        let dir =
            dir.cuda("k", &[src], &format!("include = [\"{include}\"]")).write(&sandbox.path(format!("{}{}", src.len(), include.len())));
        let said = fails(&sandbox, &dir, &[]);
        let odd = if include == "gpu" { src } else { include };
        assert!(said.contains(&format!("error[cuda-path]: [kernel.k]: nvcc does not take `{odd}`, which has")), "{said}");
    }
}

/// The device code of an extension, byte for byte: each fatbin from its magic number to its end.
fn device_code(extension: &Path) -> Vec<Vec<u8>> {
    const MAGIC: [u8; 8] = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    let bytes = fs::read(extension).unwrap();
    let starts = bytes.windows(MAGIC.len()).enumerate().filter(|(_, window)| *window == MAGIC).map(|(at, _)| at);
    let length = |at: usize| 16 + usize::try_from(u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap())).unwrap();
    starts.map(|at| bytes[at..at + length(at)].to_vec()).collect()
}

/// The processes of the toolkit's compiler that a build started, by what they compile for.
fn device_processes(run: &Run) -> Vec<String> {
    let started = run.reason("step-started");
    let calls = started.iter().filter(|message| {
        message["command"].as_array().is_some_and(|words| words.iter().any(|word| word.as_str().unwrap().ends_with("/cicc")))
    });
    let mut labels: Vec<String> = calls.map(|message| message["label"].as_str().unwrap().to_owned()).collect();
    labels.sort();
    labels
}

/// Capabilities that compile beside each other give what one call of nvcc gives.
#[test]
fn parts_are_what_one_call_makes() {
    let sandbox = sandbox();
    let keys = "cuda-capabilities = [\"8.0\", \"9.0a\", \"12.0+PTX\"]";
    let dir = project(keys).write(&sandbox.path("parts"));
    let run = build(&sandbox, &dir, &[]);
    assert_eq!(device_processes(&run), ["gpu/k.cu (sm_120)", "gpu/k.cu (sm_80)", "gpu/k.cu (sm_90a)"]);
    assert!(run.reason("warning").is_empty(), "{}", run.stdout);
    // As if it were one of the placeholders that nvcc is asked with.
    let dir_of_one = project(&format!("{keys}\ncuda-flags = [\"-DODD=kiln-name-\"]")).write(&sandbox.path("one"));
    let run = build(&sandbox, &dir_of_one, &[]);
    assert_eq!(device_processes(&run), Vec::<String>::new());
    let warnings: Vec<String> = run.reason("warning").iter().map(|warning| warning["message"].as_str().unwrap().to_owned()).collect();
    let expected = "[kernel.k]: what nvcc 13.2 does is not understood (the flag `-DODD=kiln-name-`): one call of it compiles for all capabilities, one after the other";
    assert_eq!(warnings, [expected]);
    let (parts, one) = (device_code(&extension(&dir)), device_code(&extension(&dir_of_one)));
    assert_eq!(parts.len(), 1);
    assert_eq!(parts, one, "cubins and PTX, byte for byte");
    assert_eq!(code(&extension(&dir)), ["compute_120", "sm_120", "sm_80", "sm_90a"]);
}

/// What knows nothing of torch is compiled once for all of its releases.
#[test]
fn device_code_without_torch_is_compiled_once_for_all_releases() {
    const ALL: [&str; 3] = ["--all", "--cuda", "13.0"];
    let sandbox = Sandbox::new();
    let project = || {
        // As it is without the stable ABI: a variant for each release.
        let kernel = format!("{KERNEL}{}", kept("tiny_go(nullptr)"));
        let project = ProjectBuilder::new().for_cuda().file("gpu/k.cu", &kernel).file("gpu/where.cuh", WHERE);
        project.cuda("k", &["gpu/k.cu", "gpu/where.cuh"], "cuda-capabilities = [\"8.0\", \"9.0a\"]")
    };
    fetch(&project().write(&sandbox.path("fetching")), &ALL);
    let dir = project().write(&sandbox.path("project"));
    let run = sandbox.build(&dir, &ALL);
    let variants: Vec<String> =
        tree::extensions(&dir.join("build")).iter().map(|path| path.parent().unwrap().display().to_string()).collect();
    assert!(variants.len() >= 4 && variants.iter().all(|variant| variant.contains("-cu130-")), "{variants:?}");
    assert_eq!(device_processes(&run), ["gpu/k.cu (sm_80)", "gpu/k.cu (sm_90a)"]);
    assert_eq!(run.ran("Splitting"), ["gpu/k.cu"]);
    let of_unit: Vec<String> = run.ran("Compiling").into_iter().filter(|label| label.starts_with("gpu/")).collect();
    assert_eq!(of_unit, ["gpu/k.cu", "gpu/k.cu (sm_80)", "gpu/k.cu (sm_90a)"]);
}

/// From CUDA 13 on, every driver unpacks what nvcc packs for size.
#[test]
fn code_is_packed_for_size_on_request() {
    let sandbox = sandbox();
    let size = |name: &str, flags: &str| {
        let table = format!("__device__ int table[4096] = {{1, 2, 3}};\n{KERNEL}{}", kept("tiny_go(nullptr)"));
        let dir = project(&format!("cuda-capabilities = [\"8.0\"]\n{flags}")).file("gpu/k.cu", &table).write(&sandbox.path(name));
        build(&sandbox, &dir, &[]);
        assert_eq!(code(&extension(&dir)), ["sm_80"]);
        device_code(&extension(&dir)).iter().map(Vec::len).sum::<usize>()
    };
    let (plain, packed) = (size("plain", ""), size("packed", "cuda-flags = [\"-compress-mode=size\"]"));
    assert!(packed * 2 < plain, "{packed} of {plain} bytes");
}

/// What is compiled again is what the edit may have changed.
#[test]
fn an_edit_compiles_its_unit_alone() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"8.0\", \"9.0\"]")
        .file(
            "b/k.cu",
            &format!("__global__ void other() {{}}\nint tiny_b() {{ other<<<1, 1, 0, nullptr>>>(); return 1; }}\n{}", kept("tiny_b()")),
        )
        .cuda("b", &["b/k.cu"], "cuda-capabilities = [\"8.0\"]")
        .write(&sandbox.path("project"));
    build(&sandbox, &dir, &["--unique-id", "1"]);
    let edit = |old: &str, new: &str| {
        let path = dir.join("gpu/k.cu");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old));
        fs::write(&path, text.replace(old, new)).unwrap();
        build(&sandbox, &dir, &["--unique-id", "1"])
    };
    let run = edit("*p = T(1)", "*p = T(2)");
    assert_eq!(device_processes(&run), ["gpu/k.cu (sm_80)", "gpu/k.cu (sm_90)"]);
    assert_eq!(run.ran("Splitting"), ["gpu/k.cu"]);
    let run = edit("return __FILE__", "return \"file\"");
    assert_eq!(run.ran("Compiling"), ["gpu/k.cu", "gpu/k.cu (sm_80)", "gpu/k.cu (sm_90)"]);
    assert_eq!(run.ran("Joining"), Vec::<String>::new(), "the device code is the same");
    // One capability more is one compile more.
    let text = fs::read_to_string(dir.join("build.toml")).unwrap().replace("[\"8.0\", \"9.0\"]", "[\"7.5\", \"8.0\", \"9.0\"]");
    fs::write(dir.join("build.toml"), text).unwrap();
    let run = build(&sandbox, &dir, &["--unique-id", "1"]);
    assert_eq!(device_processes(&run), ["gpu/k.cu (sm_75)"]);
    assert_eq!(code(&extension(&dir)), ["sm_75", "sm_80", "sm_90"]);
}

/// What the compiler says of a unit: severity, place, first line and capabilities of each message, notes apart.
fn messages(run: &Run) -> Vec<String> {
    let all = run.reason("compiler-message");
    let said =
        all.iter().filter(|message| message["unit"] == "gpu/k.cu" && matches!(message["severity"].as_str(), Some("warning" | "error")));
    let shown = said.map(|message| {
        let capabilities: Vec<&str> = message["capabilities"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let first = message["text"].as_str().unwrap().lines().next().unwrap();
        let place = message["file"].as_str().map_or("-".to_owned(), |file| format!("{file}:{}", message["line"]));
        format!("{} {place} [{}] {first}", message["severity"].as_str().unwrap(), capabilities.join(" "))
    });
    shown.collect()
}

#[test]
fn what_several_capabilities_say_is_one_message() {
    let sandbox = sandbox();
    let write = |name: &str, text: &str| {
        project("cuda-capabilities = [\"8.0\", \"9.0\"]")
            .file("gpu/k.cu", &format!("{text}{KERNEL}{}", kept("tiny_go(nullptr)")))
            .write(&sandbox.path(name))
    };
    let build = |dir: &Path, format: &str| sandbox.run(dir, &[&["build", "--keep-going", "--message-format", format][..], &ONLY].concat());
    let warnings = "static int unused_one;\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#warning only here\n#endif\n";
    let dir = write("warnings", warnings);
    let expected = [
        "warning gpu/k.cu:1 [8.0 9.0] ./gpu/k.cu(1): warning #177-D: variable \"unused_one\" was declared but never referenced",
        "warning gpu/k.cu:3 [9.0] ./gpu/k.cu:3:2: warning: #warning only here [-Wcpp]",
    ];
    assert_eq!(messages(&build(&dir, "json")), expected);
    // The same in the text for people, and again when nothing had to run.
    let shown = build(&write("shown", warnings), "human").stderr;
    assert_eq!(shown.matches("#177-D").count(), 1, "{shown}");
    assert_eq!(shown.matches("#warning only here [-Wcpp]").count(), 1, "{shown}");

    let dir = write("error", "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n__device__ int broken = nowhere;\n#endif\n");
    let run = build(&dir, "json");
    assert_ne!(run.code, Some(0));
    assert_eq!(messages(&run), ["error gpu/k.cu:2 [9.0] ./gpu/k.cu(2): error: identifier \"nowhere\" is undefined"]);

    let dir = write("extern", "extern __device__ int twice(int);\n__global__ void use(int *p) { *p = twice(*p); }\n");
    let run = build(&dir, "json");
    assert_ne!(run.code, Some(0));
    assert_eq!(messages(&run), ["error - [8.0 9.0] ptxas fatal   : Unresolved extern function '_Z5twicei'"]);
}
