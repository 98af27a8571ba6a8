//! Asking a program something: bounded in time and in how much of its answer is kept, and ended with all that it started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kiln_graph::Interrupt;
use rustix::process::{Pid, Signal, kill_process_group};

/// Bytes of each stream that are usually kept; what follows is read and thrown away, so that the program does not stand still.
const KEPT: usize = 1 << 20;
/// How long the streams of an ended program are waited for: something that it left running may hold them.
const GRACE: Duration = Duration::from_millis(500);
/// The longest pause between two looks at the program.
const POLL: Duration = Duration::from_millis(20);

/// What a program said.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It could not be started or waited for.
    #[error("{0}")]
    Io(io::Error),
    /// It took longer than this and was ended.
    #[error("it gave no answer in {} s", .0.as_secs())]
    TooLong(Duration),
    /// The user wants to stop.
    #[error("it was interrupted")]
    Interrupted,
}

/// Runs a program without standard input until it ends, at most for `limit`.
///
/// # Errors
/// When there is no answer, with the reason.
pub fn ask(command: &mut Command, limit: Duration, interrupt: &Interrupt) -> Result<Answer, NoAnswer> {
    ask_for(command, KEPT, limit, interrupt)
}

/// Asks a program something in an environment of nothing but `ambient`, and gives what it says on both its streams; none when it cannot be
/// run, fails, or takes longer than `limit`.
pub fn said<S: AsRef<OsStr>>(program: &Path, question: &[S], ambient: &BTreeMap<String, PathBuf>, limit: Duration) -> Option<String> {
    let mut command = Command::new(program);
    // What is there would be named by its whole path.
    command.args(question).current_dir("/").env_clear().env("LC_ALL", "C.UTF-8").envs(ambient);
    let answer = ask(&mut command, limit, &Interrupt::new()).ok().filter(|answer| answer.status.success())?;
    Some([answer.stdout, answer.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect())
}

/// As [`ask`], with so many bytes of standard output kept: an answer of that length may have been longer.
///
/// # Errors
/// As [`ask`].
pub fn ask_for(command: &mut Command, kept: usize, limit: Duration, interrupt: &Interrupt) -> Result<Answer, NoAnswer> {
    // A group of its own can be ended as a whole.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(NoAnswer::Io)?;
    let streams = [collect(child.stdout.take(), kept), collect(child.stderr.take(), KEPT)];
    let ended = wait(&mut child, limit, interrupt);
    if ended.is_err() {
        end_group(&child);
        let _reaped = child.wait();
    }
    let patience = Instant::now();
    while streams.iter().any(|(_, reader)| !reader.is_finished()) && patience.elapsed() < GRACE {
        thread::sleep(Duration::from_millis(1));
    }
    let [stdout, stderr] = streams.map(|(bytes, _)| std::mem::take(&mut *bytes.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(Answer { status: ended?, stdout, stderr })
}

fn wait(child: &mut Child, limit: Duration, interrupt: &Interrupt) -> Result<ExitStatus, NoAnswer> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait().map_err(NoAnswer::Io)? {
            return Ok(status);
        }
        if interrupt.is_set() {
            return Err(NoAnswer::Interrupted);
        }
        if started.elapsed() >= limit {
            return Err(NoAnswer::TooLong(limit));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(POLL);
    }
}

fn end_group(child: &Child) {
    let _gone = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Reads a stream in a thread of its own: a program that fills one while another is read would wait for ever.
fn collect(stream: Option<impl Read + Send + 'static>, most: usize) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bytes);
    let reader = thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut buffer = [0; 8192];
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 {
                return;
            }
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = most.saturating_sub(kept.len()).min(count);
            kept.extend(buffer.iter().take(room));
        }
    });
    (bytes, reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, limit: Duration) -> Result<Answer, NoAnswer> {
        ask(Command::new("/bin/sh").args(["-c", text]), limit, &Interrupt::new())
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn both_streams_are_kept_up_to_their_limit() {
        let answer = shell("head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3", LONG).unwrap();
        assert_eq!((answer.status.code(), answer.stdout.len(), answer.stderr.len()), (Some(3), KEPT, 200_000));
    }

    #[test]
    fn what_never_ends_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let error = shell(&format!("sleep 1000 & echo $! > '{}'; wait", pid.display()), Duration::from_secs(2)).unwrap_err();
        assert!(matches!(error, NoAnswer::TooLong(limit) if limit == Duration::from_secs(2)), "{error:?}");
        let child: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        // The orphan is reaped by whoever adopts it; until then it is a zombie, which runs no more.
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }

    #[test]
    fn something_left_behind_does_not_hold_the_answer() {
        // It ends by itself, long after the answer.
        let answer = shell("echo here; sleep 20 & exit 0", LONG).unwrap();
        assert_eq!(answer.stdout, b"here\n");
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let interrupt = Interrupt::new();
        interrupt.stop();
        let error = ask(Command::new("/bin/sleep").arg("1000"), LONG, &interrupt).unwrap_err();
        assert!(matches!(error, NoAnswer::Interrupted), "{error:?}");
    }
}
