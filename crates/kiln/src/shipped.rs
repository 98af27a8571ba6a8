//! Which files of the Python package are shipped in a variant directory.
//!
//! Every regular file whose extension the project ships (`pyext`), at any depth, under its own relative path. Left out: bytecode,
//! a top-level `_ops.py`, because the generated one takes that name, and the links that editors lock files with (`.#name`). Links are
//! followed as long as they stay inside the project: a variant holds no links. What has a shipped name and is no file is an error, and so
//! is a link that leads nowhere under such a name or under one without an extension, which may stand for a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::ops_py;

/// A file of the package that cannot be shipped.
#[derive(Debug, Error)]
pub enum ShippedError {
    /// A file or directory could not be read.
    #[error("failed to read `{}`", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A link whose target lies outside the project.
    #[error("`{path}` is a link that leaves the project")]
    Escapes {
        /// The link, relative to the project.
        path: String,
    },
    /// A link to nothing.
    #[error("`{path}` is a link that leads nowhere")]
    Dangling {
        /// The link, relative to the project.
        path: String,
    },
    /// A pipe, a socket or a device under a name that is shipped. Reading it might never end.
    #[error("`{path}` is neither a file nor a directory")]
    Special {
        /// Its path, relative to the project.
        path: String,
    },
    /// A link to a directory that holds the link.
    #[error("`{path}` is a link to a directory that contains it")]
    Loop {
        /// The link, relative to the project.
        path: String,
    },
    /// A name that is not UTF-8: it can be no path in `metadata.json`.
    #[error("the name of `{}` is not UTF-8", path.display())]
    Name {
        /// The file or directory.
        path: PathBuf,
    },
    /// A file that the variant directory needs the name of.
    #[error("`{path}` has the name of a generated file")]
    Reserved {
        /// The file, relative to the project.
        path: String,
    },
}

impl ShippedError {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Escapes { .. } => Some("copy what it leads to into the project: a variant must be whole without it"),
            Self::Loop { .. } | Self::Dangling { .. } => Some("remove the link"),
            Self::Special { .. } => Some("remove it, or move it out of the package"),
            Self::Name { .. } | Self::Reserved { .. } => Some("rename the file, or leave its extension out of `pyext`"),
            Self::Io { .. } => None,
        }
    }
}

/// The shipped files of the package directory `package` (relative to the project in `root`, `/`-separated): path in the variant
/// directory to the file on disk, links resolved. A missing package ships nothing.
///
/// # Errors
/// For the first file, in order of paths, that cannot be shipped.
pub fn shipped_files(root: &Path, package: &str, extensions: &[&str]) -> Result<BTreeMap<String, PathBuf>, ShippedError> {
    let mut walk = Walk {
        root: root.canonicalize().map_err(|source| ShippedError::Io { path: root.to_owned(), source })?,
        package,
        extensions,
        files: BTreeMap::new(),
        open: Vec::new(),
    };
    let dir = root.join(package);
    if dir.is_dir() {
        walk.directory(&dir, "")?;
    }
    Ok(walk.files)
}

struct Walk<'a> {
    /// The project, links resolved.
    root: PathBuf,
    package: &'a str,
    extensions: &'a [&'a str],
    files: BTreeMap<String, PathBuf>,
    /// The directories that are being walked, links resolved, outermost first.
    open: Vec<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, dir: &Path, relative: &str) -> Result<(), ShippedError> {
        let io = |source| ShippedError::Io { path: dir.to_owned(), source };
        let resolved = dir.canonicalize().map_err(io)?;
        if !resolved.starts_with(&self.root) {
            return Err(ShippedError::Escapes { path: self.in_project(relative) });
        }
        if self.open.contains(&resolved) {
            return Err(ShippedError::Loop { path: self.in_project(relative) });
        }
        self.open.push(resolved);
        let mut entries = fs::read_dir(dir).map_err(io)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(io)?;
        entries.sort();
        for path in entries {
            self.entry(path, relative)?;
        }
        self.open.pop();
        Ok(())
    }

    fn entry(&mut self, path: PathBuf, parent: &str) -> Result<(), ShippedError> {
        let io = |source| ShippedError::Io { path: path.clone(), source };
        let shown = || self.in_project(&[parent, &path.file_name().unwrap_or_default().to_string_lossy()].join("/"));
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let matters = self.is_shipped(&path) || path.extension().is_none();
                return if matters && !is_lock(&path) { Err(ShippedError::Dangling { path: shown() }) } else { Ok(()) };
            }
            Err(e) => return Err(io(e)),
        };
        if !meta.is_dir() && !self.is_shipped(&path) {
            return Ok(());
        }
        if !meta.is_dir() && !meta.is_file() {
            return Err(ShippedError::Special { path: shown() });
        }
        let name = path.file_name().unwrap_or_default();
        if meta.is_dir() && name == "__pycache__" {
            return Ok(());
        }
        let Some(name) = name.to_str() else { return Err(ShippedError::Name { path }) };
        let relative = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        if meta.is_dir() {
            return self.directory(&path, &relative);
        }
        match relative.as_str() {
            ops_py::FILE_NAME => return Ok(()),
            "metadata.json" | "metadata.json.sigstore" => return Err(ShippedError::Reserved { path: self.in_project(&relative) }),
            _ => {}
        }
        let resolved = path.canonicalize().map_err(io)?;
        if !resolved.starts_with(&self.root) {
            return Err(ShippedError::Escapes { path: self.in_project(&relative) });
        }
        self.files.insert(relative, resolved);
        Ok(())
    }

    /// Whether the extension is shipped. Extensions may have several parts (`tar.gz`).
    fn is_shipped(&self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|n| n.to_str()) else {
            // Only the extension is looked at, so that the name's error is reported for shipped files alone.
            return path.extension().is_some_and(|e| e == "py" || self.extensions.iter().any(|x| e == *x));
        };
        !name.ends_with(".pyc")
            && std::iter::once("py")
                .chain(self.extensions.iter().copied())
                .any(|x| name.strip_suffix(x).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.')))
    }

    fn in_project(&self, relative: &str) -> String {
        let relative = relative.trim_start_matches('/');
        if relative.is_empty() { self.package.to_owned() } else { format!("{}/{relative}", self.package) }
    }
}

/// Whether a name is that of a link to nothing with which editors mark a file that is being edited.
fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".#"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let tmp = tempfile::tempdir().unwrap();
        for file in files {
            let path = tmp.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        tmp
    }

    fn shipped(tmp: &tempfile::TempDir, extensions: &[&str]) -> Result<Vec<String>, String> {
        shipped_files(tmp.path(), "ext/pkg", extensions).map(|files| files.into_keys().collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn extensions_decide() {
        let tmp = project(&[
            "ext/pkg/__init__.py",
            "ext/pkg/_ops.py",
            "ext/pkg/a.pyi",
            "ext/pkg/a.pyc",
            "ext/pkg/.py",
            "ext/pkg/data.tar.gz",
            "ext/pkg/happy",
            "ext/pkg/layers/_ops.py",
            "ext/pkg/layers/metadata.json",
            "ext/pkg/__pycache__/b.py",
            "ext/other/c.py",
        ]);
        assert_eq!(shipped(&tmp, &[]).unwrap(), ["__init__.py", "layers/_ops.py"]);
        assert_eq!(
            shipped(&tmp, &["pyi", "tar.gz", "json", "pyc", "py"]).unwrap(),
            ["__init__.py", "a.pyi", "data.tar.gz", "layers/_ops.py", "layers/metadata.json"]
        );
        assert_eq!(shipped(&project(&["x"]), &[]), Ok(Vec::new()));
    }

    #[test]
    fn names_of_generated_files_are_reserved() {
        let tmp = project(&["ext/pkg/metadata.json"]);
        assert_eq!(shipped(&tmp, &["py"]), Ok(Vec::new()));
        assert_eq!(shipped(&tmp, &["json"]).unwrap_err(), "`ext/pkg/metadata.json` has the name of a generated file");
    }

    #[test]
    fn links_inside_are_resolved_outside_refused() {
        let tmp = project(&["shared/util.py", "shared/more/x.py", "ext/pkg/__init__.py"]);
        symlink("../../shared/util.py", tmp.path().join("ext/pkg/util.py")).unwrap();
        symlink("../../shared/more", tmp.path().join("ext/pkg/more")).unwrap();
        symlink("nowhere.txt", tmp.path().join("ext/pkg/dangling.txt")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap(), ["__init__.py", "more/x.py", "util.py"]);
        let files = shipped_files(tmp.path(), "ext/pkg", &[]).unwrap();
        assert!(files.values().all(|f| fs::symlink_metadata(f).unwrap().is_file()));

        let outside = project(&["secret.py"]);
        symlink(outside.path().join("secret.py"), tmp.path().join("ext/pkg/z.py")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/z.py` is a link that leaves the project");
        fs::remove_file(tmp.path().join("ext/pkg/z.py")).unwrap();
        symlink(outside.path(), tmp.path().join("ext/pkg/z")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/z` is a link that leaves the project");
    }

    #[test]
    fn loops_and_dangling_links_end() {
        let tmp = project(&["ext/pkg/a/__init__.py"]);
        symlink("..", tmp.path().join("ext/pkg/a/up")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/a/up` is a link to a directory that contains it");
        fs::remove_file(tmp.path().join("ext/pkg/a/up")).unwrap();
        symlink("gone.py", tmp.path().join("ext/pkg/a/b.py")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/a/b.py` is a link that leads nowhere");
        fs::rename(tmp.path().join("ext/pkg/a/b.py"), tmp.path().join("ext/pkg/a/b")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/a/b` is a link that leads nowhere", "it may have been a directory");
        fs::rename(tmp.path().join("ext/pkg/a/b"), tmp.path().join("ext/pkg/.#b.py")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap(), ["a/__init__.py"], "an editor's lock");
    }

    #[test]
    fn what_cannot_be_read_to_its_end_is_refused() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let tmp = project(&["ext/pkg/a.py"]);
        let pipe = |name: &str| mknodat(CWD, tmp.path().join("ext/pkg").join(name), FileType::Fifo, Mode::RUSR, 0).unwrap();
        pipe("pipe");
        assert_eq!(shipped(&tmp, &["json"]).unwrap(), ["a.py"], "nobody asked for it");
        pipe("data.json");
        assert_eq!(shipped(&tmp, &["json"]).unwrap_err(), "`ext/pkg/data.json` is neither a file nor a directory");
        symlink("/dev/zero", tmp.path().join("ext/pkg/b.py")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(tmp.path().join("ext/pkg/a0.py")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/a0.py` is neither a file nor a directory");
        fs::remove_file(tmp.path().join("ext/pkg/a0.py")).unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap_err(), "`ext/pkg/b.py` is neither a file nor a directory");
    }

    #[test]
    fn names_must_be_utf8() {
        let tmp = project(&["ext/pkg/a.py"]);
        let name = |bytes| tmp.path().join("ext/pkg").join(std::ffi::OsStr::from_bytes(bytes));
        fs::write(name(b"\xff.txt"), "").unwrap();
        assert_eq!(shipped(&tmp, &[]).unwrap(), ["a.py"]);
        fs::write(name(b"\xff.py"), "").unwrap();
        assert!(shipped(&tmp, &["py"]).unwrap_err().ends_with("is not UTF-8"));
    }
}
