//! `[general]`.

use std::collections::BTreeMap;

use super::keys::{self, Schema};
use crate::backend::BackendName;
use crate::build::model::{BackendDepends, General, Hub};
use crate::build::reader::{Entry, Item, Reader, Table};
use crate::build::values;
use crate::code;
use crate::dependency::{KernelDependency, KernelDependencyVersion};
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;

/// The version of a kernel whose file may leave it out and does.
pub(in crate::build) const FIRST_VERSION: u64 = 1;

/// Reads `[general]`. The backends are returned by themselves as well, for checks that need nothing else of it.
pub(in crate::build) fn read<'a>(
    reader: &mut Reader<'a>,
    entry: &Entry<'a>,
    schema: &Schema,
) -> (Option<General>, Option<Vec<Spanned<BackendName>>>) {
    let Some(table) = reader.table(entry, "[general]") else { return (None, None) };
    schema.check_general(reader, &table);
    let name = match table.get("name") {
        Some(entry) => values::kernel_name(reader, entry),
        None => reader.missing(&table, "name", "name = \"my-kernel\""),
    };
    let version = match table.get("version") {
        Some(entry) => reader.unsigned(entry),
        None if !schema.required.contains(&"version") => name.as_ref().map(|name| Spanned::new(FIRST_VERSION, name.span)),
        None => reader.missing(&table, "version", "version = 1"),
    };
    let license = match table.get("license") {
        Some(entry) => reader.text(entry).map(Some),
        None if !schema.required.contains(&"license") => Some(None),
        None => reader.missing(&table, "license", "license = \"Apache-2.0\""),
    };
    let backends = backends(reader, &table);
    let upstream = table.get("upstream").and_then(|entry| values::git_url(reader, entry));
    let source = table.get("source").and_then(|entry| values::git_url(reader, entry));
    let python_depends = values::python_depends(reader, &table, None);
    let kernel_depends = kernel_depends(reader, &table, schema);
    let mut backend_depends = BTreeMap::new();
    let mut cuda_minver = None;
    let mut cuda_maxver = None;
    for &(backend, allowed) in schema.backends {
        let Some(table) = table.get(backend.as_str()).and_then(|entry| reader.table(entry, &format!("[general.{backend}]"))) else {
            continue;
        };
        schema.check(reader, &table, allowed);
        if backend == BackendName::Cuda {
            cuda_minver = table.get("minver").and_then(|entry| values::version(reader, entry));
            cuda_maxver = table.get("maxver").and_then(|entry| values::version(reader, entry));
            values::bounds(reader, cuda_minver.as_ref(), cuda_maxver.as_ref());
        }
        let python_depends = values::python_depends(reader, &table, Some(backend));
        // Where the table has no such key, the check of its keys says so.
        let kernel_depends = if allowed.contains(&"kernel-depends") { self::kernel_depends(reader, &table, schema) } else { Vec::new() };
        // A table that names nothing says the same as none.
        if !(python_depends.is_empty() && kernel_depends.is_empty()) {
            backend_depends.insert(backend, BackendDepends { python_depends, kernel_depends });
        }
    }
    let hub = table.get("hub").map_or_else(Hub::default, |entry| hub(reader, entry, schema));
    let general = || {
        Some(General {
            name: name?,
            version: version?,
            license: license?,
            upstream,
            source,
            backends: backends.clone()?,
            python_depends,
            kernel_depends,
            cuda_minver,
            cuda_maxver,
            backend_depends,
            hub,
        })
    };
    (general(), backends)
}

/// `backends`; `None` when an element is wrong, because checks that look for a missing one would be misled.
fn backends<'a>(reader: &mut Reader<'a>, table: &Table<'a>) -> Option<Vec<Spanned<BackendName>>> {
    let Some(entry) = table.get("backends") else { return reader.missing(table, "backends", "backends = [\"cpu\"]") };
    let mut all_known = true;
    let mut written = reader.list(entry, "cpu", |reader, text| {
        let backend = values::backend(reader, text);
        all_known &= backend.is_some();
        backend
    })?;
    if entry.value.as_array().is_some_and(|array| array.is_empty()) {
        reader.push(
            Diagnostic::error(code::INVALID_VALUE, entry.span, "`backends` is empty").with_hint("name at least one backend".to_owned()),
        );
        return None;
    }
    let mut seen = Vec::new();
    written.retain(|backend| {
        let first = !seen.contains(&backend.value);
        if first {
            seen.push(backend.value);
        } else {
            let message = format!("backend `{backend}` is listed twice; the first counts");
            reader.push(Diagnostic::warning(code::DUPLICATE_BACKEND, backend.span, message));
        }
        first
    });
    (all_known && !written.is_empty()).then_some(written)
}

/// `[general.hub]`.
pub(in crate::build) fn hub<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>, schema: &Schema) -> Hub {
    let Some(table) = reader.table(entry, "[general.hub]") else { return Hub::default() };
    schema.check(reader, &table, keys::GENERAL_HUB);
    Hub {
        repo_id: table.get("repo-id").and_then(|entry| values::repo_id(reader, entry)),
        branch: table.get("branch").and_then(|entry| reader.text(entry)),
    }
}

/// `kernel-depends`; empty when the key is absent.
fn kernel_depends<'a>(reader: &mut Reader<'a>, table: &Table<'a>, schema: &Schema) -> Vec<Spanned<KernelDependency>> {
    let Some(entry) = table.get("kernel-depends") else { return Vec::new() };
    // No example of a string fits here, so the element's type is said by `kernel_dependency`.
    let Some(items) = reader.tables(entry) else { return Vec::new() };
    items.iter().filter_map(|item| Some(Spanned::new(kernel_dependency(reader, item, schema)?, item.span))).collect()
}

fn kernel_dependency<'a>(reader: &mut Reader<'a>, item: &Item<'a>, schema: &Schema) -> Option<KernelDependency> {
    let table = reader.item_table(item, "an entry of `kernel-depends`")?;
    schema.check(reader, &table, keys::KERNEL_DEPENDENCY);
    let repo_id = match table.get("repo-id") {
        Some(entry) => values::repo_id(reader, entry),
        None => reader.missing(&table, "repo-id", "repo-id = \"owner/name\""),
    };
    let version = match (table.get("version"), table.get("revision")) {
        (Some(version), None) => reader.unsigned(version).map(|version| KernelDependencyVersion::Version(version.value)),
        (None, Some(revision)) => reader.text(revision).map(|revision| KernelDependencyVersion::Revision(revision.value)),
        (Some(_), Some(_)) => {
            let message = "`version` and `revision` exclude each other";
            reader.push(Diagnostic::error(code::INVALID_KERNEL_DEPENDENCY, item.span, message).with_hint("keep one of them".to_owned()));
            None
        }
        (None, None) => {
            let message = "`version` or `revision` is needed in an entry of `kernel-depends`";
            reader.push(Diagnostic::error(code::INVALID_KERNEL_DEPENDENCY, item.span, message).with_hint("add `version = 1`".to_owned()));
            None
        }
    };
    Some(KernelDependency { repo_id: repo_id?.value.as_str().to_owned(), version: version? })
}
