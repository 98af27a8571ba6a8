//! Edition 5: every file names its edition, kernels depend on kernels, and the stable ABI is chosen per backend.
//!
//! The model is shaped after this edition, so its values are made while walking and need no conversion afterwards.

use super::Edition;
use super::checks::FrameworkKind;
use super::tables::{self, Schema};
use crate::backend::BackendName;

/// This edition.
pub(super) const EDITION: Edition =
    Edition { number: 5, schema: &SCHEMA, read: |reader, root| tables::read(reader, root, &SCHEMA), steps: &[] };

const SCHEMA: Schema = Schema {
    root: &["general", "torch", "torch-noarch", "tvm-ffi", "kernel"],
    general: &[
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
    ],
    required: &["version", "license"],
    backends: &[
        (BackendName::Cuda, &["minver", "maxver", "python-depends", "kernel-depends"]),
        (BackendName::Neuron, &["python-depends", "kernel-depends"]),
        (BackendName::Tpu, &["python-depends"]),
        (BackendName::Xpu, &["python-depends", "kernel-depends"]),
    ],
    frameworks: &[
        (FrameworkKind::Torch, &["src", "include", "pyext", "minver", "maxver", "cxx-flags", "stable-abi"]),
        // The last two are other spellings.
        (FrameworkKind::TorchNoarch, &["pyext", "cuda-capabilities", "rocm-archs", "cuda_capabilities", "rocm_archs"]),
        (FrameworkKind::TvmFfi, &["src", "include", "pyext", "cxx-flags"]),
    ],
    default_framework: None,
    stable_abi_table: true,
    kernel: &["backend", "src", "depends", "include", "cxx-flags"],
    kernels: &[
        (BackendName::Cann, &["asc-flags", "npu-archs"]),
        (BackendName::Cpu, &[]),
        (BackendName::Cuda, &["cuda-flags", "cuda-capabilities", "cuda-minver"]),
        (BackendName::Metal, &[]),
        (BackendName::Rocm, &["hip-flags", "rocm-archs"]),
        (BackendName::Xpu, &["sycl-flags"]),
    ],
};
