//! The page and the JSON schema in `docs/` are those that the crate writes, and the schema judges the cases as the parser does.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::build;
use serde_json::Value;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn up_to_date() {
    for (file, wanted) in [("build-toml.md", build::reference_page()), ("build.schema.json", build::json_schema())] {
        let path = manifest().join("../../docs").join(file);
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "`docs/{file}` is out of date: run `cargo xtask docs`");
    }
}

/// Whether `value` fits `schema`, for the words that our schema uses.
fn fits(schema: &Value, value: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(word, rule)| match word.as_str() {
        "type" => match rule.as_str().unwrap() {
            "string" => value.is_string(),
            "integer" => value.is_i64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("type {other}"),
        },
        "const" => value == rule,
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
        "minLength" => value.as_str().is_none_or(|text| !text.is_empty()),
        "minItems" => value.as_array().is_none_or(|list| !list.is_empty()),
        "pattern" => value.as_str().is_none_or(|text| regex::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
        "items" => value.as_array().is_none_or(|list| list.iter().all(|item| fits(rule, item))),
        "required" => {
            value.as_object().is_none_or(|table| rule.as_array().unwrap().iter().all(|key| table.contains_key(key.as_str().unwrap())))
        }
        "anyOf" => rule.as_array().unwrap().iter().any(|schema| fits(schema, value)),
        "oneOf" => rule.as_array().unwrap().iter().filter(|schema| fits(schema, value)).count() == 1,
        "properties" => value.as_object().is_none_or(|table| {
            rule.as_object().unwrap().iter().all(|(key, schema)| table.get(key).is_none_or(|value| fits(schema, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|table| {
            let known = |key: &String| schema.get("properties").is_some_and(|known| known.get(key).is_some());
            let others = || table.iter().filter(|(key, _)| !known(key));
            if rule.is_boolean() { others().count() == 0 } else { others().all(|(_, value)| fits(rule, value)) }
        }),
        "$schema" | "title" | "description" => true,
        other => panic!("the schema says `{other}`"),
    })
}

fn cases(dir: &str) -> Vec<(String, String)> {
    fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() { collect(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    collect(&manifest().join("tests/cases").join(dir), &mut files);
    let read = |path: PathBuf| (path.display().to_string(), fs::read_to_string(&path).unwrap());
    files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")).map(read).collect()
}

fn as_json(text: &str) -> Option<Value> {
    let table: toml::Table = text.trim_start_matches('\u{feff}').parse().ok()?;
    serde_json::to_value(table).ok()
}

#[test]
fn the_schema_takes_what_the_parser_takes() {
    let schema: Value = serde_json::from_str(&build::json_schema()).unwrap();
    let mut seen = 0;
    for (name, text) in cases("ok").into_iter().chain(cases("migrate").into_iter().filter(|(name, _)| name.ends_with("out.toml"))) {
        if !text.contains("edition") || name.contains("edition-4") {
            continue;
        }
        assert!(fits(&schema, &as_json(&text).unwrap()), "{name}");
        seen += 1;
    }
    assert!(seen >= 15, "{seen}");
}

#[test]
fn the_schema_refuses_what_the_parser_refuses() {
    let schema: Value = serde_json::from_str(&build::json_schema()).unwrap();
    // What no schema can know: what other keys say, where a path leads, and what the matrix has.
    let beyond = ["both-spellings", "minver-above-maxver", "source-absolute", "source-outside", "stable-abi-too-new"];
    for (name, text) in cases("bad") {
        let refused = !fits(&schema, &as_json(&text).unwrap());
        assert_eq!(refused, !beyond.iter().any(|beyond| name.contains(beyond)), "{name}");
    }
}
