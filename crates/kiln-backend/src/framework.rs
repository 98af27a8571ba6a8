//! What every framework offers to planning and to backends.

use kiln_graph::OutputRef;

use crate::backend::{FrameworkPart, Lowering};
use crate::compile::{CompileProfile, ObjectFile};
use crate::error::BackendError;

/// An ABI that extensions speak, bound to one variant.
pub trait Framework: Send + Sync {
    /// Adds what is generated for the variant and gives the profile of its units.
    ///
    /// `uses_framework` is false for components that do not list the framework in `depends`: their profile holds nothing
    /// of it, so that they are compiled once for all versions.
    ///
    /// # Errors
    /// When the graph refuses a step.
    fn profile(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, uses_framework: bool) -> Result<CompileProfile, BackendError>;

    /// Adds the steps that link `objects` into the extension and gives the file.
    ///
    /// # Errors
    /// When the graph refuses a step.
    fn link(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, objects: &[ObjectFile]) -> Result<OutputRef, BackendError>;

    /// File name of the extension in its variant directory.
    fn extension_file_name(&self) -> String;
}
