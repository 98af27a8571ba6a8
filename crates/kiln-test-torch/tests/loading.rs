//! A library that needs CUDA loads with what is made for it, and is told that there is no device.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use kiln_test_torch::{Missing, Name, build, library_dir, missing};

fn gcc(dir: &Path, args: &[&str]) {
    let output = Command::new("gcc").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A small "torch": one library that wants names with a version, one that wants names without, and one that both need.
fn site_packages(dir: &Path) {
    let lib = dir.join("torch/lib");
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::create_dir_all(dir.join("real")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    write("cudart.c", "int cudaGetDeviceCount(int *n) { return 0; } const char *cudaGetErrorString(int e) { return 0; }");
    write("cudart.map", "libcudart.so.13 { global: *; };");
    write("nccl.c", "int ncclCommAbort(void) { return 0; } int other(void) { return 0; }");
    write(
        "cpu.c",
        "int cudaGetDeviceCount(int *); const char *cudaGetErrorString(int);\n\
          int count(void) { int n; return cudaGetDeviceCount(&n); } const char *text(void) { return cudaGetErrorString(1); }",
    );
    write(
        "cuda.c",
        "int ncclCommAbort(void); int other(void); int count(void); int PyLong_FromLong(long);\n\
          int abort_all(void) { return ncclCommAbort() + other() + count(); } int py(void) { return PyLong_FromLong(1); }",
    );
    let shared = ["-shared", "-fPIC"];
    let make = |more: &[&str]| gcc(dir, &[&shared[..], more].concat());
    make(&["-o", "real/libcudart.so.13", "-Wl,-soname,libcudart.so.13", "-Wl,--version-script=cudart.map", "cudart.c"]);
    make(&["-o", "real/libnccl.so.2", "-Wl,-soname,libnccl.so.2", "nccl.c"]);
    let rpath = "-Wl,-rpath,$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN";
    make(&["-o", "torch/lib/libtorch_cpu.so", "-Wl,-soname,libtorch_cpu.so", rpath, "cpu.c", "real/libcudart.so.13"]);
    let needed = ["torch/lib/libtorch_cpu.so", "real/libnccl.so.2"];
    make(&[&["-o", "torch/lib/libtorch_cuda.so", "-Wl,-soname,libtorch_cuda.so", rpath, "cuda.c"], &needed[..]].concat());
}

fn names(library: &Missing) -> Vec<(&str, Option<&str>)> {
    library.names.iter().map(|name| (name.name.as_str(), name.version.as_deref())).collect()
}

#[test]
fn a_library_that_needs_cuda_loads() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    site_packages(dir);
    let missing = missing(dir).unwrap();
    assert_eq!(missing.iter().map(|library| library.soname.as_str()).collect::<Vec<_>>(), ["libcudart.so.13", "libnccl.so.2"]);
    let version = Some("libcudart.so.13");
    assert_eq!(names(&missing[0]), [("cudaGetDeviceCount", version), ("cudaGetErrorString", version)]);
    assert_eq!(names(&missing[1]), [("ncclCommAbort", None), ("other", None)]);

    let place = library_dir(dir).unwrap();
    assert_eq!(place, dir.join("nvidia/cu13/lib"));
    let made = build(&missing, &place, Path::new("cc")).unwrap();
    assert_eq!(made, [place.join("libcudart.so.13"), place.join("libnccl.so.2")]);
    let left: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let program = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            void *cuda = dlopen("./torch/lib/libtorch_cuda.so", RTLD_LAZY);
            if (!cuda) { puts(dlerror()); return 1; }
            int (*count)(void) = (int (*)(void))dlsym(cuda, "count");
            int (*all)(void) = (int (*)(void))dlsym(cuda, "abort_all");
            const char *(*text)(void) = (const char *(*)(void))dlsym(cuda, "text");
            printf("%d %d %s\n", count(), all(), text());
        }"#;
    std::fs::write(dir.join("main.c"), program).unwrap();
    gcc(dir, &["-o", "main", "main.c", "-ldl"]);
    let output = Command::new(dir.join("main")).current_dir(dir).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "100 2098 no CUDA here: made for tests\n");

    // What is there is not made again.
    assert_eq!(build(&missing, &place, Path::new("cc")).unwrap(), <[std::path::PathBuf; 0]>::default());
}

#[test]
fn one_name_may_have_several_versions() {
    let dir = tempfile::tempdir().unwrap();
    let name = |version: &str| Name { name: "f".to_owned(), version: Some(version.to_owned()) };
    let library = Missing { soname: "libx.so.1".to_owned(), names: BTreeSet::from([name("V_1"), name("V_2")]) };
    let made = build(&[library], dir.path(), Path::new("cc")).unwrap();
    let library = kiln_object::elf::dynamic_file(&made[0]).unwrap();
    let exports: Vec<_> =
        library.exports.iter().map(|export| (export.name.as_str(), export.version.as_deref().unwrap(), export.default)).collect();
    assert!(exports.contains(&("f", "V_1", true)) && exports.contains(&("f", "V_2", false)), "{exports:?}");
}

#[test]
fn failures_say_where() {
    let dir = tempfile::tempdir().unwrap();
    let text = missing(dir.path()).unwrap_err().to_string();
    assert!(text.contains("torch") && text.contains("No such file"), "{text}");
    let library = Missing { soname: "libx.so.1".to_owned(), names: BTreeSet::new() };
    let text = build(&[library], dir.path(), Path::new("/nonexistent/cc")).unwrap_err().to_string();
    assert!(text.starts_with("cannot build `libx.so.1`: No such file"), "{text}");
}
