//! With the real compilers of this machine: what they make is what `kiln-object` reads, and a made device library is one that Clang takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_object::offload;

const KERNELS: &str = r#"#include <hip/hip_runtime.h>
template <typename T> __global__ void scale(T *x, float f) { x[threadIdx.x] = sinf(x[threadIdx.x]) * f; }
extern "C" void launch(float *x, float f) { scale<float><<<1, 64>>>(x, f); }
"#;

/// A scratch directory with a source.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("k.hip");
    std::fs::write(&source, KERNELS).unwrap();
    (dir, source)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|cause| panic!("{command:?}: {cause}; `cargo xtask setup` installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn clang(source: &Path, args: &[&str], output: &Path) {
    let mut command = Command::new("clang++-19");
    command.args(["-x", "hip", "--rocm-path=/usr", "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "-fPIC", "-O2"]);
    run(command.args(args).arg("-c").arg(source).arg("-o").arg(output));
}

#[test]
fn code_objects_tell_their_processor_and_their_kernels() {
    let (dir, source) = scratch();
    let mut codes = Vec::new();
    // Debian's device libraries know these.
    for arch in ["gfx90a", "gfx906:xnack+", "gfx1030"] {
        let code = dir.path().join("code.o");
        clang(&source, &["--offload-device-only", "--no-gpu-bundle-output", &format!("--offload-arch={arch}")], &code);
        let bytes = std::fs::read(&code).unwrap();
        let read = offload::code_object(&bytes).unwrap();
        assert_eq!((read.target.as_str(), read.kernels), (arch, vec!["_Z5scaleIfEvPT_f".to_owned()]));
        codes.push((arch.to_owned(), bytes));
    }
    let (bundle, object) = (dir.path().join("k.hipfb"), dir.path().join("k.o"));
    std::fs::write(&bundle, offload::bundle(&codes)).unwrap();
    clang(&source, &["--offload-host-only", "-Xclang", "-fcuda-include-gpubinary", "-Xclang", bundle.to_str().unwrap()], &object);
    let inside = offload::of_elf(&std::fs::read(&object).unwrap()).unwrap();
    let targets: Vec<&str> = inside[0].entries.iter().map(|entry| entry.target.as_str()).collect();
    assert_eq!((inside.len(), targets), (1, vec!["gfx90a", "gfx906:xnack+", "gfx1030"]));
}

#[test]
fn an_object_of_hipcc_reads_alike() {
    let (dir, source) = scratch();
    let object = dir.path().join("k.o");
    run(Command::new("hipcc").args(["--offload-arch=gfx90a", "-fPIC", "-O2", "-c"]).arg(&source).arg("-o").arg(&object));
    let inside = offload::of_elf(&std::fs::read(&object).unwrap()).unwrap();
    assert_eq!(inside.len(), 1);
    let entry = &inside[0].entries[0];
    assert_eq!((entry.target.as_str(), entry.code.target.as_str()), ("gfx90a", "gfx90a"));
    assert_eq!(entry.code.kernels, ["_Z5scaleIfEvPT_f"]);
}
