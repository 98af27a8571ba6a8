//! Runs programs, each in a process group of its own, and ends, stops and continues those groups.
//!
//! No program is missed that starts just while all are being stopped or killed, although the process may stop or end right after
//! that: whoever signals all waits until those are known that are being started, and later ones are signalled as they become known.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
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
    /// Processor time of it and of all programs that it ran.
    pub(crate) cpu: Duration,
    /// Whether it was suspended meanwhile: how long it took says nothing then.
    pub(crate) suspended: bool,
}

/// The process groups of the programs that run.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Held for reading from before a program starts until it is known.
    starting: RwLock<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the process id of the leader.
    running: BTreeMap<i32, Group>,
    /// Whether they are stopped until further notice.
    suspended: bool,
    /// How often they were.
    suspensions: u64,
    /// Whether they were killed for good.
    killed: bool,
}

#[derive(Debug, Default)]
struct Group {
    /// When it was asked to end.
    asked: Option<Instant>,
    /// Whether what has left the group is killed with it.
    whole: bool,
}

impl Groups {
    /// Runs `command`, which makes a process group of its own, and waits for its end.
    pub(crate) fn run(&self, command: &mut Command) -> io::Result<Ended> {
        let before = self.lock().suspensions;
        let (child, pid) = self.start(command, false)?;
        let waited = wait_without_reaping(pid);
        let (interrupted, after) = {
            // While the child is a zombie its id, and so that of its group, belongs to nobody else.
            let mut state = self.lock();
            let asked = state.running.remove(&pid.as_raw_nonzero().get()).is_some_and(|group| group.asked.is_some());
            if asked {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            (asked, state.suspensions)
        };
        let ResUse { status, rusage } = reap(child, waited)?;
        if interrupted {
            wait_for_group(pid);
        }
        let cpu = rusage.utime + rusage.stime;
        Ok(Ended { status, interrupted, peak_kib: rusage.maxrss / 1024, cpu, suspended: before != after })
    }

    /// Starts `command`, which makes a process group of its own. Whoever waits for it tells of its end by [`Groups::forget`], before
    /// it is reaped. `whole`: what has left the group, and is still below its leader, is killed with it.
    pub(crate) fn start(&self, command: &mut Command, whole: bool) -> io::Result<(Child, Pid)> {
        let start = |command: &mut Command| -> io::Result<(Child, Pid)> {
            let _starting = self.starting.read().unwrap_or_else(PoisonError::into_inner);
            let child = command.spawn()?;
            let pid = Pid::from_child(&child);
            self.lock().add(pid, whole);
            Ok((child, pid))
        };
        for _ in 1..BUSY_ATTEMPTS {
            match start(command) {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_PAUSE),
                result => return result,
            }
        }
        start(command)
    }

    /// Forgets a program that has ended.
    pub(crate) fn forget(&self, pid: Pid) {
        self.lock().running.remove(&pid.as_raw_nonzero().get());
    }

    /// How many programs run.
    pub(crate) fn running(&self) -> usize {
        self.lock().running.len()
    }

    /// Asks every group to end that was not asked yet, and kills those that were asked more than `grace` ago. Called again
    /// and again until all have ended.
    pub(crate) fn terminate(&self, grace: Duration) {
        for (&pid, group) in &mut self.lock().running {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            // A group that is gone needs no signal.
            let _ = match group.asked {
                None => {
                    group.asked = Some(Instant::now());
                    let asked = kill_process_group(pid, Signal::TERM);
                    // One that is stopped hears of it only when it goes on.
                    asked.and_then(|()| kill_process_group(pid, Signal::CONT))
                }
                Some(asked) if asked.elapsed() > grace => kill_process_group(pid, Signal::KILL),
                Some(_) => Ok(()),
            };
        }
    }

    /// Kills every group, and whatever starts from now on.
    pub(crate) fn kill(&self) {
        let _nothing_starts = self.starting.write().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        state.killed = true;
        let whole = state.running.iter().filter(|(_, group)| group.whole);
        whole.filter_map(|(pid, _)| Pid::from_raw(*pid)).for_each(end_below);
        for group in state.running.values_mut() {
            group.asked.get_or_insert_with(Instant::now);
        }
        state.signal(Signal::KILL);
    }

    /// Stops every group, and whatever starts from now on.
    pub(crate) fn suspend(&self) {
        let _nothing_starts = self.starting.write().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        state.suspended = true;
        state.suspensions += 1;
        // Not SIGTSTP: who has no terminal would not heed it.
        state.signal(Signal::STOP);
    }

    /// Lets every group go on.
    pub(crate) fn resume(&self) {
        let mut state = self.lock();
        state.suspended = false;
        state.signal(Signal::CONT);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, pid: Pid, whole: bool) {
        let asked = self.killed.then(Instant::now);
        self.running.insert(pid.as_raw_nonzero().get(), Group { asked, whole });
        // A group that is gone needs no signal.
        let _ = match (self.killed, self.suspended) {
            (true, _) => kill_process_group(pid, Signal::KILL),
            (false, true) => kill_process_group(pid, Signal::STOP),
            (false, false) => Ok(()),
        };
    }

    /// Sends `signal` to all groups.
    fn signal(&self, signal: Signal) {
        for pid in self.running.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// Kills what is below a program that is about to be killed with its group, also what is outside of that, where the system lets it be found.
pub(crate) fn end_below(pid: Pid) {
    #[cfg(target_os = "linux")]
    {
        // It must neither end before what is below it, which nobody would find then, nor act on the end of that.
        let _gone = kill_process_group(pid, Signal::STOP);
        let _all_of_it = crate::tree::end_descendants(pid);
    }
    #[cfg(not(target_os = "linux"))]
    let _unknown = pid;
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]).process_group(0);
        command
    }

    #[test]
    fn what_starts_after_all_were_killed_is_killed() {
        let groups = Groups::default();
        groups.kill();
        let ended = groups.run(&mut shell("sleep 60")).unwrap();
        assert_eq!((ended.status.signal(), ended.interrupted), (Some(9), true));
    }

    #[test]
    fn what_starts_while_all_are_suspended_waits() {
        let groups = Groups::default();
        groups.suspend();
        std::thread::scope(|scope| {
            // It ends only when it is asked to, and it hears that only when it goes on. It starts nothing: a shell that waits for a
            // stopped child to become another program (`vfork`) does not stop itself before.
            let run = scope.spawn(|| groups.run(&mut shell("trap 'exit 3' TERM; while :; do :; done")).unwrap());
            while groups.running() == 0 {
                sleep(GONE_PAUSE);
            }
            let leader = groups.lock().running.keys().next().copied().unwrap();
            let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
            let status = waitid(WaitId::Pid(Pid::from_raw(leader).unwrap()), options).unwrap();
            assert!(status.is_some_and(|status| status.stopped()));
            groups.resume();
            groups.terminate(Duration::from_secs(60));
            assert!(run.join().unwrap().interrupted);
        });
        assert_eq!(groups.running(), 0);
    }
}
