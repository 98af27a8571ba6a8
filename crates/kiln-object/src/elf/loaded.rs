//! Whether the section headers tell of the tables that the loader reads.
//!
//! Linkers and tools, this reader too, find tables by section headers; the loader reads the dynamic segment and never looks at a
//! section. A file in which the two differ would be judged by what nobody loads.

use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::read::{ReadRef, SectionIndex};
use object::{Endianness, U32};

use crate::Error;

const WHAT: &str = "dynamic segment";

/// What the loader knows of a file: its segments and the entries of its dynamic segment.
pub(super) struct Loaded<'d, H: FileHeader<Endian = Endianness>> {
    segments: &'d [H::ProgramHeader],
    endian: Endianness,
    entries: Vec<(elf::DynamicTag, u64)>,
    /// Where the entries lie in the file, and how many bytes they take.
    pub(super) dynamic: (u64, u64),
}

impl<'d, H: FileHeader<Endian = Endianness>> Loaded<'d, H> {
    /// None for a file without segments, which only a linker reads.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the dynamic segment is not one that a loader finds.
    pub(super) fn read<R: ReadRef<'d>>(header: &H, endian: Endianness, data: R) -> Result<Option<Self>, Error> {
        let segments = segments(header, endian, data)?;
        if segments.is_empty() {
            return Ok(None);
        }
        let mut dynamic = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_DYNAMIC);
        let (Some(dynamic), None) = (dynamic.next(), dynamic.next()) else { return Err(differs("there is none, or more than one")) };
        let entries = dynamic.dynamic(endian, data).map_err(Error::damaged(WHAT))?.unwrap_or_default();
        let (at, size): (u64, u64) = (dynamic.p_offset(endian).into(), dynamic.p_filesz(endian).into());
        let loaded = Self { segments, endian, entries: pairs::<H>(entries, endian), dynamic: (at, size) };
        if loaded.entries.len() == entries.len() {
            return Err(differs("nothing ends it"));
        }
        // The loader goes by the address alone, and reads it where the other segments put it.
        let address: u64 = dynamic.p_vaddr(endian).into();
        let ends =
            [0, size.saturating_sub(1)].map(|byte| (address.checked_add(byte).and_then(|to| loaded.place(to)), at.checked_add(byte)));
        if ends.iter().any(|(found, meant)| found.is_none() || found != meant) {
            return Err(differs("its address leads elsewhere than its place in the file"));
        }
        Ok(Some(loaded))
    }

    /// The value of an entry. Of several the loader takes the last.
    pub(super) fn value(&self, tag: elf::DynamicTag) -> Option<u64> {
        self.entries.iter().rev().find(|(known, _)| *known == tag).map(|(_, value)| *value)
    }

    /// Where in the file the bytes at an address come from. None when no segment has them, or segments differ in it: whole pages are
    /// loaded, one segment over the other.
    pub(super) fn place(&self, address: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let mut found = None;
        let mut held = false;
        for segment in self.segments.iter().filter(|segment| segment.p_type(self.endian) == elf::PT_LOAD) {
            let (start, size): (u64, u64) = (segment.p_vaddr(self.endian).into(), segment.p_filesz(self.endian).into());
            let end = start.checked_add(size)?;
            let pages = (start / PAGE * PAGE)..end.checked_next_multiple_of(PAGE)?;
            if size == 0 || !pages.contains(&address) {
                continue;
            }
            held |= (start..end).contains(&address);
            let base: u64 = segment.p_offset(self.endian).into();
            let place = base.wrapping_add(address.wrapping_sub(start));
            if found.is_some_and(|other| other != place) {
                return None;
            }
            found = Some(place);
        }
        found.filter(|_| held)
    }

    /// The end of the bytes of the file in the segment that has the byte at `place`.
    pub(super) fn end_of_segment(&self, place: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.p_type(self.endian) == elf::PT_LOAD).find_map(|segment| {
            let (start, size): (u64, u64) = (segment.p_offset(self.endian).into(), segment.p_filesz(self.endian).into());
            let end = start.checked_add(size)?;
            (start..end).contains(&place).then_some(end)
        })
    }

    /// How many symbols the hash table leads to.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is no hash table, or it cannot be read.
    pub(super) fn symbol_count<R: ReadRef<'d>>(&self, data: R, is_64: bool) -> Result<u64, Error> {
        let hashed = match (self.value(elf::DT_GNU_HASH), self.value(elf::DT_HASH)) {
            (Some(address), _) => self.place(address).and_then(|at| gnu_hash_length(data, self.endian, at, is_64)),
            // Its second number is that of all symbols.
            (None, Some(address)) => self.place(address).and_then(|at| number(data, self.endian, at.checked_add(4)?)),
            (None, None) => return Err(differs("it names no hash table")),
        };
        hashed.ok_or_else(|| differs("its hash table cannot be read"))
    }
}

/// The program headers, as a loader finds them; empty for a file without any.
///
/// # Errors
/// [`Error::Damaged`] when they cannot be read, or a loader would read others.
pub(super) fn segments<'d, H, R>(header: &H, endian: Endianness, data: R) -> Result<&'d [H::ProgramHeader], Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    const WHAT: &str = "program header table";
    let damaged = |cause: &str| Err(Error::Damaged { what: WHAT, cause: cause.to_owned() });
    match (header.e_phnum(endian), header.e_phoff(endian).into()) {
        (0, _) => Ok(&[]),
        // Readers of files then find the number in the first section header, which no loader looks at.
        (elf::PN_XNUM, _) => damaged("it has more entries than a loader counts"),
        // Readers of files take this for none, and loaders for the beginning of the file.
        (_, 0_u64) => damaged("it lies where the header of the file is"),
        _ => header.program_headers(endian, data).map_err(Error::damaged(WHAT)),
    }
}

/// Sees that both tell the same. A file without segments, which only a linker reads, has nothing to compare.
///
/// # Errors
/// [`Error::Damaged`] with the first difference.
pub(super) fn see_agreement<'d, H, R>(header: &H, sections: &SectionTable<'d, H, R>, endian: Endianness, data: R) -> Result<(), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let Some(loaded) = Loaded::read(header, endian, data)? else { return Ok(()) };
    let listed = sections.dynamic(endian, data).map_err(Error::damaged("dynamic section"))?.map(|(entries, _)| pairs::<H>(entries, endian));
    if listed.as_ref() != Some(&loaded.entries) {
        return Err(differs("the section headers show another one"));
    }
    let value = |tag| loaded.value(tag);
    let place = |address| loaded.place(address);

    let tables = [
        (elf::DT_SYMTAB, elf::SHT_DYNSYM, "symbol table"),
        (elf::DT_VERSYM, elf::SHT_GNU_VERSYM, "table of symbol versions"),
        (elf::DT_VERNEED, elf::SHT_GNU_VERNEED, "list of needed versions"),
        (elf::DT_VERDEF, elf::SHT_GNU_VERDEF, "list of defined versions"),
    ];
    for (tag, kind, what) in tables {
        let mut of_kind = sections.iter().filter(|section| section.sh_type(endian) == kind);
        let offset = of_kind.next().map(|section| section.sh_offset(endian).into());
        if of_kind.next().is_some() || offset != value(tag).and_then(place) || offset.is_some() != value(tag).is_some() {
            return Err(differs(&format!("the section headers show another {what}")));
        }
    }
    let Some(symbols) = sections.iter().find(|section| section.sh_type(endian) == elf::SHT_DYNSYM) else {
        return Err(differs("it names no symbol table"));
    };
    let strings = sections.section(SectionIndex(symbols.sh_link(endian) as usize)).map_err(Error::damaged(WHAT))?;
    let (offset, size): (u64, u64) = (strings.sh_offset(endian).into(), strings.sh_size(endian).into());
    if value(elf::DT_STRTAB).and_then(place) != Some(offset) || value(elf::DT_STRSZ) != Some(size) {
        return Err(differs("the section headers show other strings"));
    }
    for (tag, kind) in [(elf::DT_VERNEEDNUM, elf::SHT_GNU_VERNEED), (elf::DT_VERDEFNUM, elf::SHT_GNU_VERDEF)] {
        let count = sections.iter().find(|section| section.sh_type(endian) == kind).map(|section| u64::from(section.sh_info(endian)));
        if count != value(tag) {
            return Err(differs("the section headers show another number of versions"));
        }
    }
    let entry = std::mem::size_of::<H::Sym>() as u64;
    let listed: u64 = Into::<u64>::into(symbols.sh_size(endian)) / entry;
    if listed < loaded.symbol_count(data, header.is_type_64())? {
        return Err(differs("the section headers show fewer symbols"));
    }
    Ok(())
}

pub(super) fn differs(cause: &str) -> Error {
    Error::Damaged { what: WHAT, cause: cause.to_owned() }
}

/// The entries up to the one that ends them.
fn pairs<H: FileHeader<Endian = Endianness>>(entries: &[H::Dyn], endian: Endianness) -> Vec<(elf::DynamicTag, u64)> {
    entries.iter().map(|entry| (entry.tag(endian), entry.val(endian))).take_while(|(tag, _)| *tag != elf::DT_NULL).collect()
}

/// How many symbols a GNU hash table leads to, those before the first hashed one included.
fn gnu_hash_length<'d, R: ReadRef<'d>>(data: R, endian: Endianness, at: u64, is_64: bool) -> Option<u64> {
    let header = |index: u64| number(data, endian, at.checked_add(index * 4)?);
    let (buckets, first, filters) = (header(0)?, header(1)?, header(2)?);
    let filter_size = if is_64 { 8 } else { 4 };
    let buckets_at = at.checked_add(16)?.checked_add(filters.checked_mul(filter_size)?)?;
    let chains = data.read_slice_at::<U32<Endianness>>(buckets_at, usize::try_from(buckets).ok()?).ok()?;
    let last = chains.iter().map(|first| first.get(endian).into()).max().unwrap_or(0);
    if last < first {
        return Some(first);
    }
    let chains_at = buckets_at.checked_add(buckets.checked_mul(4)?)?;
    // The end of the file ends it, if nothing else does. In blocks: what is read of a file is kept.
    let length = data.len().ok()?;
    let mut at = chains_at.checked_add((last - first).checked_mul(4)?)?;
    let mut index = last;
    loop {
        let there = length.checked_sub(at)? / 4;
        let count = usize::try_from(there.min(CHAIN_BLOCK)).ok().filter(|count| *count > 0)?;
        let block = data.read_slice_at::<U32<Endianness>>(at, count).ok()?;
        if let Some(end) = block.iter().position(|entry| entry.get(endian) & 1 == 1) {
            return index.checked_add(end as u64)?.checked_add(1);
        }
        index = index.checked_add(count as u64)?;
        at = at.checked_add(count as u64 * 4)?;
    }
}

/// How many entries of a chain are read at once.
const CHAIN_BLOCK: u64 = 1024;

/// The 32-bit number at an offset of the file.
fn number<'d, R: ReadRef<'d>>(data: R, endian: Endianness, at: u64) -> Option<u64> {
    Some(data.read_at::<U32<Endianness>>(at).ok()?.get(endian).into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Bytes that count how often they are read.
    struct Counted {
        bytes: Vec<u8>,
        reads: Cell<u64>,
    }

    impl<'d> ReadRef<'d> for &'d Counted {
        fn len(self) -> Result<u64, ()> {
            self.bytes.as_slice().len().try_into().map_err(|_| ())
        }

        fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
            self.reads.set(self.reads.get() + 1);
            self.bytes.as_slice().read_bytes_at(offset, size)
        }

        fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
            self.bytes.as_slice().read_bytes_at_until(range, delimiter)
        }
    }

    /// Each read of a file is kept: a chain through all of it must not cost as many reads as it has entries.
    #[test]
    fn long_chains_take_few_reads() {
        let table = |entries: usize, end: u32| {
            // One bucket, whose chain begins at the first hashed symbol, 5; one word of the filter.
            let mut numbers = vec![1, 5, 1, 0, 0, 0, 5];
            numbers.extend(vec![2; entries - 1]);
            numbers.push(end);
            Counted { bytes: numbers.iter().flat_map(|number: &u32| number.to_le_bytes()).collect(), reads: Cell::new(0) }
        };
        for entries in [1, 2, 1023, 1024, 1025, 5000, 300_000] {
            let data = table(entries, 3);
            assert_eq!(gnu_hash_length(&data, Endianness::Little, 0, true), Some(5 + entries as u64));
            assert!(data.reads.get() <= 5 + entries as u64 / 1000, "{entries}: {}", data.reads.get());
            assert_eq!(gnu_hash_length(&table(entries, 2), Endianness::Little, 0, true), None, "nothing ends it");
        }
    }
}
