//! Edition 2: kernels name their backend, `universal` stands for all backends, and CUDA's bounds are keys of `[general]`.

use super::Edition;
use super::checks::FrameworkKind;
use super::model::{BackendDepends, Build, Contents};
use super::reader::{Reader, Table};
use super::reference::Texts;
use super::tables::{self, Schema};
use super::update::{Editor, UpdateError, complete};
use super::{universal, values};
use crate::backend::BackendName;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::python_registry::PythonDependency;
use crate::suggest::{list, quoted};

/// This edition.
pub(super) const EDITION: Edition = Edition { number: 2, schema: &SCHEMA, read, steps: &[(2, upgrade)], texts: Texts::NONE };

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "kernel"],
    general: &["name", "universal", "cuda-minver", "cuda-maxver", "hub", "python-depends"],
    required: &[],
    backends: &[],
    frameworks: &[(FrameworkKind::Torch, &["src", "include", "pyext", "minver", "maxver"])],
    default_framework: None,
    stable_abi_table: false,
    kernel: &["backend", "src", "depends", "include", "cxx-flags"],
    kernels: &[
        (BackendName::Cpu, &[]),
        (BackendName::Cuda, &["cuda-flags", "cuda-capabilities", "cuda-minver"]),
        (BackendName::Metal, &[]),
        (BackendName::Rocm, &["hip-flags", "rocm-archs"]),
        (BackendName::Xpu, &["sycl-flags"]),
    ],
};

/// What `python-depends` may hold: a package for every backend, and one that only CUDA kernels use.
const PYTHON_DEPENDS: [(&str, Option<BackendName>); 2] = [("einops", None), ("nvidia-cutlass-dsl", Some(BackendName::Cuda))];

fn read<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Option<Contents> {
    SCHEMA.check(reader, root, SCHEMA.root);
    let framework = tables::framework(reader, root, &SCHEMA).and_then(|found| found.contents);
    let kernels = tables::kernels(reader, root, &SCHEMA);
    let general = root.get("general")?;
    let general = reader.table(general, "[general]")?;
    SCHEMA.check_general(reader, &general);
    let name = match general.get("name") {
        Some(entry) => values::kernel_name(reader, entry),
        None => reader.missing(&general, "name", "name = \"my-kernel\""),
    };
    let universal = general.get("universal").and_then(|entry| reader.boolean(entry));
    let cuda_minver = general.get("cuda-minver").and_then(|entry| values::version(reader, entry));
    let cuda_maxver = general.get("cuda-maxver").and_then(|entry| values::version(reader, entry));
    values::bounds(reader, cuda_minver.as_ref(), cuda_maxver.as_ref());
    let hub = general.get("hub").map(|entry| tables::hub(reader, entry, &SCHEMA));
    let mut python_depends = Vec::new();
    let mut of_cuda = Vec::new();
    if let Some(entry) = general.get("python-depends") {
        let read = reader.list(entry, "einops", |reader, text| {
            let known = PYTHON_DEPENDS.iter().find(|(name, _)| *name == text.value);
            let found = known.and_then(|(name, backend)| Some((PythonDependency::find(name, *backend)?, *backend)));
            if found.is_none() {
                let message = format!("unknown Python dependency {} in [general]", quoted(&text));
                let note = format!("allowed here: {}", list(PYTHON_DEPENDS.map(|(name, _)| name)));
                reader.push(Diagnostic::error(code::UNKNOWN_PYTHON_DEPENDENCY, text.span, message).with_note(note));
            }
            found
        });
        for dependency in read.unwrap_or_default() {
            let list = if dependency.value.1.is_some() { &mut of_cuda } else { &mut python_depends };
            list.push(dependency.map(|(dependency, _)| dependency));
        }
    }
    let mut contents = universal::contents(reader, name, universal, framework, kernels)?;
    contents.general.python_depends = python_depends;
    if !of_cuda.is_empty() {
        let depends = BackendDepends { python_depends: of_cuda, kernel_depends: Vec::new() };
        contents.general.backend_depends.insert(BackendName::Cuda, depends);
    }
    (contents.general.cuda_minver, contents.general.cuda_maxver) = (cuda_minver, cuda_maxver);
    contents.general.hub = hub.unwrap_or_default();
    Some(contents)
}

fn upgrade(editor: &mut Editor<'_>, build: &Build, license: Option<&str>) -> Result<(), UpdateError> {
    complete(editor, build, license, 5)?;
    universal::upgrade(editor, build, Some(&["general", "universal"]));
    editor.rename(&["general", "cuda-minver"], "cuda.minver", "general.cuda.minver");
    editor.rename(&["general", "cuda-maxver"], "cuda.maxver", "general.cuda.maxver");
    let path = ["general", "python-depends"];
    if let Some(of_cuda) = build.general.backend_depends.get(&BackendName::Cuda).map(|depends| &depends.python_depends) {
        if build.general.python_depends.is_empty() {
            editor.rename(&path, "cuda.python-depends", "general.cuda.python-depends");
        } else {
            let spans: Vec<_> = of_cuda.iter().map(|dependency| dependency.span).collect();
            let names = of_cuda.iter().map(|dependency| format!("\"{dependency}\"")).collect::<Vec<_>>().join(", ");
            editor.remove_elements(&path, &spans);
            editor.add_after(&path, "cuda.python-depends", &format!("[{names}]"));
        }
    }
    Ok(())
}
