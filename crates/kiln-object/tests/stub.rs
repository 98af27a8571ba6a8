//! Stubs, against a real linker and readelf.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::Path;

use common::{gxx, run};
use kiln_object::elf::{self, Binding, Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol, SymbolVersion};

fn machine() -> Machine {
    if cfg!(target_arch = "aarch64") { Machine::AARCH64 } else { Machine::X86_64 }
}

fn versioned(name: &str, node: &str, default: bool) -> Symbol {
    let version = SymbolVersion { node: node.to_owned(), default };
    Symbol { version: Some(version), ..Symbol::plain(name, SymbolKind::Function) }
}

fn save(dir: &Path, stub: &Stub) {
    std::fs::write(dir.join(&stub.soname), stub.write().unwrap()).unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let symbols = vec![
        versioned("f", "V_2", true),
        versioned("f", "V_1", false),
        Symbol { size: 8, ..Symbol::plain("data", SymbolKind::Object) },
        Symbol { size: 4, ..Symbol::plain("tls", SymbolKind::Tls) },
        Symbol { weak: true, ..Symbol::plain("weak", SymbolKind::Untyped) },
        Symbol::plain("ifunc", SymbolKind::IndirectFunction),
    ];
    let stub = Stub { versions: vec!["V_0".into(), "V_1".into()], ..Stub::new("libx.so.1", Machine::AARCH64, symbols.clone()) };
    let bytes = stub.write().unwrap();
    assert_eq!(bytes, stub.write().unwrap());
    let read = elf::dynamic(&bytes).unwrap();
    assert_eq!(read.machine, Machine::AARCH64);
    assert_eq!(read.soname.as_deref(), Some("libx.so.1"));
    assert_eq!(read.defined_versions, ["V_0", "V_1", "V_2"]);
    assert_eq!((read.needed.len(), read.imports.len()), (0, 0));
    let written: Vec<Symbol> = read
        .exports
        .iter()
        .map(|export| Symbol {
            name: export.name.clone(),
            version: export.version.clone().map(|node| SymbolVersion { node, default: export.default }),
            kind: export.kind,
            weak: export.binding == Binding::Weak,
            size: export.size,
        })
        .collect();
    let mut expected = symbols;
    expected[5].kind = SymbolKind::Function;
    assert_eq!(written, expected);
}

#[test]
fn other_readers_see_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let tls = Symbol { size: 4, ..Symbol::plain("tls", SymbolKind::Tls) };
    save(dir.path(), &Stub::new("libx.so.1", machine(), vec![versioned("f", "V_1", true), versioned("f", "V_0", false), tls]));
    let names = run(dir.path(), "nm", &["-D", "--with-symbol-versions", "libx.so.1"]);
    let names: Vec<&str> = names.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["f@@V_1", "f@V_0", "tls"]);
    let headers = run(dir.path(), "objdump", &["-p", "libx.so.1"]);
    assert!(headers.lines().any(|line| line.split_whitespace().eq(["SONAME", "libx.so.1"])), "{headers}");
    let versions = run(dir.path(), "readelf", &["-VW", "libx.so.1"]);
    assert!(versions.contains("Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: libx.so.1"), "{versions}");
    assert!(versions.contains("Rev: 1  Flags: none  Index: 3  Cnt: 1  Name: V_0"), "{versions}");
}

#[test]
fn a_linked_library_takes_versions_and_needs_from_stubs() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &Stub::new("libold.so.6", machine(), vec![versioned("f", "OLD_2.28", true), versioned("f", "OLD_2.2", false)]));
    let tls = Symbol { size: 4, ..Symbol::plain("counter", SymbolKind::Tls) };
    save(dir.path(), &Stub::new("libplain.so", machine(), vec![Symbol::plain("_ZN3c104goneEi", SymbolKind::Function), tls]));
    save(dir.path(), &Stub::new("libidle.so", machine(), vec![]));
    let source = r#"namespace c10 { void gone(int); }
        extern "C" { void f(); extern __thread int counter; }
        extern "C" __attribute__((visibility("default"))) int entry() { f(); c10::gone(1); return counter; }"#;
    // Another model of access would call a function of the C library.
    gxx(dir.path(), "a.o", &["-c", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec"], source);
    let args = ["-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,--as-needed", "-o", "ext.so"];
    let inputs = ["a.o", "./libold.so.6", "./libplain.so", "./libidle.so"];
    run(dir.path(), "g++", &[&args[..], &inputs].concat());
    let library = elf::dynamic_file(&dir.path().join("ext.so")).unwrap();
    assert_eq!(library.needed, ["libold.so.6", "libplain.so"]);
    assert_eq!(library.needed_versions, [("libold.so.6".to_owned(), "OLD_2.28".to_owned())]);
    let import = |name: &str| library.imports.iter().find(|import| import.name == name).unwrap();
    assert_eq!(import("f").version.as_deref(), Some("OLD_2.28"));
    assert_eq!(import("_ZN3c104goneEi").version, None);
    assert_eq!(import("counter").kind, SymbolKind::Tls);
    assert_eq!(library.exports.iter().map(|export| export.name.as_str()).collect::<Vec<_>>(), ["entry"]);
}

/// With one address for all, GNU ld takes weak names for aliases and keeps them all.
#[test]
fn unused_weak_names_are_not_dragged_in() {
    let dir = tempfile::tempdir().unwrap();
    let weak = |name: String| Symbol { weak: true, ..Symbol::plain(name, SymbolKind::Object) };
    save(dir.path(), &Stub::new("libweak.so", machine(), (0..100).map(|number| weak(format!("w{number}"))).collect()));
    gxx(dir.path(), "a.o", &["-c", "-fPIC"], "extern \"C\" { extern int w7; int entry() { return w7; } }");
    run(dir.path(), "g++", &["-shared", "-nostdlib", "-o", "ext.so", "a.o", "./libweak.so"]);
    let library = elf::dynamic_file(&dir.path().join("ext.so")).unwrap();
    assert_eq!(library.imports.iter().map(|import| import.name.as_str()).collect::<Vec<_>>(), ["w7"]);
}

#[test]
fn stubs_that_cannot_be_are_errors() {
    let error = |stub: Stub| stub.write().unwrap_err().to_string();
    let plain = |name: &str| vec![Symbol::plain(name, SymbolKind::Function)];
    assert_eq!(error(Stub::new("libx.so", Machine(8), vec![])), "cannot write a stub for `libx.so`: stubs for machine 8 are not supported");
    assert_eq!(
        error(Stub::new("libx.so", machine(), plain("a\0b"))),
        r#"cannot write a stub for `libx.so`: the name "a\0b" is empty or has a NUL in it"#
    );
    assert_eq!(error(Stub::new("", machine(), plain("a"))), r#"cannot write a stub for ``: the name "" is empty or has a NUL in it"#);
    let versions = (0..32_001).map(|number| format!("V_{number}")).collect();
    let many = Stub { versions, ..Stub::new("libx.so", machine(), vec![]) };
    assert_eq!(error(many), "cannot write a stub for `libx.so`: 32001 version nodes are too many");
}
