//! AMD's runtime: its devices.

use std::ffi::{OsStr, c_int, c_uint};

use super::generated::hip;
use super::library::{Loaded, functions, text_at, text_in};
use crate::FfiError;
use crate::devices::{Api, Device};

/// Newest first: a machine may have several.
#[cfg(target_os = "windows")]
const LIBRARIES: [&str; 2] = ["amdhip64_7.dll", "amdhip64_6.dll"];
#[cfg(not(target_os = "windows"))]
const LIBRARIES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// More than the properties of a device are in any release, in bytes.
const PROPERTIES: usize = 16 << 10;
/// The properties begin with the device's name, in this many bytes.
const NAME: usize = 256;

functions! {
    /// The functions of the runtime that are used.
    Functions of hip {
        init: "hipInit" hipInit_fn,
        device_count: "hipGetDeviceCount" hipGetDeviceCount_fn,
        properties: "hipGetDeviceProperties" hipGetDeviceProperties_fn,
        error_name: "hipGetErrorName" hipGetErrorName_fn,
    }
}

impl Functions {
    fn check(&self, call: &'static str, code: c_uint) -> Result<(), FfiError> {
        if code == hip::hipSuccess {
            return Ok(());
        }
        // SAFETY: gives a text that lives as long as the library, or null.
        let name = unsafe { text_at((self.error_name)(code)) };
        Err(FfiError::Driver { call, reason: name.unwrap_or_else(|| format!("error {code}")) })
    }
}

/// The devices of the machine; none when the runtime says that there is none.
pub(crate) fn devices() -> Result<Vec<Device>, FfiError> {
    let mut opened = Err(FfiError::Load { library: LIBRARIES.join("`, `"), reason: String::new() });
    for name in LIBRARIES {
        opened = Loaded::open(OsStr::new(name));
        if opened.is_ok() {
            break;
        }
    }
    let functions = Functions::load(opened?)?;
    // SAFETY: takes flags, of which there are none.
    let started = unsafe { (functions.init)(0) };
    if started == hip::hipErrorNoDevice {
        return Ok(Vec::new());
    }
    functions.check("hipInit", started)?;
    let mut count: c_int = 0;
    // SAFETY: writes one number.
    match unsafe { (functions.device_count)(&raw mut count) } {
        hip::hipErrorNoDevice => return Ok(Vec::new()),
        code => functions.check("hipGetDeviceCount", code)?,
    }
    (0..count)
        .map(|ordinal| {
            let mut properties = vec![0_u64; PROPERTIES / 8];
            // SAFETY: writes the properties, which are smaller than the buffer in every release.
            functions.check("hipGetDeviceProperties", unsafe { (functions.properties)(properties.as_mut_ptr().cast(), ordinal) })?;
            let bytes: Vec<u8> = properties.into_iter().flat_map(u64::to_ne_bytes).collect();
            let name = text_in(bytes.get(..NAME).unwrap_or_default());
            Ok(Device { api: Api::Hip, name, arch: arch(bytes.get(NAME..).unwrap_or_default()), memory: None })
        })
        .collect()
}

/// The architecture in the properties behind the name, such as `gfx942:sramecc+:xnack-`. Where it stands differs between releases.
fn arch(properties: &[u8]) -> String {
    let at = properties.windows(3).position(|three| three == b"gfx");
    at.and_then(|at| properties.get(at..)).map(text_in).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::arch;

    #[test]
    fn the_architecture_is_found_wherever_it_stands() {
        let mut properties = vec![0_u8; 1000];
        properties[900..910].copy_from_slice(b"gfx90a:x+\0");
        assert_eq!(arch(&properties), "gfx90a:x+");
        assert_eq!(arch(&[0; 9]), "");
    }
}
