//! Names of variant directories, and what a loader does with them.
//!
//! [`Variant`] is one name as a value. [`str::parse`] reads every name that a loader reads; [`Variant::arch`] and
//! [`Variant::noarch`] make only names that Kiln may write. [`System`] is a machine as a loader sees it: it says which
//! variants it accepts ([`System::accepts`]) and which it likes best ([`System::select`]). [`normalize`] turns what tools
//! say about themselves into the parts of a name.

mod emit;
mod grammar;
pub mod normalize;
mod select;

pub use self::emit::EmitError;
pub use self::grammar::VariantError;
pub use self::select::{Preference, Rejection, System};

use crate::backend::BackendName;
use crate::ops_id::OpsId;
use crate::version::MajorMinor;

/// What one variant directory was built for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// With compiled code.
    Arch(ArchVariant),
    /// Python only.
    Noarch(NoarchTarget),
}

/// What a variant with compiled code was built for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchVariant {
    /// Whose ABI the extension speaks.
    pub framework: ArchFramework,
    /// What runs the kernel.
    pub compute: Compute,
    /// The target's processor.
    pub cpu: Cpu,
    /// The target's operating system.
    pub os: Os,
}

/// The ABI that compiled code speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArchFramework {
    /// Torch's C++ ABI, which changes with every minor version.
    TorchCxx {
        /// The torch version.
        version: MajorMinor,
        /// The tag of the C++ library's ABI, where the name has one.
        abi: Option<CxxAbi>,
    },
    /// Torch's stable ABI.
    TorchStable {
        /// The declared version, not that of the torch used for building.
        version: MajorMinor,
    },
    /// The ABI of tvm-ffi.
    TvmFfi {
        /// The tvm-ffi version.
        version: MajorMinor,
    },
}

/// The ABI of the C++ standard library that torch on Linux was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CxxAbi {
    /// The one of C++11.
    Cxx11,
    /// The one before; read, never written.
    Cxx98,
}

/// A backend with the version that matters for compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compute {
    /// The host processor.
    Cpu,
    /// Apple GPUs.
    Metal,
    /// AWS Neuron devices.
    Neuron,
    /// TPUs.
    Tpu,
    /// NVIDIA GPUs, with the CUDA version.
    Cuda(MajorMinor),
    /// AMD GPUs, with the ROCm version.
    Rocm(MajorMinor),
    /// Intel GPUs, with the oneAPI version.
    Xpu(MajorMinor),
    /// Ascend NPUs, with the CANN version.
    Cann(MajorMinor),
}

/// The target's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cpu {
    /// 64-bit ARM.
    Aarch64,
    /// 64-bit x86.
    X86_64,
}

/// The target's operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Os {
    /// macOS.
    Darwin,
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// What a Python-only variant is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoarchTarget {
    /// One backend.
    Backend(BackendName),
    /// Every backend; read, never written.
    Universal,
}

impl Variant {
    /// The backend; `None` for a universal variant.
    pub fn backend(&self) -> Option<BackendName> {
        match self {
            Self::Arch(arch) => Some(arch.compute.backend()),
            Self::Noarch(NoarchTarget::Backend(backend)) => Some(*backend),
            Self::Noarch(NoarchTarget::Universal) => None,
        }
    }

    /// The name of its directory.
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// File name of the extension in its directory; none for Python only. Torch's are modules of Python's stable ABI, those of tvm-ffi
    /// are plain libraries.
    pub fn extension_name(&self, id: &OpsId) -> Option<String> {
        let Self::Arch(arch) = self else { return None };
        let suffix = match (arch.framework, arch.os) {
            (ArchFramework::TorchCxx { .. } | ArchFramework::TorchStable { .. }, Os::Linux | Os::Darwin) => "abi3.so",
            (ArchFramework::TorchCxx { .. } | ArchFramework::TorchStable { .. }, Os::Windows) => "pyd",
            (ArchFramework::TvmFfi { .. }, Os::Linux) => "so",
            (ArchFramework::TvmFfi { .. }, Os::Darwin) => "dylib",
            (ArchFramework::TvmFfi { .. }, Os::Windows) => "dll",
        };
        Some(format!("{id}.{suffix}"))
    }
}

impl Compute {
    /// The compute kind of `backend` with `version`, which matters for cuda, rocm, xpu and cann only.
    pub const fn new(backend: BackendName, version: MajorMinor) -> Self {
        match backend {
            BackendName::Cann => Self::Cann(version),
            BackendName::Cpu => Self::Cpu,
            BackendName::Cuda => Self::Cuda(version),
            BackendName::Metal => Self::Metal,
            BackendName::Neuron => Self::Neuron,
            BackendName::Rocm => Self::Rocm(version),
            BackendName::Tpu => Self::Tpu,
            BackendName::Xpu => Self::Xpu(version),
        }
    }

    /// The backend.
    pub const fn backend(self) -> BackendName {
        match self {
            Self::Cpu => BackendName::Cpu,
            Self::Metal => BackendName::Metal,
            Self::Neuron => BackendName::Neuron,
            Self::Tpu => BackendName::Tpu,
            Self::Cuda(_) => BackendName::Cuda,
            Self::Rocm(_) => BackendName::Rocm,
            Self::Xpu(_) => BackendName::Xpu,
            Self::Cann(_) => BackendName::Cann,
        }
    }

    /// The version, where the kind has one.
    pub const fn version(self) -> Option<MajorMinor> {
        match self {
            Self::Cpu | Self::Metal | Self::Neuron | Self::Tpu => None,
            Self::Cuda(version) | Self::Rocm(version) | Self::Xpu(version) | Self::Cann(version) => Some(version),
        }
    }
}

impl Cpu {
    /// The part of a variant's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::X86_64 => "x86_64",
        }
    }
}

impl Os {
    /// The part of a variant's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Darwin => "darwin",
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }
}

impl CxxAbi {
    /// The part of a variant's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cxx11 => "cxx11",
            Self::Cxx98 => "cxx98",
        }
    }
}

impl NoarchTarget {
    /// The part of a variant's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Backend(backend) => backend.noarch_name(),
            Self::Universal => "universal",
        }
    }
}
