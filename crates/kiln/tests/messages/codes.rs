//! The manual knows every code that the program can print, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The crates whose errors reach the user: all that are not for tests.
fn crates() -> Vec<PathBuf> {
    let entries = fs::read_dir(workspace().join("crates")).unwrap().map(|entry| entry.unwrap());
    let mut dirs: Vec<PathBuf> =
        entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with("kiln-test-")).map(|entry| entry.path()).collect();
    dirs.sort();
    dirs
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Code to a file that has it. Codes are what the constructors of errors take, what functions called `code` or `.._code` give, those
/// of the rules of checks, and the constants of the format crate.
fn codes_in_sources() -> BTreeMap<String, String> {
    let constructor = Regex::new(
        r#"(?:Diagnostic::(?:error|warning|note)\(|Failure::new\(|BuiltinError::new\(|ProvideError::new\(|Report \{ code:)\s*"([a-z-]+)""#,
    )
    .unwrap();
    let function = Regex::new(r#"(?s)fn (?:\w+_)?code\([^)]*\) -> &'static str \{.*?\n(?:    )?\}\n"#).unwrap();
    let rule = Regex::new(r#"(?m)^ +[A-Z]\w+ = "([a-z-]+)",$"#).unwrap();
    let constant = Regex::new(r#"const [A-Z_]+: &str = "([a-z-]+)";"#).unwrap();
    let text_in = Regex::new(r#""([a-z-]+)""#).unwrap();
    let mut codes = BTreeMap::new();
    for dir in crates() {
        let mut files = Vec::new();
        sources(&dir.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            // What tests make up is never printed.
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let mut found: Vec<&str> = constructor.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
            found.extend(rule.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())));
            for body in function.find_iter(text) {
                found.extend(text_in.captures_iter(body.as_str()).filter_map(|found| Some(found.get(1)?.as_str())));
            }
            if file.ends_with("kiln-format/src/code.rs") {
                found.extend(constant.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())));
            }
            for code in found {
                codes.entry(code.to_owned()).or_insert_with(|| file.display().to_string());
            }
        }
    }
    codes
}

/// The codes in the first column of the manual's tables.
fn codes_in_manual() -> BTreeSet<String> {
    let text = fs::read_to_string(workspace().join("docs/errors.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `([a-z-]+)` \|").unwrap();
    let mut codes = BTreeSet::new();
    for found in row.captures_iter(&text) {
        let new = codes.insert(found[1].to_owned());
        // An error of a build, and why a row gives no variant.
        assert!(new || &found[1] == "cannot-build", "`{}` stands in docs/errors.md twice", &found[1]);
    }
    codes
}

#[test]
fn the_manual_has_every_code_and_no_other() {
    let (sources, manual) = (codes_in_sources(), codes_in_manual());
    assert!(sources.len() > 60, "the sources have more codes than {sources:?}");
    let missing: Vec<_> = sources.iter().filter(|(code, _)| !manual.contains(*code)).collect();
    assert!(missing.is_empty(), "docs/errors.md lacks {missing:#?}");
    let stale: Vec<_> = manual.iter().filter(|code| !sources.contains_key(*code)).collect();
    assert!(stale.is_empty(), "docs/errors.md has codes that no source has: {stale:?}");
}
