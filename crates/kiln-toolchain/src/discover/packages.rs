//! Which packages of which distribution have what is missing.

use super::distribution::PackageManager;

/// Something that a build may lack and that a distribution may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A C++ compiler.
    Cxx,
    /// The C++ library's headers and link files, of GCC's release `major` where packages are by release.
    CxxHeaders {
        /// GCC's major number; none takes the distribution's default.
        major: Option<u64>,
    },
    /// The C library's headers and link files.
    CHeaders,
    /// Assembler and linker.
    Binutils,
    /// Git.
    Git,
    /// Python 3.
    Python,
    /// CUDA's compiler of a system toolkit.
    Cuda,
    /// HIP's compiler with its headers.
    Hip,
    /// The device libraries of ROCm.
    RocmDeviceLibs,
    /// HIP's run time with its headers.
    HipRuntime,
    /// Intel's SYCL compiler.
    OneApi,
    /// Apple's command line tools.
    AppleTools,
    /// Huawei's CANN toolkit.
    Cann,
}

/// The packages, as they stand behind the install command. Sources: the package lists of the distributions; none where the vendor
/// alone offers it.
pub(super) fn packages(need: Need, manager: PackageManager) -> Option<String> {
    use PackageManager::{Apk, Apt, Brew, Dnf, Pacman, Zypper};
    let fixed = match (need, manager) {
        (Need::Cxx, Apt | Apk) => "g++",
        (Need::Cxx, Dnf | Zypper) => "gcc-c++",
        (Need::Cxx | Need::CxxHeaders { .. }, Pacman) => "gcc",
        (Need::CxxHeaders { major: Some(major) }, Apt) => return Some(format!("libstdc++-{major}-dev")),
        (Need::CxxHeaders { major: None }, Apt) => "g++",
        (Need::CxxHeaders { .. }, Dnf | Zypper) => "libstdc++-devel",
        (Need::CxxHeaders { .. }, Apk) => "libstdc++-dev",
        (Need::CHeaders, Apt) => "libc6-dev",
        (Need::CHeaders, Dnf | Zypper) => "glibc-devel",
        (Need::CHeaders, Pacman) => "glibc",
        (Need::CHeaders, Apk) => "musl-dev",
        (Need::Binutils, Apt | Dnf | Pacman | Apk | Zypper) => "binutils",
        (Need::Git, _) => "git",
        (Need::Python, Apt | Dnf | Apk | Zypper) => "python3",
        (Need::Python, Pacman | Brew) => "python",
        // Debian's and Ubuntu's CUDA is older than any that torch is built for.
        (Need::Cuda, Pacman) => "cuda",
        (Need::Hip, Apt | Dnf) => "hipcc",
        (Need::Hip | Need::HipRuntime, Pacman) => "hip-runtime-amd",
        (Need::HipRuntime, Apt) => "libamdhip64-dev",
        (Need::HipRuntime, Dnf) => "rocm-hip-devel",
        (Need::RocmDeviceLibs, Apt | Dnf | Pacman) => "rocm-device-libs",
        _ => return None,
    };
    Some(fixed.to_owned())
}

impl Need {
    /// What a vendor offers that has it, as words behind "install".
    pub(super) fn vendor(self) -> Option<&'static str> {
        match self {
            Self::Cuda => Some("NVIDIA's CUDA toolkit"),
            Self::Hip | Self::RocmDeviceLibs | Self::HipRuntime => Some("AMD's ROCm packages"),
            Self::OneApi => Some("Intel's oneAPI DPC++ compiler"),
            Self::AppleTools => Some("Xcode, and its shader compiler with `xcodebuild -downloadComponent MetalToolchain`"),
            Self::Cann => Some("Huawei's CANN toolkit"),
            _ => None,
        }
    }
}
