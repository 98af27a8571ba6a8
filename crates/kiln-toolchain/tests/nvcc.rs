//! The floor under nvcc: its host pass uses the compiler's headers, and the host compiler links its objects. Only `cargo xtask test
//! --full` runs this, which installs nvcc for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

#[path = "floor/mod.rs"]
mod kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use kit::{LEVEL, MADE, beyond, data, linked, run_check};

/// Where the packages of NVIDIA's compiler are installed.
fn toolkit() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("nvcc/site/nvidia/cu13");
    assert!(dir.join("bin/nvcc").exists(), "`{}` is missing: `cargo xtask setup --full` makes it", dir.display());
    dir
}

#[test]
fn nvcc_drives_the_host_pass() {
    let toolkit = toolkit();
    for (host, level) in [("g++-11", "c++17"), ("g++-12", "c++17"), ("g++-12", "c++20"), ("clang++-19", "c++17")] {
        let dir = tempfile::tempdir().unwrap();
        let mut nvcc = Command::new(toolkit.join("bin/nvcc"));
        // clang makes no unique symbols, and refuses the option.
        let own = if host.starts_with('g') { ",-fno-gnu-unique" } else { "" };
        nvcc.args(["-ccbin", host, "-allow-unsupported-compiler", &format!("-std={level}"), "-O2", "-cudart", "shared", "-Xcompiler"]);
        nvcc.arg(format!("-fPIC,-fvisibility=hidden{own}")).args(["-gencode", "arch=compute_90,code=sm_90", "-c", "-o", "x.o"]);
        let output = nvcc.arg(data("kernel.cu")).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{host} {level}: {}", String::from_utf8_lossy(&output.stderr));

        let runtime = toolkit.join("lib/libcudart.so.13");
        let library = linked(&MADE.floor, dir.path(), &[runtime.to_str().unwrap()]);
        let beyond: Vec<String> = beyond(LEVEL, &library).into_iter().filter(|name| !name.contains("libcudart.so.13")).collect();
        assert_eq!(beyond, Vec::<String>::new(), "{host} {level}");
        assert!(library.needed.iter().any(|name| name == "libcudart.so.13"), "{:?}", library.needed);
        assert_eq!(library.exports.iter().map(|export| export.name.as_str()).collect::<Vec<_>>(), ["check"], "{host} {level}");
        run_check(dir.path(), &toolkit.join("lib"));
    }
}
