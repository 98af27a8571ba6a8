//! What a loader accepts on a machine, and in which order it prefers it.

use super::{ArchFramework, ArchVariant, Compute, Cpu, CxxAbi, NoarchTarget, Os, Variant};
use crate::backend::BackendName;
use crate::version::MajorMinor;

/// The first Python whose free-threaded interpreter loads compiled kernels.
const FREE_THREADED_FROM: MajorMinor = MajorMinor::new(3, 15);

/// The first macOS that loads compiled Metal kernels.
const METAL_FROM: MajorMinor = MajorMinor::new(26, 0);

/// A machine as a loader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The processor.
    pub cpu: Cpu,
    /// The operating system.
    pub os: Os,
    /// The device backend with its version.
    pub compute: Compute,
    /// The installed torch.
    pub torch: Option<MajorMinor>,
    /// The C++ library's ABI of the installed torch; `None` off Linux.
    pub cxx_abi: Option<CxxAbi>,
    /// The installed tvm-ffi.
    pub tvm_ffi: Option<MajorMinor>,
    /// The version of macOS, on macOS.
    pub macos: Option<MajorMinor>,
    /// The interpreter's version.
    pub python: MajorMinor,
    /// Whether the interpreter runs without a global lock.
    pub free_threaded: bool,
}

/// The first reason why a [`System`] does not accept a [`Variant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The interpreter is free-threaded and too old for that.
    #[error("free-threaded interpreters load compiled kernels from Python 3.15 on")]
    FreeThreaded,
    /// Another processor.
    #[error("it is for another processor")]
    Cpu,
    /// Another operating system.
    #[error("it is for another operating system")]
    Os,
    /// No torch, or another one.
    #[error("it needs another torch")]
    Torch,
    /// Torch was built with another ABI of the C++ library.
    #[error("it was built for another ABI of the C++ library")]
    CxxAbi,
    /// No tvm-ffi, or another one.
    #[error("it needs another tvm-ffi")]
    TvmFfi,
    /// Another device, or another version of its toolkit.
    #[error("it is for another device or toolkit version")]
    Compute,
    /// macOS is too old.
    #[error("compiled Metal kernels need macOS 26.0")]
    Macos,
}

/// How much a loader likes a variant: smaller is better, and the first given wins among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preference(u8, i128, i128, i128);

impl System {
    /// Whether a loader on this machine accepts `variant`.
    ///
    /// # Errors
    /// With the first reason against it.
    pub fn accepts(&self, variant: &Variant) -> Result<(), Rejection> {
        match variant {
            Variant::Arch(arch) => self.accepts_arch(arch),
            Variant::Noarch(NoarchTarget::Universal) => Ok(()),
            Variant::Noarch(NoarchTarget::Backend(backend)) => holds(*backend == self.compute.backend(), Rejection::Compute),
        }
    }

    fn accepts_arch(&self, arch: &ArchVariant) -> Result<(), Rejection> {
        holds(!self.free_threaded || self.python >= FREE_THREADED_FROM, Rejection::FreeThreaded)?;
        holds(arch.cpu == self.cpu, Rejection::Cpu)?;
        holds(arch.os == self.os, Rejection::Os)?;
        match arch.framework {
            ArchFramework::TorchCxx { version, abi } => {
                holds(self.torch == Some(version), Rejection::Torch)?;
                holds(abi.is_none() || abi == self.cxx_abi, Rejection::CxxAbi)?;
            }
            ArchFramework::TorchStable { version } => holds(self.torch.is_some_and(|torch| version <= torch), Rejection::Torch)?,
            ArchFramework::TvmFfi { version } => holds(self.tvm_ffi == Some(version), Rejection::TvmFfi)?,
        }
        let fits = match (arch.compute, self.compute) {
            (Compute::Cuda(variant), Compute::Cuda(system)) => variant.major == system.major && variant.minor <= system.minor,
            (variant, system) => variant == system,
        };
        holds(fits, Rejection::Compute)?;
        let macos_is_new = self.macos.is_some_and(|macos| macos >= METAL_FROM);
        holds(arch.compute.backend() != BackendName::Metal || macos_is_new, Rejection::Macos)
    }

    /// The variants that a loader on this machine accepts, the one it takes first.
    pub fn select<'a>(&self, variants: impl IntoIterator<Item = &'a Variant>) -> Vec<&'a Variant> {
        let mut accepted: Vec<&Variant> = variants.into_iter().filter(|variant| self.accepts(variant).is_ok()).collect();
        accepted.sort_by_key(|variant| variant.preference());
        accepted
    }
}

impl Variant {
    /// How much a loader that accepts this variant likes it.
    pub fn preference(&self) -> Preference {
        let arch = match self {
            Self::Arch(arch) => arch,
            Self::Noarch(target) => return Preference(2, 0, 0, i128::from(*target == NoarchTarget::Universal)),
        };
        let newest_first = |number: u64| -i128::from(number);
        let compute = newest_first(arch.compute.version().map_or(0, |version| version.minor));
        match arch.framework {
            ArchFramework::TorchStable { version } => Preference(0, newest_first(version.major), newest_first(version.minor), compute),
            ArchFramework::TorchCxx { abi, .. } => Preference(1, 0, i128::from(abi.is_some()), compute),
            ArchFramework::TvmFfi { .. } => Preference(2, 0, 0, compute),
        }
    }
}

fn holds(condition: bool, otherwise: Rejection) -> Result<(), Rejection> {
    if condition { Ok(()) } else { Err(otherwise) }
}
