//! What glibc's loader asks of a file's header and program headers before it maps anything. Other readers do not ask, so that a file which
//! nobody can load would look sound to them.

use object::Endianness;
use object::elf;
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader as _};

use crate::Error;

/// The least page that a loader maps.
const PAGE: u64 = 4096;
/// The newest version of the GNU ABI that the loader of glibc 2.28 takes (`LIBC_ABI_MAX`, less one).
const GNU_ABI: u8 = 3;

/// Sees that a loader takes the file. Without `segments` there is nothing to map: a file for a linker.
///
/// # Errors
/// [`Error::Damaged`] with the first thing that it refuses, or that it would end with a bus error for.
pub(super) fn see<'d, H, R>(header: &H, segments: &[H::ProgramHeader], endian: Endianness, data: R) -> Result<(), Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let ident = header.e_ident();
    let padding = ident.padding.iter().any(|byte| *byte != 0);
    let is_gnu = ident.os_abi == elf::ELFOSABI_GNU;
    let cause = if padding {
        Some("its identification has something where there is to be nothing")
    } else if !is_gnu && ident.os_abi != elf::ELFOSABI_SYSV {
        Some("it is for another system")
    } else if ident.abi_version != if is_gnu { ident.abi_version.min(GNU_ABI) } else { 0 } {
        Some("it is for another version of the system's ABI")
    } else if header.e_version(endian) != u32::from(elf::EV_CURRENT.0) {
        Some("its version is none")
    } else {
        None
    };
    if let Some(cause) = cause {
        return Err(Error::Damaged { what: "ELF header", cause: cause.to_owned() });
    }
    if segments.is_empty() {
        return Ok(());
    }
    let length = data.len().map_err(|()| damaged("the length of the file is unknown"))?;
    let mut last = None;
    for segment in segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD) {
        let (offset, address): (u64, u64) = (segment.p_offset(endian).into(), segment.p_vaddr(endian).into());
        let (in_file, in_memory): (u64, u64) = (segment.p_filesz(endian).into(), segment.p_memsz(endian).into());
        let align: u64 = segment.p_align(endian).into();
        if offset.checked_add(in_file).is_none_or(|end| end > length) {
            return Err(damaged("a part to be loaded lies behind the end of the file"));
        }
        if in_file > in_memory || address.checked_add(in_memory).is_none() {
            return Err(damaged("a part to be loaded does not fit into its place in memory"));
        }
        if !align.is_multiple_of(PAGE) || !(align == 0 || align.is_power_of_two()) {
            return Err(damaged("a part to be loaded is not aligned to pages"));
        }
        if address.wrapping_sub(offset) & align.max(PAGE).wrapping_sub(1) != 0 {
            return Err(damaged("the place of a part in the file does not go with its address"));
        }
        if last.is_some_and(|last| address < last) {
            return Err(damaged("the parts to be loaded are not in the order of their addresses"));
        }
        last = Some(address);
    }
    match last {
        None => Err(damaged("nothing of the file is to be loaded")),
        Some(_) => Ok(()),
    }
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: "program header table", cause: cause.to_owned() }
}
