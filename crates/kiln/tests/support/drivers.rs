//! Stand-ins for drivers of devices that test machines do not have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a stand-in for another driver in `dir`: `name` is that of its source, `library` what it is loaded by.
pub fn stand_in(dir: &Path, name: &str, library: &str) {
    fs::create_dir_all(dir).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/support/stand_in_{name}.c"));
    let done = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(dir.join(library)).arg(source).status().unwrap();
    assert!(done.success());
}

/// Makes a stand-in for NVIDIA's driver below `dir` and gives the directory that has it. `devices` are capabilities without their
/// points; `init` is what the driver says when it is started.
pub fn stand_in_libcuda(dir: &Path, devices: &[u32], init: u32) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/stand_in_libcuda.c");
    let listed: Vec<String> = devices.iter().map(ToString::to_string).collect();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(dir.join("libcuda.so.1")).arg(source);
    // A list is never empty in C.
    compile.arg(format!("-DDEVICES={},0", if listed.is_empty() { "0".to_owned() } else { listed.join(",") }));
    compile.args([format!("-DCOUNT={}", devices.len()), format!("-DINIT={init}")]);
    assert!(compile.status().unwrap().success());
    dir.to_owned()
}
