//! Finding and identifying the host C++ compiler.
//!
//! [`find`] resolves the compiler that was chosen, or the first of the usual ones on PATH, without starting a process; the
//! `cc` crate, wrapped here and nowhere else, says how to call it and of which family it is; the compiler itself is
//! asked for the rest. All of it is kept in a cache file and believed as long as no file involved has changed, so that
//! a build with nothing to do starts no process.

mod cache;
mod choice;
mod machine;
mod probe;
mod runtime;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kiln_format::Version;
use kiln_graph::Interrupt;
use kiln_object::elf::Machine;
use serde::{Deserialize, Serialize};

use self::choice::Resolved;
pub(crate) use self::choice::{is_launcher, is_program, is_usual_name, on_path};
pub use self::runtime::{HostRuntime, RuntimeError, RuntimeFile};
use crate::discover::Need;

/// A compiler that somebody named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What was named: a name on PATH, a path, or one of these with a launcher in front and arguments behind
    /// (`ccache g++-12 -m64`).
    pub value: String,
    /// Who named it, for messages: `--cxx`, `kiln.toml`, `CXX`.
    pub origin: String,
}

/// Where and what to look for. Nothing else is read from the caller's environment.
#[derive(Clone, Debug, Default)]
pub struct HostSearch {
    /// The C++ compiler that was chosen, by whatever counts most: `--cxx`, then `kiln.toml`, then `CXX`.
    pub cxx: Option<Choice>,
    /// The C compiler that was chosen (`CC`); its C++ sibling is taken when `cxx` says nothing.
    pub cc: Option<Choice>,
    /// The processor to compile for; none for that of this machine.
    pub machine: Option<Machine>,
    /// The value of `PATH`.
    pub path: OsString,
    /// What compilers need beside `PATH` to work but that must not decide what they do: `HOME` and `TMPDIR`, say.
    pub ambient: Vec<(OsString, OsString)>,
    /// Where temporary files go when the cache cannot be written to.
    pub scratch: Option<PathBuf>,
    /// How long a compiler may take for one answer; none for the usual [`ANSWER_LIMIT`](crate::system::ANSWER_LIMIT).
    pub limit: Option<Duration>,
    /// Ends the search: whoever wants to stop need not wait for a compiler that hangs.
    pub interrupt: Interrupt,
}

/// Who made a compiler, as far as its options go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// GCC.
    Gnu,
    /// Clang.
    Clang,
}

/// A host C++ compiler and the runtime that it links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostCompiler {
    /// The program to start, absolute. Not resolved through links: compilers and launchers look at the name by which they
    /// are called.
    pub path: PathBuf,
    /// Arguments that come before all others: the compiler itself behind a launcher, and what was chosen with it.
    pub args: Vec<String>,
    /// Whose options it understands.
    pub family: Family,
    /// Its release, such as `12.2.0`.
    #[serde(deserialize_with = "version_from_text")]
    pub version: Version,
    /// What it compiles for, such as `x86_64-linux-gnu`, in its own words.
    pub target: String,
    /// Digest of the files that decide what it makes: driver, compiler proper, assembler, linker; as lower-case hexadecimal
    /// text. No path is in it.
    pub identity: String,
    /// The libraries that it links by itself.
    pub runtime: HostRuntime,
    /// Whether it takes `-fno-gnu-unique`: GCC does, and needs it; Clang makes no unique symbols and refuses the option.
    pub accepts_no_gnu_unique: bool,
}

impl HostSearch {
    /// Whether somebody named the compiler. `CC` names one for this machine alone.
    pub fn is_named(&self) -> bool {
        self.cxx.is_some() || (self.cc.is_some() && machine::foreign(self.machine).is_none())
    }
}

impl HostCompiler {
    /// Whether it compiles for macOS.
    pub fn is_for_macos(&self) -> bool {
        self.target.split('-').skip(1).any(|part| part.starts_with("macos") || part.starts_with("darwin"))
    }

    /// The compiler itself, where it was chosen with a launcher in front, which [`HostCompiler::path`] is then.
    pub fn behind_launcher(&self) -> Option<&Path> {
        self.args.first().map(Path::new).filter(|path| path.is_absolute())
    }
}

/// A found compiler.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The compiler.
    pub compiler: HostCompiler,
    /// How many questions were put to it, each at the cost of a process or two. 0: all of it was known.
    pub probes: u32,
}

/// Why there is no compiler.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// None was chosen and none is on PATH.
    #[error("no C++ compiler{} found: PATH has none of {}", wanted.map(|machine| format!(" for {machine}")).unwrap_or_default(), tried.join(", "))]
    None {
        /// The processor to compile for, where it is not that of this machine.
        wanted: Option<Machine>,
        /// The names that were looked for.
        tried: Vec<String>,
    },
    /// The chosen one does not exist.
    #[error("the C++ compiler `{value}` of `{origin}` cannot be used: {reason}")]
    Chosen {
        /// What was named.
        value: String,
        /// Who named it.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// It compiles for another processor.
    #[error("`{}` compiles for `{compiles_for}`, not for {wanted}", path.display())]
    OtherMachine {
        /// The compiler.
        path: PathBuf,
        /// What it says that it compiles for.
        compiles_for: String,
        /// What was wanted.
        wanted: Machine,
    },
    /// It is there and does not work.
    #[error("`{}` does not work as a C++ compiler: {reason}", path.display())]
    Broken {
        /// The program.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// The user wants to stop.
    #[error("interrupted while a C++ compiler was asked what it is")]
    Interrupted,
    /// It is there, but a part of it is not.
    #[error("the C++ compiler `{}` lacks `{part}`", path.display())]
    Incomplete {
        /// The compiler.
        path: PathBuf,
        /// The missing file.
        part: String,
        /// The packages that have it, as a sentence fragment.
        packages: &'static str,
    },
    /// Files could not be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl HostError {
    /// What the user can do about it; to be printed after the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::None { wanted: Some(machine), .. } => {
                Some(format!("install one ({}), or name one with `--cxx`", machine::packages(*machine)))
            }
            Self::OtherMachine { wanted, .. } if machine::is_native(*wanted) => {
                Some("name another one with `--cxx`, or say what to build for with `--target`".to_owned())
            }
            Self::OtherMachine { wanted, .. } => {
                Some(format!("name a compiler for it with `--cxx`, such as `{}-g++` or `clang++`", machine::triple(*wanted)))
            }
            Self::None { wanted: None, .. } => {
                let packages = "`apt install g++` on Debian and Ubuntu, `dnf install gcc-c++` on Fedora and RHEL";
                Some(format!("install one ({packages}), or name one with `--cxx`"))
            }
            Self::Chosen { origin, .. } => Some(format!("correct `{origin}`, or leave it out to take the first compiler on PATH")),
            Self::Incomplete { packages, .. } => Some(format!("install {packages}")),
            Self::Interrupted => None,
            Self::Broken { .. } => Some("name GCC or Clang with `--cxx`".to_owned()),
            Self::Io { .. } => {
                Some("what is known of compilers is kept in the cache directory: `--cache-dir DIR` chooses another".to_owned())
            }
        }
    }

    /// What would have to be installed, where that is the trouble.
    pub fn need(&self) -> Option<Need> {
        let Self::Incomplete { path, part, .. } = self else {
            return matches!(self, Self::None { .. }).then_some(Need::Cxx);
        };
        Some(match part.as_str() {
            "cc1plus" => Need::Cxx,
            "as" | "collect2" | "ld" => Need::Binutils,
            "libc.so.6" | "libm.so.6" | "crti.o" | "crtn.o" | "stdio.h" => Need::CHeaders,
            part if part.starts_with("ld-linux") => Need::CHeaders,
            // GCC's packages are by its release, which the name of the compiler may tell.
            _ => Need::CxxHeaders { major: path.canonicalize().ok().as_deref().and_then(gcc_major) },
        })
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Finds the host C++ compiler.
///
/// `cache` is a file that keeps what was found, from one call to the next; it is made when missing and ignored when
/// damaged. Any number of processes may use one file. Where it cannot be written, the compiler is asked anew each time.
///
/// # Errors
/// When there is no compiler, or the one there is does not work or lacks a part.
pub fn find(search: &HostSearch, cache: &Path) -> Result<Found, HostError> {
    ask(&choice::resolve(search)?, search, cache)
}

/// The compiler to take where the one of [`find`] does not do: the newest on `PATH` that `fits`, of GCC before Clang. None where
/// somebody named a compiler, who is not to get another one.
pub fn find_other(search: &HostSearch, cache: &Path, fits: &dyn Fn(&HostCompiler) -> bool) -> Option<HostCompiler> {
    if search.is_named() {
        return None;
    }
    let mut best: Option<HostCompiler> = None;
    for resolved in choice::all(search) {
        // What does not work is no compiler to take.
        let Ok(Found { compiler, .. }) = ask(&resolved, search, cache) else { continue };
        let rank = |compiler: &HostCompiler| (compiler.family == Family::Gnu, compiler.version.clone());
        if fits(&compiler) && best.as_ref().is_none_or(|best| rank(best) < rank(&compiler)) {
            best = Some(compiler);
        }
    }
    best
}

/// Asks a compiler what it is, unless that is known.
fn ask(resolved: &Resolved, search: &HostSearch, cache: &Path) -> Result<Found, HostError> {
    let key = resolved.key(search);
    if let Some(compiler) = cache::load(cache, &key, &search.path) {
        return Ok(Found { compiler, probes: 0 });
    }
    let probed = probe::probe(resolved, search, cache.parent().unwrap_or(Path::new(".")))?;
    if let Err(cause) = cache::save(cache, &key, &probed) {
        tracing::debug!(%cause, cache = %cache.display(), "what is known of the compiler is not kept");
    }
    Ok(Found { compiler: probed.compiler, probes: probed.probes })
}

/// The number in the name of a GCC: 12 of `x86_64-linux-gnu-g++-12`.
fn gcc_major(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.rsplit_once("g++-")?.1.parse().ok()
}

fn version_from_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    let text = String::deserialize(deserializer)?;
    Version::parse(&text).map_err(serde::de::Error::custom)
}
