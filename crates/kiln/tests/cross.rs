//! An example for another processor.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::path::Path;

use kiln_object::elf::{self, Machine};
use support::{Run, Sandbox, shared_cache, tree};

/// The stable ABI: built here with the distribution's cross-compiler, against torch's headers for that processor.
#[test]
fn an_example_for_aarch64() {
    let sandbox = Sandbox::without_torch().with_cache(shared_cache().to_owned());
    let project = sandbox.path("rms-norm");
    tree::copy_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples/rms-norm"), &project);
    let out = project.join("build");
    let mut build = sandbox.kiln(&project, &["build", "--target", "aarch64-linux", "--backend", "cpu"]);
    // It may fetch, so it sees what the caller says of indexes; the cross-compiler is no program of the sandbox.
    build.envs(std::env::vars_os()).env("KILN_CACHE_DIR", sandbox.cache());
    let run = Run::of(&mut build);
    assert_eq!(run.code, Some(0), "{}", run.stderr);

    let extensions = tree::extensions(&out);
    let [extension] = extensions.as_slice() else { panic!("{extensions:?}") };
    assert_eq!(extension.parent().unwrap().file_name().unwrap(), "torch-stable-abi211-cpu-aarch64-linux");
    let dynamic = elf::dynamic_file(extension).unwrap();
    assert_eq!(dynamic.machine, Machine::AARCH64);
    let system = ["ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"];
    let torch = ["libtorch.so", "libtorch_cpu.so", "libc10.so", "libgomp.so.1"];
    let odd: Vec<&String> =
        dynamic.needed.iter().filter(|name| !system.contains(&name.as_str()) && !torch.contains(&name.as_str())).collect();
    assert!(odd.is_empty() && dynamic.needed.iter().any(|name| name == "libtorch_cpu.so"), "{:?}", dynamic.needed);

    let check = sandbox.run(&out, &["check", out.to_str().unwrap()]);
    assert_eq!((check.code, check.stderr.as_str()), (Some(0), "     Checked 2 files: nothing found\n"), "{}", check.stderr);
}
