//! C++ names, against c++filt where the text is the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use kiln_object::demangle::{demangle, entity};

#[test]
fn declarations_are_shown_as_written() {
    assert_eq!(demangle("_ZN3c104goneEi").as_deref(), Some("c10::gone(int)"));
    assert_eq!(demangle("_ZTVN2at6TensorE").as_deref(), Some("vtable for at::Tensor"));
    assert_eq!(demangle("_ZTTN2at6TensorE").as_deref(), Some("VTT for at::Tensor"));
    assert_eq!(demangle("_ZThn16_N2at3FooD1Ev").as_deref(), Some("virtual override thunk for at::Foo::~Foo()"));
    assert_eq!(demangle("_ZTchn16_h8_N2at3Foo4makeEv").as_deref(), Some("virtual override thunk for at::Foo::make()"));
    assert_eq!(demangle("malloc"), None);
    assert_eq!(demangle("_Znot_mangled"), None);
    assert_eq!(demangle("_ZN3c104goneEi.cold").as_deref(), Some("c10::gone(int) [clone .cold]"));
    assert_eq!(entity("_ZN3c104goneEi.cold").as_deref(), Some("c10::gone"));
    assert_eq!(demangle("_ZN3c104goneEi@@V"), None);
}

#[test]
fn entities_have_no_trimmings() {
    for (name, expected) in [
        ("_ZN3c104goneEi", "c10::gone"),
        ("_ZTVN2at6TensorE", "at::Tensor"),
        ("_ZTIN3c1013TensorOptionsE", "c10::TensorOptions"),
        ("_ZGVZN3c103fooEvE1x", "c10::foo()::x"),
        ("_ZThn16_N2at3FooD1Ev", "at::Foo::~Foo"),
        ("_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size"),
        (
            "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
            "std::__cxx11::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >::basic_ostringstream",
        ),
        ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<< <std::char_traits<char> >"),
        ("_ZGRN2at1xE_", "at::x"),
        ("_Znwm", "operator new"),
        ("_ZTIi", "int"),
    ] {
        assert_eq!(entity(name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(entity("PyInit_x"), None);
}

#[test]
fn agrees_with_the_system_on_libstdcxx() {
    let dir = tempfile::tempdir().unwrap();
    let path = common::run(dir.path(), "g++", &["-print-file-name=libstdc++.so.6"]);
    let library = kiln_object::elf::dynamic_file(std::path::Path::new(path.trim())).unwrap();
    let names: Vec<&str> = library.exports.iter().map(|export| export.name.as_str()).filter(|name| name.starts_with("_Z")).collect();
    let unknown: Vec<&&str> = names.iter().filter(|name| demangle(name).is_none()).collect();
    assert!(names.len() > 3000);
    assert!(unknown.is_empty(), "{unknown:?}");
}
