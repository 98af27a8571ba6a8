//! Whether the tests hear the signals that they send.
//!
//! A shell starts what it puts into the background with interrupts ignored, `nohup` with hang-ups, and every process below inherits
//! that. Kiln keeps to it, as programs should, so that a test which interrupts a build would wait for ever.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// HUP, INT, QUIT and TERM, as bits of a signal mask.
const ENDING: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 14;

/// Starts this program anew with those signals as they are by default, if it was started with one of them ignored.
///
/// # Errors
/// When `env` cannot do that.
pub(crate) fn hear() -> anyhow::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignored(&status) & ENDING == 0 {
        return Ok(());
    }
    let program = std::env::current_exe()?;
    let cause = Command::new("env").arg("--default-signal=HUP,INT,QUIT,TERM").arg(program).args(std::env::args_os().skip(1)).exec();
    anyhow::bail!("signals are ignored here, which tests need, and `env` (coreutils) cannot be started: {cause}")
}

/// The mask of ignored signals in the text of `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001007\n"), 0x1007);
        assert_eq!(ignored(""), 0);
        // What `trap ''` ignores is heard again behind `env`.
        let script = "trap '' INT HUP; env --default-signal=HUP,INT,QUIT,TERM cat /proc/self/status";
        let said = Command::new("sh").args(["-c", script]).output().unwrap();
        assert_eq!(ignored(&String::from_utf8_lossy(&said.stdout)) & ENDING, 0);
    }
}
