//! `kiln call` and `kiln bench-kernel` with real libraries and real runtimes of tvm-ffi: what behaves, and what does not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

#[path = "call/odd.rs"]
mod odd;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use support::drivers::{stand_in, stand_in_libcuda};
use support::tvm_ffi::{TvmFfi, cache, tvm_ffi};
use support::{Deadline, Run, Sandbox, is_gone};

/// The oldest and the newest release of the catalog.
const OLDEST: &str = "0.1.9";
const NEWEST: &str = "0.1.15";

/// The kernels, compiled once against each release; the newest ones state their types.
struct Kernels {
    oldest: PathBuf,
    newest: PathBuf,
    runtimes: [PathBuf; 2],
}

fn kernels() -> &'static Kernels {
    static MADE: OnceLock<Kernels> = OnceLock::new();
    MADE.get_or_init(|| {
        let of = |version: &str, args: &[&str]| {
            let release: TvmFfi = tvm_ffi(version);
            (release.compile(&format!("kernels-{version}"), args), release.library)
        };
        let (oldest, old_runtime) = of(OLDEST, &[]);
        let (newest, new_runtime) = of(NEWEST, &["-DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"]);
        Kernels { oldest, newest, runtimes: [old_runtime, new_runtime] }
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `kiln call KERNEL --runtime RUNTIME ..`, in a sandbox without an index.
fn call(sandbox: &Sandbox, kernel: &Path, runtime: &Path, args: &[&str]) -> Run {
    let args = [&["call", text(kernel), "--runtime", text(runtime)], args].concat();
    sandbox.run(&sandbox.path("home"), &args)
}

#[test]
fn functions_are_listed_by_both_runtimes() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, newest, runtimes } = kernels();
    for runtime in runtimes {
        let run = call(&sandbox, newest, runtime, &[]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains("relu(DLTensor*, DLTensor*) -> None\n"), "{}", run.stdout);
        assert!(run.stdout.lines().any(|line| line == "says_nothing"), "{}", run.stdout);
        let run = call(&sandbox, oldest, runtime, &["--format", "json"]);
        let list: Value = serde_json::from_str(&run.stdout).unwrap();
        let names: Vec<&str> = list["functions"].as_array().unwrap().iter().map(|function| function["name"].as_str().unwrap()).collect();
        assert!(names.is_sorted() && names.len() == 32 && names.contains(&"scaled"), "{names:?}");
    }
}

#[test]
fn results_come_back() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, newest, runtimes } = kernels();
    for runtime in runtimes {
        for kernel in [oldest, newest] {
            // The types are stated by one, and asked out of the other.
            let run = call(&sandbox, kernel, runtime, &["-f", "relu", "--shape", "3x5"]);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert!(
                run.stdout.starts_with("relu(float32[3x5], float32[3x5]) returned none\n  argument 0: float32[3x5], changed, from 0.0")
            );
            assert!(run.stdout.contains("argument 1: float32[3x5], unchanged, from -"), "{}", run.stdout);
        }
        let run = call(&sandbox, oldest, runtime, &["-f", "greet", "--arg", "str:you", "--arg", "2", "--arg", "false"]);
        assert_eq!(run.stdout, "greet(\"you\", 2, false) returned \"hello you;hello you;\"\n", "{}", run.stderr);
        assert!(run.stderr.contains("this is said by the kernel\n"), "what a kernel prints is no data: {}", run.stderr);
        // A tensor that the kernel has made with memory from here.
        let run = call(&sandbox, oldest, runtime, &["-f", "scaled", "--arg", "tensor:4:range", "--arg", "-0.5", "--format", "json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let expected = serde_json::json!({"argument": null, "dtype": "float32", "shape": [4], "changed": true, "min": -1.5, "max": 0.0, "mean": -0.75, "not_numbers": 0});
        assert_eq!(report["returned"], expected);
        assert_eq!(report["tensors"][0]["changed"], false);
        assert_eq!(call(&sandbox, oldest, runtime, &["-f", "answer"]).stdout, "answer() returned 42\n");
    }
}

#[test]
fn whatever_a_kernel_does_is_told() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, newest, runtimes } = kernels();
    let (halves, apart) = (["--dtype", "half"], ["--arg", "tensor:4x4:strides=1x4", "--arg", "tensor:4x4"]);
    let faults: [(&str, &[&str], &str); 14] = [
        ("crashes_without", &[], "`crashes_without` was killed by signal 11 (SIGSEGV)"),
        ("throws", &[], "`throws` raised `InternalError`: the kernel's own words"),
        ("throws_a_number", &[], "`throws_a_number` was killed by signal 6 (SIGABRT)"),
        ("crashes", &[], "`crashes` was killed by signal 11 (SIGSEGV)"),
        ("ends", &[], "`ends` ended the process with exit code 0"),
        ("ends_at_once", &[], "`ends_at_once` ended the process with exit code 0"),
        ("says_nothing", &[], ": a code other than 0 was returned, and no error was raised\nhint: it was called without arguments"),
        ("says_nothing", &["--arg", "none"], "`says_nothing` raised `Error`: a code other than 0 was returned, and no error was raised"),
        ("hangs", &["--timeout", "1", "--arg", "tensor"], " did not end within 1 s"),
        ("past_the_end", &[], "`past_the_end` ended well, but it wrote behind the elements of argument 0"),
        ("relu", &halves, "`relu` raised `TypeError`: out must be float32"),
        ("relu", &apart, "`relu` raised `ValueError`: out must be contiguous"),
        ("relu", &["--shape", "0x4"], "`relu` raised `ValueError`: out is empty"),
        ("relu", &["--arg", "1", "--arg", "tensor"], "Expected `DLTensor*` but got `int`"),
    ];
    for (kernel, runtime) in [(oldest, &runtimes[0]), (newest, &runtimes[1])] {
        for (function, args, said) in faults {
            let run = call(&sandbox, kernel, runtime, &[&["-f", function], args].concat());
            assert_eq!(run.code, Some(1), "{function}: {}", run.stderr);
            assert!(run.stderr.contains("error[call]: ") && run.stderr.contains(said), "{function}: {}", run.stderr);
        }
    }
    // Nothing is left of all that.
    let left: Vec<_> = fs::read_dir(sandbox.path("home")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// That arguments were missing is said only where they may have been what was missing.
#[test]
fn hints_are_for_what_they_help() {
    const HINT: &str = "hint: it was called without arguments";
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for (function, args, helps) in
        [("says_nothing", &[][..], true), ("crashes_without", &[], true), ("hangs_without", &["--timeout", "1"], false)]
    {
        let run = call(&sandbox, oldest, &runtimes[0], &[&["-f", function], args].concat());
        assert!(run.code == Some(1) && run.stderr.contains(HINT) == helps, "{function}: {}", run.stderr);
    }
    let home = sandbox.path("home");
    for (number, body) in ["*(volatile int *)8 = 1;", "_exit(3);", "undefined();"].into_iter().enumerate() {
        let (source, library) = (home.join("load.c"), home.join(format!("load{number}.so")));
        let declared = "void _exit(int); void undefined(void); int __tvm_ffi_relu(void) { return -1; }";
        fs::write(&source, format!("{declared}\n__attribute__((constructor)) static void at_load(void) {{ {body} }}\n")).unwrap();
        assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap().success());
        let run = call(&sandbox, &library, &runtimes[0], &["-f", "relu"]);
        assert!(run.code == Some(1) && run.stderr.contains("error[call]: ") && !run.stderr.contains(HINT), "{body}: {}", run.stderr);
    }
}

/// What programs are told, also of what failed.
#[test]
fn reports_say_how_a_call_ended() {
    let sandbox = Sandbox::without_torch();
    let Kernels { newest, runtimes, .. } = kernels();
    let report = |args: &[&str]| -> Value {
        let run = call(&sandbox, newest, &runtimes[1], &[&["--format", "json", "-f"], args].concat());
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{args:?}: {}", run.stdout))
    };
    for (args, ended) in [
        (&["throws"][..], serde_json::json!({"how": "raised", "kind": "InternalError", "message": "the kernel's own words"})),
        (&["crashes"], serde_json::json!({"how": "killed", "signal": 11})),
        (&["killed"], serde_json::json!({"how": "killed", "signal": 9})),
        (&["ends"], serde_json::json!({"how": "exited", "code": 0})),
        (&["hangs", "--timeout", "1", "--arg", "tensor"], serde_json::json!({"how": "timed-out", "seconds": 1.0})),
    ] {
        let report = report(args);
        assert_eq!((&report["ended"], &report["function"]), (&ended, &args[0].into()), "{report}");
        assert!(report["problem"].as_str().unwrap().starts_with(&format!("`{}` ", args[0])), "{report}");
    }
    let run = call(&sandbox, newest, &runtimes[1], &["-f", "throws_a_number"]);
    assert!(run.stderr.contains("terminate called after throwing an instance of 'int'"), "{}", run.stderr);
    let run = call(&sandbox, newest, &runtimes[1], &["-f", "killed"]);
    assert!(run.stderr.contains("`killed` was killed by signal 9 (SIGKILL), most likely for want of memory"), "{}", run.stderr);
    // Words that mean something elsewhere, and a number that JSON does not have.
    let run = call(&sandbox, newest, &runtimes[1], &["-f", "class", "--arg", "tensor", "--arg", "0", "--format", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&report["returned"], &report["problem"]), (&"NaN".into(), &Value::Null), "{report}");
}

/// A kernel that goes to another directory, where temporary files are named from this one.
#[test]
fn kernels_may_go_elsewhere() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    fs::create_dir(sandbox.path("home/tmp")).unwrap();
    let args = ["call", text(oldest), "--runtime", text(&runtimes[0]), "-f", "goes_elsewhere", "--shape", "1"];
    let run = Run::of(sandbox.kiln(&sandbox.path("home"), &args).env("TMPDIR", "tmp"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("argument 0: float32[1], changed, from 7.0"), "{}", run.stdout);
}

/// More than the machine has, and more than this process may have: refused, and told.
#[test]
fn tensors_that_do_not_fit() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for command in ["call", "bench-kernel"] {
        let args = [command, text(oldest), "--runtime", text(&runtimes[0]), "-f", "relu", "--shape", "2000000x2000000"];
        let run = sandbox.run(&sandbox.path("home"), &args);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("error[memory]: the tensors of this call take 128000000 MB"), "{}", run.stderr);
        let mut limited = sandbox.command("/bin/sh");
        limited.args(["-c", "ulimit -v 1000000; exec \"$0\" \"$@\""]).arg(support::kiln_program()).current_dir(sandbox.path("home"));
        let run = Run::of(limited.args(&args[..5]).args(["relu", "--shape", "20000x20000"]));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains("there is no memory for a tensor of 1600000000 bytes"), "{}", run.stderr);
    }
}

/// A device that is not there, and one that the kernel does not want.
#[test]
fn other_devices() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    let on_cuda = |driver: &Path| {
        let args = ["call", text(oldest), "--runtime", text(&runtimes[0]), "-f", "relu", "--device", "cuda"];
        Run::of(sandbox.kiln(&sandbox.path("home"), &args).env("LD_LIBRARY_PATH", driver))
    };
    let run = on_cuda(&stand_in_libcuda(&sandbox.path("no device"), &[], 100));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[call]: `cuInit` failed: CUDA_ERROR_NO_DEVICE"), "{}", run.stderr);
    let run = on_cuda(&stand_in_libcuda(&sandbox.path("device"), &[90], 0));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[call]: `relu` raised `ValueError`: out must be on device 1"), "{}", run.stderr);
}

/// `kiln doctor` shows what each driver knows; here all of them are stand-ins, each beside what the other drivers make of it.
#[test]
fn devices_are_shown() {
    let sandbox = Sandbox::without_torch();
    let drivers = stand_in_libcuda(&sandbox.path("drivers"), &[90, 121], 0);
    stand_in(&drivers, "libamdhip64", "libamdhip64.so.6");
    stand_in(&drivers, "libze_loader", "libze_loader.so.1");
    let devices = |args: &[&str]| {
        let args = [&["doctor", "--offline", "--format", "json"], args].concat();
        let run = Run::of(sandbox.kiln(&sandbox.path("home"), &args).env("LD_LIBRARY_PATH", &drivers));
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
        let sections = report["sections"].as_array().unwrap().clone();
        let section = sections.iter().find(|section| section["name"] == "devices").map(|section| section["items"].clone());
        section.unwrap_or_default().as_array().cloned().unwrap_or_default()
    };
    let shown = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| format!("{} {}: {}", item["state"], item["name"], item["detail"]).replace('"', "")).collect()
    };
    assert_eq!(
        shown(&devices(&[])),
        [
            "found Stand-in: CUDA, capability 9.0, 1.0 GiB",
            "found Stand-in: CUDA, capability 12.1, 1.0 GiB",
            "found Stand-in: HIP, gfx942:sramecc+:xnack-",
            "found Stand-in gfx one: HIP, gfx1100",
            "found Stand-in GPU: Level Zero, PCI id 0bd5",
        ]
    );
    assert_eq!(devices(&["rocm"]).len(), 2);
    assert_eq!(devices(&["cpu"]).len(), 0);
}

#[test]
fn other_libraries_are_refused_by_name() {
    let sandbox = Sandbox::without_torch();
    let runtime = &kernels().runtimes[1];
    let home = sandbox.path("home");
    let compile = |compiler: &str, name: &str, code: &str, more: &[&str]| {
        let (source, library) = (home.join(format!("{name}.c")), home.join(format!("{name}.so")));
        fs::write(&source, code).unwrap();
        let done = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).args(more).status().unwrap();
        assert!(done.success());
        library
    };
    let torch = compile("cc", "libtorch_cpu", "void f(void) {}", &["-Wl,-soname,libtorch_cpu.so"]);
    let extension = "extern void f(void);\nvoid *PyInit_x(void) { f(); return 0; }";
    let extension = compile("cc", "x.abi3", extension, &[text(&torch)]);
    let other = compile("cc", "other", "int __tvm_ffi__library_ctx; int relu(void) { return 0; }", &[]);
    let arm = compile("aarch64-linux-gnu-gcc", "arm", "int __tvm_ffi_relu(void) { return 0; }", &[]);
    let (script, empty, pipe) = (home.join("script.so"), home.join("empty.so"), home.join("pipe.so"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&script, "INPUT(libc.so.6)\n").unwrap();
    fs::write(&empty, "").unwrap();
    for (path, said) in [
        (&extension, "`x.abi3.so` is no tvm-ffi kernel: it is an extension of torch, with `PyInit_x`"),
        (&other, "`other.so` is no tvm-ffi kernel: it exports no `__tvm_ffi_*` function"),
        (&script, "`script.so` is no tvm-ffi kernel: it is no shared library"),
        (&empty, "`empty.so` is no tvm-ffi kernel: it is no shared library"),
        (&pipe, "`pipe.so` is no tvm-ffi kernel: it is no regular file"),
        (runtime, "is no tvm-ffi kernel: it is the runtime of tvm-ffi itself"),
        (&arm, "`arm.so` is for aarch64, and cannot be called on this machine"),
        (&home.join("nothing.so"), "there is no file or directory `nothing.so`"),
    ] {
        let shown = path.strip_prefix(&home).unwrap_or(path);
        let run = call(&sandbox, shown, runtime, &[]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    let run = call(&sandbox, &kernels().oldest, runtime, &["--reference", "pipe.so"]);
    assert!(run.code == Some(1) && run.stderr.contains("error[path]: cannot read `pipe.so`"), "{}", run.stderr);
    // A runtime that is none, and a kernel that needs what nobody has.
    let run = call(&sandbox, &kernels().oldest, &other, &[]);
    assert!(run.code == Some(1) && run.stderr.contains("has no function `TVMFFIGetVersion`"), "{}", run.stderr);
    let lacking = compile("cc", "lacking", "void nobody_has_this(void); int __tvm_ffi_f(void) { nobody_has_this(); return 0; }", &[]);
    let run = call(&sandbox, &lacking, runtime, &[]);
    assert!(run.code == Some(1) && run.stderr.contains("lacking.so`: undefined symbol: nobody_has_this"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for (args, said) in [
        (&["-f", "relo"][..], "there is no function `relo`: there is `answer`, `beyond`, `class`, `closes`"),
        (&["-f", "greet"], "argument 0 of `greet` is no tensor but `std::string`, and has to be named"),
        (&["-f", "answer", "--shape", "4"], "`answer` takes no tensor that `--shape` or `--dtype` could describe"),
        (&["-f", "relu", "--shape", "-4"], "`-4`: a shape has no negative extents"),
        (&["-f", "relu", "--shape", "2x-4"], "`2x-4`: a shape has no negative extents"),
        (&["-f", "relu", "--shape", "4x"], "it must be extents, such as `4x8`"),
        (&["-f", "relu", "--shape", "99999999999x99999999999"], "the tensor is too large"),
        (&["-f", "relu", "--dtype", "Float32"], "`Float32` is no dtype\nhint: the types are `bool`, `int8` to"),
        (&["-f", "relu", "--dtype", "int4"], "`int4` is no dtype"),
        (&["-f", "relu", "--timeout", "0"], "0 is not in 1.."),
        (&["--shape", "4"], "arguments are for one function"),
        (&["-f", "relu", "--arg", "tensor:4:zeroes"], "`zeroes` is neither"),
        (&["-f", "relu", "--dtype", "float8"], "`float8` is no dtype"),
        (&["-f", "relu", "--device", "xpu"], "it must be `cpu`, `cuda` or `cuda:N`"),
        (&["--list", "-f", "relu"], "cannot be used with"),
        (&["-f", "numel", "--arg", "tensor:4x8:float32:float16"], "`float16` says again what was said before it"),
        (&["-f", "numel", "--arg", "tensor:4x8:zeros:ones"], "`ones` says again what was said before it"),
        (&["-f", "numel", "--arg", "tensor:4x8", "--shape", "4"], "`--shape 4`: there is no tensor that it could describe"),
        (&["-f", "relu", "--dtype", "half", "--dtype", "half", "--dtype", "int8"], "`--dtype int8`: there is no tensor that it"),
        (&["-f", "greet", "--arg", "str:", "--arg", "9223372036854775808"], "`9223372036854775808`: whole numbers have 64 bits"),
        (&["-f", "scaled", "--arg", "tensor", "--arg", "1e400"], "`1e400`: it is larger than numbers of 64 bits can be"),
    ] {
        let run = call(&sandbox, oldest, &runtimes[0], args);
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
    }
}

/// A project whose variants are the test kernels: for the host, and for what the stand-in driver calls a device.
fn project(sandbox: &Sandbox, references: &str) -> PathBuf {
    static DEVICE: OnceLock<PathBuf> = OnceLock::new();
    let device = DEVICE.get_or_init(|| tvm_ffi(OLDEST).compile("kernels-device", &["-DDEVICE=kDLCUDA"]));
    let dir = sandbox.path("ein Kern – 核");
    for (variant, library) in [("cpu", &kernels().oldest), ("cu130", device)] {
        let variant = dir.join(format!("build/tvm-ffi01-{variant}-{}-linux", std::env::consts::ARCH));
        fs::create_dir_all(&variant).unwrap();
        fs::write(variant.join("metadata.json"), "{}").unwrap();
        fs::copy(library, variant.join("kern_1234567.so")).unwrap();
    }
    fs::write(dir.join("build.toml"), "").unwrap();
    fs::create_dir_all(dir.join("tests")).unwrap();
    fs::write(dir.join("tests/reference.toml"), references).unwrap();
    dir
}

#[test]
fn projects_say_what_they_expect() {
    let sandbox = Sandbox::without_torch();
    let two = "[{ shape = [4], fill = \"zeros\" }, { shape = [4], values = [-1, 2, -3, 4] }]";
    let good = format!(
        "[[call]]\nname = \"a row\"\nfunction = \"relu\"\ninputs = {two}\nexpected = [{{ input = 0, values = [0, 2, 0, 4] }}]\n\n\
         [[call]]\nfunction = \"relu\"\ninputs = [{{ shape = [4], dtype = \"int8\" }}, {{ shape = [4] }}]\nerror = \"must be float32\"\n\n\
         [[call]]\nfunction = \"scaled\"\ninputs = [{{ shape = [2], fill = \"range\" }}, 2.0]\nreturns = {{ shape = [2], values = [0, 2] }}\n\n\
         [[call]]\nfunction = \"answer\"\nreturns = 42\n"
    );
    let dir = project(&sandbox, &good);
    let runtime = text(&kernels().runtimes[1]);
    // From the project, from above, and by the file itself.
    for (place, path) in [(&dir, "."), (&sandbox.path("home"), text(&dir)), (&dir, "build")] {
        let run = sandbox.run(place, &["call", path, "--runtime", runtime]);
        assert_eq!((run.code, run.stdout.matches("ok      ").count()), (Some(0), 4), "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.starts_with("ok      a row: relu(float32[4], float32[4])\n"), "{}", run.stdout);
    }
    let run = sandbox.run(&dir, &["call", "--runtime", runtime, "-f", "answer"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "ok      answer()\n"), "{}", run.stderr);

    let wrong = format!(
        "[[call]]\nfunction = \"relu_off\"\ninputs = {two}\nexpected = [{{ input = 0, values = [0, 2, 0, 4] }}]\n\n\
         [[call]]\nfunction = \"relu_off\"\ninputs = {two}\nexpected = [{{ input = 0, values = [0, 2, 0, 4] }}]\ntolerance = {{ absolute = 0.25 }}\n\n\
         [[call]]\nfunction = \"crashes\"\ninputs = [{{ shape = [1] }}]\nreturns = {{ none = true }}\n\n\
         [[call]]\nfunction = \"answer\"\nerror = \"anything\"\n\n\
         [[call]]\nfunction = \"answer\"\nreturns = 41\n"
    );
    fs::write(dir.join("tests/reference.toml"), wrong).unwrap();
    let run = sandbox.run(&dir, &["call", "--runtime", runtime, "--format", "json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[reference]: 4 of 5 calls are not as `"), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let problems: Vec<&str> = report["calls"].as_array().unwrap().iter().map(|call| call["problem"].as_str().unwrap_or("none")).collect();
    assert_eq!(
        problems,
        [
            "argument 0: 1 of 4 elements differ: element 1 is 2.25, expected 2",
            "none",
            "`crashes` was killed by signal 11 (SIGSEGV)",
            "it ended well; expected an error with `anything`",
            "it returned 42, expected 41",
        ]
    );
    fs::write(dir.join("tests/reference.toml"), "[[call]]\nfunction = \"answer\"\n").unwrap();
    let run = sandbox.run(&dir, &["call", "--runtime", runtime]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[reference]: ") && run.stderr.contains("line 1, column 1: nothing is expected"), "{}", run.stderr);
}

/// Each backend against the other, by a stand-in driver whose memory is that of the process.
#[test]
fn backends_are_compared() {
    let sandbox = Sandbox::without_torch();
    let reference = "[[call]]\nfunction = \"relu\"\ninputs = [{ shape = [64] }, { shape = [64] }]\nagainst = \"cpu\"\n\n\
                     [[call]]\nfunction = \"scaled\"\ninputs = [{ shape = [3, 5], strides = [5, 1] }, 0.1]\nagainst = \"cpu\"\n";
    let dir = project(&sandbox, reference);
    let driver = stand_in_libcuda(&sandbox.path("driver"), &[90], 0);
    let runtime = text(&kernels().runtimes[0]);
    let run = |args: &[&str]| {
        let args = [&["call", "--runtime", runtime], args].concat();
        Run::of(sandbox.kiln(&dir, &args).env("LD_LIBRARY_PATH", &driver))
    };
    let on_device = run(&["--device", "cuda"]);
    assert_eq!(on_device.code, Some(0), "{}{}", on_device.stdout, on_device.stderr);
    assert!(on_device.stdout.starts_with("ok      relu(float32[64] on cuda:0, float32[64] on cuda:0)\n"), "{}", on_device.stdout);
    // What others are compared with is called, and has to end well.
    let itself = run(&[]);
    assert_eq!(itself.code, Some(0), "{}{}", itself.stdout, itself.stderr);
    assert!(itself.stdout.starts_with("alone   relu(float32[64], float32[64]): others are compared with this\n"), "{}", itself.stdout);
    assert!(itself.stderr.contains("2 calls with") && itself.stderr.contains(", 2 of them for others"), "{}", itself.stderr);
    let report: Value = serde_json::from_str(&run(&["--format", "json"]).stdout).unwrap();
    assert_eq!((&report["calls"][0]["ok"], &report["calls"][0]["compared"]), (&true.into(), &false.into()), "{report}");
    // Another function under the same name: the device's is off.
    let variant = dir.join(format!("build/tvm-ffi01-cpu-{}-linux/kern_1234567.so", std::env::consts::ARCH));
    let bytes = fs::read(&variant).unwrap();
    let (relu, off) = (b"__tvm_ffi_relu\0", b"__tvm_ffi_relx\0");
    let at = bytes.windows(relu.len()).position(|window| window == relu).unwrap();
    let mut other = bytes;
    other[at..at + off.len()].copy_from_slice(off);
    fs::write(&variant, other).unwrap();
    let lacking = run(&["--device", "cuda"]);
    let said = "failed  relu(float32[64] on cuda:0, float32[64] on cuda:0): the variant for cpu gives nothing to compare with: there is no function `relu`";
    assert!(lacking.code == Some(1) && lacking.stdout.contains(said), "{}{}", lacking.stdout, lacking.stderr);
    assert!(lacking.stderr.contains("error[reference]: 2 of 2 calls"), "{}", lacking.stderr);
}

#[test]
fn directories_without_a_fitting_variant() {
    let sandbox = Sandbox::without_torch();
    let dir = sandbox.path("project");
    let runtime = text(&kernels().runtimes[0]);
    fs::create_dir_all(dir.join("build/torch213-cxx11-cpu-x86_64-linux")).unwrap();
    fs::write(dir.join("build/torch213-cxx11-cpu-x86_64-linux/metadata.json"), "{}").unwrap();
    let run = sandbox.run(&dir, &["call", "--runtime", runtime]);
    let said = format!("has no variant of tvm-ffi for cpu on {}-linux: there is `torch213-cxx11-cpu-x86_64-linux`", std::env::consts::ARCH);
    assert!(run.code == Some(1) && run.stderr.contains(&said), "{}", run.stderr);
    let run = sandbox.run(&dir, &["call", "--runtime", runtime, "--variant", "torch213-cxx11-cpu-x86_64-linux"]);
    assert!(run.code == Some(1) && run.stderr.contains("holds no shared library"), "{}", run.stderr);
    let run = sandbox.run(&sandbox.path("home"), &["call", "--runtime", runtime]);
    assert!(run.code == Some(1) && run.stderr.contains("no variants found"), "{}", run.stderr);
}

/// Several that fit, and one for another processor.
#[test]
fn of_several_variants_one_is_meant() {
    let sandbox = Sandbox::without_torch();
    let dir = project(&sandbox, "[[call]]\nfunction = \"answer\"\nreturns = 42\n");
    let runtime = text(&kernels().runtimes[0]);
    let built = |framework: &str, arch: &str| dir.join(format!("build/{framework}-cpu-{arch}-linux"));
    let add = |variant: &Path, library: &Path| {
        fs::create_dir_all(variant).unwrap();
        fs::write(variant.join("metadata.json"), "{}").unwrap();
        fs::copy(library, variant.join("kern_1234567.so")).unwrap();
    };
    let source = sandbox.path("home/arm.c");
    fs::write(&source, "int __tvm_ffi_relu(void) { return 0; }").unwrap();
    let arm = sandbox.path("home/arm.so");
    let compiled = Command::new("aarch64-linux-gnu-gcc").args(["-shared", "-fPIC", "-o"]).arg(&arm).arg(&source).status().unwrap();
    assert!(compiled.success());
    add(&built("tvm-ffi01", "aarch64"), &arm);
    let run = sandbox.run(&dir, &["call", "--runtime", runtime]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "ok      answer()\n"), "the one for this processor is meant: {}", run.stderr);
    let run = sandbox.run(&dir, &["call", "--runtime", runtime, "--variant", "tvm-ffi01-cpu-aarch64-linux"]);
    assert!(run.code == Some(1) && run.stderr.contains("error[other-machine]: "), "{}", run.stderr);
    add(&built("tvm-ffi02", std::env::consts::ARCH), &kernels().oldest);
    let run = sandbox.run(&dir, &["call", "--runtime", runtime]);
    let said = "error[variants]: several variants fit: `tvm-ffi01-cpu-x86_64-linux`, `tvm-ffi02-cpu-x86_64-linux`";
    assert!(run.code == Some(1) && run.stderr.contains(said), "{}", run.stderr);
    let run = sandbox.run(&dir, &["call", "--runtime", runtime, "--variant", "tvm-ffi01-cpu-x86_64-linux"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // By a pattern: what fits of several, and what of them none or more than one fits, which the command line has to say better.
    let with = |pattern: &str| sandbox.run(&dir, &["call", "--runtime", runtime, "--variant", pattern]);
    for pattern in ["tvm-ffi01-*", "tvm-ffi01-cpu-x86?64-*", "*01*"] {
        let run = with(pattern);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "ok      answer()\n"), "{pattern}: {}", run.stderr);
    }
    let run = with("tvm-ffi*");
    assert!(run.code == Some(2) && run.stderr.contains(said), "{}", run.stderr);
    for pattern in ["tvm-ffi9*", "tvm-ffi01"] {
        let run = with(pattern);
        let said = format!("error[usage]: there is no variant `{pattern}`: there is `tvm-ffi01-cpu-aarch64-linux`, ");
        assert!(run.code == Some(2) && run.stderr.contains(&said), "{}", run.stderr);
    }
    let own = built("tvm-ffi01", std::env::consts::ARCH);
    let run = sandbox.run(&dir, &["call", text(&own), "--runtime", runtime, "--variant", "tvm-ffi02*"]);
    assert!(run.code == Some(2) && run.stderr.contains("there is no variant `tvm-ffi02*`"), "{}", run.stderr);
    // Two libraries in one variant.
    fs::copy(&kernels().oldest, own.join("second.so")).unwrap();
    let run = sandbox.run(&dir, &["call", text(&own), "--runtime", runtime]);
    assert!(run.code == Some(1) && run.stderr.contains("there are several libraries: "), "{}", run.stderr);
}

/// Whole numbers that a double does not hold are never taken for equal.
#[test]
fn numbers_that_are_too_large_are_not_compared() {
    let sandbox = Sandbox::without_torch();
    let call = "[[call]]\nfunction = \"beyond\"\ninputs = [{ shape = [2], dtype = \"int64\" }]\n";
    let good = format!("{call}returns = 9007199254740993\n");
    let bad = format!(
        "{call}expected = [{{ input = 0, values = [9007199254740992, 9007199254740992] }}]\n\n{call}returns = 9007199254740992\n\n{call}returns = 9007199254740992.0\n"
    );
    let dir = project(&sandbox, &format!("{good}\n{bad}"));
    let run = sandbox.run(&dir, &["call", "--runtime", text(&kernels().runtimes[0]), "--format", "json"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let problems: Vec<&str> = report["calls"].as_array().unwrap().iter().map(|call| call["problem"].as_str().unwrap_or("none")).collect();
    assert_eq!(
        problems,
        [
            "none",
            "argument 0: element 0 is about 9007199254740992, and whole numbers beyond 2^53 are not compared",
            "it returned 9007199254740993, expected 9007199254740992",
            "it returned 9007199254740993, expected 9007199254740992.0: whole numbers beyond 2^53 are not compared with fractions",
        ]
    );
}

/// By its release, out of the store and without a network; an unknown one is told before anything is loaded.
#[test]
fn the_runtime_comes_out_of_the_catalog() {
    let sandbox = Sandbox::without_torch().with_cache(cache());
    let Kernels { oldest, .. } = kernels();
    for (args, name) in [(&["--runtime", OLDEST][..], OLDEST), (&[], NEWEST)] {
        let run = sandbox.run(&sandbox.path("home"), &[&["call", "--offline", text(oldest), "-f", "answer"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "answer() returned 42\n"), "{}", run.stderr);
        let run = sandbox.run(&sandbox.path("home"), &[&["call", "--offline", text(oldest), "--list"], args].concat());
        assert!(run.stderr.contains(&format!("with tvm-ffi {name}\n")), "{}", run.stderr);
    }
    let run = sandbox.run(&sandbox.path("home"), &["call", text(oldest), "--runtime", "0.2.0"]);
    assert!(run.code == Some(2) && run.stderr.contains("the catalog has no tvm-ffi 0.2.0"), "{}", run.stderr);
}

#[test]
fn times_stand_beside_a_copy() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    let bench = |args: &[&str]| {
        let args = [&["bench-kernel", text(oldest), "--runtime", text(&runtimes[0]), "--time", "1"], args].concat();
        sandbox.run(&sandbox.path("home"), &args)
    };
    let run = bench(&["-f", "relu", "--shape", "64x64", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["bytes"], 2 * 64 * 64 * 4);
    for side in ["call", "copy"] {
        let number = |name: &str| report[side][name].as_f64().unwrap();
        assert!(number("samples") >= 5.0 && number("bytes_per_s") > 0.0, "{report}");
        assert!(number("p10_ns") > 0.0 && number("p10_ns") <= number("median_ns") && number("median_ns") <= number("p90_ns"), "{report}");
    }
    let run = bench(&["-f", "relu"]);
    assert!(run.stdout.contains("1024 bytes of tensors: ") && run.stdout.contains("a copy that moves as many: "), "{}", run.stdout);
    let run = bench(&["-f", "throws"]);
    assert!(run.code == Some(1) && run.stderr.contains("`throws` raised `InternalError`: the kernel's own words"), "{}", run.stderr);
    let run = bench(&[]);
    assert!(run.code == Some(2) && run.stderr.contains("there are several functions: `answer`"), "{}", run.stderr);
}

/// What a kernel leaves running ends with its call.
#[test]
fn what_a_kernel_starts_goes_with_it() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    let run = call(&sandbox, oldest, &runtimes[0], &["-f", "forks", "--arg", "tensor"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let child = run.stderr.lines().find_map(|line| line.strip_prefix("forked ")).unwrap().to_owned();
    assert!(is_gone(&child), "{child} still runs");
}

/// Nor is a session of its own, without a parent that is left, a way out: however the call ends.
#[test]
fn what_leaves_its_session_goes_too() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    let left = |stderr: &str| stderr.lines().find_map(|line| line.strip_prefix("left ")).unwrap_or_else(|| panic!("{stderr}")).to_owned();
    for (how, code, said) in [
        ("0", 0, ""),
        ("1", 1, "`leaves` did not end within 2 s"),
        ("2", 1, "`leaves` was killed by signal 11 (SIGSEGV)"),
        ("3", 1, "`leaves` ended the process with exit code 7"),
        ("4", 1, "`leaves` was killed by signal 9 (SIGKILL)"),
    ] {
        let limit = if how == "1" { "2" } else { "300" };
        let run = call(&sandbox, oldest, &runtimes[0], &["-f", "leaves", "--timeout", limit, "--arg", "tensor", "--arg", how]);
        assert!(run.code == Some(code) && run.stderr.contains(said), "{how}: {:?} {}", run.code, run.stderr);
        let process = left(&run.stderr);
        assert!(is_gone(&process), "{how}: {process} still runs");
    }
    // Nor is the end of the one who called.
    let args = ["call", text(oldest), "--runtime", text(&runtimes[0]), "-f", "leaves", "--arg", "tensor", "--arg", "1"];
    let mut kiln = sandbox.kiln(&sandbox.path("home"), &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _deadline = Deadline::of(&kiln);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(kiln.stderr.take().unwrap()));
    let process = lines.find_map(|line| line.unwrap().strip_prefix("left ").map(str::to_owned)).unwrap();
    kiln.kill().unwrap();
    kiln.wait().unwrap();
    assert!(is_gone(&process), "{process} still runs");
}

/// Ctrl-C ends the call and what was called; so does the end of the one who called.
#[test]
fn nothing_goes_on_alone() {
    let sandbox = Sandbox::without_torch();
    let Kernels { oldest, runtimes, .. } = kernels();
    for (signal, code) in [(rustix::process::Signal::INT, Some(130)), (rustix::process::Signal::KILL, None)] {
        let scratch = sandbox.path(format!("scratch {code:?}"));
        fs::create_dir(&scratch).unwrap();
        let args = ["call", text(oldest), "--runtime", text(&runtimes[0]), "-f", "hangs", "--arg", "tensor"];
        let mut kiln = sandbox.kiln(&sandbox.path("home"), &args);
        let mut child = kiln.env("TMPDIR", &scratch).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let _deadline = Deadline::of(&child);
        let worker = loop {
            std::thread::sleep(Duration::from_millis(10));
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            let workers = fs::read_to_string(children).unwrap();
            let answers = walkdir::WalkDir::new(&scratch).into_iter().flatten().find(|entry| entry.file_name() == "answers.jsonl");
            let calling = answers.is_some_and(|file| fs::read_to_string(file.path()).unwrap().contains("\"calling\""));
            if let Some(worker) = workers.split_whitespace().next().filter(|_| calling) {
                break worker.to_owned();
            }
        };
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        // One that was killed is waited for by somebody else.
        assert!(is_gone(&worker), "the worker {worker} still runs");
    }
}
