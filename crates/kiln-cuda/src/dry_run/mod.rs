//! What a call of nvcc would do, asked of nvcc itself.
//!
//! nvcc is asked once for each toolkit, host compiler and set of flags, by a call whose places and names are placeholders, and its
//! answer is kept. So the answer serves every unit of a component, in every checkout, and a build with nothing to do asks nothing.
//!
//! | module | its job |
//! |---|---|
//! | `words` | the words of a line |
//! | `parse` | the commands, joined by the files that they hand on |

mod parse;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_backend::{keep, kept, said};

pub(crate) use parse::{File, Parts, Word};

use crate::toolkit::CudaToolkit;

/// Stands for the source.
pub(crate) const SOURCE: &str = "./kiln-source-.cu";
/// Stands for the object.
pub(crate) const OBJECT: &str = "/kiln-out-/unit.o";
/// Stands for the unit's name.
pub(crate) const NAME: &str = "kiln-name-";
/// Stands for the directory of the toolkit.
pub(crate) const TOOLKIT: &str = "/kiln-toolkit-";
/// Stands for the host compiler.
const HOST: &str = "/kiln-host-";
/// Stands, with a number and a dash behind it, for the path at that place in a list.
pub(crate) const PIECE: &str = "/kiln-piece-";
/// A part of each of them that no text of a call may have by itself.
const MARKS: [&str; 6] = ["kiln-source-", "kiln-out-", "kiln-name-", "kiln-toolkit-", "kiln-host-", "kiln-piece-"];

/// How long nvcc may take to say what it would do.
const LIMIT: Duration = Duration::from_secs(60);

/// Lines of an answer that are about the machine alone.
const OF_MACHINE: [&str; 3] = ["#$ PATH=", "#$ LD_LIBRARY_PATH=", "#$ CUDA_ROOT="];

/// Whether a text would be taken for a placeholder.
pub(crate) fn has_placeholder(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// What about an answer is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUnderstood(pub(crate) String);

/// Asks nvcc what its calls would do, and keeps the answers.
#[derive(Debug, Default)]
pub struct DryRuns {
    /// Where answers are kept; none to keep them for the life of this value.
    dir: Option<PathBuf>,
    known: Mutex<HashMap<String, Answer>>,
}

/// What nvcc answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The parts of the call.
    Parts(Arc<Parts>),
    /// It is not understood, and why.
    NotUnderstood(String),
    /// There is none: nvcc refuses the call, and will say so when it is made.
    None,
}

/// A call of nvcc.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The toolkit.
    pub(crate) toolkit: &'a CudaToolkit,
    /// The host compiler's file.
    pub(crate) host: &'a Path,
    /// What identifies the host compiler.
    pub(crate) host_identity: &'a str,
    /// Arguments, with placeholders; without host compiler, source and object.
    pub(crate) args: &'a [String],
    /// What a process needs of the environment.
    pub(crate) ambient: &'a BTreeMap<String, PathBuf>,
}

impl DryRuns {
    /// Answers are kept below `cache_dir`.
    pub fn kept_in(cache_dir: &Path) -> Self {
        Self { dir: Some(cache_dir.to_owned()), known: Mutex::default() }
    }

    /// What nvcc says, or has said, of a call.
    pub(crate) fn ask(&self, asked: &Asked<'_>) -> Answer {
        let key = key(asked);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return known.clone();
        }
        let name = format!("nvcc-v1/{key}");
        let text = match self.dir.as_ref().and_then(|dir| kept(dir, &name)) {
            Some(text) => Ok(text),
            None => {
                let text = run(asked);
                if let (Ok(text), Some(dir)) = (&text, &self.dir) {
                    keep(dir, &name, text);
                }
                text
            }
        };
        let answer = match text {
            Ok(text) => match parse::parse(&text).and_then(|parts| with_programs(parts, asked.toolkit)) {
                Ok(parts) => Answer::Parts(Arc::new(parts)),
                Err(NotUnderstood(why)) => Answer::NotUnderstood(why),
            },
            Err(Some(NotUnderstood(why))) => Answer::NotUnderstood(why),
            Err(None) => Answer::None,
        };
        lock().insert(key, answer.clone());
        answer
    }
}

fn key(asked: &Asked<'_>) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("kiln dry run 1");
    for text in [&asked.toolkit.identity, asked.host_identity].into_iter().chain(asked.args.iter().map(String::as_str)) {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Asks nvcc. Nothing when it refuses.
fn run(asked: &Asked<'_>) -> Result<String, Option<NotUnderstood>> {
    let mut question = vec![OsStr::new("--dryrun"), OsStr::new("-ccbin"), asked.host.as_os_str()];
    question.extend(asked.args.iter().map(OsStr::new).chain(["-c", SOURCE, "-o", OBJECT].map(OsStr::new)));
    let said = said(&asked.toolkit.nvcc, &question, asked.ambient, LIMIT).ok_or(None)?;
    Ok(normalised(&said, asked.toolkit, asked.host)?)
}

/// An answer with placeholders for the places of this machine.
fn normalised(said: &str, toolkit: &CudaToolkit, host: &Path) -> Result<String, NotUnderstood> {
    let here = said.lines().find_map(|line| line.strip_prefix("#$ _HERE_=")).unwrap_or_default();
    let root = here.strip_suffix("/bin").unwrap_or_default();
    let same = |a: &Path, b: &Path| fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b));
    if root.is_empty() || !same(Path::new(root), &toolkit.binding.dir) {
        return Err(NotUnderstood(format!("nvcc is at home in `{here}`, and its toolkit elsewhere")));
    }
    let (dir, name) = (host.parent().map(Path::to_string_lossy), host.file_name().map(|name| name.to_string_lossy()));
    let commands = dir.zip(name).map(|(dir, name)| [format!("#$ \"{dir}\"/{name} "), format!("#$ {dir}/{name} ")]).unwrap_or_default();
    let mut text = String::new();
    for line in said.lines().filter(|line| !OF_MACHINE.iter().any(|start| line.starts_with(start))) {
        let behind = commands.iter().filter(|command| !command.is_empty()).find_map(|command| line.strip_prefix(command.as_str()));
        let line = behind.map_or_else(|| line.to_owned(), |rest| format!("#$ {HOST} {rest}"));
        text.push_str(&line.replace(&format!("{root}/"), &format!("{TOOLKIT}/")));
        text.push('\n');
    }
    Ok(text)
}

/// The parts, if the programs that they need are where they should be.
fn with_programs(parts: Parts, toolkit: &CudaToolkit) -> Result<Parts, NotUnderstood> {
    let programs = ["cudafe++", "ptxas", "fatbinary"].map(|name| (&parts.programs, name)).into_iter().chain([(&parts.cicc_dir, "cicc")]);
    for (dir, name) in programs {
        if !program(toolkit, dir, name).is_file() {
            return Err(NotUnderstood(format!("`{name}` is not beside nvcc")));
        }
    }
    Ok(parts)
}

/// A program of the toolkit; `dir` has the toolkit's placeholder.
pub(crate) fn program(toolkit: &CudaToolkit, dir: &str, name: &str) -> PathBuf {
    let below = dir.strip_prefix(TOOLKIT).unwrap_or(dir).trim_start_matches('/');
    toolkit.binding.file(&format!("{below}/{name}"))
}

#[cfg(test)]
mod tests;
