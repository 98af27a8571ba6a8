//! Checks of what a file means, whatever edition says it.

use super::model::{Kernel, KernelOptions};
use super::reader::Reader;
use crate::backend::BackendName;
use crate::code;
use crate::dependency::Dependency;
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use crate::suggest::quoted;

/// Flags of nvcc that choose architectures: whole, or up to a `=`.
const CUDA_ARCH_FLAGS: &[&str] = &["-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code"];
/// Flags of the HIP compiler that choose architectures.
const HIP_ARCH_FLAGS: &[&str] = &["--offload-arch", "--amdgpu-target"];

/// The kind of a framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameworkKind {
    /// `[torch]`.
    Torch,
    /// `[torch-noarch]`.
    TorchNoarch,
    /// `[tvm-ffi]`.
    TvmFfi,
}

impl FrameworkKind {
    /// The name of its table.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::TorchNoarch => "torch-noarch",
            Self::TvmFfi => "tvm-ffi",
        }
    }
}

/// A kernel whose backend is known, whatever else is wrong with it.
pub(super) struct Component {
    /// Its name.
    pub(super) name: Spanned<String>,
    /// Its backend.
    pub(super) backend: Spanned<BackendName>,
    /// The whole kernel, when it is right.
    pub(super) contents: Option<Kernel>,
}

/// How the kernels fit the backends and the framework.
pub(super) fn components(reader: &mut Reader<'_>, backends: &[Spanned<BackendName>], kind: FrameworkKind, kernels: &[Component]) {
    for kernel in kernels {
        if kind == FrameworkKind::TorchNoarch {
            let message = format!("kernel {} is ignored: `[torch-noarch]` compiles nothing", quoted(&kernel.name));
            let hint = "use `[torch]` to compile it".to_owned();
            reader.push(Diagnostic::warning(code::UNUSED_KERNEL, kernel.name.span, message).with_hint(hint));
        } else if !backends.contains(&kernel.backend) {
            let message =
                format!("component ignored: kernel {} is for `{}`, which `backends` does not list", quoted(&kernel.name), kernel.backend);
            let hint = format!("add `\"{}\"` to `backends` in `[general]`", kernel.backend);
            reader.push(Diagnostic::warning(code::UNUSED_KERNEL, kernel.backend.span, message).with_hint(hint));
        }
    }
    if kind == FrameworkKind::TvmFfi {
        let depends = kernels.iter().filter_map(|kernel| kernel.contents.as_ref()).flat_map(|kernel| &kernel.depends);
        for torch in depends.filter(|dependency| dependency.value == Dependency::Torch) {
            let message = "dependency `torch` has no effect: under `[tvm-ffi]` nothing is compiled with torch's headers";
            let hint = "leave it out: the headers of tvm-ffi are there for every kernel".to_owned();
            reader.push(Diagnostic::warning(code::UNUSED_DEPENDENCY, torch.span, message).with_hint(hint));
        }
    }
    for backend in backends.iter().filter(|backend| !kernels.iter().any(|kernel| kernel.backend == **backend)) {
        match kind {
            FrameworkKind::TvmFfi => {
                let message = format!("no kernel is for backend `{backend}`, and [tvm-ffi] has no form without one");
                let note = "the framework is `tvm-ffi`, whose variants always hold compiled code";
                let hint = format!("add a kernel with `backend = \"{backend}\"`, or remove the backend");
                reader.push(Diagnostic::error(code::MISSING_COMPONENT, backend.span, message).with_note(note).with_hint(hint));
            }
            FrameworkKind::Torch => {
                let message = format!("no kernel is for backend `{backend}`: it gets a variant in Python only");
                reader.push(Diagnostic::note(code::NOARCH_BACKEND, backend.span, message));
            }
            FrameworkKind::TorchNoarch => {}
        }
    }
}

/// What a kernel says that does not fit its backend.
pub(super) fn kernel(reader: &mut Reader<'_>, kernel: &Kernel) {
    for dependency in &kernel.depends {
        if let Some(only) = dependency.only_for().filter(|only| *only != kernel.backend.value) {
            let message = format!("dependency `{dependency}` has no effect in a {} kernel: it is for {only} kernels", kernel.backend);
            reader.push(Diagnostic::warning(code::UNUSED_DEPENDENCY, dependency.span, message));
        }
    }
    match &kernel.options {
        KernelOptions::Cuda { flags, .. } => arch_flags(reader, flags, CUDA_ARCH_FLAGS, "cuda-capabilities"),
        KernelOptions::Rocm { flags, .. } => arch_flags(reader, flags, HIP_ARCH_FLAGS, "rocm-archs"),
        KernelOptions::Cann { .. } => {
            let message = "a `cann` kernel is not readable by kernel-builder";
            reader.push(Diagnostic::note(code::NOT_PORTABLE, kernel.backend.span, message));
        }
        KernelOptions::Cpu | KernelOptions::Metal | KernelOptions::Xpu { .. } => {}
    }
}

fn arch_flags(reader: &mut Reader<'_>, flags: &[Spanned<String>], of_archs: &[&str], key: &str) {
    for flag in flags {
        let name = flag.split(['=', ' ']).next().unwrap_or_default();
        if of_archs.contains(&name) {
            let message =
                format!("{} chooses an architecture that the metadata will not list, so loaders may refuse the device", quoted(flag));
            reader.push(Diagnostic::warning(code::ARCH_FLAG, flag.span, message).with_hint(format!("use `{key}`")));
        }
    }
}
