//! What an object file of macOS defines and wants.

use object::Endianness;
use object::macho::{MH_OBJECT, MachHeader64, N_EXT, N_PEXT, N_TYPE, N_UNDF, N_WEAK_DEF, N_WEAK_REF};
use object::read::macho::{MachHeader, Nlist as _};

use super::{Budget, TABLE, WHAT, machine, plain};
use crate::Error;
use crate::elf::{Binding, Defined, Relocatable, SymbolKind, Undefined, Visibility};

/// Reads the symbols of an object, in the words of [`crate::elf::relocatable`]. Entries for debuggers are left out, and so is the size of
/// what is common to several objects: it is a definition.
///
/// # Errors
/// When `data` is not an object for a known processor, is damaged, or names a symbol with bytes that are not UTF-8.
pub fn relocatable(data: &[u8]) -> Result<Relocatable, Error> {
    let header = MachHeader64::<Endianness>::parse(data, 0).map_err(|_| Error::Format { expected: "a Mach-O object" })?;
    let endian = header.endian().map_err(Error::damaged(WHAT))?;
    if header.filetype(endian) != MH_OBJECT {
        return Err(Error::Format { expected: "a Mach-O object" });
    }
    let mut object = Relocatable { machine: machine(header.cputype(endian).0)?, undefined: Vec::new(), defined: Vec::new() };
    let mut commands = header.load_commands(endian, data, 0).map_err(Error::damaged(WHAT))?;
    let mut budget = Budget::new(data.len());
    while let Some(command) = commands.next().map_err(Error::damaged(WHAT))? {
        let Some(table) = command.symtab().map_err(Error::damaged(WHAT))? else { continue };
        let table = table.symbols::<MachHeader64<Endianness>, _>(endian, data).map_err(Error::damaged(TABLE))?;
        for symbol in table.iter().filter(|symbol| !symbol.is_stab()) {
            let name = budget.own(plain(symbol.name(endian, table.strings()).map_err(Error::damaged(TABLE))?)?)?;
            let (kind, weak) = (SymbolKind::Untyped, symbol.n_desc(endian));
            let is_external = symbol.n_type().0 & N_EXT.0 != 0;
            // One that is common has a size where others have an address.
            let is_common = symbol.n_value(endian) != 0;
            if symbol.n_type().0 & N_TYPE == N_UNDF.0 && !is_common {
                object.undefined.push(Undefined { name, weak: weak.0 & N_WEAK_REF.0 != 0, kind, visibility: Visibility::Default });
            } else {
                let binding = match (is_external, weak.0 & N_WEAK_DEF.0 != 0) {
                    (false, _) => Binding::Local,
                    (true, true) => Binding::Weak,
                    (true, false) => Binding::Global,
                };
                let visibility = if symbol.n_type().0 & N_PEXT.0 != 0 { Visibility::Hidden } else { Visibility::Default };
                object.defined.push(Defined { name, binding, visibility, kind });
            }
        }
    }
    Ok(object)
}
