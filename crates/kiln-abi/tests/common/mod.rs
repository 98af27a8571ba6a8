//! Shared objects made from small sources, with libraries that are stubs: nothing of the host's own libraries gets in.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test, and every test program uses a part of them"
)]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_abi::{Expectation, Origins, Policies, Profile, PythonVersion, Report, check_file};
use kiln_format::variant::Variant;
use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol, SymbolVersion};

/// The ops id of every test extension.
pub(crate) const ID: &str = "_relu_cpu_1";
pub(crate) const TORCH: &str = "torch213-cxx11-cpu-x86_64-linux";
pub(crate) const CUDA: &str = "torch213-cxx11-cu130-x86_64-linux";
pub(crate) const STABLE: &str = "torch-stable-abi211-cpu-x86_64-linux";
pub(crate) const TVM_FFI: &str = "tvm-ffi01-cpu-x86_64-linux";

/// The entry point of a Python module that uses nothing but Python's oldest names.
pub(crate) const INIT: &str = r#"
extern void *PyModule_Create2(void *, int);
__attribute__((visibility("default"))) void *PyInit__relu_cpu_1(void) { return PyModule_Create2(0, 1013); }
"#;

/// A name and its version.
pub(crate) type Name<'a> = (&'a str, &'a str);

/// A directory in which objects are made.
pub(crate) struct Kit {
    dir: tempfile::TempDir,
    made: Cell<usize>,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), made: Cell::new(0) }
    }

    /// A new name in the directory.
    pub(crate) fn path(&self, end: &str) -> PathBuf {
        self.made.set(self.made.get() + 1);
        let dir = self.dir.path().join(self.made.get().to_string());
        std::fs::create_dir_all(&dir).unwrap();
        dir.join(end)
    }

    pub(crate) fn file(&self, end: &str, content: &[u8]) -> PathBuf {
        let path = self.path(end);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A library that holds names only. Names with an empty version have none.
    pub(crate) fn library(&self, soname: &str, names: &[Name<'_>]) -> PathBuf {
        let symbols = names.iter().map(|(name, version)| Symbol {
            version: (!version.is_empty()).then(|| SymbolVersion { node: (*version).to_owned(), default: true }),
            ..Symbol::plain(*name, SymbolKind::Function)
        });
        let stub = Stub::new(soname, Machine::X86_64, symbols.collect());
        self.file(&soname.replace('/', "_"), &stub.write().unwrap())
    }

    /// Compiles a source to an object. Sources that begin with `//c++` are C++, such that begin with `#asm` assembler.
    pub(crate) fn object(&self, source: &str, args: &[&str]) -> PathBuf {
        let (program, end) = match source {
            _ if source.starts_with("//c++") => ("g++", "a.cpp"),
            _ if source.starts_with("#asm") => ("gcc", "a.s"),
            _ => ("gcc", "a.c"),
        };
        let input = self.file(end, source.as_bytes());
        let output = input.with_extension("o");
        let mut command = Command::new(program);
        command.args(["-c", "-fPIC", "-O1", "-fvisibility=hidden", "-fno-stack-protector", "-fcf-protection=none"]);
        run(command.args(args).arg(&input).arg("-o").arg(&output));
        output
    }

    /// Links objects and libraries to a shared object, with neither start files nor libraries of the host.
    pub(crate) fn link(&self, inputs: &[&Path], args: &[&str]) -> PathBuf {
        let output = self.path(&format!("{ID}.abi3.so"));
        let mut command = Command::new("gcc");
        command.args(["-shared", "-nostdlib", "-Wl,-z,noexecstack", "-Wl,-z,nopack-relative-relocs", "-Wl,--no-as-needed"]);
        run(command.args(inputs).args(args).arg("-o").arg(&output));
        output
    }

    /// An extension of one source beside the entry point.
    pub(crate) fn extension(&self, source: &str, libraries: &[(&str, &[Name<'_>])], args: &[&str]) -> PathBuf {
        let objects = [self.object(INIT, &[]), self.object(source, &[])];
        let libraries: Vec<PathBuf> = libraries.iter().map(|(soname, names)| self.library(soname, names)).collect();
        let inputs: Vec<&Path> = objects.iter().chain(&libraries).map(PathBuf::as_path).collect();
        self.link(&inputs, args)
    }

    /// A stripped copy.
    pub(crate) fn stripped(&self, file: &Path) -> PathBuf {
        let copy = self.path(&file.file_name().unwrap().to_string_lossy());
        run(Command::new("strip").args(["--strip-all", "-o"]).arg(&copy).arg(file));
        copy
    }
}

/// Runs a program that must succeed, and gives its stdout.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C").output().unwrap_or_else(|cause| panic!("{command:?}: {cause}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the test's torch exports.
pub(crate) fn known(soname: &str, name: &str) -> Option<bool> {
    let names: &[&str] = match soname {
        "libc10.so" => &["_ZN3c104testEv"],
        "libtorch_cpu.so" => &["aoti_torch_call_dispatcher", "torch_call_dispatcher", "torch_new_thing", "_ZN2at4testEv", "_ZTVN2at4TestE"],
        "libtorch.so" => &[],
        "libc10_cuda.so" => &["_ZN3c104cuda4testEv"],
        _ => return None,
    };
    Some(names.contains(&name))
}

/// Checks a file as the extension of a variant, by the default policy.
pub(crate) fn check(file: &Path, variant: &str, origins: &Origins) -> Report {
    let policies = Policies::embedded().unwrap();
    let allowed = BTreeSet::new();
    let expected = Expectation {
        profile: Profile::Extension,
        floor: Some(policies.get("manylinux_2_28").unwrap()),
        framework: None,
        compute: None,
        platform: None,
        id: Some(ID),
        python: PythonVersion::FLOOR,
        macos: None,
        allowed_libraries: &allowed,
        known_names: &known,
        origins,
        host_paths: &[],
        own: true,
    };
    let mut report = Report::default();
    check_file(file, "FILE", &expected.for_variant(&variant.parse::<Variant>().unwrap()), &mut report);
    report
}

/// The codes of what a report says, each once, ascending.
pub(crate) fn codes(report: &Report) -> Vec<&'static str> {
    let rules = report.findings.iter().map(|finding| finding.rule.code());
    let codes: BTreeSet<&str> = rules.chain(report.failures.iter().map(|failure| failure.kind.code())).collect();
    codes.into_iter().collect()
}
