//! Why a command failed: a code, a reason, and a hint where there is one.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use kiln_backend::ProvideError;
use kiln_format::{BackendName, OpsIdError};
use kiln_graph::WorkDirError;
use kiln_toolchain::discover::Need;
use kiln_toolchain::floor::{FloorChoice, FloorError, FloorLevel};
use kiln_toolchain::host::HostError;
use thiserror::Error;

use crate::dependencies::HeaderError;
use crate::lock_file::LockFileError;
use crate::matrix::{ChooseError, MatrixError};
use crate::ops_id::SourceError;
use crate::plan::PlanError;
use crate::project::ProjectError;
use crate::record::RecordError;
use crate::replace::ReplaceError;
use crate::shipped::ShippedError;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The directory is no project.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The configuration has errors; the project's remarks say which.
    #[error("the configuration has {errors} error{}", if *errors == 1 { "" } else { "s" })]
    Configuration {
        /// How many.
        errors: usize,
    },
    /// The built-in matrix is malformed: a fault of Kiln.
    #[error("internal error in the built-in matrix: {0}")]
    Matrix(#[from] MatrixError),
    /// A filter names something that does not exist.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// A kernel for tvm-ffi has a component of a backend that tvm-ffi does not have.
    #[error("tvm-ffi has no {backend}: kernels for {backend} are built for torch alone")]
    NoTvmFfi {
        /// The backend.
        backend: BackendName,
    },
    /// A variant that was named cannot be built here.
    #[error("`{variant}` cannot be built: {reason}")]
    CannotBuild {
        /// Its name.
        variant: String,
        /// Why.
        reason: String,
    },
    /// Nothing is left to build.
    #[error("no variant is left to build")]
    NothingSelected {
        /// Why, each reason once.
        reasons: Vec<String>,
    },
    /// A backend was asked for by name, and what it has cannot be built here.
    #[error("no variant of backend `{backend}` can be built here")]
    NamedBackend {
        /// Its name.
        backend: BackendName,
        /// Why, each reason once.
        reasons: Vec<String>,
    },
    /// Variants have to be loaded, and this machine cannot.
    #[error("{} of {variants} variant{} cannot be loaded on this machine", .reasons.len(), if *variants == 1 { "" } else { "s" })]
    NotLoadable {
        /// How many variants there are.
        variants: usize,
        /// Why, for each that cannot be loaded.
        reasons: Vec<String>,
    },
    /// A file of the package cannot be shipped.
    #[error(transparent)]
    Shipped(#[from] ShippedError),
    /// A source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The unique id is malformed.
    #[error(transparent)]
    OpsId(#[from] OpsIdError),
    /// A toolchain cannot be provided.
    #[error(transparent)]
    Toolchain(#[from] kiln_toolchain::Error),
    /// The host compiler cannot be used.
    #[error(transparent)]
    Host(#[from] kiln_toolchain::host::HostError),
    /// A vendor's toolkit cannot be had or used. The vendor's crate says code, reason and hint.
    #[error("{message}")]
    Toolkit {
        /// A stable name for programs and searches.
        code: &'static str,
        /// What is missing or wrong.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
        /// What would have to be installed.
        need: Option<Need>,
        /// The cause.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// `--launcher` beside a compiler that was chosen with a launcher of its own.
    #[error("`{}` cannot stand in front of `{}`, which has a launcher of its own", launcher.display(), compiler.display())]
    TwoLaunchers {
        /// What `--launcher` names.
        launcher: PathBuf,
        /// The compiler.
        compiler: PathBuf,
    },
    /// Headers that a kernel depends on cannot be had.
    #[error(transparent)]
    Headers(#[from] HeaderError),
    /// There is no floor for this machine.
    #[error(transparent)]
    Floor(#[from] FloorError),
    /// The files of a floor cannot be made.
    #[error("cannot make the files of {level}: {cause}")]
    FloorFailed {
        /// The floor.
        level: FloorLevel,
        /// The first step that failed, and what it said.
        cause: String,
    },
    /// The files of a floor cannot be kept.
    #[error("cannot write to `{}`", path.display())]
    FloorStore {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A release that asks for newer systems than others.
    #[error("a release keeps to `{}`, and `floor` in `kiln.toml` is `{choice}`", FloorChoice::default())]
    ReleaseFloor {
        /// What the project says.
        choice: FloorChoice,
    },
    /// A variant cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The work directory cannot be used.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// The output directory cannot be made or written to.
    #[error("failed to {what} the output directory `{}`", path.display())]
    OutDir {
        /// The act that failed.
        what: &'static str,
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Something that is no directory stands in the place of the output directory or of one above it.
    #[error("failed to make the output directory `{}`: `{}` is not a directory", path.display(), by.display())]
    OutDirBlocked {
        /// The directory.
        path: PathBuf,
        /// What stands in the way.
        by: PathBuf,
    },
    /// The output directory lies where the next build would read it.
    #[error("the output directory `{}` lies in {place}", path.display())]
    OutDirInside {
        /// The directory.
        path: PathBuf,
        /// What it lies in, for people.
        place: &'static str,
    },
    /// Something that is no directory, and that Kiln has not made, stands where Kiln makes one.
    #[error("`{}` is not a directory, and a build makes one there", path.display())]
    PlaceTaken {
        /// The path.
        path: PathBuf,
    },
    /// Files that no build has made stand where a variant is to be.
    #[error("`{}` is no variant: it has no `metadata.json`, but other files", path.display())]
    NoVariant {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is no directory stands in the place of the work directory.
    #[error("`{}` is not a directory, and a build works there", path.display())]
    WorkDirTaken {
        /// The path.
        path: PathBuf,
    },
    /// The copies that units are measured with cannot be written.
    #[error("failed to write `{}`, which compilers of this project are to read", path.display())]
    LintPlace {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A source, or what was made of it, cannot be read.
    #[error("failed to read `{}` as text", path.display())]
    ConvertedFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// What a killed build left in the output directory cannot be put right.
    #[error(transparent)]
    Recover(#[from] ReplaceError),
    /// The build record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The user wants to stop.
    #[error("interrupted before anything was built")]
    Interrupted,
    /// A lock file cannot be read or changed.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
}

impl BuildError {
    /// A stable name for programs and searches.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Project(ProjectError::NotUtf8 { .. }) => "encoding",
            Self::Project(_) => "project",
            Self::Configuration { .. } => "configuration",
            Self::Matrix(_) => "internal",
            Self::Choose(_) | Self::NothingSelected { .. } | Self::NamedBackend { .. } => "selection",
            Self::CannotBuild { .. } => "cannot-build",
            Self::NoTvmFfi { .. } => "tvm-ffi-backend",
            Self::NotLoadable { .. } => "not-loaded",
            Self::Shipped(_) => "package",
            Self::Source(_) => "source",
            Self::OpsId(_) => "unique-id",
            Self::Toolchain(error) => toolchain_code(error),
            Self::Host(HostError::None { .. }) => "no-compiler",
            Self::Host(HostError::Io { .. }) => "store",
            Self::Host(HostError::Interrupted) => "interrupted",
            Self::Host(_) => "host-compiler",
            Self::TwoLaunchers { .. } => "launcher",
            Self::Toolkit { code, .. } => code,
            Self::Headers(_) => "no-headers",
            Self::Floor(_) => "internal",
            Self::FloorFailed { .. } => "host-compiler",
            Self::FloorStore { .. } => "store",
            Self::ReleaseFloor { .. } => "configuration",
            Self::Plan(error) => error.code(),
            Self::WorkDir(WorkDirError::Interrupted { .. }) | Self::Interrupted => "interrupted",
            Self::WorkDir(_) | Self::WorkDirTaken { .. } | Self::LintPlace { .. } | Self::ConvertedFile { .. } => "work-directory",
            Self::LockFile(_) => "lock",
            Self::OutDirInside { .. } => "usage",
            Self::OutDir { .. }
            | Self::OutDirBlocked { .. }
            | Self::PlaceTaken { .. }
            | Self::NoVariant { .. }
            | Self::Recover(_)
            | Self::Record(_) => "output",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project(error) => error.hint(),
            Self::Choose(error) => Some(error.hint()),
            Self::CannotBuild { .. } => Some("choose others with `--backend` or `--variant`".to_owned()),
            Self::NoTvmFfi { backend } => Some(format!("take {backend} out of `backends`, or leave it out of this build with `--backend`")),
            Self::NamedBackend { backend, .. } => Some(format!("leave {backend} out, or build what can be built with `--all`")),
            Self::NothingSelected { .. } => Some("`kiln list-variants --reasons` shows what there is".to_owned()),
            Self::NotLoadable { .. } => Some(
                "without `--require-load-check` they are built and count as linked; the `kernels` package shows that they load".to_owned(),
            ),
            Self::Toolchain(error) => error.hint(),
            Self::Host(error) => error.hint(),
            Self::TwoLaunchers { .. } => Some("leave out one of the two: `--launcher`, or the one in `--cxx` or `CXX`".to_owned()),
            Self::Toolkit { hint, .. } => hint.clone(),
            Self::Headers(error) => Some(error.hint()),
            Self::FloorFailed { .. } => Some("choose another compiler with `--cxx`".to_owned()),
            Self::ReleaseFloor { .. } => Some("remove `floor` from `[build]`, or build without `--release`".to_owned()),
            Self::Plan(error) => error.hint(),
            Self::Shipped(error) => error.hint().map(str::to_owned),
            Self::OutDir { .. } | Self::OutDirBlocked { .. } => Some("`--out DIR` puts the variants elsewhere".to_owned()),
            Self::OutDirInside { .. } => Some("choose a directory outside it with `--out`".to_owned()),
            Self::PlaceTaken { .. } | Self::NoVariant { .. } | Self::WorkDirTaken { .. } => {
                Some("remove it, or give it another name".to_owned())
            }
            Self::Recover(error) => error.hint().map(str::to_owned),
            Self::WorkDir(WorkDirError::Io { .. }) => {
                Some("work needs a directory there, or a cache directory that can be written to".to_owned())
            }
            _ => None,
        }
    }
}

impl From<ProvideError> for BuildError {
    fn from(error: ProvideError) -> Self {
        match error {
            ProvideError::Toolkit { code, message, hint, need, source } => Self::Toolkit { code, message, hint, need, source },
            ProvideError::Host(error) => Self::Host(error),
            ProvideError::Fetch(error) => Self::Toolchain(error),
        }
    }
}

/// The code of a toolchain that cannot be provided: what the user has to look at.
fn toolchain_code(error: &kiln_toolchain::Error) -> &'static str {
    use kiln_toolchain::Error as E;
    match error {
        E::NoIndex { .. } => "no-index",
        E::IndexUrl { .. } | E::PipConfig { .. } | E::Certificates { .. } | E::Proxy { .. } | E::Netrc { .. } => "network-settings",
        E::UnknownTorch { .. } => "unknown-torch",
        E::UnknownTvmFfi { .. } => "unknown-tvm-ffi",
        E::UnknownTorchNpu { .. } => "unknown-torch-npu",
        E::Catalog { .. } => "internal",
        E::Offline { .. } => "offline",
        E::Interrupted => "interrupted",
        E::Unvouched { .. } | E::TooLarge { .. } | E::Make(_) => "wheel",
        E::LockDiffers { .. } => "lock",
        E::Fetch { .. } => "fetch",
        E::NoAccess { .. } => "index-access",
        E::HeadersDiffer { .. } => "torch-build",
        E::IndexDir { .. }
        | E::NoProject { .. }
        | E::NoWheel { .. }
        | E::NotListed { .. }
        | E::ListedOtherwise { .. }
        | E::IndexPage { .. } => "index",
        E::WrongWheel { .. } | E::Changed { .. } | E::Zip { .. } | E::Record { .. } | E::Member { .. } => "wheel",
        E::Store { .. } | E::Damaged { .. } => "store",
    }
}

/// A failure as it is told: to people line by line, to programs as an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A stable name for programs and searches.
    pub code: &'static str,
    /// What failed.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl Report {
    /// The report of `error`, to which somebody else knows code and hint.
    pub(crate) fn of(error: &dyn StdError, code: &'static str, hint: Option<String>) -> Self {
        Self { code, message: error.to_string(), causes: causes(error), hint }
    }
}

impl From<&BuildError> for Report {
    fn from(error: &BuildError) -> Self {
        let report = Self::of(error, error.code(), error.hint());
        match error {
            BuildError::NothingSelected { reasons }
            | BuildError::NamedBackend { reasons, .. }
            | BuildError::NotLoadable { reasons, .. } => Self { causes: reasons.clone(), ..report },
            _ => report,
        }
    }
}

/// The causes of an error, outermost first, without those that an earlier message already says.
pub fn causes(error: &dyn StdError) -> Vec<String> {
    let mut said = error.to_string();
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.contains(&text) {
            causes.push(text.clone());
            said.push_str(&text);
        }
        next = cause.source();
    }
    causes
}

/// An error and its [`causes`] in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    std::iter::once(error.to_string()).chain(causes(error)).collect::<Vec<_>>().join(": ")
}
