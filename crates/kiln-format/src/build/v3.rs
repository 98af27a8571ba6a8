//! Edition 3: backends are named, but version, license and framework may be left out; Python-only kernels have no framework.

use super::Edition;
use super::checks::FrameworkKind;
use super::model::{Build, Framework};
use super::reference::Texts;
use super::tables::{self, Schema};
use super::update::{Editor, UpdateError, complete};
use crate::backend::BackendName;

/// This edition.
pub(super) const EDITION: Edition = Edition {
    number: 3,
    schema: &SCHEMA,
    read: |reader, root| tables::read(reader, root, &SCHEMA),
    steps: &[(3, upgrade)],
    texts: Texts::NONE,
};

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "tvm-ffi", "kernel"],
    general: &["name", "version", "license", "upstream", "backends", "python-depends", "cuda", "neuron", "xpu", "hub"],
    required: &[],
    backends: &[
        (BackendName::Cuda, &["minver", "maxver", "python-depends"]),
        (BackendName::Neuron, &["python-depends"]),
        (BackendName::Xpu, &["python-depends"]),
    ],
    frameworks: &[
        (FrameworkKind::Torch, &["src", "include", "pyext", "minver", "maxver"]),
        (FrameworkKind::TvmFfi, &["src", "include", "pyext"]),
    ],
    default_framework: Some(FrameworkKind::TorchNoarch),
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

fn upgrade(editor: &mut Editor<'_>, build: &Build, license: Option<&str>) -> Result<(), UpdateError> {
    complete(editor, build, license, 5)?;
    if matches!(build.framework, Framework::TorchNoarch(_)) {
        editor.append_table("torch-noarch");
    }
    Ok(())
}
