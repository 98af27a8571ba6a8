//! Which keys each table of edition 5 has, and advice about the others.

use crate::backend::BackendName;
use crate::build::reader::{Entry, Reader, Table, allowed_here};
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::suggest::{nearest, quoted};

/// Keys of the top of the file.
pub(super) const ROOT: &[&str] = &["general", "torch", "torch-noarch", "tvm-ffi", "kernel"];
/// Keys of `[general]`.
pub(super) const GENERAL: &[&str] = &[
    "name",
    "version",
    "edition",
    "license",
    "upstream",
    "source",
    "backends",
    "python-depends",
    "kernel-depends",
    "cuda",
    "neuron",
    "tpu",
    "xpu",
    "hub",
];
/// Keys of `[general.cuda]`.
pub(super) const GENERAL_CUDA: &[&str] = &["minver", "maxver", "python-depends", "kernel-depends"];
/// Keys of `[general.neuron]` and `[general.xpu]`.
pub(super) const GENERAL_BACKEND: &[&str] = &["python-depends", "kernel-depends"];
/// Keys of `[general.tpu]`.
pub(super) const GENERAL_TPU: &[&str] = &["python-depends"];
/// Keys of `[general.hub]`.
pub(super) const GENERAL_HUB: &[&str] = &["repo-id", "branch"];
/// Keys of an entry of `kernel-depends`.
pub(super) const KERNEL_DEPENDENCY: &[&str] = &["repo-id", "version", "revision"];
/// Keys of `[torch]`.
pub(super) const TORCH: &[&str] = &["src", "include", "pyext", "minver", "maxver", "cxx-flags", "stable-abi"];
/// Keys of `[torch-noarch]`; the last two are other spellings.
pub(super) const TORCH_NOARCH: &[&str] = &["pyext", "cuda-capabilities", "rocm-archs", "cuda_capabilities", "rocm_archs"];
/// Keys of `[tvm-ffi]`.
pub(super) const TVM_FFI: &[&str] = &["src", "include", "pyext", "cxx-flags"];

/// Keys that every kernel has.
const KERNEL: &[&str] = &["backend", "src", "depends", "include", "cxx-flags"];
/// Keys that kernels of one backend have beyond that: flags first, then architectures.
const KERNEL_OF: &[(BackendName, &[&str])] = &[
    (BackendName::Cuda, &["cuda-flags", "cuda-capabilities", "cuda-minver"]),
    (BackendName::Rocm, &["hip-flags", "rocm-archs"]),
    (BackendName::Xpu, &["sycl-flags"]),
    (BackendName::Cann, &["asc-flags", "npu-archs"]),
];

/// Every table but the kernels', for "belongs to".
const TABLES: &[(&str, &[&str])] = &[
    ("the top of the file", ROOT),
    ("`[general]`", GENERAL),
    ("`[general.cuda]`", GENERAL_CUDA),
    ("`[general.neuron]`", GENERAL_BACKEND),
    ("`[general.xpu]`", GENERAL_BACKEND),
    ("`[general.hub]`", GENERAL_HUB),
    ("`[torch]`", TORCH),
    ("`[torch-noarch]`", TORCH_NOARCH),
    ("`[tvm-ffi]`", TVM_FFI),
    ("`[kernel.*]`", KERNEL),
];

/// Says which keys of `table` are not in `allowed`.
pub(super) fn check(reader: &mut Reader<'_>, table: &Table<'_>, allowed: &[&str]) {
    for entry in table.entries.iter().filter(|entry| !allowed.contains(&entry.key)) {
        unknown(reader, table, entry, allowed);
    }
}

/// The keys of a kernel for `backend`; of any kernel where that is unknown.
pub(super) fn of_kernel(backend: Option<BackendName>) -> Vec<&'static str> {
    let own = KERNEL_OF.iter().filter(|(of, _)| backend.is_none_or(|backend| *of == backend)).flat_map(|(_, keys)| keys.iter());
    KERNEL.iter().chain(own).copied().collect()
}

/// Says which keys of a kernel's table have no place there.
pub(super) fn check_kernel(reader: &mut Reader<'_>, table: &Table<'_>, backend: Option<BackendName>) {
    let allowed = of_kernel(backend);
    for entry in table.entries.iter().filter(|entry| !allowed.contains(&entry.key)) {
        match (owner_of_kernel_key(entry.key), backend) {
            (Some(owner), Some(backend)) => {
                let message = format!("{} belongs to {owner} kernels, and {} is a {backend} kernel", quoted(entry.key), table.label);
                let hint = counterpart(entry.key, backend).map(|key| format!("use `{key}`"));
                let diagnostic = Diagnostic::error(code::UNKNOWN_KEY, entry.key_span, message);
                reader.push(diagnostic.with_note(allowed_here(&allowed)).with_hint(hint));
            }
            _ => unknown(reader, table, entry, &allowed),
        }
    }
}

fn unknown(reader: &mut Reader<'_>, table: &Table<'_>, entry: &Entry<'_>, allowed: &[&str]) {
    reader.unknown_key(table, entry, allowed, advice(entry.key, allowed));
}

/// Where a key that is not in `allowed` belongs, or which key was probably meant.
fn advice(key: &str, allowed: &[&str]) -> Option<String> {
    let owners: Vec<&str> = TABLES.iter().filter(|(_, keys)| keys.contains(&key)).map(|&(table, _)| table).collect();
    if !owners.is_empty() {
        return Some(format!("`{key}` belongs to {}", owners.join(" or ")));
    }
    if let Some(owner) = owner_of_kernel_key(key) {
        return Some(format!("`{key}` belongs to {owner} kernels"));
    }
    if let Some(near) = nearest(key, allowed.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let everywhere = TABLES.iter().flat_map(|&(table, keys)| keys.iter().map(move |&key| (key, table.to_owned())));
    let of_kernels = KERNEL_OF.iter().flat_map(|(owner, keys)| keys.iter().map(move |&key| (key, format!("{owner} kernels"))));
    let known: Vec<(&str, String)> = everywhere.chain(of_kernels).collect();
    let near = nearest(key, known.iter().map(|(key, _)| *key))?;
    let (_, owner) = known.iter().find(|(key, _)| *key == near)?;
    Some(format!("did you mean `{near}`, a key of {owner}?"))
}

/// The backend whose kernels alone have `key`.
fn owner_of_kernel_key(key: &str) -> Option<BackendName> {
    KERNEL_OF.iter().find(|(_, keys)| keys.contains(&key)).map(|(owner, _)| *owner)
}

/// The key with which a kernel for `backend` says what `key` says for another backend.
fn counterpart(key: &str, backend: BackendName) -> Option<&'static str> {
    let own: &[&'static str] = KERNEL_OF.iter().find(|(of, _)| *of == backend).map_or(&[], |(_, keys)| keys);
    let is_flags = key.ends_with("-flags");
    let is_archs = matches!(key, "cuda-capabilities" | "rocm-archs" | "npu-archs");
    let found = own
        .iter()
        .copied()
        .find(|own| (is_flags && own.ends_with("-flags")) || (is_archs && (own.ends_with("-archs") || own.ends_with("-capabilities"))));
    found.or(if is_flags { Some("cxx-flags") } else { None })
}
