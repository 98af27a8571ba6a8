//! The process between the caller and the worker, which lets nothing outlive the call.
//!
//! A kernel may start processes in sessions of their own, which no signal to a group reaches, and may crash before it has ended them. The
//! guard takes in what loses its parent below it, runs no foreign code itself, and ends everything when the worker has ended, or when whoever
//! started the guard is gone.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the worker is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Runs `worker` to its end, and ends what is left of all that it has started. Changes what becomes of this process by signals, which has
/// nothing else to do.
///
/// # Errors
/// When the worker cannot be started or waited for.
pub fn guard(worker: &mut Command) -> io::Result<ExitStatus> {
    let asked = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&asked))?;
    take_in_orphans();
    let mut worker = worker.spawn()?;
    let status = loop {
        if let Some(status) = worker.try_wait()? {
            break status;
        }
        if asked.load(Ordering::SeqCst) {
            worker.kill()?;
            break worker.wait()?;
        }
        std::thread::sleep(POLL);
    };
    end_the_rest();
    Ok(status)
}

#[cfg(target_os = "linux")]
fn take_in_orphans() {
    use rustix::process::{Resource, Rlimit, Signal, getpid, set_child_subreaper, set_parent_process_death_signal, setrlimit};
    // Where the system refuses, what is left of the worker's group is ended all the same.
    let _takes_in = set_child_subreaper(Some(getpid()));
    let _ends = set_parent_process_death_signal(Some(Signal::TERM));
    // It ends as the worker does, and has nothing to show.
    let _writes = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

#[cfg(not(target_os = "linux"))]
fn take_in_orphans() {}

#[cfg(target_os = "linux")]
fn end_the_rest() {
    use rustix::process::{WaitId, WaitIdOptions, getpid, waitid};
    let _all_of_them = kiln_graph::end_descendants(getpid());
    // Not every system has somebody who asks how orphans have ended, and until then their numbers are taken.
    while matches!(waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_))) {}
}

#[cfg(not(target_os = "linux"))]
fn end_the_rest() {}
