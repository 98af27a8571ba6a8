//! What the readers share: symbol fields as our types, string tables read in one piece.

use object::elf;
use object::read::elf::{FileHeader, SectionHeader as _, SectionTable, Sym, SymbolTable};
use object::read::{ReadRef, SectionIndex};
use object::{Endianness, elf as raw};

use super::{Binding, SymbolKind, Visibility};
use crate::Error;

/// Which of the two ELF layouts a file has.
pub(super) enum Class {
    /// 32-bit fields.
    Elf32,
    /// 64-bit fields.
    Elf64,
}

/// Recognises an ELF file by its first bytes.
pub(super) fn class<'d, R: ReadRef<'d>>(data: R) -> Result<Class, Error> {
    let not_elf = Error::Format { expected: "an ELF file" };
    let Ok(ident) = data.read_bytes_at(0, 6) else { return Err(not_elf) };
    match ident {
        [0x7f, b'E', b'L', b'F', class, 1 | 2] if *class == elf::ELFCLASS32.0 => Ok(Class::Elf32),
        [0x7f, b'E', b'L', b'F', class, 1 | 2] if *class == elf::ELFCLASS64.0 => Ok(Class::Elf64),
        _ => Err(not_elf),
    }
}

/// A string table. Read whole, since most of its strings are wanted and a large file is not in memory.
#[derive(Clone, Copy)]
pub(super) struct Strings<'d> {
    bytes: &'d [u8],
    what: &'static str,
}

impl<'d> Strings<'d> {
    /// The string table in section `index`; the empty one when there is none.
    pub(super) fn of_section<H, R>(
        sections: &SectionTable<'d, H, R>,
        endian: Endianness,
        data: R,
        index: SectionIndex,
        what: &'static str,
    ) -> Result<Self, Error>
    where
        H: FileHeader<Endian = Endianness>,
        R: ReadRef<'d>,
    {
        if index.0 == 0 {
            return Ok(Self { bytes: &[], what });
        }
        let section = sections.section(index).map_err(Error::damaged(what))?;
        let bytes = section.data(endian, data).map_err(Error::damaged(what))?;
        Ok(Self { bytes, what })
    }

    /// The whole table.
    pub(super) fn bytes(&self) -> &'d [u8] {
        self.bytes
    }

    /// The string at `offset`. Offset 0 is the empty string, also in an empty table.
    pub(super) fn get(&self, offset: u32) -> Result<&'d str, Error> {
        if offset == 0 {
            return Ok("");
        }
        let damaged = |cause: &str| Error::Damaged { what: self.what, cause: cause.to_owned() };
        let rest = self.bytes.get(offset as usize..).ok_or_else(|| damaged("a name lies outside of the string table"))?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("a name has no end"))?;
        let name = rest.get(..end).unwrap_or_default();
        std::str::from_utf8(name).map_err(|_| damaged("a name is not UTF-8 text"))
    }
}

/// How much memory the names of one table may take. Many entries may point at one long string, so that a small file could
/// otherwise ask for any amount.
pub(super) struct Budget {
    left: usize,
    what: &'static str,
}

impl Budget {
    /// What an entry takes beside its text.
    const ENTRY: usize = 48;

    /// For entries whose names lie in `strings`: linkers share the ends of names, but not 64 times over.
    pub(super) fn new(strings: &[u8], what: &'static str) -> Self {
        Self { left: (1usize << 20).saturating_add(strings.len().saturating_mul(64)), what }
    }

    /// A name of its own.
    pub(super) fn own(&mut self, name: &str) -> Result<String, Error> {
        match self.left.checked_sub(name.len().saturating_add(Self::ENTRY)) {
            Some(left) => {
                self.left = left;
                Ok(name.to_owned())
            }
            None => Err(Error::Damaged { what: self.what, cause: "its names are more than its strings can be meant for".to_owned() }),
        }
    }
}

/// The symbol table of type `kind` and its strings. Both empty when the file has none.
pub(super) fn symbols<'d, H, R>(
    sections: &SectionTable<'d, H, R>,
    endian: Endianness,
    data: R,
    kind: elf::SectionType,
    what: &'static str,
) -> Result<(SymbolTable<'d, H, R>, Strings<'d>), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let table = sections.symbols(endian, data, kind).map_err(Error::damaged(what))?;
    let strings = Strings::of_section(sections, endian, data, table.string_section(), what)?;
    Ok((table, strings))
}

pub(super) fn kind_of(symbol: &impl Sym) -> SymbolKind {
    match symbol.st_type() {
        raw::STT_NOTYPE => SymbolKind::Untyped,
        raw::STT_FUNC => SymbolKind::Function,
        raw::STT_GNU_IFUNC => SymbolKind::IndirectFunction,
        raw::STT_OBJECT | raw::STT_COMMON => SymbolKind::Object,
        raw::STT_TLS => SymbolKind::Tls,
        other => SymbolKind::Other(other.0),
    }
}

pub(super) fn binding_of(symbol: &impl Sym) -> Binding {
    match symbol.st_bind() {
        raw::STB_LOCAL => Binding::Local,
        raw::STB_GLOBAL => Binding::Global,
        raw::STB_WEAK => Binding::Weak,
        raw::STB_GNU_UNIQUE => Binding::Unique,
        other => Binding::Other(other.0),
    }
}

pub(super) fn visibility_of(symbol: &impl Sym) -> Visibility {
    match symbol.st_visibility() {
        raw::STV_DEFAULT => Visibility::Default,
        raw::STV_PROTECTED => Visibility::Protected,
        _ => Visibility::Hidden,
    }
}
