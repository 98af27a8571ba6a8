//! Which keys the tables of an edition have, as data, and advice about the others.

use crate::backend::BackendName;
use crate::build::checks::FrameworkKind;
use crate::build::reader::{Entry, Reader, Table, allowed_here};
use crate::build::values::{is_meant, is_meant_and_there};
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::suggest::{nearest, quoted};

/// Which keys an edition's tables have, and which of them a file must have.
pub(in crate::build) struct Schema {
    /// Keys of the top of the file.
    pub(in crate::build) root: &'static [&'static str],
    /// Keys of `[general]`, without `edition`.
    pub(in crate::build) general: &'static [&'static str],
    /// Keys that `[general]` must have beyond `name` and `backends`.
    pub(in crate::build) required: &'static [&'static str],
    /// The backends that have a table in `[general]`, and its keys.
    pub(in crate::build) backends: &'static [(BackendName, &'static [&'static str])],
    /// The framework tables and their keys.
    pub(in crate::build) frameworks: &'static [(FrameworkKind, &'static [&'static str])],
    /// The framework of a file that has none of these tables; `None` where one is needed.
    pub(in crate::build) default_framework: Option<FrameworkKind>,
    /// Whether `stable-abi` may be a table.
    pub(in crate::build) stable_abi_table: bool,
    /// Keys that every kernel has.
    pub(in crate::build) kernel: &'static [&'static str],
    /// The backends that can have kernels, and the keys that only those kernels have: flags first, then architectures.
    pub(in crate::build) kernels: &'static [(BackendName, &'static [&'static str])],
}

/// Keys of `[general.hub]`.
pub(super) const GENERAL_HUB: &[&str] = &["repo-id", "branch"];
/// Keys of an entry of `kernel-depends`.
pub(super) const KERNEL_DEPENDENCY: &[&str] = &["repo-id", "version", "revision"];

impl Schema {
    /// Every table but the kernels' own keys, for "belongs to".
    fn tables(&self) -> Vec<(String, &'static [&'static str])> {
        let mut tables = vec![("the top of the file".to_owned(), self.root), ("`[general]`".to_owned(), self.general)];
        tables.extend(self.backends.iter().map(|&(backend, keys)| (format!("`[general.{backend}]`"), keys)));
        if self.general.contains(&"hub") {
            tables.push(("`[general.hub]`".to_owned(), GENERAL_HUB));
        }
        tables.extend(self.frameworks.iter().map(|&(kind, keys)| (format!("`[{}]`", kind.table()), keys)));
        tables.push(("`[kernel.*]`".to_owned(), self.kernel));
        tables
    }

    /// Says which keys of `table` are not in `allowed`.
    pub(in crate::build) fn check(&self, reader: &mut Reader<'_>, table: &Table<'_>, allowed: &[&str]) {
        self.unknown_keys(reader, table, allowed, |key| !allowed.contains(&key));
    }

    /// Says which keys of `[general]` are not known there. `edition`, which chose this schema, has a place in every file.
    pub(in crate::build) fn check_general(&self, reader: &mut Reader<'_>, table: &Table<'_>) {
        self.unknown_keys(reader, table, self.general, |key| key != "edition" && !self.general.contains(&key));
    }

    /// Says which keys of a kernel's table have no place there.
    pub(super) fn check_kernel(&self, reader: &mut Reader<'_>, table: &Table<'_>, backend: Option<BackendName>) {
        let allowed = self.of_kernel(backend);
        let free = free(table, &allowed);
        for entry in table.entries.iter().filter(|entry| !allowed.contains(&entry.key)) {
            match (self.owner_of_kernel_key(entry.key), backend) {
                (Some(owner), Some(backend)) => {
                    let message = format!("{} belongs to {owner} kernels, and {} is a {backend} kernel", quoted(entry.key), table.label);
                    let hint = self.counterpart(entry.key, backend).map(|key| match free.contains(&key) {
                        true => format!("use `{key}`"),
                        false => format!("`{key}` is there for it"),
                    });
                    let diagnostic = Diagnostic::error(code::UNKNOWN_KEY, entry.key_span, message);
                    reader.push(diagnostic.with_note(allowed_here(&allowed)).with_hint(hint));
                }
                _ => {
                    let advice = self.advice(reader, entry, &free, &allowed);
                    reader.unknown_key(table, entry, &allowed, advice);
                }
            }
        }
    }

    /// The keys of a kernel for `backend`; of any kernel where that is unknown.
    fn of_kernel(&self, backend: Option<BackendName>) -> Vec<&'static str> {
        let own = self.kernels.iter().filter(|(of, _)| backend.is_none_or(|backend| *of == backend)).flat_map(|(_, keys)| keys.iter());
        self.kernel.iter().chain(own).copied().collect()
    }

    /// Says of each key of `table` for which `is_unknown` holds that only `allowed` are known.
    fn unknown_keys(&self, reader: &mut Reader<'_>, table: &Table<'_>, allowed: &[&str], is_unknown: impl Fn(&str) -> bool) {
        let free = free(table, allowed);
        for entry in table.entries.iter().filter(|entry| is_unknown(entry.key)) {
            let advice = self.advice(reader, entry, &free, allowed);
            reader.unknown_key(table, entry, allowed, advice);
        }
    }

    /// Where a key that is not in `allowed` belongs, or which of them was probably meant; those that its table lacks are `free`.
    fn advice(&self, reader: &Reader<'_>, entry: &Entry<'_>, free: &[&str], allowed: &[&str]) -> Option<String> {
        // Advice takes time, and most of what is said from here on is not shown.
        if reader.has_said_enough() {
            return None;
        }
        let key = entry.key;
        let tables = self.tables();
        let owners: Vec<&str> = tables.iter().filter(|(_, keys)| keys.contains(&key)).map(|(table, _)| table.as_str()).collect();
        if !owners.is_empty() {
            return Some(format!("`{key}` belongs to {}", owners.join(" or ")));
        }
        if let Some(owner) = self.owner_of_kernel_key(key) {
            return Some(format!("`{key}` belongs to {owner} kernels"));
        }
        if let Some(near) = nearest(key, allowed.iter().copied()) {
            return Some(if free.contains(&near) || entry.joins_tables(reader.source()) {
                is_meant(near)
            } else {
                is_meant_and_there(near)
            });
        }
        let everywhere = tables.iter().flat_map(|(table, keys)| keys.iter().map(move |&key| (key, table.clone())));
        let of_kernels = self.kernels.iter().flat_map(|(owner, keys)| keys.iter().map(move |&key| (key, format!("{owner} kernels"))));
        let known: Vec<(&str, String)> = everywhere.chain(of_kernels).collect();
        let near = nearest(key, known.iter().map(|(key, _)| *key))?;
        let (_, owner) = known.iter().find(|(key, _)| *key == near)?;
        Some(format!("did you mean `{near}`, a key of {owner}?"))
    }

    /// The backend whose kernels alone have `key`.
    fn owner_of_kernel_key(&self, key: &str) -> Option<BackendName> {
        self.kernels.iter().find(|(_, keys)| keys.contains(&key)).map(|(owner, _)| *owner)
    }

    /// The key with which a kernel for `backend` says what `key` says for another backend.
    fn counterpart(&self, key: &str, backend: BackendName) -> Option<&'static str> {
        let own: &[&'static str] = self.kernels.iter().find(|(of, _)| *of == backend).map_or(&[], |(_, keys)| keys);
        let is_flags = key.ends_with("-flags");
        let is_archs = matches!(key, "cuda-capabilities" | "rocm-archs" | "npu-archs");
        let found = own
            .iter()
            .copied()
            .find(|own| (is_flags && own.ends_with("-flags")) || (is_archs && (own.ends_with("-archs") || own.ends_with("-capabilities"))));
        found.or(if is_flags { Some("cxx-flags") } else { None })
    }
}

/// The keys of `allowed` that `table` does not have.
fn free<'k>(table: &Table<'_>, allowed: &[&'k str]) -> Vec<&'k str> {
    allowed.iter().copied().filter(|key| !table.has(key)).collect()
}
