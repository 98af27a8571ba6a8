//! Hiding what objects define, and static libraries made of such objects, against a real compiler, linker and nm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use common::{KINDS, gxx, run};
use kiln_object::archive::{self, NewMember};
use kiln_object::elf::{self, Binding, Storage, SymbolKind, Visibility};

#[test]
fn definitions_know_what_is_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
        extern "C" {
            extern const int constant = 1;
            extern int *const relocated;
            int written = 2;
            int zero;
            int *const relocated = &written;
            void code() { static int inside_0; written += inside_0++; }
            thread_local int tls = 3;
        }"#;
    let object = gxx(dir.path(), "a.o", &["-c", "-fPIC"], source);
    let all = elf::definitions(&object).unwrap();
    let of = |name: &str| all.iter().find(|definition| definition.name.ends_with(name)).unwrap_or_else(|| panic!("{name}"));
    let storage = ["constant", "relocated", "written", "zero", "code", "inside_0", "tls"].map(|name| of(name).storage);
    use Storage::{Constant, Relocated, Writable};
    assert_eq!(storage, [Constant, Relocated, Writable, Writable, Constant, Writable, Writable]);
    assert_eq!((of("inside_0").binding, of("tls").kind, of("written").size), (Binding::Local, SymbolKind::Tls, 4));
    let common = gxx(dir.path(), "c.o", &["-x", "c", "-c", "-fcommon"], "int tentative;");
    assert_eq!(elf::definitions(&common).unwrap().first().map(|definition| definition.storage), Some(Writable));
}

#[test]
fn hidden_definitions_stay_inside() {
    let dir = tempfile::tempdir().unwrap();
    let mut object = gxx(dir.path(), "a.o", &["-c", "-fPIC"], KINDS);
    let before = elf::relocatable(&object).unwrap();
    elf::hide(&mut object, |name| name == "own_function").unwrap();
    let after = elf::relocatable(&object).unwrap();
    assert_eq!(before.undefined, after.undefined);
    assert_eq!(before.defined.len(), after.defined.len());
    for symbol in after.defined.iter().filter(|symbol| symbol.binding != Binding::Local) {
        assert_eq!(symbol.visibility, Visibility::Hidden, "{symbol:?}");
    }
    let binding = |name: &str| after.defined.iter().find(|symbol| symbol.name == name).unwrap().binding;
    assert_eq!((binding("own_function"), binding("own_data")), (Binding::Weak, Binding::Global));
    assert!(elf::hide(&mut b"text".to_vec(), |_| false).is_err());
    let mut cut = object[..object.len() - 100].to_vec();
    assert!(elf::hide(&mut cut, |_| false).is_err());
}

#[test]
fn a_linker_takes_from_a_library_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let member = |name: &str, source: &str, defines: &[&str]| {
        let mut data = gxx(dir.path(), "a.o", &["-c", "-fPIC"], source);
        elf::hide(&mut data, |_| false).unwrap();
        NewMember { name: name.to_owned(), data, defines: defines.iter().map(|name| (*name).to_owned()).collect() }
    };
    let mut members = vec![
        member("one.o", "extern \"C\" int two(); extern \"C\" int one() { return two(); }", &["one"]),
        member("a_rather_long_name_of_two.o", "extern \"C\" int two() { return 2; }", &["two"]),
        member("three.o", "extern \"C\" int nowhere(); extern \"C\" int three() { return nowhere(); }", &["three"]),
        member("another_long_name.o", "extern \"C\" { int four, five; }", &["four", "five"]),
    ];
    members[3].data.push(0);
    let bytes = archive::write(&members).unwrap();
    assert_eq!(bytes, archive::write(&members).unwrap());
    std::fs::write(dir.path().join("libx.a"), &bytes).unwrap();

    let read = archive::members(&bytes).unwrap();
    assert_eq!(read.iter().map(|member| member.name).collect::<Vec<_>>(), members.iter().map(|member| &*member.name).collect::<Vec<_>>());
    assert!(read.iter().zip(&members).all(|(read, written)| read.data == written.data));
    let index = archive::symbol_index(&bytes).unwrap();
    let index: Vec<(&str, &str)> = index.iter().map(|entry| (entry.name, entry.member)).collect();
    assert_eq!(index.last(), Some(&("five", "another_long_name.o")));
    assert_eq!(index.len(), 5);
    // Both ways of reading that GNU's tools have.
    let listed = run(dir.path(), "ar", &["tv", "libx.a"]);
    assert!(listed.lines().all(|line| line.starts_with("rw-r--r-- 0/0") && line.contains("1970")), "{listed}");
    assert_eq!(run(dir.path(), "nm", &["-s", "libx.a"]).matches(" in ").count(), 5);

    gxx(dir.path(), "b.o", &["-c", "-fPIC"], "extern \"C\" int one(); extern \"C\" int entry() { return one(); }");
    run(dir.path(), "g++", &["-shared", "-nostdlib", "-Wl,-z,defs", "-o", "x.so", "b.o", "-L.", "-lx"]);
    let library = elf::dynamic_file(&dir.path().join("x.so")).unwrap();
    assert_eq!(library.exports.iter().map(|export| export.name.as_str()).collect::<Vec<_>>(), ["entry"]);
}

#[test]
fn what_no_library_can_hold_is_refused() {
    let named = |name: &str| archive::write(&[NewMember { name: name.to_owned(), data: Vec::new(), defines: Vec::new() }]);
    for name in ["", "a/b.o", "a\nb", "a\0"] {
        assert!(named(name).is_err(), "{name:?}");
    }
    assert_eq!(archive::members(&archive::write(&[]).unwrap()).unwrap(), []);
    assert_eq!(archive::members(&named("fifteen_letters").unwrap()).unwrap()[0].name, "fifteen_letters");
    assert_eq!(archive::members(&named("sixteen_letters_").unwrap()).unwrap()[0].name, "sixteen_letters_");
}
