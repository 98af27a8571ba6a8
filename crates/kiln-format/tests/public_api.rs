//! The public items of this crate, as a snapshot to review, in which no edition of the format appears.
//!
//! The scanner reads the sources: the compiler's `unreachable_pub` lint makes sure that an item written `pub` can be
//! reached, so the lines that begin with `pub` are the public API.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// The public items and their fields in `text`, each on one line; an enum with its variants.
fn public_items(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let mut items = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("pub ") {
            continue;
        }
        let mut item = line.trim().to_owned();
        while is_open(&item) {
            let Some(line) = lines.next().map(str::trim) else { break };
            if !line.starts_with("//") && !line.starts_with('#') {
                item += " ";
                item += line;
            }
        }
        items.push(item.trim_end_matches('{').trim_end().to_owned());
    }
    items
}

/// Whether more lines belong to `item`: a list that is not closed, or the variants of an enum.
fn is_open(item: &str) -> bool {
    let open = |from: &[char], to: &[char]| item.matches(from).count() > item.matches(to).count();
    let braces_count = item.starts_with("pub enum") || item.starts_with("pub use");
    open(&['(', '['], &[')', ']']) || (braces_count && open(&['{'], &['}']))
}

fn api() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut api = String::new();
    for file in files {
        let items = public_items(&fs::read_to_string(&file).unwrap());
        if !items.is_empty() {
            let name = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            api += &format!("{name}\n    {}\n", items.join("\n    "));
        }
    }
    api
}

#[test]
fn reviewed() {
    insta::assert_snapshot!(api());
}

#[test]
fn no_edition_is_named() {
    let api = api();
    assert!(api.contains("pub fn parse("), "the scanner finds the entry point");
    for line in api.lines() {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '/' && c != '.').collect();
        let names_one = words.iter().any(|word| {
            let word = word.to_lowercase();
            let version = word.strip_prefix('v').is_some_and(|number| matches!(number, "1" | "2" | "3" | "4" | "5" | "6"));
            version || word.contains("edition") || word.contains("/v")
        });
        assert!(!names_one, "an edition is named: {line}");
    }
}

#[test]
fn the_scanner_sees_what_it_should() {
    let text = "pub(crate) fn a() {}\nfn b() {}\npub fn c(\n    x: u8,\n) -> u8 {\n}\nmod m {\n    pub struct V5 {\n        pub x: u8,\n    }\n}\npub use a::{\n    B, C,\n};\npub enum E {\n    /// Doc.\n    A(u8),\n    B,\n}\n#[cfg(test)]\npub fn d() {}\n";
    assert_eq!(
        public_items(text),
        ["pub fn c( x: u8, ) -> u8", "pub struct V5", "pub x: u8,", "pub use a::{ B, C, };", "pub enum E { A(u8), B, }"]
    );
}
