//! Every file of `tests/cases` (see its README): what is accepted, and what is refused where and why.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::{Parsed, build, render};

/// Files under `bad` that this crate accepts, and who refuses them.
const REFUSED_LATER: &[(&str, &str)] =
    &[("stable-abi-too-new.toml", "only who knows the matrix of torch versions can say that no torch provides this stable ABI")];

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
        assert!(parsed.errors().next().is_none() && parsed.build.is_some(), "{name}:\n{}", text(&parsed));
        seen += 1;
    }
    assert_eq!(seen, 12);
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
        assert!(found, "{name} should be refused at {place} ({reason}), but:\n{}", text(&parsed));
        seen += 1;
    }
    assert_eq!(seen, names("bad").len() - REFUSED_LATER.len());
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
    let mut seen = 0;
    for name in names("migrate") {
        let dir = cases().join("migrate").join(&name);
        let [old, new] = ["in.toml", "out.toml"].map(|file| fs::read_to_string(dir.join(file)).unwrap());
        // Files of the first two editions have no license.
        let license = matches!(name.split('-').next(), Some("v1" | "v2")).then_some("MIT");
        let updated = build::update("build.toml", &old, license).unwrap();
        assert_eq!(updated.text, new, "{name}");
        assert_eq!(updated.changes.is_empty(), old == new, "{name}");
        let again = build::update("build.toml", &new, None).unwrap();
        assert_eq!(again.text, new, "{name}");
        assert!(again.changes.iter().all(|change| change.kind == build::ChangeKind::Kept), "{name}");
        seen += 1;
    }
    assert!(seen >= 4);
}

/// The remark on each accepted file, so that a change of what is said about them is seen.
#[test]
fn what_is_said_about_accepted_files() {
    let mut said = String::new();
    for name in names("ok") {
        let parsed = parse(&cases().join("ok").join(&name).join("build.toml"));
        if !parsed.diagnostics.is_empty() {
            said += &format!("{name}:\n{}\n", text(&parsed));
        }
    }
    insta::assert_snapshot!(said, @r#"
    edition-4:
    warning[old-edition]: this file is written in edition 4 of the format; it is read as one of edition 5
      --> build.toml:1:1
      = there is no `edition`, and it has `torch.stable-abi`
    hint: `kiln update-build .` brings it up to date

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
