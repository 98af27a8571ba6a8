//! Why a build script gets no library.

use std::fmt;
use std::path::PathBuf;

use kiln_graph::{Failure, GraphError, WorkDirError, quoted};
use kiln_toolchain::host::HostError;

use crate::backend::WrongCode;
use crate::error::BackendError;

/// What hints of the command line call its options, and what a build script has for each.
const METHODS: [(&str, &str); 6] = [
    ("`--cxx ", "`CXX="),
    ("`--cxx`", "`CXX`"),
    ("`--cuda`", "`.release(..)`"),
    ("`--arch`", "`.capabilities(..)`"),
    ("`--cache-dir DIR`", "the variable `KILN_CACHE_DIR`"),
    ("`--index URL` or in `[index]` of `kiln.toml`", "the variable `KILN_INDEX_URL`"),
];

/// Why a build script gets no library.
///
/// Its `Debug` text is what people should read, since that is what Rust prints of an error that `main` returns: the message, what the
/// compiler said, untouched, and a hint.
#[derive(thiserror::Error)]
pub enum BuildError {
    /// Something that cargo sets is not set.
    #[error("`{name}` is not set, or is no text")]
    NoVariable {
        /// The variable.
        name: &'static str,
    },
    /// A variable has a value that cannot be understood.
    #[error("`{name}` is `{value}`, which is no size")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Nothing can be compiled for the target.
    #[error("nothing can be compiled for `{target}`")]
    Target {
        /// The target.
        target: String,
    },
    /// Device code for another system than the one that compiles.
    #[error("{backend} code for `{target}` is compiled on such a machine, not by cross compilers")]
    Cross {
        /// The backend.
        backend: String,
        /// The target.
        target: String,
    },
    /// The name of the library cannot be one.
    #[error("`{name}` cannot be the name of a library")]
    Name {
        /// The name.
        name: String,
    },
    /// There is nothing to compile.
    #[error("the library `{name}` has no source")]
    NoSource {
        /// The library.
        name: String,
    },
    /// A source or a directory is not there.
    #[error("{what} `{}` {reason}", path.display())]
    Missing {
        /// What it is: `the source`, `the include directory`.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A path that cannot be used.
    #[error("the path `{}` cannot be used: {reason}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A flag that no library can be compiled with.
    #[error("{message}")]
    Flag {
        /// Which flag, and why.
        message: String,
        /// What to do instead.
        hint: String,
    },
    /// A capability that is none.
    #[error("`{entry}` is no {what}")]
    Capability {
        /// The entry.
        entry: String,
        /// What it should be.
        what: &'static str,
        /// What such a thing looks like.
        hint: &'static str,
    },
    /// There is no host compiler, or none that can be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There is no toolkit, or none that can be used.
    #[error("{message}")]
    Toolkit {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The backend cannot compile what is asked for.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The graph refused a step: a fault of Kiln.
    #[error("internal error in the step graph: {0}")]
    Graph(#[from] GraphError),
    /// `OUT_DIR` cannot be used.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// A file of `OUT_DIR` cannot be written or read.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Steps failed.
    #[error("{}", texts(steps))]
    Steps {
        /// The steps, in the order in which they failed.
        steps: Vec<StepFailure>,
    },
    /// The device code in the library is not what was asked for.
    #[error("the device code of the library `{name}` is wrong: {wrong}")]
    DeviceCode {
        /// The library.
        name: String,
        /// What is inside and what should be.
        wrong: WrongCode,
    },
}

#[cfg(feature = "wheels")]
impl From<kiln_toolchain::Error> for BuildError {
    fn from(error: kiln_toolchain::Error) -> Self {
        match error {
            kiln_toolchain::Error::Offline { what, .. } => Self::Toolkit {
                message: format!("{what} is not in the store, and `CARGO_NET_OFFLINE` forbids to fetch it"),
                hint: Some("build once without it, or name the directory of a toolkit with `.toolkit(..)`".to_owned()),
            },
            error => Self::Toolkit { message: error.to_string(), hint: error.hint() },
        }
    }
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// What it was done to: the source, as the build script named it.
    pub label: String,
    /// How it failed.
    pub failure: Failure,
    /// The program and its arguments; none where no program was run.
    pub command: Option<Vec<String>>,
    /// What the program wrote, untouched.
    pub output: Vec<u8>,
}

impl fmt::Display for StepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.command.is_some() { "compile" } else { "make" };
        write!(f, "failed to {what} `{}`: {}", self.label, self.failure)?;
        let output = String::from_utf8_lossy(&self.output);
        if !output.trim().is_empty() {
            write!(f, "\n{}", output.trim_end())?;
        }
        match &self.command {
            Some(command) => write!(f, "\ncommand: {}", quoted(command)),
            None => Ok(()),
        }
    }
}

fn texts(steps: &[StepFailure]) -> String {
    steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

impl BuildError {
    /// What the author of the build script, or its user, can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoVariable { .. } => {
                Some("this is for build scripts: give `Cargo::new` the whole environment that cargo gives them".to_owned())
            }
            Self::Variable { .. } => Some("a size is a number of bytes, or a number with k, M, G or T".to_owned()),
            Self::Target { .. } => Some("the targets are `x86_64-unknown-linux-gnu` and `aarch64-unknown-linux-gnu`".to_owned()),
            Self::Name { .. } => Some("a name has letters, digits and `_-+.`, and no directory".to_owned()),
            Self::NoSource { .. } => Some("add one with `.file(..)`; headers are none".to_owned()),
            Self::Missing { .. } => Some("paths are relative to the directory of the package's `Cargo.toml`".to_owned()),
            Self::Flag { hint, .. } => Some(in_methods(hint)),
            Self::Capability { hint, .. } => Some((*hint).to_owned()),
            Self::Host(error) => error.hint().map(|hint| in_methods(&hint)),
            Self::Toolkit { hint, .. } => hint.as_deref().map(in_methods),
            Self::Backend(error) => error.hint().map(|hint| in_methods(&hint)),
            Self::DeviceCode { wrong, .. } => wrong.hint.clone(),
            Self::Cross { .. } | Self::Path { .. } | Self::Graph(_) | Self::WorkDir(_) | Self::Io { .. } | Self::Steps { .. } => None,
        }
    }

    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// A hint that speaks of options of the command line, in words of build scripts.
fn in_methods(hint: &str) -> String {
    METHODS.iter().fold(hint.to_owned(), |hint, (option, method)| hint.replace(option, method))
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let text = cause.to_string();
            if !self.to_string().contains(&text) {
                write!(f, "\ncaused by: {text}")?;
            }
            source = cause.source();
        }
        match self.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_text_with_the_compilers_words_untouched() {
        let output = b"src/a b.cpp:1:5: error: expected `;'\n    1 | int x\n      |     ^\n".to_vec();
        let command = Some(vec!["/usr/bin/g++".to_owned(), "-c".to_owned()]);
        let step = StepFailure { label: "src/a b.cpp".to_owned(), failure: Failure::Exit { code: 1 }, command, output };
        let text = format!("{:?}", BuildError::Steps { steps: vec![step] });
        assert_eq!(
            text,
            "failed to compile `src/a b.cpp`: exit code 1\nsrc/a b.cpp:1:5: error: expected `;'\n    1 | int x\n      |     ^\ncommand: /usr/bin/g++ -c"
        );
        let error = BuildError::NoSource { name: "x".to_owned() };
        assert_eq!(format!("{error:?}"), "the library `x` has no source\nhint: add one with `.file(..)`; headers are none");
    }
}
