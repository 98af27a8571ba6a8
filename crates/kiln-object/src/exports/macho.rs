//! Libraries of macOS.

use object::Endianness;
use object::macho::{DylibCommand, LC_ID_DYLIB, MachHeader64, N_EXT, N_PEXT};
use object::read::ReadRef;
use object::read::macho::{MachHeader, Nlist as _};

use super::{Exports, Format, text, trie};
use crate::Error;

const WHAT: &str = "Mach-O file";
const TABLE: &str = "Mach-O export table";

/// Reads the name and the exports: of the export trie, or of the symbol table where there is no trie.
pub(super) fn read<'d, R: ReadRef<'d>>(data: R) -> Result<Exports, Error> {
    let header = MachHeader64::<Endianness>::parse(data, 0).map_err(Error::damaged(WHAT))?;
    let endian = header.endian().map_err(Error::damaged(WHAT))?;
    let mut commands = header.load_commands(endian, data, 0).map_err(Error::damaged(WHAT))?;
    let (mut library, mut trie, mut symbols) = (None, None, None);
    while let Some(command) = commands.next().map_err(Error::damaged(WHAT))? {
        if command.cmd() == LC_ID_DYLIB {
            let dylib = command.data::<DylibCommand<Endianness>>().map_err(Error::damaged(WHAT))?;
            library = Some(text(command.string(endian, dylib.dylib.name).map_err(Error::damaged(WHAT))?, WHAT)?);
        } else if let Some(exports) = command.dyld_exports_trie().map_err(Error::damaged(WHAT))? {
            trie = Some(exports.data(endian, data).map_err(Error::damaged(TABLE))?);
        } else if let Some(info) = command.dyld_info().map_err(Error::damaged(WHAT))? {
            let (start, size) = (info.export_off.get(endian).into(), info.export_size.get(endian).into());
            let bytes = data.read_bytes_at(start, size);
            trie = Some(bytes.map_err(|()| Error::Damaged { what: TABLE, cause: "it is cut short".to_owned() })?);
        } else if let Some(table) = command.symtab().map_err(Error::damaged(WHAT))? {
            symbols = Some(table);
        }
    }
    let names = match (trie.filter(|trie| !trie.is_empty()), symbols) {
        (Some(trie), _) => trie::names(trie)?,
        (None, Some(table)) => {
            let table = table.symbols::<MachHeader64<Endianness>, R>(endian, data).map_err(Error::damaged(TABLE))?;
            let strings = table.strings();
            let offered = table
                .iter()
                .filter(|symbol| symbol.is_definition() && symbol.n_type().0 & N_EXT.0 != 0 && symbol.n_type().0 & N_PEXT.0 == 0);
            offered
                .map(|symbol| symbol.name(endian, strings).map_err(Error::damaged(TABLE)).map(<[u8]>::to_vec))
                .collect::<Result<_, _>>()?
        }
        (None, None) => Vec::new(),
    };
    let names = names.iter().map(|name| text(name.strip_prefix(b"_").unwrap_or(name), TABLE)).collect::<Result<_, _>>()?;
    Ok(Exports { format: Format::MachO, library, names })
}
