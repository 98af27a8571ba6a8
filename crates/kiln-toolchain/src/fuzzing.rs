//! Bodies of fuzz targets, as plain functions that ordinary tests run as well.

use crate::zip::{Limits, find_end, parse_directory};

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
    let Ok(members) = parse_directory(directory, &end, &limits) else { return };
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
