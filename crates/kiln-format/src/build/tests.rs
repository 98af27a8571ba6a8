//! An edition that does not exist, to show that a new one is a module and a line in the list: this file, and the lists in it.

use super::checks::{Component, FrameworkKind};
use super::model::{Build, Contents, Kernel};
use super::reader::{Entry, Reader, Table, Wanted};
use super::reference::{Kind, Texts, key, tables_of};
use super::tables::{self, Schema};
use super::update::{Editor, UpdateError, name_edition, update_in};
use super::{EDITIONS, Edition, Parsed, edition_of, parse_in, v1, v2, v3, v4, v5};
use crate::backend::BackendName;
use crate::diagnostic::Level;
use crate::render::render;
use crate::span::Spanned;

/// An edition whose kernels say language and backend in one word.
const EDITION: Edition = Edition { number: 6, schema: &SCHEMA, read, steps: &[(5, upgrade)], texts: &TEXTS };

const TEXTS: Texts = Texts {
    tables: &[("kernel.*", "One component.")],
    keys: &[key("kernel.*", "language", Kind::Text, "Language and backend."), key("kernel.*", "src", Kind::Sources, "Sources.")],
};

const WITH_IT: &[Edition] = &[v1::EDITION, v2::EDITION, v3::EDITION, v4::EDITION, v5::EDITION, EDITION];

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "kernel"],
    general: &["name", "version", "license", "backends"],
    required: &["version", "license"],
    backends: &[],
    frameworks: &[(FrameworkKind::Torch, &["src", "stable-abi"])],
    default_framework: None,
    stable_abi_table: true,
    kernel: &["language", "src", "depends"],
    kernels: &[(BackendName::Cpu, &[])],
};

fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    let kernels = root.get("kernel").and_then(|entry| reader.table(entry, "[kernel]"));
    let kernels: Vec<Component> = kernels.iter().flat_map(|table| &table.entries).filter_map(|entry| kernel(reader, entry)).collect();
    let contents = tables::read_with(reader, root, &SCHEMA, Some(kernels))?;
    Some(contents)
}

fn kernel<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Component> {
    let table = tables::kernel_table(reader, entry)?;
    SCHEMA.check(reader, &table, SCHEMA.kernel);
    let language = reader.string(table.get("language")?, Wanted::String, |_, text| Some(text))?;
    let backend: BackendName = language.strip_prefix("cpp-")?.parse().ok()?;
    let backend = Spanned::new(backend, language.span);
    let kernel = tables::kernel_contents(reader, entry, &table, Some(backend))?;
    Some(kernel)
}

fn upgrade(editor: &mut Editor<'_>, build: &Build, _license: Option<&str>) -> Result<(), UpdateError> {
    name_edition(editor, 6);
    for Kernel { name, backend, .. } in &build.kernels {
        let path = ["kernel", name.as_str(), "backend"];
        editor.rename(&path, "language", &format!("kernel.{name}.language"));
        editor.set(&path, &format!("\"cpp-{backend}\""));
    }
    Ok(())
}

fn text(parsed: &Parsed) -> String {
    render(&parsed.source, &parsed.diagnostics)
}

const OF_5: &str = "[general]\nname = \"ab\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\"]\n\n[torch]\nstable-abi = { cpu = \"2.11\" }\n\n\
    [kernel.k]\nbackend = \"cpu\" # the host\ndepends = []\nsrc = [\"k.cpp\"]\n";

#[test]
fn one_more_edition_is_a_module_and_a_line() {
    let of_6 = OF_5.replace("edition = 5", "edition = 6").replace("backend = \"cpu\" #", "language = \"cpp-cpu\" #");
    let parsed = parse_in(WITH_IT, "build.toml", &of_6);
    assert_eq!(text(&parsed), "");
    assert_eq!(parsed.build, parse_in(EDITIONS, "build.toml", OF_5).build);
    assert!(text(&parse_in(EDITIONS, "build.toml", &of_6)).contains("edition 6 is newer than this version of Kiln reads (5)"));
    let newer = of_6.replace("edition = 6", "edition = 7");
    assert!(text(&parse_in(WITH_IT, "build.toml", &newer)).contains("edition 7 is newer than this version of Kiln reads (6)"));
}

#[test]
fn older_files_are_brought_to_it_step_by_step() {
    let of_6 = OF_5.replace("edition = 5", "edition = 6").replace("backend = \"cpu\" #", "language = \"cpp-cpu\" #");
    let old = parse_in(WITH_IT, "build.toml", OF_5);
    assert!(
        text(&old).starts_with("warning[old-edition]: this file is written in edition 5 of the format; it is read as one of edition 6")
    );
    assert_eq!(update_in(WITH_IT, "build.toml", OF_5, None).unwrap().text, of_6);
    let of_4 = OF_5.replace("edition = 5\n", "").replace("{ cpu = \"2.11\" }", "\"2.11\"");
    assert_eq!(edition_of(WITH_IT, &of_4), Some(4));
    assert_eq!(update_in(WITH_IT, "build.toml", &of_4, None).unwrap().text, of_6);
}

/// What each module says of itself: numbers are unique and ordered, and every older edition leads to the newest.
#[test]
fn the_list() {
    assert!(EDITIONS.is_sorted_by(|a, b| a.number < b.number));
    let newest = EDITIONS.last().unwrap().number;
    for edition in EDITIONS.iter().filter(|edition| edition.number < newest) {
        assert_eq!(EDITIONS.iter().flat_map(|edition| edition.steps).filter(|(from, _)| *from == edition.number).count(), 1);
    }
    assert_eq!(parse_in(EDITIONS, "build.toml", OF_5).diagnostics.iter().filter(|d| d.level == Level::Error).count(), 0);
}

/// The manual describes the newest edition from that edition's own module.
#[test]
fn its_keys_are_described() {
    let page = tables_of(WITH_IT);
    assert!(page.contains("| `language` | string | 1 | Language and backend. |\n"), "{page}");
    assert!(!page.contains("torch-noarch") && tables_of(EDITIONS).contains("torch-noarch"));
}
