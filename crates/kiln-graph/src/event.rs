//! What happens while a graph runs. Nothing else reports progress.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::step::StepId;

/// Why a step has to run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Reason {
    /// It never ran to its end here with these arguments.
    NoRecord,
    /// The program is another one than when the step of this name last ran for these targets.
    ToolChanged,
    /// Arguments or environment differ from those with which the step of this name last ran for these targets.
    ArgumentsChanged {
        /// What is new.
        added: Vec<String>,
        /// What is gone.
        removed: Vec<String>,
    },
    /// The steps that it needs are other ones than when the step of this name last ran for these targets.
    NeedsChanged,
    /// More than one thing differs.
    Several {
        /// The first of them, each a reason by itself.
        reasons: Vec<Reason>,
        /// How many inputs differ besides.
        more: usize,
    },
    /// The content of an input differs from what the last run read.
    InputChanged {
        /// The input, as `root:path`, or as `{label}/name` for what another step makes.
        input: String,
    },
    /// What the last run read of an input is not known: it changed or appeared meanwhile, or only the program knows.
    InputUnknown {
        /// The input, as `root:path`.
        input: String,
    },
    /// An input that the last run read is gone (a deleted header, say).
    InputMissing {
        /// The input, as `root:path`.
        input: String,
    },
    /// A file has appeared that the last run looked for in vain, or that stands in front of one that it read.
    InputAppeared {
        /// The file, as `root:path`, or its first directory that is new.
        input: String,
    },
    /// An output file is gone.
    OutputMissing {
        /// Name of the output.
        output: String,
    },
    /// An output file is not what the last run made.
    OutputAltered {
        /// Name of the output.
        output: String,
    },
}

/// Where a result comes from that no program was run for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Origin {
    /// From the action cache.
    Cache,
    /// From another step of this run, which differs in what makes no difference.
    Step {
        /// That step.
        #[serde(serialize_with = "as_text")]
        step: StepId,
        /// Its label.
        label: String,
        /// The first target that needs it.
        target: String,
    },
}

fn as_text<S: serde::Serializer>(step: &StepId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(step.as_str())
}

/// How a step failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Failure {
    /// The program ended with this code.
    Exit {
        /// Exit code.
        code: i32,
    },
    /// The program was killed by this signal.
    Signal {
        /// Signal number.
        signal: i32,
    },
    /// The program could not be started.
    Spawn {
        /// The cause.
        message: String,
    },
    /// A builtin failed; the fields are those of [`BuiltinError`](crate::BuiltinError).
    Builtin {
        /// The kind of failure.
        code: &'static str,
        /// The cause, for the user.
        message: String,
        /// What the user can do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A builtin panicked: a fault of the program.
    Panic {
        /// What it said.
        message: String,
    },
    /// The program ended well but an output is missing.
    MissingOutput {
        /// Name of the output.
        output: String,
    },
    /// The program read an output of a step that it does not need, by its depfile: what it read depends on chance.
    UndeclaredInput {
        /// The file, as `{label}/name`.
        input: String,
    },
    /// Files of the work directory could not be read or written (a full disk, say).
    Io {
        /// The cause.
        message: String,
    },
    /// The build was interrupted.
    Interrupted,
}

impl fmt::Display for Failure {
    /// How it failed, as a phrase behind what was done.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { code } => write!(f, "exit code {code}"),
            Self::Signal { signal } => write!(f, "killed by signal {signal}"),
            Self::Builtin { message, .. } | Self::Spawn { message } | Self::Io { message } => f.write_str(message),
            Self::Panic { message } => write!(f, "Kiln panicked: {message}"),
            Self::MissingOutput { output } => write!(f, "the program ended well but did not write `{output}`"),
            Self::UndeclaredInput { input } => write!(f, "it read `{input}`, which another step makes and this one does not wait for"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The graph begins to run.
    GraphStarted {
        /// Number of steps.
        steps: usize,
        /// Number of targets.
        targets: usize,
    },
    /// A step's outputs are what a run would make.
    StepUpToDate {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
    },
    /// A step's outputs were taken from where an equal step had left them.
    StepRestored {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
        /// Why it would have run.
        reason: Reason,
        /// Where the outputs come from.
        origin: Origin,
        /// What the program wrote when it ran, directories of another checkout replaced by those of this one.
        output: Vec<u8>,
    },
    /// Files of the action cache are not what was written: they were removed, and what they stood for runs again.
    CacheDamaged {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// The action cache cannot be read or written to (a full disk, say): steps run as without one. Told once a run.
    CacheUnusable {
        /// Its directory.
        directory: PathBuf,
        /// What could not be done, and why.
        message: String,
    },
    /// A step starts to run.
    StepStarted {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
        /// Why it runs.
        reason: Reason,
        /// The command with its real paths, program first; none for a builtin. Own outputs are named where they will be
        /// kept; they are made in a temporary directory.
        command: Option<Vec<String>>,
    },
    /// The run was interrupted: nothing starts any more.
    Stopping {
        /// How many programs still run.
        running: usize,
        /// Whether they are asked to end. Otherwise they are let end, and what they make is kept.
        kills: bool,
    },
    /// A step was killed, most likely for want of memory, and runs once more with nothing beside it.
    StepRetried {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
    },
    /// A step ended well.
    StepFinished {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
        /// How long it ran.
        duration: Duration,
        /// What the program wrote to stdout and stderr, untouched.
        output: Vec<u8>,
    },
    /// A step failed.
    StepFailed {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
        /// How it failed.
        failure: Failure,
        /// The command, as in [`Event::StepStarted`].
        command: Option<Vec<String>>,
        /// What the program wrote to stdout and stderr, untouched.
        output: Vec<u8>,
    },
    /// A step cannot run because one that it needs failed, or because the build stops.
    StepSkipped {
        /// The step.
        step: StepId,
        /// Its verb.
        verb: &'static str,
        /// Its label.
        label: String,
    },
    /// Every step of a target is done.
    TargetFinished {
        /// Name of the target.
        target: String,
        /// Whether all its steps ended well.
        ok: bool,
    },
    /// Nothing is left to do.
    GraphFinished {
        /// Steps that ran to their end.
        ran: usize,
        /// Steps that were up to date.
        up_to_date: usize,
        /// Steps whose outputs came from the cache.
        cached: usize,
        /// Steps whose outputs came from another step.
        shared: usize,
        /// Steps that failed.
        failed: usize,
        /// Steps that could not run.
        skipped: usize,
    },
}
