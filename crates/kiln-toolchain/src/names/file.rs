//! The file that holds the coded name sets of the libraries of one release.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `KILNNAME` |
//! | 4 | version of the format, 1 |
//! | 4 | number of libraries |
//! | each: 4, n | length of the SONAME, SONAME |
//! | each: 4, n | length of the coded set, coded set |
//! | 32 | BLAKE3 of all before |
//!
//! Numbers are little-endian.

use std::sync::Arc;

use super::{CodedSet, LibraryExports, NameSet};

const MAGIC: &[u8; 8] = b"KILNNAME";
const VERSION: u32 = 1;

/// What is wrong with a names file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NamesError(pub(super) &'static str);

/// A names file with these libraries, in this order.
#[cfg(feature = "wheels")]
pub(crate) fn encode(libraries: &[(String, CodedSet)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((libraries.len() as u32).to_le_bytes());
    for (soname, set) in libraries {
        for part in [soname.as_bytes(), &set.encode()] {
            bytes.extend((part.len() as u32).to_le_bytes());
            bytes.extend(part);
        }
    }
    let digest = blake3::hash(&bytes);
    bytes.extend(digest.as_bytes());
    bytes
}

/// The libraries of a names file, in file order.
///
/// # Errors
/// When the bytes are no names file, one of another version, or damaged.
pub fn decode(bytes: &[u8]) -> Result<Vec<LibraryExports>, NamesError> {
    let (body, digest) = parts(bytes)?;
    if blake3::hash(body) != *digest {
        return Err(NamesError("its checksum does not match"));
    }
    libraries(body, CodedSet::decode)
}

/// The libraries of a names file that is part of this program: a test reads all of them, so that what is read here is whole.
///
/// # Errors
/// As those of [`decode`].
#[cfg(feature = "wheels")]
pub(super) fn decode_embedded(bytes: &'static [u8]) -> Result<Vec<LibraryExports>, NamesError> {
    libraries(parts(bytes)?.0, CodedSet::of_whole)
}

/// A file without its checksum, and that.
fn parts(bytes: &[u8]) -> Result<(&[u8], &[u8; 32]), NamesError> {
    let (body, digest) = bytes.split_last_chunk::<32>().ok_or(NamesError("it is cut short"))?;
    if !body.starts_with(MAGIC) {
        return Err(NamesError("it is no names file"));
    }
    Ok((body, digest))
}

fn libraries<'b>(body: &'b [u8], set: impl Fn(&'b [u8]) -> Result<CodedSet, NamesError>) -> Result<Vec<LibraryExports>, NamesError> {
    let mut rest = body.get(MAGIC.len()..).unwrap_or_default();
    if take_number(&mut rest)? != VERSION {
        return Err(NamesError("it is of another version"));
    }
    let mut libraries = Vec::new();
    for _ in 0..take_number(&mut rest)? {
        let soname = std::str::from_utf8(take_part(&mut rest)?).map_err(|_| NamesError("a library name is not UTF-8 text"))?.to_owned();
        let names = NameSet::from(set(take_part(&mut rest)?)?);
        libraries.push(LibraryExports { soname, names: Arc::new(names) });
    }
    if !rest.is_empty() {
        return Err(NamesError("it is longer than it says"));
    }
    Ok(libraries)
}

fn take_number(rest: &mut &[u8]) -> Result<u32, NamesError> {
    let (number, tail) = rest.split_first_chunk().ok_or(NamesError("it is cut short"))?;
    *rest = tail;
    Ok(u32::from_le_bytes(*number))
}

fn take_part<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], NamesError> {
    let length = take_number(rest)? as usize;
    let (part, tail) = rest.split_at_checked(length).ok_or(NamesError("it is cut short"))?;
    *rest = tail;
    Ok(part)
}
