//! `kiln.toml`, the optional file beside `build.toml` for what the shared format has no place for.
//!
//! | key | type | meaning |
//! |---|---|---|
//! | `[index] url` | string | the package index that toolchains come from, a URL or a path from the project; `--index` beats it |
//! | `[index] torch` | string | an index of torch builds that the package index lacks, of the same form; `--torch-index` beats it |
//! | `[build] cxx` | string | the C++ compiler: a program name or a path; `--cxx` beats it |
//! | `[build] floor` | string | the oldest systems that the result loads on: `manylinux_2_28` (the default), or `host` for those like this one; a release keeps to the default |
//! | `[build] tvm-ffi` | string | the tvm-ffi release whose headers tvm-ffi kernels include, and the oldest that loads them; by default the oldest one that the catalog has of the minor version |
//! | `[checks] CODE` | string | silences the remark with this code; the reason why |
//! | `[headers] cutlass` | string | the directory of CUTLASS's sources, for `cutlass_*` in `depends`, relative to the project |
//! | `[headers] metal-cpp` | string | the directory of metal-cpp's headers, for `metal-cpp` in `depends`, relative to the project; by default those of a wheel |
//! | `[metal] deployment-target` | string | the oldest macOS that extensions for Metal are for: `26.0` (the default), which loaders ask for |
//! | `[metal] language` | string | the language of shaders, as `-std=` takes it: `metal4.0` (the default) |
//! | `[matrix] file` | string | a matrix file to use in place of the built-in one, relative to the project; `--matrix` beats it |
//!
//! A vendor may have a table of its own, called like its backend, with keys that its crate lists. Unknown keys and tables are refused.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use kiln_backend::Toolkits;
use kiln_format::{BackendName, Diagnostic, Span, Spanned, Version, first_of_many};
use kiln_toolchain::IndexUrl;
use kiln_toolchain::floor::FloorChoice;
use toml::de::{DeTable, DeValue};

use crate::backends::VENDORS;
use crate::config_check::LINTS;

/// The file's name in the project.
pub const FILE_NAME: &str = "kiln.toml";

/// What a `kiln.toml` says. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `[index] url`.
    pub index_url: Option<Spanned<String>>,
    /// `[index] torch`.
    pub torch_index: Option<Spanned<String>>,
    /// `[build] cxx`.
    pub cxx: Option<Spanned<String>>,
    /// `[build] floor`.
    pub floor: Option<Spanned<FloorChoice>>,
    /// `[build] tvm-ffi`.
    pub tvm_ffi: Option<Spanned<Version>>,
    /// `[headers] cutlass`, relative to the project unless absolute.
    pub cutlass: Option<Spanned<String>>,
    /// `[headers] metal-cpp`, relative to the project unless absolute.
    pub metal_cpp: Option<Spanned<String>>,
    /// `[checks]`: codes of remarks that are not to be shown, each with the reason.
    pub silenced: BTreeMap<String, Spanned<String>>,
    /// `[matrix] file`, relative to the project unless absolute.
    pub matrix_file: Option<Spanned<String>>,
    /// The tables of vendors, by backend and key.
    pub vendors: BTreeMap<BackendName, BTreeMap<String, String>>,
}

impl Settings {
    /// What the table of a backend's vendor says, by key.
    pub fn of_vendor(&self, backend: BackendName) -> &BTreeMap<String, String> {
        static NOTHING: BTreeMap<String, String> = BTreeMap::new();
        self.vendors.get(&backend).unwrap_or(&NOTHING)
    }
}

/// The table whose keys are codes of remarks.
const CHECKS: &str = "checks";

/// The tables and their keys; the one list that parsing and messages use.
const KEYS: [(&str, &str); 8] = [
    ("build", "cxx"),
    ("build", "floor"),
    ("build", "tvm-ffi"),
    ("headers", "cutlass"),
    ("headers", "metal-cpp"),
    ("index", "torch"),
    ("index", "url"),
    ("matrix", "file"),
];

/// Reads the text of a `kiln.toml`. All faults are reported, not the first one only; what was understood is in the settings.
pub fn parse(text: &str) -> (Settings, Vec<Diagnostic>) {
    let (settings, diagnostics) = read(text);
    (settings, first_of_many(diagnostics))
}

/// `text` as excerpts of it may show it: of an address that stands for an index, what may be a token is hidden behind stars, one for
/// each byte. Where users and queries stand, excerpts themselves hide them; a token may stand where the scheme or a port should be,
/// in a path, or alone.
pub fn without_tokens(text: &str) -> String {
    text.split_inclusive('\n').map(line_without_tokens).collect()
}

fn line_without_tokens(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, quote, value, after)) = quoted(rest) {
        out.push_str(before);
        out.push(quote);
        // The key may have quotes of its own.
        let key = line.get(..line.len() - rest.len() + before.len()).unwrap_or_default();
        // One that was to be a path, and is worth showing for that.
        let is_path = || {
            let has_colon = value.contains([':', '@', '?']);
            (value.contains('/') && !has_colon) || IndexUrl::parse_in(value, Path::new("/")).is_ok_and(|url| url.local().is_some())
        };
        if names_an_index(key) && !is_path() {
            out.push_str(&address_without_tokens(value))
        } else {
            out.push_str(value)
        }
        rest = match after.strip_prefix(quote) {
            Some(after) => {
                out.push(quote);
                after
            }
            None => after,
        };
    }
    out + rest
}

/// What stands before the next string of a line, its quote, what is in it (without the closing quote, if there is one), and the rest.
fn quoted(line: &str) -> Option<(&str, char, &str, &str)> {
    let at = line.find(['"', '\''])?;
    let (before, rest) = line.split_at(at);
    let quote = rest.chars().next()?;
    let inside = rest.get(1..)?;
    let end = inside.find(quote).unwrap_or_else(|| inside.trim_end_matches(['\r', '\n']).len());
    let (value, after) = inside.split_at(end);
    Some((before, quote, value, after))
}

/// Whether the text before a value ends with the key of an index.
fn names_an_index(before: &str) -> bool {
    let key = before.trim_end().strip_suffix('=').unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
    KEYS.iter().filter(|(table, _)| *table == "index").any(|(_, name)| {
        let ahead = key.strip_suffix(name);
        ahead.is_some_and(|ahead| !ahead.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
    })
}

/// An address with stars for all but its scheme, its slashes and what excerpts hide by themselves; of one that is whole, for the token of
/// its path alone.
fn address_without_tokens(value: &str) -> String {
    let stars = |text: &str| "*".repeat(text.len());
    match (value.split_once("://"), IndexUrl::parse(value)) {
        (Some((scheme, rest)), Ok(_)) => match rest.split_once("/t/") {
            Some((before, token)) => format!("{scheme}://{before}/t/{}", stars(token)),
            None => value.to_owned(),
        },
        (Some((scheme @ ("https" | "http" | "ftp"), rest)), Err(_)) => {
            // The host is worth showing; behind it, a colon may stand before something else than a port.
            let host = rest.rfind('@').map_or(0, |at| at + 1);
            let end = rest.get(host..).and_then(|rest| rest.find([':', '/', '?', '#'])).map_or(rest.len(), |at| host + at);
            let (shown, behind) = rest.split_at(end);
            let hidden = behind.starts_with(':') || behind.contains("/t/");
            format!("{scheme}://{shown}{}", if hidden { stars(behind) } else { behind.to_owned() })
        }
        _ => stars(value),
    }
}

fn read(text: &str) -> (Settings, Vec<Diagnostic>) {
    let mut settings = Settings::default();
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let fault = |e: &toml::de::Error| Diagnostic::error("syntax", e.span().map(Span::from), e.message().replace('\n', ", "));
        return (settings, errors.iter().map(fault).collect());
    }
    let mut diagnostics = Vec::new();
    let (mut floor, mut tvm_ffi) = (None, None);
    for (name, value) in table.get_ref() {
        if name.get_ref() == CHECKS {
            checks(value, &mut settings, &mut diagnostics);
            continue;
        }
        if let Some(vendor) = VENDORS.iter().find(|vendor| vendor.backend().as_str() == name.get_ref() && !vendor.settings().is_empty()) {
            let entries = of_vendor(*vendor, name.get_ref(), value, &mut diagnostics);
            settings.vendors.insert(vendor.backend(), entries);
            continue;
        }
        let known: Vec<&str> = KEYS.iter().filter(|(table, _)| *table == name.get_ref()).map(|(_, key)| *key).collect();
        if known.is_empty() {
            let of_vendors = VENDORS.iter().filter(|vendor| !vendor.settings().is_empty());
            let mut tables: Vec<String> = of_vendors.map(|vendor| format!("[{}]", vendor.backend())).collect();
            tables.extend(KEYS.iter().map(|(table, _)| format!("[{table}]")));
            tables.dedup();
            tables.push(format!("[{CHECKS}]"));
            tables.sort();
            diagnostics.push(unknown("table", name.get_ref(), name.span(), tables.into_iter()));
            continue;
        }
        let DeValue::Table(entries) = value.get_ref() else {
            diagnostics.push(wrong_type(name.get_ref(), "a table", value.get_ref().type_str(), value.span()));
            continue;
        };
        for (key, value) in entries {
            let slot = match (name.get_ref().as_ref(), key.get_ref().as_ref()) {
                ("index", "url") => &mut settings.index_url,
                ("index", "torch") => &mut settings.torch_index,
                ("build", "cxx") => &mut settings.cxx,
                ("build", "floor") => &mut floor,
                ("build", "tvm-ffi") => &mut tvm_ffi,
                ("headers", "cutlass") => &mut settings.cutlass,
                ("headers", "metal-cpp") => &mut settings.metal_cpp,
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
    for (key, slot) in [("url", &mut settings.index_url), ("torch", &mut settings.torch_index)] {
        // A relative path is one from the project, wherever that is.
        let Some(Err(reason)) = slot.as_ref().map(|url| IndexUrl::parse_in(url, Path::new("/"))) else { continue };
        let span = slot.take().map(|url| url.span);
        diagnostics.push(
            Diagnostic::error("invalid-url", span, format!("`{key}` is not the address of a package index: {reason}"))
                .with_hint("an index address has the form `https://host/simple`, or is a path such as `./wheels`".to_owned()),
        );
    }
    if let Some(text) = floor {
        match FloorChoice::parse(&text.value) {
            Some(choice) => settings.floor = Some(Spanned::new(choice, text.span)),
            None => {
                let all = FloorChoice::all().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
                let message = format!("`floor` must be one of {all}, found `{}`", text.value.escape_debug());
                diagnostics.push(Diagnostic::error("invalid-value", text.span, message));
            }
        }
    }
    if let Some(text) = tvm_ffi {
        match Version::parse(&text.value) {
            Ok(release) => settings.tvm_ffi = Some(Spanned::new(release, text.span)),
            Err(error) => diagnostics.push(Diagnostic::error("invalid-value", text.span, format!("`tvm-ffi`: {error}"))),
        }
    }
    // The table is sorted by key: the file's order is what a reader expects.
    diagnostics.sort_by_key(|d| d.span.map(|span| span.start));
    (settings, diagnostics)
}

/// Reads the table of a vendor: strings that it takes.
fn of_vendor(
    vendor: &dyn Toolkits,
    name: &str,
    value: &toml::Spanned<DeValue<'_>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let DeValue::Table(entries) = value.get_ref() else {
        diagnostics.push(wrong_type(name, "a table", value.get_ref().type_str(), value.span()));
        return settings;
    };
    for (key, value) in entries {
        let Some(known) = vendor.settings().iter().find(|known| known.name == key.get_ref()) else {
            let all = vendor.settings().iter().map(|known| known.name.to_owned());
            diagnostics.push(unknown("key", key.get_ref(), key.span(), all));
            continue;
        };
        match value.get_ref() {
            DeValue::String(text) => match (known.check)(text.trim()) {
                Ok(()) => {
                    settings.insert(known.name.to_owned(), text.trim().to_owned());
                }
                Err(reason) => diagnostics.push(Diagnostic::error("invalid-value", Span::from(value.span()), reason)),
            },
            other => diagnostics.push(wrong_type(key.get_ref(), "a string", other.type_str(), value.span())),
        }
    }
    settings
}

/// Reads `[checks]`: the code of a remark and why it is silenced.
fn checks(value: &toml::Spanned<DeValue<'_>>, settings: &mut Settings, diagnostics: &mut Vec<Diagnostic>) {
    let DeValue::Table(entries) = value.get_ref() else {
        diagnostics.push(wrong_type(CHECKS, "a table", value.get_ref().type_str(), value.span()));
        return;
    };
    for (code, reason) in entries {
        if !LINTS.contains(&code.get_ref().as_ref()) {
            let remark = unknown("remark", code.get_ref(), code.span(), LINTS.iter().map(ToString::to_string));
            diagnostics.push(remark.with_hint("errors cannot be silenced".to_owned()));
            continue;
        }
        match reason.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => {
                let reason = Spanned::new(text.trim().to_owned(), reason.span().into());
                settings.silenced.insert(code.get_ref().to_string(), reason);
            }
            DeValue::String(_) => {
                let message = format!("`{}` needs a reason", code.get_ref());
                let hint = "say why the remark does not matter here".to_owned();
                diagnostics.push(Diagnostic::error("invalid-value", Span::from(reason.span()), message).with_hint(hint));
            }
            other => diagnostics.push(wrong_type(code.get_ref(), "a string", other.type_str(), reason.span())),
        }
    }
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
        let text = "\u{feff}[index]\nurl = \"https://index.example/simple\"\ntorch = \"./wheels\"\n[build]\ncxx = \" clang++ \"\nfloor = \"host\"\ntvm-ffi = \"0.1.12\"\n[headers]\ncutlass = \"third_party/cutlass\"\n[matrix]\nfile = \"../matrix.toml\"\n";
        let (settings, diagnostics) = parse(text);
        assert_eq!(diagnostics, []);
        let value = |s: &Option<Spanned<String>>| s.as_ref().map(|s| s.value.clone());
        assert_eq!(value(&settings.index_url).as_deref(), Some("https://index.example/simple"));
        assert_eq!(value(&settings.torch_index).as_deref(), Some("./wheels"));
        assert_eq!(value(&settings.cxx).as_deref(), Some("clang++"));
        assert_eq!(settings.floor.map(|floor| floor.value), Some(FloorChoice::Host));
        assert_eq!(settings.tvm_ffi.as_ref().map(|release| release.value.as_str()), Some("0.1.12"));
        assert_eq!(value(&settings.cutlass).as_deref(), Some("third_party/cutlass"));
        assert_eq!(value(&settings.matrix_file).as_deref(), Some("../matrix.toml"));
        assert_eq!(parse(""), (Settings::default(), Vec::new()));
        assert_eq!(parse("[build]\n").0, Settings::default());
    }

    #[test]
    fn an_unknown_floor_is_told() {
        let text = "[build]\nfloor = \"manylinux2014\"\n";
        let (settings, diagnostics) = parse(text);
        assert_eq!(settings, Settings::default());
        insta::assert_snapshot!(render(&SourceFile::new(FILE_NAME, text), &diagnostics), @r#"
        error[invalid-value]: `floor` must be one of `manylinux_2_28`, `manylinux_2_34`, `host`, found `manylinux2014`
          --> kiln.toml:2:9
          |
        2 | floor = "manylinux2014"
          |         ^^^^^^^^^^^^^^^
        "#);
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
          = allowed here: `cxx`, `floor`, `tvm-ffi`

        error[invalid-url]: `url` is not the address of a package index: it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`
          --> kiln.toml:7:7
          |
        7 | url = "somewhere"
          |       ^^^^^^^^^^^
        hint: an index address has the form `https://host/simple`, or is a path such as `./wheels`

        error[unknown-key]: unknown table `torch`
          --> kiln.toml:8:2
          |
        8 | [torch]
          |  ^^^^^
          = allowed here: `[build]`, `[checks]`, `[headers]`, `[index]`, `[matrix]`, `[metal]`
        "#);
    }

    #[test]
    fn silenced_remarks() {
        let text = "[checks]\nduplicate-source = \"a test\"\nmissing-file = \"x\"\nunused-source = \" \"\nlayout = 1\n";
        let (settings, diagnostics) = parse(text);
        let silenced: Vec<_> = settings.silenced.iter().map(|(code, reason)| (code.as_str(), reason.as_str())).collect();
        assert_eq!(silenced, [("duplicate-source", "a test")]);
        insta::assert_snapshot!(render(&SourceFile::new(FILE_NAME, text), &diagnostics), @r#"
        error[unknown-key]: unknown remark `missing-file`
          --> kiln.toml:3:1
          |
        3 | missing-file = "x"
          | ^^^^^^^^^^^^
          = allowed here: `arch-flag`, `capability-coverage`, `default-stream`, `duplicate-backend`, `duplicate-source`, `duplicate-value`, `layout`, `leading-dot`, `license-id`, `machine-flag`, `noarch-backend`, `not-loadable`, `not-portable`, `own-registration`, `unknown-arch`, `unused-dependency`, `unused-exclude`, `unused-flag`, `unused-kernel`, `unused-key`, `unused-source`, `unused-stable-abi`, `wide-include`
        hint: errors cannot be silenced

        error[invalid-value]: `unused-source` needs a reason
          --> kiln.toml:4:17
          |
        4 | unused-source = " "
          |                 ^^^
        hint: say why the remark does not matter here

        error[wrong-type]: `layout` must be a string, found an integer
          --> kiln.toml:5:10
          |
        5 | layout = 1
          |          ^
        "#);
        assert_eq!(parse("checks = 1").1[0].message, "`checks` must be a table, found an integer");
    }

    #[test]
    fn what_may_be_a_token_is_hidden() {
        for (line, shown) in [
            ("url = \"ghp-x:abc\" # here", "url = \"*********\" # here"),
            ("torch='somebody@host/simple' unknown", "torch='********************' unknown"),
            ("index = { url = \"ghp://host\", torch = \"./wheels\" }", "index = { url = \"**********\", torch = \"./wheels\" }"),
            ("index.\"url\" = \"ü:x", "index.\"url\" = \"****"),
            ("url = \"https://us@host:tok/simple\"", "url = \"https://us@host***********\""),
            ("url = \"https://host/t/tok/simple\"", "url = \"https://host/t/**********\""),
            ("url = \"ftp://us@host/simple\"", "url = \"ftp://us@host/simple\""),
            (
                "url = \"https://host/simple\"\nurl2 = \"a:b\"\ncxx = \"g++\"",
                "url = \"https://host/simple\"\nurl2 = \"a:b\"\ncxx = \"g++\"",
            ),
            ("url = \"/srv/wheels\"", "url = \"/srv/wheels\""),
            ("url = \"mirror/simple\"", "url = \"mirror/simple\""),
            ("url = \"ghp_abc\"", "url = \"*******\""),
        ] {
            assert_eq!(without_tokens(line), shown);
        }
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
        fn what_is_hidden_keeps_its_length(text in "(url|torch|=|\"|'|\n|:|://|https|@|/t/|ü|a){0,20}") {
            prop_assert_eq!(without_tokens(&text).len(), text.len());
        }

        #[test]
        fn every_place_is_inside_the_text(text in "([a-z]{5,6}|[\\[\\].=\"\n1]){0,20}") {
            for diagnostic in parse(&text).1 {
                prop_assert!(diagnostic.span.is_none_or(|span| span.start <= span.end && span.end <= text.len()), "{diagnostic:?}");
            }
        }
    }
}
