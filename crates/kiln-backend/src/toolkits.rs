//! What a vendor's crate offers to whoever lists vendors: which toolkits there are of it, and the backend of each.
//!
//! A vendor starts no process and knows no option, file or index but through [`Sources`]. What it makes of them is a [`Backend`].

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_format::build::Kernel;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build, MajorMinor, Version};
use kiln_graph::{PathRef, RootName};
use kiln_toolchain::LibraryExports;
#[cfg(feature = "wheels")]
use kiln_toolchain::Provisioner;
use kiln_toolchain::discover::{Distribution, Findings, KitKind, Need, View};
use kiln_toolchain::host::{HostCompiler, HostError};

use crate::backend::{Backend, WrongCode};
use crate::flags::FlagList;

/// Finds out what the compiler at a path is.
pub type CompilerAt<'a> = dyn Fn(&Path) -> Result<HostCompiler, HostError> + Sync + 'a;

/// Runs a program with arguments, in a clean environment and for a limited time, and gives what it says on both its streams; none when it
/// cannot be run or fails. For questions to a toolkit that its files do not answer.
pub type Ask<'a> = dyn Fn(&Path, &[&str]) -> Option<String> + Sync + 'a;

/// Where toolkits may come from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The directories that options named, absolute, by backend. Nothing else counts then for the backend.
    pub named: &'a BTreeMap<BackendName, PathBuf>,
    /// The caller's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Where to keep what was found.
    pub cache_dir: &'a Path,
    /// Finds out what a compiler is.
    pub compiler_at: &'a CompilerAt<'a>,
    /// Asks a program.
    pub ask: &'a Ask<'a>,
    /// Fetches wheels.
    #[cfg(feature = "wheels")]
    pub provisioner: &'a Provisioner<'a>,
}

impl<'a> Sources<'a> {
    /// The directory that an option named for `backend`.
    pub fn named(&self, backend: BackendName) -> Option<&'a Path> {
        self.named.get(&backend).map(PathBuf::as_path)
    }

    /// This machine, for discovery.
    pub fn view(&self) -> View<'a> {
        View { root: Path::new("/"), environment: self.environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH }
    }
}

/// Whether there is a toolkit for these variants of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The kernel.
    pub build: &'a Build,
    /// What the variants run on.
    pub compute: Compute,
    /// What the machine that they run on is called in the catalog: `linux-x86_64`.
    pub platform: &'a str,
    /// What `kiln.toml` says in the vendor's table, by key, as [`Toolkits::settings`] took it.
    pub settings: &'a BTreeMap<String, String>,
}

/// Which toolkit variants want, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The kernel.
    pub build: &'a Build,
    /// The project's directory, absolute.
    pub project_dir: &'a Path,
    /// What the variants run on.
    pub compute: Compute,
    /// What the machine that they run on is called in the catalog: `linux-x86_64`.
    pub platform: &'a str,
    /// What `kiln.toml` says in the vendor's table, by key, as [`Toolkits::settings`] took it.
    pub settings: &'a BTreeMap<String, String>,
    /// What they need of torch.
    pub torch: TorchWanted<'a>,
    /// What `--arch` asks of this vendor, entries with commas between them, as [`Toolkits::check_arch`] took it.
    pub arch: Option<&'a str>,
    /// Whether things may be fetched and compilers asked; a plan does without.
    pub fetch: bool,
    /// Whether a plan is wanted that no toolkit of this machine could carry out: see [`Toolkits::plans_without_toolkit`].
    pub bare: bool,
}

impl Wanted<'_> {
    /// Where a kernel includes from, in the order in which its units do: its own directories, then the project's `csrc`.
    pub fn include_dirs(&self, kernel: &Kernel) -> Vec<PathRef> {
        let own = kernel.include.iter().map(|dir| self.in_project(dir.value.as_str()));
        own.chain(self.project_dir.join(CSRC).is_dir().then(|| self.in_project(CSRC))).collect()
    }

    /// A file or directory of the project.
    pub fn in_project(&self, path: &str) -> PathRef {
        PathRef { root: RootName::new(PROJECT), path: path.to_owned() }
    }
}

/// The root that the project's files are relative to.
pub const PROJECT: &str = "project";
/// The directory of a project whose headers every component may include.
pub const CSRC: &str = "csrc";

/// A key of the table of `kiln.toml` that is called like the backend. Its value is a string.
#[derive(Clone, Copy, Debug)]
pub struct SettingKey {
    /// The key.
    pub name: &'static str,
    /// Refuses a value that cannot be used, with the reason for people.
    pub check: fn(&str) -> Result<(), String>,
}

/// What variants need of torch.
#[derive(Clone, Copy, Debug, Default)]
pub struct TorchWanted<'a> {
    /// The newest release that they are compiled with; none when they are not built against torch.
    pub newest: Option<&'a Version>,
    /// Whether a variant of this backend, of whatever release, includes torch's C++ headers.
    pub cxx: bool,
    /// Where the packages are of a Python whose torch stands for all releases.
    pub installed: Option<&'a Path>,
}

/// A toolkit that a build would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToolkit {
    /// What it is called: `CUDA`.
    pub name: &'static str,
    /// Its release.
    pub version: Version,
    /// Where it is.
    pub place: FoundIn,
}

/// Where a toolkit that a build would find is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundIn {
    /// On the machine.
    Machine,
    /// In the store.
    Store,
    /// In wheels that the index lists.
    Index,
}

/// What the build record says of a toolkit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolkitRecord {
    /// Its key in the record: `cuda`.
    pub name: &'static str,
    /// Who provides it: `wheels` or `system`.
    pub provider: &'static str,
    /// Its release.
    pub version: String,
    /// Digest that changes whenever it does.
    pub identity: String,
    /// The tree of wheels that it is, whose terms the record repeats; none for one of the machine.
    pub tree: Option<PathBuf>,
    /// The compiler and its release, where it compiles the host's part too.
    pub compiles_all: Option<String>,
}

/// Why a vendor gives no backend.
#[derive(Debug, thiserror::Error)]
pub enum ProvideError {
    /// There is no toolkit, or it cannot be used.
    #[error("{message}")]
    Toolkit {
        /// A stable name for programs and searches, which `docs/errors.md` explains.
        code: &'static str,
        /// What is missing or wrong.
        message: String,
        /// What the user can do about it.
        hint: Option<String>,
        /// What would have to be installed.
        need: Option<Need>,
        /// The cause.
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// The toolkit's own compiler of host code does not work.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Something cannot be fetched.
    #[cfg(feature = "wheels")]
    #[error(transparent)]
    Fetch(#[from] kiln_toolchain::Error),
}

impl ProvideError {
    /// With a code that `docs/errors.md` explains, and what is missing or wrong: lower case, without full stop.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self::Toolkit { code, message: message.into(), hint: None, need: None, source: None }
    }

    /// With what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, new: impl Into<Option<String>>) -> Self {
        if let Self::Toolkit { hint, .. } = &mut self {
            *hint = new.into();
        }
        self
    }

    /// With what would have to be installed.
    #[must_use]
    pub fn with_need(mut self, new: Need) -> Self {
        if let Self::Toolkit { need, .. } = &mut self {
            *need = Some(new);
        }
        self
    }

    /// With its cause.
    #[must_use]
    pub fn with_source(mut self, new: impl StdError + Send + Sync + 'static) -> Self {
        if let Self::Toolkit { source, .. } = &mut self {
            *source = Some(Box::new(new));
        }
        self
    }

    /// What is wrong and what the user can do about it, in one line.
    pub fn told(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// What the user can do about it, where the vendor says so.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Toolkit { hint, .. } => hint.clone(),
            Self::Host(error) => error.hint(),
            #[cfg(feature = "wheels")]
            Self::Fetch(error) => error.hint(),
        }
    }
}

impl Sources<'_> {
    /// How to have a toolkit of `release` where none of those that were found is one: what installs it, or the variables that name one.
    pub fn remedy(&self, found: &Findings, release: MajorMinor) -> String {
        let install = Distribution::of(&self.view()).install(found.kind.need()).unwrap_or_default();
        let named: Vec<&str> = found.kind.variables().collect();
        format!("{install} {release}, or name its directory in {}", named.join(" or "))
    }
}

/// What else was found, as the end of a message.
pub fn also(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(": {}", found.join("; ")) }
}

/// The toolkits of one vendor.
pub trait Toolkits: Sync {
    /// The name in `build.toml`.
    fn backend(&self) -> BackendName;

    /// What discovery calls its toolkits; none for a vendor without.
    fn kit(&self) -> Option<KitKind> {
        None
    }

    /// The option that names the directory of one, where there is such an option.
    fn option(&self) -> Option<&'static str> {
        None
    }

    /// The keys of its table in `kiln.toml`.
    fn settings(&self) -> &'static [SettingKey] {
        &[]
    }

    /// The extensions of sources that its components compile, beside those of C and C++.
    fn unit_extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// How the flags of its device compiler read.
    fn flag_list(&self) -> FlagList {
        FlagList::Host
    }

    /// Names of empty sources that are a kernel of it, for asking what a build would do without a project.
    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.cpp"]
    }

    /// Whether kernels for tvm-ffi may have components of it.
    fn has_tvm_ffi(&self) -> bool {
        true
    }

    /// Why there are no extensions of it under torch's stable ABI, for people; none where there are.
    fn no_stable_abi(&self) -> Option<&'static str> {
        None
    }

    /// Whether it may compile for another operating system than the machine's: [`Toolkits::has`] says whether it can.
    fn crosses_systems(&self) -> bool {
        false
    }

    /// Whether [`Toolkits::provide`] gives a backend for a plan where there is no toolkit.
    fn plans_without_toolkit(&self) -> bool {
        false
    }

    /// Checks the directory that an option named, if one was.
    ///
    /// # Errors
    /// When there is no toolkit in it, or one that lacks a part.
    fn check_named(&self, sources: &Sources<'_>) -> Result<(), ProvideError> {
        let _ = sources;
        Ok(())
    }

    /// Refuses a directory, of a project or of headers, that its compilers cannot work in.
    ///
    /// # Errors
    /// What they do not take.
    fn check_dir(&self, dir: &Path) -> Result<(), ProvideError> {
        let _ = dir;
        Ok(())
    }

    /// Whether an entry of `--arch` is one of its architectures, well written or not.
    fn claims_arch(&self, entry: &str) -> bool {
        let _ = entry;
        false
    }

    /// Checks what `--arch` asks of it, entries with commas between them.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn check_arch(&self, list: &str) -> Result<(), String> {
        let _ = list;
        Ok(())
    }

    /// Whether a toolkit for what is asked can be had.
    ///
    /// # Errors
    /// Why not, for people: what was looked for and where, and how to have it.
    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let _ = (asked, sources);
        Ok(())
    }

    /// The backend of the toolkit for the variants of one build that run on [`Wanted::compute`].
    ///
    /// # Errors
    /// When there is no such toolkit, or it cannot be fetched or used.
    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError>;

    /// Which toolkit [`Toolkits::provide`] would find, without fetching it; none where that is not worth a word.
    ///
    /// # Errors
    /// Those with which a fetch would end.
    fn would_provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Option<FoundToolkit>, ProvideError> {
        let _ = (wanted, sources);
        Ok(None)
    }

    /// Whether extensions load on a machine without its devices: with nothing beside the framework but what
    /// [`Backend::preloads`] names.
    fn loads_without_device(&self) -> bool {
        false
    }

    /// Torch's libraries that only its build for this backend has: see [`TorchPart::stand_ins`](crate::TorchPart::stand_ins).
    fn torch_stand_ins(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What is known of the libraries that its extensions need and that no catalog has, for checks of extensions that come from anywhere.
    fn known_exports(&self, environment: &BTreeMap<String, String>) -> Vec<LibraryExports> {
        let _ = environment;
        Vec::new()
    }

    /// Whether the library with this SONAME offers `name`, where nothing but a rule tells it; none for a library that is not its own.
    fn offers(&self, soname: &str, name: &str) -> Option<bool> {
        let _ = (soname, name);
        None
    }

    /// Compares the device code in an extension for `compute` with the architectures that its metadata name, if they name any.
    ///
    /// # Errors
    /// When there is no code for one of them, or none at all where there must be some whatever metadata name.
    fn verify_recorded(&self, compute: Compute, archs: &[String], file: &[u8]) -> Result<(), WrongCode> {
        let _ = (compute, archs, file);
        Ok(())
    }
}
