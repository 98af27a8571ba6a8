//! Damaged files through the checks: a verdict or a failure, never a panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::process::Command;
use std::sync::LazyLock;

use common::{INIT, Kit, run};
use kiln_abi::fuzzing::{object, offload};
use proptest::prelude::*;

/// A shared object with something of everything, an object, and a static library.
static SAMPLES: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    let kit = Kit::new();
    let source = "extern void pow(void); extern void lost(void); extern void _ZN2at4testEv(void); extern void PyUnicode_AsUTF8(void);\n\
        __attribute__((visibility(\"default\"))) void all(void) { pow(); lost(); _ZN2at4testEv(); PyUnicode_AsUTF8(); }";
    let names: &[(&str, &str)] = &[("pow", "GLIBC_2.29"), ("malloc", "GLIBC_2.2.5")];
    let library = kit.extension(source, &[("libm.so.6", names), ("libc10.so", &[("_ZN2at4testEv", "")])], &["-Wl,-rpath,/x"]);
    let object = kit.object(INIT, &[]);
    let archive = kit.path("a.a");
    run(Command::new("ar").arg("rcsD").arg(&archive).arg(&object));
    [library, object, archive].map(|path| std::fs::read(path).unwrap())
});

/// Places and what to write there: fields of the header and of the section table are hit as often as all the rest.
fn edits(length: usize) -> impl Strategy<Value = Vec<(usize, u8)>> {
    let place = prop_oneof![0..64.min(length), length.saturating_sub(64 * 24)..length, 0..length];
    let value = prop_oneof![Just(0u8), Just(0xff), Just(0x80), any::<u8>()];
    proptest::collection::vec((place, value), 0..8)
}

#[test]
fn the_samples_are_read() {
    for sample in &*SAMPLES {
        object(sample);
    }
    assert!(kiln_object::elf::dynamic(&SAMPLES[0]).unwrap().imports.len() >= 5);
}

/// The inputs that fuzzing begins with, each cut short in places and with changed bytes in its first part.
#[test]
fn the_seeds_of_fuzzing() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/object");
    let seeds: Vec<Vec<u8>> = std::fs::read_dir(dir).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    let count = |reads: fn(&[u8]) -> bool| seeds.iter().filter(|seed| reads(seed)).count();
    assert_eq!(count(|seed| kiln_object::elf::dynamic(seed).is_ok()), 2);
    assert_eq!(count(|seed| kiln_object::elf::relocatable(seed).is_ok()), 2);
    assert_eq!(count(|seed| kiln_object::archive::members(seed).is_ok_and(|members| members.len() == 2)), 1);
    for seed in &seeds {
        object(seed);
        for length in (0..seed.len()).step_by(97) {
            object(&seed[..length]);
        }
        for at in 0..64 {
            let mut data = seed.clone();
            data[at] ^= 1 << (at % 8);
            object(&data);
        }
    }
}

/// The same of device code for AMD's devices.
#[test]
fn the_seeds_of_fuzzing_bundles() {
    use kiln_object::offload::{code_object, of_elf, of_section};

    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/offload");
    let seed = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let targets = |bundles: Vec<kiln_object::offload::Bundle>| bundles[0].entries.iter().map(ToString::to_string).collect::<Vec<_>>();
    // In the order of who made them.
    assert_eq!(targets(of_section(&seed("bundle")).unwrap()), targets(of_elf(&seed("object")).unwrap()));
    assert_eq!(targets(of_elf(&seed("object")).unwrap()).len(), 2);
    assert_eq!(code_object(&seed("code")).unwrap().target, "gfx90a:xnack+");
    assert!(of_section(&seed("compressed")).is_err());
    for name in ["bundle", "code", "code-gfx1030", "compressed", "object"] {
        let seed = seed(name);
        offload(&seed);
        for length in (0..seed.len()).step_by(97) {
            offload(&seed[..length]);
        }
        for at in 0..seed.len().min(400) {
            let mut data = seed.clone();
            data[at] ^= 1 << (at % 8);
            offload(&data);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn changed_bytes(which in 0..3usize, edits in (0..3usize).prop_flat_map(|which| edits(SAMPLES[which].len()))) {
        let mut data = SAMPLES[which].clone();
        for (place, value) in edits {
            if let Some(byte) = data.get_mut(place) {
                *byte = value;
            }
        }
        object(&data);
    }

    #[test]
    fn cut_short(which in 0..3usize, share in 0.0..1.0f64) {
        let data = &SAMPLES[which];
        object(&data[..(data.len() as f64 * share) as usize]);
    }

    #[test]
    fn any_bytes(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        object(&data);
    }
}
