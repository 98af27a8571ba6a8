//! What a library brings with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kiln_object::Error;
use kiln_object::elf::{self, Dynamic};

/// The library at a path, and those in its directory that it loads, directly or not: whoever needs it has the names of all of them.
///
/// # Errors
/// The first one that cannot be read, and why.
pub fn loaded_beside(library: &Path) -> Result<Vec<Dynamic>, (PathBuf, Error)> {
    let dir = library.parent().unwrap_or(Path::new(""));
    let (mut open, mut known, mut loaded) = (vec![library.to_owned()], BTreeSet::new(), Vec::new());
    known.extend(library.file_name().and_then(|name| name.to_str()).map(str::to_owned));
    while let Some(path) = open.pop() {
        let dynamic = elf::dynamic_file(&path).map_err(|cause| (path.clone(), cause))?;
        let beside = dynamic.needed.iter().filter(|needed| known.insert((*needed).clone())).map(|needed| dir.join(needed));
        open.extend(beside.filter(|library| library.is_file()));
        loaded.push(dynamic);
    }
    Ok(loaded)
}
