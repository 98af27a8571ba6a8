//! Runs programs, each in a process group of its own, and ends those groups when a run is interrupted.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use wait4::{ResUse, Wait4};

/// How often a program is tried that somebody still holds open for writing, and how long between. A thread that starts a
/// program just while another one writes this one keeps it open for a moment.
const BUSY_ATTEMPTS: usize = 25;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// How long a killed group may take to be gone, and how often that is looked at.
const GONE_WITHIN: Duration = Duration::from_secs(1);
const GONE_PAUSE: Duration = Duration::from_millis(2);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Whether it was asked to end before it did.
    pub(crate) interrupted: bool,
    /// The largest resident set of it or of a program that it ran, in KiB.
    pub(crate) peak_kib: u64,
}

/// The process groups of the programs that run.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    running: Mutex<BTreeMap<i32, Group>>,
}

#[derive(Debug, Default)]
struct Group {
    /// When it was asked to end.
    asked: Option<Instant>,
}

impl Groups {
    /// Runs `command`, which makes a process group of its own, and waits for its end.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<Ended> {
        let child = spawn(command)?;
        let pid = Pid::from_child(&child);
        self.lock().insert(pid.as_raw_nonzero().get(), Group::default());
        let waited = wait_without_reaping(pid);
        let interrupted = {
            // While the child is a zombie its id, and so that of its group, belongs to nobody else.
            let mut running = self.lock();
            let asked = running.remove(&pid.as_raw_nonzero().get()).is_some_and(|group| group.asked.is_some());
            if asked {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            asked
        };
        let ResUse { status, rusage } = reap(child, waited)?;
        if interrupted {
            wait_for_group(pid);
        }
        Ok(Ended { status, interrupted, peak_kib: rusage.maxrss / 1024 })
    }

    /// Asks every group to end that was not asked yet, and kills those that were asked more than `grace` ago. Called again
    /// and again until all have ended.
    pub(crate) fn terminate(&self, grace: Duration) {
        for (&pid, group) in self.lock().iter_mut() {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            // A group that is gone needs no signal.
            let _ = match group.asked {
                None => {
                    group.asked = Some(Instant::now());
                    kill_process_group(pid, Signal::TERM)
                }
                Some(asked) if asked.elapsed() > grace => kill_process_group(pid, Signal::KILL),
                Some(_) => Ok(()),
            };
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, Group>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 1..BUSY_ATTEMPTS {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    command.spawn()
}

fn wait_without_reaping(pid: Pid) -> io::Result<()> {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until nothing of a killed group is left, so that nobody writes to its directory any longer. What a compiler driver has
/// started is not our child, so that only asking again and again tells. Where nobody reaps orphans, the wait ends by itself.
fn wait_for_group(group: Pid) {
    let start = Instant::now();
    while start.elapsed() < GONE_WITHIN && test_kill_process_group(group).is_ok() {
        sleep(GONE_PAUSE);
    }
}

fn reap(child: Child, waited: io::Result<()>) -> io::Result<ResUse> {
    let used = child.wait4()?;
    waited.map(|()| used)
}
