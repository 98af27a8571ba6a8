//! The portability floor: extensions that load on old distributions, made with whatever compiler the host has.
//!
//! A [`Floor`] is a directory of link-time files that is put in front of the compiler's own:
//!
//! - stub libraries that offer only what the system libraries of the floor have, each name in the file and with the version that it
//!   has there;
//! - a hidden archive of *shims*: functions that newer headers ask for, on top of old ones;
//! - a hidden archive of those parts of the host's `libstdc++.a` that the floor's library lacks and that hold no state;
//! - linker scripts that join them. Their names are bare, so that the directory may lie anywhere.
//!
//! The C++ library and the unwinder stay shared. What nothing in the directory offers is not bound silently: it is an error before the
//! link ([`crate::stubs`]).
//!
//! This module describes: it gives the graph that makes the directory, and the link arguments that use it. The directory depends on
//! the compiler and the processor only, so all projects share one, named by a key.
//!
//! | module | its job |
//! |---|---|
//! | `level` | which floors there are |
//! | `libraries` | the stub libraries of a floor |
//! | `scripts` | linker scripts |
//! | `shims` | the sources of the shims, and how they are compiled |
//! | `nonshared` | which parts of `libstdc++.a` may be copied |
//! | `overlay` | the steps |
//! | `stored` | the floors of a user's cache |
//! | `lists` | making the embedded lists anew, and comparing them with real libraries |

mod level;
mod libraries;
pub mod lists;
mod nonshared;
mod overlay;
mod scripts;
mod shims;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kiln_graph::{Arg, Graph, GraphError, OutputRef, PathRef, Piece, RootBinding, RootKind, RootName, StepId};
use kiln_object::archive;
use kiln_object::elf::Machine;

use crate::host::HostCompiler;

pub use self::level::{FloorChoice, FloorLevel};
pub use self::nonshared::{Nonshared, Rejected, nonshared};
pub use self::shims::{SHIMS, Shim, lacking};
pub use self::stored::{StoredFloor, remove, remove_unused, stored};

/// Why there is no floor for a build.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// No lists for this processor.
    #[error("{level} is not known for {machine}")]
    Machine {
        /// The floor.
        level: FloorLevel,
        /// The processor.
        machine: Machine,
    },
    /// The step graph refused a step: a fault of Kiln.
    #[error("internal error in the step graph: {0}")]
    Graph(#[from] GraphError),
}

/// Arguments of a link that keeps to a floor. `before` stands behind the objects and `--as-needed`, in front of the framework's
/// libraries, `after` behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FloorLink {
    /// The search directory, first of all `-L`; then `-lstdc++`, so that the framework's own copies of the C++ runtime are never
    /// taken.
    pub before: Vec<Arg>,
    /// What an extension may need beside the framework.
    pub after: Vec<Arg>,
}

/// The floor of one compiler and processor.
#[derive(Debug)]
pub struct Floor {
    level: FloorLevel,
    machine: Machine,
    key: String,
    store: PathBuf,
    graph: Graph,
    directory: StepId,
    files: Vec<String>,
    linker_is_gold: bool,
}

impl Floor {
    /// The floor `level` for what `host` compiles for `machine`. Runs nothing and reads nothing.
    ///
    /// `store` is the directory that holds all floors of this user. `ambient` is what a compiler process needs to work and never
    /// decides its result.
    ///
    /// # Errors
    /// For a processor without lists.
    pub fn new(
        host: &HostCompiler,
        machine: Machine,
        level: FloorLevel,
        ambient: &BTreeMap<String, PathBuf>,
        store: &Path,
    ) -> Result<Self, FloorError> {
        let steps = overlay::steps(host, machine, level, ambient, &store.join(WORK))?;
        let mut key = blake3::Hasher::new();
        key.update(steps.directory.as_str().as_bytes());
        if let Some(archive) = &host.runtime.static_cxx {
            // The step names the file, not what is in it.
            key.update(archive.digest.as_bytes());
        }
        Ok(Self {
            level,
            machine,
            key: key.finalize().to_hex().chars().take(32).collect(),
            store: store.to_owned(),
            graph: steps.graph,
            directory: steps.directory,
            files: steps.files,
            linker_is_gold: host.args.iter().any(|arg| arg == "-fuse-ld=gold"),
        })
    }

    /// Which floor it is.
    pub fn level(&self) -> FloorLevel {
        self.level
    }

    /// The processor.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Digest of everything that decides what is in the directory, as lower-case hexadecimal text.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The graph whose run in [`Floor::work_dir`] makes the files.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The work directory for [`Floor::graph`], shared by all floors of the store.
    pub fn work_dir(&self) -> PathBuf {
        self.store.join(WORK)
    }

    /// Where the finished directory is.
    pub fn dir(&self) -> PathBuf {
        self.store.join(&self.key)
    }

    /// Whether the directory is there, whole.
    pub fn is_there(&self) -> bool {
        let dir = self.dir();
        self.files.iter().all(|file| dir.join(file).is_file())
    }

    /// The files of the directory in the order of their step's outputs.
    pub fn outputs(&self) -> impl Iterator<Item = OutputRef> {
        self.files.iter().map(|name| OutputRef { step: self.directory.clone(), name: name.clone() })
    }

    /// Puts the files that a run of the graph made into the store: whole or not at all. `made` gives the place of an output.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn keep(&self, made: &dyn Fn(&OutputRef) -> PathBuf) -> std::io::Result<()> {
        let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.store)?;
        for output in self.outputs() {
            std::fs::copy(made(&output), staging.path().join(&output.name))?;
        }
        let dir = self.dir();
        if dir.exists() {
            // It was not whole, or another process was quicker.
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::rename(staging.path(), &dir)?;
        // What was renamed is not to be removed.
        let _gone = staging.keep();
        Ok(())
    }

    /// The name by which arguments mention the directory, and where it is: its key stands for all its files.
    pub fn root(&self) -> (RootName, RootBinding) {
        let binding = RootBinding { dir: self.dir(), kind: RootKind::Immutable { digest: self.key.clone() } };
        (RootName::new("floor"), binding)
    }

    /// The arguments of a link. The root of [`Floor::root`] must be bound where they are used.
    pub fn link(&self) -> FloorLink {
        let (root, _) = self.root();
        let mut before = vec![Arg::text("-L").with(Piece::Path(PathRef { root, path: String::new() })), Arg::from("-Wl,--gc-sections")];
        if self.machine == Machine::X86_64 && !self.linker_is_gold {
            // Some distributions pack relocations by default, for which glibc 2.36 is needed. gold never does, and refuses the option;
            // GNU ld warns of it where it cannot pack, as for aarch64 in 2.40.
            before.push(Arg::from("-Wl,-z,nopack-relative-relocs"));
        }
        before.push(Arg::from("-lstdc++"));
        // The start code has a weak reference into the C library, which alone makes no linker need it: it would stay without a version.
        let after = ["-lgomp", "-Wl,--push-state", "-Wl,--no-as-needed", "-l:libc.so.6", "-Wl,--pop-state"];
        FloorLink { before, after: after.into_iter().map(Arg::from).collect() }
    }

    /// Every name that the directory offers. It must be there.
    ///
    /// # Errors
    /// The file that cannot be read, and why.
    pub fn names(&self) -> Result<BTreeSet<String>, (PathBuf, String)> {
        let mut names =
            libraries::names(self.level, self.machine).map_err(|cause| (PathBuf::from("the embedded lists"), cause.to_string()))?;
        for file in self.files.iter().filter(|file| file.ends_with(".a")) {
            let path = self.dir().join(file);
            let data = std::fs::read(&path).map_err(|cause| (path.clone(), cause.to_string()))?;
            let index = archive::symbol_index(&data).map_err(|cause| (path.clone(), cause.to_string()))?;
            names.extend(index.into_iter().map(|entry| entry.name.to_owned()));
        }
        Ok(names)
    }
}

/// Name of the work directory in the store.
const WORK: &str = "work";
