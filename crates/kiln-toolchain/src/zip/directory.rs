//! The directory: which members there are and where.

use std::collections::BTreeSet;

use super::bytes::{slice_at, u16_at, u32_at, u64_at};
use super::end::EndRecord;
use super::{Limits, Member, ZipError, name};

pub(super) const ENTRY_SIGNATURE: u32 = 0x0201_4b50;
const ENTRY_LEN: usize = 46;
/// Length of a local header without the name and the extra field.
pub(super) const LOCAL_LEN: u64 = 30;
/// Deflate cannot make more than this many bytes out of one (zlib's technical details: 1032).
const MAX_RATIO: u64 = 1032;
/// Upper byte of "version made by" for systems whose external attributes hold a Unix mode.
const MADE_ON_UNIX: u8 = 3;
const UNIX_TYPE: u32 = 0o170_000;
const UNIX_FILE: u32 = 0o100_000;
const UNIX_DIR: u32 = 0o040_000;
const UNIX_LINK: u32 = 0o120_000;

/// How the bytes of a member are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As they are.
    Stored,
    /// Deflated.
    Deflate,
}

/// Reads a directory. The members come in the order in which they lie in the file.
///
/// # Errors
/// [`ZipError::Directory`] when `bytes` is no directory of `end.members` entries or exceeds `limits`;
/// [`ZipError::Member`] for a member that is encrypted, compressed by another method than deflate, a link or device, has
/// an unsafe name, a name that another one has, a size that cannot be, or bytes that overlap another member's.
pub fn parse_directory(bytes: &[u8], end: &EndRecord, limits: &Limits) -> Result<Vec<Member>, ZipError> {
    if end.members > limits.members {
        return Err(ZipError::Directory(format!("has {} entries, more than {}", end.members, limits.members)));
    }
    // Each entry needs its bytes: a false count cannot make this reserve more than the directory is long.
    let mut members = Vec::with_capacity(usize::try_from(end.members).unwrap_or(0).min(bytes.len() / ENTRY_LEN));
    let mut at = 0;
    for _ in 0..end.members {
        let (member, len) = entry(bytes.get(at..).unwrap_or_default(), limits)?;
        members.push(member);
        at = at.saturating_add(len);
    }
    if at != bytes.len() {
        return Err(ZipError::Directory("has more bytes than its entries".to_owned()));
    }
    check_names(&members)?;
    set_ends(&mut members, end.directory_start)?;
    Ok(members)
}

/// Reads the entry at the start of `bytes`; gives its length too.
pub(super) fn entry(bytes: &[u8], limits: &Limits) -> Result<(Member, usize), ZipError> {
    let cut_off = || ZipError::Directory("is cut off".to_owned());
    if u32_at(bytes, 0).ok_or_else(cut_off)? != ENTRY_SIGNATURE {
        return Err(ZipError::Directory("has something else where an entry should be".to_owned()));
    }
    let short = |at| u16_at(bytes, at).ok_or_else(cut_off);
    let long = |at| u32_at(bytes, at).ok_or_else(cut_off);
    let (made_by, flags, method) = (short(4)?, short(8)?, short(10)?);
    let (crc32, attributes) = (long(16)?, long(38)?);
    let (name_len, extra_len, comment_len) = (usize::from(short(28)?), usize::from(short(30)?), usize::from(short(32)?));
    let disk = short(34)?;
    let raw_name = slice_at(bytes, ENTRY_LEN, name_len).ok_or_else(cut_off)?;
    let extra = slice_at(bytes, ENTRY_LEN + name_len, extra_len).ok_or_else(cut_off)?;
    let len = ENTRY_LEN + name_len + extra_len + comment_len;
    if bytes.len() < len {
        return Err(cut_off());
    }
    let shown = String::from_utf8_lossy(raw_name);
    let refuse = |reason: &str| ZipError::member(&shown, reason);
    let name = std::str::from_utf8(raw_name).map_err(|_| refuse("has a name that is not UTF-8"))?.to_owned();
    if let Some(fault) = name::fault(&name) {
        return Err(refuse(fault));
    }
    let [size, compressed, start] = wide(extra, [long(24)?, long(20)?, long(42)?]).ok_or_else(|| refuse("has a damaged zip64 field"))?;
    // Bit 0: encrypted, bit 5: patch data, bit 6: strong encryption, bit 13: masked headers.
    if flags & 0b0010_0000_0110_0001 != 0 {
        return Err(refuse("is encrypted"));
    }
    if disk != 0 {
        return Err(refuse("is on another volume"));
    }
    let method = match method {
        0 => Method::Stored,
        8 => Method::Deflate,
        other => return Err(refuse(&format!("is compressed by method {other}, which is not supported"))),
    };
    check_kind(&name, made_by, attributes).map_err(refuse)?;
    if !is_possible(&name, method, compressed, size) {
        return Err(refuse(&format!("cannot be {size} bytes out of {compressed}")));
    }
    if size > limits.member {
        return Err(refuse(&format!("has {size} bytes, more than {}", limits.member)));
    }
    Ok((Member { name, method, crc32, compressed, size, start, end: 0 }, len))
}

/// Whether a member can have `size` bytes, of which `compressed` are kept.
pub(super) fn is_possible(name: &str, method: Method, compressed: u64, size: u64) -> bool {
    let possible = match method {
        Method::Stored => size == compressed,
        Method::Deflate => size <= compressed.saturating_mul(MAX_RATIO),
    };
    possible && (!name.ends_with('/') || size == 0)
}

/// Refuses what is neither a file nor a directory.
fn check_kind(name: &str, made_by: u16, attributes: u32) -> Result<(), &'static str> {
    let kind = (attributes >> 16) & UNIX_TYPE;
    let [_, system] = made_by.to_le_bytes();
    if system != MADE_ON_UNIX || kind == 0 {
        return Ok(());
    }
    match (kind, name.ends_with('/')) {
        (UNIX_FILE, false) | (UNIX_DIR, true) => Ok(()),
        (UNIX_LINK, _) => Err("is a link"),
        _ => Err("is neither a file nor a directory"),
    }
}

/// Size, compressed size and start, from the zip64 field where the entry has no room for them.
fn wide(extra: &[u8], values: [u32; 3]) -> Option<[u64; 3]> {
    if !values.contains(&u32::MAX) {
        return Some(values.map(u64::from));
    }
    let mut at = 0;
    let field = loop {
        let (id, len) = (u16_at(extra, at)?, usize::from(u16_at(extra, at + 2)?));
        if id == 1 {
            break slice_at(extra, at + 4, len)?;
        }
        at = at + 4 + len;
    };
    let mut wide = values.map(u64::from);
    let mut taken = 0;
    for value in &mut wide {
        if *value == u64::from(u32::MAX) {
            *value = u64_at(field, taken)?;
            taken += 8;
        }
    }
    Some(wide)
}

/// Refuses names that occur twice, and files that are also directories.
pub(super) fn check_names(members: &[Member]) -> Result<(), ZipError> {
    let mut files: BTreeSet<&str> = BTreeSet::new();
    let mut dirs: BTreeSet<&str> = BTreeSet::new();
    for member in members {
        let path = member.name.trim_end_matches('/');
        if !(if member.is_dir() { &mut dirs } else { &mut files }).insert(path) {
            return Err(ZipError::member(&member.name, "occurs twice"));
        }
    }
    for member in members {
        let path = member.name.trim_end_matches('/');
        let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let itself = member.is_dir().then_some(path);
        if let Some(file) = parents.chain(itself).find(|dir| files.contains(dir)) {
            return Err(ZipError::member(file, "is a file and a directory"));
        }
    }
    Ok(())
}

/// Sorts the members as they lie in the file, and refuses those that overlap.
pub(super) fn set_ends(members: &mut [Member], directory_start: u64) -> Result<(), ZipError> {
    members.sort_by_key(|member| member.start);
    let mut end = directory_start;
    for member in members.iter_mut().rev() {
        member.end = end;
        let least = member.compressed.checked_add(LOCAL_LEN + member.name.len() as u64).and_then(|len| member.start.checked_add(len));
        if least.is_none_or(|least| least > end) {
            return Err(ZipError::member(&member.name, "overlaps what comes after it"));
        }
        end = member.start;
    }
    Ok(())
}
