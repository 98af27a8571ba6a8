//! Making names: only those that a loader reads back as what was meant.

use super::grammar::parse;
use super::{ArchFramework, ArchVariant, Compute, Cpu, CxxAbi, NoarchTarget, Os, Variant};
use crate::backend::BackendName;

/// Why Kiln does not write a variant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// A loader splits the digits of the name in another way.
    #[error("variant `{name}` would collide: it is meant as {meant}, but loaders read it as {read}")]
    Collision {
        /// The name.
        name: String,
        /// The versions that were meant.
        meant: String,
        /// The versions that a loader reads.
        read: String,
    },
    /// A loader does not read the name at all.
    #[error("variant `{name}` cannot be read by loaders: {reason}")]
    Unreadable {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A loader reads the name, but it is an old form.
    #[error("variant `{name}` is only read, never written: {reason}")]
    ReadOnly {
        /// The name.
        name: String,
        /// What is old about it.
        reason: &'static str,
    },
}

impl Variant {
    /// The variant with compiled code for that target. Whether torch's C++ ABI gets a tag follows from the target.
    ///
    /// # Errors
    /// [`EmitError::Collision`] when the name would mean other versions, such as CUDA 12.10 or torch 10.0.
    pub fn arch(framework: ArchFramework, compute: Compute, cpu: Cpu, os: Os) -> Result<Self, EmitError> {
        let framework = match framework {
            ArchFramework::TorchCxx { version, .. } => ArchFramework::TorchCxx { version, abi: tag_on(os) },
            other => other,
        };
        let variant = Self::Arch(ArchVariant { framework, compute, cpu, os });
        variant.check_emittable()?;
        Ok(variant)
    }

    /// The Python-only variant for `backend`.
    pub const fn noarch(backend: BackendName) -> Self {
        Self::Noarch(NoarchTarget::Backend(backend))
    }

    /// Whether Kiln may write this variant: its name reads back as itself, and it is of no form that is only read.
    ///
    /// # Errors
    /// With the rule that forbids it.
    pub fn check_emittable(&self) -> Result<(), EmitError> {
        let name = self.to_string();
        match parse(&name) {
            Ok(read) if read == *self => {}
            Ok(read) => return Err(EmitError::Collision { name, meant: self.versions(), read: read.versions() }),
            Err(reason) => return Err(EmitError::Unreadable { name, reason }),
        }
        let reason = match self {
            Self::Noarch(NoarchTarget::Universal) => "every backend has its own variant",
            Self::Arch(ArchVariant { framework: ArchFramework::TorchCxx { abi, .. }, os, .. }) if *abi != tag_on(*os) => {
                "names for torch's C++ ABI have `-cxx11` on Linux and no tag elsewhere"
            }
            _ => return Ok(()),
        };
        Err(EmitError::ReadOnly { name, reason })
    }

    /// The versions in words, for the message about a collision.
    fn versions(&self) -> String {
        let Self::Arch(arch) = self else { return self.to_string() };
        let (framework, version) = match arch.framework {
            ArchFramework::TorchCxx { version, .. } => ("torch", version),
            ArchFramework::TorchStable { version } => ("torch's stable ABI", version),
            ArchFramework::TvmFfi { version } => ("tvm-ffi", version),
        };
        let compute = match arch.compute.version() {
            Some(version) => format!(" with {} {version}", arch.compute.backend()),
            None => String::new(),
        };
        format!("{framework} {version}{compute}")
    }
}

/// The tag that names for torch's C++ ABI have on `os`.
const fn tag_on(os: Os) -> Option<CxxAbi> {
    match os {
        Os::Linux => Some(CxxAbi::Cxx11),
        Os::Darwin | Os::Windows => None,
    }
}
