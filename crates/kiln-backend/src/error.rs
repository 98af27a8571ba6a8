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
    /// A compile or link flag that breaks the result wherever it is used.
    #[error("`{flag}` cannot be used: {reason}")]
    RefusedFlag {
        /// The flag as written.
        flag: String,
        /// What it would do.
        reason: String,
    },
    /// The step graph refused a step: a fault of Kiln.
    #[error("internal error in the step graph")]
    Graph(#[from] kiln_graph::GraphError),
}

impl BackendError {
    /// What the author can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownSource { hint, .. } => Some(hint.clone()),
            Self::RefusedFlag { .. } | Self::Graph(_) => None,
        }
    }
}
