//! Libraries of all formats, made by clang and lld.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_object::exports::{Exports, Format, of_file};

const SOURCE: &str = "
#ifdef _WIN32
#define OFFERED __declspec(dllexport)
#else
#define OFFERED __attribute__((visibility(\"default\")))
#endif
extern \"C\" OFFERED int plain() { return 1; }
namespace kiln { OFFERED int mangled(int a) { return a; } OFFERED extern int data; int data = 3; int hidden() { return 4; } }
";

/// Runs a program in `dir`.
fn run(dir: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap_or_else(|cause| panic!("{program}: {cause}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A library for a target, linked by one of lld's programs.
fn library(dir: &Path, target: &str, linker: &str, args: &[&str]) -> PathBuf {
    std::fs::write(dir.join("in.cpp"), SOURCE).unwrap();
    run(
        dir,
        "clang++-19",
        &[
            &format!("--target={target}"),
            "-fvisibility=hidden",
            if target.contains("windows") { "-DPE" } else { "-fPIC" },
            "-ffreestanding",
            "-c",
            "in.cpp",
            "-o",
            "in.o",
        ],
    );
    run(dir, linker, args);
    dir.join("out")
}

fn sorted(exports: Exports) -> (Format, Option<String>, Vec<String>) {
    let mut names = exports.names;
    names.sort();
    (exports.format, exports.library, names)
}

const ITANIUM: [&str; 3] = ["_ZN4kiln4dataE", "_ZN4kiln7mangledEi", "plain"];

#[test]
fn names_of_linux() {
    let dir = tempfile::tempdir().unwrap();
    let path = library(dir.path(), "x86_64-linux-gnu", "ld.lld-19", &["-shared", "-soname", "libx.so", "in.o", "-o", "out"]);
    let (format, name, names) = sorted(of_file(&path).unwrap());
    assert_eq!((format, name.as_deref()), (Format::Elf, Some("libx.so")));
    assert_eq!(names, ITANIUM);
}

/// The names have no underscore in front, although the file does.
#[test]
fn names_of_macos() {
    let dir = tempfile::tempdir().unwrap();
    let link = ["-dylib", "-arch", "arm64", "-platform_version", "macos", "14.0", "14.0", "-install_name", "@rpath/libx.dylib"];
    let rest = ["-undefined", "dynamic_lookup", "in.o", "-o", "out"];
    for trie in [&["-no_fixup_chains"][..], &["-fixup_chains"]] {
        let path = library(dir.path(), "arm64-apple-macos14.0", "ld64.lld-19", &[&link[..], trie, &rest].concat());
        let (format, name, names) = sorted(of_file(&path).unwrap());
        assert_eq!((format, name.as_deref()), (Format::MachO, Some("@rpath/libx.dylib")), "{trie:?}");
        assert_eq!(names, ITANIUM, "{trie:?}");
    }
    // An object has a symbol table and no trie.
    let (_, name, names) = sorted(of_file(&dir.path().join("in.o")).unwrap());
    assert_eq!((name, names), (None, ITANIUM.map(str::to_owned).to_vec()));
}

#[test]
fn names_of_windows() {
    let dir = tempfile::tempdir().unwrap();
    let path = library(dir.path(), "x86_64-pc-windows-msvc", "lld-link-19", &["/dll", "/noentry", "/nodefaultlib", "/out:x.dll", "in.o"]);
    std::fs::rename(dir.path().join("x.dll"), &path).unwrap();
    let (format, name, names) = sorted(of_file(&path).unwrap());
    assert_eq!((format, name.as_deref()), (Format::Pe, Some("x.dll")));
    assert_eq!(names, ["?data@kiln@@3HA", "?mangled@kiln@@YAHH@Z", "plain"]);
}

#[test]
fn damaged_libraries_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let macos =
        ["-dylib", "-arch", "arm64", "-platform_version", "macos", "14.0", "14.0", "-undefined", "dynamic_lookup", "in.o", "-o", "out"];
    let paths = [
        (library(dir.path(), "arm64-apple-macos14.0", "ld64.lld-19", &macos), "macos"),
        (
            library(dir.path(), "x86_64-pc-windows-msvc", "lld-link-19", &["/dll", "/noentry", "/nodefaultlib", "/out:out", "in.o"]),
            "windows",
        ),
    ];
    for (path, what) in paths {
        let bytes = std::fs::read(&path).unwrap();
        let changed = dir.path().join(format!("changed-{what}"));
        for at in (0..bytes.len().min(4096)).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            std::fs::write(&changed, damaged).unwrap();
            // Some changes are harmless; none may panic or go on for ever.
            let _ = of_file(&changed);
        }
        std::fs::write(&changed, &bytes[..64]).unwrap();
        assert!(of_file(&changed).is_err(), "{what}");
    }
    std::fs::write(dir.path().join("text"), "text").unwrap();
    assert_eq!(of_file(&dir.path().join("text")).unwrap_err().to_string(), "not a shared library");
}
