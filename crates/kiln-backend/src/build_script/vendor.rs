//! What a backend crate adds to the builder.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use kiln_format::build::KernelOptions;

use super::cargo::Cargo;
use super::error::BuildError;
use crate::backend::Backend;
use crate::flags::FlagList;

/// A vendor that libraries can be built for.
pub trait Vendor: Clone + Debug + Default {
    /// The toolkit, as a backend that compiles with it.
    ///
    /// # Errors
    /// When there is none, or it cannot do what is asked.
    fn provide(&self, request: &Request<'_>) -> Result<Provided, BuildError>;

    /// Whose flags those of device code are.
    fn flag_list(&self) -> FlagList {
        FlagList::Host
    }
}

/// A vendor whose compiler makes code for devices.
pub trait DeviceCode: Vendor {}

/// What a library is built with, and where.
#[derive(Debug)]
pub struct Request<'a> {
    /// The environment of the build script.
    pub cargo: &'a Cargo,
    /// Where things are kept that builds share.
    pub cache_dir: &'a Path,
    /// What is asked of device code.
    pub device: &'a DeviceOptions,
    /// Whether there is any.
    pub has_device_code: bool,
}

/// What is asked of device code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// What it is compiled for, as written; none for the toolkit's whole list.
    pub capabilities: Option<Vec<String>>,
    /// Flags of the device compiler, as written.
    pub flags: Vec<String>,
    /// The directory of the toolkit.
    pub toolkit: Option<PathBuf>,
    /// The release of the toolkit, as written.
    pub release: Option<String>,
}

/// A toolkit that is ready.
pub struct Provided {
    /// Compiles with it.
    pub backend: Box<dyn Backend>,
    /// What only this vendor's components have.
    pub options: Option<KernelOptions>,
    /// The directory with the shared libraries that a program needs, which the backend names; none where it needs none.
    pub runtime_dir: Option<PathBuf>,
    /// The variables that were looked at for it.
    pub variables: Vec<String>,
    /// Keeps its files from being removed.
    pub held: Option<Box<dyn Send>>,
}

impl Provided {
    /// Of a vendor that needs no toolkit.
    pub fn plain(backend: impl Backend + 'static, options: Option<KernelOptions>) -> Self {
        Self { backend: Box::new(backend), options, runtime_dir: None, variables: Vec::new(), held: None }
    }
}

impl Debug for Provided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provided").field("backend", &self.backend.name()).field("options", &self.options).finish_non_exhaustive()
    }
}
