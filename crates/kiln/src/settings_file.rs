//! `kiln.toml`, the optional file beside `build.toml` for what the shared format has no place for.
//!
//! | key | type | meaning |
//! |---|---|---|
//! | `[index] url` | string | the package index that toolchains come from; `--index` beats it |
//! | `[build] cxx` | string | the C++ compiler: a program name or a path; `--cxx` beats it |
//! | `[matrix] file` | string | a matrix file to use in place of the built-in one, relative to the project; `--matrix` beats it |
//!
//! Unknown keys and tables are refused.

use std::ops::Range;

use kiln_format::{Diagnostic, Span, Spanned};
use kiln_toolchain::IndexUrl;
use toml::de::{DeTable, DeValue};

/// The file's name in the project.
pub const FILE_NAME: &str = "kiln.toml";

/// What a `kiln.toml` says. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `[index] url`.
    pub index_url: Option<Spanned<String>>,
    /// `[build] cxx`.
    pub cxx: Option<Spanned<String>>,
    /// `[matrix] file`, relative to the project unless absolute.
    pub matrix_file: Option<Spanned<String>>,
}

/// The tables and their keys; the one list that parsing and messages use.
const KEYS: [(&str, &str); 3] = [("build", "cxx"), ("index", "url"), ("matrix", "file")];

/// Reads the text of a `kiln.toml`. All faults are reported, not the first one only; what was understood is in the settings.
pub fn parse(text: &str) -> (Settings, Vec<Diagnostic>) {
    let mut settings = Settings::default();
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let fault = |e: &toml::de::Error| Diagnostic::error("syntax", e.span().map(Span::from), e.message().replace('\n', ", "));
        return (settings, errors.iter().map(fault).collect());
    }
    let mut diagnostics = Vec::new();
    for (name, value) in table.get_ref() {
        let known: Vec<&str> = KEYS.iter().filter(|(table, _)| *table == name.get_ref()).map(|(_, key)| *key).collect();
        if known.is_empty() {
            let tables = KEYS.iter().map(|(table, _)| format!("[{table}]"));
            diagnostics.push(unknown("table", name.get_ref(), name.span(), tables));
            continue;
        }
        let DeValue::Table(entries) = value.get_ref() else {
            diagnostics.push(wrong_type(name.get_ref(), "a table", value.get_ref().type_str(), value.span()));
            continue;
        };
        for (key, value) in entries {
            let slot = match (name.get_ref().as_ref(), key.get_ref().as_ref()) {
                ("index", "url") => &mut settings.index_url,
                ("build", "cxx") => &mut settings.cxx,
                ("matrix", "file") => &mut settings.matrix_file,
                (_, other) => {
                    diagnostics.push(unknown("key", other, key.span(), known.iter().map(ToString::to_string)));
                    continue;
                }
            };
            match value.get_ref() {
                DeValue::String(text) if !text.trim().is_empty() => *slot = Some(Spanned::new(text.trim().to_owned(), value.span().into())),
                DeValue::String(_) => {
                    diagnostics.push(Diagnostic::error("invalid-value", Span::from(value.span()), format!("`{}` is empty", key.get_ref())));
                }
                other => diagnostics.push(wrong_type(key.get_ref(), "a string", other.type_str(), value.span())),
            }
        }
    }
    if let Some(url) = settings.index_url.take() {
        match IndexUrl::parse(&url) {
            Ok(_) => settings.index_url = Some(url),
            Err(reason) => diagnostics.push(
                Diagnostic::error("invalid-url", url.span, format!("`url` is not the address of a package index: {reason}"))
                    .with_hint("an index address has the form `https://host/simple`".to_owned()),
            ),
        }
    }
    // The table is sorted by key: the file's order is what a reader expects.
    diagnostics.sort_by_key(|d| d.span.map(|span| span.start));
    (settings, diagnostics)
}

fn unknown(what: &str, name: &str, at: Range<usize>, known: impl Iterator<Item = String>) -> Diagnostic {
    let allowed = known.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Diagnostic::error("unknown-key", Span::from(at), format!("unknown {what} `{}`", name.escape_debug()))
        .with_note(format!("allowed here: {allowed}"))
}

fn wrong_type(name: &str, wanted: &str, found: &str, at: Range<usize>) -> Diagnostic {
    let article = if found.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    Diagnostic::error("wrong-type", Span::from(at), format!("`{name}` must be {wanted}, found {article} {found}"))
}

#[cfg(test)]
mod tests {
    use kiln_format::{SourceFile, render};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_key() {
        let text =
            "\u{feff}[index]\nurl = \"https://index.example/simple\"\n[build]\ncxx = \" clang++ \"\n[matrix]\nfile = \"../matrix.toml\"\n";
        let (settings, diagnostics) = parse(text);
        assert_eq!(diagnostics, []);
        let value = |s: &Option<Spanned<String>>| s.as_ref().map(|s| s.value.clone());
        assert_eq!(value(&settings.index_url).as_deref(), Some("https://index.example/simple"));
        assert_eq!(value(&settings.cxx).as_deref(), Some("clang++"));
        assert_eq!(value(&settings.matrix_file).as_deref(), Some("../matrix.toml"));
        assert_eq!(parse(""), (Settings::default(), Vec::new()));
        assert_eq!(parse("[build]\n").0, Settings::default());
    }

    #[test]
    fn all_faults_in_file_order() {
        let text = "[matrix]\nfile = 1\n[build]\ncxx = \"\"\ncxxflags = []\n[index]\nurl = \"somewhere\"\n[torch]\n";
        let (settings, diagnostics) = parse(text);
        assert_eq!(settings, Settings::default());
        insta::assert_snapshot!(render(&SourceFile::new(FILE_NAME, text), &diagnostics), @r#"
        error[wrong-type]: `file` must be a string, found an integer
          --> kiln.toml:2:8
          |
        2 | file = 1
          |        ^

        error[invalid-value]: `cxx` is empty
          --> kiln.toml:4:7
          |
        4 | cxx = ""
          |       ^^

        error[unknown-key]: unknown key `cxxflags`
          --> kiln.toml:5:1
          |
        5 | cxxflags = []
          | ^^^^^^^^
          = allowed here: `cxx`

        error[invalid-url]: `url` is not the address of a package index: it does not begin with `https://` or `http://`
          --> kiln.toml:7:7
          |
        7 | url = "somewhere"
          |       ^^^^^^^^^^^
        hint: an index address has the form `https://host/simple`

        error[unknown-key]: unknown table `torch`
          --> kiln.toml:8:2
          |
        8 | [torch]
          |  ^^^^^
          = allowed here: `[build]`, `[index]`, `[matrix]`
        "#);
    }

    #[test]
    fn no_toml() {
        let (_, diagnostics) = parse("[index\nurl = x");
        assert!(!diagnostics.is_empty() && diagnostics.iter().all(|d| d.code == "syntax" && d.span.is_some()));
        let (_, diagnostics) = parse("index = 1");
        assert_eq!(diagnostics[0].message, "`index` must be a table, found an integer");
    }

    proptest! {
        #[test]
        fn every_place_is_inside_the_text(text in "([a-z]{5,6}|[\\[\\].=\"\n1]){0,20}") {
            for diagnostic in parse(&text).1 {
                prop_assert!(diagnostic.span.is_none_or(|span| span.start <= span.end && span.end <= text.len()), "{diagnostic:?}");
            }
        }
    }
}
