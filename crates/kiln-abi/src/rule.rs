//! The rules and their codes.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal,)+) => {
        /// What a finding is against. Codes are stable: scripts and settings name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Rule {
            $($(#[doc = $doc])+ #[serde(rename = $code)] $name,)+
        }

        impl Rule {
            /// Every rule, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its code.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// The rule in one sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

rules! {
    /// Every version that is needed of a system library is one that the manylinux policy allows.
    FloorVersion = "floor-version",
    /// Every versioned name of a system library is one that the baseline has.
    FloorSymbol = "floor-symbol",
    /// Every versioned name is taken from the file that has it in the baseline.
    FloorFile = "floor-file",
    /// No name is imported that the manylinux policy forbids.
    ForbiddenSymbol = "forbidden-symbol",
    /// Every name without a version has a known provider.
    UnversionedSymbol = "unversioned-symbol",
    /// The oldest macOS that the file is for is one on which the variant is taken.
    MacosFloor = "macos-floor",
    /// Every library that is needed is on the list of the framework, the backend and the baseline.
    NeededLibrary = "needed-library",
    /// There is no RPATH and no RUNPATH.
    RunPath = "run-path",
    /// There are no packed relative relocations, which glibc before 2.36 cannot read.
    PackedRelocations = "packed-relocations",
    /// There are no relocations against read-only memory.
    TextRelocations = "text-relocations",
    /// There are program headers, by which a loader maps the file.
    ProgramHeaders = "program-headers",
    /// The stack is not executable.
    ExecutableStack = "executable-stack",
    /// The entry point is exported.
    EntryPoint = "entry-point",
    /// Nothing but entry points is exported.
    Export = "exports",
    /// No symbol is unique in the whole process.
    UniqueSymbol = "unique-symbol",
    /// There is no copy of the C++ runtime or of the unwinder inside.
    StaticRuntime = "static-runtime",
    /// Python names are of its stable ABI.
    PythonAbi = "python-abi",
    /// Python names of the stable ABI are not newer than the oldest supported Python.
    PythonAbiNewer = "python-abi-newer",
    /// Nothing of Python is used where there may be no Python.
    PythonUse = "python-use",
    /// Torch's C functions are not newer than the declared stable ABI.
    TorchShimNewer = "torch-shim-newer",
    /// Torch's C functions are of its stable ABI.
    TorchShimUnknown = "torch-shim-unknown",
    /// Nothing of torch's unstable C++ is used under the stable ABI.
    TorchInternal = "torch-internal",
    /// Nothing of the C++ runtime is taken from torch's libraries.
    RuntimeFromTorch = "runtime-from-torch",
    /// The file is for the processor and the system that the variant's name says.
    Machine = "machine",
    /// A variant holds shared objects and no other code, and only where its name says so.
    FileKind = "file-kind",
    /// No path of the build machine is inside.
    HostPath = "host-path",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A rule was named that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule `{name}`")]
pub struct UnknownRule {
    /// The name.
    pub name: String,
}

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Self, UnknownRule> {
        Self::ALL.iter().copied().find(|rule| rule.code() == name).ok_or_else(|| UnknownRule { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_name_one_rule_each() {
        for rule in Rule::ALL {
            assert_eq!(rule.code().parse(), Ok(*rule));
            assert!(rule.summary().ends_with('.') && !rule.summary().starts_with(' '), "{rule}");
        }
        assert_eq!("glibc".parse::<Rule>().unwrap_err().to_string(), "there is no rule `glibc`");
    }
}
