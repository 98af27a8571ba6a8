//! What this crate writes, judged by the loader itself: the `kernels` package, which shares no code with Kiln.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln::git::Scm;
use kiln::matrix::{Matrix, Target, select};
use kiln::ops_id::{Purpose, unique_id};
use kiln::package::{Contents, metadata, place, provenance};
use kiln::project::{Project, source_set};
use kiln_format::OpsId;
use kiln_format::metadata::Builder;
use kiln_format::variant::{Cpu, Os};

const LINUX: Target = Target { cpu: Cpu::X86_64, os: Os::Linux };

/// An interpreter that has the `kernels` package: that of the test environment, or the one in `KILN_TEST_PYTHON`.
fn python() -> PathBuf {
    let set_up = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-env").join("base/bin/python");
    let python = std::env::var_os("KILN_TEST_PYTHON").map_or(set_up, PathBuf::from);
    assert!(python.exists(), "`{}` is missing: `cargo xtask setup` makes it", python.display());
    python
}

/// Writes a project and packages every variant of it. The shared objects are no real ones: nothing here loads them.
fn packaged(build_toml: &str, init: &str) -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let root = tmp.path();
    for dir in ["torch-ext", "tvm-ffi-ext"] {
        fs::create_dir_all(root.join(dir).join("my_kernel")).unwrap();
        fs::write(root.join(dir).join("my_kernel/__init__.py"), init).unwrap();
    }
    fs::write(root.join("build.toml"), build_toml).unwrap();
    fs::write(root.join("torch-ext/my_kernel/typed.pyi"), "").unwrap();
    fs::write(root.join("fake.so"), "no object").unwrap();

    let project = Project::open(root).unwrap();
    let build = project.build.as_ref().unwrap_or_else(|| panic!("{}", project.render()));
    let unique = unique_id(&Scm::None, &source_set(root, build).unwrap(), Purpose::Release).unwrap();
    for selected in select(build, &Matrix::builtin().unwrap(), LINUX).variants {
        let id = OpsId::new(&build.general.name, selected.backend, &unique).unwrap();
        let library = root.join("fake.so");
        let name = selected.variant.extension_name(&id);
        let contents = Contents::collect(root, build, &id, name.as_deref().map(|name| (library.as_path(), name))).unwrap();
        let archs = if selected.backend.as_str() == "cuda" { vec!["9.0".to_owned()] } else { Vec::new() };
        let builder = Builder { version: "kiln 0.1.0".into(), commit: None };
        let metadata = metadata(build, selected.backend, selected.kind, &id, &archs, provenance(builder, &Scm::None, false)).unwrap();
        place(&root.join("build"), &selected.variant.name(), &contents, contents.digest().unwrap(), &metadata, &|_| true).unwrap();
    }
    tmp
}

fn check(project: &Path, options: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/check_project.py");
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(python())
        .args(["-I", "-B"])
        .arg(script)
        .arg(project)
        .args(options)
        .env("HOME", home.path())
        .env("HF_HUB_OFFLINE", "1")
        .env_remove("LOCAL_KERNELS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const GENERAL: &str = "[general]\nname = \"my-kernel\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\n";

#[test]
fn a_noarch_kernel_is_accepted_and_loads_without_torch() {
    let text =
        format!("{GENERAL}backends = [\"cpu\", \"cuda\", \"metal\", \"rocm\", \"xpu\", \"cann\", \"neuron\", \"tpu\"]\n[torch-noarch]\n");
    let project = packaged(&text, "value = 42\n");
    let output = check(project.path(), &["--load"]);
    let names: Vec<_> = output.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["torch-cpu", "torch-cuda", "torch-metal", "torch-neuron", "torch-npu", "torch-rocm", "torch-tpu", "torch-xpu"]);
}

#[test]
fn compiled_variants_are_accepted() {
    for stable in ["", "stable-abi = \"2.11\"\n"] {
        let text = format!(
            "{GENERAL}backends = [\"cpu\", \"cuda\", \"metal\"]\nkernel-depends = [{{ repo-id = \"org/dep\", version = 2 }}]\n\
             upstream = \"https://example.com/k.git\"\n[torch]\nsrc = [\"b.cpp\"]\n{stable}\
             [kernel.a]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = [\"a.cpp\"]\n\
             [kernel.b]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"a.cu\"]\n"
        );
        let output = check(packaged(&text, "").path(), &[]);
        assert!(output.contains("-cu130-x86_64-linux _my_kernel_cuda_") && output.contains("torch-metal _my_kernel_metal_"), "{output}");
    }
}

/// One kernel, three ways: cuda by the stable ABI, rocm by the C++ ABI, xpu in Python; and the same from a file of an old edition.
#[test]
fn a_mixed_kernel_is_accepted() {
    let rest = "[kernel.a]\nbackend = \"rocm\"\ndepends = [\"torch\"]\nsrc = [\"a.hip\"]\n\
                [kernel.b]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"a.cu\"]\n";
    let mixed = format!(
        "{GENERAL}backends = [\"cuda\", \"rocm\", \"xpu\"]\n[general.xpu]\npython-depends = [\"onednn\"]\n\
         [torch]\nsrc = [\"b.cpp\"]\nstable-abi = {{ cuda = \"2.11\", cpu = \"2.11\" }}\n{rest}"
    );
    let project = packaged(&mixed, "");
    let output = check(project.path(), &[]);
    let has = |part: &str| output.lines().any(|line| line.starts_with(part));
    assert!(has("torch-stable-abi211-cu130-x86_64-linux _my_kernel_cuda_"), "{output}");
    assert!(has("torch213-cxx11-rocm72-x86_64-linux _my_kernel_rocm_") && has("torch-xpu _my_kernel_xpu_"), "{output}");
    assert!(!has("torch213-cxx11-cu") && !has("torch-stable-abi211-rocm"), "{output}");
    let metadata = |variant: &str| fs::read_to_string(project.path().join("build").join(variant).join("metadata.json")).unwrap();
    assert!(metadata("torch-xpu").contains("onednn") && !metadata("torch-xpu").contains("archs"));
    assert!(metadata("torch-stable-abi211-cu130-x86_64-linux").contains("archs"));

    let old = format!("{GENERAL}backends = [\"cuda\", \"rocm\"]\n[torch]\nsrc = [\"b.cpp\"]\nstable-abi = \"2.11\"\n{rest}");
    let old = packaged(&old.replace("edition = 5\n", ""), "");
    let new = kiln_format::build::update("build.toml", &fs::read_to_string(old.path().join("build.toml")).unwrap(), None).unwrap().text;
    let names = |project: &Path| {
        let mut names: Vec<_> = fs::read_dir(project.join("build")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(old.path()), names(packaged(&new, "").path()));
}

/// Variants for NPUs: compiled under torch and under tvm-ffi, whose `build.toml` is Kiln's alone, and Python alone.
#[test]
fn kernels_for_npus_are_accepted() {
    let kernel = "[kernel.a]\nbackend = \"cann\"\ndepends = []\nsrc = [\"a.asc\", \"a.cpp\"]\n";
    for (framework, variant) in [("torch", "torch212-cxx11-cann85-x86_64-linux"), ("tvm-ffi", "tvm-ffi01-cann85-x86_64-linux")] {
        let project = packaged(&format!("{GENERAL}backends = [\"cann\"]\n[{framework}]\nsrc = [\"b.cpp\"]\n{kernel}"), "");
        let output = check(project.path(), &["--unreadable"]);
        assert!(output.lines().any(|line| line.starts_with(&format!("{variant} _my_kernel_cann_"))), "{output}");
        let metadata = fs::read_to_string(project.path().join("build").join(variant).join("metadata.json")).unwrap();
        assert!(metadata.contains("\"cann\"") && !metadata.contains("archs"), "{metadata}");
    }
    let python = packaged(&format!("{GENERAL}backends = [\"cann\"]\n[torch-noarch]\n"), "");
    assert!(check(python.path(), &[]).starts_with("torch-npu "));
}

#[test]
fn the_loader_notices_a_changed_byte() {
    let project = packaged(&format!("{GENERAL}backends = [\"cpu\"]\n[torch-noarch]\n"), "value = 42\n");
    fs::write(project.path().join("build/torch-cpu/__init__.py"), "value = 43\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/check_project.py");
    let output = Command::new(python()).args(["-I", "-B"]).arg(script).arg(project.path()).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("DigestValidationError") && text.contains("__init__.py"), "{text}");
}
