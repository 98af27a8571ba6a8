//! Entries of libraries of headers.

use std::path::Path;

use super::{MakeError, WholeWheel};
use crate::catalog::{HeaderLibrary, cutlass_version, metal_cpp_version};
use kiln_format::Version;

/// Makes the entry of a whole wheel of CUTLASS, SYCL*TLA or metal-cpp: `cutlass_3_5` for release 3.5.1, `sycl_tla_0_8` for 0.8.0.
///
/// # Errors
/// When the file cannot be read, is no wheel with its headers, or is damaged.
pub fn make_headers(wheel: &Path) -> Result<HeaderLibrary, MakeError> {
    let mut wheel = WholeWheel::open(wheel)?;
    if wheel.pin().project == HeaderLibrary::METAL_CPP_PROJECT {
        return metal_cpp(wheel);
    }
    let stated = wheel.read(&format!("{}cutlass/version.h", HeaderLibrary::INCLUDE))?;
    let version =
        cutlass_version(&String::from_utf8_lossy(&stated)).ok_or_else(|| wheel.failed("its headers state no release".to_owned()))?;
    let of_wheel = Version::parse(wheel.pin().version()).ok().filter(|_| wheel.pin().project == HeaderLibrary::TLA_PROJECT);
    let library = if of_wheel.is_some() { "sycl_tla" } else { "cutlass" };
    // The wheel of CUTLASS counts one number further.
    let version = of_wheel.clone().unwrap_or(version);
    if of_wheel.is_none() && !wheel.pin().version().starts_with(&format!("{version}.")) {
        return Err(wheel.failed(format!("its headers are those of {version}")));
    }
    Ok(HeaderLibrary {
        name: format!("{library}_{}_{}", version.major(), version.minor()),
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
        version,
    })
}

/// metal-cpp, which states a release of its own.
fn metal_cpp(mut wheel: WholeWheel) -> Result<HeaderLibrary, MakeError> {
    let stated = wheel.read(&format!("{}Metal/MTLVersion.hpp", HeaderLibrary::METAL_CPP))?;
    let version = metal_cpp_version(&String::from_utf8_lossy(&stated));
    Ok(HeaderLibrary {
        name: "metal-cpp".to_owned(),
        version: version.ok_or_else(|| wheel.failed("its headers state no release".to_owned()))?,
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
    })
}
