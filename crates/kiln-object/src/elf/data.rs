//! Writing objects that hold data alone.

use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf};

use super::Machine;
use crate::Error;

/// Data start at multiples of this.
const ALIGNMENT: u64 = 8;

/// A relocatable object with `data` in a read-only section of the name `section`, where `symbol` names their beginning for the other
/// objects of the same link, and for nobody else. Equal arguments give equal bytes.
///
/// # Errors
/// For a processor other than x86-64 and AArch64.
pub fn data_object(machine: Machine, section: &str, symbol: &str, data: &[u8]) -> Result<Vec<u8>, Error> {
    let architecture = match machine {
        Machine::X86_64 => Architecture::X86_64,
        Machine::AARCH64 => Architecture::Aarch64,
        other => return Err(Error::Unsupported { what: format!("an object for {other}") }),
    };
    let mut object = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    let place = object.add_section(Vec::new(), section.as_bytes().to_vec(), SectionKind::ReadOnlyData);
    let value = object.append_section_data(place, data, ALIGNMENT);
    object.add_symbol(Symbol {
        name: symbol.as_bytes().to_vec(),
        value,
        size: data.len() as u64,
        kind: SymbolKind::Data,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(place),
        flags: SymbolFlags::Elf { st_info: elf::STB_GLOBAL | elf::STT_OBJECT, st_other: elf::STV_HIDDEN.into() },
    });
    // Without this mark, linkers take it that the stack has to be executable.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
    object.write().map_err(|cause| Error::Unsupported { what: format!("an object of {} bytes ({cause})", data.len()) })
}

#[cfg(test)]
mod tests {
    use super::super::{Visibility, relocatable};
    use super::*;

    #[test]
    fn data_are_found_by_their_symbol() {
        let bytes = data_object(Machine::X86_64, ".nv_fatbin", "data", b"0123456789").unwrap();
        let read = relocatable(&bytes).unwrap();
        assert!(read.undefined.is_empty());
        let defined: Vec<_> = read.defined.iter().map(|symbol| (symbol.name.as_str(), symbol.visibility)).collect();
        assert_eq!(defined, [("data", Visibility::Hidden)]);
        assert_eq!(data_object(Machine::X86_64, ".nv_fatbin", "data", b"0123456789").unwrap(), bytes);
        assert!(data_object(Machine(0), "s", "d", b"").is_err());
    }
}
