//! Calling the functions of built tvm-ffi kernels.
//!
//! [`library`] says what a file is without loading it and which file of a directory is meant. [`Session`] starts a worker, a process
//! of its own in which the kernel is loaded and called: whatever a kernel does, what became of it is a value, [`Ended`]. What the two
//! processes say to each other is in [`protocol`]; [`work`] is the worker's side, and [`mod@guard`] stands between the two. [`mod@reference`] reads what a project expects of its
//! kernels, [`compare`] compares.

pub mod argument;
pub mod bench;
pub mod check;
pub mod compare;
mod error;
pub mod fill;
pub mod guard;
pub mod library;
pub mod protocol;
pub mod reference;
pub mod runtime;
mod session;
mod signature;
pub mod work;

pub use error::CallError;
pub use library::{Kernel, Wanted, find};
pub use session::{Called, Ended, Session, Worker};
pub use signature::Signature;
