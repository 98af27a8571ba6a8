//! What `--arch` asks for, for each vendor that has architectures.

use std::collections::BTreeMap;

use kiln_backend::Toolkits;
use kiln_format::BackendName;
use thiserror::Error;

use crate::backends::VENDORS;

/// What stands for the devices of this machine.
const NATIVE: &str = "native";

/// What `--arch` asks for. Each name says whose it is; a vendor none of whose are named is not narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchRequests(BTreeMap<BackendName, String>);

/// Why `--arch` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchError {
    /// An entry is no architecture.
    #[error("{0}")]
    Form(String),
    /// The devices of this machine are not known.
    #[error("`--arch native` cannot be used: {0}")]
    Native(String),
}

impl ArchRequests {
    /// Of the option's value. `devices` is asked only for `native`, and gives the capabilities of this machine's devices.
    ///
    /// # Errors
    /// When an entry is no architecture, or there is no device.
    pub fn parse(text: &str, devices: &dyn Fn() -> Result<Vec<String>, String>) -> Result<Self, ArchError> {
        if text.trim() == NATIVE {
            return Self::native(devices);
        }
        let mut requests: BTreeMap<BackendName, Vec<&str>> = BTreeMap::new();
        for entry in text.split(',') {
            // Those behind in preference first: what nobody claims is the first one's.
            let vendor = VENDORS.iter().rev().find(|vendor| vendor.claims_arch(entry.trim()));
            let vendor = vendor.ok_or_else(|| ArchError::Form(format!("`--arch` has `{}`, which is no architecture", entry.trim())))?;
            requests.entry(vendor.backend()).or_default().push(entry);
        }
        let requests: BTreeMap<BackendName, String> = requests.into_iter().map(|(backend, entries)| (backend, entries.join(","))).collect();
        for vendor in VENDORS.iter().rev().filter(|vendor| requests.contains_key(&vendor.backend())) {
            vendor.check_arch(requests.get(&vendor.backend()).map_or("", String::as_str)).map_err(ArchError::Form)?;
        }
        Ok(Self(requests))
    }

    /// What is asked of `backend`; none where it is not narrowed.
    pub fn of(&self, backend: BackendName) -> Option<&str> {
        self.0.get(&backend).map(String::as_str)
    }

    fn native(devices: &dyn Fn() -> Result<Vec<String>, String>) -> Result<Self, ArchError> {
        let capabilities = devices().map_err(ArchError::Native)?;
        if capabilities.is_empty() {
            return Err(ArchError::Native("this machine has no NVIDIA device".to_owned()));
        }
        let listed = capabilities.join(",");
        match Toolkits::check_arch(&kiln_cuda::CudaToolkits, &listed) {
            Ok(()) => Ok(Self(BTreeMap::from([(BackendName::Cuda, listed)]))),
            Err(_) => Err(ArchError::Native(format!("the driver's answer is not understood: `{listed}`"))),
        }
    }
}

/// The capabilities of this machine's NVIDIA devices, as the driver itself says.
///
/// # Errors
/// When there is no driver, or it does not answer.
pub fn device_capabilities() -> Result<Vec<String>, String> {
    match kiln_ffi::devices(kiln_ffi::Api::Cuda) {
        Ok(devices) => Ok(devices.into_iter().map(|device| device.arch).collect()),
        Err(error @ kiln_ffi::FfiError::Load { .. }) => Err(format!("there is no NVIDIA driver to ask: {error}")),
        Err(error) => Err(format!("the NVIDIA driver does not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whose_they_are() {
        let never = || panic!("nobody asked for the devices");
        let of = |text: &str| ArchRequests::parse(text, &never).map_err(|error| error.to_string());
        let both = of("9.0, gfx942:xnack+,8.0").unwrap();
        assert_eq!((both.of(BackendName::Cuda), both.of(BackendName::Rocm)), (Some("9.0,8.0"), Some(" gfx942:xnack+")));
        assert_eq!(of("gfx90a").unwrap().of(BackendName::Cuda), None);
        assert_eq!(of("9.0").unwrap().of(BackendName::Rocm), None);
        assert!(of("gfx").unwrap_err().contains("no AMD architecture"));
        assert!(of("sm_90").unwrap_err().contains("no capability"));
        assert!(of("").unwrap_err().contains("no capability"));
    }

    #[test]
    fn native_is_what_the_driver_says() {
        let asked = |answer: Result<&[&str], &str>| {
            let answer = answer.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect()).map_err(str::to_owned);
            let requests = ArchRequests::parse(" native", &move || answer.clone()).map_err(|error| error.to_string())?;
            assert_eq!(requests.of(BackendName::Rocm), None);
            Ok::<_, String>(requests.of(BackendName::Cuda).unwrap_or_default().to_owned())
        };
        assert_eq!(asked(Ok(&["9.0", "9.0", "8.6"])), Ok("9.0,9.0,8.6".to_owned()));
        assert_eq!(asked(Ok(&[])).unwrap_err(), "`--arch native` cannot be used: this machine has no NVIDIA device");
        assert_eq!(asked(Err("no driver")).unwrap_err(), "`--arch native` cannot be used: no driver");
        assert_eq!(asked(Ok(&["[N/A]"])).unwrap_err(), "`--arch native` cannot be used: the driver's answer is not understood: `[N/A]`");
    }
}
