//! Reading and writing names by the variant grammar, with the digit splits of the loader's patterns.

use std::fmt;
use std::str::FromStr;

use super::{ArchFramework, ArchVariant, Compute, Cpu, CxxAbi, NoarchTarget, Os, Variant};
use crate::backend::BackendName;
use crate::suggest::quoted;
use crate::version::MajorMinor;

/// Why a text is no variant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a variant name: {reason}", quoted(.name))]
pub struct VariantError {
    /// The text.
    pub name: String,
    /// What about it cannot be read.
    pub reason: String,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arch(arch) => arch.fmt(f),
            Self::Noarch(target) => write!(f, "torch-{}", target.as_str()),
        }
    }
}

impl fmt::Display for ArchVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.framework, self.compute, self.cpu, self.os)
    }
}

impl fmt::Display for ArchFramework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, MajorMinor { major, minor }) = match self {
            Self::TorchCxx { version, .. } => ("torch", version),
            Self::TorchStable { version } => ("torch-stable-abi", version),
            Self::TvmFfi { version } => ("tvm-ffi", version),
        };
        write!(f, "{prefix}{major}{minor}")?;
        match self {
            Self::TorchCxx { abi: Some(abi), .. } => write!(f, "-{}", abi.as_str()),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            // Only here the name differs from the backend's.
            Self::Cuda(_) => "cu",
            other => other.backend().as_str(),
        })?;
        match self.version() {
            Some(MajorMinor { major, minor }) => write!(f, "{major}{minor}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Os {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Variant {
    type Err = VariantError;

    /// Reads a name as a loader does, except that digits with a leading zero are refused, because a name that is written
    /// back must be the same name.
    fn from_str(name: &str) -> Result<Self, VariantError> {
        let variant = parse(name).map_err(|reason| VariantError { name: name.to_owned(), reason })?;
        let canonical = variant.to_string();
        if canonical != name {
            return Err(VariantError { name: name.to_owned(), reason: format!("its versions are those of `{canonical}`") });
        }
        Ok(variant)
    }
}

/// Reads a name exactly as a loader does; the error is the reason.
pub(super) fn parse(name: &str) -> Result<Variant, String> {
    let parts: Vec<&str> = name.split('-').collect();
    let (framework, rest) = match parts.as_slice() {
        ["torch", "stable", abi, rest @ ..] if abi.starts_with("abi") => {
            let version =
                one_digit_major(abi.strip_prefix("abi").unwrap_or_default()).ok_or("it has no stable ABI version such as `abi211`")?;
            (ArchFramework::TorchStable { version }, rest)
        }
        ["torch", ..] => return noarch(name.strip_prefix("torch-").unwrap_or_default()),
        ["tvm", ffi, rest @ ..] if ffi.starts_with("ffi") => {
            let version =
                one_digit_major(ffi.strip_prefix("ffi").unwrap_or_default()).ok_or("it has no tvm-ffi version such as `ffi01`")?;
            (ArchFramework::TvmFfi { version }, rest)
        }
        [torch, rest @ ..] if torch.starts_with("torch") => {
            let version =
                one_digit_major(torch.strip_prefix("torch").unwrap_or_default()).ok_or("it has no torch version such as `torch213`")?;
            let (abi, rest) = match rest {
                ["cxx11", rest @ ..] => (Some(CxxAbi::Cxx11), rest),
                ["cxx98", rest @ ..] => (Some(CxxAbi::Cxx98), rest),
                rest => (None, rest),
            };
            (ArchFramework::TorchCxx { version, abi }, rest)
        }
        _ => return Err("it starts with neither `torch` nor `tvm-ffi`".to_owned()),
    };
    let [compute, cpu, os] = rest else {
        return Err(format!("compute, processor and operating system must follow the framework, but {} parts do", rest.len()));
    };
    let compute = parse_compute(compute).ok_or_else(|| format!("{} is no compute part such as `cpu` or `cu130`", quoted(compute)))?;
    let cpu = [Cpu::Aarch64, Cpu::X86_64]
        .into_iter()
        .find(|known| known.as_str() == *cpu)
        .ok_or_else(|| format!("{} is no processor part such as `x86_64`", quoted(cpu)))?;
    let os = [Os::Darwin, Os::Linux, Os::Windows]
        .into_iter()
        .find(|known| known.as_str() == *os)
        .ok_or_else(|| format!("{} is no operating system part such as `linux`", quoted(os)))?;
    Ok(Variant::Arch(ArchVariant { framework, compute, cpu, os }))
}

fn noarch(target: &str) -> Result<Variant, String> {
    let target = match target {
        "universal" => NoarchTarget::Universal,
        _ => BackendName::ALL
            .into_iter()
            .find(|backend| backend.noarch_name() == target)
            .map(NoarchTarget::Backend)
            .ok_or_else(|| format!("{} is no backend of a Python-only variant", quoted(target)))?,
    };
    Ok(Variant::Noarch(target))
}

/// `(\d)(\d+)`: the first digit is the major version, the rest the minor.
fn one_digit_major(digits: &str) -> Option<MajorMinor> {
    split_digits(digits, 1)
}

fn parse_compute(text: &str) -> Option<Compute> {
    let plain = [Compute::Cpu, Compute::Metal, Compute::Neuron, Compute::Tpu];
    if let Some(compute) = plain.into_iter().find(|compute| compute.backend().as_str() == text) {
        return Some(compute);
    }
    let (kind, digits) = text.split_at(text.find(|c: char| c.is_ascii_digit())?);
    // `(\d+)(\d+)` is greedy: the minor version is the last digit.
    let version = split_digits(digits, digits.len().checked_sub(1)?)?;
    match kind {
        "cu" => Some(Compute::Cuda(version)),
        "rocm" => Some(Compute::Rocm(version)),
        "xpu" => Some(Compute::Xpu(version)),
        "cann" => Some(Compute::Cann(version)),
        _ => None,
    }
}

/// ASCII digits cut at `at`, both parts not empty.
fn split_digits(digits: &str, at: usize) -> Option<MajorMinor> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (major, minor) = digits.split_at_checked(at)?;
    Some(MajorMinor::new(major.parse().ok()?, minor.parse().ok()?))
}
