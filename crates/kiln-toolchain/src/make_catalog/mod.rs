//! Making catalog entries and names files from wheels on disk.
//!
//! Whoever renews the catalog runs this, and whoever pins a release that the catalog does not have: it reads whole wheels. What it
//! makes is a pure function of the wheels.

mod exports;
mod render;
mod torch;
mod wheel;

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

/// The platform of a wheel, from the last tag of its file name.
fn platform(file_name: &str) -> Option<&'static str> {
    let tag = file_name.strip_suffix(".whl")?.rsplit('-').next()?;
    match tag {
        "win_amd64" => Some("windows-x86_64"),
        _ if tag.starts_with("manylinux") && tag.ends_with("_x86_64") => Some("linux-x86_64"),
        _ if tag.starts_with("manylinux") && tag.ends_with("_aarch64") => Some("linux-aarch64"),
        _ if tag.starts_with("macosx") && tag.ends_with("_arm64") => Some("darwin-aarch64"),
        _ => None,
    }
}
