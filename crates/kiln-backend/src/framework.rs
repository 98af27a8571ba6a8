//! What every framework offers to planning and to backends.

use kiln_graph::{OutputRef, RootBinding, RootName};
use kiln_toolchain::LibraryExports;

use crate::backend::{Component, FrameworkPart, Lowering};
use crate::compile::{CompileProfile, ObjectFile};
use crate::error::BackendError;

/// An ABI that extensions speak, bound to one variant.
pub trait Framework: Send + Sync {
    /// The tree of its headers: its name in the graph and its place.
    fn root(&self) -> (RootName, RootBinding);

    /// The trees of its headers: that of [`Framework::root`], and those of packages beside it.
    fn roots(&self) -> Vec<(RootName, RootBinding)> {
        vec![self.root()]
    }

    /// What its libraries export.
    fn exports(&self) -> &[LibraryExports];

    /// Adds what is generated for the variant and gives the profile of a component's units.
    ///
    /// The profile of a component that does not list the framework in `depends` holds nothing of it, so that its units are
    /// compiled once for all versions.
    ///
    /// # Errors
    /// When the component asks for a C++ level that the framework's headers refuse, or the graph refuses a step.
    fn profile(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, component: &Component) -> Result<CompileProfile, BackendError>;

    /// Adds the steps that link `objects` into the extension and gives the file.
    ///
    /// # Errors
    /// When the graph refuses a step.
    fn link(&self, lowering: &mut Lowering<'_>, part: &FrameworkPart, objects: &[ObjectFile]) -> Result<OutputRef, BackendError>;
}
