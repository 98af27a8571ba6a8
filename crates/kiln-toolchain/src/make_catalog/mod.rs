//! Making catalog entries and names files from wheels on disk.
//!
//! Whoever renews the catalog runs this, and whoever pins a release that the catalog does not have: it reads whole wheels. What it
//! makes is a pure function of the wheels.

mod exports;
mod render;
mod torch;
mod wheel;

use crate::index::WheelName;

pub use self::render::render_torch;
pub(crate) use self::torch::libraries;
pub use self::torch::{MadeRelease, make_release};
pub use self::wheel::WholeWheel;

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
fn platform(file_name: &str) -> Option<&'static str> {
    WheelName::parse(file_name)?.system()
}
