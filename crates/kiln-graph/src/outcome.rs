//! What became of a graph that ran.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::{Failure, Origin};
use crate::step::{OutputRef, StepId};

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It ran to its end.
    Ran,
    /// It did not have to run.
    UpToDate,
    /// Its outputs were taken from elsewhere.
    Restored(Origin),
    /// It failed.
    Failed(Failure),
    /// It could not run.
    Skipped,
}

impl StepState {
    /// Whether the step's outputs are there and current.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ran | Self::UpToDate | Self::Restored(_))
    }
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutcome {
    /// The step.
    pub step: StepId,
    /// What became of it.
    pub state: StepState,
    /// How long its program or builtin ran; zero if it did not.
    pub duration: Duration,
    /// Processor time of its programs and of all that these ran; zero for a builtin, and if it did not run.
    pub cpu: Duration,
}

/// The result of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOutcome {
    /// Name of the target.
    pub target: String,
    /// Whether all its files are there and current.
    pub ok: bool,
}

/// Numbers of steps by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps that ran to their end.
    pub ran: usize,
    /// Steps that were up to date.
    pub up_to_date: usize,
    /// Steps whose outputs came from the action cache.
    pub cached: usize,
    /// Steps whose outputs came from another step of the run.
    pub shared: usize,
    /// Steps that failed.
    pub failed: usize,
    /// Steps that could not run.
    pub skipped: usize,
}

/// The result of running a graph.
#[derive(Debug)]
pub struct Outcome {
    steps: Vec<StepOutcome>,
    index: HashMap<StepId, usize>,
    targets: Vec<TargetOutcome>,
    out_dir: PathBuf,
    interrupted: bool,
}

impl Outcome {
    pub(crate) fn new(steps: Vec<StepOutcome>, targets: Vec<TargetOutcome>, out_dir: PathBuf, interrupted: bool) -> Self {
        let index = steps.iter().enumerate().map(|(index, outcome)| (outcome.step.clone(), index)).collect();
        Self { steps, index, targets, out_dir, interrupted }
    }

    /// Whether every step ended well.
    pub fn is_ok(&self) -> bool {
        self.steps.iter().all(|outcome| outcome.state.is_ok())
    }

    /// Whether the run was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The results of all steps, in graph order.
    pub fn steps(&self) -> &[StepOutcome] {
        &self.steps
    }

    /// The result of a step.
    pub fn step(&self, id: &StepId) -> Option<&StepOutcome> {
        self.steps.get(*self.index.get(id)?)
    }

    /// The results of all targets, in graph order.
    pub fn targets(&self) -> &[TargetOutcome] {
        &self.targets
    }

    /// Whether the target `name` exists and all its files are there and current.
    pub fn is_target_ok(&self, name: &str) -> bool {
        self.targets.iter().any(|outcome| outcome.target == name && outcome.ok)
    }

    /// Steps by what became of them.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for outcome in &self.steps {
            match outcome.state {
                StepState::Ran => counts.ran += 1,
                StepState::UpToDate => counts.up_to_date += 1,
                StepState::Restored(Origin::Cache) => counts.cached += 1,
                StepState::Restored(Origin::Step { .. }) => counts.shared += 1,
                StepState::Failed(_) => counts.failed += 1,
                StepState::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// Where the file `output` lies. It is there if its step ended well, and as long as the work directory is locked.
    pub fn output_path(&self, output: &OutputRef) -> PathBuf {
        self.step_dir(&output.step).join(&output.name)
    }

    fn step_dir(&self, step: &StepId) -> PathBuf {
        Path::new(&self.out_dir).join(step.as_str())
    }
}
