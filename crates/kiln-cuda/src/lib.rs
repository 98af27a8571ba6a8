//! The cuda backend: nvcc, whoever provides it.
//!
//! | module | its job |
//! |---|---|
//! | `toolkit` | what a toolkit in a directory is, without running any of it; what each release can compile for |
//! | `capability` | what a component is compiled for: defaults, the loose intersection, the guard, `--arch` |
//! | `flags` | whose a flag of `cuda-flags` is, and how nvcc must be given it |
//! | `lower` | command lines |
//! | `dry_run` | what nvcc says that a command line does |
//! | `fan_out` | the parts of a command line as steps of their own |
//! | `verify` | whether the code in an extension is what was planned |
//! | `toolkits` | where the toolkit of a variant comes from, as [`Toolkits`](kiln_backend::Toolkits) |
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |
//! | `build_script` | all of it for a `build.rs`, as [`Build`] |
//!
//! A `build.rs` compiles CUDA with [`Build`]:
//!
//! ```no_run
//! fn main() -> Result<(), kiln_cuda::BuildError> {
//!     let cargo = kiln_cuda::Cargo::new(std::env::vars_os())?;
//!     let library = kiln_cuda::Build::new(&cargo).file("cuda/scale.cu").capabilities(["8.0", "9.0+PTX"]).compile("scale")?;
//!     print!("{library}");
//!     Ok(())
//! }
//! ```

mod backend;
mod build_script;
mod capability;
mod dry_run;
mod fan_out;
mod flags;
mod lower;
mod toolkit;
#[cfg(feature = "wheels")]
mod toolkits;
mod verify;

pub use backend::CudaBackend;
pub use build_script::{Build, Cuda};
pub use capability::{ArchRequest, ArchRequestError, NATIVE, is_known_capability, known_capabilities};
pub use dry_run::DryRuns;
pub use flags::is_relocatable;
pub use kiln_backend::build_script::{BuildError, Cargo, Library, StepFailure};
pub use toolkit::{CudaToolkit, HostLimits, Origin, ToolkitError, unusable_letter};
#[cfg(feature = "wheels")]
pub use toolkits::{CudaToolkits, FETCHED, fetch_command, wheel_tree};
pub use verify::verify_recorded;
