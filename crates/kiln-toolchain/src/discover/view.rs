//! What discovery may look at.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The machine as discovery sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Stands for `/` wherever a usual place is meant: `/` itself, but in tests. Paths that somebody named are taken as they are.
    pub root: &'a Path,
    /// The caller's environment; each kit's table says which variables are looked at.
    pub environment: &'a BTreeMap<String, String>,
    /// The system in Rust's words: `linux`, `macos`, `windows`.
    pub os: &'a str,
    /// The processor in Rust's words: `x86_64`, `aarch64`.
    pub cpu: &'a str,
}

impl View<'_> {
    /// A usual place: `absolute` below the root.
    pub(super) fn place(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The value of `PATH`.
    pub(super) fn path(&self) -> &OsStr {
        self.variable("PATH").unwrap_or_default().as_ref()
    }

    /// The absolute directories of `PATH`, each once, in their order.
    pub(super) fn path_dirs(&self) -> Vec<PathBuf> {
        let mut seen = Vec::new();
        std::env::split_paths(self.path())
            .filter(|dir| dir.is_absolute())
            .filter(|dir| {
                let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
                let new = !seen.contains(&real);
                seen.push(real);
                new
            })
            .collect()
    }

    /// The program called `name` on `PATH`.
    pub(super) fn on_path(&self, name: &str) -> Option<PathBuf> {
        crate::host::on_path(name, self.path())
    }
}

/// A path as a key that is equal for two ways to one file.
pub(super) fn real(path: &Path) -> OsString {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).into_os_string()
}
