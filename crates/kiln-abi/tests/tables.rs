//! Tables that no linker here would make, and directories.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{ID, INIT, Kit, STABLE, TORCH, codes, known};
use kiln_abi::{Expectation, Origins, Policies, Profile, PythonVersion, Report, Shape, check_elf, check_file, check_variant};
use kiln_format::variant::Variant;
use kiln_object::elf::{Dynamic, Export, Import, Machine, Stack, SymbolKind};

/// The tables of a clean extension.
fn tables(machine: Machine) -> Dynamic {
    let export = Export {
        name: format!("PyInit_{ID}"),
        version: None,
        default: true,
        kind: SymbolKind::Function,
        binding: kiln_object::elf::Binding::Global,
        size: 0,
    };
    Dynamic {
        machine,
        soname: None,
        needed: vec!["libc.so.6".into(), "libstdc++.so.6".into()],
        rpath: Vec::new(),
        runpath: Vec::new(),
        imports: Vec::new(),
        exports: vec![export],
        needed_versions: Vec::new(),
        defined_versions: Vec::new(),
        text_relocations: false,
        packed_relocations: false,
        mapped: true,
        stack: Stack::Data,
        flags: 0,
        flags_1: 0,
    }
}

fn takes(mut tables: Dynamic, name: &str, version: &str, library: &str) -> Dynamic {
    let (version, library) = (version.to_owned(), library.to_owned());
    tables.needed_versions.push((library.clone(), version.clone()));
    tables.imports.push(Import {
        name: name.to_owned(),
        version: Some(version),
        library: Some(library),
        weak: false,
        kind: SymbolKind::Function,
    });
    tables
}

/// Checks with an expectation that is changed first.
fn with<R>(
    variant: &str,
    policy: &str,
    change: impl FnOnce(&mut Expectation<'_>),
    check: impl FnOnce(&Expectation<'_>, &mut Report) -> R,
) -> Report {
    let policies = Policies::embedded().unwrap();
    let (allowed, origins) = (BTreeSet::new(), Origins::default());
    let mut expected = Expectation {
        profile: Profile::Extension,
        floor: policies.get(policy).ok(),
        framework: None,
        compute: None,
        platform: None,
        id: Some(ID),
        python: PythonVersion::FLOOR,
        macos: None,
        allowed_libraries: &allowed,
        known_names: &known,
        origins: &origins,
        host_paths: &[],
        own: true,
    }
    .for_variant(&variant.parse::<Variant>().unwrap());
    change(&mut expected);
    let mut report = Report::default();
    check(&expected, &mut report);
    report
}

fn check_tables(tables: &Dynamic, variant: &str, policy: &str) -> Vec<&'static str> {
    codes(&with(variant, policy, |_| {}, |expected, report| check_elf("FILE", tables, expected, report)))
}

const ARM: &str = "torch213-cxx11-cpu-aarch64-linux";
const FLOOR: &str = "manylinux_2_28";

/// Each processor has its own versions and its own lists.
#[test]
fn processors_differ() {
    let float128 = |machine| takes(tables(machine), "_ZTIg", "CXXABI_FLOAT128", "libstdc++.so.6");
    assert_eq!(check_tables(&float128(Machine::X86_64), TORCH, FLOOR), [""; 0]);
    assert_eq!(check_tables(&float128(Machine::AARCH64), ARM, FLOOR), ["floor-version"]);
    let malloc = |machine, version: &str| takes(tables(machine), "malloc", version, "libc.so.6");
    assert_eq!(check_tables(&malloc(Machine::AARCH64, "GLIBC_2.17"), ARM, FLOOR), [""; 0]);
    assert_eq!(check_tables(&malloc(Machine::X86_64, "GLIBC_2.17"), TORCH, FLOOR), ["floor-symbol"]);
    assert_eq!(check_tables(&malloc(Machine::AARCH64, "GLIBC_2.2.5"), ARM, FLOOR), ["floor-version"]);
}

/// A version that is demanded and that no symbol uses stops the loader all the same.
#[test]
fn version_needs_without_a_symbol() {
    let needs = |library: &str, version: &str| {
        let mut tables = tables(Machine::X86_64);
        tables.needed_versions.push((library.to_owned(), version.to_owned()));
        check_tables(&tables, TORCH, FLOOR)
    };
    assert_eq!(needs("libc.so.6", "GLIBC_2.34"), ["floor-version"]);
    assert_eq!(needs("libc.so.6", "GLIBC_ABI_DT_RELR"), ["floor-version"]);
    assert_eq!(needs("libdl.so.2", "GLIBC_2.28"), ["floor-file"], "an allowed version that the library does not have");
    // Nodes without a name are not in the lists, and exist.
    assert_eq!(needs("libstdc++.so.6", "GLIBCXX_3.4.24"), [""; 0]);
}

/// Policies between two lists are bounded by the younger one; one that is younger than all has its versions only.
#[test]
fn other_policies() {
    let create = |version: &str, library: &str| takes(tables(Machine::X86_64), "pthread_create", version, library);
    let moved = create("GLIBC_2.34", "libc.so.6");
    assert_eq!(check_tables(&moved, TORCH, "manylinux_2_31"), ["floor-version"]);
    assert_eq!(check_tables(&moved, TORCH, "manylinux_2_34"), [""; 0]);
    // A file for an older floor loads on a newer one, where its names are in libc now.
    assert_eq!(check_tables(&create("GLIBC_2.2.5", "libpthread.so.0"), TORCH, "manylinux_2_34"), [""; 0]);
    assert_eq!(check_tables(&create("GLIBC_2.34", "libpthread.so.0"), TORCH, "manylinux_2_34"), ["floor-file"]);
    let invented = takes(tables(Machine::X86_64), "no_such_name", "GLIBC_2.34", "libc.so.6");
    assert_eq!(check_tables(&invented, TORCH, "manylinux_2_34"), ["floor-symbol"]);
    assert_eq!(check_tables(&invented, TORCH, "manylinux_2_35"), [""; 0]);
    let newer = takes(tables(Machine::X86_64), "dlsym", "GLIBC_2.34", "libc.so.6");
    assert_eq!(check_tables(&newer, TORCH, FLOOR), ["floor-version"]);
    assert_eq!(check_tables(&newer, TORCH, "manylinux_2_34"), [""; 0]);
    let old = takes(tables(Machine::X86_64), "getrandom", "GLIBC_2.25", "libc.so.6");
    assert_eq!(check_tables(&old, TORCH, "manylinux2014"), ["floor-version"]);
    // A build that was told to take what the host has is not held to any floor.
    let report = with(TORCH, FLOOR, |expected| expected.floor = None, |expected, report| check_elf("FILE", &newer, expected, report));
    assert_eq!(codes(&report), [""; 0]);
}

#[test]
fn machines_that_nothing_is_known_of() {
    let odd = tables(Machine(8));
    assert_eq!(check_tables(&odd, TORCH, FLOOR), ["machine"]);
    let report = with(TORCH, FLOOR, |expected| expected.platform = None, |expected, report| check_elf("FILE", &odd, expected, report));
    assert_eq!(codes(&report), ["unsupported-machine"]);
    // Layer A knows it, and there are no lists for the rest.
    let report = with(
        TORCH,
        FLOOR,
        |expected| expected.platform = None,
        |expected, report| check_elf("FILE", &tables(Machine(3)), expected, report),
    );
    assert_eq!(codes(&report), ["unsupported-machine"]);
}

#[test]
fn tables_that_say_too_little() {
    let mut silent = tables(Machine::X86_64);
    silent.exports.clear();
    assert_eq!(check_tables(&silent, TORCH, FLOOR), ["damaged"]);
    let mut unsaid = tables(Machine::X86_64);
    unsaid.stack = Stack::Unsaid;
    assert_eq!(check_tables(&unsaid, TORCH, FLOOR), ["executable-stack"]);
    let unknown = takes(tables(Machine::X86_64), "zeCommandListCreate", "ZE_1", "libtvm_ffi.so");
    assert_eq!(check_tables(&unknown, "tvm-ffi01-cpu-x86_64-linux", FLOOR), ["exports", "unknown-exports"]);
}

#[test]
fn files_of_a_variant() {
    let kit = Kit::new();
    let extension = kit.link(&[&kit.object(INIT, &[])], &[]);
    let dir = extension.parent().unwrap();
    let name = format!("{ID}.abi3.so");
    let look = |shape: Shape<'_>| codes(&with(TORCH, FLOOR, |_| {}, |expected, report| check_variant(dir, "v", shape, expected, report)));
    std::fs::create_dir(dir.join("layers")).unwrap();
    std::fs::write(dir.join("layers/empty.py"), "").unwrap();
    std::fs::write(dir.join("notes.txt"), "text").unwrap();
    assert_eq!(look(Shape::Compiled(Some(&name))), [""; 0]);
    assert_eq!(look(Shape::Noarch), ["file-kind"]);
    assert_eq!(look(Shape::Compiled(Some("_relu_cpu_2.abi3.so"))), ["file-kind"]);

    // Whatever is code is looked at, by content and wherever it lies.
    std::fs::copy(kit.object(INIT, &[]), dir.join("layers/data.bin")).unwrap();
    assert_eq!(look(Shape::Compiled(Some(&name))), ["file-kind"]);
    std::fs::remove_file(dir.join("layers/data.bin")).unwrap();
    let library = kit.link(&[&kit.object("__attribute__((visibility(\"default\"))) int helper;", &[])], &["-Wl,-rpath,/x"]);
    std::fs::copy(library, dir.join("layers/data.bin")).unwrap();
    assert_eq!(look(Shape::Compiled(Some(&name))), ["exports", "run-path"], "and it needs no entry point");
    std::fs::remove_file(dir.join("layers/data.bin")).unwrap();
    std::os::unix::fs::symlink("/nowhere", dir.join("broken.so")).unwrap();
    assert_eq!(look(Shape::Compiled(Some(&name))), ["unreadable"]);
    std::fs::remove_file(dir.join("broken.so")).unwrap();
    std::fs::remove_file(&extension).unwrap();
    assert_eq!(look(Shape::Compiled(None)), ["file-kind"]);
    assert_eq!(
        codes(&with(TORCH, FLOOR, |_| {}, |expected, report| check_variant(Path::new("/nowhere"), "v", Shape::Noarch, expected, report))),
        ["unreadable"]
    );
}

#[test]
fn paths_of_the_build_machine() {
    let kit = Kit::new();
    let object = kit.object("const char *where(void) { return \"/home/maker/relu/relu.cpp\"; }", &[]);
    let file = kit.link(&[&kit.object(INIT, &[]), &object], &[]);
    let look = |directory: &str| {
        let paths = [directory.to_owned()];
        let mut found = Report::default();
        with(STABLE, FLOOR, |_| {}, |expected, _| check_file(&file, "FILE", &Expectation { host_paths: &paths, ..*expected }, &mut found));
        found
    };
    let report = look("/home/maker");
    assert_eq!((codes(&report).as_slice(), report.is_ok()), (["host-path"].as_slice(), true), "a warning");
    assert_eq!(report.findings.first().unwrap().evidence, "the string `/home/maker/relu/relu.cpp`");
    assert_eq!(codes(&look("/home/make")), [""; 0]);
}
