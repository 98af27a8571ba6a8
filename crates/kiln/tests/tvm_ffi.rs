//! Kernels for tvm-ffi: what is in the library, which releases load it, and that it is the same on another processor.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_object::elf;
use serde_json::Value;
use support::project::{commit_all, write};
use support::tvm_ffi::build_toml;
use support::{Run, Sandbox, TVM_FFI, tree};

/// Functions of a tensor, of texts and of numbers; one throws. The extension's own name is compiled in.
const BINDING: &str = r#"
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

void twice(const float *from, float *to, int64_t count);

#define TEXT_OF(NAME) #NAME
#define TEXT(NAME) TEXT_OF(NAME)

static void tensor_twice(tvm::ffi::TensorView from, tvm::ffi::TensorView to) {
  if (from.dtype().code != kDLFloat || from.dtype().bits != 32 || from.numel() != to.numel()) {
    TVM_FFI_THROW(TypeError) << "twice: expected two tensors of float32, of one size";
  }
  twice(static_cast<const float *>(from.data_ptr()), static_cast<float *>(to.data_ptr()), from.numel());
}

static tvm::ffi::String own_name() { return TEXT(TVM_FFI_EXTENSION_NAME); }

TVM_FFI_DLL_EXPORT_TYPED_FUNC(twice, tensor_twice)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(name, own_name)
"#;

/// No header of tvm-ffi in it.
const TWICE: &str = "#include <cstdint>\n#ifdef CPU_KERNEL\nvoid twice(const float *from, float *to, int64_t count) {\n  \
                     for (int64_t i = 0; i < count; ++i) to[i] = 2 * from[i];\n}\n#endif\n";

/// Writes the project; `settings` is its `kiln.toml`.
fn project(dir: &Path, settings: &str) -> PathBuf {
    write(dir, "build.toml", &build_toml("twice", "cpu/twice.cpp"));
    write(dir, "binding.cpp", BINDING);
    write(dir, "cpu/twice.cpp", TWICE);
    write(dir, "tvm-ffi-ext/tiny/__init__.py", "from ._ops import ops\n");
    if !settings.is_empty() {
        write(dir, "kiln.toml", settings);
    }
    dir.to_owned()
}

/// Builds and gives the only extension.
fn built(sandbox: &Sandbox, dir: &Path, more: &[&str]) -> PathBuf {
    let run = sandbox.build(dir, more);
    for step in run.reason("step-finished") {
        assert_eq!(step["output"], "", "a compiler or linker has something to say");
    }
    let extensions = tree::extensions(&dir.join("build"));
    assert_eq!(extensions.len(), 1);
    extensions[0].clone()
}

fn record(dir: &Path, variant: &str) -> Value {
    let text = fs::read_to_string(dir.join("build/kiln-build.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["variants"][variant].clone()
}

/// A directory that `cargo xtask setup` makes.
fn environment(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join(name);
    assert!(dir.exists(), "`{}` is missing: `cargo xtask setup` makes it", dir.display());
    dir
}

#[test]
fn the_library_has_its_functions_and_needs_no_torch_and_no_python() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("a project, ü"), "");
    commit_all(&dir);
    let extension = built(&sandbox, &dir, &[]);
    let file = extension.file_name().unwrap().to_str().unwrap();
    let id = file.strip_suffix(".so").unwrap();
    assert!(id.starts_with("_tiny_cpu_") && !file.contains("abi3"), "{file}");
    assert_eq!(extension.parent().unwrap().file_name().unwrap(), "tvm-ffi01-cpu-x86_64-linux");

    let dynamic = elf::dynamic_file(&extension).unwrap();
    assert_eq!(dynamic.soname.as_deref(), Some(file));
    let exports: Vec<&str> = dynamic.exports.iter().map(|export| export.name.as_str()).collect();
    assert_eq!(exports, ["__tvm_ffi_name", "__tvm_ffi_twice"]);
    let foreign: Vec<&String> = dynamic
        .needed
        .iter()
        .filter(|name| !["libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libm.so.6"].contains(&name.as_str()))
        .collect();
    assert_eq!(foreign, ["libtvm_ffi.so"]);

    let record = record(&dir, "tvm-ffi01-cpu-x86_64-linux");
    assert_eq!((&record["framework"], &record["toolchains"]["tvm-ffi"]["version"]), (&"tvm-ffi".into(), &TVM_FFI.into()));
    assert!(record["torch"].is_null() && record["toolchains"]["torch"].is_null(), "{record}");
    assert_eq!(record["floor"]["policy"], "manylinux_2_28");

    // Another checkout of the same commit gives the same bytes, and one unit does not know the extension's name.
    let other = project(&sandbox.path("other"), "");
    commit_all(&other);
    assert_eq!(fs::read(built(&sandbox, &other, &["--no-cache"])).unwrap(), fs::read(&extension).unwrap());
    write(&other, "tvm-ffi-ext/tiny/__init__.py", "from ._ops import ops as ops\n");
    commit_all(&other);
    let run = sandbox.build(&other, &[]);
    assert_eq!(run.ran("Compiling"), ["binding.cpp"], "only what uses the name is compiled again");
}

/// A name that a newer release brings is no name for variants that the older one loads.
#[test]
fn what_the_named_release_lacks_is_a_link_error() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("project"), "");
    let newer = "#include <tvm/ffi/c_api.h>\nextern \"C\" int TVMFFISetCustomAllocator(void *);\n\
                 __attribute__((constructor)) static void tiny_allocator() { TVMFFISetCustomAllocator(nullptr); }\n";
    write(&dir, "cpu/twice.cpp", &format!("{newer}{TWICE}"));
    let run = sandbox.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("TVMFFISetCustomAllocator") && run.stderr.contains("tvm-ffi 0.1.9"), "{}", run.stderr);

    write(&dir, "kiln.toml", "[build]\ntvm-ffi = \"0.1.99\"\n");
    let run = sandbox.run(&dir, &["build"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error[unknown-tvm-ffi]: tvm-ffi 0.1.99 for linux-x86_64 is not in the catalog"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: the catalog has 0.1.9, 0.1.10"), "{}", run.stderr);
}

/// Runs in an emulator, with the tvm-ffi of that processor: its oldest and its newest release.
#[test]
fn another_processor_computes_the_same() {
    let sandbox = Sandbox::new();
    let dir = project(&sandbox.path("project"), "");
    let run = sandbox.build(&dir, &["--target", "aarch64-linux"]);
    assert!(run.reason("check").is_empty(), "{}", run.stdout);
    let extensions = tree::extensions(&dir.join("build"));
    let [extension] = extensions.as_slice() else { panic!("{extensions:?}") };
    assert_eq!(extension.parent().unwrap().file_name().unwrap(), "tvm-ffi01-cpu-aarch64-linux");
    assert_eq!(elf::dynamic_file(extension).unwrap().machine, elf::Machine::AARCH64);

    let headers = environment("tvm-ffi-oldest-aarch64").join("tvm_ffi");
    let host = sandbox.path("host");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tvm_ffi/host.cpp");
    let mut compile = Command::new("aarch64-linux-gnu-g++");
    compile.arg(source).arg("-o").arg(&host).args(["-std=c++17", "-Wall", "-Werror", "-ldl", "-ltvm_ffi"]);
    compile
        .arg("-L")
        .arg(headers.join("lib"))
        .arg("-I")
        .arg(headers.join("include"))
        .arg("-I")
        .arg(headers.join("3rdparty/dlpack/include"));
    let compiled = Run::of(&mut compile);
    assert_eq!(compiled.code, Some(0), "{}", compiled.stderr);
    for release in ["tvm-ffi-oldest-aarch64", "tvm-ffi-newest-aarch64"] {
        let libraries = environment(release).join("tvm_ffi/lib");
        let mut emulated = Command::new("qemu-aarch64");
        emulated.args(["-L", "/usr/aarch64-linux-gnu", "-E"]).arg(format!("LD_LIBRARY_PATH={}", libraries.display()));
        let run = Run::of(emulated.arg(&host).arg(extension));
        let id = extension.file_stem().unwrap().to_str().unwrap();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{release}: {}", run.stdout);
        assert_eq!(run.stdout, format!("{id}\n2 -4 6\ntwice: expected two tensors of float32, of one size\n"), "{release}");
    }
}
