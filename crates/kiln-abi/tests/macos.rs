//! Files of macOS, linked by lld: each rule is broken once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_abi::{Expectation, Origins, Profile, PythonVersion, Report, check_file};

const VARIANT: &str = "torch-stable-abi211-metal-aarch64-darwin";
const SOURCE: &str = "
extern \"C\" int PyModule_Create2(void*, int); extern \"C\" int torch_call_dispatcher(int); extern \"C\" int objc_msgSend();
#ifdef MORE
extern \"C\" int MORE();
#else
static int more() { return 1; }
#define MORE more
#endif
extern \"C\" __attribute__((visibility(\"default\"))) int ENTRY() {
    return PyModule_Create2(0, torch_call_dispatcher(1)) + objc_msgSend() + MORE();
}";

fn run(dir: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap_or_else(|cause| panic!("{program}: {cause}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What one file differs in from a good one.
struct Made<'a> {
    defines: &'a [&'a str],
    minimum: &'a str,
    rpaths: &'a [&'a str],
    library: &'a str,
    strip: bool,
}

const GOOD: Made<'_> =
    Made { defines: &[], minimum: "26.0", rpaths: &["@loader_path/lib"], library: "@rpath/libtorch_cpu.dylib", strip: true };

fn link(dir: &Path, made: &Made<'_>) -> PathBuf {
    std::fs::write(dir.join("in.cpp"), SOURCE).unwrap();
    let mut compile = vec!["--target=arm64-apple-macos15.0", "-fvisibility=hidden", "-fPIC", "-ffreestanding", "-g", "-c", "in.cpp"];
    compile.extend(["-o", "in.o"]);
    if !made.defines.iter().any(|define| define.starts_with("-DENTRY")) {
        compile.push("-DENTRY=PyInit__k_metal_1");
    }
    run(dir, "clang++-19", &[&compile[..], made.defines].concat());
    for (file, library, names) in
        [("torch.tbd", made.library, "_torch_call_dispatcher, _torch_new"), ("objc.tbd", "/usr/lib/libobjc.A.dylib", "_objc_msgSend")]
    {
        let text = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '{library}'\nexports:\n  - targets: [ arm64-macos ]\n    \
             symbols: [ {names} ]\n...\n"
        );
        std::fs::write(dir.join(file), text).unwrap();
    }
    let mut args = vec!["-dylib", "-arch", "arm64", "-platform_version", "macos", made.minimum, "27.0", "-install_name", "@rpath/x.so"];
    args.extend(made.rpaths.iter().flat_map(|path| ["-rpath", path]));
    args.extend(["-undefined", "dynamic_lookup", "in.o", "torch.tbd", "objc.tbd", "-o", "x.so"]);
    if made.strip {
        args.push("-S");
    }
    run(dir, "ld64.lld-19", &args);
    dir.join("x.so")
}

/// Rules that a file breaks as a variant, and what else went wrong.
fn broken(variant: &str, made: &Made<'_>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = link(dir.path(), made);
    let (allowed, origins) = (BTreeSet::new(), Origins::default());
    let known = |_: &str, _: &str| None;
    let expected = Expectation {
        profile: Profile::Extension,
        floor: None,
        framework: None,
        compute: None,
        platform: None,
        id: Some("_k_metal_1"),
        python: PythonVersion::FLOOR,
        macos: None,
        allowed_libraries: &allowed,
        known_names: &known,
        origins: &origins,
        host_paths: &[],
        own: true,
    };
    let mut report = Report::default();
    check_file(&file, "x.so", &expected.for_variant(&variant.parse().unwrap()), &mut report);
    let mut rules: Vec<String> = report.findings.iter().map(|finding| finding.rule.to_string()).collect();
    rules.extend(report.failures.iter().map(|failure| failure.cause.clone()));
    rules
}

#[test]
fn a_good_file_breaks_no_rule() {
    assert_eq!(broken(VARIANT, &GOOD), [""; 0]);
}

#[test]
fn each_rule_is_broken_by_one_change() {
    for (made, rule) in [
        (Made { minimum: "26.1", ..GOOD }, "macos-floor"),
        (Made { rpaths: &["/opt/homebrew/lib"], ..GOOD }, "run-path"),
        (Made { library: "/opt/homebrew/lib/libtorch_cpu.dylib", ..GOOD }, "needed-library"),
        (Made { library: "@rpath/libpython3.12.dylib", ..GOOD }, "needed-library"),
        (Made { library: "@rpath/libtorch_python.dylib", ..GOOD }, "needed-library"),
        (Made { strip: false, ..GOOD }, "host-path"),
        (Made { defines: &["-DMORE=nobody_has"], ..GOOD }, "unversioned-symbol"),
        (Made { defines: &["-DMORE=PyUnicode_AsUTF8"], ..GOOD }, "python-abi"),
        (Made { defines: &["-DMORE=PyObject_CallNoArgs"], ..GOOD }, "python-abi-newer"),
        (Made { defines: &["-DMORE=torch_new"], ..GOOD }, "torch-shim-unknown"),
    ] {
        assert_eq!(broken(VARIANT, &made), [rule], "{rule}");
    }
    let other_entry = Made { defines: &["-DENTRY=PyInit_other"], ..GOOD };
    assert_eq!(broken(VARIANT, &other_entry), ["entry-point", "exports"]);
}

#[test]
fn the_name_of_the_variant_counts() {
    // The processor's variants are taken on older systems.
    let newer = Made { minimum: "15.1", ..GOOD };
    assert_eq!(broken("torch-stable-abi211-cpu-aarch64-darwin", &newer), ["macos-floor"]);
    assert_eq!(broken("torch-stable-abi211-cpu-aarch64-darwin", &Made { minimum: "15.0", ..GOOD }), [""; 0]);
    assert_eq!(broken("torch-stable-abi211-cpu-aarch64-linux", &GOOD), ["machine"]);
    assert_eq!(broken("torch-stable-abi211-cpu-x86_64-darwin", &GOOD), ["machine"]);
    // tvm-ffi has neither Python nor torch.
    let rules: BTreeSet<String> = broken("tvm-ffi01-cpu-aarch64-darwin", &Made { minimum: "15.0", ..GOOD }).into_iter().collect();
    assert!(rules.contains("python-use") && rules.contains("needed-library"), "{rules:?}");
}
