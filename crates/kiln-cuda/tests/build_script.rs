//! What a build script gets of [`kiln_cuda::Build`], with the real nvcc out of wheels. No device is needed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kiln_cuda::{Build, BuildError, Cargo, Library};
use kiln_object::{archive, fatbin};

/// The toolkit that the tests of `kiln` use as well.
const RELEASE: &str = "13.2";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A package with a build script.
struct Package {
    scratch: tempfile::TempDir,
    variables: BTreeMap<OsString, OsString>,
}

impl Package {
    /// In the environment of the tests, which may name the index.
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join(name);
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kiln-cache");
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in [
            ("CARGO_MANIFEST_DIR", dir.as_os_str()),
            ("OUT_DIR", dir.join("target/out").as_os_str()),
            ("TARGET", TARGET.as_ref()),
            ("HOST", TARGET.as_ref()),
            ("NUM_JOBS", "2".as_ref()),
            ("KILN_CACHE_DIR", cache.as_os_str()),
        ] {
            variables.insert(name.into(), value.into());
        }
        for (name, text) in
            files.iter().chain([&("target/out/made.cu", "#include \"k.cuh\"\n__global__ void made(int *p) { *p = value(); }\n")])
        {
            fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
            fs::write(dir.join(name), text).unwrap();
        }
        Self { scratch, variables }
    }

    fn dir(&self) -> PathBuf {
        PathBuf::from(&self.variables[&OsString::from("CARGO_MANIFEST_DIR")])
    }

    fn build(&self) -> Build {
        let mut build = Build::new(&Cargo::new(self.variables.clone()).unwrap());
        // Not what another test, or another day, has made.
        build.release(RELEASE).include("my headers").capabilities(["8.0"]).shared_cache(false);
        build
    }
}

const KERNEL: (&str, &str) = (
    "cuda dir/k 1.cu",
    "#include \"k.cuh\"\nstatic const char text[] = TEXT;\n__global__ void k(int *p) { *p = value(); }\n\
     extern \"C\" const char *go(int *p) { k<<<1, 1>>>(p); return text; }\n",
);
const HEADER: (&str, &str) = ("my headers/k.cuh", "#pragma once\n__device__ inline int value() { return 1; }\n");

/// The code in a library, each image once.
fn code(library: &Library) -> Vec<String> {
    let bytes = fs::read(library.archive()).unwrap();
    let members = archive::members(&bytes).unwrap();
    let fatbins = members.iter().flat_map(|member| fatbin::of_elf(member.data).unwrap());
    let mut code: Vec<String> = fatbins.flat_map(|fatbin| fatbin.images).map(|image| image.to_string()).collect();
    code.sort();
    code.dedup();
    code
}

fn said(result: Result<Library, BuildError>) -> String {
    format!("{:?}", result.unwrap_err())
}

#[test]
fn each_capability_is_in_the_library_and_only_what_changed_is_compiled() {
    let package = Package::new("a package", &[KERNEL, HEADER, ("host/h.cpp", "#include <cuda_runtime.h>\nint n = CUDART_VERSION;\n")]);
    let build = || {
        let mut build = package.build();
        build.file(KERNEL.0).file(package.dir().join("target/out/made.cu")).file("host/h.cpp").define("TEXT", "\"a, b\"");
        build.capabilities(["9.0a", "8.0+PTX"]).compile("k").unwrap()
    };
    let library = build();
    assert_eq!(code(&library), ["compute_80", "sm_80", "sm_90a"]);
    assert_eq!(library.archs(), ["8.0+PTX", "9.0a"]);
    let text = library.to_string();
    for part in [
        "static=k\n",
        "dylib=cudart\n",
        "dylib=stdc++\n",
        "my headers/k.cuh\n",
        "cuda dir/k 1.cu\n",
        "out/made.cu\n",
        "env-changed=CUDA_HOME\n",
    ] {
        assert!(text.contains(part), "{part} {text}");
    }
    // What a link needs of the runtime is its names, and where the library itself is the program has to know.
    let stub = kiln_object::elf::dynamic_file(&package.dir().join("target/out/kiln-link/libcudart.so")).unwrap();
    assert_eq!(stub.soname.as_deref(), Some("libcudart.so.13"));
    assert!(stub.exports.iter().any(|export| export.name == "cudaLaunchKernel"));
    assert!(library.runtime_dirs()[0].join("libcudart.so.13").is_file());

    assert_eq!(build().steps_run(), 0);
    fs::write(package.dir().join("host/h.cpp"), "int n = 2;\n").unwrap();
    assert_eq!(build().steps_run(), 2, "one unit and the archive");
    fs::write(package.dir().join(HEADER.0), "#pragma once\n__device__ inline int value() { return 2; }\n").unwrap();
    assert!(build().steps_run() > 4, "both units that include it");
}

#[test]
fn relocatable_code_is_linked() {
    let one = (
        "one.cu",
        "extern __device__ int shared_value();\n__global__ void k(int *p) { *p = shared_value(); }\nvoid go(int *p) { k<<<1, 1>>>(p); }\n",
    );
    let two = (
        "two.cu",
        "static_assert(__cplusplus < 202000, \"the level of the build script\");\n__device__ int shared_value() { return 2; }\n",
    );
    let package = Package::new("p", &[one, two, HEADER]);
    let library = package.build().files([one.0, two.0]).device_flag("-rdc=true").std("c++17").compile("linked").unwrap();
    assert_eq!(code(&library), ["sm_80"]);
    let bytes = fs::read(library.archive()).unwrap();
    assert!(archive::members(&bytes).unwrap().iter().any(|member| member.name.ends_with("device code.o")));
}

#[test]
fn what_nvcc_says_is_shown_once_and_as_it_is() {
    let package = Package::new("p", &[("bad.cu", "__global__ void k(int *p) {\n  *p = nothing;\n}\n"), HEADER]);
    let text = said(package.build().file("bad.cu").capabilities(["8.0", "9.0"]).compile("bad"));
    assert!(
        text.starts_with("failed to compile `bad.cu") && text.contains("bad.cu(2): error: identifier \"nothing\" is undefined"),
        "{text}"
    );
    assert!(!package.dir().join("target/out/libbad.a").exists());
}

#[test]
fn what_cannot_be_built_is_told_in_words_of_build_scripts() {
    let package = Package::new("p", &[KERNEL, HEADER]);
    let mut build = package.build();
    build.file(KERNEL.0).define("TEXT", "\"\"");
    let old = said(build.clone().capabilities(["7.0"]).compile("k"));
    assert!(old.starts_with("CUDA 13.2 has no code for `7.0`") && old.contains("`.release(..)`") && !old.contains("--"), "{old}");
    let none = said(build.clone().capabilities(["sm_90"]).compile("k"));
    assert!(none.starts_with("`sm_90` is no compute capability\nhint: "), "{none}");
    let release = said(build.clone().release("9.9").compile("k"));
    assert!(release.starts_with("there is no CUDA 9.9 out of wheels: they have 13.0, "), "{release}");
    let directory = said(build.clone().toolkit("no/such").compile("k"));
    assert!(directory.starts_with("there is no toolkit of CUDA 13.2 in `") && directory.contains("CUDA_HOME"), "{directory}");
    let mut offline = Package::new("p", &[KERNEL, HEADER]);
    offline.variables.insert("CARGO_NET_OFFLINE".into(), "true".into());
    offline.variables.insert("KILN_CACHE_DIR".into(), offline.dir().join("empty").into());
    let text = said(offline.build().file(KERNEL.0).compile("k"));
    assert!(text.contains("is not in the store, and `CARGO_NET_OFFLINE` forbids to fetch it\nhint: "), "{text}");
    let flag = said(build.clone().device_flag("-ptx").compile("k"));
    assert!(flag.contains("`-ptx`"), "{flag}");
}

/// The usual compiler is a stand-in, which gives another number than the real one behind it.
#[test]
fn a_compiler_that_is_too_new_gives_way_unless_it_was_named() {
    let mut package = Package::new("p", &[("k.cu", "__global__ void k() {}\n"), HEADER]);
    let path = package.variables[&OsString::from("PATH")].clone();
    let real = std::env::split_paths(&path).map(|dir| dir.join("g++")).find(|file| file.is_file()).unwrap();
    let bin = package.scratch.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\ncase \"$*\" in *-dumpfullversion*) echo 99.1.0; exit;; esac\nexec '{}' \"$@\"\n", real.display());
    fs::write(bin.join("g++"), script).unwrap();
    fs::set_permissions(bin.join("g++"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(std::iter::once(bin.clone()).chain(std::env::split_paths(&path))).unwrap();
    package.variables.insert("PATH".into(), path);
    for name in ["CXX", "CC", "HOST_CXX", "HOST_CC"] {
        package.variables.remove(&OsString::from(name));
    }
    let text = package.build().file("k.cu").compile("k").unwrap().to_string();
    let refused = "CUDA 13.2 takes GCC up to 15, and the host compiler is GCC 99.1.0";
    assert!(text.contains(&format!("warning={refused}: GCC ")) && text.contains("` compiles instead\n"), "{text}");
    package.variables.insert("CXX".into(), bin.join("g++").into());
    let said = said(package.build().file("k.cu").compile("k"));
    assert!(said.starts_with(refused), "{said}");
}

#[test]
fn places_where_nvcc_cannot_work_and_other_systems() {
    let package = Package::new("a,b", &[KERNEL, HEADER]);
    let text = said(package.build().file(KERNEL.0).compile("k"));
    assert!(text.contains("nvcc cannot work in a directory with `,` in its path"), "{text}");
    let mut package = Package::new("p", &[KERNEL, HEADER]);
    package.variables.insert("TARGET".into(), "aarch64-unknown-linux-gnu".into());
    let text = said(package.build().file(KERNEL.0).compile("k"));
    assert!(text.starts_with("CUDA code for `aarch64-unknown-linux-gnu` is compiled on such a machine"), "{text}");
    assert!(package.scratch.path().is_dir());
}
