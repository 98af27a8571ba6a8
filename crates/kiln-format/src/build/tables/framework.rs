//! The framework tables, of which a file has exactly one.

use super::keys::Schema;
use crate::backend::BackendName;
use crate::build::checks::FrameworkKind;
use crate::build::model::{Framework, StableAbi, Torch, TorchNoarch, TvmFfi};
use crate::build::reader::{Entry, Reader, Table, Wanted};
use crate::build::values;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use crate::suggest::list;

/// The framework table that a file has.
pub(in crate::build) struct Found {
    /// Which one.
    pub(in crate::build) kind: FrameworkKind,
    /// What it says, when that is right.
    pub(in crate::build) contents: Option<Framework>,
}

/// Reads every framework table; `None` when there is not exactly one.
pub(in crate::build) fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>, schema: &Schema) -> Option<Found> {
    let mut found: Vec<(Found, &str)> = Vec::new();
    for entry in &root.entries {
        let Some(&(kind, keys)) = schema.frameworks.iter().find(|(kind, _)| kind.table() == entry.key) else { continue };
        if let Some((_, first)) = found.first() {
            let message = format!("`[{first}]` and `[{}]` are both present, but a file has one framework", entry.key);
            reader.push(
                Diagnostic::error(code::FRAMEWORK, entry.key_span, message)
                    .with_hint(format!("remove one of `[{first}]` and `[{}]`", entry.key)),
            );
        }
        let contents = reader.table(entry, &format!("[{}]", entry.key)).and_then(|table| {
            schema.check(reader, &table, keys);
            match kind {
                FrameworkKind::Torch => torch(reader, &table, schema).map(Framework::Torch),
                FrameworkKind::TorchNoarch => Some(Framework::TorchNoarch(torch_noarch(reader, &table))),
                FrameworkKind::TvmFfi => tvm_ffi(reader, &table).map(Framework::TvmFfi),
            }
        });
        found.push((Found { kind, contents }, entry.key));
    }
    if found.is_empty() {
        if schema.default_framework == Some(FrameworkKind::TorchNoarch) {
            let contents = Some(Framework::TorchNoarch(TorchNoarch::default()));
            return Some(Found { kind: FrameworkKind::TorchNoarch, contents });
        }
        let names = list(schema.frameworks.iter().map(|(kind, _)| kind.table()));
        let hint = "add `[torch]` for a compiled kernel, `[torch-noarch]` for one in Python".to_owned();
        let message = if schema.frameworks.len() == 1 { format!("{names} is needed") } else { format!("one of {names} is needed") };
        reader.push(Diagnostic::error(code::FRAMEWORK, None, message).with_hint(hint));
    }
    let single = found.len() == 1;
    found.pop().map(|(found, _)| found).filter(|_| single)
}

fn torch<'a>(reader: &mut Reader<'a>, table: &Table<'a>, schema: &Schema) -> Option<Torch> {
    let src = values::paths(reader, table, "src", "torch-ext/torch_binding.cpp");
    let include = values::paths(reader, table, "include", "include");
    let pyext = values::extensions(reader, table);
    let minver = table.get("minver").and_then(|entry| values::version(reader, entry));
    let maxver = table.get("maxver").and_then(|entry| values::version(reader, entry));
    values::bounds(reader, minver.as_ref(), maxver.as_ref());
    let cxx_flags = values::flags(reader, table, "cxx-flags");
    let stable_abi = match table.get("stable-abi") {
        Some(entry) => stable_abi(reader, entry, schema.stable_abi_table),
        None => Some(StableAbi::None),
    };
    Some(Torch { src, include, pyext, minver, maxver, cxx_flags, stable_abi: stable_abi? })
}

/// `stable-abi`: a version for all backends, or a table from backend to version.
fn stable_abi<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>, table_allowed: bool) -> Option<StableAbi> {
    let table = entry.peek_table(reader.source(), "[torch.stable-abi]").filter(|_| table_allowed);
    let Some(table) = table else {
        let wanted = if table_allowed { Wanted::VersionOrTable } else { Wanted::Version };
        return reader.string(entry, wanted, values::version_text).map(StableAbi::All);
    };
    let taken: Vec<&str> = BackendName::ALL.map(BackendName::as_str).into_iter().filter(|name| table.has(name)).collect();
    let mut entries: Vec<(Spanned<BackendName>, Spanned<crate::Version>)> = Vec::new();
    for entry in &table.entries {
        let backend = values::backend_beside(reader, Spanned::new(entry.key, entry.key_span), &|name| taken.contains(&name));
        let version = values::version(reader, entry);
        if let (Some(backend), Some(version)) = (backend, version) {
            entries.push((Spanned::new(backend, entry.key_span), version));
        }
    }
    Some(if entries.is_empty() { StableAbi::None } else { StableAbi::PerBackend(entries) })
}

fn torch_noarch<'a>(reader: &mut Reader<'a>, table: &Table<'a>) -> TorchNoarch {
    TorchNoarch {
        pyext: values::extensions(reader, table),
        cuda_capabilities: two_spellings(reader, table, "cuda-capabilities", "cuda_capabilities")
            .and_then(|entry| values::archs(reader, entry, "9.0")),
        rocm_archs: two_spellings(reader, table, "rocm-archs", "rocm_archs").and_then(|entry| values::archs(reader, entry, "gfx942")),
    }
}

/// The entry of a key that has two spellings, of which only one may be there.
fn two_spellings<'t, 'a>(reader: &mut Reader<'_>, table: &'t Table<'a>, kebab: &str, snake: &str) -> Option<&'t Entry<'a>> {
    match (table.get(kebab), table.get(snake)) {
        (Some(one), Some(other)) => {
            let second = if one.key_span.start < other.key_span.start { other } else { one };
            let message = format!("`{kebab}` and `{snake}` are one key");
            let hint = format!("keep `{snake}`, which kernel-builder reads as well");
            reader.push(Diagnostic::error(code::DUPLICATE_KEY, second.key_span, message).with_hint(hint));
            Some(one)
        }
        (Some(one), None) => {
            let message = format!("`{kebab}` is not readable by kernel-builder in [torch-noarch]");
            let hint = format!("it reads the spelling `{snake}`");
            reader.push(Diagnostic::note(code::NOT_PORTABLE, one.key_span, message).with_hint(hint));
            Some(one)
        }
        (None, other) => other,
    }
}

fn tvm_ffi<'a>(reader: &mut Reader<'a>, table: &Table<'a>) -> Option<TvmFfi> {
    let src = match table.get("src") {
        Some(entry) => values::path_list(reader, entry, "tvm-ffi-ext/binding.cpp"),
        None => reader.missing(table, "src", "src = [\"tvm-ffi-ext/binding.cpp\"]"),
    };
    let include = values::paths(reader, table, "include", "include");
    let pyext = values::extensions(reader, table);
    let cxx_flags = values::flags(reader, table, "cxx-flags");
    Some(TvmFfi { src: src?, include, pyext, cxx_flags })
}
