//! Signals that end a command.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use kiln_graph::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// Signals that come this soon after the first one are the same wish: some programs send one to the process and one to its group.
const SAME_WISH: Duration = Duration::from_millis(500);
/// How long something that cannot be stopped in between, such as a server that does not answer, is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the interrupt is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Listens to Ctrl-C, SIGTERM and SIGHUP: the first stops what `interrupt` stops, a later one ends the process at once.
pub(crate) fn listen(interrupt: &Interrupt) -> Result<(), Failure> {
    let failure = |cause: std::io::Error| Failure::new("signals", "signals cannot be listened to").caused_by(cause.to_string());
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failure)?;
    let interrupt = interrupt.clone();
    let listener = move || {
        let mut first = None;
        for _ in &mut signals {
            interrupt.stop();
            if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                std::process::exit(Exit::Interrupted.code());
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listener).map(drop).map_err(failure)
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
                    std::process::exit(Exit::Interrupted.code());
                }
            }
        };
        // Without a thread the work is done all the same.
        let _watcher = thread::Builder::new().name("patience".to_owned()).spawn_scoped(scope, watch);
        let _working = working;
        work()
    })
}
