//! Link stubs from real objects, linked by a real linker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use kiln_graph::BuiltinContext;
use kiln_object::elf::{self, Machine, SymbolKind};
use kiln_toolchain::host::{HostRuntime, HostSearch, find};
use kiln_toolchain::stubs::{LinkNames, RuntimeNames, link_stubs};
use kiln_toolchain::{LibraryExports, NameSet, PythonVersion};

static RUNTIME: LazyLock<Arc<RuntimeNames>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let search = HostSearch { path: OsString::from("/usr/local/bin:/usr/bin:/bin"), ..HostSearch::default() };
    Arc::new(RuntimeNames::new(find(&search, &dir.path().join("compilers.json")).unwrap().compiler.runtime))
});

fn library(soname: &str, names: &[&str]) -> LibraryExports {
    LibraryExports { soname: soname.to_owned(), names: Arc::new(NameSet::exact(names.iter().map(|name| (*name).to_owned()))) }
}

fn native() -> Machine {
    if cfg!(target_arch = "aarch64") { Machine::AARCH64 } else { Machine::X86_64 }
}

/// A torch of a few names. Its libc10 has copied two names out of the C++ runtime, as the real one has.
fn names() -> LinkNames {
    let copied = ["_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev", "_ZNSt12out_of_rangeC1EPKc"];
    LinkNames {
        provider: "torch 2.13.0".to_owned(),
        linked: vec![
            library("libc10.so", &[&["_ZN3c107presentEi", "counter", "_ZN3c105valueE"][..], &copied].concat()),
            library("libtorch.so", &[]),
            library("libtorch_cpu.so", &["_ZN2at4reluEv", "_ZN3c107presentEi"]),
        ],
        unlinked: vec![library("libc10_cuda.so", &["_ZN3c104cuda6streamEv"])],
        runtime: RUNTIME.clone(),
        python: Some(PythonVersion::FLOOR),
        machine: native(),
    }
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("stubs")).unwrap();
        Self { dir }
    }

    fn object(&self, name: &str, source: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(self.dir.path().join("in.cpp"), source).unwrap();
        gxx(self.dir.path(), &["-std=c++20", "-O0", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-c", "in.cpp", "-o", name]);
        path
    }

    fn stubs(&self) -> PathBuf {
        self.dir.path().join("stubs")
    }

    fn run(&self, names: LinkNames, objects: &[(&str, &Path)]) -> Result<(), String> {
        self.run_with(names, objects, &[])
    }

    fn run_with(&self, names: LinkNames, objects: &[(&str, &Path)], archives: &[&Path]) -> Result<(), String> {
        let labels = objects.iter().map(|(label, _)| (*label).to_owned()).collect();
        let inputs: Vec<PathBuf> =
            objects.iter().map(|(_, path)| path.to_path_buf()).chain(archives.iter().map(|path| path.to_path_buf())).collect();
        let builtin = link_stubs(Arc::new(names), labels);
        (builtin.run)(&BuiltinContext { inputs: &inputs, out_dir: &self.stubs() }).map_err(|error| error.message)
    }

    fn exports(&self, soname: &str) -> Vec<(String, SymbolKind)> {
        let stub = elf::dynamic_file(&self.stubs().join(soname)).unwrap();
        assert_eq!(stub.soname.as_deref(), Some(soname));
        stub.exports.into_iter().map(|export| (export.name, export.kind)).collect()
    }
}

fn gxx(dir: &Path, args: &[&str]) {
    let output = Command::new("g++").args(args).current_dir(dir).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Warnings would reach the user as well.
    assert!(output.status.success() && stderr.is_empty(), "{args:?}\n{stderr}");
}

const EXTENSION: &str = r#"
    #include <iostream>
    #include <sstream>
    #include <stdexcept>
    #include <thread>
    namespace c10 { void present(int); extern int value; }
    namespace at { void relu(); }
    extern "C" { extern thread_local int counter __attribute__((visibility("default"))); struct PyObject; PyObject *PyLong_FromLong(long); }
    namespace c10 { __attribute__((visibility("default"))) void present(int); __attribute__((visibility("default"))) extern int value; }
    extern "C" void helper();
    extern "C" __attribute__((visibility("default"))) PyObject *PyInit_x() {
        std::ostringstream text;
        text << c10::value << counter;
        static std::string kept = text.str();
        if (kept.empty()) throw std::out_of_range("empty");
        std::thread([] { c10::present(1); }).join();
        helper();
        return PyLong_FromLong(kept.size());
    }"#;

#[test]
fn stubs_have_just_what_is_wanted_and_link() {
    let place = Place::new();
    let one = place.object("one.o", EXTENSION);
    let two = place.object("two.o", "namespace at { void relu(); } extern \"C\" void helper() { at::relu(); }");
    place.run(names(), &[("one.cpp", &one), ("two.cpp", &two)]).unwrap();
    assert_eq!(
        place.exports("libc10.so"),
        [("_ZN3c105valueE", SymbolKind::Object), ("_ZN3c107presentEi", SymbolKind::Function), ("counter", SymbolKind::Tls)]
            .map(|(name, kind)| (name.to_owned(), kind))
    );
    assert_eq!(place.exports("libtorch.so"), []);
    // The first library in link order has a name that two export.
    assert_eq!(place.exports("libtorch_cpu.so"), [("_ZN2at4reluEv".to_owned(), SymbolKind::Function)]);

    gxx(
        place.dir.path(),
        &[
            "-shared",
            "-o",
            "ext.so",
            "one.o",
            "two.o",
            "-Wl,--as-needed",
            "stubs/libc10.so",
            "stubs/libtorch.so",
            "stubs/libtorch_cpu.so",
            "-lstdc++",
        ],
    );
    let extension = elf::dynamic_file(&place.dir.path().join("ext.so")).unwrap();
    assert_eq!(extension.needed[..2], ["libc10.so", "libtorch_cpu.so"]);
    assert!(!extension.needed.contains(&"libtorch.so".to_owned()), "{:?}", extension.needed);
    // The torch trap: what libc10 has copied from the C++ runtime is bound to the C++ runtime all the same.
    let import = |name: &str| extension.imports.iter().find(|import| import.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(import("_ZNSt12out_of_rangeC1EPKc").library.as_deref(), Some("libstdc++.so.6"));
    assert_eq!(import("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev").library.as_deref(), Some("libstdc++.so.6"));
    assert_eq!(import("PyLong_FromLong").library, None);
    assert_eq!(import("counter").kind, SymbolKind::Tls);
}

/// A static library gives what nothing else has, member by member, and what these members want is looked up like everything else.
#[test]
fn members_of_static_libraries_count_where_they_are_taken() {
    let place = Place::new();
    let member = |name: &str, source: &str| {
        let data = std::fs::read(place.object(name, source)).unwrap();
        let defines = elf::relocatable(&data).unwrap().defined.into_iter().map(|symbol| symbol.name).collect();
        kiln_object::archive::NewMember { name: name.to_owned(), data, defines }
    };
    let c10 = "namespace c10 { __attribute__((visibility(\"default\"))) void present(int); }";
    let members = [
        member("one.o", "extern \"C\" { void two(); void one() { two(); } }"),
        member("two.o", &format!("{c10} extern \"C\" void two() {{ c10::present(1); }}")),
        member("other.o", "extern \"C\" { void nobody_has_this(); void other() { nobody_has_this(); } }"),
    ];
    let library = place.dir.path().join("libdeep.a");
    std::fs::write(&library, kiln_object::archive::write(&members).unwrap()).unwrap();
    let wants = |name: &str| place.object("a.o", &format!("extern \"C\" {{ void {name}(); void start() {{ {name}(); }} }}"));

    let object = wants("one");
    assert!(place.run(names(), &[("a.cpp", &object)]).unwrap_err().contains("undefined symbol `one`"));
    place.run_with(names(), &[("a.cpp", &object)], &[&library]).unwrap();
    assert_eq!(place.exports("libc10.so"), [("_ZN3c107presentEi".to_owned(), SymbolKind::Function)]);
    // A member that nothing wants may want what it likes.
    let error = place.run_with(names(), &[("a.cpp", &wants("other"))], &[&library]).unwrap_err();
    assert!(error.contains("nobody_has_this") && error.contains("a static library") && !error.contains("`other`"), "{error}");
    // What the libraries to link with have is not taken from it: it is not even read.
    let object = place.object("a.o", &format!("{c10} extern \"C\" void start() {{ c10::present(1); }}"));
    place.run_with(names(), &[("a.cpp", &object)], &[Path::new("/nowhere")]).unwrap();
}

#[test]
fn every_name_that_nothing_offers_is_told() {
    let place = Place::new();
    let relu = place.object(
        "relu.o",
        r#"
        namespace c10 { __attribute__((visibility("default"))) void gone(int); }
        namespace c10::cuda { __attribute__((visibility("default"))) void stream(); }
        extern "C" { void plain(); void PyObject_CallNoArgs(); void PyUnicode_AsUTF8(); __attribute__((weak)) void maybe(); }
        namespace std { void invented(); }
        void mine();
        extern "C" void f() {
            c10::gone(1); c10::cuda::stream(); plain(); PyObject_CallNoArgs(); PyUnicode_AsUTF8(); std::invented(); mine();
            if (maybe) maybe();
        }"#,
    );
    let other = place.object("other.o", "namespace c10 { void gone(int); } extern \"C\" void g() { c10::gone(2); }");
    let message = place.run(names(), &[("cpu/relu.cpp", &relu), ("cpu/other.cpp", &other)]).unwrap_err();
    insta::assert_snapshot!(message, @"
    8 undefined symbols
      `c10::gone(int)`
        wanted by cpu/relu.cpp, cpu/other.cpp
        torch 2.13.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `c10::cuda::stream()`
        wanted by cpu/relu.cpp
        torch 2.13.0 exports it from libc10_cuda.so, which this variant does not link
      `plain`
        wanted by cpu/relu.cpp
        no source of this extension defines it, and torch 2.13.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `PyObject_CallNoArgs`
        wanted by cpu/relu.cpp
        Python has it from 3.10 on, newer than Python 3.9's limited API
      `PyUnicode_AsUTF8`
        wanted by cpu/relu.cpp
        it is not in Python's limited API
      `std::invented()`
        wanted by cpu/relu.cpp
        it belongs to the C++ runtime, and the one of the host compiler does not have it
      `mine()`
        wanted by cpu/relu.cpp
        no source of this extension defines it, and torch 2.13.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `maybe`
        wanted by cpu/relu.cpp
        no source of this extension defines it, and torch 2.13.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
    ");
    assert_eq!(std::fs::read_dir(place.stubs()).unwrap().count(), 0);

    let without = LinkNames { python: None, linked: vec![], ..names() };
    let python = place.object("python.o", "extern \"C\" { void PyErr_Clear(); void gone(); void f() { PyErr_Clear(); gone(); } }");
    insta::assert_snapshot!(place.run(without, &[("a.cpp", &python)]).unwrap_err(), @"
    2 undefined symbols
      `PyErr_Clear`
        wanted by a.cpp
        this extension may not use Python's names
      `gone`
        wanted by a.cpp
        no source of this extension defines it, and nothing of torch 2.13.0 is linked
    ");
}

#[test]
fn names_that_may_stay_open_are_fine() {
    let place = Place::new();
    let object = place.object(
        "a.o",
        r#"
        extern "C" {
            __attribute__((weak)) void _ITM_deregisterTMCloneTable();
            __attribute__((weak)) void __gmon_start__();
            extern char __start_table[], __stop_table[];
            __attribute__((section("table"), used)) int entry;
            extern char _end[];
        }
        // Other files may define it and say how it is set up.
        extern __attribute__((visibility("default"))) thread_local int counter asm("counter");
        extern "C" long f() {
            if (__gmon_start__) __gmon_start__();
            if (_ITM_deregisterTMCloneTable) _ITM_deregisterTMCloneTable();
            return (__stop_table - __start_table) + (long)_end + counter;
        }"#,
    );
    place.run(names(), &[("a.cpp", &object)]).unwrap();
    assert_eq!(place.exports("libc10.so"), [("counter".to_owned(), SymbolKind::Tls)]);
}

#[test]
fn equal_objects_give_equal_stubs_and_other_inputs_another_key() {
    let place = Place::new();
    let object = place.object("a.o", "namespace c10 { void present(int); } extern \"C\" void f() { c10::present(1); }");
    let bytes = || {
        place.run(names(), &[("a.cpp", &object)]).unwrap();
        names().outputs().iter().map(|soname| std::fs::read(place.stubs().join(soname)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(), bytes());

    let key = |names: LinkNames, labels: &[&str]| link_stubs(Arc::new(names), labels.iter().map(|label| (*label).to_owned()).collect()).key;
    let base = key(names(), &["a.cpp"]);
    assert_eq!(base, key(names(), &["a.cpp"]));
    let mut others = vec![key(names(), &["b.cpp"]), key(LinkNames { provider: "torch 2.14.1".to_owned(), ..names() }, &["a.cpp"])];
    others.push(key(LinkNames { python: None, ..names() }, &["a.cpp"]));
    others.push(key(LinkNames { machine: Machine(8), ..names() }, &["a.cpp"]));
    others.push(key(LinkNames { unlinked: vec![], ..names() }, &["a.cpp"]));
    others.push(key(LinkNames { runtime: Arc::new(RuntimeNames::new(HostRuntime::default())), ..names() }, &["a.cpp"]));
    let mut more = names();
    more.linked[1] = library("libtorch.so", &["one_more"]);
    others.push(key(more, &["a.cpp"]));
    others.push(base);
    let count = others.len();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), count);
}

#[test]
fn objects_that_cannot_be_read_are_named() {
    let place = Place::new();
    let dir = place.dir.path().to_str().unwrap().to_owned();
    let error = |names: LinkNames, path: &Path| place.run(names, &[("a.cpp", path)]).unwrap_err().replace(&dir, "DIR");
    let text = place.dir.path().join("text.o");
    std::fs::write(&text, "text").unwrap();
    insta::assert_snapshot!(error(names(), &text), @"cannot read the object of `a.cpp`: not an ELF file");
    insta::assert_snapshot!(error(names(), &place.dir.path().join("none.o")), @"cannot read the object of `a.cpp`: No such file or directory (os error 2)");
    let object = place.object("a.o", "");
    insta::assert_snapshot!(error(LinkNames { machine: Machine(8), ..names() }, &object), @"the object of `a.cpp` is for x86_64, not for machine 8");

    let mut broken = HostRuntime::default();
    broken.libraries.push(kiln_toolchain::host::RuntimeFile { name: "libc.so.6".to_owned(), path: text, digest: String::new() });
    let broken = LinkNames { runtime: Arc::new(RuntimeNames::new(broken)), ..names() };
    insta::assert_snapshot!(error(broken, &object), @"cannot read `DIR/text.o`: not an ELF file");
}

/// References of a version (`.symver`) are looked up with it.
#[test]
fn versions_are_looked_up_too() {
    let (version, place) = (if native() == Machine::X86_64 { "GLIBC_2.2.5" } else { "GLIBC_2.17" }, Place::new());
    let read = |version: &str| {
        let source =
            format!("extern \"C\" double exp(double); asm(\".symver exp,exp@{version}\"); double f(double x) {{ return exp(x); }}");
        elf::relocatable(&std::fs::read(place.object("a.o", &source)).unwrap()).unwrap()
    };
    let names = names();
    let right = names.resolve(&[("a.cpp", read(version))]).unwrap();
    assert_eq!((right.unresolved.len(), right.wanted.concat().len()), (0, 0), "{:?}", right.unresolved);
    let wrong = names.resolve(&[("a.cpp", read("GLIBC_1.0"))]).unwrap();
    let [unresolved] = wrong.unresolved.as_slice() else { panic!("{wrong:?}") };
    assert!(unresolved.to_string().contains("asks for version GLIBC_1.0 of it, and this system has GLIBC_2."), "{unresolved}");
    assert!(unresolved.reason.hint().contains(version), "{}", unresolved.reason.hint());
}
