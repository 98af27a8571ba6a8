//! The processes below a process, as the system's table of processes shows them.
//!
//! A process that makes a session of its own leaves its group, and one whose parent has ended gets another parent: that of its parent's
//! group, or of nobody here. Below a process that takes such orphans in (a "child subreaper" of Linux) none of them is lost.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often the processes below one are looked for. Each time those are killed that the time before had started; one that starts others
/// without end, faster than they are killed, is left in the end.
const ROUNDS: usize = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// What the table says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    parent: i32,
    /// When it started: a number that goes to another process later has another time.
    started: u64,
    /// Whether it has ended, and only waits for somebody to ask how.
    ended: bool,
}

/// Kills every process below `root`, not `root` itself. True: none of them runs any more.
pub fn end_descendants(root: Pid) -> bool {
    for _ in 0..ROUNDS {
        let below = living_below(root.as_raw_nonzero().get(), &table());
        if below.is_empty() {
            return true;
        }
        for (id, entry) in below {
            kill(id, entry);
        }
        sleep(PAUSE);
    }
    false
}

/// Kills the process that the table had this entry of, and no other that has its number by now.
fn kill(id: i32, entry: Entry) {
    let Some(Ok(process)) = Pid::from_raw(id).map(|id| pidfd_open(id, PidfdFlags::empty())) else { return };
    // Its parent may be another one meanwhile.
    if read(id).is_some_and(|now| now.started == entry.started) {
        let _gone = pidfd_send_signal(&process, Signal::KILL);
    }
}

fn living_below(root: i32, table: &BTreeMap<i32, Entry>) -> Vec<(i32, Entry)> {
    let mut below = Vec::new();
    let mut next = vec![root];
    // Everything has one parent, so that nothing is met twice.
    while let Some(parent) = next.pop() {
        // What a process that has ended had started is somebody else's already.
        let children = table.iter().filter(|(id, entry)| entry.parent == parent && **id != root && !entry.ended);
        for (id, entry) in children {
            below.push((*id, *entry));
            next.push(*id);
        }
    }
    below
}

fn table() -> BTreeMap<i32, Entry> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    names.filter_map(|id: i32| Some((id, read(id)?))).collect()
}

fn read(id: i32) -> Option<Entry> {
    parse(&fs::read(format!("/proc/{id}/stat")).ok()?)
}

/// A line of `/proc/ID/stat`. The second field is a name in parentheses, which may hold anything.
fn parse(stat: &[u8]) -> Option<Entry> {
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(stat.get(behind..)?).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    // By the manual of `proc`, the third field is the state, the fourth the parent, the 22nd the start.
    Some(Entry {
        ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table_are_read() {
        let line = b"812 (a) R 1 (b) Z 7 812 812 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n";
        assert_eq!(parse(line), Some(Entry { parent: 7, started: 4242, ended: true }));
        assert_eq!(parse(b"812 (\xff) S 7"), None);
        assert_eq!(parse(b""), None);
        let own = read(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(own.started > 0 && !own.ended);
    }

    #[test]
    fn all_below_are_found_and_nobody_else() {
        let entry = |parent, ended| Entry { parent, started: 1, ended };
        let table = BTreeMap::from([
            (1, entry(0, false)),
            (2, entry(1, false)),
            (3, entry(2, false)),
            (4, entry(2, true)),
            (5, entry(3, false)),
            (6, entry(1, false)),
        ]);
        let below = |root| living_below(root, &table).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!((below(2), below(5), below(7)), (vec![3, 5], vec![], vec![]));
    }
}
