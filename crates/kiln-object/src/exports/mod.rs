//! What a shared library offers to those who link with it, whatever its format.

mod macho;
mod pe;
mod trie;

use std::fs::File;
use std::path::Path;

use object::read::{ReadCache, ReadRef};

use crate::Error;

/// The format of a shared library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Of Linux.
    Elf,
    /// Of macOS.
    MachO,
    /// Of Windows.
    Pe,
}

/// The name of a library and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    /// Its format.
    pub format: Format,
    /// What those who link with it record: the SONAME, the install name (`@rpath/libc10.dylib`), the name of the DLL.
    pub library: Option<String>,
    /// The names that it offers, as a compiler spells them: without the underscore that Mach-O puts in front of every name.
    /// In file order.
    pub names: Vec<String>,
}

/// Reads a library without reading all of it.
///
/// # Errors
/// When the file cannot be opened, is no shared library of a known format for a 64-bit processor, or is damaged.
pub fn of_file(path: &Path) -> Result<Exports, Error> {
    let file = File::open(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
    let cache = ReadCache::new(file);
    match format(&cache) {
        Some(Format::Elf) => {
            let library = crate::elf::dynamic_file(path)?;
            let names = library.exports.into_iter().map(|export| export.name).collect();
            Ok(Exports { format: Format::Elf, library: library.soname, names })
        }
        Some(Format::MachO) => macho::read(&cache),
        Some(Format::Pe) => pe::read(&cache),
        None => Err(Error::Format { expected: "a shared library" }),
    }
}

/// The names that a Mach-O file offers.
pub(crate) fn of_macho(data: &[u8]) -> Result<Vec<String>, Error> {
    Ok(macho::read(data)?.names)
}

/// The format that the first bytes say.
fn format<'d>(data: impl ReadRef<'d>) -> Option<Format> {
    match data.read_bytes_at(0, 4).ok()? {
        [0x7f, b'E', b'L', b'F'] => Some(Format::Elf),
        // 64-bit, little-endian.
        [0xcf, 0xfa, 0xed, 0xfe] => Some(Format::MachO),
        [b'M', b'Z', ..] => Some(Format::Pe),
        _ => None,
    }
}

/// A name of a file, owned.
fn text(bytes: &[u8], what: &'static str) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::Damaged { what, cause: "a name is not UTF-8 text".to_owned() })?;
    Ok(text.to_owned())
}
