//! Questions to a [`Build`] that the rest of Kiln asks.

use crate::backend::BackendName;
use crate::build::model::{Build, Framework, Kernel, StableAbi};
use crate::dependency::KernelDependency;
use crate::project_path::ProjectPath;
use crate::python_registry::PythonDependency;
use crate::span::Spanned;
use crate::version::Version;

/// Extensions that are shipped when `pyext` is absent.
const DEFAULT_EXTENSIONS: [&str; 2] = ["py", "pyi"];

impl Build {
    /// The name of the Python package.
    pub fn python_name(&self) -> String {
        self.general.name.python_name()
    }

    /// The project's directory that holds the Python package, `torch-ext` or `tvm-ffi-ext`.
    pub fn ext_dir(&self) -> &'static str {
        match self.framework {
            Framework::Torch(_) | Framework::TorchNoarch(_) => "torch-ext",
            Framework::TvmFfi(_) => "tvm-ffi-ext",
        }
    }

    /// The listed backends, in the order of the file.
    pub fn backends(&self) -> impl Iterator<Item = BackendName> {
        self.general.backends.iter().map(|backend| backend.value)
    }

    /// The kernels of `backend`, in the order of the file, whether `backend` is listed or not.
    pub fn kernels_for(&self, backend: BackendName) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter().filter(move |kernel| kernel.backend.value == backend)
    }

    /// The version of torch's stable ABI that the extension for `backend` uses; `None` where it uses the C++ ABI, no
    /// torch, or is no compiled extension.
    pub fn stable_abi_for(&self, backend: BackendName) -> Option<&Spanned<Version>> {
        match &self.framework {
            Framework::Torch(torch) => torch.stable_abi.version_for(backend),
            Framework::TorchNoarch(_) | Framework::TvmFfi(_) => None,
        }
    }

    /// The Python packages that the kernel needs on `backend`: the general ones first, then the backend's, each once.
    pub fn python_depends_for(&self, backend: BackendName) -> Vec<PythonDependency> {
        let own = self.general.backend_depends.get(&backend).into_iter().flat_map(|depends| &depends.python_depends);
        let mut all = Vec::new();
        for dependency in self.general.python_depends.iter().chain(own) {
            if !all.contains(&dependency.value) {
                all.push(dependency.value);
            }
        }
        all
    }

    /// The kernels that the kernel needs on `backend`: the general ones first, then the backend's.
    pub fn kernel_depends_for(&self, backend: BackendName) -> Vec<&KernelDependency> {
        let own = self.general.backend_depends.get(&backend).into_iter().flat_map(|depends| &depends.kernel_depends);
        self.general.kernel_depends.iter().chain(own).map(|dependency| &dependency.value).collect()
    }

    /// Extensions, without dot, of the files that a variant ships: `pyext`, `py` always.
    pub fn shipped_extensions(&self) -> Vec<&str> {
        self.framework.shipped_extensions()
    }
}

impl Framework {
    /// The name of the framework's table.
    pub fn table_name(&self) -> &'static str {
        match self {
            Self::Torch(_) => "torch",
            Self::TorchNoarch(_) => "torch-noarch",
            Self::TvmFfi(_) => "tvm-ffi",
        }
    }

    /// Files of the binding; none for `[torch-noarch]`.
    pub fn src(&self) -> &[Spanned<ProjectPath>] {
        match self {
            Self::Torch(torch) => &torch.src,
            Self::TorchNoarch(_) => &[],
            Self::TvmFfi(tvm_ffi) => &tvm_ffi.src,
        }
    }

    /// Directories for includes of the binding.
    pub fn include(&self) -> &[Spanned<ProjectPath>] {
        match self {
            Self::Torch(torch) => &torch.include,
            Self::TorchNoarch(_) => &[],
            Self::TvmFfi(tvm_ffi) => &tvm_ffi.include,
        }
    }

    /// Flags for the files of the binding.
    pub fn cxx_flags(&self) -> &[Spanned<String>] {
        match self {
            Self::Torch(torch) => &torch.cxx_flags,
            Self::TorchNoarch(_) => &[],
            Self::TvmFfi(tvm_ffi) => &tvm_ffi.cxx_flags,
        }
    }

    /// Extensions, without dot, of the files that a variant ships: `pyext`, `py` always; each once.
    pub fn shipped_extensions(&self) -> Vec<&str> {
        let written = match self {
            Self::Torch(torch) => &torch.pyext,
            Self::TorchNoarch(noarch) => &noarch.pyext,
            Self::TvmFfi(tvm_ffi) => &tvm_ffi.pyext,
        };
        let Some(written) = written else { return DEFAULT_EXTENSIONS.to_vec() };
        let mut all = Vec::new();
        for extension in written.iter().map(|extension| extension.value.as_str()).chain(["py"]) {
            if !all.contains(&extension) {
                all.push(extension);
            }
        }
        all
    }
}

impl StableAbi {
    /// The version for `backend`, if it uses the stable ABI.
    pub fn version_for(&self, backend: BackendName) -> Option<&Spanned<Version>> {
        match self {
            Self::None => None,
            Self::All(version) => Some(version),
            Self::PerBackend(entries) => entries.iter().find(|(name, _)| name.value == backend).map(|(_, version)| version),
        }
    }
}
