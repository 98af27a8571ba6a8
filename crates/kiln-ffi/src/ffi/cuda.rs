//! NVIDIA's driver: its devices, and memory on them.

use std::ffi::{OsStr, c_int, c_uint, c_void};

use super::generated::cuda;
use super::library::{Loaded, functions, text_at, text_in};
use super::memory::room;
use crate::FfiError;
use crate::devices::{Api, Device};

#[cfg(target_os = "windows")]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(target_os = "windows"))]
const LIBRARY: &str = "libcuda.so.1";

functions! {
    /// The functions of the driver that are used.
    Functions of cuda {
        init: "cuInit" cuInit_fn,
        error_name: "cuGetErrorName" cuGetErrorName_fn,
        error_text: "cuGetErrorString" cuGetErrorString_fn,
        device_count: "cuDeviceGetCount" cuDeviceGetCount_fn,
        device: "cuDeviceGet" cuDeviceGet_fn,
        device_name: "cuDeviceGetName" cuDeviceGetName_fn,
        attribute: "cuDeviceGetAttribute" cuDeviceGetAttribute_fn,
        memory: "cuDeviceTotalMem_v2" cuDeviceTotalMem_v2_fn,
        primary_context: "cuDevicePrimaryCtxRetain" cuDevicePrimaryCtxRetain_fn,
        set_context: "cuCtxSetCurrent" cuCtxSetCurrent_fn,
        synchronize: "cuCtxSynchronize" cuCtxSynchronize_fn,
        allocate: "cuMemAlloc_v2" cuMemAlloc_v2_fn,
        free: "cuMemFree_v2" cuMemFree_v2_fn,
        to_device: "cuMemcpyHtoD_v2" cuMemcpyHtoD_v2_fn,
        to_host: "cuMemcpyDtoH_v2" cuMemcpyDtoH_v2_fn,
        copy: "cuMemcpyDtoD_v2" cuMemcpyDtoD_v2_fn,
    }
}

/// NVIDIA's driver, loaded and started.
#[derive(Clone, Copy)]
pub struct Cuda {
    functions: Functions,
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cuda")
    }
}

impl Cuda {
    /// Loads the driver and starts it.
    ///
    /// # Errors
    /// When there is none, or it does not start: without a device, for example.
    pub fn open() -> Result<Self, FfiError> {
        let this = Self { functions: Functions::load(Loaded::open(OsStr::new(LIBRARY))?)? };
        // SAFETY: takes flags, of which there are none.
        this.check("cuInit", unsafe { (this.functions.init)(0) })?;
        Ok(this)
    }

    /// The devices, in the driver's order.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn devices(&self) -> Result<Vec<Device>, FfiError> {
        let mut count: c_int = 0;
        // SAFETY: writes one number where the pointer leads.
        self.check("cuDeviceGetCount", unsafe { (self.functions.device_count)(&raw mut count) })?;
        (0..count).map(|ordinal| self.device(ordinal)).collect()
    }

    fn device(&self, ordinal: c_int) -> Result<Device, FfiError> {
        let mut handle: c_int = 0;
        // SAFETY: writes one number.
        self.check("cuDeviceGet", unsafe { (self.functions.device)(&raw mut handle, ordinal) })?;
        let mut name = [0_u8; 256];
        // SAFETY: writes a text of at most 255 bytes and its zero.
        self.check("cuDeviceGetName", unsafe { (self.functions.device_name)(name.as_mut_ptr().cast(), 255, handle) })?;
        let mut bytes = 0_usize;
        // SAFETY: writes one number.
        self.check("cuDeviceTotalMem", unsafe { (self.functions.memory)(&raw mut bytes, handle) })?;
        let major = self.attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle)?;
        let minor = self.attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle)?;
        Ok(Device { api: Api::Cuda, name: text_in(&name), arch: format!("{major}.{minor}"), memory: Some(bytes as u64) })
    }

    fn attribute(&self, attribute: c_uint, device: c_int) -> Result<c_int, FfiError> {
        let mut value: c_int = 0;
        // SAFETY: writes one number.
        self.check("cuDeviceGetAttribute", unsafe { (self.functions.attribute)(&raw mut value, attribute, device) })?;
        Ok(value)
    }

    /// Makes the context that CUDA's own run-time library uses the current one of this thread.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn enter(&self, ordinal: i32) -> Result<(), FfiError> {
        let mut handle: c_int = 0;
        // SAFETY: writes one number.
        self.check("cuDeviceGet", unsafe { (self.functions.device)(&raw mut handle, ordinal) })?;
        let mut context: *mut cuda::CUctx_st = std::ptr::null_mut();
        // SAFETY: writes one pointer; the context is kept until the process ends.
        self.check("cuDevicePrimaryCtxRetain", unsafe { (self.functions.primary_context)(&raw mut context, handle) })?;
        // SAFETY: the context was just given.
        self.check("cuCtxSetCurrent", unsafe { (self.functions.set_context)(context) })
    }

    /// Waits until everything that was started has ended, which is where errors of kernels come out.
    ///
    /// # Errors
    /// When something that was started failed.
    pub fn synchronize(&self) -> Result<(), FfiError> {
        // SAFETY: takes nothing.
        self.check("cuCtxSynchronize", unsafe { (self.functions.synchronize)() })
    }

    /// Memory of the current context's device; the address is nothing for this process to follow.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, FfiError> {
        let mut address = 0_u64;
        // SAFETY: writes one number. There is no memory of zero bytes.
        self.check("cuMemAlloc", unsafe { (self.functions.allocate)(&raw mut address, bytes.max(1)) })?;
        Ok(address)
    }

    pub(super) fn free(&self, address: u64) {
        // SAFETY: an address that `allocate` gave, once. An error is the driver's, and comes out of the next call as well.
        let _said_by_the_next_call = unsafe { (self.functions.free)(address) };
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), FfiError> {
        // SAFETY: reads the slice; where to is the device's to check.
        self.check("cuMemcpyHtoD", unsafe { (self.functions.to_device)(address, bytes.as_ptr().cast::<c_void>(), bytes.len()) })
    }

    pub(super) fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, FfiError> {
        let mut buffer = room(bytes)?;
        buffer.resize(bytes, 0);
        // SAFETY: writes as many bytes as the buffer has.
        self.check("cuMemcpyDtoH", unsafe { (self.functions.to_host)(buffer.as_mut_ptr().cast::<c_void>(), address, bytes) })?;
        Ok(buffer)
    }

    pub(super) fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), FfiError> {
        // SAFETY: both are addresses of the device, which checks them.
        self.check("cuMemcpyDtoD", unsafe { (self.functions.copy)(to, from, bytes) })
    }

    fn check(&self, call: &'static str, code: c_uint) -> Result<(), FfiError> {
        if code == cuda::CUDA_SUCCESS {
            return Ok(());
        }
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        // SAFETY: each writes one pointer, to a text that lives as long as the driver, or null.
        let (name, text) = unsafe {
            (self.functions.error_name)(code, &raw mut name);
            (self.functions.error_text)(code, &raw mut text);
            (text_at(name), text_at(text))
        };
        let reason = match (name, text) {
            (Some(name), Some(text)) => format!("{name}: {text}"),
            (Some(name), None) => name,
            _ => format!("error {code}"),
        };
        Err(FfiError::Driver { call, reason })
    }
}

/// The devices of the machine; none when the driver says that there is none.
pub(crate) fn devices() -> Result<Vec<Device>, FfiError> {
    match Cuda::open() {
        Ok(cuda) => cuda.devices(),
        Err(FfiError::Driver { reason, .. }) if reason.starts_with("CUDA_ERROR_NO_DEVICE") => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
