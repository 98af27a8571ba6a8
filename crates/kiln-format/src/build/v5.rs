//! Edition 5: every file names its edition, kernels depend on kernels, and the stable ABI is chosen per backend.
//!
//! The model is shaped after this edition, so its values are made while walking and need no conversion afterwards.

use super::Edition;
use super::checks::FrameworkKind;
use super::reference::{Key, Kind, Texts, key, required};
use super::tables::{self, Schema};
use crate::backend::BackendName;

/// This edition.
pub(super) const EDITION: Edition =
    Edition { number: 5, schema: &SCHEMA, read: |reader, root| tables::read(reader, root, &SCHEMA), steps: &[], texts: &TEXTS };

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

/// What the manual says of it.
const TEXTS: Texts = Texts { tables: TABLES, keys: KEYS };

/// What each table is for, in the order of the page.
const TABLES: &[(&str, &str)] = &[
    ("general", "Needed in every file."),
    ("general.hub", "Where the kernel is published."),
    ("general.cuda", "What concerns CUDA alone."),
    ("general.neuron", "What concerns Neuron devices alone."),
    ("general.tpu", "What concerns TPUs alone."),
    ("general.xpu", "What concerns XPU alone."),
    ("torch", "A kernel that is compiled for torch. A file has exactly one of `[torch]`, `[torch-noarch]` and `[tvm-ffi]`."),
    ("torch-noarch", "A kernel in Python alone."),
    ("tvm-ffi", "A kernel that is compiled for tvm-ffi."),
    (
        "kernel.*",
        "A component that is compiled for one backend; its name is free. All components of a backend and the binding become one library.",
    ),
    ("kernel.* (cuda)", "Keys of CUDA kernels beyond those."),
    ("kernel.* (rocm)", "Keys of ROCm kernels beyond those."),
    ("kernel.* (xpu)", "Keys of XPU kernels beyond those."),
    ("kernel.* (cann)", "Keys of NPU kernels beyond those. kernel-builder does not read them."),
];

/// Every key that holds no table, by its table, in the order of the page.
const KEYS: &[Key] = &[
    required(
        "general",
        "name",
        Kind::Name,
        "The kernel's name: lower-case letters, digits and dashes, first a letter, at least two. The Python package has `_` for `-`.",
    ),
    required("general", "version", Kind::Unsigned, "Version of the kernel's interface, an integer. `0` promises nothing yet."),
    required("general", "edition", Kind::Newest, "The edition of the format. Files of older editions may leave it out."),
    required("general", "license", Kind::Text, "License id, as the Hub and SPDX write it."),
    key("general", "upstream", Kind::GitUrl, "Repository that the kernel comes from."),
    key("general", "source", Kind::GitUrl, "Repository that holds this file."),
    required(
        "general",
        "backends",
        Kind::Backends,
        "Backends to build for, at least one. A listed backend without a kernel gets a variant in Python alone.",
    ),
    key("general", "python-depends", Kind::PythonDepends(None), "Python packages that the kernel needs on every backend."),
    key(
        "general",
        "kernel-depends",
        Kind::KernelDepends,
        "Kernels that the kernel needs on every backend: tables with `repo-id` and either `version` or `revision`.",
    ),
    key("general.hub", "repo-id", Kind::RepoId, "Where the kernel is published, `owner/name`."),
    key("general.hub", "branch", Kind::Text, "Branch to publish on."),
    key("general.cuda", "minver", Kind::Version, "Oldest CUDA toolkit to build for."),
    key("general.cuda", "maxver", Kind::Version, "Newest CUDA toolkit to build for."),
    key(
        "general.cuda",
        "python-depends",
        Kind::PythonDepends(Some(BackendName::Cuda)),
        "Python packages that the kernel needs on CUDA beyond that.",
    ),
    key("general.cuda", "kernel-depends", Kind::KernelDepends, "Kernels that the kernel needs on CUDA beyond that."),
    key(
        "general.neuron",
        "python-depends",
        Kind::PythonDepends(Some(BackendName::Neuron)),
        "Python packages that the kernel needs on Neuron devices beyond that.",
    ),
    key("general.neuron", "kernel-depends", Kind::KernelDepends, "Kernels that the kernel needs on Neuron devices beyond that."),
    key(
        "general.tpu",
        "python-depends",
        Kind::PythonDepends(Some(BackendName::Tpu)),
        "Python packages that the kernel needs on TPUs beyond that.",
    ),
    key(
        "general.xpu",
        "python-depends",
        Kind::PythonDepends(Some(BackendName::Xpu)),
        "Python packages that the kernel needs on XPU beyond that.",
    ),
    key("general.xpu", "kernel-depends", Kind::KernelDepends, "Kernels that the kernel needs on XPU beyond that."),
    key("torch", "src", Kind::Sources, "Sources of the binding: C++ files, and headers that it includes."),
    key("torch", "include", Kind::Paths, "Directories for includes of the binding."),
    key(
        "torch",
        "pyext",
        Kind::Texts,
        "Extensions, without dot, of files that are shipped from `torch-ext`; `py` always. Default: `py`, `pyi`.",
    ),
    key("torch", "minver", Kind::Version, "Oldest torch to build for, inclusive, by major and minor."),
    key("torch", "maxver", Kind::Version, "Newest torch to build for, inclusive, by major and minor."),
    key("torch", "cxx-flags", Kind::Texts, "Flags for `src` of this table."),
    key(
        "torch",
        "stable-abi",
        Kind::StableAbi,
        "Which backends use torch's stable ABI, and from which version on: a table from backend to version, or one version for all. A backend that the table lacks uses the C++ ABI; an entry for a backend that is not listed has no effect.",
    ),
    key(
        "torch-noarch",
        "pyext",
        Kind::Texts,
        "Extensions, without dot, of files that are shipped from `torch-ext`; `py` always. Default: `py`, `pyi`.",
    ),
    key("torch-noarch", "cuda-capabilities", Kind::CudaCapabilities, "The only CUDA devices that load the kernel."),
    key("torch-noarch", "rocm-archs", Kind::RocmArchs, "The only AMD devices that load the kernel."),
    key(
        "torch-noarch",
        "cuda_capabilities",
        Kind::CudaCapabilities,
        "Another spelling of `cuda-capabilities`, and the only one that kernel-builder reads.",
    ),
    key("torch-noarch", "rocm_archs", Kind::RocmArchs, "Another spelling of `rocm-archs`, and the only one that kernel-builder reads."),
    required("tvm-ffi", "src", Kind::Sources, "Sources of the binding: C++ files, and headers that it includes."),
    key("tvm-ffi", "include", Kind::Paths, "Directories for includes of the binding."),
    key(
        "tvm-ffi",
        "pyext",
        Kind::Texts,
        "Extensions, without dot, of files that are shipped from `tvm-ffi-ext`; `py` always. Default: `py`, `pyi`.",
    ),
    key("tvm-ffi", "cxx-flags", Kind::Texts, "Flags for `src` of this table."),
    required("kernel.*", "backend", Kind::KernelBackend, "Backend that the kernel is compiled for."),
    required("kernel.*", "src", Kind::Sources, "Sources, and headers that they include."),
    required("kernel.*", "depends", Kind::Depends, "Libraries whose headers the sources include."),
    key(
        "kernel.*",
        "include",
        Kind::Paths,
        "Directories for includes. All headers below them are inputs as soon as a source includes them.",
    ),
    key("kernel.*", "cxx-flags", Kind::Texts, "Flags for C++ sources."),
    key("kernel.* (cuda)", "cuda-capabilities", Kind::CudaCapabilities, "Capabilities to compile for. Default: all that the toolkit has."),
    key("kernel.* (cuda)", "cuda-flags", Kind::Texts, "Flags for `.cu` sources."),
    key("kernel.* (cuda)", "cuda-minver", Kind::Version, "Oldest CUDA toolkit that this kernel is compiled with; older ones leave it out."),
    key("kernel.* (rocm)", "rocm-archs", Kind::RocmArchs, "Architectures to compile for. Default: all that the toolkit has."),
    key("kernel.* (rocm)", "hip-flags", Kind::Texts, "Flags for HIP sources."),
    key("kernel.* (xpu)", "sycl-flags", Kind::Texts, "Flags for SYCL sources."),
    key("kernel.* (cann)", "npu-archs", Kind::NpuArchs, "Architecture to compile for: one. Default: `dav-2201`."),
    key("kernel.* (cann)", "asc-flags", Kind::Texts, "Flags for Ascend C sources."),
];
