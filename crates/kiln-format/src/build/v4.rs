//! Edition 4: a version, a license and a framework are needed, and one version of the stable ABI serves all backends.

use super::Edition;
use super::checks::FrameworkKind;
use super::model::{Build, Framework, StableAbi};
use super::reference::Texts;
use super::tables::{self, Schema};
use super::update::{Editor, UpdateError, name_edition, version_literal};
use crate::backend::BackendName;

/// This edition.
pub(super) const EDITION: Edition = Edition {
    number: 4,
    schema: &SCHEMA,
    read: |reader, root| tables::read(reader, root, &SCHEMA),
    steps: &[(4, upgrade)],
    texts: Texts::NONE,
};

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "torch-noarch", "tvm-ffi", "kernel"],
    general: &["name", "version", "license", "upstream", "source", "backends", "python-depends", "cuda", "neuron", "xpu", "hub"],
    required: &["version", "license"],
    backends: &[
        (BackendName::Cuda, &["minver", "maxver", "python-depends"]),
        (BackendName::Neuron, &["python-depends"]),
        (BackendName::Xpu, &["python-depends"]),
    ],
    frameworks: &[
        (FrameworkKind::Torch, &["src", "include", "pyext", "minver", "maxver", "cxx-flags", "stable-abi"]),
        (FrameworkKind::TorchNoarch, &["pyext", "cuda-capabilities", "rocm-archs", "cuda_capabilities", "rocm_archs"]),
        (FrameworkKind::TvmFfi, &["src", "include", "pyext", "cxx-flags"]),
    ],
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

fn upgrade(editor: &mut Editor<'_>, build: &Build, _license: Option<&str>) -> Result<(), UpdateError> {
    name_edition(editor, 5);
    stable_abi(editor, build);
    Ok(())
}

/// The one version becomes a table that names every backend of the file.
fn stable_abi(editor: &mut Editor<'_>, build: &Build) {
    let path = ["torch", "stable-abi"];
    let Framework::Torch(torch) = &build.framework else { return };
    let StableAbi::All(version) = &torch.stable_abi else { return };
    let raw = editor.raw(&path);
    let value = version_literal(raw, version).filter(|value| !value.contains('\n')).unwrap_or_else(|| format!("\"{version}\""));
    let entries: Vec<String> = build.backends().map(|backend| format!("{backend} = {value}")).collect();
    editor.set(&path, &format!("{{ {} }}", entries.join(", ")));
}
