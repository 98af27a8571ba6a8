//! Steps, the graph of steps and its executor.
//!
//! A [`Step`] is a pure description: a program run or a builtin, its inputs, its outputs. A [`Graph`] joins steps by the
//! files they make; equal steps are one step. The [`Executor`] runs what is not up to date and reports [`Event`]s.
//! This crate does not know what a kernel, CUDA or torch is.
//!
//! The way through: bind roots and add steps to a [`Graph`]; print [`Graph::plan`], or lock a [`WorkDir`] and
//! [`Executor::run`] the graph in it; take the files from where the [`Outcome`] says they are, before the lock goes.
//!
//! | module | its job |
//! |---|---|
//! | `step`, `args`, `graph`, `plan` | descriptions, how they are joined and checked, how they are shown |
//! | `fingerprint`, `lists` | which step a description is: **what enters which key, and why** |
//! | `executor`, `schedule`, `history` | threads, and which step is next: **by what it is expected to take** |
//! | `run` | one step from its check to its record: **what a killed process leaves, and why that is enough** |
//! | `check`, `record`, `content`, `place` | whether outputs are current, by the content of all that was read and made |
//! | `depfile`, `inputs` | what a compiler says it read |
//! | `scan`, `search`, `trace` | what it looked for beside that: **what else has to stay as it is** |
//! | `cache`, `reuse` | results of other projects, checkouts and variants: **what enters which key, and why** |
//! | `last` | what is different about a step that has no record |
//! | `memory` | how much steps may take together, and what becomes of one that was killed |
//! | `tokens` | how many steps a make above lets run |
//! | `command`, `process`, `tree`, `room` | programs in groups of their own, and what is below them, in directories of their own |
//! | `workdir`, `interrupt`, `outcome`, `event` | the lock and what is kept, how to stop, what happened |

mod args;
mod builtin;
mod cache;
mod check;
mod command;
mod companion;
mod content;
mod depfile;
mod event;
mod executor;
mod fingerprint;
mod graph;
mod history;
mod inputs;
mod interrupt;
mod last;
mod lists;
mod memory;
mod outcome;
mod place;
mod plan;
mod process;
mod quoted;
mod record;
mod reuse;
mod room;
mod run;
mod scan;
mod schedule;
mod search;
mod step;
mod tokens;
mod trace;
#[cfg(target_os = "linux")]
mod tree;
mod workdir;

pub use args::Args;
pub use builtin::write_file;
pub use cache::{ActionCache, CacheCounts, CachePruned, CacheStats, DEFAULT_CACHE_LIMIT, Verified, size_of_text};
pub use companion::Companion;
pub use event::{Event, Failure, Origin, Reason};
pub use executor::{Config, Executor};
pub use graph::{Graph, GraphError};
pub use interrupt::Interrupt;
pub use outcome::{Counts, Outcome, StepOutcome, StepState, TargetOutcome};
pub use plan::{Plan, PlanAction, PlanStep, PlanTarget};
pub use quoted::quoted;
pub use step::{
    Action, Arg, Builtin, BuiltinContext, BuiltinError, BuiltinFn, Call, Input, OutputRef, PathRef, Piece, Program, ResourceClass,
    RootBinding, RootKind, RootName, Scope, Step, StepId, Weight,
};
pub use tokens::{JobServer, JobServerError};
#[cfg(target_os = "linux")]
pub use tree::end_descendants;
pub use workdir::{KEPT_GRAPHS, LockedWorkDir, Pruned, TryLock, WorkDir, WorkDirError};
