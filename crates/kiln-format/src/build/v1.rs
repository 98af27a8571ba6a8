//! Edition 1: kernels have a language instead of a backend, and `cuda-hipify` means two backends at once.

use super::Edition;
use super::checks::{Component, FrameworkKind};
use super::model::{Build, Contents, Kernel, KernelOptions};
use super::reader::{Entry, Reader, Table, Wanted};
use super::reference::Texts;
use super::tables::{self, Schema};
use super::update::{Editor, UpdateError, complete, key};
use super::{universal, values};
use crate::backend::BackendName;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use crate::suggest::{list, quoted};

/// This edition.
pub(super) const EDITION: Edition = Edition { number: 1, schema: &SCHEMA, read, steps: &[(1, upgrade)], texts: Texts::NONE };

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "kernel"],
    general: &["name"],
    required: &[],
    backends: &[],
    frameworks: &[(FrameworkKind::Torch, &["src", "include", "pyext", "universal"])],
    default_framework: None,
    stable_abi_table: false,
    kernel: &["language", "src", "depends", "include", "cuda-capabilities", "rocm-archs"],
    kernels: &[(BackendName::Cuda, &[]), (BackendName::Metal, &[]), (BackendName::Rocm, &[])],
};

/// What a kernel is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Cuda,
    /// CUDA that is compiled for ROCm too.
    CudaHipify,
    Metal,
}

const LANGUAGES: [(&str, Language); 3] = [("cuda", Language::Cuda), ("cuda-hipify", Language::CudaHipify), ("metal", Language::Metal)];

impl Language {
    fn backend(self) -> BackendName {
        match self {
            Self::Cuda | Self::CudaHipify => BackendName::Cuda,
            Self::Metal => BackendName::Metal,
        }
    }
}

/// The name of the ROCm kernel beside the CUDA kernel `name`.
fn rocm_name(name: &str) -> String {
    format!("{name}_rocm")
}

fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    SCHEMA.check(reader, root, SCHEMA.root);
    let framework = tables::framework(reader, root, &SCHEMA).and_then(|found| found.contents);
    let torch = root.get("torch").and_then(|entry| entry.peek_table(reader.source(), "[torch]"));
    let universal = torch.as_ref().and_then(|torch| torch.get("universal")).and_then(|entry| reader.boolean(entry));
    let kernels = kernels(reader, root);
    let general = root.get("general")?;
    let general = reader.table(general, "[general]")?;
    SCHEMA.check_general(reader, &general);
    let name = match general.get("name") {
        Some(entry) => values::kernel_name(reader, entry),
        None => reader.missing(&general, "name", "name = \"my-kernel\""),
    };
    universal::contents(reader, name, universal, framework, kernels)
}

fn kernels<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Vec<Component>> {
    let Some(entry) = root.get("kernel") else { return Some(Vec::new()) };
    let table = reader.table(entry, "[kernel]")?;
    let kernels: Vec<Option<Vec<Component>>> = table.entries.iter().map(|entry| kernel(reader, &table, entry)).collect();
    Some(kernels.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// One kernel, or a CUDA kernel and its ROCm copy.
fn kernel<'a>(reader: &mut Reader<'a>, all: &Table<'a>, entry: &Entry<'a>) -> Option<Vec<Component>> {
    let table = tables::kernel_table(reader, entry)?;
    SCHEMA.check(reader, &table, SCHEMA.kernel);
    let language = match table.get("language") {
        Some(entry) => language(reader, entry),
        None => Some(Spanned::new(Language::Cuda, entry.key_span)),
    };
    let archs = table.get("rocm-archs").and_then(|entry| values::archs(reader, entry, "gfx942"));
    let backend = language.map(|language| language.map(Language::backend));
    let cuda = tables::kernel_contents(reader, entry, &table, backend)?;
    let language = language?;
    if language.value != Language::CudaHipify {
        return Some(vec![cuda]);
    }
    let name = rocm_name(entry.key);
    if all.has(&name) {
        let message = format!("the ROCm half of {} would be called {}, and there is one already", quoted(entry.key), quoted(&name));
        reader.push(Diagnostic::error(code::INVALID_NAME, language.span, message).with_hint("rename one of the two".to_owned()));
    }
    let name = Spanned::new(name, entry.key_span);
    let backend = Spanned::new(BackendName::Rocm, language.span);
    let options = KernelOptions::Rocm { archs, flags: Vec::new() };
    let contents = cuda.contents.clone().map(|kernel| Kernel { name: name.clone(), backend, options, ..kernel });
    Some(vec![cuda, Component { name, backend, contents }])
}

fn language<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Spanned<Language>> {
    reader.string(entry, Wanted::String, language_text)
}

fn language_text(reader: &mut Reader<'_>, text: Spanned<&str>) -> Option<Spanned<Language>> {
    if let Some((_, language)) = LANGUAGES.iter().find(|(name, _)| *name == text.value) {
        return Some(Spanned::new(*language, text.span));
    }
    let names = LANGUAGES.map(|(name, _)| name);
    let message = format!("unknown language {}", quoted(&text));
    let diagnostic = Diagnostic::error(code::INVALID_VALUE, text.span, message).with_note(format!("known languages: {}", list(names)));
    reader.push(diagnostic.with_hint(values::did_you_mean(&text, names)));
    None
}

fn upgrade(editor: &mut Editor<'_>, build: &Build, license: Option<&str>) -> Result<(), UpdateError> {
    complete(editor, build, license, 5)?;
    editor.remove(&["torch", "universal"], "`general.backends` says it");
    universal::upgrade(editor, build, None);
    for kernel in &build.kernels {
        let name = kernel.name.as_str();
        let path = ["kernel", name, "language"];
        let backend = format!("\"{}\"", kernel.backend);
        // The ROCm half of a kernel is no table of the file.
        let halves = build.kernels.iter().filter(|other| other.name.span == kernel.name.span).count();
        if kernel.backend.value == BackendName::Rocm {
            continue;
        }
        if editor.has(&path) {
            editor.rename(&path, "backend", &format!("kernel.{name}.backend"));
            if halves > 1 {
                editor.set(&path, &backend);
            }
        } else {
            editor.add_first(&["kernel", name], "backend", &backend);
        }
        if halves > 1 {
            let copy = key(&rocm_name(name));
            let without = ["language", "cuda-capabilities"];
            editor.copy_table(&["kernel", name], &copy, &without, &[("backend", "\"rocm\"")], &["rocm-archs"]);
            continue;
        }
        editor.remove(&["kernel", name, "rocm-archs"], &format!("a {} kernel has no such key", kernel.backend));
        if kernel.backend.value != BackendName::Cuda {
            editor.remove(&["kernel", name, "cuda-capabilities"], &format!("a {} kernel has no such key", kernel.backend));
        }
    }
    Ok(())
}
