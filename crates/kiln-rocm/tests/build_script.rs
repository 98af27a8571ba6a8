//! What a build script gets of [`kiln_rocm::Build`], with the distribution's compiler. No device is needed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_object::{archive, offload};
use kiln_rocm::{Build, BuildError, Cargo, Library};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const KERNEL: &str = "#include \"k.h\"\n#include <hip/hip_runtime.h>\n__global__ void k(int *p) { *p = VALUE; }\n\
                      extern \"C\" void go(int *p) { k<<<1, 1>>>(p); }\n";

/// A package with a build script.
struct Package {
    _scratch: tempfile::TempDir,
    dir: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl Package {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("a package");
        let cache = scratch.path().join("cache");
        let mut variables: BTreeMap<OsString, OsString> = [("PATH", std::env::var_os("PATH").unwrap())].map(|(n, v)| (n.into(), v)).into();
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
            [("hip/k.hip", KERNEL), ("include/k.h", "#define VALUE 1\n"), ("h.cpp", "#include <hip/hip_runtime.h>\nhipStream_t none;\n")]
        {
            fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
            fs::write(dir.join(name), text).unwrap();
        }
        fs::create_dir_all(dir.join("target/out")).unwrap();
        Self { _scratch: scratch, dir, variables }
    }

    fn build(&self) -> Build {
        let mut build = Build::new(&Cargo::new(self.variables.clone()).unwrap());
        build.file("hip/k.hip").include("include").toolkit("/usr").capabilities(["gfx90a", "gfx1201"]);
        build
    }
}

/// The code in a library.
fn code(library: &Library) -> Vec<String> {
    let bytes = fs::read(library.archive()).unwrap();
    let bundles = archive::members(&bytes).unwrap().into_iter().flat_map(|member| offload::of_elf(member.data).unwrap());
    bundles.flat_map(|bundle| bundle.entries).map(|entry| entry.code.target).collect()
}

fn said(result: Result<Library, BuildError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn each_architecture_is_in_the_library_and_only_what_changed_is_compiled() {
    let package = Package::new();
    let build = || package.build().file("h.cpp").compile("k").unwrap();
    let library = build();
    assert_eq!(
        (code(&library), library.archs()),
        (["gfx90a", "gfx1201"].map(str::to_owned).to_vec(), ["gfx90a", "gfx1201"].map(str::to_owned).as_slice())
    );
    let text = library.to_string();
    for part in ["static=k\n", "dylib=amdhip64\n", "dylib=stdc++\n", "include/k.h\n", "hip/k.hip\n", "env-changed=ROCM_PATH\n"] {
        assert!(text.contains(part), "{part} {text}");
    }
    let stub = kiln_object::elf::dynamic_file(&package.dir.join("target/out/kiln-link/libamdhip64.so")).unwrap();
    assert_eq!(stub.soname.as_deref(), Some("libamdhip64.so.5"), "that of the ROCm at hand");
    assert!(library.runtime_dirs()[0].join("libamdhip64.so.5").exists());
    assert_eq!(build().steps_run(), 0);
    fs::write(package.dir.join("h.cpp"), "int n = 2;\n").unwrap();
    assert_eq!(build().steps_run(), 2, "one unit and the archive");
    fs::write(package.dir.join("include/k.h"), "#define VALUE 2\n").unwrap();
    assert!(build().steps_run() >= 5, "both halves, their bundle and the archive");
}

#[test]
fn a_program_runs_as_far_as_a_machine_without_devices_lets_it() {
    let package = Package::new();
    let library = package.build().toolkit("/usr/bin/hipcc").capabilities(["gfx90a"]).compile("k").unwrap();
    assert_eq!(code(&library), ["gfx90a"]);
    let program = package.dir.join("program");
    let main = "#include <cstdio>\n#include <hip/hip_runtime_api.h>\nextern \"C\" void go(int *);\n\
                int main() { int n = 0; go(nullptr); std::printf(\"%d\", hipGetDeviceCount(&n)); }\n";
    fs::write(package.dir.join("main.cpp"), main).unwrap();
    let mut command = std::process::Command::new("g++");
    command.arg("-D__HIP_PLATFORM_AMD__=1").arg(package.dir.join("main.cpp")).arg(library.archive()).arg("-o").arg(&program);
    let linked = command.arg("-lamdhip64").output().unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let run = std::process::Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "100", "no device: {}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn what_cannot_be_built_is_told_in_words_of_build_scripts() {
    let package = Package::new();
    let nowhere = Path::new("no such directory");
    let text = said(package.build().toolkit(nowhere).compile("k"));
    assert!(text.starts_with("there is no ROCm in `") && text.ends_with("no such directory`"), "{text}");
    let text = said(package.build().release("1.2").compile("k"));
    assert!(text.starts_with("there is no ROCm 1.2 in `/usr`: `/usr` is ROCm 5.2"), "{text}");
    assert!(said(package.build().toolkit("/usr/bin/hipcc").compile("k")).contains("Clang 15 does not compile for gfx1201"));
    fs::write(package.dir.join("k.cu"), "").unwrap();
    let text = said(package.build().file("k.cu").compile("k"));
    assert!(text.contains("converter"), "{text}");
}
