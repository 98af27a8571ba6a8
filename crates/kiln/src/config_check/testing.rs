//! Projects for the tests of the checks.

use std::fs;
use std::path::Path;

use kiln_format::Build;

pub(super) struct Project {
    dir: tempfile::TempDir,
    pub(super) build: Build,
}

impl Project {
    /// A kernel called `my-relu` for cpu and cuda, with `rest` of the file, and with these files, which hold their own names.
    pub(super) fn new(rest: &str, files: &[&str]) -> Self {
        let head = "[general]\nname = \"my-relu\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"cpu\", \"cuda\"]\n";
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let parsed = kiln_format::build::parse("build.toml", &format!("{head}{rest}"));
        let build = parsed.build.unwrap_or_else(|| panic!("{rest}\n{:?}", parsed.diagnostics));
        Self { dir, build }
    }

    pub(super) fn root(&self) -> &Path {
        self.dir.path()
    }
}
