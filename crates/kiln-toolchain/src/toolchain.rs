//! What the toolchain of a framework is, whoever provides it.
//!
//! A wheel of the catalog and an installed Python give the same type; the rest of the house cannot tell which.

use std::fmt;
use std::path::PathBuf;

use kiln_graph::{PathRef, RootBinding, RootName};

use crate::names::LibraryExports;
use crate::stand_in::StandIn;
use crate::terms::Terms;
use kiln_format::Version;

/// Where a toolchain came from. For records and messages only: nothing may depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// A wheel of the catalog.
    Wheel {
        /// File name of the wheel.
        file: String,
        /// Sha256 of the whole wheel, as lower-case hexadecimal text.
        sha256: String,
        /// Sha256 of the wheel's `RECORD`, as lower-case hexadecimal text.
        record_sha256: String,
    },
    /// An existing Python environment that has torch.
    System {
        /// The interpreter that was named.
        python: PathBuf,
        /// The directory that holds `torch/`.
        site_packages: PathBuf,
    },
}

/// The libraries of torch that an extension may link with, in link order. Those of another backend follow when there is one.
pub(crate) fn torch_libraries(platform: &str) -> &'static [&'static str] {
    match platform.split_once('-').map_or(platform, |(os, _)| os) {
        "darwin" => &["libc10.dylib", "libtorch.dylib", "libtorch_cpu.dylib"],
        "windows" => &["c10.dll", "torch.dll", "torch_cpu.dll", "c10_cuda.dll", "torch_cuda.dll"],
        _ => &["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"],
    }
}

/// The C++ language level that the umbrella headers of a torch release want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CxxLevel {
    /// `gnu++17`: torch before 2.12.
    Gnu17,
    /// `gnu++20`: torch from 2.12 on.
    Gnu20,
}

impl CxxLevel {
    /// The value of `-std=`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gnu17 => "gnu++17",
            Self::Gnu20 => "gnu++20",
        }
    }

    /// The level that the umbrella headers of torch `version` want.
    pub fn of_torch(version: &Version) -> Self {
        if (version.major(), version.minor()) < (2, 12) { Self::Gnu17 } else { Self::Gnu20 }
    }

    /// The level whose [`CxxLevel::as_str`] is `text`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Gnu17, Self::Gnu20].into_iter().find(|level| level.as_str() == text)
    }
}

impl fmt::Display for CxxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A package beside torch, for devices that torch's own builds do not know: headers, and a library that extensions link with.
#[derive(Clone, Debug)]
pub struct TorchAddition {
    /// Its project on the index: `torch-npu`.
    pub name: String,
    /// Its version as it writes it: `2.12.0.post3`.
    pub version: String,
    /// The release of torch that it was made for.
    pub torch: Version,
    /// Where it came from.
    pub provider: Provider,
    /// Name of the root that the include directories are relative to; it changes when the tree's content does.
    pub root: RootName,
    /// Where that root lies on this machine, and its digest.
    pub binding: RootBinding,
    /// Include directories in their order. They come after torch's own.
    pub include_dirs: Vec<PathRef>,
    /// What its libraries export, in link order.
    pub exports: Vec<LibraryExports>,
    /// Digest of everything above that decides a build's result, as lower-case hexadecimal text.
    pub identity: String,
    /// The terms under which its files come; empty for one that was only planned.
    pub terms: Vec<Terms>,
}

/// Headers and link names of one torch build.
#[derive(Clone, Debug)]
pub struct TorchToolchain {
    /// Release, without a local part (`2.13.0`, not `2.13.0+cu130`).
    pub version: Version,
    /// The CUDA release that this torch was built with (`13.0`); none for a CPU build.
    pub cuda: Option<Version>,
    /// Where it came from.
    pub provider: Provider,
    /// The build that this one stands in for, if it is not the variant's own.
    pub stand_in: Option<StandIn>,
    /// Name of the root that the include directories are relative to; it changes when the tree's content does.
    pub root: RootName,
    /// Where that root lies on this machine, and its digest.
    pub binding: RootBinding,
    /// Include directories in their order: `torch/include`, then `torch/include/torch/csrc/api/include`, then those of the addition.
    pub include_dirs: Vec<PathRef>,
    /// What torch's libraries and those of the addition export, in link order.
    pub exports: Vec<LibraryExports>,
    /// Digest of everything of torch's that decides a build's result, as lower-case hexadecimal text.
    pub identity: String,
    /// The language level that the umbrella headers want.
    pub cxx_level: CxxLevel,
    /// The terms under which its files come; empty for an installed one, and for one that was only planned.
    pub terms: Vec<Terms>,
    /// The package beside it that variants for some devices need; it has an identity of its own.
    pub addition: Option<TorchAddition>,
}

impl TorchToolchain {
    /// The same with a package beside it: its include directories and its libraries come after torch's.
    #[must_use]
    pub fn with_addition(mut self, addition: TorchAddition) -> Self {
        self.include_dirs.extend(addition.include_dirs.iter().cloned());
        self.exports.extend(addition.exports.iter().cloned());
        self.addition = Some(addition);
        self
    }
}

/// Headers and link names of one tvm-ffi release.
#[derive(Clone, Debug)]
pub struct TvmFfiToolchain {
    /// Release, without a post-release part.
    pub version: Version,
    /// Where it came from.
    pub provider: Provider,
    /// Name of the root that the include directories are relative to; it changes when the tree's content does.
    pub root: RootName,
    /// Where that root lies on this machine, and its digest.
    pub binding: RootBinding,
    /// Include directories in their order: its own, then DLPack's.
    pub include_dirs: Vec<PathRef>,
    /// What its library exports in this release; every later one of the same minor has these names too.
    pub exports: Vec<LibraryExports>,
    /// Digest of everything above that decides a build's result, as lower-case hexadecimal text.
    pub identity: String,
    /// The terms under which its files come; empty for one that was only planned.
    pub terms: Vec<Terms>,
}
