//! What was made, and the lines that tell cargo of it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A static library, and what cargo has to know of it. Printing it is the last thing that a build script does with it.
#[must_use = "cargo knows nothing of the library until it is printed, as it is"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub(super) name: String,
    pub(super) archive: PathBuf,
    pub(super) archs: Vec<String>,
    pub(super) runtime_dirs: Vec<PathBuf>,
    pub(super) search_dirs: Vec<PathBuf>,
    pub(super) libraries: Vec<String>,
    pub(super) reads: Vec<PathBuf>,
    pub(super) variables: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) ran: usize,
}

impl Library {
    /// Its name, as the linker is told it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub fn archive(&self) -> &Path {
        &self.archive
    }

    /// What its device code is compiled for, in the vendor's order; empty without device code.
    pub fn archs(&self) -> &[String] {
        &self.archs
    }

    /// Directories with shared libraries that a program with this library in it needs when it runs, where the toolkit has them. Whether
    /// they are in its run path, or are installed on the machine, is the program's decision.
    pub fn runtime_dirs(&self) -> &[PathBuf] {
        &self.runtime_dirs
    }

    /// How many steps ran for it: 0 when all of it was up to date, or was kept from elsewhere.
    pub fn steps_run(&self) -> usize {
        self.ran
    }

    /// What the compilers said, and what else the user should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl fmt::Display for Library {
    /// The lines that cargo reads, each ended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dir in &self.search_dirs {
            writeln!(f, "cargo:rustc-link-search=native={}", dir.display())?;
        }
        writeln!(f, "cargo:rustc-link-lib=static={}", self.name)?;
        for library in &self.libraries {
            writeln!(f, "cargo:rustc-link-lib=dylib={library}")?;
        }
        for path in &self.reads {
            writeln!(f, "cargo:rerun-if-changed={}", path.display())?;
        }
        for variable in &self.variables {
            writeln!(f, "cargo:rerun-if-env-changed={variable}")?;
        }
        for line in self.warnings.iter().flat_map(|warning| warning.lines()) {
            writeln!(f, "cargo:warning={line}")?;
        }
        Ok(())
    }
}
