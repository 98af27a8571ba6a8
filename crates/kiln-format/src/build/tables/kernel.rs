//! The `[kernel.*]` tables.

use super::keys::Schema;
use crate::backend::BackendName;
use crate::build::checks::{self, Component};
use crate::build::model::{Kernel, KernelOptions};
use crate::build::reader::{Entry, Reader, Table, Wanted};
use crate::build::values;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use crate::suggest::{escaped, excerpt, list};

/// Reads every kernel; `None` when one of them does not say its backend, because checks that look for kernels of a
/// backend would be misled.
pub(in crate::build) fn read_all<'a>(reader: &mut Reader<'a>, root: &Table<'a>, schema: &Schema) -> Option<Vec<Component>> {
    let Some(entry) = root.get("kernel") else { return Some(Vec::new()) };
    let table = reader.table(entry, "[kernel]")?;
    // Collected first, so that a kernel without a backend does not keep the others from being read.
    let kernels: Vec<Option<Component>> = table.entries.iter().map(|entry| read(reader, entry, schema)).collect();
    kernels.into_iter().collect()
}

fn read<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>, schema: &Schema) -> Option<Component> {
    let table = named(reader, entry)?;
    let backend = match table.get("backend") {
        Some(entry) => kernel_backend(reader, entry, schema),
        None => reader.missing(&table, "backend", "backend = \"cpu\""),
    };
    schema.check_kernel(reader, &table, backend.as_ref().map(|backend| backend.value));
    contents(reader, entry, &table, backend)
}

/// The table of one kernel.
pub(in crate::build) fn named<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Table<'a>> {
    let table = reader.table(entry, &format!("[kernel.{}]", key_text(entry.key)))?;
    if entry.key.is_empty() {
        reader.push(Diagnostic::error(code::INVALID_NAME, entry.key_span, "the name of a kernel's table cannot be empty"));
    }
    Some(table)
}

/// What the table of a kernel for `backend` says beside that.
pub(in crate::build) fn contents<'a>(
    reader: &mut Reader<'a>,
    entry: &Entry<'a>,
    table: &Table<'a>,
    backend: Option<Spanned<BackendName>>,
) -> Option<Component> {
    let src = match table.get("src") {
        Some(entry) => values::path_list(reader, entry, "kernel.cpp"),
        None => reader.missing(table, "src", "src = [\"kernel.cpp\"]"),
    };
    let depends = match table.get("depends") {
        Some(entry) => values::dependencies(reader, entry),
        None => reader.missing(table, "depends", "depends = [\"torch\"]"),
    };
    let include = values::paths(reader, table, "include", "include");
    let cxx_flags = values::flags(reader, table, "cxx-flags");
    let backend = backend?;
    let name = Spanned::new(entry.key.to_owned(), entry.key_span);
    let options = options(reader, table, backend.value);
    let contents = match (src, depends) {
        (Some(src), Some(depends)) => Some(Kernel { name: name.clone(), backend, src, depends, include, cxx_flags, options }),
        _ => None,
    };
    if let Some(kernel) = &contents {
        checks::kernel(reader, kernel);
    }
    Some(Component { name, backend, contents })
}

/// A key as a header writes it: bare where possible.
fn key_text(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bare { excerpt(key).into_owned() } else { format!("\"{}\"", escaped(&excerpt(key))) }
}

/// A backend that can have kernels.
fn kernel_backend<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>, schema: &Schema) -> Option<Spanned<BackendName>> {
    reader.string(entry, Wanted::String, |reader, text| backend_of_kernels(reader, text, schema))
}

/// The same of a text.
fn backend_of_kernels(reader: &mut Reader<'_>, text: Spanned<&str>, schema: &Schema) -> Option<Spanned<BackendName>> {
    let possible = || schema.kernels.iter().map(|(backend, _)| *backend);
    let diagnostic = match text.parse::<BackendName>() {
        Ok(backend) if possible().any(|possible| possible == backend) => return Some(Spanned::new(backend, text.span)),
        Ok(backend) => {
            let message = format!("there are no kernels to compile for backend `{backend}`");
            Diagnostic::error(code::UNKNOWN_BACKEND, text.span, message)
        }
        Err(error) => {
            let meant = BackendName::meant_by(&text).filter(|meant| possible().any(|possible| possible == *meant));
            let hint = meant.map(|backend| values::is_meant(backend.as_str()));
            Diagnostic::error(code::UNKNOWN_BACKEND, text.span, error.to_string()).with_hint(hint)
        }
    };
    reader.push(diagnostic.with_note(format!("allowed here: {}", list(possible().map(BackendName::as_str)))));
    None
}

/// What only kernels for `backend` can say.
fn options<'a>(reader: &mut Reader<'a>, table: &Table<'a>, backend: BackendName) -> KernelOptions {
    match backend {
        BackendName::Cuda => KernelOptions::Cuda {
            capabilities: table.get("cuda-capabilities").and_then(|entry| values::archs(reader, entry, "9.0")),
            flags: values::flags(reader, table, "cuda-flags"),
            minver: table.get("cuda-minver").and_then(|entry| values::version(reader, entry)),
        },
        BackendName::Rocm => KernelOptions::Rocm {
            archs: table.get("rocm-archs").and_then(|entry| values::archs(reader, entry, "gfx942")),
            flags: values::flags(reader, table, "hip-flags"),
        },
        BackendName::Xpu => KernelOptions::Xpu { flags: values::flags(reader, table, "sycl-flags") },
        BackendName::Cann => KernelOptions::Cann {
            archs: table.get("npu-archs").and_then(|entry| values::archs(reader, entry, "dav-2201")),
            flags: values::flags(reader, table, "asc-flags"),
        },
        BackendName::Metal => KernelOptions::Metal,
        BackendName::Cpu | BackendName::Neuron | BackendName::Tpu => KernelOptions::Cpu,
    }
}
