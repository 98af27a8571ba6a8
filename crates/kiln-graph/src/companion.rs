//! A program of somebody else's wish than the executor's, that goes on, stops and ends with everything else of an interrupt.

use std::io;
use std::process::{ChildStdin, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::interrupt::Interrupt;
use crate::process::end_below;

/// A program that runs in a process group of its own. One that is dropped before its end is killed, with its group and, on Linux, with
/// everything below it.
#[derive(Debug)]
pub struct Companion {
    interrupt: Interrupt,
    child: std::process::Child,
    pid: Pid,
    ended: bool,
}

impl Interrupt {
    /// Starts a program that [`Interrupt::suspend`], [`Interrupt::resume`] and [`Interrupt::kill`] reach. Whether one of the others was
    /// asked for is for the caller to look at.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, command: &mut Command) -> io::Result<Companion> {
        use std::os::unix::process::CommandExt;
        let (child, pid) = self.groups().start(command.process_group(0), true)?;
        Ok(Companion { interrupt: self.clone(), child, pid, ended: false })
    }
}

impl Companion {
    /// Its standard input, if that is a pipe and was not taken before.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// How it ended; none while it runs. What it has started and left behind in its group is killed.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        // Until it is reaped its id, and so that of its group, belongs to nobody else.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if waitid(WaitId::Pid(self.pid), options)?.is_none() {
            return Ok(None);
        }
        let _alone = kill_process_group(self.pid, Signal::KILL);
        self.reap().map(Some)
    }

    /// Kills what is below it and its group, and waits for it.
    ///
    /// # Errors
    /// When the system does not tell how it ended.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        end_below(self.pid);
        // A group that is gone needs no signal.
        let _gone = kill_process_group(self.pid, Signal::KILL);
        waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        self.reap()
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.ended = true;
        self.interrupt.groups().forget(self.pid);
        self.child.wait()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody is left to hear how it ended.
            let _ended = self.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn wait(program: &mut Companion) -> ExitStatus {
        loop {
            match program.try_wait().unwrap() {
                Some(status) => return status,
                None => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        }
    }

    #[test]
    fn it_ends_by_itself_or_by_the_interrupt() {
        let interrupt = Interrupt::new();
        assert_eq!(wait(&mut interrupt.start(&mut shell("exit 3")).unwrap()).code(), Some(3));
        let mut program = interrupt.start(&mut shell("sleep 60")).unwrap();
        assert_eq!(program.try_wait().unwrap(), None);
        assert_eq!(program.kill().unwrap().signal(), Some(9));
        let mut program = interrupt.start(&mut shell("sleep 60 & wait")).unwrap();
        interrupt.kill();
        assert_eq!(wait(&mut program).signal(), Some(9));
        // Whatever starts from now on ends at once.
        assert_eq!(wait(&mut interrupt.start(&mut shell("sleep 60")).unwrap()).signal(), Some(9));
    }

    #[test]
    fn what_it_leaves_behind_goes_with_it() {
        let interrupt = Interrupt::new();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = shell("sleep 60 & exit 3");
        command.stdout(writer);
        let mut program = interrupt.start(&mut command).unwrap();
        drop(command);
        assert_eq!(wait(&mut program).code(), Some(3));
        // The pipe ends when nobody has it any more.
        assert_eq!(std::io::Read::read(&mut reader, &mut [0; 8]).unwrap(), 0);
    }

    /// A session of its own is no way out of a kill, be it of the program or of all.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_left_its_group_goes_with_it() {
        for of_all in [false, true] {
            let interrupt = Interrupt::new();
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut command = shell("setsid sh -c 'echo; exec sleep 60' & wait");
            command.stdout(writer);
            let mut program = interrupt.start(&mut command).unwrap();
            drop(command);
            assert_eq!(std::io::Read::read(&mut reader, &mut [0; 8]).unwrap(), 1);
            if of_all {
                interrupt.kill();
            } else {
                program.kill().unwrap();
            }
            assert_eq!(std::io::Read::read(&mut reader, &mut [0; 8]).unwrap(), 0);
        }
    }

    #[test]
    fn it_is_suspended_with_the_others() {
        let interrupt = Interrupt::new();
        let program = interrupt.start(&mut shell("while :; do :; done")).unwrap();
        interrupt.suspend();
        let stopped = waitid(WaitId::Pid(program.pid), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
        assert!(stopped.is_some_and(|status| status.stopped()));
        interrupt.resume();
        drop(program);
        assert_eq!(interrupt.groups().running(), 0);
    }
}
