//! The caller's side: starts a worker, waits for it, and says what became of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kiln_graph::{Companion, Interrupt};
use tempfile::TempDir;

use super::CallError;
use super::protocol::{ANSWERS, Answer, Call, Request};

/// How often a running worker is looked at.
const POLL: Duration = Duration::from_millis(5);
/// How much of the time between two looks counts, on the busiest machine.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a worker is started: a program that does [`super::work::work`] with the request on its standard input, in the directory that is
/// its last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments but the last.
    pub args: Vec<OsString>,
}

/// How workers are run.
pub struct Session<'a> {
    /// How they are started.
    pub worker: &'a Worker,
    /// Where they write.
    pub scratch: &'a Path,
    /// How long one may take.
    pub timeout: Duration,
    /// Stops one.
    pub interrupt: &'a Interrupt,
    /// Whether what a kernel prints is kept instead of passed on to standard error.
    pub keeps_output: bool,
    /// How many bytes the tensors of a call may take; none for no limit.
    pub memory: Option<u64>,
}

/// What became of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did all that it was asked for.
    Done,
    /// The kernel raised an error.
    Raised {
        /// Its kind, such as `TypeError`.
        kind: String,
        /// Its message.
        message: String,
    },
    /// Something else failed: the loader, memory, a device.
    Failed {
        /// Why.
        message: String,
    },
    /// A signal ended it.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It ended by itself.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// It was still running when its time was over.
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// The user stopped it.
    Interrupted,
}

/// A worker that has ended.
pub struct Called {
    /// What it said.
    pub answers: Vec<Answer>,
    /// What became of it.
    pub ended: Ended,
    /// What it was doing then, for people.
    pub doing: String,
    /// What it printed, if that was kept.
    pub output: String,
    dir: TempDir,
}

impl Called {
    /// What a file of an answer holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, CallError> {
        let path = self.dir.path().join(name);
        fs::read(&path).map_err(|source| CallError::Read { path, source })
    }

    /// What became of it, in a sentence; none if all is well.
    pub fn problem(&self) -> Option<String> {
        let doing = &self.doing;
        match &self.ended {
            Ended::Done => None,
            Ended::Raised { kind, message } => Some(format!("{doing} raised `{kind}`: {message}")),
            Ended::Failed { message } => Some(message.clone()),
            Ended::Killed { signal } => {
                let name = signal_hook::low_level::signal_name(*signal).map(|name| format!(" ({name})")).unwrap_or_default();
                // SIGKILL: nobody else sends it unasked.
                let why = if *signal == 9 { ", most likely for want of memory" } else { "" };
                Some(format!("{doing} was killed by signal {signal}{name}{why}"))
            }
            Ended::Exited { code } => Some(format!("{doing} ended the process with exit code {code}")),
            Ended::TimedOut { limit } => Some(format!("{doing} did not end within {} s", limit.as_secs_f64())),
            Ended::Interrupted => Some(format!("{doing} was interrupted")),
        }
    }
}

impl Session<'_> {
    /// Runs a worker to its end. `request` gives what it is to do, for the directory that it works in.
    ///
    /// # Errors
    /// When it cannot be started or listened to, and those of `request`. Whatever the kernel does is none.
    pub fn run(&self, request: impl FnOnce(&Path) -> Result<Request, CallError>) -> Result<Called, CallError> {
        let failed = |what| move |source| CallError::Worker { what, source };
        let make = || failed("make a directory for");
        let dir = tempfile::Builder::new().prefix("kiln-call-").tempdir_in(self.scratch).map_err(make())?;
        let request = request(dir.path())?;
        let printed = dir.path().join("output");
        let (stdout, stderr) = if self.keeps_output {
            let file = File::create(&printed).map_err(make())?;
            (Stdio::from(file.try_clone().map_err(make())?), Stdio::from(file))
        } else {
            // Standard output is for data, and what a kernel prints is none of ours.
            (Stdio::from(std::io::stderr()), Stdio::inherit())
        };
        let mut command = Command::new(&self.worker.program);
        command.args(&self.worker.args).arg(dir.path()).stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        // In a group of its own: what a kernel starts goes with it.
        let mut program = self.interrupt.start(&mut command).map_err(failed("start"))?;
        let text = serde_json::to_vec(&request).map_err(|source| CallError::Worker { what: "talk to", source: source.into() })?;
        if let Some(mut stdin) = program.take_stdin() {
            // One that is gone already tells so by its end.
            let _gone = stdin.write_all(&text);
        }
        let ended = self.wait(&mut program);
        let status = ended.map_err(failed("wait for"))?;
        let answers = answers(&dir.path().join(ANSWERS))?;
        let ended = match (status, answers.last()) {
            (Err(ended), _) => ended,
            // What was said last, unless the process met its end otherwise afterwards.
            (Ok(status), last) => match (status.signal(), status.code(), last) {
                (Some(signal), _, _) => Ended::Killed { signal },
                (_, Some(0), Some(Answer::Done)) => Ended::Done,
                (_, _, Some(Answer::Raised { kind, message })) => Ended::Raised { kind: kind.clone(), message: message.clone() },
                (_, _, Some(Answer::Failed { message })) => Ended::Failed { message: message.clone() },
                (_, code, _) => Ended::Exited { code: code.unwrap_or(-1) },
            },
        };
        let output = if self.keeps_output { fs::read(&printed).unwrap_or_default() } else { Vec::new() };
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Called { doing: doing(&answers, &request.calls), answers, ended, output, dir })
    }

    /// Waits for a worker, and ends one that takes too long.
    fn wait(&self, program: &mut Companion) -> std::io::Result<Result<ExitStatus, Ended>> {
        let (mut used, mut looked) = (Duration::ZERO, Instant::now());
        loop {
            if let Some(status) = program.try_wait()? {
                return Ok(Ok(status));
            }
            // A longer pause than that is one of this process, which was suspended, and the worker with it.
            used += looked.elapsed().min(LONGEST_PAUSE);
            looked = Instant::now();
            let stopped = match (self.interrupt.is_set(), used >= self.timeout) {
                (true, _) => Ended::Interrupted,
                (false, true) => Ended::TimedOut { limit: self.timeout },
                (false, false) => {
                    std::thread::sleep(POLL);
                    continue;
                }
            };
            program.kill()?;
            return Ok(Err(stopped));
        }
    }
}

/// The lines of answers. One that a crash cut off is none.
fn answers(path: &Path) -> Result<Vec<Answer>, CallError> {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8(bytes).map_err(|_| CallError::Answers)?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).map_err(|_| CallError::Answers)).collect()
}

/// What a worker was doing when it said the last thing.
fn doing(answers: &[Answer], calls: &[Call]) -> String {
    let doing = answers.iter().rev().find(|answer| !matches!(answer, Answer::Raised { .. } | Answer::Failed { .. }));
    let function = |call: &usize| calls.get(*call).map_or("a function", |call| call.function.as_str()).to_owned();
    match doing {
        None => "the process that calls".to_owned(),
        Some(Answer::Loading { what }) => format!("loading `{what}`"),
        Some(Answer::Calling { call }) => format!("`{}`", function(call)),
        Some(Answer::Done) => "the process, at its end,".to_owned(),
        Some(_) => "the process, between calls,".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_cuts_off_is_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers");
        assert_eq!(answers(&path).unwrap(), []);
        fs::write(&path, "{\"event\":\"calling\",\"call\":0}\n{\"event\":\"ca").unwrap();
        assert_eq!(answers(&path).unwrap(), [Answer::Calling { call: 0 }]);
        fs::write(&path, "{\"event\":\"calling\",\"call\":0}\nnonsense\n{\"event\":\"done\"}\n").unwrap();
        assert!(matches!(answers(&path), Err(CallError::Answers)));
    }

    #[test]
    fn the_last_thing_said_tells_what_was_done() {
        let calls = [Call { function: "relu".to_owned(), arguments: Vec::new(), timed_ms: None }];
        let loading = Answer::Loading { what: "k.so".to_owned() };
        let raised = Answer::Raised { kind: String::new(), message: String::new() };
        assert_eq!(doing(&[], &calls), "the process that calls");
        assert_eq!(doing(std::slice::from_ref(&loading), &calls), "loading `k.so`");
        assert_eq!(doing(&[loading, Answer::Calling { call: 0 }, raised], &calls), "`relu`");
        assert_eq!(doing(&[Answer::Calling { call: 7 }], &calls), "`a function`");
    }
}
