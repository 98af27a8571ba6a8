//! Intel's Level Zero: its devices.

use std::ffi::{OsStr, c_uint};

use super::generated::level_zero as ze;
use super::library::{Loaded, functions, text_in};
use crate::FfiError;
use crate::devices::{Api, Device};

#[cfg(target_os = "windows")]
const LIBRARY: &str = "ze_loader.dll";
#[cfg(not(target_os = "windows"))]
const LIBRARY: &str = "libze_loader.so.1";

functions! {
    /// The functions of the loader that are used.
    Functions of ze {
        init: "zeInit" zeInit_fn,
        drivers: "zeDriverGet" zeDriverGet_fn,
        devices: "zeDeviceGet" zeDeviceGet_fn,
        properties: "zeDeviceGetProperties" zeDeviceGetProperties_fn,
    }
}

/// The loader knows no driver: `ZE_RESULT_ERROR_UNINITIALIZED`.
const NO_DRIVER: c_uint = 0x7800_0001;

/// The GPUs of the machine; none when there is no driver for one.
pub(crate) fn devices() -> Result<Vec<Device>, FfiError> {
    let functions = Functions::load(Loaded::open(OsStr::new(LIBRARY))?)?;
    // SAFETY: takes flags, of which there are none.
    let started = unsafe { (functions.init)(0) };
    if started == NO_DRIVER {
        return Ok(Vec::new());
    }
    check("zeInit", started)?;
    let drivers = listed("zeDriverGet", |count, places| {
        // SAFETY: writes the count, and as many handles as it says there is room for.
        unsafe { (functions.drivers)(count, places) }
    })?;
    let mut found = Vec::new();
    for driver in drivers {
        let devices = listed("zeDeviceGet", |count, places| {
            // SAFETY: as above, for a driver that was just given.
            unsafe { (functions.devices)(driver, count, places) }
        })?;
        for device in devices {
            // SAFETY: numbers and pointers, all of which may be zero.
            let mut properties: ze::_ze_device_properties_t = unsafe { std::mem::zeroed() };
            properties.stype = ze::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
            // SAFETY: writes the structure, whose kind and version it says.
            check("zeDeviceGetProperties", unsafe { (functions.properties)(device, &raw mut properties) })?;
            if properties.type_ == ze::ZE_DEVICE_TYPE_GPU {
                let name: Vec<u8> = properties.name.iter().map(|letter| *letter as u8).collect();
                let arch = format!("{:04x}", properties.deviceId);
                found.push(Device { api: Api::LevelZero, name: text_in(&name), arch, memory: None });
            }
        }
    }
    Ok(found)
}

/// What is asked for twice: first how many there are, then all of them.
fn listed<T>(call: &'static str, ask: impl Fn(*mut c_uint, *mut *mut T) -> c_uint) -> Result<Vec<*mut T>, FfiError> {
    let mut count: c_uint = 0;
    check(call, ask(&raw mut count, std::ptr::null_mut()))?;
    let mut handles = vec![std::ptr::null_mut(); count as usize];
    check(call, ask(&raw mut count, handles.as_mut_ptr()))?;
    handles.truncate(count as usize);
    Ok(handles)
}

fn check(call: &'static str, code: c_uint) -> Result<(), FfiError> {
    if code == ze::ZE_RESULT_SUCCESS { Ok(()) } else { Err(FfiError::Driver { call, reason: format!("error {code:#x}") }) }
}
