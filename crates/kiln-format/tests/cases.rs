//! Every file of `tests/cases` (see its README): what is accepted, and what is refused where and why.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::{Parsed, build, render};

/// Files under `bad` that are refused today, but not for the stated reason or not at the stated place, and why.
const REFUSED_OTHERWISE: &[(&str, &str)] = &[(
    "typo-in-torch-v4.toml",
    "a file of edition 4: its keys are checked by that edition's module, which does not exist yet; it is refused as a whole",
)];

/// Files under `bad` that this crate accepts, and who refuses them.
const REFUSED_LATER: &[(&str, &str)] =
    &[("stable-abi-too-new.toml", "only who knows the matrix of torch versions can say that no torch provides this stable ABI")];

/// Files under `ok` that are refused today, and why.
const NOT_READ_YET: &[(&str, &str)] = &[("edition-4", "older editions have no module yet")];

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// The sorted names in a directory of cases.
fn names(dir: &str) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(cases().join(dir)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn parse(path: &Path) -> Parsed {
    build::parse("build.toml", &fs::read_to_string(path).unwrap())
}

fn text(parsed: &Parsed) -> String {
    render(&parsed.source, &parsed.diagnostics)
}

fn excepted(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(excepted, _)| *excepted == name)
}

#[test]
fn accepted() {
    let mut seen = 0;
    for name in names("ok") {
        let parsed = parse(&cases().join("ok").join(&name).join("build.toml"));
        if excepted(NOT_READ_YET, &name) {
            assert!(text(&parsed).starts_with("error[edition]: this file is written in edition 4, "), "{name}:\n{}", text(&parsed));
            continue;
        }
        assert!(parsed.errors().next().is_none() && parsed.build.is_some(), "{name}:\n{}", text(&parsed));
        seen += 1;
    }
    assert_eq!(seen, 11);
}

/// Whether every word of the stated reason stands in `text`.
fn names_reason(reason: &str, text: &str) -> bool {
    let word = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    let text = text.to_lowercase();
    // What follows a semicolon is a remark of the case's author.
    let reason = reason.split(';').next().unwrap().to_lowercase();
    reason.split(word).filter(|part| !part.is_empty()).all(|part| text.contains(part))
}

#[test]
fn refused_at_the_stated_place_for_the_stated_reason() {
    let mut seen = 0;
    for name in names("bad") {
        let path = cases().join("bad").join(&name);
        let content = fs::read_to_string(&path).unwrap();
        let (place, reason) = content.lines().next().unwrap().strip_prefix("# refuse: ").unwrap().split_once(' ').unwrap();
        let parsed = parse(&path);
        if excepted(REFUSED_LATER, &name) {
            assert!(parsed.build.is_some(), "{name} is refused now: take it off the list");
            continue;
        }
        assert!(parsed.build.is_none(), "{name} is accepted");
        let fits = |diagnostic: &&kiln_format::Diagnostic| {
            let report = parsed.source.report(diagnostic);
            let said = [Some(report.message), report.note, report.hint].into_iter().flatten().collect::<Vec<_>>().join(" ");
            format!("{}:{}", report.line, report.column) == place && names_reason(reason, &said)
        };
        let found = parsed.errors().any(|error| fits(&error));
        if excepted(REFUSED_OTHERWISE, &name) {
            assert!(!found, "{name} is refused as stated now: take it off the list");
            continue;
        }
        assert!(found, "{name} should be refused at {place} ({reason}), but:\n{}", text(&parsed));
        seen += 1;
    }
    assert_eq!(seen, names("bad").len() - REFUSED_LATER.len() - REFUSED_OTHERWISE.len());
}

/// The same cases with a byte order mark and Windows line ends are refused at the same places.
#[test]
fn byte_order_mark_and_line_ends_move_nothing() {
    for name in names("bad") {
        let content = fs::read_to_string(cases().join("bad").join(&name)).unwrap();
        let plain = build::parse("build.toml", &content);
        let windows = build::parse("build.toml", &format!("\u{feff}{}", content.replace('\n', "\r\n")));
        assert_eq!(text(&plain), text(&windows), "{name}");
    }
}

#[test]
fn what_update_build_reads_and_writes() {
    for name in names("migrate") {
        let dir = cases().join("migrate").join(&name);
        let written = parse(&dir.join("out.toml"));
        assert!(written.build.is_some(), "{name}/out.toml:\n{}", text(&written));
        let read = parse(&dir.join("in.toml"));
        match name.split_once('-').unwrap().0 {
            "v5" => assert_eq!(read.build, written.build),
            edition => {
                let first = text(&read);
                let number = edition.strip_prefix('v').unwrap();
                assert!(first.starts_with(&format!("error[edition]: this file is written in edition {number}, ")), "{name}:\n{first}");
            }
        }
    }
}

/// The remark on each accepted file, so that a change of what is said about them is seen.
#[test]
fn what_is_said_about_accepted_files() {
    let mut said = String::new();
    for name in names("ok") {
        let parsed = parse(&cases().join("ok").join(&name).join("build.toml"));
        if !excepted(NOT_READ_YET, &name) && !parsed.diagnostics.is_empty() {
            said += &format!("{name}:\n{}\n", text(&parsed));
        }
    }
    insta::assert_snapshot!(said, @r#"
    mixed:
    note[noarch-backend]: no kernel is for backend `rocm`: it gets a variant in Python only
      --> build.toml:6:28
      |
    6 | backends = ["cpu", "cuda", "rocm"]
      |                            ^^^^^^

    stable-abi-string:
    note[noarch-backend]: no kernel is for backend `cuda`: it gets a variant in Python only
      --> build.toml:6:20
      |
    6 | backends = ["cpu", "cuda"]
      |                    ^^^^^^
    "#);
}
