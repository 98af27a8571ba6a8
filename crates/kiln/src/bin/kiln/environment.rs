//! What the process was started with, read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the process was started with.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// The variables whose names and values are text.
    pub(crate) variables: BTreeMap<String, String>,
    /// Working directory.
    pub(crate) current_dir: PathBuf,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn read() -> std::io::Result<Self> {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        Ok(Self { variables, current_dir: std::env::current_dir()? })
    }

    /// A variable that is set to something.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Where this user keeps temporary files.
    pub(crate) fn temporary_dir(&self) -> PathBuf {
        PathBuf::from(self.get("TMPDIR").unwrap_or("/tmp"))
    }

    /// The first program called one of `names` on `PATH`.
    pub(crate) fn find_program(&self, names: &[&str]) -> Option<PathBuf> {
        let path = self.get("PATH").unwrap_or_default();
        names.iter().find_map(|name| std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| is_program(file)))
    }

    /// Where the user's own settings are kept; none for a user without a home.
    pub(crate) fn config_dir(&self) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_CONFIG_HOME").map(|dir| dir.join("kiln")).or_else(|| Some(absolute("HOME")?.join(".config/kiln")))
    }

    /// Cache directories that are read and never written to, such as one that an administrator provides: `KILN_SHARED_CACHE_DIRS`.
    pub(crate) fn shared_caches(&self) -> Vec<PathBuf> {
        let dirs = self.get("KILN_SHARED_CACHE_DIRS").unwrap_or_default();
        std::env::split_paths(dirs).filter(|dir| !dir.as_os_str().is_empty()).map(|dir| self.current_dir.join(dir)).collect()
    }

    /// Where shared things are kept unless the user says otherwise; none for a user without a home.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        // Ours may be relative, as an option may; the other two are not set when they are.
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        self.get("KILN_CACHE_DIR")
            .map(|dir| self.current_dir.join(dir))
            .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("kiln")))
            .or_else(|| Some(absolute("HOME")?.join(".cache/kiln")))
    }
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
