//! The xpu backend: SYCL for Intel GPUs, by `icpx` of Intel's oneAPI DPC++ compiler.
//!
//! `icpx` compiles everything of a variant, host code included, and links it: device code is only finished at the link, for every target
//! ahead of time and as SPIR-V for all other devices.
//!
//! | module | its job |
//! |---|---|
//! | `toolkit` | what an installation is, without running any of it |
//! | `toolkits` | where the one of a variant comes from, as [`Toolkits`](kiln_backend::Toolkits) |
//! | `targets` | what device code is compiled for, and the options that say so |
//! | `tla` | what kernels on SYCL*TLA get |
//! | `verify` | whether the code in an extension is what was planned |
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |

mod backend;
mod targets;
mod tla;
mod toolkit;
mod toolkits;
mod verify;

pub use backend::{XpuBackend, torch_interface};
pub use targets::Kernels;
pub use tla::{TlaError, spirv_extensions, tla_release};
pub use toolkit::{Dnnl, ToolkitError, XpuToolkit};
pub use toolkits::XpuToolkits;
