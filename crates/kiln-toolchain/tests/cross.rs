//! Compilers for another processor, and the floor that they link with. What they make runs in an emulator.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use kiln_graph::{Arg, Config, Executor, Interrupt, Piece, WorkDir};
use kiln_object::baseline::{Baseline, System};
use kiln_object::elf::{self, Dynamic, Machine};
use kiln_toolchain::floor::{Floor, FloorLevel, SHIMS};
use kiln_toolchain::host::{Choice, Family, HostCompiler, HostError, HostSearch, find};

const TARGET: Machine = Machine::AARCH64;
const LOADER: &str = "ld-linux-aarch64.so.1";
/// Where the distribution keeps the libraries of the other processor.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The compiler that `cxx` names, or the first on PATH.
fn compiler(cxx: Option<&str>, machine: Option<Machine>) -> Result<HostCompiler, HostError> {
    let dir = tempfile::tempdir().unwrap();
    let cxx = cxx.map(|value| Choice { value: value.to_owned(), origin: "--cxx".to_owned() });
    let search = HostSearch { cxx, machine, path: PATH.into(), ..HostSearch::default() };
    let cache = dir.path().join("compilers.json");
    let found = find(&search, &cache)?;
    // What was found is kept for this processor only.
    assert_eq!(find(&search, &cache)?.probes, 0);
    Ok(found.compiler)
}

#[test]
fn the_distributions_cross_compiler_is_found() {
    let host = compiler(None, Some(TARGET)).unwrap();
    assert!(host.path.ends_with("aarch64-linux-gnu-g++"), "{}", host.path.display());
    assert_eq!((host.family, host.target.as_str(), host.args.len()), (Family::Gnu, "aarch64-linux-gnu", 0));
    let libraries: Vec<&str> = host.runtime.libraries.iter().map(|file| file.name.as_str()).collect();
    assert!(libraries.contains(&LOADER) && libraries.contains(&"libstdc++.so.6"), "{libraries:?}");
    for file in &host.runtime.libraries {
        assert_eq!(elf::dynamic_file(&file.path).unwrap().machine, TARGET, "{}", file.path.display());
    }
    assert!(host.runtime.static_cxx.is_some());
    assert!(host.runtime.names().unwrap().contains("_ZNSaIcEC1Ev"));
    // This machine's own is as it always was.
    let native = compiler(None, Some(Machine::X86_64)).unwrap();
    assert_eq!(native, compiler(None, None).unwrap());
    assert_ne!(native.identity, host.identity);
}

#[test]
fn clang_is_told_what_to_compile_for() {
    let host = compiler(Some("clang++-19"), Some(TARGET)).unwrap();
    assert_eq!((host.family, host.args.as_slice()), (Family::Clang, &["--target=aarch64-linux-gnu".to_owned()][..]));
    assert!(host.target.starts_with("aarch64-"), "{}", host.target);
    // Whoever says it gets just that.
    let told = compiler(Some("clang++-19 --target=aarch64-linux-gnu"), Some(TARGET)).unwrap();
    assert_eq!(told.args, host.args);
}

#[test]
fn compilers_for_other_processors_are_told() {
    let told = |error: HostError| format!("{error}\nhint: {}", error.hint().unwrap());
    insta::assert_snapshot!(told(compiler(Some("g++"), Some(TARGET)).unwrap_err()), @"
    `/usr/bin/g++` compiles for `x86_64-linux-gnu`, not for aarch64
    hint: name a compiler for it with `--cxx`, such as `aarch64-linux-gnu-g++` or `clang++`
    ");
    insta::assert_snapshot!(told(compiler(Some("aarch64-linux-gnu-g++"), None).unwrap_err()), @"
    `/usr/bin/aarch64-linux-gnu-g++` compiles for `aarch64-linux-gnu`, not for x86_64
    hint: name another one with `--cxx`, or say what to build for with `--target`
    ");
    // Of the same processor, but nothing that a Python there can load.
    insta::assert_snapshot!(told(compiler(Some("g++ -m64 -m32"), None).unwrap_err()), @"
    `/usr/bin/g++` compiles for `x86_64-linux-gnu -m32`, not for x86_64
    hint: name another one with `--cxx`, or say what to build for with `--target`
    ");
    assert!(compiler(Some("g++ -m32 -m64"), None).is_ok());
    let empty = tempfile::tempdir().unwrap();
    let search = HostSearch { machine: Some(TARGET), path: empty.path().into(), ..HostSearch::default() };
    insta::assert_snapshot!(told(find(&search, &empty.path().join("compilers.json")).unwrap_err()), @"
    no C++ compiler for aarch64 found: PATH has none of `aarch64-linux-gnu-g++`, `aarch64-linux-gnu-c++`, `clang++`, `clang++-N`
    hint: install one (`g++-aarch64-linux-gnu` on Debian and Ubuntu), or name one with `--cxx`
    ");
}

/// Every shim is called, on the processor that it is for.
#[test]
fn code_for_another_processor_keeps_to_the_floor_and_runs() {
    for (cxx, levels) in [(None, &["-O0", "-Os", "-O2"][..]), (Some("clang++-19"), &["-O2"])] {
        let host = compiler(cxx, Some(TARGET)).unwrap();
        let place = tempfile::tempdir().unwrap();
        let floor = make(&host, &place.path().join("floors"));
        for level in levels {
            let dir = tempfile::tempdir().unwrap();
            let library = extension(&host, &floor, dir.path(), level);
            assert_eq!(library.machine, TARGET);
            assert_eq!(beyond(&library), Vec::<String>::new(), "{cxx:?} {level}");
            assert_eq!(library.exports.iter().map(|export| export.name.as_str()).collect::<Vec<_>>(), ["check"]);
            run(&host, dir.path());
        }
    }
}

/// Makes the floor of a compiler.
fn make(host: &HostCompiler, store: &Path) -> Floor {
    let ambient = BTreeMap::from([("PATH".to_owned(), PathBuf::from(PATH))]);
    let floor = Floor::new(host, TARGET, FloorLevel::Manylinux2_28, &ambient, store).unwrap();
    let work_dir = WorkDir::open(floor.work_dir()).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
    let failed = Mutex::new(String::new());
    let outcome = Executor::new(&work_dir, Config::default()).run(floor.graph(), &|event| {
        if let kiln_graph::Event::StepFailed { label, failure, output, .. } = event {
            *failed.lock().unwrap() += &format!("{label}: {failure:?}\n{}", String::from_utf8_lossy(output));
        }
    });
    assert!(outcome.is_ok(), "{}", failed.into_inner().unwrap());
    assert_eq!(outcome.counts().ran, SHIMS.len() + 2);
    floor.keep(&|output| outcome.output_path(output)).unwrap();
    floor
}

/// Calls the compiler in `dir`.
fn compile(host: &HostCompiler, dir: &Path, args: &[&str]) -> Output {
    let output = Command::new(&host.path).args(&host.args).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles the code that calls every shim and links it with the floor; what the linker says must be nothing.
fn extension(host: &HostCompiler, floor: &Floor, dir: &Path, level: &str) -> Dynamic {
    let source = data("shims.cpp");
    let mut args = vec!["-std=c++17", "-fPIC", "-fvisibility=hidden", level, "-c", "-o", "x.o", source.to_str().unwrap()];
    args.extend(host.accepts_no_gnu_unique.then_some("-fno-gnu-unique"));
    compile(host, dir, &args);
    let text = |arg: &Arg| -> String {
        let pieces = arg.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Path(_) => floor.dir().display().to_string(),
            other => panic!("{other:?}"),
        });
        pieces.collect()
    };
    let link = floor.link();
    let (before, after): (Vec<String>, Vec<String>) = (link.before.iter().map(text).collect(), link.after.iter().map(text).collect());
    std::fs::write(dir.join("exports.map"), "{ global: check; local: *; };\n").unwrap();
    let mut args = vec!["-shared", "-o", "x.so", "x.o", "-Wl,--version-script=exports.map", "-Wl,--as-needed"];
    args.extend(before.iter().chain(&after).map(String::as_str));
    let said = compile(host, dir, &args);
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    elf::dynamic_file(&dir.join("x.so")).unwrap()
}

/// What the loader of the floor's system would miss.
fn beyond(library: &Dynamic) -> Vec<String> {
    let baseline = Baseline::of(System::Glibc2_28, TARGET).unwrap();
    let fits = |import: &&elf::Import| match (&import.version, &import.library) {
        (Some(version), Some(library)) => baseline.has(library, &import.name, version),
        _ => import.weak && matches!(&*import.name, "__gmon_start__" | "_ITM_registerTMCloneTable" | "_ITM_deregisterTMCloneTable"),
    };
    library.imports.iter().filter(|import| !fits(import)).map(|import| format!("{}@{:?}", import.name, import.version)).collect()
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/floor").join(name)
}

/// Runs `check` of the library in `dir` in an emulator of the processor; its faults are printed.
fn run(host: &HostCompiler, dir: &Path) {
    compile(host, dir, &["-x", "c++", "-o", "run", data("run.c").to_str().unwrap(), "-ldl"]);
    std::fs::create_dir(dir.join("work")).unwrap();
    let mut command = Command::new("qemu-aarch64");
    command.args(["-L", LIBRARIES]).arg(dir.join("run")).arg(dir.join("x.so")).arg(dir.join("work"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}
