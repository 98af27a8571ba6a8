//! Signals that end or suspend a command.
//!
//! | signal | the first | a later one |
//! |---|---|---|
//! | SIGINT (Ctrl-C) | starts nothing more, lets what runs end | SIGTERM to the process groups of what runs, SIGKILL after a grace; the third ends the process |
//! | SIGTERM, SIGHUP, SIGQUIT | SIGTERM to the process groups, SIGKILL after a grace | SIGKILL to the process groups, and the process ends |
//! | SIGTSTP (Ctrl-Z) | stops the process groups, then the process; SIGCONT lets both go on | the same |
//!
//! A signal that is ignored when the process starts stays ignored: `nohup` does that to SIGHUP, and shells without job control to
//! SIGINT of what they start in the background. The exit code is 128 and the number of the first signal.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use kiln_graph::Interrupt;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::commands::scratch;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// Two SIGINT that come this soon after one another are the same wish: some programs send one to the process and one to its group.
const SAME_WISH: Duration = Duration::from_millis(100);
/// How long something that cannot be stopped in between, such as a server that does not answer, is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the interrupt is looked at.
const POLL: Duration = Duration::from_millis(50);

/// The first signal that asked for the end; 0 for none. Signals come to the whole process, and so does what they leave.
static FIRST: AtomicU8 = AtomicU8::new(0);

/// The exit code of a command that a signal has ended.
pub(crate) fn exit_code() -> u8 {
    let first = FIRST.load(Ordering::SeqCst);
    128 + if first == 0 { number(SIGINT) } else { first }
}

/// Ends the process in spite of what still runs.
fn end() -> ! {
    scratch::remove_all();
    std::process::exit(i32::from(exit_code()))
}

fn number(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or_default()
}

/// Listens to signals: they end or suspend what `interrupt` does. `last` is done before the process ends in spite of what still runs.
pub(crate) fn listen(interrupt: &Interrupt, last: impl Fn() + Send + 'static) -> Result<(), Failure> {
    let failure = |cause: std::io::Error| Failure::new("signals", "signals cannot be listened to").caused_by(cause.to_string());
    let ignored = ignored();
    let heeded = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP].into_iter().filter(|signal| (ignored >> (signal - 1)) & 1 == 0);
    let mut signals = Signals::new(heeded).map_err(failure)?;
    let interrupt = interrupt.clone();
    let listener = move || {
        let mut wishes = Wishes::default();
        for signal in &mut signals {
            if signal == SIGTSTP {
                interrupt.suspend();
                // Returns when the process goes on.
                let _suspended = emulate_default_handler(SIGTSTP);
                interrupt.resume();
                continue;
            }
            let _not_the_first = FIRST.compare_exchange(0, number(signal), Ordering::SeqCst, Ordering::SeqCst);
            match wishes.next(signal, Instant::now()) {
                Wish::Same => {}
                Wish::Finish => interrupt.finish(),
                Wish::Stop => interrupt.stop(),
                Wish::End => {
                    interrupt.kill();
                    last();
                    end();
                }
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listener).map(drop).map_err(failure)
}

/// Ends this process as another one has ended.
pub(crate) fn end_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        // What no process can heed cannot be set to its default either.
        let _ends = match Signal::from_named_raw(signal) {
            Some(Signal::KILL) => kill_process(getpid(), Signal::KILL).map_err(Into::into),
            _ => emulate_default_handler(signal),
        };
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    /// Nothing that was not asked for.
    Same,
    /// To start nothing more.
    Finish,
    /// To end what runs.
    Stop,
    /// To end at once.
    End,
}

/// What was asked for so far.
#[derive(Debug, Default)]
struct Wishes {
    last: Option<(Wish, i32, Instant)>,
}

impl Wishes {
    /// What `signal` asks for when it comes `now`.
    fn next(&mut self, signal: i32, now: Instant) -> Wish {
        let wish = match self.last {
            Some((_, last, at)) if last == signal && now.duration_since(at) < SAME_WISH => return Wish::Same,
            None if signal == SIGINT => Wish::Finish,
            None | Some((Wish::Finish, ..)) => Wish::Stop,
            Some(_) => Wish::End,
        };
        self.last = Some((wish, signal, now));
        wish
    }
}

/// The signals that the process ignores, as bits, where the system tells.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// Does `work`, which heeds `interrupt` unless it is stuck: then the process ends without it. What it leaves in the store is
/// removed by whoever fetches next.
pub(crate) fn unless_stuck<T>(interrupt: &Interrupt, printer: &Printer, work: impl FnOnce() -> T) -> T {
    let (working, done) = mpsc::channel::<()>();
    let goes_on = move |time| done.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    thread::scope(|scope| {
        let watch = move || {
            while goes_on(POLL) {
                if interrupt.is_set() && goes_on(PATIENCE) {
                    let failure = Failure::new("interrupted", "interrupted while a server was waited for");
                    printer.failure(&Failure { exit: Exit::Interrupted, ..failure });
                    end();
                }
            }
        };
        // Without a thread the work is done all the same.
        let _watcher = thread::Builder::new().name("patience".to_owned()).spawn_scoped(scope, watch);
        let _working = working;
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_asks_for_more_than_the_one_before() {
        let start = Instant::now();
        let wishes = |signals: &[(i32, u64)]| {
            let mut wishes = Wishes::default();
            signals.iter().map(|(signal, ms)| wishes.next(*signal, start + Duration::from_millis(*ms))).collect::<Vec<_>>()
        };
        assert_eq!(wishes(&[(SIGINT, 0), (SIGINT, 1), (SIGINT, 500), (SIGINT, 900)]), [Wish::Finish, Wish::Same, Wish::Stop, Wish::End]);
        assert_eq!(wishes(&[(SIGTERM, 0), (SIGTERM, 50), (SIGTERM, 500)]), [Wish::Stop, Wish::Same, Wish::End]);
        assert_eq!(wishes(&[(SIGINT, 0), (SIGTERM, 1), (SIGHUP, 2)]), [Wish::Finish, Wish::Stop, Wish::End]);
    }
}
