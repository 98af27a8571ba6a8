//! A directory of which only the two ends were read, and the members between them by their own headers.
//!
//! The local header of a member says what the directory says of it, but for its attributes and comments. Whoever takes
//! members out by these functions must know their contents otherwise: a wheel's `RECORD` says them.

use super::bytes::{slice_at, u16_at, u32_at};
use super::data::LOCAL_SIGNATURE;
use super::directory::{ENTRY_SIGNATURE, LOCAL_LEN, check_names, entry, is_possible, set_ends};
use super::{EndRecord, Limits, Member, Method, name};

/// The whole entries at the start of a directory, of which `bytes` are the first ones.
pub(crate) fn head_of_directory(bytes: &[u8], limits: &Limits) -> Vec<Member> {
    let mut members = Vec::new();
    let mut at = 0;
    while let Ok((member, len)) = entry(bytes.get(at..).unwrap_or_default(), limits) {
        members.push(member);
        at += len;
    }
    members
}

/// The whole entries at the end of a directory, of which `bytes` are the last ones; none if there is not even one. The
/// members come in the order in which they lie in the file.
pub(crate) fn tail_of_directory(bytes: &[u8], end: &EndRecord, limits: &Limits) -> Option<Vec<Member>> {
    let signature = ENTRY_SIGNATURE.to_le_bytes();
    // Bytes that look like an entry may stand in another one: only a chain of entries up to the end is meant.
    let starts = (0..bytes.len()).filter(|at| slice_at(bytes, *at, 4) == Some(&signature));
    let mut members = starts.into_iter().take(16).find_map(|start| {
        let mut members = Vec::new();
        let mut at = start;
        while at < bytes.len() {
            let (member, len) = entry(bytes.get(at..)?, limits).ok()?;
            members.push(member);
            at += len;
        }
        Some(members)
    })?;
    set_ends(&mut members, end.directory_start).ok()?;
    Some(members)
}

/// The members of a piece of a file that begins at `start` and holds nothing but whole members, by their own headers.
/// None if it holds anything else, or headers that do not say the sizes.
pub(crate) fn members_between(bytes: &[u8], start: u64, limits: &Limits) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if u32_at(bytes, at)? != LOCAL_SIGNATURE {
            return None;
        }
        // Any flag but that of names in UTF-8 and the two for the effort of deflate means something that is not supported
        // here, such as sizes that follow the bytes.
        if u16_at(bytes, at + 6)? & !0b0000_1000_0000_0110 != 0 {
            return None;
        }
        let method = match u16_at(bytes, at + 8)? {
            0 => Method::Stored,
            8 => Method::Deflate,
            _ => return None,
        };
        let (crc32, compressed, size) = (u32_at(bytes, at + 14)?, u32_at(bytes, at + 18)?, u32_at(bytes, at + 22)?);
        let (name_len, extra_len) = (usize::from(u16_at(bytes, at + 26)?), usize::from(u16_at(bytes, at + 28)?));
        let header = usize::try_from(LOCAL_LEN).ok()?;
        let name = std::str::from_utf8(slice_at(bytes, at + header, name_len)?).ok()?.to_owned();
        let (compressed, size) = (u64::from(compressed), u64::from(size));
        if name::fault(&name).is_some() || !is_possible(&name, method, compressed, size) || size > limits.member {
            return None;
        }
        let next = at + header + name_len + extra_len + usize::try_from(compressed).ok()?;
        let place = |at: usize| start.saturating_add(at as u64);
        members.push(Member { name, method, crc32, compressed, size, start: place(at), end: place(next) });
        at = next;
    }
    (at == bytes.len()).then_some(members)
}

/// All members of a file, put together from parts of it. None if they are not as many as the end record says, if names
/// clash, or if bytes overlap.
pub(crate) fn put_together(mut members: Vec<Member>, end: &EndRecord) -> Option<Vec<Member>> {
    if members.len() as u64 != end.members {
        return None;
    }
    check_names(&members).ok()?;
    set_ends(&mut members, end.directory_start).ok()?;
    Some(members)
}
