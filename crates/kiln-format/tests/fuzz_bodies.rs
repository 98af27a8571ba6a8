//! The bodies of the fuzz targets over a corpus, damaged copies of it, and random bytes.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::Path;

use kiln_format::fuzzing;
use proptest::prelude::*;
use proptest::sample::Index;

fn collect(dir: &Path, texts: &mut Vec<Vec<u8>>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            texts.push(fs::read(path).unwrap());
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), &mut texts);
    assert!(texts.len() > 50);
    texts
}

#[test]
fn every_case() {
    for text in corpus() {
        fuzzing::build_toml(&text);
    }
}

#[test]
fn every_seed_of_the_fuzzer() {
    let mut seeds = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/build_toml"), &mut seeds);
    assert!(seeds.len() > 100);
    let read = |text: &[u8]| kiln_format::build::parse("build.toml", std::str::from_utf8(text).unwrap()).build.is_some();
    assert!(seeds.iter().filter(|text| read(text)).count() > 10, "files that are read, and so brought up to date, are among them");
    for text in seeds {
        fuzzing::build_toml(&text);
    }
}

#[test]
fn every_prefix_of_the_largest_case() {
    let largest = corpus().into_iter().max_by_key(Vec::len).unwrap();
    for end in 0..largest.len() {
        fuzzing::build_toml(&largest[..end]);
    }
}

/// One edit: cut out, double, or overwrite a stretch.
type Edit = (Index, Index, u8, String);

fn damage(mut text: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for (from, length, kind, insert) in edits {
        if text.is_empty() {
            break;
        }
        let from = from.index(text.len());
        let to = (from + length.index(24)).min(text.len());
        let piece: Vec<u8> = match kind % 3 {
            0 => Vec::new(),
            1 => text[from..to].repeat(2),
            _ => insert.as_bytes().to_vec(),
        };
        text.splice(from..to, piece);
    }
    text
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let insert = prop::sample::select(vec![
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        "\"",
        "'''",
        ",",
        ".",
        "\n",
        "\r",
        "\t",
        "#",
        "é日",
        "\u{feff}",
        "\u{1b}",
        "1",
        "-1e9",
        "[general]\n",
        "a.b.c = 1\n",
        "stable-abi",
    ]);
    prop::collection::vec((any::<Index>(), any::<Index>(), any::<u8>(), insert.prop_map(str::to_owned)), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damaged_files(pick: Index, edits in edits()) {
        let corpus = corpus();
        fuzzing::build_toml(&damage(corpus[pick.index(corpus.len())].clone(), &edits));
    }

    #[test]
    fn damaged_names(edits in edits(), pick: Index) {
        let names = ["torch212-cxx11-cu126-x86_64-linux", "torch-stable-abi211-cpu-aarch64-darwin", "tvm-ffi01-xpu20253-x86_64-linux", "torch-npu"];
        fuzzing::variant_name(&damage(names[pick.index(names.len())].as_bytes().to_vec(), &edits));
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        fuzzing::build_toml(&bytes);
        fuzzing::variant_name(&bytes);
    }

    #[test]
    fn random_toml(text in "(\\[{1,2}[a-c.]{1,5}\\]{1,2}\n|[a-c.]{1,3} = (1|\"x\"|\\[1\\]|\\{a = 1\\})\n){0,8}") {
        fuzzing::build_toml(text.as_bytes());
    }
}
