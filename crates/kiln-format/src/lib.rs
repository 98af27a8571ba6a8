//! What Kiln's files say, as pure data: `build.toml`, variant names, `metadata.json` and the digest.
//!
//! Nothing here spawns, prints, reads the environment or touches the network; only [`Digest::of_directory`] and
//! [`Digest::validate`] read files, below a directory that the caller names.
//!
//! Where to start:
//! * [`build::parse`] turns the text of a `build.toml` into a [`Build`] and a list of [`Diagnostic`]s that point into the file;
//! * [`render`] prints diagnostics for people, [`SourceFile::report`] gives them as data;
//! * [`Variant`] parses from and prints to the name of a variant's directory, [`System`] says what a loader accepts;
//! * [`Metadata`] reads and writes `metadata.json`, [`OpsId`] is the name that the shared object, the module and the ops share;
//! * [`lock::Lock`] reads and writes `kiln.lock`;
//! * [`Digest`] hashes a variant directory and compares it with what the metadata promise.

pub mod build;
pub mod lock;
pub mod metadata;
pub mod python_registry;
pub mod variant;

mod arch;
mod backend;
mod code;
mod dependency;
mod diagnostic;
mod digest;
#[doc(hidden)]
pub mod fuzzing;
mod git_url;
mod name;
mod ops_id;
mod project_path;
mod render;
mod source;
mod span;
mod suggest;
mod text_value;
mod version;

pub use crate::arch::{ArchError, CudaCapability, CudaSuffix, NpuArch, RocmArch};
pub use crate::backend::{BackendName, UnknownBackend};
pub use crate::build::{Build, Parsed};
pub use crate::dependency::{Dependency, KernelDependency, KernelDependencyVersion, RepoId, RepoIdError, UnknownDependency};
pub use crate::diagnostic::{Diagnostic, DiagnosticReport, Level, first_of_many};
pub use crate::digest::{Digest, DigestAlgorithm, DigestError, DigestViolation};
pub use crate::git_url::{GitUrl, GitUrlError};
pub use crate::metadata::Metadata;
pub use crate::name::{KernelName, KernelNameError};
pub use crate::ops_id::{OpsId, OpsIdError};
pub use crate::project_path::{ProjectPath, ProjectPathError};
pub use crate::python_registry::PythonDependency;
pub use crate::render::{render, visible};
pub use crate::source::{LineColumn, SourceFile};
pub use crate::span::{Span, Spanned};
pub use crate::suggest::excerpt;
pub use crate::variant::{System, Variant};
pub use crate::version::{MajorMinor, Version, VersionError};
