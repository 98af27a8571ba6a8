//! The work directory: where outputs and records live, who may use it, and what is kept.
//!
//! ```text
//! <work dir>/lock                  locked by the one process that uses the directory; holds its process id
//! <work dir>/out/<step id>/<name>  outputs, each directory made elsewhere and renamed whole
//! <work dir>/records/<step id>     what the run that made these outputs read and wrote
//! <work dir>/last/<digest>         what a step of some name was like when it last ran, to say what is different
//! <work dir>/durations             what steps took, by name, to start the longest chains first
//! <work dir>/runs/<graph id>       ids of the steps of a graph that was run; its mtime is the last run
//! <work dir>/tmp/<unique>/         one step that is running: outputs, console output, its temporary files
//! ```
//!
//! Whoever holds the lock owns everything below the directory, so whatever lies in `tmp/` when the lock is taken was left
//! by a process that died, and is removed. The kernel drops the lock with its process: a dead owner blocks nobody. A
//! program that survived its killed parent can only write below its own `tmp/<unique>/`, a name that is never used again.
//!
//! Outputs of steps that no longer occur are kept for as long as one of the last [`KEPT_GRAPHS`] different graphs that were
//! run has them: switching between variants, options or commits and back finds them, and so does a run after one that failed.
//! What no such graph has is removed at the end of a successful run.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::content::State;
use crate::graph::Graph;
use crate::interrupt::Interrupt;
use crate::place::{Place, Places};
use crate::record::Record;
use crate::step::{OutputRef, StepId};

/// How many different graphs are remembered.
pub const KEPT_GRAPHS: usize = 16;

/// How often a process that waits for the lock tries again.
const RETRY: Duration = Duration::from_millis(50);

/// Why a work directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    /// The path is not absolute.
    #[error("work directory `{}` is not an absolute path", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// A file or directory of it cannot be made, read or locked.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process held the lock for the whole timeout.
    #[error("another build uses `{}`{}", path.display(), holder.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Busy {
        /// The work directory.
        path: PathBuf,
        /// The process that holds the lock, when it could be read.
        holder: Option<u32>,
    },
    /// The build was interrupted while it waited for the lock.
    #[error("interrupted while another build used `{}`", path.display())]
    Interrupted {
        /// The work directory.
        path: PathBuf,
    },
}

/// A work directory that is not locked.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    lock: File,
}

/// What [`WorkDir::try_lock`] gives.
#[derive(Debug)]
pub enum TryLock {
    /// The directory is ours.
    Locked(LockedWorkDir),
    /// Another process uses it.
    Busy {
        /// The directory, to try again.
        work_dir: WorkDir,
        /// The process that holds the lock, when it could be read.
        holder: Option<u32>,
    },
}

impl WorkDir {
    /// Opens the work directory `path`, which must be absolute; makes it if it does not exist. Changes nothing in
    /// it but for an empty lock file.
    ///
    /// # Errors
    /// [`WorkDirError::Relative`] or [`WorkDirError::Io`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, WorkDirError> {
        let path = path.into();
        if !path.is_absolute() {
            return Err(WorkDirError::Relative { path });
        }
        fs::create_dir_all(&path).map_err(|source| WorkDirError::Io { path: path.clone(), source })?;
        let file = path.join("lock");
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file)
            .map_err(|source| WorkDirError::Io { path: file, source })?;
        Ok(Self { path, lock })
    }

    /// Takes the lock if nobody holds it.
    ///
    /// # Errors
    /// [`WorkDirError::Io`].
    pub fn try_lock(mut self) -> Result<TryLock, WorkDirError> {
        match flock(&self.lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => LockedWorkDir::new(self).map(TryLock::Locked),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                let holder = self.holder();
                Ok(TryLock::Busy { work_dir: self, holder })
            }
            Err(error) => Err(WorkDirError::Io { path: self.path.join("lock"), source: error.into() }),
        }
    }

    /// Takes the lock, waiting at most `timeout` (`None`: for ever) for a process that holds it. `waiting` is called once
    /// when the wait begins, and again whenever another process got the lock first, with the holder's process id.
    ///
    /// # Errors
    /// [`WorkDirError::Io`], [`WorkDirError::Busy`] after the timeout, [`WorkDirError::Interrupted`].
    pub fn lock(
        self,
        timeout: Option<Duration>,
        interrupt: &Interrupt,
        waiting: &mut dyn FnMut(Option<u32>),
    ) -> Result<LockedWorkDir, WorkDirError> {
        let start = Instant::now();
        let mut told = None;
        let mut this = self;
        loop {
            match this.try_lock()? {
                TryLock::Locked(locked) => return Ok(locked),
                TryLock::Busy { work_dir, holder } => {
                    if interrupt.is_set() {
                        return Err(WorkDirError::Interrupted { path: work_dir.path });
                    }
                    if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                        return Err(WorkDirError::Busy { path: work_dir.path, holder });
                    }
                    if told != Some(holder) {
                        waiting(holder);
                        told = Some(holder);
                    }
                    this = work_dir;
                    std::thread::sleep(RETRY);
                }
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process id in the lock file, if there is one.
    fn holder(&mut self) -> Option<u32> {
        let mut text = String::new();
        self.lock.rewind().ok()?;
        (&self.lock).take(16).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}

/// A work directory that this process alone uses, until the value is dropped.
#[derive(Debug)]
pub struct LockedWorkDir {
    path: PathBuf,
    lock: File,
}

impl LockedWorkDir {
    /// Completes the layout and removes what dead processes left in `tmp/`.
    fn new(work_dir: WorkDir) -> Result<Self, WorkDirError> {
        let WorkDir { path, lock } = work_dir;
        let this = Self { path, lock };
        this.write_holder().map_err(|source| WorkDirError::Io { path: this.path.join("lock"), source })?;
        for dir in [this.out_dir(), this.records_dir(), this.runs_dir(), this.tmp_dir()] {
            fs::create_dir_all(&dir).map_err(|source| WorkDirError::Io { path: dir, source })?;
        }
        this.clear_tmp();
        Ok(this)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file `output` is once its step has run, whether it has or not.
    pub fn output_path(&self, output: &OutputRef) -> PathBuf {
        self.step_dir(&output.step).join(&output.name)
    }

    /// The files that the steps of `graph` read when they last ran, but for what other steps made and for what is in immutable roots:
    /// each once, in order. A step that never ran here has read none.
    pub fn files_read(&self, graph: &Graph) -> BTreeSet<PathBuf> {
        let places = Places::new(graph, self);
        let records = graph.steps().filter_map(|(id, _)| Record::load(&self.record_path(id), id));
        let inputs = records.flat_map(|record| record.inputs);
        let of_others = inputs.filter(|entry| !matches!(entry.place, Place::Output(_)));
        of_others
            .filter(|entry| matches!(entry.state, State::File(_) | State::Unknown))
            .filter_map(|entry| places.path(&entry.place))
            .collect()
    }

    /// Notes that `graph` is run now. The executor calls it before the first step, so that whatever a run makes, also one that
    /// fails or is killed, belongs to a known graph.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn note(&self, graph: &Graph) -> io::Result<()> {
        let mut ids: Vec<&str> = graph.steps().map(|(id, _)| id.as_str()).collect();
        ids.sort_unstable();
        let text = ids.iter().fold(String::new(), |text, id| text + id + "\n");
        let file = self.runs_dir().join(&blake3::hash(text.as_bytes()).to_hex()[..32]);
        match File::options().append(true).open(&file) {
            Ok(known) => known.set_modified(SystemTime::now()),
            Err(_) => self.write_atomically(&file, text.as_bytes()),
        }
    }

    /// Forgets all graphs but the last [`KEPT_GRAPHS`] different ones and removes what none of those has. The executor calls it at
    /// the end of a successful run.
    ///
    /// # Errors
    /// The first error of the file system; what is left is found again by the next call that prunes.
    pub fn forget_old_graphs(&self) -> io::Result<Pruned> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(self.runs_dir())? {
            let entry = entry?;
            runs.push((entry.metadata()?.modified()?, entry.path()));
        }
        if runs.len() <= KEPT_GRAPHS {
            return Ok(Pruned::default());
        }
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let forgotten = runs.split_off(KEPT_GRAPHS);
        let mut keep: BTreeSet<StepId> = BTreeSet::new();
        for (_, path) in &runs {
            // A list that cannot be read keeps nothing: its steps would run again, no more.
            keep.extend(fs::read_to_string(path).unwrap_or_default().lines().map(|id| StepId(id.into())));
        }
        let pruned = self.prune(&keep)?;
        // Last, so that whoever is killed or fails before it prunes again.
        for (_, path) in &forgotten {
            fs::remove_file(path)?;
        }
        Ok(pruned)
    }

    /// Removes outputs and records of all steps but `keep`.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn prune(&self, keep: &BTreeSet<StepId>) -> io::Result<Pruned> {
        let keep: BTreeSet<&str> = keep.iter().map(StepId::as_str).collect();
        let mut pruned = Pruned::default();
        // Records go first: outputs without a record are made again, a record without outputs likewise, but the first is sooner seen.
        for dir in [self.records_dir(), self.out_dir()] {
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                let name = entry.file_name();
                if name.to_str().is_some_and(|name| keep.contains(name)) {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else {
                    fs::remove_file(entry.path())?;
                }
                pruned.entries += 1;
            }
        }
        Ok(pruned)
    }

    pub(crate) fn out_dir(&self) -> PathBuf {
        self.path.join("out")
    }

    /// Where files of the one process that uses the directory may be: whatever is left there is removed when it is next locked.
    pub fn tmp_dir(&self) -> PathBuf {
        self.path.join("tmp")
    }

    fn records_dir(&self) -> PathBuf {
        self.path.join("records")
    }

    fn runs_dir(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// The file that keeps what steps took.
    pub(crate) fn durations_path(&self) -> PathBuf {
        self.path.join("durations")
    }

    pub(crate) fn step_dir(&self, step: &StepId) -> PathBuf {
        self.path.join("out").join(step.as_str())
    }

    pub(crate) fn record_path(&self, step: &StepId) -> PathBuf {
        self.path.join("records").join(step.as_str())
    }

    /// Writes a file under a temporary name and renames it.
    pub(crate) fn write_atomically(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(self.tmp_dir())?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn write_holder(&self) -> io::Result<()> {
        self.lock.set_len(0)?;
        (&self.lock).rewind()?;
        (&self.lock).write_all(format!("{}\n", std::process::id()).as_bytes())
    }

    /// What cannot be removed (a surviving program still writes to it) is left for the next process: no name is used twice.
    fn clear_tmp(&self) {
        for entry in fs::read_dir(self.tmp_dir()).into_iter().flatten().flatten() {
            let removed = match entry.file_type() {
                Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                _ => fs::remove_file(entry.path()),
            };
            if let Err(error) = removed {
                tracing::debug!("cannot remove `{}`: {error}", entry.path().display());
            }
        }
    }
}

impl Drop for LockedWorkDir {
    fn drop(&mut self) {
        // Nobody shall be told the id of a process that is done. The lock itself goes with the file.
        let _ = self.lock.set_len(0);
    }
}

/// What [`LockedWorkDir::prune`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of records and output directories.
    pub entries: usize,
}
