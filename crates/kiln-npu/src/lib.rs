//! The cann backend: Ascend C for Huawei's NPUs, by `bisheng` of the CANN toolkit.
//!
//! `bisheng` makes of an `.asc` file one object for the host, with the code for the device in it and what registers that when it is
//! loaded; kernels are launched by functions of the same file. Everything else of an extension is the host compiler's.
//!
//! | module | its job |
//! |---|---|
//! | `toolkit` | what an installation is, without running any of it |
//! | `toolkits` | where the one of a variant comes from, as [`Toolkits`](kiln_backend::Toolkits) |
//! | `arch` | what a component is compiled for |
//! | `lower` | command lines of `bisheng` |
//! | `backend` | all of it together, as a [`Backend`](kiln_backend::Backend) |

mod arch;
mod backend;
mod lower;
mod toolkit;
mod toolkits;

pub use arch::{ArchRequest, ArchRequestError, is_arch};
pub use backend::NpuBackend;
pub use toolkit::{NpuToolkit, ToolkitError};
pub use toolkits::NpuToolkits;
