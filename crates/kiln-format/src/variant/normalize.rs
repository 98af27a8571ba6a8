//! From what tools say about themselves to the parts of a variant's name.

use super::{Cpu, Os};
use crate::version::{MajorMinor, Version, VersionError};

/// The torch version of `torch.__version__` such as `2.13.0+cu130`: up to `+`, cut to major and minor.
///
/// # Errors
/// When what is left is no version.
pub fn torch(version: &str) -> Result<MajorMinor, VersionError> {
    first_two(version.split('+').next().unwrap_or_default())
}

/// The ROCm version of `torch.version.hip` such as `7.2.53150-676d00dad9`: up to `-`, cut to major and minor.
///
/// # Errors
/// When what is left is no version.
pub fn rocm(version: &str) -> Result<MajorMinor, VersionError> {
    first_two(version.split('-').next().unwrap_or_default())
}

/// The version of tvm-ffi, CUDA or CANN, cut to major and minor; pre-release tags of the later components do not matter.
///
/// # Errors
/// When the first two components are no version.
pub fn first_two(version: &str) -> Result<MajorMinor, VersionError> {
    let version = version.trim();
    let end = version.match_indices('.').nth(1).map_or(version.len(), |(offset, _)| offset);
    Version::parse(version.get(..end).unwrap_or_default()).map(|version| version.major_minor())
}

/// The XPU version of the compiler's `--version` text: the first `N.N`.
pub fn xpu_compiler(text: &str) -> Option<MajorMinor> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        word.contains('.').then(|| first_two(word.trim_matches('.'))).and_then(Result::ok).filter(|_| word.trim_matches('.').contains('.'))
    })
}

/// The XPU version of `torch.version.xpu` such as `20250302`: its first four characters and the sixth.
pub fn xpu_torch(text: &str) -> Option<MajorMinor> {
    let digits = |range| text.get(range).filter(|digits: &&str| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    Some(MajorMinor::new(digits(0..4)?, digits(5..6)?))
}

/// The processor that an operating system calls `machine`, such as `amd64`.
pub fn cpu(machine: &str) -> Option<Cpu> {
    match machine {
        "x86_64" | "amd64" | "AMD64" => Some(Cpu::X86_64),
        "aarch64" | "arm64" | "ARM64" => Some(Cpu::Aarch64),
        _ => None,
    }
}

/// The operating system that Python calls `system`, such as `Linux`.
pub fn os(system: &str) -> Option<Os> {
    match system {
        "Linux" => Some(Os::Linux),
        "Darwin" => Some(Os::Darwin),
        "Windows" => Some(Os::Windows),
        _ => None,
    }
}
