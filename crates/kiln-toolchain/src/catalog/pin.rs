//! Checks of what the catalog says of a wheel.

use super::damaged;
use crate::error::Error;
use crate::part::WheelPin;

/// Checks a pin; `place` is named in the error.
pub(super) fn checked(pin: WheelPin, place: &str) -> Result<WheelPin, Error> {
    for (field, digest) in [("sha256", &pin.sha256), ("record_sha256", &pin.record_sha256)] {
        if digest.len() != 64 || !digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(no(place, digest, field));
        }
    }
    if !pin.file.ends_with(".whl") || pin.file.contains('/') {
        return Err(no(place, &pin.file, "wheel"));
    }
    Ok(pin)
}

/// The error for a value that is not what its field says.
pub(super) fn no(place: &str, value: &str, field: &str) -> Error {
    damaged(format!("{place}: `{value}` is no {field}"))
}
