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
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |

mod backend;
mod capability;
mod dry_run;
mod fan_out;
mod flags;
mod lower;
mod toolkit;
mod verify;

pub use backend::CudaBackend;
pub use capability::{ArchRequest, ArchRequestError, NATIVE, is_known_capability, known_capabilities};
pub use dry_run::DryRuns;
pub use flags::is_relocatable;
pub use toolkit::{CudaToolkit, HostLimits, Origin, ToolkitError};
