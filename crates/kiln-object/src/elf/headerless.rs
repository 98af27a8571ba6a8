//! Files without section headers: the loader needs none, and some tools drop them.
//!
//! What the rest of the reader asks the section headers for is made up from the dynamic segment.

use object::elf::{self, FileHeader32, FileHeader64, SectionHeader32, SectionHeader64};
use object::read::ReadRef;
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader};
use object::{Endianness, U32, U64};

use super::loaded::{Loaded, differs};
use super::tables::{Class, class};
use crate::Error;

/// The section headers that a file could have; none for one that has its own, or that no loader takes.
#[derive(Default)]
pub(super) struct Headers {
    elf32: Vec<SectionHeader32<Endianness>>,
    elf64: Vec<SectionHeader64<Endianness>>,
}

impl Headers {
    /// Makes them for a file that has none.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the tables are not where the loader would find them.
    pub(super) fn of<'d, R: ReadRef<'d>>(data: R) -> Result<Self, Error> {
        Ok(match class(data)? {
            Class::Elf32 => Self { elf32: made::<FileHeader32<Endianness>, R>(data)?, ..Self::default() },
            Class::Elf64 => Self { elf64: made::<FileHeader64<Endianness>, R>(data)?, ..Self::default() },
        })
    }
}

/// A class of ELF files whose section headers can be made.
pub(super) trait Made: FileHeader<Endian = Endianness> {
    /// The made ones of this class.
    fn of(headers: &Headers) -> &[Self::SectionHeader];

    /// One section; none when a number is too large for the class.
    fn section(endian: Endianness, section: &Section) -> Option<Self::SectionHeader>;
}

/// What a section header says.
pub(super) struct Section {
    kind: elf::SectionType,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
}

macro_rules! made {
    ($header:ident, $section:ident, $field:ident, $word:ident, $number:ty) => {
        impl Made for $header<Endianness> {
            fn of(headers: &Headers) -> &[Self::SectionHeader] {
                &headers.$field
            }

            fn section(endian: Endianness, section: &Section) -> Option<Self::SectionHeader> {
                let word = |value: u64| Some($word::new(endian, <$number>::try_from(value).ok()?));
                let half = |value| U32::new(endian, value);
                Some($section {
                    sh_name: half(0),
                    sh_type: U32::new(endian, section.kind),
                    sh_flags: Default::default(),
                    sh_addr: word(0)?,
                    sh_offset: word(section.offset)?,
                    sh_size: word(section.size)?,
                    sh_link: half(section.link),
                    sh_info: half(section.info),
                    sh_addralign: word(0)?,
                    sh_entsize: word(0)?,
                })
            }
        }
    };
}

made!(FileHeader32, SectionHeader32, elf32, U32, u32);
made!(FileHeader64, SectionHeader64, elf64, U64, u64);

/// The numbers of the made sections that others name.
const STRINGS: u32 = 1;
const SYMBOLS: u32 = 2;

fn made<'d, H: Made, R: ReadRef<'d>>(data: R) -> Result<Vec<H::SectionHeader>, Error> {
    let header = H::parse(data).map_err(Error::damaged("ELF header"))?;
    let endian = header.endian().map_err(Error::damaged("ELF header"))?;
    let own = header.section_headers(endian, data).map_err(Error::damaged("section table"))?;
    if own.iter().any(|section| section.sh_type(endian) != elf::SHT_NULL) {
        return Ok(Vec::new());
    }
    let Some(loaded) = Loaded::<H>::read(header, endian, data)? else { return Ok(Vec::new()) };
    let place = |tag| loaded.value(tag).map(|at| loaded.place(at).ok_or_else(|| differs("a table is in no segment"))).transpose();
    let (Some(strings), Some(symbols)) = (place(elf::DT_STRTAB)?, place(elf::DT_SYMTAB)?) else {
        return Err(differs("it names no symbol table"));
    };
    let count = loaded.symbol_count(data, header.is_type_64())?.max(related::<H, R>(&loaded, endian, data)?);
    let size = |entry: usize| count.checked_mul(entry as u64).ok_or_else(|| differs("its hash table cannot be read"));
    let section = |kind, offset, size, link, info| Section { kind, offset, size, link, info };
    let (dynamic_at, dynamic_size) = loaded.dynamic;
    let mut sections = vec![
        section(elf::SHT_NULL, 0, 0, 0, 0),
        section(elf::SHT_STRTAB, strings, loaded.value(elf::DT_STRSZ).unwrap_or(0), 0, 0),
        section(elf::SHT_DYNSYM, symbols, size(size_of::<H::Sym>())?, STRINGS, 1),
        section(elf::SHT_DYNAMIC, dynamic_at, dynamic_size, STRINGS, 0),
    ];
    if let Some(at) = place(elf::DT_VERSYM)? {
        sections.push(section(elf::SHT_GNU_VERSYM, at, size(2)?, SYMBOLS, 0));
    }
    // Their lists end by themselves.
    for (tag, number, kind) in
        [(elf::DT_VERNEED, elf::DT_VERNEEDNUM, elf::SHT_GNU_VERNEED), (elf::DT_VERDEF, elf::DT_VERDEFNUM, elf::SHT_GNU_VERDEF)]
    {
        let Some(at) = place(tag)? else { continue };
        let rest = loaded.end_of_segment(at).and_then(|end| end.checked_sub(at)).unwrap_or(0);
        let count = loaded.value(number).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        sections.push(section(kind, at, rest, STRINGS, count));
    }
    let headers: Option<_> = sections.iter().map(|section| H::section(endian, section)).collect();
    headers.ok_or_else(|| differs("a number is too large"))
}

/// How many symbols the relocations lead to: the hash table need not know those that are only taken from others.
fn related<'d, H: Made, R: ReadRef<'d>>(loaded: &Loaded<'d, H>, endian: Endianness, data: R) -> Result<u64, Error> {
    let unreadable = || differs("its relocations cannot be read");
    let with_addend = loaded.value(elf::DT_PLTREL) == Some(elf::DT_RELA.0 as u64);
    let mut count = 0;
    for (start, size, addend) in
        [(elf::DT_RELA, elf::DT_RELASZ, true), (elf::DT_REL, elf::DT_RELSZ, false), (elf::DT_JMPREL, elf::DT_PLTRELSZ, with_addend)]
    {
        let (Some(address), Some(size)) = (loaded.value(start), loaded.value(size).filter(|size| *size != 0)) else { continue };
        let at = loaded.place(address).ok_or_else(unreadable)?;
        let entry = if addend { size_of::<H::Rela>() } else { size_of::<H::Rel>() };
        let entries = usize::try_from(size).map_err(|_| unreadable())? / entry;
        let last = if addend {
            let list = data.read_slice_at::<H::Rela>(at, entries).map_err(|()| unreadable())?;
            list.iter().map(|relocation| relocation.r_sym(endian, false)).max()
        } else {
            let list = data.read_slice_at::<H::Rel>(at, entries).map_err(|()| unreadable())?;
            list.iter().map(|relocation| relocation.r_sym(endian)).max()
        };
        count = count.max(last.map_or(0, |last| u64::from(last) + 1));
    }
    Ok(count)
}
