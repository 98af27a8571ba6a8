//! Making catalog entries and names files from wheels on disk.
//!
//! Whoever renews the catalog runs this, and whoever pins a release that the catalog does not have: it reads whole wheels. What it
//! makes is a pure function of the wheels.

mod cuda;
mod exports;
mod headers;
mod registry;
mod render;
mod torch;
mod torch_npu;
mod tvm_ffi;
mod wheel;

pub use self::cuda::{MadeCudaWheel, cuda_components, make_cuda_wheel};
pub use self::headers::make_headers;
pub use self::registry::{Listing, Registry};
pub use self::render::{render_cuda, render_headers, render_names, render_torch, render_torch_npu, render_tvm_ffi};
pub use self::torch::{MadeRelease, make_release};
pub use self::torch_npu::{MadeTorchNpu, make_torch_npu};
pub use self::tvm_ffi::{MadeTvmFfi, make_tvm_ffi};
pub use self::wheel::WholeWheel;

use crate::index::WheelName;

/// Why no entry can be made of a wheel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no catalog entry can be made of `{wheel}`: {reason}")]
pub struct MakeError {
    /// File name of the wheel.
    pub wheel: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The platform of a wheel, from its file name.
fn platform(file: &str) -> Option<&'static str> {
    WheelName::parse(file)?.system()
}
