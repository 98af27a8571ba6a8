//! Bad files, each with a twin that differs in one thing: the bad one is refused with its own code, the twin is clean.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{CUDA, ID, INIT, Kit, STABLE, TORCH, TVM_FFI, check, codes, run};
use kiln_abi::Origins;
use kiln_object::elf::relocatable;

/// A bad file and its twin, each with the variant that it is of.
fn pair(code: &str, bad: (&Path, &str), good: (&Path, &str)) {
    let report = check(bad.0, bad.1, &Origins::default());
    assert_eq!(codes(&report), [code], "{report:#?}");
    assert!(!report.is_ok());
    for finding in &report.findings {
        assert!(!finding.detail.is_empty() && !finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    }
    let twin = check(good.0, good.1, &Origins::default());
    assert!(codes(&twin).is_empty(), "the twin for {code}: {twin:#?}");
}

/// A source that calls functions which return nothing.
fn calls(names: &[&str]) -> String {
    let declared: String = names.iter().map(|name| format!("extern void {name}(void);\n")).collect();
    let called: String = names.iter().map(|name| format!("{name}();")).collect();
    format!("{declared}void call_all(void) {{ {called} }}\n")
}

/// An extension that takes one name from one library.
fn takes(kit: &Kit, name: &str, version: &str, soname: &str) -> PathBuf {
    kit.extension(&calls(&[name]), &[(soname, &[(name, version)])], &[])
}

/// Takes a name, once in a bad and once in a good version or library.
fn taken(code: &str, name: &str, bad: (&str, &str), good: (&str, &str)) {
    let kit = Kit::new();
    let (bad, good) = (takes(&kit, name, bad.0, bad.1), takes(&kit, name, good.0, good.1));
    pair(code, (&bad, TORCH), (&good, TORCH));
}

#[test]
fn versions_beyond_the_floor() {
    taken("floor-version", "pow", ("GLIBC_2.29", "libm.so.6"), ("GLIBC_2.2.5", "libm.so.6"));
    taken("floor-version", "malloc", ("GLIBC_PRIVATE", "libc.so.6"), ("GLIBC_2.2.5", "libc.so.6"));
    taken("floor-version", "__cxa_throw", ("CXXABI_1.3.13", "libstdc++.so.6"), ("CXXABI_1.3", "libstdc++.so.6"));
    taken("floor-version", "_ZSt9terminatev", ("GLIBCXX_3.4.25", "libstdc++.so.6"), ("GLIBCXX_3.4", "libstdc++.so.6"));
    taken("floor-version", "_Unwind_Resume", ("GCC_12.0.0", "libgcc_s.so.1"), ("GCC_3.0", "libgcc_s.so.1"));
    taken("floor-version", "GOMP_parallel", ("GOMP_5.0", "libgomp.so.1"), ("GOMP_4.0", "libgomp.so.1"));
}

#[test]
fn names_beyond_the_floor() {
    // The right version, and a name that was never in it.
    taken("floor-symbol", "memcpy", ("GLIBC_2.2.6", "libc.so.6"), ("GLIBC_2.14", "libc.so.6"));
    taken("floor-symbol", "memcpy", ("GLIBC_2.2.6", "libc.so.6"), ("GLIBC_2.2.5", "libc.so.6"));
    let report = check(&takes(&Kit::new(), "memcpy", "GLIBC_2.2.6", "libc.so.6"), TORCH, &Origins::default());
    let finding = report.findings.first().unwrap();
    insta::assert_snapshot!(format!("{}\n{}", finding.detail, finding.fix), @r"
    `memcpy` is asked of libc.so.6 in GLIBC_2.2.6, and manylinux_2_28 has it in GLIBC_2.14 of libc.so.6, GLIBC_2.2.5 of libc.so.6
    link with the floor of Kiln, which takes the version that old systems have; a `.symver` has to name one of those
    ");
    // Newer systems have these in libc.
    taken("floor-file", "pthread_create", ("GLIBC_2.2.5", "libc.so.6"), ("GLIBC_2.2.5", "libpthread.so.0"));
    taken("floor-file", "dlsym", ("GLIBC_2.2.5", "libc.so.6"), ("GLIBC_2.2.5", "libdl.so.2"));
}

/// What no list knows is refused by name, with the object that wants it.
#[test]
fn unknown_newer_names_fail_closed() {
    let kit = Kit::new();
    let source = calls(&["brand_new_function"]);
    let object = kit.object(&source, &[]);
    let read = relocatable(&std::fs::read(&object).unwrap()).unwrap();
    let origins = Origins::new([("cpu/relu.cpp", &read)]);
    let library = kit.library("libc.so.6", &[("brand_new_function", "GLIBC_2.99")]);
    let versioned = kit.link(&[&kit.object(INIT, &[]), &object, &library], &[]);
    let report = check(&versioned, TORCH, &origins);
    assert_eq!(codes(&report), ["floor-version"]);
    let finding = report.findings.first().unwrap();
    assert_eq!(
        (finding.symbol.as_deref(), finding.caused_by.as_slice()),
        (Some("brand_new_function"), ["cpu/relu.cpp".to_owned()].as_slice())
    );
    insta::assert_snapshot!(
        format!("{}\n{}\n{}", finding.detail, finding.evidence, finding.fix),
        @r"
    `brand_new_function` needs GLIBC_2.99 of libc.so.6, which manylinux_2_28 does not have (it ends at GLIBC_2.28)
    undefined `brand_new_function@GLIBC_2.99` from libc.so.6
    link with the floor of Kiln, which offers only what old systems have; a source that calls it by name needs another way
    "
    );

    let unversioned = kit.link(&[&kit.object(INIT, &[]), &object], &[]);
    let report = check(&unversioned, TORCH, &origins);
    assert_eq!(codes(&report), ["unversioned-symbol"]);
    assert_eq!(report.findings.first().unwrap().caused_by, ["cpu/relu.cpp"]);
}

#[test]
fn names_without_a_version() {
    let kit = Kit::new();
    let data = "extern char __libc_single_threaded; int alone(void) { return __libc_single_threaded; }";
    let defined = format!("{data}\nchar __libc_single_threaded;");
    pair("unversioned-symbol", (&kit.extension(data, &[], &[]), TORCH), (&kit.extension(&defined, &[], &[]), TORCH));

    // A name of the baseline that was not bound to it.
    let (bad, good) = (kit.extension(&calls(&["malloc"]), &[], &[]), takes(&kit, "malloc", "GLIBC_2.2.5", "libc.so.6"));
    pair("unversioned-symbol", (&bad, TORCH), (&good, TORCH));

    let weak = |name: &str| format!("__attribute__((weak)) extern void {name}(void); void maybe(void) {{ if ({name}) {name}(); }}");
    let (bad, good) = (kit.extension(&weak("hook"), &[], &[]), kit.extension(&weak("__gmon_start__"), &[], &[]));
    pair("unversioned-symbol", (&bad, TORCH), (&good, TORCH));

    // Torch has the name, and the file does not say that it needs torch.
    let source = calls(&["_ZN2at4testEv"]);
    let (bad, good) = (kit.extension(&source, &[], &[]), takes(&kit, "_ZN2at4testEv", "", "libtorch_cpu.so"));
    pair("unversioned-symbol", (&bad, TORCH), (&good, TORCH));

    // A driver function.
    let bad = kit.extension(&calls(&["cuTensorMapEncodeTiled"]), &[], &[]);
    let report = check(&bad, CUDA, &Origins::default());
    assert!(report.findings.first().unwrap().fix.contains("cudaGetDriverEntryPoint"), "{report:?}");
}

#[test]
fn the_runtime_is_not_taken_from_torch() {
    let name = "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev";
    let kit = Kit::new();
    let source = calls(&[name, "_ZN3c104testEv"]);
    let bad = kit.extension(&source, &[("libc10.so", &[(name, ""), ("_ZN3c104testEv", "")])], &[]);
    let old = "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1ESt13_Ios_Openmode";
    let source = calls(&[old, "_ZN3c104testEv"]);
    let good = kit.extension(&source, &[("libstdc++.so.6", &[(old, "GLIBCXX_3.4.21")]), ("libc10.so", &[("_ZN3c104testEv", "")])], &[]);
    pair("runtime-from-torch", (&bad, TORCH), (&good, TORCH));
}

#[test]
fn needed_libraries() {
    let kit = Kit::new();
    let needs = |soname: &str, variant: &str, good: (&str, &str)| {
        let (bad, twin) = (kit.extension("", &[(soname, &[])], &[]), kit.extension("", &[(good.0, &[])], &[]));
        pair("needed-library", (&bad, variant), (&twin, good.1));
    };
    needs("libcuda.so.1", CUDA, ("libcudart.so.13", CUDA));
    needs("libcudart.so.12", CUDA, ("libcudart.so.13", CUDA));
    needs("libpython3.11.so.1.0", TORCH, ("libc.so.6", TORCH));
    needs("libtorch_python.so", TORCH, ("libtorch.so", TORCH));
    needs("libnuma.so.1", TORCH, ("librt.so.1", TORCH));
    needs("libX11.so.6", TORCH, ("libm.so.6", TORCH));
    needs("libc10_cuda.so", TORCH, ("libc10_cuda.so", CUDA));
    needs("ld-linux-aarch64.so.1", TORCH, ("ld-linux-x86-64.so.2", TORCH));
    needs("/opt/lib/libhelper.so", TORCH, ("libc10.so", TORCH));
}

#[test]
fn run_paths_and_what_loaders_refuse() {
    let kit = Kit::new();
    let source = "static int a, b; int *table[] = { &a, &b }; int **get(void) { return table; }";
    let with = |args: &[&str]| kit.extension(source, &[], args);
    let good = with(&[]);
    pair("run-path", (&with(&["-Wl,-rpath,/opt/cuda/lib", "-Wl,--enable-new-dtags"]), TORCH), (&good, TORCH));
    pair("run-path", (&with(&["-Wl,-rpath,/opt/cuda/lib", "-Wl,--disable-new-dtags"]), TORCH), (&good, TORCH));
    pair("packed-relocations", (&with(&["-Wl,-z,pack-relative-relocs"]), TORCH), (&good, TORCH));
    pair("executable-stack", (&with(&["-Wl,-z,execstack"]), TORCH), (&good, TORCH));
    let text = "__asm__(\".text\\n.quad secret\\n\"); int secret;";
    let data = "__asm__(\".data\\n.quad secret\\n.text\\n\"); int secret;";
    let (bad, good) = (kit.extension(text, &[], &["-Wl,-z,notext"]), kit.extension(data, &[], &["-Wl,-z,notext"]));
    pair("text-relocations", (&bad, TORCH), (&good, TORCH));
}

#[test]
fn exports() {
    let kit = Kit::new();
    let extra =
        |visible: &str| kit.extension(&format!("__attribute__((visibility(\"{visible}\"))) int helper(void) {{ return 1; }}"), &[], &[]);
    pair("exports", (&extra("default"), TORCH), (&extra("hidden"), TORCH));

    let unique = |flag: &str| {
        let source = "//c++\n#pragma GCC visibility push(default)\ntemplate <class T> struct Counter { static T count; }; template <class T> T Counter<T>::count;\n#pragma GCC visibility pop\nint get() { return Counter<int>::count++; }";
        let map = kit.file("map", b"{ global: PyInit_*; _ZN7CounterIiE5countE; local: *; };");
        let script = format!("-Wl,--version-script={}", map.display());
        let hidden = kit.file("map", b"{ global: PyInit_*; local: *; };");
        let hidden = format!("-Wl,--version-script={}", hidden.display());
        let objects = [kit.object(INIT, &[]), kit.object(source, &[flag])];
        let inputs: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        (kit.link(&inputs, &[&script]), kit.link(&inputs, &[&hidden]))
    };
    let (bad, _) = unique("-fgnu-unique");
    let (_, good) = unique("-fno-gnu-unique");
    pair("unique-symbol", (&bad, TORCH), (&good, TORCH));

    let init = kit.object(INIT, &[]);
    let empty = kit.object("int nothing;", &[]);
    pair("entry-point", (&kit.link(&[&empty], &[]), TORCH), (&kit.link(&[&init, &empty], &[]), TORCH));
    let other = kit.object(&INIT.replace(ID, "_relu_cpu_2"), &[]);
    let report = check(&kit.link(&[&other], &[]), TORCH, &Origins::default());
    assert_eq!(codes(&report), ["entry-point", "exports"]);
    assert_eq!(
        report.findings.first().unwrap().detail,
        "the extension defines `PyInit__relu_cpu_2`, but Python looks for `PyInit__relu_cpu_1`"
    );
}

/// Links with the host's compiler driver and libraries, since it is about these.
#[test]
fn copies_of_the_runtime() {
    let kit = Kit::new();
    let source = "//c++\n#include <stdexcept>\n#include <string>\nint fail(int n) { try { if (n) throw std::runtime_error(std::string(n, 'x')); return 0; } catch (const std::exception &error) { return error.what()[0]; } }\nextern \"C\" __attribute__((visibility(\"default\"))) int PyInit__relu_cpu_1() { return fail(1); }";
    let object = kit.object(source, &[]);
    let link = |args: &[&str]| {
        let output = kit.path("a.so");
        run(Command::new("g++")
            .args(["-shared", "-Wl,-z,noexecstack", "-Wl,-z,nopack-relative-relocs"])
            .arg(&object)
            .args(args)
            .arg("-o")
            .arg(&output));
        output
    };
    let good = check(&link(&[]), TORCH, &Origins::default());
    assert!(good.is_ok(), "{good:#?}");
    for args in [["-static-libstdc++"].as_slice(), &["-static-libgcc"]] {
        let bad = check(&link(args), TORCH, &Origins::default());
        assert!(codes(&bad).contains(&"static-runtime"), "{args:?}: {:?}", codes(&bad));
    }
}

#[test]
fn python() {
    let kit = Kit::new();
    let uses = |name: &str| kit.extension(&calls(&[name]), &[], &[]);
    pair("python-abi", (&uses("PyUnicode_AsUTF8"), TORCH), (&uses("PyUnicode_AsUTF8String"), TORCH));
    pair("python-abi", (&uses("_PyObject_New_Private"), TORCH), (&uses("_PyObject_New"), TORCH));
    pair("python-abi-newer", (&uses("PyObject_CallNoArgs"), TORCH), (&uses("PyObject_CallObject"), TORCH));
    // A helper of that name that the file defines is nobody's business.
    let own = "void PyHelper_Own(void) {} void use(void) { PyHelper_Own(); }";
    let report = check(&kit.extension(own, &[], &[]), TORCH, &Origins::default());
    assert!(codes(&report).is_empty(), "{report:?}");

    let ffi = "__attribute__((visibility(\"default\"))) int __tvm_ffi_relu(void) { return 0; }";
    let with = format!("{ffi}\n{}", calls(&["PyList_New"]));
    let (bad, good) = (kit.link(&[&kit.object(&with, &[])], &[]), kit.link(&[&kit.object(ffi, &[])], &[]));
    pair("python-use", (&bad, TVM_FFI), (&good, TVM_FFI));
}

#[test]
fn the_stable_abi_of_torch() {
    let kit = Kit::new();
    let newer = "torch_get_mutable_data_ptr";
    let uses = |name: &str| {
        let library = [("libtorch_cpu.so", [(name, "")])];
        let libraries: Vec<(&str, &[(&str, &str)])> = library.iter().map(|(soname, names)| (*soname, names.as_slice())).collect();
        kit.extension(&calls(&[name]), &libraries, &[])
    };
    // 2.10 in a variant for 2.9, and in one for 2.11.
    let dispatcher = uses("torch_call_dispatcher");
    pair("torch-shim-newer", (&dispatcher, "torch-stable-abi29-cpu-x86_64-linux"), (&dispatcher, STABLE));
    pair("torch-shim-unknown", (&uses("torch_new_thing"), STABLE), (&uses("aoti_torch_call_dispatcher"), STABLE));
    pair("torch-internal", (&uses("_ZN2at4testEv"), STABLE), (&uses("_ZN2at4testEv"), TORCH));
    pair("torch-internal", (&uses("_ZTVN2at4TestE"), STABLE), (&uses("_ZTVN2at4TestE"), TORCH));
    // A template, whose demangled text begins with the type that it returns.
    let template = uses("_ZN2at6TensorcvbEv");
    assert_eq!(codes(&check(&template, STABLE, &Origins::default())), ["torch-internal", "unversioned-symbol"]);
    let template = uses("_ZN3c103addIiEET_S1_");
    assert!(codes(&check(&template, STABLE, &Origins::default())).contains(&"torch-internal"));
    assert_ne!(newer, "");
}

#[test]
fn other_machines() {
    let kit = Kit::new();
    let object = kit.object(INIT, &[]);
    let good = kit.link(&[&object], &[]);
    pair("machine", (&good, "torch213-cxx11-cpu-aarch64-linux"), (&good, TORCH));
    pair("machine", (&good, "torch213-cpu-x86_64-windows"), (&good, TORCH));
    let small = kit.object("__attribute__((visibility(\"default\"))) int PyInit__relu_cpu_1(void) { return 0; }", &["-m32"]);
    let bad = kit.path("a.so");
    run(Command::new("ld").args(["-m", "elf_i386", "-shared", "-z", "noexecstack"]).arg(&small).arg("-o").arg(&bad));
    pair("machine", (&bad, TORCH), (&good, TORCH));
}

#[test]
fn what_is_no_shared_object() {
    let kit = Kit::new();
    let good = kit.link(&[&kit.object(INIT, &[])], &[]);
    let bytes = std::fs::read(&good).unwrap();
    pair("empty-file", (&kit.file("a.so", b""), TORCH), (&good, TORCH));
    pair("not-an-object", (&kit.file("a.so", b"#!/bin/sh\nexit 0\n"), TORCH), (&good, TORCH));
    pair("damaged", (&kit.file("a.so", bytes.get(..bytes.len() / 2).unwrap()), TORCH), (&good, TORCH));
    pair("damaged", (&kit.file("a.so", bytes.get(..40).unwrap()), TORCH), (&good, TORCH));
    let program =
        b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    pair("file-kind", (&kit.file("a.so", program), TORCH), (&good, TORCH));
    pair("damaged", (&kit.file("a.so", &program[..12]), TORCH), (&good, TORCH));
    pair("unsupported-format", (&kit.file("a.pyd", b"MZ\x90\x00\x03\x00\x00\x00"), TORCH), (&good, TORCH));
    pair("unreadable", (&kit.path("missing.so"), TORCH), (&good, TORCH));
    let object = kit.object(INIT, &[]);
    pair("file-kind", (&object, TORCH), (&good, TORCH));
    let archive = kit.path("a.a");
    run(Command::new("ar").arg("rcs").arg(&archive).arg(&object));
    pair("file-kind", (&archive, TORCH), (&good, TORCH));
    let program = kit.path("program");
    let start = kit.object("void _start(void) {}", &[]);
    run(Command::new("ld").arg(&start).arg("-o").arg(&program));
    pair("file-kind", (&program, TORCH), (&good, TORCH));
}

/// What says where the file is to be mapped is missing, or is where a loader and a reader would not look for the same.
#[test]
fn what_no_loader_can_map() {
    const PLACE: std::ops::Range<usize> = 0x20..0x28;
    const COUNT: std::ops::Range<usize> = 0x38..0x3a;
    let kit = Kit::new();
    let good = kit.link(&[&kit.object(INIT, &[])], &[]);
    let with = |fields: &[(std::ops::Range<usize>, u64)]| {
        let mut bytes = std::fs::read(&good).unwrap();
        for (field, value) in fields {
            let length = field.len();
            bytes[field.clone()].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        kit.file(&format!("{ID}.abi3.so"), &bytes)
    };
    pair("program-headers", (&with(&[(COUNT, 0)]), TORCH), (&good, TORCH));
    pair("program-headers", (&with(&[(COUNT, 0), (PLACE, 0)]), TORCH), (&good, TORCH));
    // Nor do section headers help, which no loader reads.
    pair("program-headers", (&with(&[(COUNT, 0), (0x28..0x30, 0), (0x3c..0x40, 0)]), TORCH), (&good, TORCH));
    // A loader would read the header of the file as the first of them, and count 65535 where the first section header has another number.
    pair("damaged", (&with(&[(PLACE, 0)]), TORCH), (&good, TORCH));
    pair("damaged", (&with(&[(COUNT, 0xffff)]), TORCH), (&good, TORCH));
}

/// What a loader asks of a file's header and segments before it maps anything, and no other reader.
#[test]
fn what_a_loader_refuses_at_once() {
    let kit = Kit::new();
    let good = kit.link(&[&kit.object(INIT, &[])], &["-Wl,-z,separate-code"]);
    let bytes = std::fs::read(&good).unwrap();
    let field = |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let table = field(0x20);
    let entries: Vec<usize> = (0..usize::from(bytes[0x38])).map(|index| table + 56 * index).collect();
    let loaded: Vec<usize> = entries.iter().copied().filter(|at| word(*at) == 1).collect();
    assert!(loaded.len() > 2);
    let last = *loaded.last().unwrap();
    let with = |changes: &[(usize, &[u8])]| {
        let mut bytes = bytes.clone();
        for (at, new) in changes {
            bytes[*at..*at + new.len()].copy_from_slice(new);
        }
        kit.file(&format!("{ID}.abi3.so"), &bytes)
    };
    let number = |value: usize| (value as u64).to_le_bytes();
    pair("file-kind", (&with(&[(7, &[9])]), TORCH), (&good, TORCH));
    // Another version of the system's ABI, something in the padding, a version that there is not.
    for change in [(8, 1), (9, 1), (15, 1), (20, 2)] {
        pair("damaged", (&with(&[(change.0, &[change.1])]), TORCH), (&good, TORCH));
    }
    // That of GNU is known to each loader.
    for version in [0, 2] {
        pair("damaged", (&with(&[(7, &[3, 9])]), TORCH), (&with(&[(7, &[3, version])]), TORCH));
    }
    for (at, new) in [
        // Behind the end of the file.
        (last + 8, field(last + 8) + 0x10_0000),
        // More in the file than in memory.
        (last + 40, field(last + 32) - 1),
        // Alignments that are none, and below a page.
        (last + 48, 0x1800),
        (last + 48, 16),
        // The place in the file does not go with the address.
        (last + 8, field(last + 8) - 1),
        // The order of the addresses.
        (loaded[1] + 16, field(last + 16) + 0x10_0000),
    ] {
        pair("damaged", (&with(&[(at, &number(new))]), TORCH), (&good, TORCH));
    }
    // Without section headers nothing but the segments says where the file ends.
    let headerless = |length: usize| {
        let mut bytes = bytes.clone();
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        bytes.truncate(length);
        kit.file(&format!("{ID}.abi3.so"), &bytes)
    };
    let end = field(last + 8) + field(last + 32);
    pair("damaged", (&headerless(end - 1), TORCH), (&headerless(end), TORCH));
    // Of two wishes for the stack the loader takes the last.
    let stack = *entries.iter().find(|at| word(**at) == 0x6474_e551).unwrap();
    let spare = *entries.iter().find(|at| word(**at) == 4).unwrap();
    let wish = |at: usize, flags: u8| [(at, 0x6474_e551_u32.to_le_bytes().to_vec()), (at + 4, vec![flags])];
    let two = |first: u8, second: u8| {
        let (low, high) = (stack.min(spare), stack.max(spare));
        let changes = [wish(low, first), wish(high, second)].concat();
        with(&changes.iter().map(|(at, new)| (*at, &new[..])).collect::<Vec<_>>())
    };
    pair("executable-stack", (&two(6, 7), TORCH), (&two(7, 6), TORCH));
}

/// The dynamic tables are all that counts: a stripped copy gives the findings of the original.
#[test]
fn stripped_copies_give_the_same_findings() {
    let kit = Kit::new();
    let source = format!(
        "{}\n__attribute__((visibility(\"default\"))) int helper;",
        calls(&["pow", "PyUnicode_AsUTF8", "nowhere", "_ZN2at4testEv"])
    );
    let bad = kit.extension(&source, &[("libm.so.6", &[("pow", "GLIBC_2.29")])], &["-Wl,-rpath,/x"]);
    let stripped = kit.stripped(&bad);
    assert!(std::fs::metadata(&stripped).unwrap().len() < std::fs::metadata(&bad).unwrap().len());
    let (of_bad, of_stripped) = (check(&bad, STABLE, &Origins::default()), check(&stripped, STABLE, &Origins::default()));
    assert_eq!(of_bad, of_stripped);
    let expected = ["exports", "floor-version", "python-abi", "run-path", "torch-internal", "unversioned-symbol"];
    assert_eq!(codes(&of_bad), expected);
}

/// What is asked of another's file is a warning where it only concerns its maker.
#[test]
fn exports_of_others_are_warnings() {
    let kit = Kit::new();
    let file = kit.extension("__attribute__((visibility(\"default\"))) int helper;", &[], &[]);
    let policies = kiln_abi::Policies::embedded().unwrap();
    let allowed = Default::default();
    let mut report = kiln_abi::Report::default();
    let expected = kiln_abi::Expectation {
        profile: kiln_abi::Profile::Extension,
        floor: policies.get("manylinux_2_28").ok(),
        framework: None,
        compute: None,
        platform: None,
        id: None,
        python: kiln_abi::PythonVersion::FLOOR,
        macos: None,
        allowed_libraries: &allowed,
        known_names: &common::known,
        origins: &Origins::default(),
        host_paths: &[],
        own: false,
    };
    kiln_abi::check_file(&file, "FILE", &expected, &mut report);
    assert_eq!((codes(&report).as_slice(), report.is_ok()), (["exports"].as_slice(), true));
}
