//! `kiln doctor`: what a machine has, and whether builds would start on it.
//!
//! Two halves that do not know each other. The sections tell what was found, from [`kiln_toolchain::discover`] and by asking the
//! programs. The verdicts tell what a build would do, and only a build knows that: each is [`crate::build::prepare`] on the project,
//! or on a small kernel made for the question, followed by [`crate::build::would_start`]. So doctor and build cannot disagree.

mod devices;
mod kits;
mod places;
mod report;
mod stand_in;
mod tools;
mod verdict;

use std::path::{Path, PathBuf};

use kiln_format::BackendName;
use kiln_format::lock::Lock;
use kiln_toolchain::Error as ToolchainError;
use kiln_toolchain::discover::{Distribution, KitKind, View};
use kiln_toolchain::host::{HostCompiler, HostError};
use kiln_toolchain::system::{SystemError, SystemTorch};

use crate::backends::vendor;
use crate::build::{BuildOptions, Checked, Services};
use crate::build_error;

pub use self::devices::DevicesOf;
pub use self::report::{json, text};
pub use self::verdict::{FrameworkFrom, Start, Verdict};

/// What is known of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is there, and builds use it.
    Taken,
    /// It is there and could be used.
    Found,
    /// It is there and lacks something.
    Lacks,
    /// It was named, or is there, and cannot be used.
    Unusable,
    /// There is none.
    None,
    /// It was not looked at; the detail says why.
    Skipped,
}

impl State {
    /// The word for it, for people and for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Found => "found",
            Self::Lacks => "lacks",
            Self::Unusable => "unusable",
            Self::None => "none",
            Self::Skipped => "skipped",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What became of it.
    pub state: State,
    /// What it is: `g++`, `CUDA`, an index's address.
    pub name: String,
    /// Its release.
    pub version: Option<String>,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What led to it: an option, a variable, `PATH`.
    pub origin: Option<String>,
    /// What it lacks.
    pub lacks: Vec<String>,
    /// More about it, or why it is not used.
    pub detail: Option<String>,
    /// What to do to have what is missing: a command, or where it comes from.
    pub install: Option<String>,
    /// Digest of what it is made of, as lower-case hexadecimal text.
    pub identity: Option<String>,
}

impl Item {
    fn new(state: State, name: impl Into<String>) -> Self {
        let (version, path, origin, detail, install, identity) = Default::default();
        Self { state, name: name.into(), version, path, origin, lacks: Vec::new(), detail, install, identity }
    }
}

/// Things of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name for programs.
    pub key: &'static str,
    /// Its name for people.
    pub title: String,
    /// The things, those that count first.
    pub items: Vec<Item>,
    /// All places that were looked at.
    pub looked: Vec<String>,
}

/// Everything that `kiln doctor` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorReport {
    /// The machine, for people: its distribution.
    pub system: String,
    /// What it builds for: `x86_64-linux`.
    pub target: String,
    /// The project that the verdicts are about; none when they are about any kernel.
    pub project: Option<PathBuf>,
    /// What was found.
    pub sections: Vec<Section>,
    /// What builds would do, in the order of the backends.
    pub verdicts: Vec<Verdict>,
}

impl DoctorReport {
    /// Whether what was asked for would start: every backend that was named, else the project's build, else any.
    pub fn is_well(&self, asked: &[BackendName]) -> bool {
        let mut starts = self.verdicts.iter().map(|verdict| verdict.start.is_ok());
        if asked.is_empty() { starts.any(|starts| starts) } else { starts.all(|starts| starts) }
    }
}

/// An index, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexShown {
    /// Its address without credentials.
    pub address: String,
    /// Which setting named it.
    pub origin: String,
    /// Whether it is on this machine, and so answers without a network.
    pub is_local: bool,
}

/// Gives the compiler at a path, as a build that was told to use it would find it.
pub type CompilerAt<'a> = dyn Fn(&Path) -> Result<HostCompiler, HostError> + 'a;
/// Gives the torch of a Python.
pub type TorchOf<'a> = dyn Fn(&Path) -> Result<SystemTorch, SystemError> + 'a;
/// Gives the index that builds use.
pub type IndexOf<'a> = dyn Fn() -> Result<IndexShown, ToolchainError> + 'a;
/// Asks the index for one page.
pub type AskIndex<'a> = dyn Fn() -> Result<(), ToolchainError> + 'a;

/// What is examined, and how.
pub struct Examination<'a> {
    /// The machine.
    pub view: View<'a>,
    /// The backends that were asked for; none for all that matter.
    pub backends: &'a [BackendName],
    /// The project, when there is one here.
    pub project: Option<&'a Checked>,
    /// The directory for what is shared, if this user has one or there is a project that would keep it.
    pub store: Option<&'a Path>,
    /// A directory for the kernels that stand in for a project.
    pub scratch: &'a Path,
    /// What the user has pinned for all projects.
    pub user_lock: &'a Lock,
    /// What a build would be told; its filters and whether it fetches are set here.
    pub options: BuildOptions,
    /// What a build would work with.
    pub services: &'a Services<'a>,
    /// The Python that torch is to be taken from.
    pub torch_from: Option<&'a Path>,
    /// Why no build starts, whatever it is for: torch cannot be taken from that Python, say.
    pub refusal: Option<build_error::Report>,
    /// Finds other compilers than the one that builds use.
    pub compiler_at: &'a CompilerAt<'a>,
    /// Finds the torch of a Python.
    pub torch_of: &'a TorchOf<'a>,
    /// Finds the index.
    pub index: &'a IndexOf<'a>,
    /// Asks it.
    pub ask_index: &'a AskIndex<'a>,
    /// Gives the devices that a driver knows.
    pub devices: &'a DevicesOf<'a>,
    /// Whether the network may not be used.
    pub offline: bool,
}

/// Looks at everything.
pub fn examine(examination: &Examination<'_>) -> DoctorReport {
    let Examination { view, backends, .. } = examination;
    let distribution = Distribution::of(view);
    let mut sections = vec![tools::compilers(examination, &distribution), tools::pythons(examination, &distribution)];
    let kits =
        KitKind::ALL.into_iter().filter(|kind| backends.is_empty() || backends.iter().any(|backend| kit_of(*backend) == Some(*kind)));
    sections.extend(kits.map(|kind| kits::section(kind, examination, &distribution)));
    sections.extend(devices::section(backends, examination.devices));
    sections.push(tools::git(examination.services.git, &distribution));
    sections.push(places::store(examination.store));
    sections.push(places::index(examination));
    DoctorReport {
        system: distribution.name.clone(),
        target: examination.options.target.to_string(),
        project: examination.project.map(|checked| checked.project.root.clone()),
        sections,
        verdicts: verdict::all(examination, &distribution),
    }
}

/// The kit whose compiler a backend needs.
fn kit_of(backend: BackendName) -> Option<KitKind> {
    vendor(backend)?.kit()
}
