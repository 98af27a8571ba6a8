//! Builds of torch that the package index lacks: pinned from an index of their own, built with, and built with again offline.
//!
//! The headers are torch's own, repacked into a wheel with a local version. Its libraries export what the kernel asks of the real ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kiln_format::Version;
use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol};
use kiln_test_server::{FixtureServer, Member, Wheel, WheelBuilder};
use kiln_toolchain::Catalog;
use serde_json::Value;
use support::project::ProjectBuilder;
use support::started::real_program;
use support::{Run, Sandbox, shared_cache, text, tree};

const RELEASE: &str = "2.11.0";

/// A kernel that is compiled against torch's C++ ABI.
fn relu() -> ProjectBuilder {
    ProjectBuilder::new()
        .file(
            "binding.cpp",
            "#include <torch/library.h>\n#include <registration.h>\nat::Tensor tiny_relu(const at::Tensor &input);\n\
             TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def(\"relu(Tensor input) -> Tensor\", &tiny_relu); }\n\
             REGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n",
        )
        .file(
            "relu.cpp",
            "#include <ATen/core/Tensor.h>\n#include <ATen/ops/empty_like.h>\n\
             at::Tensor tiny_relu(const at::Tensor &input) {\n  at::Tensor output = at::empty_like(input);\n\
             \x20 const float *from = input.const_data_ptr<float>();\n  float *to = output.mutable_data_ptr<float>();\n\
             \x20 for (int64_t i = 0; i < input.numel(); i++) to[i] = from[i] > 0 ? from[i] : 0.f;\n  return output;\n}\n",
        )
        .kernel("relu", &["torch"], &["relu.cpp"], "")
}

/// What a sandbox without any torch shares with others: the floor of the compiler.
fn fresh() -> Sandbox {
    let sandbox = Sandbox::without_torch();
    fs::create_dir_all(sandbox.cache()).unwrap();
    std::os::unix::fs::symlink(shared_cache().join("floors-v1"), sandbox.cache().join("floors-v1")).unwrap();
    sandbox
}

/// The kernel as it is built with the torch of the package index: the libraries that its extension needs, the names that it wants, and the directory
/// of that torch. The place where it was built does not outlast this.
fn reference() -> &'static (Vec<String>, Vec<String>, PathBuf) {
    static BUILT: OnceLock<(Vec<String>, Vec<String>, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sandbox = Sandbox::new();
        let dir = relu().write(&sandbox.path("reference"));
        sandbox.build(&dir, &["--torch", "2.11", "--offline"]);
        let headers = sandbox.run(&dir, &["toolchain", "path", &format!("torch=={RELEASE}")]);
        let extension = tree::extensions(&dir.join("build")).pop().unwrap();
        let nm =
            Command::new(real_program("nm").unwrap()).args(["-D", "--undefined-only", "--format=just-symbols"]).arg(&extension).output();
        let wanted = text(&nm.unwrap().stdout).lines().map(|name| name.split('@').next().unwrap().to_owned()).collect();
        (needed(&extension), wanted, PathBuf::from(headers.stdout.trim()).canonicalize().unwrap())
    })
}

/// Torch's headers in a wheel of this local version.
fn wheel(local: &str) -> Wheel {
    let (_, wanted, torch) = reference();
    let catalog = Catalog::embedded().unwrap();
    let known = catalog.torch(&Version::parse(RELEASE).unwrap(), "linux-x86_64").unwrap();
    let version = format!("{RELEASE}+{local}");
    let cuda = local.strip_prefix("cu").map_or("None".to_owned(), |_| "'12.6'".to_owned());
    let mut wheel = WheelBuilder::new("torch", &version)
        .file("torch/version.py", format!("__version__ = '{version}'\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = None\n"))
        .file(&format!("torch-{version}.dist-info/METADATA"), "Name: torch\nLicense-Expression: BSD-3-Clause\n");
    let mut offered = 0;
    for library in known.exports().unwrap() {
        let names = wanted.iter().filter(|name| library.offers(name)).map(|name| Symbol::plain(name, SymbolKind::Function));
        let symbols: Vec<Symbol> = names.collect();
        offered += symbols.len();
        let stub = Stub::new(&library.soname, Machine::X86_64, symbols).write().unwrap();
        wheel = wheel.member(Member::stored(format!("torch/lib/{}", library.soname), stub));
    }
    assert!(offered > 5, "{wanted:?}");
    for entry in walkdir::WalkDir::new(torch.join("torch/include")).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(torch).unwrap().to_str().unwrap().to_owned();
            wheel = wheel.member(Member::stored(name, fs::read(entry.path()).unwrap()));
        }
    }
    Wheel { file: format!("torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"), ..wheel.build() }
}

/// What the build record says of the torch that the only variant was compiled with.
fn recorded(dir: &Path) -> Value {
    let record: Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let variants = record["variants"].as_object().unwrap();
    assert_eq!(variants.len(), 1, "{record}");
    variants.values().next().unwrap()["toolchains"]["torch"].clone()
}

/// Runs a command that must succeed, and must not show a secret.
fn run(sandbox: &Sandbox, dir: &Path, variables: &[(&str, &str)], args: &[&str]) -> Run {
    let run = Run::of(sandbox.kiln(dir, args).envs(variables.iter().copied()));
    assert_eq!(run.code, Some(0), "{args:?}: {}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("hush") && !run.stderr.contains("hush"), "{}{}", run.stdout, run.stderr);
    run
}

/// No file below `dir` holds a secret.
fn assert_quiet(dir: &Path) {
    for entry in walkdir::WalkDir::new(dir).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file()) {
        if entry.file_name() != ".netrc" {
            assert!(!text(&fs::read(entry.path()).unwrap()).contains("hush"), "{}", entry.path().display());
        }
    }
}

#[test]
fn a_build_with_a_local_version_is_pinned_built_with_and_found_offline() {
    let wheel = wheel("cpu");
    let server = FixtureServer::start().unwrap();
    server.add("torch", &wheel);
    server.demand("me:hush-netrc");
    server.sign("token=hush-query");
    // The package index has other builds only.
    let packages = FixtureServer::start().unwrap();
    let sandbox = fresh();
    fs::write(sandbox.path("home/.netrc"), "machine 127.0.0.1 login me password hush-netrc\n").unwrap();
    let dir = relu().write(&sandbox.path("project"));
    let (index, torch_index) = (packages.index(), server.index());
    let online = [("KILN_INDEX_URL", index.as_str())];
    let torch = format!("torch=={RELEASE}+cpu");

    let added = run(&sandbox, &dir, &online, &["toolchain", "add", &torch, "--torch-index", &torch_index]);
    assert!(added.stderr.contains(&format!("Added torch {RELEASE}+cpu (linux-x86_64), without CUDA, to kiln.lock")), "{}", added.stderr);
    let again = run(&sandbox, &dir, &[], &["toolchain", "add", &torch, "--frozen"]);
    assert!(again.stderr.contains(&format!("Unchanged torch {RELEASE}+cpu (linux-x86_64) is pinned in kiln.lock")), "{}", again.stderr);
    assert!(fs::read_to_string(dir.join("kiln.lock")).unwrap().contains(&format!("wheel = \"{}\"", wheel.file)));

    // Nothing more is needed of any network.
    run(&sandbox, &dir, &[], &["build", "--offline", "--torch", "2.11"]);
    let record = recorded(&dir);
    assert_eq!(record["wheel"], wheel.file, "{record}");
    assert_eq!((&record["provider"], &record["stands-in-for"]), (&Value::from("wheel"), &Value::Null));
    assert_eq!(record["licenses"], serde_json::json!({ format!("torch {RELEASE}+cpu"): "BSD-3-Clause" }));
    let path = run(&sandbox, &dir, &[], &["toolchain", "path", &torch]);
    assert!(Path::new(path.stdout.trim()).join("torch/include/ATen/ATen.h").is_file());
    let listed = run(&sandbox, &dir, &[], &["toolchain", "list", "-v"]);
    assert!(listed.stdout.contains(&format!("torch=={RELEASE}+cpu linux-x86_64")), "{}", listed.stdout);
    // The headers and the names are those of the package index's build, so the code is too.
    let extension = tree::extensions(&dir.join("build")).pop().unwrap();
    assert_eq!(needed(&extension), reference().0);
    assert_quiet(&sandbox.path("."));

    // Another machine has the lock only, and an index that speaks HTML and lists relative addresses.
    let other = fresh();
    fs::copy(sandbox.path("home/.netrc"), other.path("home/.netrc")).unwrap();
    std::os::unix::fs::symlink(sandbox.cache().join(ACTIONS), other.cache().join(ACTIONS)).unwrap();
    let copy = relu().write(&other.path("project"));
    fs::copy(dir.join("kiln.lock"), copy.join("kiln.lock")).unwrap();
    let refused = Run::of(&mut other.kiln(&copy, &["build", "--offline", "--torch", "2.11"]));
    assert!(refused.stderr.contains(&format!("hint: run `kiln toolchain fetch {torch}` while online")), "{}", refused.stderr);
    server.html_only();
    let with = [("KILN_INDEX_URL", index.as_str()), ("KILN_TORCH_INDEX_URL", torch_index.as_str())];
    run(&other, &copy, &with, &["build", "--locked", "--torch", "2.11", "-v"]);
    assert_eq!(recorded(&copy), record);
    run(&other, &copy, &[], &["build", "--frozen", "--torch", "2.11"]);
    assert_quiet(&other.path("."));

    // A directory with the wheel in it is an index too, and needs no network at all.
    let third = fresh();
    std::os::unix::fs::symlink(sandbox.cache().join(ACTIONS), third.cache().join(ACTIONS)).unwrap();
    fs::create_dir(third.path("wheels")).unwrap();
    fs::write(third.path("wheels").join(&wheel.file), &wheel.bytes).unwrap();
    let project = relu().write(&third.path("project"));
    let wheels = third.path("wheels").display().to_string();
    run(&third, &project, &[], &["toolchain", "add", &torch, "--offline", "--torch-index", &wheels, "--index", &wheels]);
    assert_eq!(
        fs::read(project.join("kiln.lock")).unwrap(),
        fs::read(dir.join("kiln.lock")).unwrap(),
        "the lock hangs on where the wheel came from"
    );
    run(&third, &project, &[], &["build", "--frozen", "--torch", "2.11"]);
    assert_eq!(recorded(&project), record);
    // Verified, and needed by the project.
    run(&third, &project, &[], &["toolchain", "verify"]);
    let collected = run(&third, &project, &[], &["toolchain", "gc"]);
    assert!(collected.stderr.contains("in 0 entries; 1 kept"), "{}", collected.stderr);
}

/// The step cache below a cache directory.
const ACTIONS: &str = "actions-v1";

/// The libraries that an extension needs, sorted.
fn needed(extension: &Path) -> Vec<String> {
    let listing = Command::new(real_program("readelf").unwrap()).args(["-dW"]).arg(extension).output().unwrap();
    let listing = text(&listing.stdout);
    let mut names: Vec<String> =
        listing.lines().filter(|line| line.contains("(NEEDED)")).map(|line| line.rsplit('[').next().unwrap().to_owned()).collect();
    names.sort();
    names
}
