//! The checkers of others on the same files: where theirs and ours can be compared they agree, and what only ours sees is shown.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Kit, TORCH, check, codes, run};
use kiln_abi::Origins;

/// An interpreter with the checkers of others.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("oracles/bin/python");
    assert!(python.exists(), "`{}` is missing: run `cargo xtask setup`", python.display());
    python
}

/// Verdicts of one file, by checker: `ok`, or what it found.
type Verdicts = BTreeMap<String, String>;

/// Asks auditwheel, kernel-abi-check and abi3audit about all files in one process.
fn ask(files: &[PathBuf]) -> Vec<Verdicts> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/oracles.py");
    let text = run(Command::new(python()).arg(script).args(files));
    let mut verdicts = vec![Verdicts::new(); files.len()];
    for line in text.lines() {
        let mut words = line.splitn(3, '\t');
        let (index, checker, verdict) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        verdicts[index.parse::<usize>().unwrap()].insert(checker.to_owned(), verdict.to_owned());
    }
    verdicts
}

fn takes(kit: &Kit, name: &str, version: &str, soname: &str) -> PathBuf {
    let source = format!("extern void {name}(void); void use(void) {{ {name}(); }}");
    let libraries: &[(&str, &[(&str, &str)])] = if soname.is_empty() { &[] } else { &[(soname, &[(name, version)])] };
    kit.extension(&source, libraries, &[])
}

#[test]
fn verdicts_agree_where_they_are_about_the_same() {
    let kit = Kit::new();
    // File, whether the floor holds by versions alone, whether Python's stable ABI is kept.
    let newer_python = takes(&kit, "PyObject_CallNoArgs", "", "");
    let files = [
        (takes(&kit, "pow", "GLIBC_2.2.5", "libm.so.6"), true, true),
        (takes(&kit, "pow", "GLIBC_2.29", "libm.so.6"), false, true),
        (takes(&kit, "malloc", "GLIBC_2.28", "libc.so.6"), true, true),
        (takes(&kit, "_ZSt9terminatev", "GLIBCXX_3.4.24", "libstdc++.so.6"), true, true),
        (takes(&kit, "_ZSt9terminatev", "GLIBCXX_3.4.25", "libstdc++.so.6"), false, true),
        (takes(&kit, "__cxa_throw", "CXXABI_1.3.11", "libstdc++.so.6"), true, true),
        (takes(&kit, "__cxa_throw", "CXXABI_1.3.12", "libstdc++.so.6"), false, true),
        (takes(&kit, "_Unwind_Resume", "GCC_7.0.0", "libgcc_s.so.1"), true, true),
        (takes(&kit, "PyUnicode_AsUTF8", "", ""), true, false),
        (kit.stripped(&newer_python), true, false),
        (newer_python, true, false),
        (takes(&kit, "PyList_New", "", ""), true, true),
    ];
    let paths: Vec<PathBuf> = files.iter().map(|(path, ..)| path.clone()).collect();
    for ((path, floor, python), verdicts) in files.iter().zip(ask(&paths)) {
        let report = check(path, TORCH, &Origins::default());
        let found = codes(&report);
        assert_eq!(!found.contains(&"floor-version"), *floor, "{report:#?}");
        assert_eq!(verdicts["auditwheel"] == "ok", *floor, "{verdicts:?} {report:#?}");
        assert_eq!(!found.iter().any(|code| code.starts_with("python-abi")), *python, "{report:#?}");
        assert_eq!(verdicts["abi3audit"] == "ok", *python, "{verdicts:?} {report:#?}");
    }
    // This one reads the symbol table that stripping removes.
    let verdicts = ask(&[kit.stripped(&takes(&kit, "PyUnicode_AsUTF8", "", "")), takes(&kit, "PyUnicode_AsUTF8", "", "")]);
    assert_eq!(verdicts[0]["kernel-abi-check"], "ok");
    assert_ne!(verdicts[1]["kernel-abi-check"], "ok");
}

/// Files that version-reading checkers accept and that no old system loads.
#[test]
fn bad_files_that_others_accept() {
    let kit = Kit::new();
    let source = "static int a; int *table[] = { &a }; int **get(void) { return table; }";
    let stream = "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev";
    let code = "__asm__(\".text\\n.quad secret\\n\"); int secret;";
    let bad = [
        ("floor-file", takes(&kit, "pthread_create", "GLIBC_2.2.5", "libc.so.6")),
        ("floor-symbol", takes(&kit, "memcpy", "GLIBC_2.2.6", "libc.so.6")),
        ("unversioned-symbol", takes(&kit, "arc4random", "", "")),
        ("unversioned-symbol", takes(&kit, "malloc", "", "")),
        ("needed-library", kit.extension("", &[("libcuda.so.1", &[])], &[])),
        ("run-path", kit.extension(source, &[], &["-Wl,-rpath,/opt/cuda/lib"])),
        ("packed-relocations", kit.extension(source, &[], &["-Wl,-z,pack-relative-relocs"])),
        ("executable-stack", kit.extension(source, &[], &["-Wl,-z,execstack"])),
        ("exports", kit.extension("__attribute__((visibility(\"default\"))) int helper;", &[], &[])),
        ("torch-internal", takes(&kit, "_ZN2at4testEv", "", "libtorch_cpu.so")),
        ("torch-shim-unknown", takes(&kit, "torch_new_thing", "", "libtorch_cpu.so")),
        ("runtime-from-torch", takes(&kit, stream, "", "libc10.so")),
        ("text-relocations", kit.extension(code, &[], &["-Wl,-z,notext"])),
        ("entry-point", kit.link(&[&kit.object("int nothing;", &[])], &[])),
    ];
    let paths: Vec<PathBuf> = bad.iter().map(|(_, path)| path.clone()).collect();
    for ((code, path), verdicts) in bad.iter().zip(ask(&paths)) {
        let variant = if ["torch-internal", "torch-shim-unknown"].contains(code) { common::STABLE } else { TORCH };
        assert_eq!(codes(&check(path, variant, &Origins::default())), [*code]);
        assert!(verdicts.len() == 3 && verdicts.values().all(|verdict| verdict == "ok"), "{code}: {verdicts:?}");
    }
}
