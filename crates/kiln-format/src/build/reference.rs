//! What there is to know of every key, as a page for people and as a JSON schema for editors, from the texts of the newest edition.
//!
//! Which tables have which keys is taken from the modules of the editions; a test holds the list and those against each other.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::tables::Schema;
use super::{EDITIONS, Edition, newest};
use crate::backend::BackendName;
use crate::dependency::Dependency;
use crate::python_registry::PythonDependency;

/// What a key holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Name,
    Unsigned,
    Newest,
    Text,
    GitUrl,
    Backends,
    PythonDepends(Option<BackendName>),
    KernelDepends,
    RepoId,
    Version,
    Sources,
    Paths,
    Texts,
    StableAbi,
    CudaCapabilities,
    RocmArchs,
    NpuArchs,
    KernelBackend,
    Depends,
}

/// What the manual says of an edition.
pub(super) struct Texts {
    /// Every table in the order of the page, with what it is for.
    pub(super) tables: &'static [(&'static str, &'static str)],
    /// Every key that holds no table, by its table, in the order of the page.
    pub(super) keys: &'static [Key],
}

impl Texts {
    /// Of an edition that is read and no longer described key by key.
    pub(super) const NONE: &'static Self = &Self { tables: &[], keys: &[] };
}

/// The texts of the newest of `editions`.
fn texts(editions: &[Edition]) -> &'static Texts {
    editions.last().map_or(Texts::NONE, |edition| edition.texts)
}

/// A key of a table.
pub(super) struct Key {
    table: &'static str,
    key: &'static str,
    kind: Kind,
    required: bool,
    text: &'static str,
}

pub(super) const fn key(table: &'static str, key: &'static str, kind: Kind, text: &'static str) -> Key {
    Key { table, key, kind, required: false, text }
}

pub(super) const fn required(table: &'static str, key: &'static str, kind: Kind, text: &'static str) -> Key {
    Key { table, key, kind, required: true, text }
}

/// What the page says beside the keys.
const BEGINNING: &str = include_str!("reference/beginning.md");
const END: &str = include_str!("reference/end.md");

/// The page on `build.toml`, in Markdown.
pub fn reference_page() -> String {
    let mut page = BEGINNING.to_owned();
    page.push_str(&tables_of(EDITIONS));
    page.push('\n');
    page.push_str(END);
    page
}

/// The tables of the newest of `editions`, key by key.
pub(super) fn tables_of(editions: &[Edition]) -> String {
    let mut page = String::new();
    let Texts { tables, keys } = texts(editions);
    for (table, text) in *tables {
        let _infallible = write!(page, "\n## `[{table}]`\n\n{text}\n\n| Key | Type | Since | Meaning |\n|---|---|---|---|\n");
        for key in keys.iter().filter(|key| key.table == *table) {
            let required = if key.required { ", required" } else { "" };
            let since = since(editions, key).map_or_else(|| "-".to_owned(), |number| number.to_string());
            let _infallible = writeln!(page, "| `{}` | {}{required} | {since} | {} |", key.key, key.kind.label(), key.text);
        }
    }
    page
}

/// The first of `editions` whose table of this name has the key.
fn since(editions: &[Edition], key: &Key) -> Option<u64> {
    editions.iter().find(|edition| keys_of(edition.schema, key.table).contains(&key.key)).map(|edition| edition.number)
}

/// The keys that hold no table of one table of an edition.
fn keys_of(schema: &Schema, table: &str) -> Vec<&'static str> {
    let is_table = |key: &str| schema.backends.iter().any(|(backend, _)| backend.as_str() == key) || key == "hub";
    match table.split_once('.') {
        None if table == "general" => schema.general.iter().copied().filter(|key| !is_table(key)).collect(),
        Some(("general", "hub")) => {
            if schema.general.contains(&"hub") {
                vec!["repo-id", "branch"]
            } else {
                Vec::new()
            }
        }
        Some(("general", backend)) => {
            schema.backends.iter().filter(|(of, _)| of.as_str() == backend).flat_map(|(_, keys)| keys.iter().copied()).collect()
        }
        Some(("kernel", "*")) => schema.kernel.to_vec(),
        Some(("kernel", of)) => {
            let backend = of.trim_start_matches("* (").trim_end_matches(')');
            schema.kernels.iter().filter(|(of, _)| of.as_str() == backend).flat_map(|(_, keys)| keys.iter().copied()).collect()
        }
        _ => schema.frameworks.iter().filter(|(kind, _)| kind.table() == table).flat_map(|(_, keys)| keys.iter().copied()).collect(),
    }
}

impl Kind {
    /// How the page calls it.
    fn label(self) -> String {
        let names = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
        match self {
            Self::Name => "name".to_owned(),
            Self::Unsigned => "integer".to_owned(),
            Self::Newest => format!("`{}`", newest(EDITIONS)),
            Self::Text => "string".to_owned(),
            Self::GitUrl => "address of a git repository".to_owned(),
            Self::Backends => format!("list of {}", names(BackendName::ALL.map(BackendName::as_str).to_vec())),
            Self::PythonDepends(backend) => {
                format!("list of {}", names(PythonDependency::allowed(backend).map(PythonDependency::name).collect()))
            }
            Self::KernelDepends => "list of tables".to_owned(),
            Self::RepoId => "`owner/name`".to_owned(),
            Self::Version => "version, `\"X.Y\"`".to_owned(),
            Self::Sources => "list of files or patterns".to_owned(),
            Self::Paths => "list of directories".to_owned(),
            Self::Texts => "list of strings".to_owned(),
            Self::StableAbi => "table, or version".to_owned(),
            Self::CudaCapabilities => "list such as `\"9.0a\"`".to_owned(),
            Self::RocmArchs => "list such as `\"gfx942\"`".to_owned(),
            Self::NpuArchs => "list such as `\"dav-2201\"`".to_owned(),
            Self::KernelBackend => names(kernel_backends()),
            Self::Depends => format!("list of {}", names(Dependency::ALL.map(Dependency::as_str).to_vec())),
        }
    }

    /// Its JSON schema.
    fn schema(self) -> Value {
        const VERSION: &str = r"^\s*[0-9]+(\.[0-9]+)*\s*$";
        let list = |items: Value| json!({"type": "array", "items": items});
        let one_of = |names: Vec<&str>| json!({"type": "string", "enum": names});
        match self {
            Self::Name => json!({"type": "string", "pattern": "^[a-z][-a-z0-9]*[a-z0-9]$"}),
            Self::Unsigned => json!({"type": "integer", "minimum": 0}),
            Self::Newest => json!({"type": "integer", "const": newest(EDITIONS)}),
            Self::Text => json!({"type": "string", "minLength": 1}),
            Self::GitUrl => json!({"type": "string", "pattern": "^((https?|git|ssh|git\\+(ssh|https?))://.+|[^/:]+:[^/].*)$"}),
            Self::Backends => {
                let mut backends = list(one_of(BackendName::ALL.map(BackendName::as_str).to_vec()));
                backends["minItems"] = json!(1);
                backends
            }
            Self::PythonDepends(backend) => list(one_of(PythonDependency::allowed(backend).map(PythonDependency::name).collect())),
            Self::KernelDepends => list(json!({
                "type": "object",
                "properties": {"repo-id": Self::RepoId.schema(), "version": Self::Unsigned.schema(), "revision": Self::Text.schema()},
                "additionalProperties": false,
                "required": ["repo-id"],
                "oneOf": [{"required": ["version"]}, {"required": ["revision"]}],
            })),
            Self::RepoId => json!({"type": "string", "pattern": "^[^/]+/[^/]+$"}),
            Self::Version => json!({"type": "string", "pattern": VERSION}),
            Self::Sources | Self::Paths | Self::Texts => list(json!({"type": "string"})),
            Self::StableAbi => {
                let of_backends: Map<String, Value> =
                    BackendName::ALL.map(|backend| (backend.to_string(), Self::Version.schema())).into_iter().collect();
                json!({"anyOf": [Self::Version.schema(), {"type": "object", "properties": of_backends, "additionalProperties": false}]})
            }
            Self::CudaCapabilities => list(json!({"type": "string", "pattern": r"^[0-9]+\.[0-9]+[af]?(\+PTX)?$"})),
            Self::RocmArchs => list(json!({"type": "string", "pattern": "^gfx[0-9a-f]{3,5}$"})),
            Self::NpuArchs => list(json!({"type": "string", "pattern": "^dav-[0-9a-z]+$"})),
            Self::KernelBackend => one_of(kernel_backends()),
            Self::Depends => list(one_of(Dependency::ALL.map(Dependency::as_str).to_vec())),
        }
    }
}

fn kernel_backends() -> Vec<&'static str> {
    BackendName::ALL.into_iter().filter(|backend| backend.has_kernels()).map(BackendName::as_str).collect()
}

/// A JSON schema of `build.toml` in its newest form, with a line break at the end.
pub fn json_schema() -> String {
    let frameworks = ["torch", "torch-noarch", "tvm-ffi"];
    let mut general = object("general", |_| true);
    for (table, text) in texts(EDITIONS).tables.iter().filter_map(|(table, text)| Some((table.strip_prefix("general.")?, *text))) {
        let mut schema = object(&format!("general.{table}"), |_| true);
        schema["description"] = json!(text);
        general["properties"][table] = schema;
    }
    let kernels: Vec<Value> = kernel_backends()
        .into_iter()
        .map(|backend| {
            let mut kernel = object("kernel.*", |_| true);
            if let (Some(own), Some(all)) =
                (object(&format!("kernel.* ({backend})"), |_| true)["properties"].as_object(), kernel["properties"].as_object_mut())
            {
                all.extend(own.clone());
            }
            kernel["properties"]["backend"] = json!({"const": backend});
            kernel
        })
        .collect();
    let mut properties = Map::new();
    properties.insert("general".to_owned(), general);
    for framework in frameworks {
        properties.insert(framework.to_owned(), object(framework, |_| true));
    }
    properties.insert("kernel".to_owned(), json!({"type": "object", "additionalProperties": {"anyOf": kernels}}));
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "build.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "required": ["general"],
        "oneOf": frameworks.map(|framework| json!({"required": [framework]})),
    });
    format!("{schema:#}\n")
}

/// The schema of a table, without tables in it.
fn object(table: &str, wanted: impl Fn(&Key) -> bool) -> Value {
    let keys: Vec<&Key> = texts(EDITIONS).keys.iter().filter(|key| key.table == table && wanted(key)).collect();
    let mut properties = Map::new();
    for key in &keys {
        let mut schema = key.kind.schema();
        schema["description"] = json!(key.text);
        properties.insert(key.key.to_owned(), schema);
    }
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.key).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false, "required": required})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_described_and_no_other() {
        let Texts { tables: described_tables, keys } = texts(EDITIONS);
        let newest = EDITIONS.last().unwrap().schema;
        let mut described = 0;
        for (table, _) in *described_tables {
            let mut of_schema = keys_of(newest, table);
            let mut of_list: Vec<&str> = keys.iter().filter(|key| key.table == *table).map(|key| key.key).collect();
            described += of_list.len();
            of_schema.sort_unstable();
            of_list.sort_unstable();
            assert_eq!(of_list, of_schema, "{table}");
        }
        assert_eq!(described, keys.len());
        let tables: Vec<&str> = newest.backends.iter().map(|(backend, _)| backend.as_str()).collect();
        assert!(tables.iter().all(|table| described_tables.iter().any(|(name, _)| name.strip_prefix("general.") == Some(table))));
    }

    #[test]
    fn needed_keys_are_marked() {
        let keys = texts(EDITIONS).keys;
        let newest = EDITIONS.last().unwrap().schema;
        for key in keys.iter().filter(|key| key.table == "general") {
            let needed = newest.required.contains(&key.key) || ["name", "backends", "edition"].contains(&key.key);
            assert_eq!(key.required, needed, "{}", key.key);
        }
        assert!(keys.iter().all(|key| since(EDITIONS, key).is_some()));
        let since = |table: &str, name: &str| since(EDITIONS, keys.iter().find(|key| key.table == table && key.key == name).unwrap());
        assert_eq!([since("general", "name"), since("torch", "minver"), since("general", "backends")], [Some(1), Some(2), Some(3)]);
        assert_eq!([since("torch", "stable-abi"), since("general", "kernel-depends")], [Some(4), Some(5)]);
    }
}
