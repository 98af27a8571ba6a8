//! Damaged files: every reader gives an error or a result, and never panics or hangs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::sync::LazyLock;

use common::{KINDS, gxx, run};
use kiln_object::{archive, demangle, elf, stub};
use proptest::prelude::*;

struct Samples {
    object: Vec<u8>,
    library: Vec<u8>,
    archive: Vec<u8>,
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let object = gxx(dir, "a.o", &["-c", "-fPIC", "-O1"], KINDS);
    std::fs::write(dir.join("map"), "V_1 { global: own_function; }; V_2 { global: own_*; local: *; };").unwrap();
    let args = ["-shared", "-fPIC", "-Wl,--version-script=map", "-Wl,-soname,libx.so", "-Wl,-rpath,/x"];
    let library = gxx(dir, "a.so", &args, &format!("{KINDS}\nextern \"C\" void inside() {{}}"));
    run(dir, "ar", &["rcsD", "x.a", "a.o"]);
    Samples { object, library, archive: std::fs::read(dir.join("x.a")).unwrap() }
});

/// Reads with everything. The file-backed reader must agree with the one in memory.
fn read_all(data: &[u8]) {
    let _ = elf::relocatable(data);
    let _ = archive::symbol_index(data);
    let _ = archive::members(data);
    let in_memory = elf::dynamic(data);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), data).unwrap();
    assert_eq!(elf::dynamic_file(file.path()).ok(), in_memory.ok());
}

/// A place and what to write there. Fields of a header and of the section table are hit as often as all the rest.
fn edits(data: &'static [u8]) -> impl Strategy<Value = Vec<(usize, u8)>> {
    let tail = data.len().saturating_sub(64 * 40);
    let place = prop_oneof![0..64usize, tail..data.len(), 0..data.len()];
    let value = prop_oneof![Just(0u8), Just(0xff), Just(0x80), any::<u8>()];
    proptest::collection::vec((place, value), 1..8)
}

fn edited(data: &[u8], edits: &[(usize, u8)]) -> Vec<u8> {
    let mut data = data.to_vec();
    for (place, value) in edits {
        data[*place] = *value;
    }
    data
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn edited_objects(edits in edits(&SAMPLES.object)) {
        read_all(&edited(&SAMPLES.object, &edits));
    }

    #[test]
    fn edited_libraries(edits in edits(&SAMPLES.library)) {
        read_all(&edited(&SAMPLES.library, &edits));
    }

    #[test]
    fn edited_libraries_without_section_headers(edits in edits(&SAMPLES.library)) {
        let mut library = SAMPLES.library.clone();
        library[0x28..0x30].fill(0);
        library[0x3c..0x40].fill(0);
        read_all(&edited(&library, &edits));
    }

    #[test]
    fn edited_archives(edits in edits(&SAMPLES.archive)) {
        read_all(&edited(&SAMPLES.archive, &edits));
    }

    #[test]
    fn cut_files(cut in any::<prop::sample::Index>()) {
        for data in [&SAMPLES.object, &SAMPLES.library, &SAMPLES.archive] {
            read_all(&data[..cut.index(data.len())]);
        }
    }

    #[test]
    fn demangling_anything(name in "(_Z)?[NKSTILEZXDacdinopqrstvw0-9_]{0,60}") {
        let _ = (demangle::demangle(&name), demangle::entity(&name));
    }
}

#[test]
fn deep_names_end() {
    let deep = format!("_Z1f{}i", "P".repeat(100_000));
    assert_eq!(demangle::demangle(&deep), None);
}

/// Thousands of symbols that all have one long name: 200 KB of file must not become 600 MB of names.
#[test]
fn names_cannot_multiply() {
    let library = |name: &str, count: usize| {
        let symbols = (0..count).map(|_| stub::Symbol::plain(name, elf::SymbolKind::Function)).collect();
        stub::Stub::new("libx.so", elf::Machine::X86_64, symbols).write().unwrap()
    };
    let bomb = library(&"x".repeat(100_000), 6000);
    assert!(bomb.len() < 300_000, "{}", bomb.len());
    let error = elf::dynamic(&bomb).unwrap_err().to_string();
    assert_eq!(error, "damaged dynamic symbol table: its names are more than its strings can be meant for");
    assert_eq!(elf::dynamic(&library(&"x".repeat(100_000), 50)).unwrap().exports.len(), 50);
    assert_eq!(elf::dynamic(&library("x", 5000)).unwrap().exports.len(), 5000);
}
