//! What is wrong with a project beyond the text of its `build.toml`: its files, its layout, and what the matrix offers it.
//!
//! `kiln check-config` runs these checks, and so does every build before it starts anything.

mod coverage;
mod device_sources;
mod files;
mod flags;
mod launches;
mod layout;
mod lints;
mod meaning;
#[cfg(test)]
mod testing;
mod wide_includes;

use std::path::Path;

use kiln_format::{Build, Diagnostic};

use crate::matrix::Matrix;

pub use self::files::{is_input, is_translation_unit};
pub(crate) use self::flags::{files_read_by_flags, machine_flags};
pub use self::lints::LINTS;

/// All remarks on the project in `root`, in the order of its `build.toml`, which every place points into.
pub fn check(root: &Path, build: &Build, matrix: &Matrix) -> Vec<Diagnostic> {
    let mut diagnostics = files::check(root, build);
    diagnostics.extend(flags::check(root, build));
    diagnostics.extend(layout::check(root, build));
    diagnostics.extend(meaning::check(build, matrix));
    diagnostics.extend(lints::check(build));
    diagnostics.extend(device_sources::check(root, build));
    diagnostics.extend(coverage::check(build));
    diagnostics.sort_by_key(|d| (d.span.map(|span| span.start), d.level));
    diagnostics
}
