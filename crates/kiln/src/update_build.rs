//! Bringing `build.toml` files up to date on disk: a file is the old one or the new one, whatever happens meanwhile.
//!
//! What changes is decided by [`kiln_format::build::update`]; here it is read, compared and put in place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use kiln_format::build::{Update, UpdateError, update};
use kiln_format::render;
use thiserror::Error;

use crate::project::{BUILD_TOML, ProjectError, read_text};

/// A file that could not be brought up to date. Nothing was written.
#[derive(Debug, Error)]
pub enum UpdateBuildError {
    /// There is no file at the path, or it cannot be read as text.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The file cannot be updated.
    #[error("`{}` cannot be updated", path.display())]
    Update {
        /// The file as the user named it.
        path: PathBuf,
        /// Why.
        #[source]
        source: UpdateError,
    },
    /// Somebody else wrote the file while it was worked on.
    #[error("`{}` was changed by another program meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The new text could not be put in place of the old one.
    #[error("failed to write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl UpdateBuildError {
    /// A stable name of what went wrong.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Project(_) => "project",
            Self::Update { source: UpdateError::Refused(_), .. } => "configuration",
            Self::Update { source: UpdateError::NoLicense, .. } => "missing-license",
            Self::Update { source: UpdateError::NotTheSame(_), .. } => "internal",
            Self::Changed { .. } => "file-changed",
            Self::Write { .. } => "io",
        }
    }

    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project(error) => error.hint(),
            Self::Update { source, .. } => source.hint().map(str::to_owned),
            Self::Changed { .. } => Some("run the command again".to_owned()),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("the directory of the file must be writable: the new text is made beside the old one".to_owned())
            }
            Self::Write { .. } => None,
        }
    }

    /// The errors of a file that has some, as text.
    pub fn remarks(&self) -> Option<String> {
        match self {
            Self::Update { source: UpdateError::Refused(parsed), .. } => {
                let errors: Vec<_> = parsed.errors().cloned().collect();
                Some(render(&parsed.source, &errors))
            }
            _ => None,
        }
    }
}

/// A file, and what it becomes.
#[derive(Clone, Debug)]
pub struct FileUpdate {
    /// The file as messages show it.
    pub shown: PathBuf,
    /// The file itself, links resolved.
    file: PathBuf,
    /// Its text.
    pub old: String,
    /// What it becomes and how.
    pub update: Update,
}

impl FileUpdate {
    /// Reads the `build.toml` at `path`, the file or its directory, and finds what has to change. `license` is used where the file
    /// has none.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be updated.
    pub fn plan(path: &Path, license: Option<&str>) -> Result<Self, UpdateBuildError> {
        let in_directory = if path == Path::new(".") { PathBuf::from(BUILD_TOML) } else { path.join(BUILD_TOML) };
        let is_directory = path.is_dir();
        let shown = if is_directory { in_directory } else { path.to_owned() };
        let missing = || match is_directory {
            true => ProjectError::NoBuildToml { path: path.to_owned() },
            false => ProjectError::Missing { path: path.to_owned() },
        };
        let old = read_text(&shown, &shown.display().to_string())?.ok_or_else(missing)?;
        let file = shown.canonicalize().map_err(|source| ProjectError::Io { path: shown.clone(), source })?;
        match update(&shown.display().to_string(), &old, license) {
            Ok(update) => Ok(Self { shown, file, old, update }),
            Err(source) => Err(UpdateBuildError::Update { path: shown, source }),
        }
    }

    /// Whether there is anything to change.
    pub fn is_changed(&self) -> bool {
        self.update.text != self.old
    }

    /// The change as a unified diff, empty when there is none.
    pub fn diff(&self) -> String {
        let name = self.shown.display().to_string();
        let diff = similar::TextDiff::from_lines(self.old.as_str(), self.update.text.as_str());
        if self.is_changed() { diff.unified_diff().header(&name, &name).to_string() } else { String::new() }
    }

    /// Puts the new text in the place of the old one; a file that does not change is not touched. A symbolic link stays one, and
    /// the file keeps its permissions.
    ///
    /// # Errors
    /// When the file cannot be written, or another program changed it; it is the old one then.
    pub fn write(&self) -> Result<(), UpdateBuildError> {
        if !self.is_changed() {
            return Ok(());
        }
        let failed = |source| UpdateBuildError::Write { path: self.shown.clone(), source };
        let directory = self.file.parent().unwrap_or(Path::new("/"));
        let mut beside = tempfile::Builder::new().prefix(".build.toml-").tempfile_in(directory).map_err(failed)?;
        beside.write_all(self.update.text.as_bytes()).map_err(failed)?;
        let meta = fs::metadata(&self.file).map_err(failed)?;
        keep_owner(beside.as_file(), &meta).map_err(failed)?;
        beside.as_file().set_permissions(meta.permissions()).map_err(failed)?;
        beside.as_file().sync_all().map_err(failed)?;
        if fs::read(&self.file).map_err(failed)? != self.old.as_bytes() {
            return Err(UpdateBuildError::Changed { path: self.shown.clone() });
        }
        beside.persist(&self.file).map_err(|error| failed(error.error))?;
        // The rename itself survives a power cut when the directory is written; where that cannot be asked for, it is old or new.
        let _best_effort = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

/// Gives `file` the owner of the file that it replaces, where that is another one and may be done.
fn keep_owner(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        match fchown(file, Some(old.uid()), Some(old.gid())) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const OLD: &str = "[general]\nname = \"ab\" # x\nversion = 1\nlicense = \"MIT\"\nbackends = [\"cpu\"]\n[torch]\n";

    fn new() -> String {
        OLD.replace("version = 1\n", "version = 1\nedition = 5\n")
    }

    fn project(text: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(BUILD_TOML), text).unwrap();
        dir
    }

    #[test]
    fn permissions_are_kept_and_nothing_is_left_beside() {
        let dir = project(OLD);
        let file = dir.path().join(BUILD_TOML);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        FileUpdate::plan(dir.path(), None).unwrap().write().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), new());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = project(OLD);
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join(BUILD_TOML);
        symlink(dir.path().join(BUILD_TOML), &link).unwrap();
        FileUpdate::plan(&link, None).unwrap().write().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(dir.path().join(BUILD_TOML)).unwrap(), new());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_current_file_is_not_touched() {
        let dir = project(&new());
        let file = dir.path().join(BUILD_TOML);
        let before = (fs::metadata(&file).unwrap().ino(), fs::metadata(&file).unwrap().modified().unwrap());
        let plan = FileUpdate::plan(dir.path(), Some("Apache-2.0")).unwrap();
        assert!(!plan.is_changed() && plan.diff().is_empty());
        plan.write().unwrap();
        assert_eq!(before, (fs::metadata(&file).unwrap().ino(), fs::metadata(&file).unwrap().modified().unwrap()));
    }

    #[test]
    fn another_writer_wins() {
        let dir = project(OLD);
        let plan = FileUpdate::plan(dir.path(), None).unwrap();
        let theirs = OLD.replace("MIT", "X11");
        fs::write(dir.path().join(BUILD_TOML), &theirs).unwrap();
        let error = plan.write().unwrap_err();
        assert_eq!(error.code(), "file-changed");
        assert_eq!(fs::read_to_string(dir.path().join(BUILD_TOML)).unwrap(), theirs);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_diff_shows_what_changes() {
        let dir = project(OLD);
        let mut plan = FileUpdate::plan(dir.path(), None).unwrap();
        plan.shown = BUILD_TOML.into();
        insta::assert_snapshot!(plan.diff(), @r#"
        --- build.toml
        +++ build.toml
        @@ -1,6 +1,7 @@
         [general]
         name = "ab" # x
         version = 1
        +edition = 5
         license = "MIT"
         backends = ["cpu"]
         [torch]
        "#);
    }

    #[test]
    fn what_cannot_be_updated_stays() {
        let text = OLD.replace("license", "licence");
        let dir = project(&text);
        let error = FileUpdate::plan(dir.path(), None).unwrap_err();
        assert_eq!(error.code(), "configuration");
        assert!(error.remarks().unwrap().contains("unknown key `licence`"));
        assert_eq!(FileUpdate::plan(&dir.path().join("gone"), None).unwrap_err().code(), "project");
        let third = project("[general]\nname = 'ab'\nbackends = ['cpu']\n");
        let error = FileUpdate::plan(third.path(), None).unwrap_err();
        assert_eq!((error.code(), error.hint().unwrap().contains("--license")), ("missing-license", true));
        assert_eq!(fs::read_to_string(dir.path().join(BUILD_TOML)).unwrap(), text);
    }
}
