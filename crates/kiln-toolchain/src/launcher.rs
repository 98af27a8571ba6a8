//! A program that stands in front of compilers: a compiler cache such as sccache or ccache, or one that sends units to other machines.
//!
//! It is called with the compiler and its arguments as its own arguments, and decides by itself whether the compiler runs. What it gives
//! is believed, but only for those who use it: its content enters the identity of every step that it stands in front of, so that no result
//! made without it is ever taken from it, and the other way round.
//!
//! Caches of this kind have a mode that knows a unit again by its source and the headers that it read last time, without running the
//! preprocessor (sccache's preprocessor cache, ccache's direct mode). It misses a new header in front of one that was read. Kiln
//! notices such a header and asks for the unit again, and would get the old object: for the two programs that are known to have the mode
//! it is turned off, unless the caller's environment says otherwise.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use crate::file_state::{self, FileState};
use crate::host::{is_program, on_path};

/// Variables that name the places of the user's things, which launchers keep theirs in.
const PLACES: [&str; 3] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"];

/// What turns off the mode that does not see a new header, by the name of the program.
const EXACT: [(&str, &str, &str); 2] = [("sccache", "SCCACHE_DIRECT", "false"), ("ccache", "CCACHE_NODIRECT", "1")];

/// A program that stands in front of compilers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The program, absolute.
    pub path: PathBuf,
    /// Digest of its content, as lower-case hexadecimal text.
    pub identity: String,
    /// The variables that it needs beside those of a compiler: its own (`SCCACHE_*` for `sccache`), the places of the user's things,
    /// and a directory for temporary files that outlasts a step, because some leave a server behind.
    pub ambient: BTreeMap<String, PathBuf>,
}

/// Why a launcher cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    /// There is no such program.
    #[error("the launcher `{value}` {reason}")]
    Missing {
        /// What was named.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Its content cannot be read.
    #[error("the launcher `{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl LauncherError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { value, .. } if value.trim().contains(' ') => {
                Some("a launcher is one program; what it is to be told goes into its variables, or into a script".to_owned())
            }
            Self::Missing { .. } => Some("install it, or name it by its path".to_owned()),
            Self::Unreadable { .. } => None,
        }
    }
}

impl Launcher {
    /// The launcher that `value` names: a program on `PATH`, or a path from `current_dir`. `variables` is the caller's
    /// environment; in `cache_dir` the digest of the program is kept.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be read.
    pub fn find(value: &str, variables: &BTreeMap<String, String>, current_dir: &Path, cache_dir: &Path) -> Result<Self, LauncherError> {
        let missing = |reason| LauncherError::Missing { value: value.to_owned(), reason };
        let path = if value.contains('/') {
            let path = current_dir.join(value);
            if !is_program(&path) {
                return Err(missing(if path.exists() { "is no program that can be run" } else { "does not exist" }));
            }
            path
        } else {
            let path = variables.get("PATH").map_or(OsStr::new(""), OsStr::new);
            on_path(value, path).ok_or_else(|| missing("is not on PATH"))?
        };
        let identity = identity(&path, cache_dir).map_err(|source| LauncherError::Unreadable { path: path.clone(), source })?;
        Ok(Self { identity, ambient: ambient(&path, variables), path })
    }
}

/// The variables of the program at `path`.
fn ambient(path: &Path, variables: &BTreeMap<String, String>) -> BTreeMap<String, PathBuf> {
    let file_name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let name: String = file_name.chars().take_while(char::is_ascii_alphanumeric).collect();
    let own = format!("{}_", name.to_ascii_uppercase());
    let is_wanted = |variable: &str| (own.len() > 1 && variable.starts_with(&own)) || PLACES.contains(&variable);
    let wanted = variables.iter().filter(|(variable, _)| is_wanted(variable));
    let mut ambient: BTreeMap<String, PathBuf> = wanted.map(|(name, value)| (name.clone(), value.into())).collect();
    let tmp = variables.get("TMPDIR").filter(|dir| !dir.is_empty()).map_or("/tmp", String::as_str);
    ambient.insert("TMPDIR".to_owned(), tmp.into());
    for (_, variable, value) in EXACT.into_iter().filter(|(program, ..)| *program == name) {
        ambient.entry(variable.to_owned()).or_insert_with(|| value.into());
    }
    ambient
}

/// The digest of a program, kept until the file changes.
fn identity(path: &Path, cache_dir: &Path) -> io::Result<String> {
    let key = HEXLOWER.encode(blake3::hash(path.as_os_str().as_encoded_bytes()).as_bytes());
    let cache = cache_dir.join(format!("launcher-{}.json", key.get(..32).unwrap_or(&key)));
    file_state::digest_of(&cache, vec![FileState::now(path)?], || {
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut File::open(path)?, &mut hasher)?;
        Ok(HEXLOWER.encode(hasher.finalize().as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn variables(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_launcher_gets_its_own_variables_and_a_lasting_place() {
        let all = variables(&[("SCCACHE_DIR", "/s"), ("CCACHE_DIR", "/c"), ("CFLAGS", "-g"), ("XDG_CACHE_HOME", "/x"), ("TMPDIR", "/t")]);
        let of = |path: &str, variables: &BTreeMap<String, String>| {
            let ambient = ambient(Path::new(path), variables);
            ambient.iter().map(|(name, value)| format!("{name}={}", value.display())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("/usr/bin/sccache", &all), "SCCACHE_DIR=/s SCCACHE_DIRECT=false TMPDIR=/t XDG_CACHE_HOME=/x");
        assert_eq!(of("/usr/bin/ccache-4.9", &all), "CCACHE_DIR=/c CCACHE_NODIRECT=1 TMPDIR=/t XDG_CACHE_HOME=/x");
        assert_eq!(of("/usr/bin/my-own", &variables(&[("MY_DIR", "/m")])), "MY_DIR=/m TMPDIR=/tmp");
        assert_eq!(of("/usr/bin/sccache", &variables(&[("SCCACHE_DIRECT", "true")])), "SCCACHE_DIRECT=true TMPDIR=/tmp");
        assert_eq!(of("/usr/bin/_", &variables(&[("_", "/usr/bin/env")])), "TMPDIR=/tmp");
    }

    #[test]
    fn a_launcher_is_known_by_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, program) = (dir.path().join("cache"), dir.path().join("front"));
        let find = |value: &str| Launcher::find(value, &variables(&[("PATH", &dir.path().display().to_string())]), dir.path(), &cache);
        assert_eq!(find("front").unwrap_err().to_string(), "the launcher `front` is not on PATH");
        assert_eq!(find("./front").unwrap_err().to_string(), "the launcher `./front` does not exist");
        std::fs::write(&program, "one").unwrap();
        assert_eq!(find("./front").unwrap_err().to_string(), "the launcher `./front` is no program that can be run");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let one = find("front").unwrap();
        assert_eq!((find("./front").unwrap().identity, &one.path), (one.identity.clone(), &program));
        std::fs::write(&program, "two").unwrap();
        assert_ne!(find("front").unwrap().identity, one.identity);
        assert!(find("front --fast").unwrap_err().hint().unwrap().contains("script"));
    }
}
