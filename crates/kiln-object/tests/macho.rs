//! Files of macOS, made by clang and lld: load commands, names, and damage.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use kiln_object::elf::{Binding, Machine, Visibility};
use kiln_object::macho::{Image, Provider, SystemVersion, image, relocatable};
use proptest::prelude::*;

const SOURCE: &str = "
extern \"C\" int wanted(); extern \"C\" int of_python(); __attribute__((weak_import)) extern \"C\" int perhaps();
extern \"C\" __attribute__((visibility(\"default\"))) int entry() { return wanted() + of_python() + (perhaps ? perhaps() : 0); }
namespace kiln { __attribute__((visibility(\"default\"))) inline int twice() { return 1; } int hidden() { return twice(); } }
static int own() { return 2; }
int (*kept)() = own;
";

fn run(dir: &Path, program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap_or_else(|cause| panic!("{program}: {cause}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

struct Samples {
    object: Vec<u8>,
    library: Vec<u8>,
    old: Vec<u8>,
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("in.cpp"), SOURCE).unwrap();
    let target = "--target=arm64-apple-macos26.0";
    run(dir, "clang++-19", &[target, "-fvisibility=hidden", "-fPIC", "-ffreestanding", "-g", "-O0", "-c", "in.cpp", "-o", "in.o"]);
    for (file, library, names) in [("libx.tbd", "@rpath/libx.dylib", "_wanted, _perhaps"), ("liby.tbd", "/usr/lib/liby.dylib", "_unused")] {
        let text = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '{library}'\nexports:\n  - targets: [ arm64-macos ]\n    \
             symbols: [ {names} ]\n...\n"
        );
        std::fs::write(dir.join(file), text).unwrap();
    }
    let link = |minimum: &str, out: &str| {
        let version = ["-dylib", "-arch", "arm64", "-platform_version", "macos", minimum, "27.0"];
        let names = ["-install_name", "@rpath/x.so", "-rpath", "@loader_path/lib", "-undefined", "dynamic_lookup"];
        run(dir, "ld64.lld-19", &[&version[..], &names, &["in.o", "liby.tbd", "libx.tbd", "-o", out]].concat());
    };
    link("26.0", "new");
    link("10.13.4", "old");
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    Samples { object: read("in.o"), library: read("new"), old: read("old") }
});

#[test]
fn what_the_loader_is_told() {
    let Image { machine, minimum, install_name, needed, rpaths, mut exports, imports, debug_files } = image(&SAMPLES.library).unwrap();
    assert_eq!((machine, minimum), (Machine::AARCH64, Some(SystemVersion { major: 26, minor: 0, patch: 0 })));
    assert_eq!(minimum.unwrap().to_string(), "26.0");
    assert_eq!(install_name.as_deref(), Some("@rpath/x.so"));
    assert_eq!(needed, ["/usr/lib/liby.dylib", "@rpath/libx.dylib"]);
    assert_eq!(rpaths, ["@loader_path/lib"]);
    exports.sort();
    assert_eq!(exports, ["_ZN4kiln5twiceEv", "entry"]);
    let found = |name: &str| imports.iter().find(|import| import.name == name).unwrap();
    assert_eq!(found("wanted").provider, Provider::Library(1));
    assert_eq!((found("perhaps").weak, found("wanted").weak), (true, false));
    assert_eq!(found("of_python").provider, Provider::Anything);
    assert!(debug_files.iter().any(|path| path.ends_with("in.o")), "{debug_files:?}");
}

/// What linkers wrote before macOS 10.14.
#[test]
fn the_older_command_for_the_oldest_system() {
    let old = image(&SAMPLES.old).unwrap();
    assert_eq!(old.minimum.unwrap().to_string(), "10.13.4");
}

#[test]
fn what_an_object_has() {
    let object = relocatable(&SAMPLES.object).unwrap();
    assert_eq!(object.machine, Machine::AARCH64);
    let mut undefined: Vec<(&str, bool)> = object.undefined.iter().map(|name| (name.name.as_str(), name.weak)).collect();
    undefined.sort();
    assert_eq!(undefined, [("of_python", false), ("perhaps", true), ("wanted", false)]);
    let defined = |name: &str| object.defined.iter().find(|known| known.name == name).map(|known| (known.binding, known.visibility));
    assert_eq!(defined("entry"), Some((Binding::Global, Visibility::Default)));
    assert_eq!(defined("_ZN4kiln5twiceEv"), Some((Binding::Weak, Visibility::Default)));
    assert_eq!(defined("_ZN4kiln6hiddenEv"), Some((Binding::Global, Visibility::Hidden)));
    assert_eq!(defined("_ZL3ownv"), Some((Binding::Local, Visibility::Default)));
}

#[test]
fn files_of_another_kind_are_told() {
    assert_eq!(image(&SAMPLES.object).unwrap_err().to_string(), "not a Mach-O library");
    assert_eq!(relocatable(&SAMPLES.library).unwrap_err().to_string(), "not a Mach-O object");
    assert_eq!(image(b"text").unwrap_err().to_string(), "not a Mach-O library");
    // Another processor: 32-bit ARM in a 64-bit header.
    let mut other = SAMPLES.library.clone();
    other[4..8].copy_from_slice(&12_u32.to_le_bytes());
    assert_eq!(image(&other).unwrap_err().to_string(), "a Mach-O file for the processor 0xc is not supported");
}

/// Thousands of symbols that all have one long name: a small file must not become gigabytes of names.
#[test]
fn names_cannot_multiply() {
    let (count, name) = (6000_u32, vec![b'x'; 100_000]);
    let strings: Vec<u8> = [b"\0_".as_slice(), &name, b"\0"].concat();
    let mut file = Vec::new();
    let table = 32 + 24;
    let words = [0xfeed_facf, 0x0100_000c, 0, 1, 1, 24, 0, 0, 2, 24, table, count, table + 16 * count, strings.len() as u32];
    words.iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    for _ in 0..count {
        // An undefined external name, the first one of the strings.
        file.extend(1_u32.to_le_bytes());
        file.extend([1, 0, 0, 0]);
        file.extend(0_u64.to_le_bytes());
    }
    file.extend(strings);
    let error = relocatable(&file).unwrap_err().to_string();
    assert_eq!(error, "damaged Mach-O symbol table: its names are more than its strings can be meant for");
    // The same of a library.
    file[12] = 6;
    assert!(image(&file).unwrap_err().to_string().contains("more than its strings can be meant for"));
}

/// A place and what to write there: the load commands are hit as often as all the rest.
fn edits(data: &'static [u8]) -> impl Strategy<Value = Vec<(usize, u8)>> {
    let place = prop_oneof![0..1024.min(data.len()), 0..data.len()];
    let value = prop_oneof![Just(0u8), Just(0xff), Just(0x80), any::<u8>()];
    proptest::collection::vec((place, value), 1..8)
}

fn read_all(data: &[u8]) {
    let _ = (image(data), relocatable(data));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn edited_files(edits in edits(&SAMPLES.library), objects in edits(&SAMPLES.object)) {
        for (data, edits) in [(&SAMPLES.library, edits), (&SAMPLES.object, objects)] {
            let mut data = data.clone();
            for (place, value) in edits {
                data[place] = value;
            }
            read_all(&data);
        }
    }

    #[test]
    fn cut_files(cut in any::<prop::sample::Index>()) {
        for data in [&SAMPLES.library, &SAMPLES.object, &SAMPLES.old] {
            read_all(&data[..cut.index(data.len())]);
        }
    }
}
