//! `kiln check-config` on whole projects: all errors at once, remarks with codes, silenced ones, patterns, and what others cannot read.

#![expect(clippy::unwrap_used, reason = "a test ends at its first failure")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn project(build_toml: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in ["torch-ext/ab/__init__.py", "b.cpp", "cuda/a.cu", "cuda/b.cu", "cuda/old/c.cu", "cpu/k.cpp"] {
        write(dir.path(), file, "");
    }
    write(dir.path(), "build.toml", build_toml);
    dir
}

/// Exit code, standard output and standard error.
fn check(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.arg("check-config").args(args).current_dir(dir).env_clear().env("HOME", dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const PATTERNS: &str = "[general]\nname = \"ab\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\", \"cuda\"]\n\n[torch]\nsrc = [\"b.cpp\"]\nstable-abi = { cpu = \"2.11\", xpu = \"2.11\" }\n\n\
    [kernel.c]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"cpu/*.cpp\"]\n\n[kernel.g]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"cuda/**/*.cu\", \"!cuda/old/**\"]\n";

#[test]
fn nothing_to_say_is_silence() {
    let dir = project(PATTERNS);
    assert_eq!(check(dir.path(), &[]), (0, String::new(), String::new()));
    assert_eq!(check(dir.path(), &["--strict"]), (0, String::new(), String::new()));
    assert_eq!(check(dir.path(), &["--format", "json"]).1.trim(), "[]");
}

#[test]
fn notes_for_those_who_ask() {
    let dir = project(PATTERNS);
    let (code, _, verbose) = check(dir.path(), &["-v"]);
    assert_eq!((code, verbose.matches("note[").count()), (0, 4), "{verbose}");
    assert!(verbose.contains("note[unused-stable-abi]: `stable-abi` for xpu has no effect: `backends` does not list it"), "{verbose}");
    let (code, _, peer) = check(dir.path(), &["--peer"]);
    assert_eq!((code, peer.matches("note[not-portable]").count(), peer.matches("note[").count()), (0, 3, 3), "{peer}");
    assert!(peer.contains("kernel-builder reads no patterns"), "{peer}");
}

#[test]
fn patterns_that_match_nothing_are_errors() {
    let dir = project(&PATTERNS.replace("cpu/*.cpp", "cpu/*.cc"));
    let (code, _, said) = check(dir.path(), &[]);
    assert_eq!((code, said.matches("error[empty-pattern]: `cpu/*.cc` matches no file").count()), (1, 1), "{said}");
    assert!(said.contains("--> build.toml:15:8"), "{said}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = PATTERNS
        .replace("b.cpp", "gone.cpp")
        .replace("\"MIT\"", "\"Apache 2\"")
        .replace("cuda = ", "cudaa = ")
        .replace("cuda/**/*.cu\", \"!cuda/old/**", "cuda/a.cu\", \"cuda/a.cu\", \"Cuda/b.cu");
    let dir =
        project(&text.replace("depends = []\nsrc = [\"cuda", "depends = [\"metal-cpp\"]\ncuda-capabilities = [\"9.9\"]\nsrc = [\"cuda"));
    let (code, json, _) = check(dir.path(), &["--format", "json"]);
    let reports: Vec<Value> = serde_json::from_str(&json).unwrap();
    let told: Vec<String> = reports
        .iter()
        .map(|report| {
            format!("{} {} {}:{}", report["level"].as_str().unwrap(), report["code"].as_str().unwrap(), report["line"], report["column"])
        })
        .collect();
    assert_eq!(code, 1);
    assert_eq!(
        told,
        [
            "warning license-id 5:11",
            "error missing-file 9:8",
            "warning unused-dependency 19:12",
            "warning unknown-arch 20:22",
            "warning duplicate-source 21:21",
            "error missing-file 21:34"
        ]
    );
    assert_eq!(reports[5]["hint"], "there is `cuda/b.cu`");
}

#[test]
fn remarks_are_silenced_with_a_reason() {
    let dir = project(&PATTERNS.replace("\"cpu/*.cpp\"", "\"cpu/k.cpp\", \"cpu/k.cpp\""));
    let (code, _, said) = check(dir.path(), &["--strict"]);
    assert_eq!((code, said.matches("warning[duplicate-source]").count()), (1, 1), "{said}");
    write(
        dir.path(),
        "kiln.toml",
        "[checks]\nduplicate-source = \"the second one is for the reader\"\nleading-dot = \"was needed once\"\n",
    );
    assert_eq!(check(dir.path(), &["--strict"]), (0, String::new(), String::new()));
    let (_, _, verbose) = check(dir.path(), &["-v"]);
    assert!(verbose.contains("note[unused-silence]: `checks.leading-dot` silences nothing\n  --> kiln.toml:3:15"), "{verbose}");
    write(dir.path(), "kiln.toml", "[checks]\nduplicate-source = \"\"\nmissing-file = \"x\"\n");
    let (code, _, said) = check(dir.path(), &[]);
    assert_eq!((code, said.matches("error[").count()), (1, 2), "{said}");
}
