//! Why a component cannot be lowered to steps.

/// Why a component or an extension cannot be lowered to steps. Messages are for the author of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// A source whose extension no compiler of the backend takes.
    #[error("`{source_path}` is neither a source nor a header that {backend} compiles")]
    UnknownSource {
        /// The file, relative to the project.
        source_path: String,
        /// Name of the backend.
        backend: &'static str,
        /// What would be taken.
        hint: String,
    },
    /// A C++ level that the framework's headers refuse.
    #[error("`-std` asks for C++{level:02}, and the headers of {framework} need C++{least} or newer")]
    CxxLevel {
        /// The level that was asked for, as a year.
        level: u32,
        /// The least that works.
        least: u32,
        /// The framework and its release: `torch 2.15.0`.
        framework: String,
        /// What the author can do about it.
        hint: &'static str,
    },
    /// Torch's stable ABI, with a backend that it does not know.
    #[error("torch's stable ABI cannot be used here: {reason}")]
    NoStableAbi {
        /// What it does not know.
        reason: &'static str,
    },
    /// Nothing is left of the architectures that a component asks for, or the toolkit cannot make them.
    #[error("{message}")]
    Architectures {
        /// What was asked for and what there is.
        message: String,
        /// What the author can do about it.
        hint: Option<String>,
    },
    /// The toolkit does not go with the host compiler.
    #[error("{message}")]
    HostLimit {
        /// Both versions.
        message: String,
        /// Which one to take instead.
        hint: String,
    },
    /// A file or directory of the project whose name the device compiler does not take.
    #[error("{compiler} does not take `{path}`, which has `{letter}` in its name")]
    DevicePath {
        /// The compiler's driver.
        compiler: &'static str,
        /// The file, relative to the project.
        path: String,
        /// What it does not take.
        letter: char,
    },
    /// A tool that is not part of the toolkit is not there.
    #[error("{message}")]
    MissingTool {
        /// What it is for, and which it is.
        message: String,
        /// How to have it.
        hint: String,
    },
    /// A flag that does not work with the toolkit of this variant.
    #[error("`{flag}` cannot be used with this toolkit: {reason}")]
    ToolkitFlag {
        /// The flag as written.
        flag: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A flag makes the compiler look at the processor of this machine, and nothing says which one that is: what was made on another machine
    /// could be taken for it.
    #[error("`{flag}` compiles for the processor of this machine, and `{}` does not say which one that is", file.display())]
    UnknownProcessor {
        /// The flag.
        flag: String,
        /// Where the answer should be.
        file: std::path::PathBuf,
    },
    /// The step graph refused a step: a fault of Kiln.
    #[error("internal error in the step graph")]
    Graph(#[from] kiln_graph::GraphError),
}

impl BackendError {
    /// What the author can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownSource { hint, .. } | Self::HostLimit { hint, .. } | Self::MissingTool { hint, .. } => Some(hint.clone()),
            Self::Architectures { hint, .. } => hint.clone(),
            Self::CxxLevel { hint, .. } => Some((*hint).to_owned()),
            Self::NoStableAbi { .. } => Some("leave the backend out of `stable-abi`".to_owned()),
            Self::UnknownProcessor { .. } => Some("name the processor, as in `-march=x86-64-v3`".to_owned()),
            Self::DevicePath { .. } => Some("rename it".to_owned()),
            Self::ToolkitFlag { .. } | Self::Graph(_) => None,
        }
    }
}
