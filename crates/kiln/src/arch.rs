//! What `--arch` asks for, for each vendor that has architectures.

use crate::cuda::{self, ArchError};

/// What `--arch` asks for. Each name says whose it is; a vendor none of whose are named is not narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchRequests {
    /// Capabilities.
    pub cuda: Option<kiln_cuda::ArchRequest>,
    /// AMD's architectures.
    pub rocm: Option<kiln_rocm::ArchRequest>,
}

impl ArchRequests {
    /// Of the option's value. `devices` is asked only for `native`, and gives the capabilities of this machine's devices.
    ///
    /// # Errors
    /// When an entry is no architecture, or there is no device.
    pub fn parse(text: &str, devices: &dyn Fn() -> Result<Vec<String>, String>) -> Result<Self, ArchError> {
        let (rocm, cuda): (Vec<&str>, Vec<&str>) = text.split(',').partition(|entry| kiln_rocm::is_target(entry));
        let rocm = if rocm.is_empty() { None } else { Some(rocm.join(",").parse()?) };
        let cuda = if cuda.is_empty() { None } else { Some(cuda::arch_request(&cuda.join(","), devices)?) };
        Ok(Self { cuda, rocm })
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
        assert_eq!((both.cuda, both.rocm), ("8.0,9.0".parse().ok(), "gfx942:xnack+".parse().ok()));
        assert_eq!(of("gfx90a").unwrap().cuda, None);
        assert_eq!(of("9.0").unwrap().rocm, None);
        assert!(of("gfx").unwrap_err().contains("no AMD architecture"));
        assert!(of("sm_90").unwrap_err().contains("no capability"));
        assert_eq!(ArchRequests::parse("native", &|| Ok(vec!["9.0".to_owned()])).unwrap().cuda, "9.0".parse().ok());
    }
}
