//! Looking into static libraries (`.a`), and writing them.

mod write;

pub use write::{NewMember, write};

use object::read::archive::ArchiveFile;

use crate::Error;

const WHAT: &str = "archive";

/// One file of a static library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'d> {
    /// Its file name.
    pub name: &'d str,
    /// Its content.
    pub data: &'d [u8],
}

/// An entry of a static library's index: a name and the file that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry<'d> {
    /// The defined symbol, mangled.
    pub name: &'d str,
    /// File name of the member that defines it.
    pub member: &'d str,
}

/// Whether the bytes begin like a static library.
pub fn is_archive(data: &[u8]) -> bool {
    data.starts_with(b"!<arch>\n") || data.starts_with(b"!<thin>\n")
}

/// The members of a static library, in file order.
///
/// # Errors
/// When `data` is not an archive, is a thin one (whose members lie elsewhere), or is damaged.
pub fn members(data: &[u8]) -> Result<Vec<Member<'_>>, Error> {
    let archive = parse(data)?;
    let mut members = Vec::new();
    for member in archive.members() {
        let member = member.map_err(Error::damaged(WHAT))?;
        members.push(Member { name: text(member.name())?, data: member.data(data).map_err(Error::damaged(WHAT))? });
    }
    Ok(members)
}

/// The index of a static library, in file order; empty for an archive without one.
///
/// # Errors
/// As [`members`].
pub fn symbol_index(data: &[u8]) -> Result<Vec<IndexEntry<'_>>, Error> {
    let archive = parse(data)?;
    let mut index = Vec::new();
    let Some(symbols) = archive.symbols().map_err(Error::damaged(WHAT))? else { return Ok(index) };
    for symbol in symbols {
        let symbol = symbol.map_err(Error::damaged(WHAT))?;
        let member = archive.member(symbol.offset()).map_err(Error::damaged(WHAT))?;
        index.push(IndexEntry { name: text(symbol.name())?, member: text(member.name())? });
    }
    Ok(index)
}

fn parse(data: &[u8]) -> Result<ArchiveFile<'_>, Error> {
    if !is_archive(data) {
        return Err(Error::Format { expected: "a static library" });
    }
    let archive = ArchiveFile::parse(data).map_err(Error::damaged(WHAT))?;
    if archive.is_thin() {
        return Err(Error::Unsupported { what: "a thin archive".to_owned() });
    }
    Ok(archive)
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::Damaged { what: WHAT, cause: "a name is not UTF-8 text".to_owned() })
}
