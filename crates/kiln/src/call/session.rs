//! The caller's side: starts a worker, waits for it, and says what became of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kiln_ffi::Dtype;
use kiln_graph::{Companion, Interrupt};
use tempfile::TempDir;

use super::CallError;
use super::protocol::{ANSWERS, Answer, Call, Request};
use crate::small_file;

/// How often a running worker is looked at.
const POLL: Duration = Duration::from_millis(5);
/// How much of the time between two looks counts, on the busiest machine.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How much of what a kernel prints is kept, from its end, in bytes.
const OUTPUT: u64 = 1 << 20;

/// How a worker is started: a program that does [`super::work::work`] with the request on its standard input, in the directory that is
/// its last argument, below a [`super::guard::guard`].
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
    /// How many bytes its results may take; none for no limit.
    memory: Option<u64>,
    dir: TempDir,
}

impl Called {
    /// Whether a function was called.
    pub fn began(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer, Answer::Calling { .. }))
    }

    /// The elements of a tensor, `bytes` of them, out of a file of an answer. Whatever a kernel has made of the directory, nothing else
    /// is read, and no more than there is memory for.
    ///
    /// # Errors
    /// When it cannot be read, or does not hold that.
    pub fn elements(&self, name: &str, dtype: Dtype, shape: &[i64]) -> Result<Vec<u8>, CallError> {
        // The other extents may be any without one.
        let extents = if shape.contains(&0) { &[0] } else { shape };
        let count = extents.iter().try_fold(1_u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
        let size = u64::try_from(dtype.size()).unwrap_or(u64::MAX);
        let bytes = count.and_then(|count| count.checked_mul(size)).ok_or(CallError::Answers)?;
        // As they are, and as numbers.
        let needed = bytes.saturating_add(count.unwrap_or(u64::MAX).saturating_mul(8));
        if let Some(there) = self.memory.filter(|there| needed > *there) {
            return Err(CallError::Memory { needed, there });
        }
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            return Err(CallError::Answers);
        }
        let path = self.dir.path().join(name);
        let elements = small_file::read_at_most(&path, bytes).map_err(|source| CallError::Read { path, source })?;
        if elements.len() as u64 == bytes { Ok(elements) } else { Err(CallError::Answers) }
    }

    /// What is known of a worker that did not do all that it was asked for: how far it came, and its last words, if these were kept.
    pub fn known(&self) -> String {
        const LINES: usize = 3;
        let name = |what: &String| format!("`{}`", Path::new(what).file_name().map_or(what.as_str().into(), |name| name.to_string_lossy()));
        let mut loading: Vec<String> = self
            .answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Loading { what } => Some(name(what)),
                _ => None,
            })
            .collect();
        let is_loaded = self.answers.iter().any(|answer| matches!(answer, Answer::Loaded { .. }));
        let last = if is_loaded { None } else { loading.pop() };
        let how_far = match (loading.is_empty(), last) {
            (true, None) => "nothing was loaded".to_owned(),
            (false, None) => format!("{} were loaded", loading.join(" and ")),
            (true, Some(last)) => format!("{last} was being loaded, the first library"),
            (false, Some(last)) => format!("{last} was being loaded, after {}", loading.join(" and ")),
        };
        let said: Vec<&str> = self.output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("!!!!")).collect();
        let (frames, words): (Vec<&str>, Vec<&str>) = said.into_iter().partition(|line| is_frame(line));
        let mut known = match words.get(words.len().saturating_sub(LINES)..).unwrap_or_default() {
            [] => format!("{how_far}; nothing was said"),
            words => format!("{how_far}; the last words were: {}", words.join(" | ")),
        };
        // Of frames without a name nobody learns anything; the first is that of the handler.
        if let Some(frame) = frames.iter().find(|frame| !frame.contains(", in 0x")) {
            known.push_str(&format!("; its trace begins with: {frame}"));
        }
        known
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
        let (answers, all) = answers(&dir.path().join(ANSWERS));
        let ended = match (status, answers.last()) {
            (Err(ended), _) => ended,
            // What was said last, unless the process met its end otherwise afterwards.
            (Ok(status), last) => match (status.signal(), status.code(), last) {
                (Some(signal), _, _) => Ended::Killed { signal },
                _ if !all => {
                    let doing = doing(&answers, &request.calls);
                    Ended::Failed { message: format!("{doing} made the file of its results one that cannot be read") }
                }
                (_, Some(0), Some(Answer::Done)) => Ended::Done,
                (_, _, Some(Answer::Raised { kind, message })) => Ended::Raised { kind: kind.clone(), message: message.clone() },
                (_, _, Some(Answer::Failed { message })) => Ended::Failed { message: message.clone() },
                (_, code, _) => Ended::Exited { code: code.unwrap_or(-1) },
            },
        };
        let output = if self.keeps_output { small_file::read_end(&printed, OUTPUT).unwrap_or_default() } else { Vec::new() };
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Called { doing: doing(&answers, &request.calls), answers, ended, output, memory: self.memory, dir })
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

/// Whether a line is of the trace that the runtime of tvm-ffi prints after a crash, which goes on to the start of the thread.
fn is_frame(line: &str) -> bool {
    line.starts_with("File \"") && line.contains("\", line ") && line.contains(", in ")
}

/// The lines of answers, up to the first that is none, and whether that is all of them. One that a crash cut off is no line.
fn answers(path: &Path) -> (Vec<Answer>, bool) {
    // The kernel may have made anything of it: a pipe, or more than fits into memory.
    let text = match small_file::read_text(path) {
        Ok(text) => text,
        Err(cause) => return (Vec::new(), cause.kind() == ErrorKind::NotFound),
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let answers: Vec<Answer> = whole.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    let all = answers.len() == whole.lines().count();
    (answers, all)
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
    use std::fs;

    use super::*;

    fn called(answers: Vec<Answer>, output: &str) -> Called {
        let (ended, doing) = (Ended::Killed { signal: 11 }, String::new());
        Called { answers, ended, doing, output: output.to_owned(), memory: Some(1000), dir: tempfile::tempdir().unwrap() }
    }

    #[test]
    fn elements_are_read_out_of_plain_files_alone() {
        let called = called(Vec::new(), "");
        let path = |name: &str| called.dir.path().join(name);
        let read = |name: &str, shape: &[i64]| called.elements(name, Dtype::FLOAT32, shape).map_err(|error| error.code());
        fs::write(path("a.bin"), [7; 16]).unwrap();
        assert_eq!(read("a.bin", &[2, 2]), Ok(vec![7; 16]));
        for shape in [&[3][..], &[5], &[-4], &[i64::MAX, 4]] {
            assert_eq!(read("a.bin", shape), Err(if shape == [3] { "path" } else { "worker" }), "{shape:?}");
        }
        assert_eq!(read("a.bin", &[1000]), Err("memory"));
        fs::create_dir(path("b")).unwrap();
        fs::write(path("b/a.bin"), [7; 16]).unwrap();
        for name in ["b/a.bin", "../a.bin", "/proc/self/stat", "", ".", ".."] {
            assert_eq!(read(name, &[4]), Err("worker"), "{name}");
        }
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        assert_eq!(["pipe", "zero", "b"].map(|name| read(name, &[4])), [Err("path"), Err("path"), Err("path")]);
    }

    #[test]
    fn what_is_known_of_a_crash() {
        let loading = |what: &str| Answer::Loading { what: what.to_owned() };
        let known = |answers: &[Answer], output: &str| called(answers.to_vec(), output).known();
        assert_eq!(known(&[], ""), "nothing was loaded; nothing was said");
        assert_eq!(known(&[loading("/a/r.so")], "\n"), "`r.so` was being loaded, the first library; nothing was said");
        let both = [loading("/a/r.so"), loading("k.so"), Answer::Loaded { version: [0, 1, 9], functions: Vec::new() }];
        let said = "1\n2\n\n  3  \n4\n";
        assert_eq!(known(&both[..2], said), "`k.so` was being loaded, after `r.so`; the last words were: 2 | 3 | 4");
        let trace = "before\n!!!!!!! Segfault encountered !!!!!!!\n  File \"c.c\", line 0, in 0x0007\n  File \"k.c\", line 2, in f\n  File \"c.c\", line 3, in g\n";
        let told = "`k.so` was being loaded, after `r.so`; the last words were: before; its trace begins with: File \"k.c\", line 2, in f";
        assert_eq!(known(&both[..2], trace), told);
        assert_eq!(known(&both, ""), "`r.so` and `k.so` were loaded; nothing was said");
    }

    #[test]
    fn what_a_crash_cuts_off_is_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers");
        assert_eq!(answers(&path), (Vec::new(), true));
        // Whatever a kernel makes of them, nobody waits for it, and nobody runs out of memory.
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(answers(&path), (Vec::new(), false));
        fs::remove_file(&path).unwrap();
        File::create(&path).unwrap().set_len(20 << 30).unwrap();
        assert_eq!(answers(&path), (Vec::new(), false));
        fs::write(&path, "{\"event\":\"calling\",\"call\":0}\n{\"event\":\"ca").unwrap();
        let one = vec![Answer::Calling { call: 0 }];
        assert_eq!(answers(&path), (one.clone(), true));
        fs::write(&path, "{\"event\":\"calling\",\"call\":0}\nnonsense\n{\"event\":\"done\"}\n").unwrap();
        assert_eq!(answers(&path), (one, false));
        fs::write(&path, b"{\"event\":\"calling\",\"call\":0}\n\xff\n").unwrap();
        assert_eq!(answers(&path), (Vec::new(), false));
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
