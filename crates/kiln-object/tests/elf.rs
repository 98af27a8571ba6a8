//! The readers, against what real compilers and linkers make and what readelf says of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{KINDS, gxx, run};
use kiln_object::Error;
use kiln_object::elf::{self, Binding, Dynamic, Machine, Stack, SymbolKind, Visibility};

#[test]
fn relocatable_tells_wanted_from_own_names() {
    let dir = tempfile::tempdir().unwrap();
    let object = elf::relocatable(&gxx(dir.path(), "a.o", &["-c", "-O0", "-fPIC"], KINDS)).unwrap();
    assert_eq!(object.machine, native());

    let wanted = |name: &str| object.undefined.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("{name} not wanted"));
    assert_eq!(wanted("wanted_tls").kind, SymbolKind::Tls);
    assert!(!wanted("wanted_function").weak);
    assert!(wanted("maybe").weak);
    assert_eq!(wanted("inside").visibility, Visibility::Hidden);
    assert_eq!(wanted("plain_data").kind, SymbolKind::Untyped);

    let own = |name: &str| object.defined.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("{name} not defined"));
    assert_eq!((own("own_tls").kind, own("own_tls").binding), (SymbolKind::Tls, Binding::Global));
    assert_eq!(own("own_data").kind, SymbolKind::Object);
    assert_eq!(own("own_weak").binding, Binding::Weak);
    assert_eq!(own("own_hidden").visibility, Visibility::Hidden);
    assert_eq!(own("own_protected").visibility, Visibility::Protected);
    assert_eq!(own("own_ifunc").kind, SymbolKind::IndirectFunction);
    assert_eq!(own("_ZL10own_staticv").binding, Binding::Local);
    assert_eq!(own("_ZZN7CounterIiE5countEvE1n").binding, Binding::Unique);
    let both = object.undefined.iter().filter(|wanted| object.defined.iter().any(|own| own.name == wanted.name)).count();
    assert_eq!(both, 0);
}

#[test]
fn relocatable_agrees_with_readelf() {
    let dir = tempfile::tempdir().unwrap();
    let text = "#include <iostream>\n#include <thread>\nint main() { std::thread t([] { std::cout << 1; }); t.join(); }";
    let object = elf::relocatable(&gxx(dir.path(), "a.o", &["-c", "-O1"], text)).unwrap();
    let listing = run(dir.path(), "readelf", &["--wide", "--syms", "a.o"]);
    let wanted: BTreeSet<&str> =
        listing.lines().filter(|line| line.contains(" UND ")).filter_map(|line| line.split(" UND ").nth(1)).collect();
    let wanted: BTreeSet<&str> = wanted.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
    let ours: BTreeSet<&str> = object.undefined.iter().map(|symbol| symbol.name.as_str()).collect();
    assert!(wanted.len() > 5, "{listing}");
    assert_eq!(ours, wanted);
}

#[test]
fn an_object_that_wants_nothing_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let object = elf::relocatable(&gxx(dir.path(), "a.o", &["-c"], "")).unwrap();
    assert_eq!((object.undefined, object.defined), (vec![], vec![]));
}

/// A library with versions, everything in its dynamic section, and every kind of name.
fn library(dir: &Path) -> Dynamic {
    let map = "V_1 { global: old_one; }; V_2 { global: own_*; two; _ZZN7Counter*; old_one; local: *; } V_1;";
    std::fs::write(dir.join("map"), map).unwrap();
    let source = format!(
        "{KINDS}\nextern \"C\" void inside() {{}}\nextern \"C\" {{ void first() {{}} void second() {{}} void two() {{}} }}\n\
         asm(\".symver first,old_one@V_1\"); asm(\".symver second,old_one@@V_2\");"
    );
    gxx(dir, "librest.so", &["-shared", "-fPIC"], "extern \"C\" { void wanted_function() {} int plain_data; __thread int wanted_tls; }");
    let args = ["-shared", "-fPIC", "-O0", "-Wl,--version-script=map", "-Wl,-soname,libkinds.so.3", "-Wl,-rpath,/a:$ORIGIN", "-Wl,-z,now"];
    gxx(dir, "libkinds.so", &[&args[..], &["-Wl,--no-as-needed", "./librest.so", "-Wl,--enable-new-dtags", "-x", "c++"]].concat(), &source);
    elf::dynamic_file(&dir.join("libkinds.so")).unwrap()
}

#[test]
fn dynamic_tells_what_the_loader_sees() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(dir.path());
    assert_eq!(library.machine, native());
    assert_eq!(library.soname.as_deref(), Some("libkinds.so.3"));
    assert_eq!(library.runpath, ["/a:$ORIGIN"]);
    assert_eq!(library.rpath, <[String; 0]>::default());
    assert_eq!(library.needed[0], "./librest.so");
    assert!(library.needed.iter().any(|name| name == "libc.so.6"), "{:?}", library.needed);
    assert_eq!(library.defined_versions, ["V_1", "V_2"]);
    assert_eq!((library.stack, library.text_relocations, library.packed_relocations), (Stack::Data, false, false));
    assert_ne!(library.flags & 8, 0, "DF_BIND_NOW");
    assert_ne!(library.flags_1 & 1, 0, "DF_1_NOW");

    let export = |name: &str, version: &str| {
        let found = library.exports.iter().find(|export| export.name == name && export.version.as_deref() == Some(version));
        found.unwrap_or_else(|| panic!("{name}@{version} not in {:?}", library.exports))
    };
    assert!(!export("old_one", "V_1").default);
    assert!(export("old_one", "V_2").default);
    assert_eq!(export("own_tls", "V_2").kind, SymbolKind::Tls);
    assert_eq!(export("own_data", "V_2").size, 4);
    assert_eq!(export("own_weak", "V_2").binding, Binding::Weak);
    assert_eq!(export("own_ifunc", "V_2").kind, SymbolKind::IndirectFunction);
    assert_eq!(export("_ZZN7CounterIiE5countEvE1n", "V_2").binding, Binding::Unique);
    assert!(library.exports.iter().all(|export| export.name != "own_hidden"), "a hidden name is not offered");
    assert!(library.exports.iter().all(|export| export.name != "V_1"), "a version node is not a name");

    let import = |name: &str| library.imports.iter().find(|import| import.name == name).unwrap_or_else(|| panic!("{name} not imported"));
    assert!(import("maybe").weak);
    assert_eq!((import("wanted_function").version.as_deref(), import("wanted_function").weak), (None, false));
    assert_eq!(import("wanted_tls").kind, SymbolKind::Tls);
    let finalize = import("__cxa_finalize");
    assert_eq!(finalize.library.as_deref(), Some("libc.so.6"));
    let version = finalize.version.clone().unwrap();
    assert!(version.starts_with("GLIBC_2."), "{version}");
    assert!(library.needed_versions.contains(&("libc.so.6".to_owned(), version)));
}

#[test]
fn dynamic_agrees_with_readelf_on_a_large_library() {
    let dir = tempfile::tempdir().unwrap();
    let path = run(dir.path(), "g++", &["-print-file-name=libstdc++.so.6"]);
    let path = Path::new(path.trim());
    let library = elf::dynamic_file(path).unwrap();
    assert_eq!(library, elf::dynamic(&std::fs::read(path).unwrap()).unwrap(), "both ways of reading agree");
    let listing = run(dir.path(), "readelf", &["--wide", "--dyn-syms", path.to_str().unwrap()]);
    let ours: BTreeSet<String> = library
        .exports
        .iter()
        .map(|export| {
            let at = if export.default { "@@" } else { "@" };
            export.version.as_ref().map_or_else(|| export.name.clone(), |version| format!("{}{at}{version}", export.name))
        })
        .collect();
    let theirs: BTreeSet<String> = listing
        .lines()
        .filter(|line| line.contains(" DEFAULT ") && !line.contains(" UND ") && !line.contains(" ABS ") && !line.contains(" LOCAL "))
        .filter_map(|line| line.split_whitespace().nth(7).map(str::to_owned))
        .collect();
    assert!(theirs.len() > 4000, "{}", theirs.len());
    assert_eq!(ours, theirs);
    let imported = listing.lines().filter(|line| line.contains(" UND ") && line.contains('@')).count();
    assert_eq!(library.imports.iter().filter(|import| import.version.is_some()).count(), imported);
}

#[test]
fn dynamic_sees_what_must_not_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let source = "int x; int *f() { return &x; }";
    let args =
        ["-shared", "-fPIC", "-nostdlib", "-Wl,-z,execstack", "-Wl,--disable-new-dtags", "-Wl,-rpath,/opt", "-Wl,-z,pack-relative-relocs"];
    let library =
        elf::dynamic(&gxx(dir.path(), "a.so", &args, &format!("{source} int *table[64] = {{&x}}; int **g() {{ return table; }}"))).unwrap();
    assert_eq!(library.stack, Stack::Executable);
    assert_eq!(library.rpath, ["/opt"]);
    assert_eq!(library.soname, None);
    assert!(library.exports.iter().all(|export| export.version.is_none() && export.default));
}

#[test]
fn a_stripped_library_reads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let before = library(dir.path());
    run(dir.path(), "strip", &["libkinds.so"]);
    assert_eq!(elf::dynamic_file(&dir.path().join("libkinds.so")).unwrap(), before);
}

/// The loader needs no section headers: a file without them tells the same.
#[test]
fn a_library_without_section_headers_reads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    library(dir.path());
    let shared = ["-shared", "-fPIC"];
    let taking = "extern \"C\" int puts(const char *); static int told = puts(\"\");";
    gxx(dir.path(), "old.so", &[&shared[..], &["-Wl,--hash-style=sysv"]].concat(), taking);
    // One that offers nothing: its hash table leads to no symbol.
    std::fs::write(dir.path().join("none"), "{ local: *; };").unwrap();
    gxx(dir.path(), "none.so", &[&shared[..], &["-Wl,--version-script=none"]].concat(), taking);
    for name in ["libkinds.so", "old.so", "none.so"] {
        let file = dir.path().join(name);
        let before = elf::dynamic_file(&file).unwrap();
        assert!(before.imports.iter().any(|import| import.version.is_some()), "{name}: {before:?}");
        let mut bytes = std::fs::read(&file).unwrap();
        // Place, and number and index of the names.
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        assert_eq!(elf::dynamic(&bytes).unwrap(), before, "{name}");
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(elf::dynamic_file(&file).unwrap(), before, "{name}");
    }
}

#[test]
fn other_classes_and_byte_orders_are_read() {
    // An empty relocatable file of a 32-bit big-endian machine, written by hand: header, no sections.
    let mut header = vec![0x7f, b'E', b'L', b'F', 1, 2, 1, 0];
    header.resize(16, 0);
    for half in [1u16, 8] {
        header.extend(half.to_be_bytes());
    }
    header.extend(1u32.to_be_bytes());
    header.resize(52, 0);
    let object = elf::relocatable(&header).unwrap();
    assert_eq!((object.machine, object.machine.to_string()), (Machine(8), "machine 8".to_owned()));
    assert!(matches!(elf::dynamic(&header), Err(Error::Format { .. })));
}

#[test]
fn errors_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let object = gxx(dir.path(), "a.o", &["-c"], "int f();int g() { return f(); }");
    let library = gxx(dir.path(), "a.so", &["-shared", "-fPIC"], "int f() { return 1; }");
    let text = |result: Result<String, Error>| result.unwrap_err().to_string();
    let relocatable = |data: &[u8]| text(elf::relocatable(data).map(|object| format!("{object:?}")));
    let dynamic = |data: &[u8]| text(elf::dynamic(data).map(|library| format!("{library:?}")));

    assert_eq!(relocatable(b""), "not an ELF file");
    assert_eq!(relocatable(b"hello, world"), "not an ELF file");
    assert_eq!(relocatable(&library), "not a relocatable object");
    assert_eq!(dynamic(&object), "not a file with a dynamic section");
    assert_eq!(dynamic(&library[..40]), "damaged ELF header: Invalid ELF header size or alignment");
    assert_eq!(dynamic(&library[..library.len() / 2]), "damaged section table: Invalid ELF section header offset/size/alignment");
    let missing = elf::dynamic_file(&dir.path().join("none.so")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read `") && missing.contains("none.so"), "{missing}");

    // A name that is not text.
    let position = object.windows(5).position(|bytes| bytes == b"_Z1gv").unwrap();
    let mut odd = object;
    odd[position] = 0xff;
    assert_eq!(relocatable(&odd), "damaged symbol table: a name is not UTF-8 text");
}

fn native() -> Machine {
    if cfg!(target_arch = "aarch64") { Machine::AARCH64 } else { Machine::X86_64 }
}

/// The loader goes by the dynamic segment. Whoever changes a section header alone must not hide what it reads there.
#[test]
fn section_headers_that_contradict_the_loader() {
    let dir = tempfile::tempdir().unwrap();
    let text = "#include <cstdio>\n#include <string>\nextern \"C\" int shown(std::string &s) { std::puts(s.c_str()); return 1; }";
    let good = gxx(dir.path(), "a.so", &["-shared", "-fPIC", "-Wl,-rpath,/opt/lib"], text);
    let read = elf::dynamic(&good).unwrap();
    let paths = [read.rpath, read.runpath].concat();
    assert!(!read.needed.is_empty() && !read.needed_versions.is_empty() && !paths.is_empty());

    let number = |at: usize, size: usize| good[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte));
    let (table, entry, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let changed = |at: usize, size: usize, value: usize| {
        let mut bytes = good.clone();
        bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        elf::dynamic(&bytes)
    };
    // Dynamic section, its symbols, versions and needed versions; and the strings of the second.
    let mut seen = 0;
    let strings = (0..count).map(|index| table + index * entry).find(|at| number(at + 4, 4) == 11).map(|at| number(at + 40, 4)).unwrap();
    for at in (0..count).map(|index| table + index * entry) {
        let (kind, place, size) = (number(at + 4, 4), number(at + 24, 8), number(at + 32, 8));
        if !matches!(kind, 6 | 11 | 0x6fff_ffff | 0x6fff_fffe) && at != table + strings * entry {
            continue;
        }
        seen += 1;
        let mut edits = vec![("type", changed(at + 4, 4, 0)), ("place", changed(at + 24, 8, place + entry))];
        if kind != 0x6fff_ffff && kind != 0x6fff_fffe {
            edits.extend([("no size", changed(at + 32, 8, 0)), ("half the size", changed(at + 32, 8, size / 2))]);
        }
        for (what, result) in edits {
            assert!(result.is_err(), "{what} of section {kind:#x}: {result:?}");
        }
    }
    assert_eq!(seen, 5);
}

/// The loader finds the dynamic segment by its address. Whoever changes that alone shows it other entries than a reader of files.
#[test]
fn a_dynamic_segment_whose_address_leads_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let good = gxx(dir.path(), "a.so", &["-shared", "-fPIC"], "int f() { return 1; }");
    let number = |at: usize, size: usize| good[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte));
    let (table, entry, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let segment = (0..count).map(|index| table + index * entry).find(|at| number(*at, 4) == 2).unwrap();
    let address = number(segment + 16, 8);
    let with = |value: usize| {
        let mut bytes = good.clone();
        bytes[segment + 16..segment + 24].copy_from_slice(&value.to_le_bytes());
        elf::dynamic(&bytes).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with(address), Ok(()));
    let elsewhere = "damaged dynamic segment: its address leads elsewhere than its place in the file";
    for other in [address + 16, address - 16, 0, 1 << 40, usize::MAX] {
        assert_eq!(with(other), Err(elsewhere.to_owned()), "{other:#x}");
    }
}
