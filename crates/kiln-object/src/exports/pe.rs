//! Libraries of Windows.

use object::read::ReadRef;
use object::read::pe::PeFile64;

use super::{Exports, Format, text};
use crate::Error;

const WHAT: &str = "PE file";
const TABLE: &str = "PE export table";

/// Reads the name and the named exports. Names that only have a number are left out: no linker takes them by it without being told.
pub(super) fn read<'d, R: ReadRef<'d>>(data: R) -> Result<Exports, Error> {
    let file = PeFile64::parse(data).map_err(Error::damaged(WHAT))?;
    let Some(table) = file.export_table().map_err(Error::damaged(TABLE))? else {
        return Ok(Exports { format: Format::Pe, library: None, names: Vec::new() });
    };
    let name = |pointer: u32| text(table.name_from_pointer(pointer).map_err(Error::damaged(TABLE))?, TABLE);
    let library = name(table.directory().name.get(object::LittleEndian))?;
    // Each pointer has four bytes in the file, but all may point to one long name.
    let mut left = 256_usize << 20;
    let mut names = Vec::new();
    for (pointer, _) in table.name_iter() {
        let name = name(pointer)?;
        left = left.checked_sub(name.len()).ok_or_else(|| Error::Damaged { what: TABLE, cause: "its names are too long".to_owned() })?;
        names.push(name);
    }
    Ok(Exports { format: Format::Pe, library: Some(library), names })
}
