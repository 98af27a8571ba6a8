//! The devices that the vendors' drivers know.

use std::fmt;

use crate::FfiError;
use crate::ffi::{cuda_devices, hip_devices, level_zero_devices};

/// Through which interface a device is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// NVIDIA's driver.
    Cuda,
    /// AMD's runtime.
    Hip,
    /// Intel's Level Zero.
    LevelZero,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cuda, Self::Hip, Self::LevelZero];
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
            Self::LevelZero => "Level Zero",
        })
    }
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// How it is reached.
    pub api: Api,
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// What compilers call its architecture: a compute capability (`9.0`), a target (`gfx942:sramecc+:xnack-`), or, for Level Zero,
    /// its PCI device id in hexadecimal.
    pub arch: String,
    /// Its memory in bytes, where the interface tells.
    pub memory: Option<u64>,
}

/// The devices that are reached through `api`, in the driver's order. Loads the driver and starts it.
///
/// # Errors
/// When there is no driver, or it fails. A driver without a device is none.
pub fn devices(api: Api) -> Result<Vec<Device>, FfiError> {
    match api {
        Api::Cuda => cuda_devices(),
        Api::Hip => hip_devices(),
        Api::LevelZero => level_zero_devices(),
    }
}
