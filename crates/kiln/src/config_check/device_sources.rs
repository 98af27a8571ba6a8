//! The sources with device code, each read once for all remarks on its text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kiln_format::{BackendName, Build, Diagnostic};

use super::{launches, wide_includes};

/// The remarks on each file, at its place in `build.toml`: where two kernels list it, at the first.
pub(super) fn check(root: &Path, build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut seen = BTreeSet::new();
    for backend in [BackendName::Cuda, BackendName::Rocm] {
        let kernels = build.kernels_for(backend);
        for (kernel, source) in kernels.flat_map(|kernel| kernel.src.iter().map(move |source| (kernel, source))) {
            if !seen.insert(source.as_str()) {
                continue;
            }
            let Ok(bytes) = fs::read(root.join(source.as_str())) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            diagnostics.extend(launches::check(build, kernel, source, &text));
            if backend == BackendName::Cuda {
                diagnostics.extend(wide_includes::check(source, &text));
            }
        }
    }
    diagnostics
}
