//! The C++ compilers on `PATH`, by their names alone.

use std::path::{Path, PathBuf};

use super::view::View;
use crate::host::{is_launcher, is_program, is_usual_name};

/// A C++ compiler on `PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerCandidate {
    /// Where it was found.
    pub path: PathBuf,
    /// The file behind all links.
    pub real: PathBuf,
    /// The launcher that it really is: `ccache` for a link called `g++` that leads to it.
    pub through: Option<String>,
}

/// Every C++ compiler on `PATH`: in the order of its directories, by name within one; each file once, but for those behind a
/// launcher, which tells by its name what it starts.
pub fn compilers(view: &View<'_>) -> Vec<CompilerCandidate> {
    let mut found: Vec<CompilerCandidate> = Vec::new();
    for dir in view.path_dirs() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_usual_name(name)).collect();
        // `g++` before `g++-12`: a link by the shorter name is the one that people mean.
        names.sort();
        for path in names.iter().map(|name| dir.join(name)).filter(|path| is_program(path)) {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let through = is_launcher(&real).then(|| file_name(&real).to_owned());
            let known = found.iter().any(|other| match &through {
                None => other.real == real,
                Some(_) => other.real == real && file_name(&other.path) == file_name(&path),
            });
            if !known {
                found.push(CompilerCandidate { path, real, through });
            }
        }
    }
    found
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default()
}
