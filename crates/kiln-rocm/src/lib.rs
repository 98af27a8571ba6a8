//! The rocm backend: a HIP compiler, whoever provides it.
//!
//! | module | its job |
//! |---|---|
//! | `toolkit` | what a ROCm in a directory is, without running any of it |
//! | `toolkits` | where the ROCm of a variant comes from, as [`Toolkits`](kiln_backend::Toolkits) |
//! | `arch` | what a component is compiled for: the list, the exact intersection, `--arch` |
//! | `hipify` | CUDA sources as HIP, by torch's own converter |
//! | `lower` | command lines, and the parts of a unit as steps of their own |
//! | `device_libs` | what a compiler lacks that is newer than the device libraries |
//! | `verify` | whether the code in an extension is what was planned |
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |
//! | `build_script` | all of it for a `build.rs`, as [`Build`] |
//!
//! A `build.rs` compiles HIP with [`Build`]:
//!
//! ```no_run
//! fn main() -> Result<(), kiln_rocm::BuildError> {
//!     let cargo = kiln_rocm::Cargo::new(std::env::vars_os())?;
//!     let library = kiln_rocm::Build::new(&cargo).file("hip/scale.hip").capabilities(["gfx90a", "gfx942"]).compile("scale")?;
//!     print!("{library}");
//!     Ok(())
//! }
//! ```

mod arch;
mod backend;
mod build_script;
mod device_libs;
mod hipify;
mod lower;
mod toolkit;
#[cfg(feature = "wheels")]
mod toolkits;
mod verify;

pub use arch::{ArchRequest, ArchRequestError, Target, is_target};
pub use backend::{RocmBackend, TORCH_STAND_INS, no_converter};
pub use build_script::{Build, Rocm};
pub use hipify::{ConversionPlace, Hipify, hip_path, own_hip, sources_to_convert};
pub use kiln_backend::build_script::{BuildError, Cargo, Library, StepFailure};
pub use toolkit::{RocmToolkit, ToolkitError};
#[cfg(feature = "wheels")]
pub use toolkits::{ConverterWanted, RocmToolkits, converter};
