//! What the libraries of an installed torch export.

use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use kiln_object::elf;

use super::SystemError;
use crate::file_state::FileState;
use crate::names::{LibraryExports, NameSet};
use crate::toolchain::torch_libraries;
use crate::whole_file::write_whole;

/// First line of a kept list, raised whenever its content means something else.
const HEAD: &str = "kiln exports 1\n";

/// The libraries in `dir` that an extension may link with, in link order. `site_packages` is for messages.
pub(super) fn read(site_packages: &Path, dir: &Path, cache_dir: &Path) -> Result<Vec<LibraryExports>, SystemError> {
    let present = torch_libraries(std::env::consts::OS).iter().filter(|name| dir.join(name).is_file());
    present.map(|name| library(site_packages, &dir.join(name), cache_dir)).collect()
}

/// The exports of one library: from the list that was kept for this state of the file, or from the file.
fn library(site_packages: &Path, path: &Path, cache_dir: &Path) -> Result<LibraryExports, SystemError> {
    let damaged = |reason: String| SystemError::Damaged {
        site_packages: site_packages.to_owned(),
        reason: format!("`{}`: {reason}", path.display()),
    };
    let state = FileState::now(path).map_err(|cause| damaged(cause.to_string()))?;
    let key = HEXLOWER.encode(blake3::hash(state.as_text().as_bytes()).as_bytes());
    let kept = cache_dir.join(format!("exports-{}.txt", key.get(..32).unwrap_or(&key)));
    if let Some(exports) = std::fs::read_to_string(&kept).ok().as_deref().and_then(parse) {
        return Ok(exports);
    }
    let library = elf::dynamic_file(path).map_err(|cause| damaged(cause.to_string()))?;
    let soname = library.soname.ok_or_else(|| damaged("has no SONAME".to_owned()))?;
    let names = NameSet::exact(library.exports.into_iter().map(|export| export.name));
    FileState::outlast_clock_step(std::slice::from_ref(&state));
    if state.is_unchanged() {
        write_whole(&kept, render(&soname, &names).as_bytes()).map_err(SystemError::cache(&kept))?;
    }
    Ok(LibraryExports { soname, names: Arc::new(names) })
}

/// Head, digest of the rest, SONAME, names; each a line.
fn render(soname: &str, names: &NameSet) -> String {
    let body: String =
        [soname].into_iter().chain(names.names().unwrap_or_default().iter().map(String::as_str)).flat_map(|line| [line, "\n"]).collect();
    format!("{HEAD}{}\n{body}", blake3::hash(body.as_bytes()).to_hex())
}

/// Reads what [`render`] wrote; none for anything else.
fn parse(text: &str) -> Option<LibraryExports> {
    let (digest, body) = text.strip_prefix(HEAD)?.split_once('\n')?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != digest {
        return None;
    }
    let mut lines = body.lines();
    let soname = lines.next()?.to_owned();
    Some(LibraryExports { soname, names: Arc::new(NameSet::exact(lines.map(str::to_owned))) })
}
