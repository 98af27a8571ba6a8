//! Advice that is followed helps.

mod follow;

use follow::follow_hints;
use kiln_format::build::{Parsed, parse};

/// Values of every type, and such as are nearly right for some key.
const VALUES: &[&str] = &[
    "0",
    "1",
    "4",
    "5",
    "6",
    "9",
    "-1",
    "0x5",
    "1_0",
    "99999999999999999999999",
    "5.0",
    "9.0",
    "0.0",
    "2.9",
    "2.10",
    "4.50",
    "1e3",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "true",
    "false",
    "1979-05-27",
    "07:32:00",
    "1979-05-27T07:32:00Z",
    "\"\"",
    "\" \"",
    "\"5\"",
    "\" 4 \"",
    "\"05\"",
    "\"9.0\"",
    "\"5.0\"",
    "\"five\"",
    "\"2.11\"",
    "'2.11'",
    "\"true\"",
    "\"cpu\"",
    "\"cudaa\"",
    "\"gpu\"",
    "\"py\"",
    "\".py\"",
    "'.\"x'",
    "\"torch\"",
    "\"a/b\"",
    "'a\\b'",
    "'..\\b'",
    "'a\\\"b'",
    "\"host:path\"",
    "'a\"b:c'",
    "\"https://example.org/x\"",
    "\"einops\"",
    "\"gfx942\"",
    "\"9.0a\"",
    "\"dav-2201\"",
    "\"My_Kernel\"",
    "\"\"\"\n5\"\"\"",
    "'''2.11\n'''",
    "\"\\u0035\"",
    "[]",
    "[5]",
    "[2.11]",
    "[true, 1979-05-27]",
    "[\"5\"]",
    "[[\"cpu\"]]",
    "[nan]",
    "[{}]",
    "['a\\b', 'C:\\x']",
    "[\".py\"]",
    "['.\"']",
    "[\"cud\", \"cpu\"]",
    "{}",
    "{ a = 1 }",
    "{ cpu = 2.11 }",
    "{ cpu = nan }",
    "{ cpu = \"two\", gpu = 3 }",
    "{ cpuu = \"2.11\", cpu = \"2.11\" }",
    "{ cuda = true, cdua = 5 }",
    "{ version = 1 }",
    "[{ repo-id = 1 }, { repo_id = \"a/b\", version = \"1\" }]",
];

/// Every key of every table, by the tables' names.
const KEYS: &[(&str, &[&str])] = &[
    (
        "[general]",
        &[
            "edition",
            "name",
            "version",
            "license",
            "upstream",
            "source",
            "backends",
            "python-depends",
            "kernel-depends",
            "cuda",
            "neuron",
            "tpu",
            "xpu",
            "hub",
            "cuda.minver",
            "cuda.maxver",
            "cuda.python-depends",
            "cuda.kernel-depends",
            "hub.repo-id",
            "hub.branch",
            "universal",
            "cuda-minver",
            "cuda-maxver",
        ],
    ),
    ("[torch]", &["src", "include", "pyext", "minver", "maxver", "cxx-flags", "stable-abi", "universal"]),
    ("[torch-noarch]", &["pyext", "cuda-capabilities", "rocm-archs", "cuda_capabilities", "rocm_archs"]),
    ("[tvm-ffi]", &["src", "include", "pyext", "cxx-flags"]),
    (
        "[kernel.k]",
        &[
            "backend",
            "language",
            "src",
            "depends",
            "include",
            "cxx-flags",
            "cuda-capabilities",
            "cuda-flags",
            "cuda-minver",
            "rocm-archs",
            "hip-flags",
            "sycl-flags",
            "npu-archs",
            "asc-flags",
        ],
    ),
];

/// A file of `edition` whose other values are right, with `key = value` in `table`.
fn file(edition: &str, table: &str, key: &str, value: &str, backend: &str) -> String {
    let framework = if table.starts_with("[t") { table } else { "[torch]" };
    let line = |here: &str, own: &str, right: &str| {
        let there = if table == here && key == own { value } else { right };
        if there.is_empty() { String::new() } else { format!("{own} = {there}\n") }
    };
    let other = |here: &str, own: &[&str]| if table == here && !own.contains(&key) { format!("{key} = {value}\n") } else { String::new() };
    let mut text = "[general]\n".to_owned();
    for (own, right) in [("name", "\"relu\""), ("version", "1"), ("license", "\"MIT\""), ("edition", edition), ("backends", "[\"cpu\"]")] {
        text += &line("[general]", own, right);
    }
    text += &other("[general]", &["name", "version", "license", "edition", "backends"]);
    text += &format!("\n{framework}\n");
    text += &line(framework, "src", if framework == "[torch-noarch]" { "" } else { "[]" });
    text += &other(framework, if framework == "[torch-noarch]" { &[] } else { &["src"] });
    text += "\n[kernel.k]\n";
    for (own, right) in [("backend", format!("\"{backend}\"")), ("src", "[]".to_owned()), ("depends", "[]".to_owned())] {
        text += &line("[kernel.k]", own, &right);
    }
    text + &other("[kernel.k]", &["backend", "src", "depends"])
}

/// Every wrong value of every key, in the newest edition and in one without the key: what an error says to write is right.
#[test]
fn what_an_error_says_to_write_is_right() {
    let (mut followed, mut files) = (0, 0);
    for (table, keys) in KEYS {
        for key in *keys {
            for value in VALUES {
                for edition in ["5", "4", "2", ""] {
                    let parsed = parse("build.toml", &file(edition, table, key, value, "cuda"));
                    followed += follow_hints(&parsed);
                    files += 1;
                }
            }
        }
    }
    assert!(files > 15_000 && followed > 8_000, "{files} files, {followed} hints");
}

fn parsed(table: &str, key: &str, value: &str) -> Parsed {
    parse("build.toml", &file("5", table, key, value, "cuda"))
}

/// The hint of the first error about a value, without its `write`.
fn written(table: &str, key: &str, value: &str) -> Option<String> {
    let parsed = parsed(table, key, value);
    let error = parsed.errors().find(|error| error.hint.as_deref().is_some_and(|hint| hint.starts_with("write ")))?;
    error.hint.as_deref().and_then(|hint| Some(hint.strip_prefix("write `")?.strip_suffix('`')?.to_owned()))
}

/// `edition` always has a right value, whatever stands there.
#[test]
fn every_wrong_edition_is_told_a_right_one() {
    for value in VALUES.iter().filter(|value| !matches!(**value, "1" | "4" | "5" | "0x5" | "6" | "9" | "1_0" | "99999999999999999999999")) {
        let expected = match *value {
            "\" 4 \"" => "edition = 4",
            _ => "edition = 5",
        };
        assert_eq!(written("[general]", "edition", value).as_deref(), Some(expected), "{value}");
    }
}

#[test]
fn a_value_is_repeated_only_where_it_fits() {
    for (table, key, value, expected) in [
        ("[general]", "version", "\"05\"", Some("version = 5")),
        ("[general]", "version", "5.0", Some("version = 5")),
        ("[general]", "version", "nan", None),
        ("[general]", "version", "2.9", None),
        ("[general]", "name", "5", None),
        ("[general]", "name", "true", Some("name = \"true\"")),
        ("[general]", "backends", "\"cpu\"", Some("backends = [\"cpu\"]")),
        ("[general]", "backends", "\"cudaa\"", Some("backends = [\"cpu\"]")),
        ("[general]", "backends", "nan", Some("backends = [\"cpu\"]")),
        ("[general]", "upstream", "5", None),
        ("[general]", "cuda.minver", "nan", None),
        ("[general]", "cuda.minver", "12.8", Some("cuda.minver = \"12.8\"")),
        ("[torch]", "stable-abi", "2.10", Some("stable-abi = \"2.10\"")),
        ("[torch]", "stable-abi", "nan", None),
        ("[torch]", "stable-abi", "true", None),
        ("[torch]", "stable-abi", "{ cpu = 2.11 }", Some("cpu = \"2.11\"")),
        ("[torch]", "stable-abi", "{ cpu = -inf }", None),
        ("[torch]", "pyext", "\".py\"", Some("pyext = [\".py\"]")),
        ("[torch]", "universal", "\"true\"", None),
        ("[kernel.k]", "src", "['a\\b']", Some("\"a/b\"")),
        ("[kernel.k]", "src", "['..\\b']", None),
        ("[kernel.k]", "cuda-capabilities", "[9.0]", Some("\"9.0\"")),
        ("[kernel.k]", "cuda-capabilities", "[9]", None),
    ] {
        // A dotted key is named by its last part.
        let expected = expected.map(|text| text.trim_start_matches("cuda."));
        assert_eq!(written(table, key, value).as_deref(), expected, "{key} = {value}");
    }
}

/// A key that is there already is not what another was meant to be.
#[test]
fn nobody_is_told_to_write_a_key_twice() {
    for text in [
        file("5", "[torch]", "srcs", "[]", "cpu"),
        file("5", "[kernel.k]", "hip-flags", "[]\ncuda-flags = []", "cuda"),
        file("5", "[torch]", "stable-abi", "{ gpu = \"2.11\", cuda = \"2.11\", cpuu = \"2.11\" }", "cpu"),
        file("5", "[general]", "licence", "\"MIT\"", "cpu"),
    ] {
        let parsed = parse("build.toml", &text);
        assert!(parsed.errors().count() > 0, "{text}");
        follow_hints(&parsed);
    }
}
