//! However long the lines, keys and values of a file: what is said about it is short, and is said soon: what grows with the square of
//! the length does not end here.

use kiln_format::build::{Parsed, parse};
use kiln_format::{Diagnostic, Level, LineColumn, render};

/// Longest text for one thing that is said, in bytes: a message, a line of the file, carets, a note and a hint.
const LONGEST: usize = 4000;

/// What is said about `text`, each thing by itself.
fn said(text: &str) -> Vec<String> {
    let parsed = parse("build.toml", text);
    let said: Vec<String> = parsed.diagnostics.iter().map(|diagnostic| render(&parsed.source, std::slice::from_ref(diagnostic))).collect();
    for text in &said {
        assert!(text.len() <= LONGEST, "{} bytes: {}", text.len(), text.get(..300).unwrap_or(text));
    }
    said
}

const HEAD: &str = "[general]\nname = 'ab'\nversion = 1\nedition = 5\nlicense = 'MIT'\nbackends = ['cpu']\n";

#[test]
fn brackets_in_brackets() {
    for open in ["[", "{a=", "[{a=", "(", "\"[", "= ", "]", "}", ".", "'''", "\\", "#\u{1}"] {
        // A megabyte of what is nested, and of the rest what would take too long if it took longer with each byte.
        let length = if open.starts_with(['[', '{']) { 1_000_000 } else { 200_000 };
        for before in ["", "a = ", "[torch]\nsrc = "] {
            let text = format!("{before}{}", open.repeat(length / open.len()));
            assert!(!said(&text).is_empty(), "{before}{open}");
        }
    }
}

#[test]
fn long_keys_and_values() {
    let long = "x".repeat(1_000_000);
    let digits = "9".repeat(1_000_000);
    let dots = "1.".repeat(500_000);
    for (key, value) in [
        (long.as_str(), "1"),
        ("name", &format!("'{long}_'")),
        ("name", &digits),
        ("edition", &digits),
        ("edition", &format!("'{digits}'")),
        ("edition", &format!("-{digits}")),
        ("edition", &format!("1{digits}.0")),
        ("version", &digits),
        ("version", &format!("'{digits}'")),
        ("license", &format!("['{long}']")),
        ("upstream", &format!("'{long}'")),
        ("upstream", &format!("'{long}://x'")),
        ("upstream", &format!("'https://{long}:{long}@example org/{long}'")),
        ("source", &format!("'host:{long}'")),
        ("backends", &format!("['{long}']")),
        ("backends", &format!("'{long}'")),
        ("python-depends", &format!("['{long}']")),
        ("kernel-depends", &format!("[{{repo-id='{long}',version={digits}}}]")),
        ("hub", &format!("{{repo-id='{long}'}}")),
        ("cuda", &format!("{{minver='{long}',maxver={digits}}}")),
        ("cuda", &format!("{{minver='{digits}',maxver='1.{digits}'}}")),
        ("cuda", &format!("{{minver='{dots}2',maxver='{dots}1'}}")),
        ("cuda", &format!("{{{long}=1}}")),
        ("tpu", &format!("{{python-depends=['\u{1b}{long}']}}")),
    ] {
        let lines: Vec<&str> = HEAD.lines().filter(|line| !line.starts_with(&format!("{key} "))).collect();
        let text = format!("{}\n{key} = {value}\n[torch-noarch]\n", lines.join("\n"));
        let shown: String = format!("{key} = {value}").chars().take(60).collect();
        assert!(!said(&text).is_empty(), "{shown}");
    }
    for (table, line) in [
        ("torch", format!("stable-abi = '{long}'")),
        ("torch", format!("stable-abi = {{ {long} = '2.11' }}")),
        ("torch", format!("stable-abi = {{ cpu = '1.{digits}' }}")),
        ("torch", format!("src = ['/{long}', '../{long}', 'a\\{long}', {digits}]")),
        ("torch", format!("pyext = ['.{long}', '/{long}']")),
        (&format!("torch.{long}"), "a = 1".to_owned()),
        (&format!("torch]\n[kernel.{long}"), "backend = 'cpu'".to_owned()),
        (&format!("torch]\n[kernel.{long}"), "a = 'cpu'".to_owned()),
        (&format!("torch]\n[kernel.'{long} '"), "backend = 'rocm'\nsrc = []\ndepends = []".to_owned()),
        ("torch]\n[kernel.k", format!("backend = '{long}'\nsrc = []\ndepends = ['{long}']")),
        (
            "torch]\n[kernel.k",
            format!("backend = 'cuda'\nsrc = []\ndepends = []\ncuda-capabilities=['{long}']\ncuda-flags=['-arch={long}']"),
        ),
        (&format!("torch]\n[{long}"), String::new()),
        ("torch]\n[torch", format!("{long} = 1\n{long} = 2")),
    ] {
        assert!(!said(&format!("{HEAD}[{table}]\n{line}\n")).is_empty(), "{}", table.chars().take(40).collect::<String>());
    }
}

/// Files that are wrong in more places than anybody reads.
#[test]
fn more_errors_than_anybody_reads() {
    let one_line = format!("{HEAD}[torch]\nsrc = [{}]\n", "1,".repeat(100_000));
    let many_lines = format!("{HEAD}[torch]\nsrc = [{}]\n", "1,\n".repeat(50_000));
    let keys: String = (0..10_000).map(|number| format!("srcs{number} = 1\n")).collect();
    let backends: String = (0..10_000).map(|number| format!("cpu{number} = 1\n")).collect();
    let kernels: String = (0..5_000).map(|number| format!("[kernel.k{number}]\nbackend = 'cuda'\n")).collect();
    for text in [
        one_line,
        many_lines,
        format!("{HEAD}[torch]\n{keys}"),
        format!("{HEAD}{keys}[torch]\n"),
        format!("{HEAD}[torch]\n[kernel.k]\nbackend = 'cuda'\n{keys}"),
        format!("{HEAD}[torch.stable-abi]\n{backends}"),
        format!("{HEAD}[torch]\n{kernels}"),
        "a = = 1\n".repeat(30_000),
        "a = = 1 ".repeat(30_000),
        "a = 1\n".repeat(30_000),
    ] {
        let said = said(&text);
        assert!(said.len() <= 1001, "{}", said.len());
        if let (1001, Some(last)) = (said.len(), said.last()) {
            assert!(last.starts_with("error[and-more]: ") && last.contains(" more are not shown\n"), "{last}");
        }
    }
    let parsed = parse("build.toml", &format!("{HEAD}[torch]\nsrc = [{}]\n", "1,".repeat(2000)));
    assert_eq!(parsed.diagnostics.len(), 1001);
    assert_eq!(parsed.diagnostics.last().map(|last| last.message.as_str()), Some("1001 more are not shown"));
    assert_eq!(parsed.errors().count(), 1000);
}

/// The text of the one error of `parsed`, which stands behind the note that no kernel is for the backend.
fn shown(parsed: &Parsed) -> String {
    let beside: Vec<_> = parsed.diagnostics.iter().filter(|said| said.level != Level::Error).map(|said| (said.level, said.code)).collect();
    assert_eq!(beside, [(Level::Note, "noarch-backend")]);
    let errors: Vec<Diagnostic> = parsed.errors().cloned().collect();
    render(&parsed.source, &errors)
}

#[test]
fn of_a_long_line_what_stands_around_the_place() {
    let many = |count: usize, of: &str| vec![of; count].join(", ");
    let parsed = parse("build.toml", &format!("{HEAD}[torch]\nsrc = [{}, 5, {}]\n", many(500, "'a.cpp'"), many(500, "'b.cpp'")));
    insta::assert_snapshot!(shown(&parsed), @r#"
    error[wrong-type]: every element of this list must be a string, found an integer
      --> build.toml:8:4508
      |
    8 | ...cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 5, 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b.cpp', 'b...
      |                                                                ^
    hint: write `"5"`
    "#);
    let report = parsed.source.report(&parsed.diagnostics[1]);
    assert_eq!((report.line, report.column, report.end), (8, 4508, LineColumn { line: 8, column: 4509 }));
    let parsed = parse("build.toml", &format!("{HEAD}[torch]\nsrc = [{}, '/日本語/{}']\n", many(100, "'日.cpp'"), "長".repeat(500)));
    insta::assert_snapshot!(shown(&parsed), @"
    error[invalid-path]: `/日本語/長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長 ... 長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長` is an absolute path: paths are relative to the project
      --> build.toml:8:908
      |
    8 | ...cpp', '日.cpp', '日.cpp', '日.cpp', '日.cpp', '日.cpp', '日.cpp', '/日本語/長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長長...
      |                                                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
    let parsed = parse("build.toml", &format!("{HEAD}[torch]\nsrc = [{}, 5]\n", many(100, "'a.cpp'")));
    insta::assert_snapshot!(shown(&parsed), @r#"
    error[wrong-type]: every element of this list must be a string, found an integer
      --> build.toml:8:908
      |
    8 | ...'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 'a.cpp', 5]
      |                                                                                                                                                                                                          ^
    hint: write `"5"`
    "#);
}

/// A password is hidden wherever the line is cut.
#[test]
fn what_is_secret_stays_so() {
    for pad in 0..260 {
        for rest in ["", "x"] {
            let address = format!("https://user:{}@example.org/x?token={}", "SECRET".repeat(10), "SECRET".repeat(20));
            let text = format!("{HEAD}hub = {{ branch = '{}', y = '{address}', z = '{}' }}\n[torch]\n", "x".repeat(pad), rest.repeat(300));
            let said = said(&text).join("\n");
            assert!(said.contains("unknown key `y`") && !said.contains("SECRET") && !said.contains("ECRE"), "{said}");
        }
    }
}
