//! Faults in the text of `build.toml`.

use std::fs;
use std::path::Path;

use crate::Place;
use crate::place::BUILD_TOML;

/// The cases of the format crate: a file each, whose first line says where it is refused and with which words.
fn cases() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-format/tests/cases/bad");
    let mut cases: Vec<(String, String)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    cases.sort();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    cases
}

/// Whether every word of the stated reason stands in `text`.
fn names_reason(reason: &str, text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let text = text.to_lowercase();
    // What follows a semicolon is a remark of the case's author.
    let reason = reason.split(';').next().unwrap().to_lowercase();
    reason.split(|c| !is_word(c)).filter(|word| !word.is_empty()).all(|word| text.contains(word))
}

#[test]
fn every_bad_file_is_refused_at_its_place_with_its_words() {
    let place = Place::new();
    for (name, content) in cases() {
        let (wanted, reason) = content.lines().next().unwrap().strip_prefix("# refuse: ").unwrap().split_once(' ').unwrap();
        place.write("relu/build.toml", &content);
        let (people, programs) = (place.run(&["check-config"]), place.run(&["check-config", "--format", "json"]));
        assert_eq!((people.code, programs.code), (Some(1), Some(1)), "{name}: {people}");
        let text = people.errors();
        assert!(people.stdout.is_empty() && programs.stderr.is_empty(), "{name}");

        let reports: Vec<serde_json::Value> = serde_json::from_slice(&programs.stdout).unwrap();
        let found = reports.iter().find(|report| {
            let said = ["message", "note", "hint"].map(|key| report[key].as_str().unwrap_or_default()).join(" ");
            let at = format!("{}:{}", report["line"], report["column"]);
            report["level"] == "error" && report["file"] == "build.toml" && at == wanted && names_reason(reason, &said)
        });
        let report = found.unwrap_or_else(|| panic!("{name} should be refused at {wanted} ({reason}):\n{text}"));
        // People see the same: code, place, and a caret below what is meant.
        let head = format!("error[{}]: {}", report["code"].as_str().unwrap(), report["message"].as_str().unwrap());
        let block = text.split("\n\n").find(|block| block.starts_with(&head)).unwrap_or_else(|| panic!("{name}: no `{head}`\n{text}"));
        // What the whole file lacks has a place, but no line to show.
        assert!(format!("{block}\n").contains(&format!("--> build.toml:{wanted}\n")), "{name}: {block}");
        assert!(wanted == "1:1" || block.contains('^'), "{name}: {block}");
    }
}

/// The usual project with one edit.
fn edited(from: &str, to: &str) -> String {
    let place = Place::with_project();
    place.edit("relu/build.toml", from, to);
    place.say(&["check-config"])
}

#[test]
fn a_good_file_is_met_with_silence() {
    assert_eq!(Place::with_project().say(&["check-config"]), "exit code 0\n");
}

#[test]
fn unknown_key() {
    insta::assert_snapshot!(edited("depends", "dependz"), @r#"
    exit code 1
    --- stderr ---
    error[missing-key]: `depends` is required in [kernel.relu_cpu]
       --> build.toml:11:2
       |
    11 | [kernel.relu_cpu]
       |  ^^^^^^^^^^^^^^^
    hint: add `depends = ["torch"]`

    error[unknown-key]: unknown key `dependz` in [kernel.relu_cpu]
       --> build.toml:13:1
       |
    13 | dependz = []
       | ^^^^^^^
       = allowed here: `backend`, `src`, `depends`, `include`, `cxx-flags`
    hint: did you mean `depends`?
    "#);
    insta::assert_snapshot!(edited("[torch]\nsrc", "[torch]\ncuda-capabilities"), @r#"
    exit code 1
    --- stderr ---
    error[unknown-key]: unknown key `cuda-capabilities` in [torch]
      --> build.toml:9:1
      |
    9 | cuda-capabilities = ["torch-ext/binding.cpp"]
      | ^^^^^^^^^^^^^^^^^
      = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: `cuda-capabilities` belongs to `[torch-noarch]`
    "#);
}

#[test]
fn wrong_type() {
    insta::assert_snapshot!(edited("src = [\"cpu/relu.cpp\"]", "src = \"cpu/relu.cpp\""), @r#"
    exit code 1
    --- stderr ---
    error[wrong-type]: `src` must be a list of strings, found a string
       --> build.toml:14:7
       |
    14 | src = "cpu/relu.cpp"
       |       ^^^^^^^^^^^^^^
    hint: write `src = ["cpu/relu.cpp"]`
    "#);
}

#[test]
fn value_out_of_range() {
    insta::assert_snapshot!(edited("version = 1", "version = 99999999999999999999"), @"
    exit code 1
    --- stderr ---
    error[invalid-value]: `version` is too large
      --> build.toml:3:11
      |
    3 | version = 99999999999999999999
      |           ^^^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(edited("version = 1", "version = 1.5"), @"
    exit code 1
    --- stderr ---
    error[wrong-type]: `version` must be an integer, found a float
      --> build.toml:3:11
      |
    3 | version = 1.5
      |           ^^^
    ");
}

#[test]
fn missing_key() {
    insta::assert_snapshot!(edited("backend = \"cpu\"\n", ""), @r#"
    exit code 1
    --- stderr ---
    error[missing-key]: `backend` is required in [kernel.relu_cpu]
       --> build.toml:11:2
       |
    11 | [kernel.relu_cpu]
       |  ^^^^^^^^^^^^^^^
    hint: add `backend = "cpu"`
    "#);
}

#[test]
fn both_spellings() {
    let place = Place::with_project();
    let general = BUILD_TOML.split("[torch]").next().unwrap();
    place.write("relu/build.toml", format!("{general}[torch-noarch]\ncuda_capabilities = [\"9.0\"]\ncuda-capabilities = [\"9.0\"]\n"));
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[duplicate-key]: `cuda-capabilities` and `cuda_capabilities` are one key
       --> build.toml:10:1
       |
    10 | cuda-capabilities = ["9.0"]
       | ^^^^^^^^^^^^^^^^^
    hint: keep `cuda_capabilities`, which kernel-builder reads as well
    "#);
}

#[test]
fn wrong_section() {
    insta::assert_snapshot!(edited("[torch]\n", "[torch]\nlicense = \"MIT\"\n"), @r#"
    exit code 1
    --- stderr ---
    error[unknown-key]: unknown key `license` in [torch]
      --> build.toml:9:1
      |
    9 | license = "MIT"
      | ^^^^^^^
      = allowed here: `src`, `include`, `pyext`, `minver`, `maxver`, `cxx-flags`, `stable-abi`
    hint: `license` belongs to `[general]`
    "#);
}

#[test]
fn no_toml() {
    insta::assert_snapshot!(edited("depends = []", "depends = ["), @r#"
    exit code 1
    --- stderr ---
    error[syntax]: unclosed array, expected `]`
       --> build.toml:14:23
       |
    14 | src = ["cpu/relu.cpp"]
       |                       ^
    "#);
    insta::assert_snapshot!(edited("version = 1", "version ="), @"
    exit code 1
    --- stderr ---
    error[syntax]: a value is missing
      --> build.toml:3:10
      |
    3 | version =
      |          ^
    ");
    insta::assert_snapshot!(edited("\"relu\"", "\"relu"), @r#"
    exit code 1
    --- stderr ---
    error[syntax]: invalid basic string, expected `"`
      --> build.toml:2:13
      |
    2 | name = "relu
      |             ^
    "#);
}

#[test]
fn not_text() {
    let place = Place::with_project();
    place.write("relu/build.toml", [BUILD_TOML.as_bytes(), b"# caf\xe9\n"].concat());
    insta::assert_snapshot!(place.say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[encoding]: `build.toml` is not UTF-8: the byte 0xe9 in line 15, column 6 is no text
    hint: save the file as UTF-8
    ");
    place.write("relu/build.toml", BUILD_TOML.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[encoding]: `build.toml` is not UTF-8: the byte 0x00 in line 1, column 2 is no text
    hint: save the file as UTF-8
    ");
    place.write("relu/build.toml", "");
    insta::assert_snapshot!(place.say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[missing-key]: `general` is required
      --> build.toml:1:1
    hint: add `[general]`

    error[framework]: one of `torch`, `torch-noarch`, `tvm-ffi` is needed
      --> build.toml:1:1
    hint: add `[torch]` for a compiled kernel, `[torch-noarch]` for one in Python
    ");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_move_nothing() {
    let place = Place::with_project();
    place.write("relu/build.toml", format!("\u{feff}{}", BUILD_TOML.replace("\"cpu\"\ndep", "\"cpx\"\ndep").replace('\n', "\r\n")));
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[unknown-backend]: unknown backend `cpx`
       --> build.toml:12:11
       |
    12 | backend = "cpx"
       |           ^^^^^
       = allowed here: `cann`, `cpu`, `cuda`, `metal`, `rocm`, `xpu`
    hint: did you mean `cpu`?
    "#);
}

#[test]
fn tabs_and_wide_characters_before_the_caret() {
    insta::assert_snapshot!(edited("depends = []", "depends\t=\t[\"torch\",\t\"日本語\", \"tortch\"]"), @r#"
    exit code 1
    --- stderr ---
    error[unknown-dependency]: unknown dependency `日本語`
       --> build.toml:13:21
       |
    13 | depends    =    ["torch",    "日本語", "tortch"]
       |                              ^^^^^^^^
       = known dependencies: `torch`, `cutlass_2_10`, `cutlass_3_5`, `cutlass_3_6`, `cutlass_3_8`, `cutlass_3_9`, `cutlass_4_0`, `cutlass_4_4`, `cutlass_4_5`, `sycl_tla`, `metal-cpp`

    error[unknown-dependency]: unknown dependency `tortch`
       --> build.toml:13:28
       |
    13 | depends    =    ["torch",    "日本語", "tortch"]
       |                                        ^^^^^^^^
       = known dependencies: `torch`, `cutlass_2_10`, `cutlass_3_5`, `cutlass_3_6`, `cutlass_3_8`, `cutlass_3_9`, `cutlass_4_0`, `cutlass_4_4`, `cutlass_4_5`, `sycl_tla`, `metal-cpp`
    hint: did you mean `torch`?
    "#);
}

#[test]
fn several_faults_are_told_together_in_file_order() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "\"relu\"", "\"Relu\"");
    place.edit("relu/build.toml", "depends = []", "depends = 1");
    place.edit("relu/build.toml", "[\"cpu\"]", "[\"cpu\", \"cpu\", \"gpu\"]");
    place.edit("relu/build.toml", "[torch]\n", "[torch]\nminver = \"2.x\"\n");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[invalid-name]: kernel name `Relu` contains `R`: only lower-case letters, digits and dashes are allowed
      --> build.toml:2:8
      |
    2 | name = "Relu"
      |        ^^^^^^
    hint: did you mean `relu`?

    warning[duplicate-backend]: backend `cpu` is listed twice; the first counts
      --> build.toml:6:20
      |
    6 | backends = ["cpu", "cpu", "gpu"]
      |                    ^^^^^

    error[unknown-backend]: unknown backend `gpu`
      --> build.toml:6:27
      |
    6 | backends = ["cpu", "cpu", "gpu"]
      |                           ^^^^^
      = known backends: `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    hint: did you mean `cuda`?

    error[invalid-version]: malformed version `2.x`: numbers separated by dots are expected, such as `2.11`
      --> build.toml:9:10
      |
    9 | minver = "2.x"
      |          ^^^^^

    error[wrong-type]: `depends` must be a list of strings, found an integer
       --> build.toml:14:11
       |
    14 | depends = 1
       |           ^
    hint: write `depends = ["torch"]`
    "#);
    // A build stops there, and so does everything else that needs the configuration.
    let checked = place.run(&["check-config"]).errors();
    for args in [&["build"][..], &["list-variants"], &["matrix"], &["build", "--plan"]] {
        let run = place.run(args);
        assert_eq!(run.code, Some(1));
        assert_eq!(run.errors(), format!("{checked}error[configuration]: the configuration has 4 errors\n"), "{args:?}");
    }
}

#[test]
fn reports_for_programs() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends = []", "depends = [\"tortch\"]");
    place.edit("relu/build.toml", "backends = [\"cpu\"]", "backends = [\"cpu\", \"cpu\"]");
    insta::assert_snapshot!(place.say(&["check-config", "--format", "json"]), @r#"
    exit code 1
    --- stdout ---
    [
      {
        "level": "warning",
        "code": "duplicate-backend",
        "message": "backend `cpu` is listed twice; the first counts",
        "file": "build.toml",
        "line": 6,
        "column": 20,
        "end": {
          "line": 6,
          "column": 25
        }
      },
      {
        "level": "error",
        "code": "unknown-dependency",
        "message": "unknown dependency `tortch`",
        "note": "known dependencies: `torch`, `cutlass_2_10`, `cutlass_3_5`, `cutlass_3_6`, `cutlass_3_8`, `cutlass_3_9`, `cutlass_4_0`, `cutlass_4_4`, `cutlass_4_5`, `sycl_tla`, `metal-cpp`",
        "hint": "did you mean `torch`?",
        "file": "build.toml",
        "line": 13,
        "column": 12,
        "end": {
          "line": 13,
          "column": 20
        }
      }
    ]
    "#);
    place.write_project();
    assert_eq!(place.say(&["check-config", "--format", "json"]), "exit code 0\n--- stdout ---\n[]\n");
}

#[test]
fn warnings_fail_only_when_asked_to() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "backends = [\"cpu\"]", "backends = [\"cpu\", \"cpu\"]");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 0
    --- stderr ---
    warning[duplicate-backend]: backend `cpu` is listed twice; the first counts
      --> build.toml:6:20
      |
    6 | backends = ["cpu", "cpu"]
      |                    ^^^^^
    "#);
    assert_eq!(place.run(&["check-config", "--strict"]).code, Some(1));
}
