//! What a relocatable object (`.o`) defines and what it wants from others.

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, read::ReadRef};

use super::tables::{self, Budget, Class};
use super::{Binding, Machine, SymbolKind, Visibility};
use crate::Error;

/// A name that an object uses and does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The symbol's name, mangled.
    pub name: String,
    /// Whether the link may leave it undefined.
    pub weak: bool,
    /// What it names, as far as the object says: [`SymbolKind::Tls`] is always said, the rest rarely.
    pub kind: SymbolKind,
    /// A hidden name must be defined in the file that is being linked (`__dso_handle`).
    pub visibility: Visibility,
}

/// A name that an object defines. Common ("tentative") symbols are definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The symbol's name, mangled.
    pub name: String,
    /// How it takes part in linking.
    pub binding: Binding,
    /// From where it can be seen once linked.
    pub visibility: Visibility,
    /// What it names.
    pub kind: SymbolKind,
}

/// The symbols of one relocatable object, in the order of its symbol table. Section and file symbols are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocatable {
    /// The processor.
    pub machine: Machine,
    /// What it uses and does not define.
    pub undefined: Vec<Undefined>,
    /// What it defines.
    pub defined: Vec<Defined>,
}

/// Reads the symbols of a relocatable object.
///
/// # Errors
/// When `data` is not a relocatable ELF file, is damaged, or names a symbol with bytes that are not UTF-8.
pub fn relocatable(data: &[u8]) -> Result<Relocatable, Error> {
    match tables::class(data)? {
        Class::Elf32 => read::<FileHeader32<Endianness>, _>(data),
        Class::Elf64 => read::<FileHeader64<Endianness>, _>(data),
    }
}

fn read<'d, H, R>(data: R) -> Result<Relocatable, Error>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let header = H::parse(data).map_err(Error::damaged("ELF header"))?;
    let endian = header.endian().map_err(Error::damaged("ELF header"))?;
    if header.e_type(endian) != elf::ET_REL {
        return Err(Error::Format { expected: "a relocatable object" });
    }
    let sections = header.sections(endian, data).map_err(Error::damaged("section table"))?;
    let (table, strings) = tables::symbols(&sections, endian, data, elf::SHT_SYMTAB, "symbol table")?;
    let mut object = Relocatable { machine: Machine(header.e_machine(endian).0), undefined: Vec::new(), defined: Vec::new() };
    let mut budget = Budget::new(strings.bytes(), "symbol table");
    // The first symbol is the null symbol.
    for symbol in table.iter().skip(1) {
        if matches!(symbol.st_type(), elf::STT_SECTION | elf::STT_FILE) {
            continue;
        }
        let name = strings.get(symbol.st_name(endian))?;
        if name.is_empty() {
            continue;
        }
        let (name, binding) = (budget.own(name)?, tables::binding_of(symbol));
        let (kind, visibility) = (tables::kind_of(symbol), tables::visibility_of(symbol));
        if symbol.is_undefined(endian) {
            object.undefined.push(Undefined { name, weak: binding == Binding::Weak, kind, visibility });
        } else {
            object.defined.push(Defined { name, binding, visibility, kind });
        }
    }
    Ok(object)
}
