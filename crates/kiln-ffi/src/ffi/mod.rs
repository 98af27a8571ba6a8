//! The only module of the workspace with `unsafe`.
//!
//! `generated` has the types of what is bound, `library` turns names of functions into functions, the others call them. What they
//! rely on is always the same three things: a library that exports a function of an interface has it with the type that the
//! interface's header states; a loaded library is never unloaded; and memory is handed over with whoever frees it.
#![expect(unsafe_code, reason = "what is loaded at run time can only be called unchecked; every block says why it may be")]

#[cfg(unix)]
mod crash;
mod cuda;
mod generated;
mod hip;
mod level_zero;
mod library;
mod memory;
mod runtime;
mod tensor;
#[cfg(unix)]
mod uncaught;
mod value;

pub use cuda::Cuda;
pub(crate) use cuda::devices as cuda_devices;
pub(crate) use hip::devices as hip_devices;
pub(crate) use level_zero::devices as level_zero_devices;
pub use library::load_for_others;
pub use runtime::{Function, Module, Runtime};
pub use tensor::{HostTensor, Place, Tensor};
#[cfg(unix)]
pub use uncaught::uncaught;
pub use value::{Returned, Value};
