//! The current model of a `build.toml`: what the file says, without how it was spelled.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::arch::{CudaCapability, NpuArch, RocmArch};
use crate::backend::BackendName;
use crate::dependency::{Dependency, KernelDependency, RepoId};
use crate::git_url::GitUrl;
use crate::name::KernelName;
use crate::project_path::ProjectPath;
use crate::python_registry::PythonDependency;
use crate::source::SourceFile;
use crate::span::Spanned;
use crate::version::Version;

/// A whole `build.toml`.
///
/// Lists keep the order of the file. Equality looks at the values, not at the file or the places in it.
#[derive(Clone, Debug)]
pub struct Build {
    /// The file that it was read from, which every span points into.
    pub source: Arc<SourceFile>,
    /// `[general]`.
    pub general: General,
    /// The one framework table.
    pub framework: Framework,
    /// The `[kernel.*]` tables, in the order of the file.
    pub kernels: Vec<Kernel>,
}

/// What an edition's module makes of a document: a [`Build`] without its file.
pub(super) struct Contents {
    pub(super) general: General,
    pub(super) framework: Framework,
    pub(super) kernels: Vec<Kernel>,
}

impl PartialEq for Build {
    fn eq(&self, other: &Self) -> bool {
        (&self.general, &self.framework, &self.kernels) == (&other.general, &other.framework, &other.kernels)
    }
}

/// What `[general]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct General {
    /// `name`.
    pub name: Spanned<KernelName>,
    /// `version`; 0 by convention means that nothing is promised yet.
    pub version: Spanned<u64>,
    /// `license`: a licence id of the Hub by convention. Not empty.
    ///
    /// Optional here because not every file that can be read has one; everything that writes metadata needs it.
    pub license: Option<Spanned<String>>,
    /// `upstream`: the repository that the kernel comes from.
    pub upstream: Option<Spanned<GitUrl>>,
    /// `source`: the repository that holds this file.
    pub source: Option<Spanned<GitUrl>>,
    /// `backends`: at least one, each once.
    pub backends: Vec<Spanned<BackendName>>,
    /// `python-depends` for every backend.
    pub python_depends: Vec<Spanned<PythonDependency>>,
    /// `kernel-depends` for every backend.
    pub kernel_depends: Vec<Spanned<KernelDependency>>,
    /// `cuda.minver`: the oldest CUDA toolkit, inclusive.
    pub cuda_minver: Option<Spanned<Version>>,
    /// `cuda.maxver`: the newest CUDA toolkit, inclusive.
    pub cuda_maxver: Option<Spanned<Version>>,
    /// What single backends depend on beyond that.
    pub backend_depends: BTreeMap<BackendName, BackendDepends>,
    /// `hub`.
    pub hub: Hub,
}

/// What one backend's table in `[general]` depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendDepends {
    /// `python-depends`.
    pub python_depends: Vec<Spanned<PythonDependency>>,
    /// `kernel-depends`.
    pub kernel_depends: Vec<Spanned<KernelDependency>>,
}

/// Where a kernel is published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    /// `repo-id`.
    pub repo_id: Option<Spanned<RepoId>>,
    /// `branch`.
    pub branch: Option<Spanned<String>>,
}

/// The framework that an extension speaks with.
#[derive(Clone, Debug, PartialEq)]
pub enum Framework {
    /// `[torch]`: compiled for torch, by its C++ or its stable ABI.
    Torch(Torch),
    /// `[torch-noarch]`: Python only.
    TorchNoarch(TorchNoarch),
    /// `[tvm-ffi]`: compiled for tvm-ffi.
    TvmFfi(TvmFfi),
}

/// What `[torch]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Torch {
    /// `src`: files of the binding.
    pub src: Vec<Spanned<ProjectPath>>,
    /// `include`: directories for includes.
    pub include: Vec<Spanned<ProjectPath>>,
    /// `pyext`: extensions of shipped files, without dot; `None` for the default.
    pub pyext: Option<Vec<Spanned<String>>>,
    /// `minver`: the oldest torch, inclusive, by major and minor.
    pub minver: Option<Spanned<Version>>,
    /// `maxver`: the newest torch, inclusive, by major and minor.
    pub maxver: Option<Spanned<Version>>,
    /// `cxx-flags`: for `src` only.
    pub cxx_flags: Vec<Spanned<String>>,
    /// `stable-abi`.
    pub stable_abi: StableAbi,
}

/// For which backends the extension uses torch's stable ABI, and of which version.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StableAbi {
    /// For none.
    #[default]
    None,
    /// One version for every backend.
    All(Spanned<Version>),
    /// For the named backends, in the order of the file. May name backends that are not listed, which has no effect.
    PerBackend(Vec<(Spanned<BackendName>, Spanned<Version>)>),
}

/// What `[torch-noarch]` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TorchNoarch {
    /// `pyext`: extensions of shipped files, without dot; `None` for the default.
    pub pyext: Option<Vec<Spanned<String>>>,
    /// `cuda-capabilities`: the only CUDA devices that load it; `None` for all.
    pub cuda_capabilities: Option<Vec<Spanned<CudaCapability>>>,
    /// `rocm-archs`: the only AMD devices that load it; `None` for all.
    pub rocm_archs: Option<Vec<Spanned<RocmArch>>>,
}

/// What `[tvm-ffi]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct TvmFfi {
    /// `src`: files of the binding.
    pub src: Vec<Spanned<ProjectPath>>,
    /// `include`: directories for includes.
    pub include: Vec<Spanned<ProjectPath>>,
    /// `pyext`: extensions of shipped files, without dot; `None` for the default.
    pub pyext: Option<Vec<Spanned<String>>>,
    /// `cxx-flags`: for `src` only.
    pub cxx_flags: Vec<Spanned<String>>,
}

/// One `[kernel.<name>]`: a component that is compiled for one backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The table's name: any text that is not empty.
    pub name: Spanned<String>,
    /// `backend`: one that can have kernels.
    pub backend: Spanned<BackendName>,
    /// `src`.
    pub src: Vec<Spanned<ProjectPath>>,
    /// `depends`.
    pub depends: Vec<Spanned<Dependency>>,
    /// `include`: directories for includes.
    pub include: Vec<Spanned<ProjectPath>>,
    /// `cxx-flags`: for C++ sources.
    pub cxx_flags: Vec<Spanned<String>>,
    /// What only kernels of that backend can say.
    pub options: KernelOptions,
}

/// What kernels of one backend can say and others cannot.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelOptions {
    /// Nothing.
    Cpu,
    /// Nothing.
    Metal,
    /// For CUDA.
    Cuda {
        /// `cuda-capabilities`; `None` for the toolkit's whole list.
        capabilities: Option<Vec<Spanned<CudaCapability>>>,
        /// `cuda-flags`: for the device compiler.
        flags: Vec<Spanned<String>>,
        /// `cuda-minver`: older toolkits leave this kernel out.
        minver: Option<Spanned<Version>>,
    },
    /// For ROCm.
    Rocm {
        /// `rocm-archs`; `None` for the toolkit's whole list.
        archs: Option<Vec<Spanned<RocmArch>>>,
        /// `hip-flags`: for the device compiler.
        flags: Vec<Spanned<String>>,
    },
    /// For XPU.
    Xpu {
        /// `sycl-flags`: for the device compiler.
        flags: Vec<Spanned<String>>,
    },
    /// For CANN, an extension that `kernel-builder` does not read.
    Cann {
        /// `npu-archs`; `None` for the default.
        archs: Option<Vec<Spanned<NpuArch>>>,
        /// `asc-flags`: for the device compiler.
        flags: Vec<Spanned<String>>,
    },
}

impl KernelOptions {
    /// The flags of the device compiler.
    pub fn device_flags(&self) -> &[Spanned<String>] {
        match self {
            Self::Cuda { flags, .. } | Self::Rocm { flags, .. } | Self::Xpu { flags } | Self::Cann { flags, .. } => flags,
            Self::Cpu | Self::Metal => &[],
        }
    }
}
