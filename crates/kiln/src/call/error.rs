//! Why nothing could be called.

use std::io;
use std::path::PathBuf;

use kiln_ffi::FfiError;
use thiserror::Error;

use crate::hash::HashError;

/// Why nothing could be called. What a kernel does wrong is none: that is [`super::Ended`].
#[derive(Debug, Error)]
pub enum CallError {
    /// There is nothing at a path.
    #[error("there is no file or directory `{}`", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A file or directory cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A path that the runtime cannot be told.
    #[error("`{}` is no text in UTF-8, and tvm-ffi takes no other paths", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A directory has no variants.
    #[error(transparent)]
    Variants(#[from] HashError),
    /// No variant is the one that is wanted.
    #[error("`{}` has no variant {wanted}: there is {}", path.display(), quoted(.found))]
    NoVariant {
        /// The project or output directory.
        path: PathBuf,
        /// What is wanted.
        wanted: String,
        /// What there is.
        found: Vec<String>,
    },
    /// No variant has the name that was asked for.
    #[error("there is no variant `{name}`: there is {}", quoted(.found))]
    UnknownVariant {
        /// The name or pattern.
        name: String,
        /// What there is.
        found: Vec<String>,
    },
    /// Several variants fit.
    #[error("several variants fit: {}", quoted(.names))]
    AmbiguousVariant {
        /// Whether they are of the form that was asked for.
        asked: bool,
        /// Their names.
        names: Vec<String>,
    },
    /// A variant without a library.
    #[error("`{}` holds no shared library", path.display())]
    NoLibrary {
        /// The variant.
        path: PathBuf,
    },
    /// A variant with several libraries.
    #[error("there are several libraries: {}", quoted(&.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()))]
    Libraries {
        /// The libraries.
        paths: Vec<PathBuf>,
    },
    /// A library of another kind, or none.
    #[error("`{}` is no tvm-ffi kernel: {what}", path.display())]
    NotTvmFfi {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// A kernel for another machine.
    #[error("`{}` is for {machine}, and cannot be called on this machine", path.display())]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// What it is for.
        machine: String,
    },
    /// An argument cannot be meant.
    #[error("`{text}`: {why}")]
    Argument {
        /// The argument as written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such function.
    #[error("there is no function `{name}`: there is {}", quoted(.functions))]
    NoFunction {
        /// The name.
        name: String,
        /// What there is.
        functions: Vec<String>,
    },
    /// The tensors of a call do not fit into memory.
    #[error("the tensors of this call take {} MB to make, fill and look at, and there are {} MB for them", .needed / 1_000_000, .there / 1_000_000)]
    Memory {
        /// Bytes that they take.
        needed: u64,
        /// Bytes that they may take.
        there: u64,
    },
    /// An argument that is no tensor, and that nobody has named.
    #[error("argument {position} of `{function}` is no tensor but `{kind}`, and has to be named")]
    Unnamed {
        /// The function.
        function: String,
        /// Which argument.
        position: usize,
        /// Its type.
        kind: String,
    },
    /// The file of references cannot be used.
    #[error("`{}`: {why}", path.display())]
    Reference {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The process that calls cannot be started or listened to.
    #[error("failed to {what} the process that calls")]
    Worker {
        /// The act that failed.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// What the process said is no answer.
    #[error("the process that calls gave no answers that can be read")]
    Answers,
    /// A library of ours cannot be used.
    #[error(transparent)]
    Ffi(#[from] FfiError),
}

impl CallError {
    /// An argument that cannot be meant.
    pub(super) fn argument(text: &str, why: &str) -> Self {
        Self::Argument { text: text.to_owned(), why: why.to_owned() }
    }

    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Read { .. } | Self::Path { .. } => "path",
            Self::Variants(_)
            | Self::NoVariant { .. }
            | Self::AmbiguousVariant { .. }
            | Self::NoLibrary { .. }
            | Self::Libraries { .. } => "variants",
            Self::NotTvmFfi { .. } => "not-tvm-ffi",
            Self::OtherMachine { .. } => "other-machine",
            Self::UnknownVariant { .. } | Self::Argument { .. } | Self::NoFunction { .. } | Self::Unnamed { .. } => "usage",
            Self::Reference { .. } => "reference",
            Self::Worker { .. } | Self::Answers => "worker",
            Self::Memory { .. } => "memory",
            Self::Ffi(_) => "call",
        }
    }

    /// Whether the command line is what has to change.
    pub fn is_usage(&self) -> bool {
        self.code() == "usage" || matches!(self, Self::AmbiguousVariant { asked: true, .. })
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Variants(error) => error.hint().map(str::to_owned),
            Self::AmbiguousVariant { .. } | Self::NoVariant { .. } | Self::UnknownVariant { .. } => {
                Some("`--variant NAME` names one, `--device cuda` means those for CUDA".to_owned())
            }
            Self::Libraries { .. } => Some("name the file instead of the directory".to_owned()),
            Self::NotTvmFfi { .. } => {
                Some("`kiln call` calls functions of tvm-ffi kernels; kernels of torch are called in Python".to_owned())
            }
            Self::Memory { .. } => Some("`--shape` makes them smaller".to_owned()),
            Self::Unnamed { .. } => Some("name all arguments in order with `--arg`, such as `--arg tensor:4x8 --arg 1e-5`".to_owned()),
            _ => None,
        }
    }
}

fn quoted(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ") }
}
