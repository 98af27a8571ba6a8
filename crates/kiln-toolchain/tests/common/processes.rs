//! What has become of a process.

use std::time::Duration;

/// Whether a process ends, now or in a moment: one that was killed may still be on its way out, and an orphan is a zombie until whoever
/// adopts it has reaped it.
pub(crate) fn ends(pid: &str) -> bool {
    (0..1000).any(|_| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let gone = stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with(['Z', 'X']));
        if !gone {
            std::thread::sleep(Duration::from_millis(10));
        }
        gone
    })
}
