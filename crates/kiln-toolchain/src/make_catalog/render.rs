//! The catalog's files as text.

use crate::catalog::TorchRelease;

/// The first lines of the list of torch releases.
const TORCH: &str = "\
# The torch wheels that Kiln knows. Written by `cargo xtask catalog`: each wheel was read whole and its sha256 compared
# with what the index says before `record_sha256` was taken from it.
";

/// `torch.toml` with these releases, by ascending version, then platform.
pub fn render_torch(releases: &[TorchRelease]) -> String {
    let mut releases: Vec<&TorchRelease> = releases.iter().collect();
    releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
    let entries = releases.iter().map(|release| {
        let cuda = release.cuda.as_ref().map(|cuda| format!("cuda = \"{cuda}\"\n")).unwrap_or_default();
        format!(
            "\n[[torch]]\nversion = \"{}\"\nplatform = \"{}\"\nwheel = \"{}\"\nsize = {}\nsha256 = \"{}\"\nrecord_sha256 = \"{}\"\n{cuda}cxx = \"{}\"\nlicense = \"{}\"\nnames = \"{}\"\n",
            release.version,
            release.platform,
            release.wheel.file,
            release.wheel.size,
            release.wheel.sha256,
            release.wheel.record_sha256,
            release.cxx_level,
            release.license,
            release.names,
        )
    });
    TORCH.to_owned() + &entries.collect::<String>()
}
