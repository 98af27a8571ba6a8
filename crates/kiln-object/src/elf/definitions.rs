//! What an object defines, with what decides whether two copies of it may live in one process; and hiding it.

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader as _, Sym};
use object::{Endianness, read::ReadRef};

use super::tables::{self, Class};
use super::{Binding, SymbolKind};
use crate::Error;

/// What becomes of a symbol's bytes while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Storage {
    /// Never written to: code and constants. Also what lies in no section.
    Constant,
    /// Written by the loader only (`.data.rel.ro`).
    Relocated,
    /// Written to by the program. Common ("tentative") symbols are of this kind.
    Writable,
}

/// A symbol that an object defines. Unlike [`Defined`](super::Defined) it may be local.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The symbol's name, mangled.
    pub name: String,
    /// How it takes part in linking.
    pub binding: Binding,
    /// What it names.
    pub kind: SymbolKind,
    /// Its size in bytes.
    pub size: u64,
    /// What becomes of its bytes.
    pub storage: Storage,
}

/// Reads what a relocatable object defines, in the order of its symbol table. Section and file symbols are left out.
///
/// # Errors
/// When `data` is not a relocatable ELF file, is damaged, or names a symbol with bytes that are not UTF-8.
pub fn definitions(data: &[u8]) -> Result<Vec<Definition>, Error> {
    match tables::class(data)? {
        Class::Elf32 => read::<FileHeader32<Endianness>, _>(data),
        Class::Elf64 => read::<FileHeader64<Endianness>, _>(data),
    }
}

fn read<'d, H, R>(data: R) -> Result<Vec<Definition>, Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let (endian, sections) = open::<H, R>(data)?;
    let (table, strings) = tables::symbols(&sections, endian, data, elf::SHT_SYMTAB, SYMBOLS)?;
    let mut found = Vec::new();
    for (index, symbol) in table.enumerate() {
        if symbol.is_undefined(endian) || matches!(symbol.st_type(), elf::STT_SECTION | elf::STT_FILE) {
            continue;
        }
        let name = strings.get(symbol.st_name(endian))?;
        if name.is_empty() {
            continue;
        }
        let storage = if symbol.is_common(endian) {
            Storage::Writable
        } else {
            match table.symbol_section(endian, symbol, index).map_err(Error::damaged(SYMBOLS))? {
                None => Storage::Constant,
                Some(section) => {
                    let section = sections.section(section).map_err(Error::damaged(SECTIONS))?;
                    let name = sections.section_name(endian, section).map_err(Error::damaged(SECTIONS))?;
                    match section.sh_flags(endian).contains(elf::SHF_WRITE) {
                        true if name.starts_with(b".data.rel.ro") => Storage::Relocated,
                        true => Storage::Writable,
                        false => Storage::Constant,
                    }
                }
            }
        };
        found.push(Definition {
            name: name.to_owned(),
            binding: tables::binding_of(symbol),
            kind: tables::kind_of(symbol),
            size: symbol.st_size(endian).into(),
            storage,
        });
    }
    Ok(found)
}

/// Makes every definition of a relocatable 64-bit object hidden, in place: nothing outside of the file that it is linked into will
/// see them. Those whose names `weaken` accepts become weak: they give way to another definition in the same link.
///
/// # Errors
/// As [`definitions`], and for an object that is not 64-bit.
pub fn hide(data: &mut [u8], weaken: impl Fn(&str) -> bool) -> Result<(), Error> {
    for (at, weak) in places_of_bindings(data, weaken)? {
        let cut = || Error::Damaged { what: SYMBOLS, cause: "it ends too early".to_owned() };
        let Some([info, other]) = data.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else { return Err(cut()) };
        *other = *other & !0x3 | elf::STV_HIDDEN.0;
        if weak {
            *info = *info & 0xf | elf::STB_WEAK.0 << 4;
        }
    }
    Ok(())
}

/// Where the `st_info`, which `st_other` follows, of every definition that others may see is, and whether it shall become weak.
fn places_of_bindings(data: &[u8], weaken: impl Fn(&str) -> bool) -> Result<Vec<(usize, bool)>, Error> {
    /// Size of an entry of a 64-bit symbol table, and where in it `st_info` is (System V ABI, "symbol table").
    const ENTRY: usize = 24;
    const INFO: usize = 4;
    if !matches!(tables::class(data)?, Class::Elf64) {
        return Err(Error::Unsupported { what: "hiding the names of a 32-bit object".to_owned() });
    }
    let (endian, sections) = open::<FileHeader64<Endianness>, _>(data)?;
    let (table, strings) = tables::symbols(&sections, endian, data, elf::SHT_SYMTAB, SYMBOLS)?;
    if table.is_empty() {
        return Ok(Vec::new());
    }
    let section = sections.section(table.section()).map_err(Error::damaged(SECTIONS))?;
    let start = usize::try_from(section.sh_offset(endian))
        .map_err(|_| Error::Damaged { what: SYMBOLS, cause: "it lies outside of the file".to_owned() })?;
    let mut places = Vec::new();
    for (index, symbol) in table.enumerate() {
        if !symbol.is_undefined(endian) && symbol.st_bind() != elf::STB_LOCAL {
            let at = start.saturating_add(index.0.saturating_mul(ENTRY)).saturating_add(INFO);
            places.push((at, weaken(strings.get(symbol.st_name(endian))?)));
        }
    }
    Ok(places)
}

const SYMBOLS: &str = "symbol table";
const SECTIONS: &str = "section table";

fn open<'d, H, R>(data: R) -> Result<(Endianness, object::read::elf::SectionTable<'d, H, R>), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let header = H::parse(data).map_err(Error::damaged("ELF header"))?;
    let endian = header.endian().map_err(Error::damaged("ELF header"))?;
    if header.e_type(endian) != elf::ET_REL {
        return Err(Error::Format { expected: "a relocatable object" });
    }
    Ok((endian, header.sections(endian, data).map_err(Error::damaged(SECTIONS))?))
}
