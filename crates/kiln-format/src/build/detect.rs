//! Which edition of the format a file is written in.
//!
//! `general.edition` decides where it is present. Where it is absent, the keys that are present choose one edition, whose
//! check is then final: a mistake in a table never turns a file into another edition.

use toml::de::DeValue;

use super::reader::{Reader, Table, Wanted, number_meant};
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::suggest::{excerpt, list};

/// The first edition whose files all name it, which is what a file without `edition` is best brought to.
const NAMED: u64 = 5;

/// The edition of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edition {
    /// Its number.
    pub(super) number: u64,
    /// Where the file says so; `None` when it was told from the keys.
    pub(super) span: Option<Span>,
    /// The keys that it was told from.
    pub(super) marks: Vec<String>,
}

impl Edition {
    fn told_by(number: u64, marks: impl IntoIterator<Item = impl Into<String>>) -> Option<Self> {
        Some(Self { number, span: None, marks: marks.into_iter().map(Into::into).collect() })
    }
}

/// The edition of the document `root`; `None` after an error that leaves it open.
///
/// `newest` is the newest edition that can be read.
pub(super) fn edition<'a>(reader: &mut Reader<'a>, root: &Table<'a>, newest: u64) -> Option<Edition> {
    let Some(entry) = root.get("general") else {
        // Whatever the edition, `[general]` is missing: the current one says so, and finds what else is wrong.
        return Edition::told_by(newest, [""; 0]);
    };
    let general = reader.table(entry, "[general]")?;
    match general.get("edition") {
        Some(entry) => {
            let DeValue::Integer(integer) = entry.value else {
                let meant = number_meant(entry.value).filter(|number| (1..=newest).contains(number)).unwrap_or(newest);
                reader.wrong_type::<()>(Some("edition"), entry.span, entry.value, Wanted::Integer, Some(meant.to_string()));
                // Only files of an edition that has the key hold it, so the rest can be checked.
                return Some(Edition { number: newest, span: Some(entry.span), marks: Vec::new() });
            };
            // What does not fit is newer than every edition, or negative.
            let beyond = if integer.as_str().starts_with('-') { i64::MIN } else { i64::MAX };
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(beyond);
            match u64::try_from(number) {
                Ok(number) if (1..=newest).contains(&number) => return Some(Edition { number, span: Some(entry.span), marks: Vec::new() }),
                Ok(1..) => {
                    let message = format!("edition {} is newer than this version of Kiln reads ({newest})", excerpt(integer.as_str()));
                    reader.push(Diagnostic::error(code::EDITION, entry.span, message));
                }
                _ => {
                    let message = format!("there is no edition {}", excerpt(integer.as_str()));
                    reader.push(Diagnostic::error(code::EDITION, entry.span, message).with_hint(format!("write `edition = {newest}`")));
                }
            }
            None
        }
        None => by_keys(reader, root, &general),
    }
}

/// The edition of a file that does not name it.
fn by_keys<'a>(reader: &mut Reader<'a>, root: &Table<'a>, general: &Table<'a>) -> Option<Edition> {
    if needs_current(reader, root, general) {
        return None;
    }
    let sub = |table: &str, key: &str| {
        let entry = root.get(table)?.peek_table(reader.source(), table)?;
        entry.has(key).then(|| format!("{table}.{key}"))
    };
    let frameworks = ["torch", "torch-noarch", "tvm-ffi"];
    if general.has("backends") {
        let mut marks: Vec<String> = Vec::new();
        marks.extend(root.has("torch-noarch").then(|| "torch-noarch".to_owned()));
        marks.extend(sub("general", "source"));
        marks.extend(sub("torch", "stable-abi"));
        marks.extend(sub("torch", "cxx-flags"));
        marks.extend(sub("tvm-ffi", "cxx-flags"));
        if !marks.is_empty() {
            return Edition::told_by(4, marks);
        }
        if general.has("version") && general.has("license") && frameworks.iter().any(|framework| root.has(framework)) {
            return Edition::told_by(4, ["general.version", "general.license"]);
        }
        return Edition::told_by(3, ["general.backends"]);
    }
    let only_4 = ["version", "license", "upstream", "source", "neuron", "tpu", "xpu", "kernel-depends", "cuda"];
    let mut marks: Vec<String> = only_4.iter().filter_map(|key| sub("general", key)).collect();
    marks.extend(["tvm-ffi", "torch-noarch"].iter().filter(|table| root.has(table)).map(|&table| table.to_owned()));
    if !marks.is_empty() {
        return Edition::told_by(4, marks);
    }
    let kernels = Kernels::of(reader, root);
    let universal = sub("torch", "universal");
    let first: Vec<String> = kernels.with_language.then(|| "language".to_owned()).into_iter().chain(universal.clone()).collect();
    let mut second: Vec<String> = Vec::new();
    second.extend(kernels.with_backend.then(|| "backend".to_owned()));
    second.extend(["universal", "cuda-minver", "cuda-maxver", "hub", "python-depends"].iter().filter_map(|key| sub("general", key)));
    second.extend(["minver", "maxver"].iter().filter_map(|key| sub("torch", key)));
    if !first.is_empty() && !second.is_empty() {
        let keys = list(first.iter().chain(&second).map(String::as_str));
        reader.push(Diagnostic::error(code::EDITION, None, format!("keys of editions 1 and 2 are mixed: {keys}")));
        return None;
    }
    if !second.is_empty() {
        return Edition::told_by(2, second);
    }
    if kernels.without_backend || universal.is_some() {
        let marks = if first.is_empty() { vec!["kernels without `backend`".to_owned()] } else { first };
        return Edition::told_by(1, marks);
    }
    let message = "neither `backends` in [general] nor kernels: nothing tells what to build";
    reader.push(
        Diagnostic::error(code::EDITION, None, message).with_hint(format!("add `edition = {NAMED}` and `backends` under `[general]`")),
    );
    None
}

/// Says which keys only the current edition has; `true` when there are any, so that the file only lacks its edition.
fn needs_current<'a>(reader: &mut Reader<'a>, root: &Table<'a>, general: &Table<'a>) -> bool {
    let source = reader.source();
    let mut found: Vec<(Span, String)> = Vec::new();
    let mut note = |table: &Table<'a>, key: &str| {
        if let Some(entry) = table.get(key) {
            found.push((entry.key_span, format!("`{key}`{} needs edition {NAMED}", table.within())));
        }
    };
    note(general, "kernel-depends");
    note(general, "tpu");
    for backend in ["cuda", "neuron", "xpu"] {
        if let Some(table) = general.get(backend).and_then(|entry| entry.peek_table(source, &format!("[general.{backend}]"))) {
            note(&table, "kernel-depends");
        }
    }
    let torch = root.get("torch").and_then(|entry| entry.peek_table(source, "[torch]"));
    if let Some(entry) = torch.as_ref().and_then(|torch| torch.get("stable-abi")).filter(|entry| entry.value.is_table()) {
        found.push((entry.span, format!("a `stable-abi` table needs edition {NAMED}")));
    }
    let any = !found.is_empty();
    for (span, message) in found {
        let hint = format!("this key needs edition {NAMED}; add `edition = {NAMED}` under `[general]`");
        reader.push(Diagnostic::error(code::EDITION, span, message).with_hint(hint));
    }
    any
}

/// What the kernels of a file have.
#[derive(Default)]
struct Kernels {
    with_language: bool,
    with_backend: bool,
    without_backend: bool,
}

impl Kernels {
    fn of<'a>(reader: &Reader<'a>, root: &Table<'a>) -> Self {
        let mut found = Self::default();
        let kernels = root.get("kernel").and_then(|entry| entry.peek_table(reader.source(), "[kernel]"));
        for kernel in kernels.iter().flat_map(|kernels| &kernels.entries) {
            let Some(kernel) = kernel.peek_table(reader.source(), "") else { continue };
            found.with_language |= kernel.has("language");
            found.with_backend |= kernel.has("backend");
            found.without_backend |= !kernel.has("backend");
        }
        found
    }
}
