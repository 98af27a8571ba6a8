//! Which edition a file without `edition` is told to be in, by every rule, and that no mistake in a table changes it.

use kiln_format::{Diagnostic, build};

/// The errors of `text`.
fn errors(text: &str) -> Vec<Diagnostic> {
    let parsed = build::parse("build.toml", text);
    assert!(parsed.build.is_none());
    parsed.errors().cloned().collect()
}

/// The edition that `text` was told to be in, and by which keys, as the warning says; the error where none was told.
fn told(text: &str) -> String {
    let parsed = build::parse("build.toml", text);
    let Some(warning) = parsed.diagnostics.iter().find(|diagnostic| diagnostic.code == "old-edition") else {
        let errors: Vec<&Diagnostic> = parsed.errors().collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        return format!("{} ", errors[0].message.split(": `torch.universal`").next().unwrap_or_default());
    };
    let edition = warning.message.strip_prefix("this file is written in edition ").unwrap_or(&warning.message);
    let keys = warning.note.as_deref().and_then(|note| note.split_once("it has ")).map_or("", |(_, keys)| keys);
    format!("{} {keys}", edition.split(' ').next().unwrap_or_default())
}

#[test]
fn backends_and_a_newer_key() {
    let head = "[general]\nname = 'ab'\nbackends = ['cpu']\n";
    for (rest, keys) in [
        ("[torch-noarch]\n", "`torch-noarch`"),
        ("source = 'https://example.org/x'\n", "`general.source`"),
        ("[torch]\nstable-abi = '2.10'\n", "`torch.stable-abi`"),
        ("[torch]\ncxx-flags = []\n", "`torch.cxx-flags`"),
        ("[tvm-ffi]\ncxx-flags = []\n", "`tvm-ffi.cxx-flags`"),
        ("version = 1\nlicense = 'MIT'\n[torch]\n", "`general.version`, `general.license`"),
        ("version = 1\nlicense = 'MIT'\n[tvm-ffi]\n", "`general.version`, `general.license`"),
    ] {
        assert_eq!(told(&format!("{head}{rest}")), format!("4 {keys}"));
    }
    for rest in ["", "version = 1\n[torch]\n", "version = 1\nlicense = 'MIT'\n", "license = 'MIT'\n[kernel.k]\nbackend = 'cpu'\n"] {
        assert_eq!(told(&format!("{head}{rest}")), "3 `general.backends`");
    }
}

#[test]
fn no_backends_but_a_newer_key() {
    let head = "[general]\nname = 'ab'\n";
    for (rest, key) in [
        ("version = 1\n", "`general.version`"),
        ("license = 'MIT'\n", "`general.license`"),
        ("upstream = 'a:b'\n", "`general.upstream`"),
        ("source = 'a:b'\n", "`general.source`"),
        ("neuron = {}\n", "`general.neuron`"),
        ("xpu = {}\n", "`general.xpu`"),
        ("cuda = {}\n", "`general.cuda`"),
        ("[tvm-ffi]\n", "`tvm-ffi`"),
        ("[torch-noarch]\n", "`torch-noarch`"),
    ] {
        assert_eq!(told(&format!("{head}{rest}")), format!("4 {key}"));
    }
}

#[test]
fn the_first_two() {
    let head = "[general]\nname = 'ab'\n";
    for (rest, expected) in [
        ("[kernel.k]\nbackend = 'cuda'\n", "2 `backend`"),
        ("universal = true\n", "2 `general.universal`"),
        ("cuda-minver = '12.0'\ncuda-maxver = '12.8'\n", "2 `general.cuda-minver`, `general.cuda-maxver`"),
        ("hub = {}\n", "2 `general.hub`"),
        ("python-depends = []\n", "2 `general.python-depends`"),
        ("[torch]\nminver = '2.8'\n", "2 `torch.minver`"),
        ("[torch]\nmaxver = '2.8'\n", "2 `torch.maxver`"),
        ("[kernel.k]\nlanguage = 'cuda'\n", "1 `language`"),
        ("[kernel.k]\nsrc = []\n", "1 `kernels without `backend``"),
        ("[torch]\nuniversal = true\n", "1 `torch.universal`"),
        ("[torch]\nuniversal = true\nminver = '2.8'\n", "keys of editions 1 and 2 are mixed "),
        ("[kernel.k]\nlanguage = 'cuda'\nbackend = 'cuda'\n", "keys of editions 1 and 2 are mixed: `language`, `backend` "),
        ("[torch]\nsrc = []\n", "neither `backends` in [general] nor kernels: nothing tells what to build "),
        ("kernel = 1\n", "neither `backends` in [general] nor kernels: nothing tells what to build "),
    ] {
        assert_eq!(told(&format!("{head}{rest}")), expected);
    }
}

/// A mistake in the framework's table leaves the file in its edition: it never becomes one without that table.
#[test]
fn a_typo_changes_nothing() {
    let text = "[general]\nname = 'ab'\nversion = 1\nlicense = 'MIT'\nbackends = ['cpu']\n[torch]\nsrcc = ['a.cpp']\n";
    assert_eq!(told(text), "4 `general.version`, `general.license`");
    let no_table = format!("torch = 1\n{}", text.split("[torch]").next().unwrap_or_default());
    assert_eq!(told(&no_table), "4 `general.version`, `general.license`");
}

#[test]
fn a_named_edition_wins() {
    for number in 1..=4 {
        let text = format!("[general]\nname = 'ab'\nedition = {number}\nbackends = []\n[torch-noarch]\n");
        assert_eq!(told(&text), format!("{number} "));
    }
}

/// Without `[general]` no edition can be told; what else is wrong is said all the same.
#[test]
fn no_general() {
    let errors = errors("[torch]\nsrcc = []\n");
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["`general` is required", "unknown key `srcc` in [torch]"]);
}
