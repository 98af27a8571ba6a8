//! Where a build's host compiler comes from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_backend::{Backend, FittingHost};
use kiln_toolchain::host::{self, HostCompiler, HostSearch};
use kiln_toolchain::{process, system};

use crate::build_error::BuildError;

/// Where the host compiler is looked for. Nobody looks before something is compiled.
#[derive(Clone, Debug)]
pub struct HostSource {
    /// What was named, and the places.
    pub search: HostSearch,
    /// The file that keeps what is known of compilers.
    pub known: PathBuf,
}

impl HostSource {
    /// The one that was named, or else the first of the usual ones.
    ///
    /// # Errors
    /// When there is none, or it does not work.
    pub fn usual(&self) -> Result<HostCompiler, BuildError> {
        Ok(host::find(&self.search, &self.known)?.compiler)
    }

    /// `usual`, or, where it is too new for a toolkit among `backends` and nobody named it, the newest that all of them take.
    pub(crate) fn fitting(&self, usual: HostCompiler, backends: &[&dyn Backend]) -> FittingHost {
        FittingHost::choose(usual, backends, &self.search, &self.known)
    }
}

/// What a program of a toolkit says to `question`, on both its streams; none when it cannot be run or fails. `ambient` are the variables
/// that it needs to work.
pub fn ask(program: &Path, question: &[&str], ambient: &BTreeMap<String, PathBuf>) -> Option<String> {
    process::said(program, question, ambient, system::ANSWER_LIMIT)
}
