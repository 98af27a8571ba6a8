//! Directories that nobody may write into.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::started::real_program;
use super::{Sandbox, kiln_program};

/// A command for which file modes count: a process of root gives up the right to ignore them.
pub fn bound_by_modes(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let setpriv = real_program("setpriv").expect("`setpriv` (util-linux) is needed to test as root what modes forbid");
        let mut command = sandbox.command(setpriv);
        command.args(["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search", "--"]);
        command.arg(kiln_program());
        command
    } else {
        sandbox.command(kiln_program())
    };
    command.args(args).current_dir(dir);
    command
}

/// Makes a directory and all directories in it read-only until it is dropped.
pub struct ReadOnly(PathBuf);

impl ReadOnly {
    /// Until it is dropped.
    pub fn new(dir: &Path) -> Self {
        Self::set(dir, 0o555);
        Self(dir.to_owned())
    }

    fn set(dir: &Path, mode: u32) {
        for entry in walkdir::WalkDir::new(dir).contents_first(true) {
            let entry = entry.unwrap();
            if entry.file_type().is_dir() {
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        Self::set(&self.0, 0o755);
    }
}
