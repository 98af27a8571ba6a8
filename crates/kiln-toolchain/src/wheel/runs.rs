//! Neighbouring members in one request.

use std::ops::Range;

use crate::zip::Member;

/// Bytes between two members that are fetched along rather than asked around: about what a request costs in time.
const GAP: u64 = 32 << 10;

/// The longest run: it is held in memory. The headers of torch are one run of 9.8 MB.
pub(super) const MAX_RUN: u64 = 64 << 20;

/// Members that are fetched by one request.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// Their bytes in the file.
    pub(super) range: Range<u64>,
    /// The members, as they lie in the file.
    pub(super) members: Vec<&'a Member>,
}

/// Joins `members`, which come as they lie in the file, to runs. A member longer than the longest run is one by itself.
pub(super) fn runs<'a>(members: &[&'a Member]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for &member in members {
        match runs.last_mut() {
            Some(run) if member.start.saturating_sub(run.range.end) <= GAP && member.end.saturating_sub(run.range.start) <= MAX_RUN => {
                run.range.end = member.end;
                run.members.push(member);
            }
            _ => runs.push(Run { range: member.start..member.end, members: vec![member] }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::Method;

    fn member(start: u64, end: u64) -> Member {
        Member { name: format!("m{start}"), method: Method::Stored, crc32: 0, compressed: 0, size: 0, start, end }
    }

    #[test]
    fn neighbours_are_one_run_and_distant_ones_are_not() {
        let members = [member(0, 100), member(100, 300), member(400, 500), member(500 + GAP + 1, 600 + GAP)];
        let runs = runs(&members.iter().collect::<Vec<_>>());
        let ranges: Vec<_> = runs.iter().map(|run| (run.range.clone(), run.members.len())).collect();
        assert_eq!(ranges, [(0..500, 3), (500 + GAP + 1..600 + GAP, 1)]);
    }

    #[test]
    fn runs_stay_below_their_limit() {
        let members = [member(0, MAX_RUN - 1), member(MAX_RUN - 1, MAX_RUN + 1), member(MAX_RUN + 1, 4 * MAX_RUN)];
        let runs = runs(&members.iter().collect::<Vec<_>>());
        assert_eq!(runs.len(), 3);
    }
}
