//! Files that nobody writes: an error or a result in bounded time, never a panic.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fmt::Write;

use kiln_format::build;

/// A file of the first edition with this many kernels, half of which become two.
fn many_kernels(count: usize) -> String {
    let mut text = "[general]\nname = 'ab'\n[torch]\nsrc = []\n".to_owned();
    for number in 0..count {
        let language = if number % 2 == 0 { "cuda-hipify" } else { "cuda" };
        write!(
            text,
            "\n[kernel.k{number}]\nlanguage = '{language}' # {number}\nsrc = ['{number}.cu']\ndepends = []\nrocm-archs = ['gfx942']\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_thousand_kernels() {
    let text = many_kernels(1000);
    let parsed = build::parse("build.toml", &text);
    assert_eq!(parsed.build.unwrap().kernels.len(), 1500);
    let update = build::update("build.toml", &text, Some("MIT")).unwrap();
    assert_eq!(update.text.matches("[kernel.").count(), 1500);
    assert!((0..1000).all(|number| update.text.contains(&format!("# {number}\n"))));
}

#[test]
fn a_megabyte_of_nesting() {
    let general = "[general]\nname = 'ab'\nbackends = ['cpu']\n[torch]\nsrc = ";
    for (open, close) in [("[", "]"), ("{ a = ", " }"), ("[{ a = ", " }]")] {
        let depth = 1_000_000 / (open.len() + close.len());
        for text in [
            format!("{general}{}{}", open.repeat(depth), close.repeat(depth)),
            format!("{general}{}", open.repeat(depth)),
            format!("{general}{}", close.repeat(depth)),
        ] {
            assert!(build::parse("build.toml", &text).build.is_none());
            assert!(build::update("build.toml", &text, Some("MIT")).is_err());
        }
    }
    let dotted = format!("{} = 1\n", vec!["a"; 100_000].join("."));
    assert!(build::parse("build.toml", &dotted).build.is_none());
    let headers = format!("[{}]\n", vec!["a"; 100_000].join("."));
    assert!(build::update("build.toml", &headers, None).is_err());
}

#[test]
fn a_megabyte_of_one_value() {
    let general = "[general]\nname = 'ab'\nversion = 1\nlicense = 'MIT'\nbackends = ['cpu']\n";
    let list = format!("{general}[torch]\nsrc = [{}]\n", "'a.cpp', # x\n".repeat(70_000));
    let update = build::update("build.toml", &list, None).unwrap();
    assert_eq!(update.text, list.replace("version = 1\n", "version = 1\nedition = 5\n"));
    let string = format!("{general}upstream = 'https://example.org/{}'\n[torch]\n", "x".repeat(1_000_000));
    assert!(build::update("build.toml", &string, None).is_ok());
}

#[test]
fn odd_values() {
    for value in [
        "99999999999999999999999999",
        "1979-05-27T07:32:00Z",
        "07:32:00",
        "nan",
        "-inf",
        "0xffffffffffffffffff",
        "1e999",
        "-0",
        "true",
        "{}",
        "[]",
    ] {
        for key in ["name", "version", "edition", "license", "backends", "cuda", "hub", "python-depends", "universal", "cuda-minver"] {
            let text = format!(
                "[general]\n{key} = {value}\n[kernel.k]\nlanguage = {value}\nbackend = {value}\nsrc = {value}\n[torch]\nstable-abi = {value}\n"
            );
            assert!(build::parse("build.toml", &text).build.is_none(), "{text}");
            assert!(build::update("build.toml", &text, Some("MIT")).is_err(), "{text}");
        }
    }
}

/// Every line may be the last one, and every byte: what is left is refused or read.
#[test]
fn cut_files() {
    let text = many_kernels(3).replace('\n', "\r\n");
    for end in 0..text.len() {
        let text = format!("\u{feff}{}", &text[..end]);
        let read = build::parse("build.toml", &text).build.is_some();
        assert_eq!(build::update("build.toml", &text, Some("MIT")).is_ok(), read, "{text}");
    }
}
