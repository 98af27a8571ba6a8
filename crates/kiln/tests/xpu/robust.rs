//! Compilers that hang, lie or are elsewhere, and projects in odd places.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol};
use rustix::process::{Pid, Signal, kill_process};

use super::support::read_only::{ReadOnly, bound_by_modes};
use super::support::{self, Deadline, Run, tree};
use super::{Recorded, variants};

/// The state of a process as one letter; a dead one has X.
fn state(pid: &str) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).unwrap_or('X')
}

/// Waits for a file that a compiler writes when it hangs, and gives its text.
fn hears(file: &Path) -> String {
    let start = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(file) {
            return text;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nobody hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each question that is put to the compiler can hang: which release it is, what family, and which extensions of SPIR-V it has. Ctrl-C
/// ends the build at once, and the compiler with it.
#[test]
fn an_interrupt_ends_a_question_that_hangs() {
    let recorded = Recorded::new("2026.0");
    let dir = with_sycl_tla(&recorded);
    let unnamed = recorded.kit.with_file_name("latest");
    for (question, kit) in [("-E", &recorded.kit), ("-###", &recorded.kit), ("--version", &unnamed)] {
        if !kit.exists() {
            fs::rename(&recorded.kit, kit).unwrap();
        }
        let _old = fs::remove_file(kit.join("pid"));
        fs::write(kit.join("hangs"), question).unwrap();
        let mut command = recorded.sandbox.kiln(&dir, &["build", "--backend", "xpu"]);
        command.env("ONEAPI_ROOT", &recorded.root).env("SYCL_TLA_SRC_DIR", recorded.sandbox.path("tla"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let _deadline = Deadline::of(&child);
        let hanging = hears(&kit.join("pid"));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(130), "{question}: {}", run.stderr);
        assert!(run.stderr.contains("error[interrupted]: ") && !run.stderr.contains("server"), "{question}: {}", run.stderr);
        assert!("XZ".contains(state(&hanging)), "{question}: {}", run.stderr);
        assert!(!dir.join("build").exists(), "{question}");
        // What is not known is not taken for known: the next build asks again.
        fs::remove_file(kit.join("hangs")).unwrap();
    }
    fs::rename(&unnamed, &recorded.kit).unwrap();
    let run = Run::of(
        recorded
            .sandbox
            .kiln(&dir, &["build", "--backend", "xpu"])
            .env("ONEAPI_ROOT", &recorded.root)
            .env("SYCL_TLA_SRC_DIR", recorded.sandbox.path("tla")),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

/// A project with a kernel on SYCL*TLA, and the library beside it.
fn with_sycl_tla(recorded: &Recorded) -> PathBuf {
    let dir = recorded.project("");
    let text = fs::read_to_string(dir.join("build.toml")).unwrap();
    let (head, kernel) = text.split_once("[kernel.k]").unwrap();
    let kernel = kernel.replace("depends = []", "depends = [\"sycl_tla\"]");
    fs::write(dir.join("build.toml"), format!("{head}[kernel.k]{kernel}")).unwrap();
    let tla = recorded.sandbox.path("tla");
    let version = "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n";
    support::project::write(&tla, "include/cutlass/version.h", version);
    support::project::write(&tla, "tools/util/include/cutlass/util/more.h", "#define MORE 1\n");
    dir
}

/// A compiler that is none of Intel's, one whose answers say nothing, and one that ends at once.
#[test]
fn a_compiler_that_lies_is_told() {
    let recorded = Recorded::new("2025.3");
    let dir = recorded.project("");
    let icpx = recorded.kit.join("bin/icpx");
    let start = fs::read_to_string(&icpx).unwrap();
    let build = || recorded.run(&dir, &["build", "--backend", "xpu"]);

    // Another compiler by its name.
    let other = start.replace("import recording_icpx", "import os, sys\nos.execvp('g++', ['g++', *sys.argv[1:]])");
    fs::write(&icpx, other).unwrap();
    let run = build();
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("`bin/icpx`: it is GCC, and no compiler of Intel's"), "{}", run.stderr);
    assert!(!dir.join("build").exists());

    // One that cannot run.
    fs::write(&icpx, start.replace("import recording_icpx", "import sys\nsys.exit('no licence')")).unwrap();
    let run = build();
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains(&icpx.display().to_string()) && run.stderr.contains("no licence"), "{}", run.stderr);

    // One in a directory without a number that does not say which release it is.
    fs::write(&icpx, start.replace("import recording_icpx", "print('a compiler')")).unwrap();
    fs::rename(&recorded.kit, recorded.kit.with_file_name("latest")).unwrap();
    let run = build();
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("no `icpx` of oneAPI") && run.stderr.contains("does not say which release it is"), "{}", run.stderr);
}

/// The directory says another release than the compiler: loaders would take its variants for those of the other one.
#[test]
fn a_directory_with_another_release_is_refused() {
    let recorded = Recorded::new("2025.3");
    let dir = recorded.project("");
    let options = recorded.kit.join("bin/options.py");
    let program = fs::read_to_string(&options).unwrap();
    fs::write(options, program.replace("{release}.2", "2026.0.0")).unwrap();
    let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("`bin/icpx`: it says that it is 2026.0, and its directory is of 2025.3"), "{}", run.stderr);
}

/// Spaces, letters of other scripts, and a project that nothing is written into.
#[test]
fn odd_places_of_the_toolkit_and_the_project() {
    let mut recorded = Recorded::new("2025.3");
    let root = recorded.sandbox.path("Intel® one API, the ü");
    fs::rename(&recorded.root, &root).unwrap();
    recorded.kit = root.join("compiler/2025.3");
    recorded.root = root;
    let plain = recorded.project("");
    let dir = recorded.sandbox.path("my kernels, ядро");
    fs::rename(plain, &dir).unwrap();
    let before = tree::stamps(&dir);
    let read_only = ReadOnly::new(&dir);
    let out = recorded.sandbox.path("what is 'made' é");
    let args = ["build", "--backend", "xpu", "--out", out.to_str().unwrap()];
    let run = Run::of(bound_by_modes(&recorded.sandbox, &dir, &args).env("ONEAPI_ROOT", &recorded.root));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(before, tree::stamps(&dir), "something was written into the project");
    drop(read_only);
    let lines = recorded.lines();
    assert!(lines.iter().any(|line| line.compiles("k.cpp")) && lines.iter().any(|line| line.has("-shared")));
    let run = recorded.run(&dir, &["check", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    recorded.build(&dir, &["--backend", "xpu"]);
    assert_eq!(variants(&dir), ["torch-stable-abi211-xpu20253-x86_64-linux"]);
    // Nothing of either place is in the extension.
    let made = fs::read(tree::extensions(&out).remove(0)).unwrap();
    for place in ["one API", "kernels, "] {
        assert!(!made.windows(place.len()).any(|window| window == place.as_bytes()), "{place}");
    }
}

/// icpx turns copies of memory into calls of a library of its own. What it calls is linked as that library, which users of torch for XPU
/// have; what it also has of the C library is left to that.
#[test]
fn what_the_compiler_calls_by_itself_is_linked() {
    let recorded = Recorded::new("2025.3");
    let library = recorded.kit.join("lib/libintlc.so.5");
    let names = ["_intel_fast_memcpy", "memcpy"].map(|name| Symbol::plain(name, SymbolKind::Function));
    fs::write(&library, Stub::new("libintlc.so.5", Machine::X86_64, names.to_vec()).write().unwrap()).unwrap();
    let dir = recorded.project("");
    let source = "extern \"C\" void *_intel_fast_memcpy(void *, const void *, unsigned long);\n\
                  extern \"C\" void *memcpy(void *, const void *, unsigned long);\n\
                  int tiny_k(int x) { volatile unsigned long size = 4; int y, z; _intel_fast_memcpy(&y, &x, size); memcpy(&z, &y, size); return z; }\n";
    fs::write(dir.join("k.cpp"), format!("{source}{}", support::project::kept("tiny_k(1)"))).unwrap();
    recorded.build(&dir, &["--backend", "xpu"]);
    let extension = tree::extensions(&dir.join("build")).remove(0);
    let dynamic = kiln_object::elf::dynamic_file(&extension).unwrap();
    assert!(dynamic.needed.contains(&"libintlc.so.5".to_owned()), "{:?}", dynamic.needed);
    let copies = dynamic.imports.iter().find(|import| import.name == "memcpy").unwrap();
    assert!(copies.version.is_some(), "it is not the C library's: {copies:?}");
    let run = recorded.run(&dir, &["check", "build"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    fs::remove_file(library).unwrap();
    let run = recorded.run(&dir, &["build", "--backend", "xpu"]);
    assert!(run.code == Some(1) && run.stderr.contains("undefined symbol `_intel_fast_memcpy`"), "{}", run.stderr);
}
