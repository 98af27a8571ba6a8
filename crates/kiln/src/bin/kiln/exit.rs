//! How a command ends.

use std::process::ExitCode;

use kiln::BuildError;
use kiln::build_error::Report;

use crate::signals;

/// Exit codes, as the manual lists them. Usage errors (2) end the process where arguments are parsed, or as [`Exit::Usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Success,
    /// The command failed.
    Failure,
    /// The command line cannot be meant.
    Usage,
    /// Ended by a signal.
    Interrupted,
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Interrupted => signals::exit_code(),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(u8::from(exit))
    }
}

/// A failed command, for the user.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Failure, code, message: message.into(), causes: Vec::new(), hint: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Failure::new("usage", message) }
    }

    pub(crate) fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let exit = match &error {
            BuildError::Choose(_) | BuildError::OpsId(_) | BuildError::OutDirInside { .. } => Exit::Usage,
            BuildError::Interrupted
            | BuildError::WorkDir(kiln_graph::WorkDirError::Interrupted { .. })
            | BuildError::Host(kiln_toolchain::host::HostError::Interrupted)
            | BuildError::Toolchain(kiln_toolchain::Error::Interrupted) => Exit::Interrupted,
            _ => Exit::Failure,
        };
        let Report { code, message, causes, hint } = Report::from(&error);
        Self { exit, code, message, causes, hint }
    }
}

impl From<kiln_toolchain::Error> for Failure {
    fn from(error: kiln_toolchain::Error) -> Self {
        BuildError::from(error).into()
    }
}
