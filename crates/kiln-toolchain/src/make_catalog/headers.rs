//! Entries of libraries of headers.

use std::path::Path;

use super::{MakeError, WholeWheel};
use crate::catalog::{HeaderLibrary, cutlass_version};

/// Makes the entry of a whole wheel of CUTLASS: `cutlass_3_5` for release 3.5.1.
///
/// # Errors
/// When the file cannot be read, is no wheel with its headers, or is damaged.
pub fn make_headers(wheel: &Path) -> Result<HeaderLibrary, MakeError> {
    let mut wheel = WholeWheel::open(wheel)?;
    let stated = wheel.read(&format!("{}cutlass/version.h", HeaderLibrary::INCLUDE))?;
    let version =
        cutlass_version(&String::from_utf8_lossy(&stated)).ok_or_else(|| wheel.failed("its headers state no release".to_owned()))?;
    // The wheel counts one number further.
    if !wheel.pin().version().starts_with(&format!("{version}.")) {
        return Err(wheel.failed(format!("its headers are those of {version}")));
    }
    Ok(HeaderLibrary {
        name: format!("cutlass_{}_{}", version.major(), version.minor()),
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
        version,
    })
}
