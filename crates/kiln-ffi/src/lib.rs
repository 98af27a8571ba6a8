//! tvm-ffi and the vendors' drivers, loaded at run time.
//!
//! [`Runtime`] is a loaded tvm-ffi: it opens built kernels as [`Module`]s and gives their [`Function`]s, which are called with
//! [`Value`]s, tensors among them. [`Tensor`] is memory of this process or of a device, handed over by DLPack. [`devices`] says
//! what devices the drivers of CUDA, HIP and Level Zero know.
//!
//! Nothing is linked against: a library that is not there is an error of the call that needs it. A kernel is code of somebody
//! else and may do anything to the process that loads it, so whoever wants to live on calls it in a process of its own.
//!
//! All `unsafe` of the workspace is in the module `ffi`; what it offers upward is safe to call as far as the loaded code keeps to
//! the interface that it claims to have.

mod devices;
mod dtype;
mod error;
mod ffi;
mod layout;

pub use devices::{Api, Device, devices};
pub use dtype::{Dtype, DtypeError};
pub use error::{FfiError, Raised};
#[cfg(unix)]
pub use ffi::uncaught;
pub use ffi::{Cuda, Function, HostTensor, Module, Place, Returned, Runtime, Tensor, Value, load_for_others};
pub use layout::{Layout, LayoutError};
