//! Why a row of the matrix gives a kernel no variant of its own.

use std::fmt;

use kiln_format::variant::EmitError;
use kiln_format::{BackendName, MajorMinor, Version};

use super::data::{Row, Target};

/// A row that gives no variant, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The row; none for the Python-only variant of a backend.
    pub row: Option<Row>,
    /// The backend.
    pub backend: BackendName,
    /// The name that the variant has or would have, where it has one.
    pub name: Option<String>,
    /// Why it is left out.
    pub reason: Reason,
}

/// Why a row gives no variant, or why a variant is not in what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `general.backends` does not list the backend.
    NotListed,
    /// The row does not exist for the target.
    OtherSystem(Target),
    /// Torch is older than `torch.minver`.
    TorchBelow(Version),
    /// Torch is newer than `torch.maxver`.
    TorchAbove(Version),
    /// CUDA is older than `general.cuda.minver`.
    CudaBelow(Version),
    /// CUDA is newer than `general.cuda.maxver`.
    CudaAbove(Version),
    /// Torch is older than the declared stable ABI.
    StableAbiNewer(Version),
    /// Every component of the backend asks for a newer CUDA (`cuda-minver`); the least of those versions.
    EveryKernelNeedsCuda(Version),
    /// The row has no tvm-ffi build.
    NoTvmFfi,
    /// The framework compiles for every listed backend, and there is nothing to compile for this one.
    NoComponent,
    /// The backend is built as Python only, which needs no row.
    Noarch,
    /// Bounds leave none of the rows that the backend has.
    BoundsExcludeAll,
    /// The stable ABI makes one variant for all torch versions, compiled with this newer one.
    NewerTorch(MajorMinor),
    /// An earlier row gives the same name.
    SameName,
    /// The name would not be read back as what it means.
    Name(EmitError),
    /// A filter of the command line leaves it out.
    Filtered(&'static str),
    /// It is not in the set that is published.
    NotDefault,
    /// Another variant of the backend is preferred: its name.
    NotPreferred(String),
    /// This machine cannot build it; why, for people.
    CannotBuild(String),
}

impl Reason {
    /// A stable, kebab-case name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotListed => "backend-not-listed",
            Self::OtherSystem(_) => "other-system",
            Self::TorchBelow(_) => "torch-below-minver",
            Self::TorchAbove(_) => "torch-above-maxver",
            Self::CudaBelow(_) => "cuda-below-minver",
            Self::CudaAbove(_) => "cuda-above-maxver",
            Self::StableAbiNewer(_) => "stable-abi-newer",
            Self::EveryKernelNeedsCuda(_) => "every-kernel-needs-newer-cuda",
            Self::NoTvmFfi => "no-tvm-ffi",
            Self::NoComponent => "no-component",
            Self::Noarch => "noarch",
            Self::BoundsExcludeAll => "bounds-exclude-all",
            Self::NewerTorch(_) => "newer-torch",
            Self::SameName => "same-name",
            Self::Name(_) => "name",
            Self::Filtered(_) => "filtered",
            Self::NotDefault => "not-default",
            Self::NotPreferred(_) => "not-preferred",
            Self::CannotBuild(_) => "cannot-build",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed => f.write_str("`general.backends` does not list it"),
            Self::OtherSystem(target) => write!(f, "there is none for {target}"),
            Self::TorchBelow(bound) => write!(f, "torch is older than `torch.minver` = {bound}"),
            Self::TorchAbove(bound) => write!(f, "torch is newer than `torch.maxver` = {bound}"),
            Self::CudaBelow(bound) => write!(f, "CUDA is older than `general.cuda.minver` = {bound}"),
            Self::CudaAbove(bound) => write!(f, "CUDA is newer than `general.cuda.maxver` = {bound}"),
            Self::StableAbiNewer(version) => write!(f, "torch is older than `torch.stable-abi` = {version}"),
            Self::EveryKernelNeedsCuda(version) => write!(f, "every cuda kernel needs CUDA {version} or newer (`cuda-minver`)"),
            Self::NoTvmFfi => f.write_str("the matrix has no tvm-ffi for it"),
            Self::NoComponent => f.write_str("no `[kernel.*]` has this backend"),
            Self::Noarch => f.write_str("it is Python only and needs no torch build"),
            Self::BoundsExcludeAll => f.write_str("the version bounds leave none of its rows"),
            Self::NewerTorch(torch) => write!(f, "the stable ABI makes one variant of all its torch versions, compiled with {torch}"),
            Self::SameName => f.write_str("an earlier row gives the same name"),
            Self::Name(error) => error.fmt(f),
            Self::Filtered(option) => write!(f, "`{option}` leaves it out"),
            Self::NotDefault => f.write_str("it is not in the default set (`--all` builds it)"),
            Self::NotPreferred(name) => write!(f, "`{name}` is preferred (`--all` builds every variant)"),
            Self::CannotBuild(why) => write!(f, "it cannot be built here: {why}"),
        }
    }
}
