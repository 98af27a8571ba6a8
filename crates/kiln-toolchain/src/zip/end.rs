//! The end record: where the directory is.

use super::ZipError;
use super::bytes::{slice_at, u16_at, u32_at, u64_at};

/// How many bytes of the end of a file [`find_end`] wants: an end record with the longest comment and zip64's records.
pub const TAIL: u64 = 66 << 10;

const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const END_LEN: usize = 22;
const LOCATOR_SIGNATURE: &[u8] = b"PK\x06\x07";
const LOCATOR_LEN: usize = 20;
const END64_SIGNATURE: &[u8] = b"PK\x06\x06";
const END64_LEN: usize = 56;

/// Where the directory of a zip file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRecord {
    /// Where the directory begins, from the start of the file.
    pub directory_start: u64,
    /// Bytes of the directory.
    pub directory_size: u64,
    /// Number of its entries.
    pub members: u64,
}

/// Finds the end record in `tail`, the last bytes of a file of `file_len` bytes; give it [`TAIL`] bytes or the whole file.
///
/// # Errors
/// [`ZipError::NoEnd`] when there is none, [`ZipError::Directory`] when the directory would not lie inside the file or
/// the file is one of several volumes.
pub fn find_end(tail: &[u8], file_len: u64) -> Result<EndRecord, ZipError> {
    let at = end_position(tail).ok_or(ZipError::NoEnd)?;
    let record = slice_at(tail, at, END_LEN).ok_or(ZipError::NoEnd)?;
    // Positions below are counted from the start of the tail; this is what is before it.
    let before = file_len.checked_sub(tail.len() as u64).ok_or(ZipError::NoEnd)?;
    let (end, limit) = match end64_position(tail, at, before)? {
        Some(at64) => (read_end64(tail, at64).ok_or_else(|| damaged("is cut off"))??, at64),
        None => (read_end(record).ok_or(ZipError::NoEnd)??, at),
    };
    let directory_end = end.directory_start.checked_add(end.directory_size);
    if directory_end.is_none_or(|directory_end| directory_end > before.saturating_add(limit as u64)) {
        return Err(damaged("is said to lie outside of the file"));
    }
    Ok(end)
}

/// Where the end record begins: the last place whose comment ends exactly with the file.
fn end_position(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END_LEN)?;
    (0..=last).rev().take(usize::from(u16::MAX) + 1).find(|&at| {
        let comment = u16_at(tail, at.saturating_add(20)).map(usize::from);
        slice_at(tail, at, 4) == Some(END_SIGNATURE) && comment == last.checked_sub(at)
    })
}

/// Where zip64's end record begins, if there is one.
fn end64_position(tail: &[u8], end: usize, before: u64) -> Result<Option<usize>, ZipError> {
    let Some(locator) = end.checked_sub(LOCATOR_LEN).and_then(|at| slice_at(tail, at, LOCATOR_LEN)) else { return Ok(None) };
    if !locator.starts_with(LOCATOR_SIGNATURE) {
        return Ok(None);
    }
    if u32_at(locator, 4) != Some(0) || u32_at(locator, 16) != Some(1) {
        return Err(damaged("is spread over several files"));
    }
    let at = u64_at(locator, 8).and_then(|at| at.checked_sub(before)).and_then(|at| usize::try_from(at).ok());
    match at.filter(|at| at.saturating_add(END64_LEN) <= end && slice_at(tail, *at, 4) == Some(END64_SIGNATURE)) {
        Some(at) => Ok(Some(at)),
        None => Err(damaged("has no zip64 end record where it should be")),
    }
}

/// Reads a plain end record.
fn read_end(record: &[u8]) -> Option<Result<EndRecord, ZipError>> {
    let (disk, directory_disk) = (u16_at(record, 4)?, u16_at(record, 6)?);
    let (here, members) = (u16_at(record, 8)?, u16_at(record, 10)?);
    let (directory_size, directory_start) = (u32_at(record, 12)?, u32_at(record, 16)?);
    if disk != 0 || directory_disk != 0 || here != members {
        return Some(Err(damaged("is spread over several files")));
    }
    if members == u16::MAX || directory_size == u32::MAX || directory_start == u32::MAX {
        return Some(Err(damaged("has no zip64 end record where it should be")));
    }
    Some(Ok(EndRecord { directory_start: directory_start.into(), directory_size: directory_size.into(), members: members.into() }))
}

/// Reads a zip64 end record.
fn read_end64(tail: &[u8], at: usize) -> Option<Result<EndRecord, ZipError>> {
    let record = slice_at(tail, at, END64_LEN)?;
    let (here, members) = (u64_at(record, 24)?, u64_at(record, 32)?);
    let (directory_size, directory_start) = (u64_at(record, 40)?, u64_at(record, 48)?);
    if u32_at(record, 16)? != 0 || u32_at(record, 20)? != 0 || here != members {
        return Some(Err(damaged("is spread over several files")));
    }
    Some(Ok(EndRecord { directory_start, directory_size, members }))
}

/// An error about the directory.
fn damaged(reason: &str) -> ZipError {
    ZipError::Directory(reason.to_owned())
}
