//! Bodies of fuzz targets, as plain functions that ordinary tests run as well.

use crate::zip::{Limits, find_end, head_of_directory, members_between, parse_directory, put_together, tail_of_directory};

/// Reads `file` as a wheel is read: the end record, the directory, every member. Nothing may panic or use memory beyond what the
/// file is long, and what the reader accepts must keep its promises.
///
/// # Panics
/// When the reader breaks a promise: that is what a fuzzer looks for.
#[expect(clippy::panic, reason = "a finding of the fuzzer")]
pub fn wheel_directory(file: &[u8]) {
    let len = file.len() as u64;
    let Ok(end) = find_end(file, len) else { return };
    let start = usize::try_from(end.directory_start).unwrap_or(usize::MAX);
    let size = usize::try_from(end.directory_size).unwrap_or(usize::MAX);
    let Some(directory) = file.get(start..).and_then(|rest| rest.get(..size)) else {
        panic!("the directory is said to lie in the file: {end:?} of {len} bytes");
    };
    let limits = Limits { members: 10_000, directory: len, member: 1 << 20 };
    // The same read in parts gives the same members or none.
    let (head, tail) = directory.split_at(directory.len() / 2);
    let (head, tail) = (head_of_directory(head, &limits), tail_of_directory(tail, &end, &limits).unwrap_or_default());
    let (first, last) = (head.last().map_or(0, |member| member.start), tail.first().map_or(end.directory_start, |member| member.start));
    let between = usize::try_from(first).ok().zip(usize::try_from(last).ok()).and_then(|(first, last)| file.get(first..last));
    let between = between.and_then(|bytes| members_between(bytes, first, &limits)).unwrap_or_default();
    let known = head.into_iter().filter(|member| member.start < first);
    let parts = put_together(known.chain(between).chain(tail).collect(), &end);
    let Ok(members) = parse_directory(directory, &end, &limits) else { return };
    if let Some(parts) = parts
        && !parts.iter().zip(&members).all(|(part, member)| (&part.name, part.start) == (&member.name, member.start))
        && members.iter().all(|member| is_at_its_place(file, member))
    {
        panic!("a directory read in parts has other members: {parts:?} and {members:?}");
    }
    let mut before = 0;
    for member in &members {
        let safe =
            !member.name.starts_with('/') && member.name.trim_end_matches('/').split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !safe || member.start < before || member.end < member.start || member.end > end.directory_start || member.size > limits.member {
            panic!("a member that should have been refused: {member:?}");
        }
        before = member.end;
        let extent = usize::try_from(member.start).ok().zip(usize::try_from(member.end).ok());
        let extent = extent.and_then(|(start, end)| file.get(start..end)).unwrap_or_default();
        if let Ok(content) = member.extract(extent)
            && content.len() as u64 != member.size
        {
            panic!("a member of another size than said: {member:?}");
        }
    }
}

/// Whether the member's own header has its name.
fn is_at_its_place(file: &[u8], member: &crate::zip::Member) -> bool {
    let name = usize::try_from(member.start).ok().and_then(|start| file.get(start..)?.get(30..30 + member.name.len()));
    name == Some(member.name.as_bytes())
}
