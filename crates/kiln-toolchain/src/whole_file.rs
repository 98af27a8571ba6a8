//! Files that are there whole or not at all.

use std::io::Write;
use std::path::Path;

/// Writes a file whole: under another name first. Makes its directory.
///
/// # Errors
/// When it cannot be written; what was there before stays.
pub fn write_whole(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// The text that is kept under `name` in a directory for such things, if it is there.
pub fn kept(dir: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(dir.join(name)).ok()
}

/// Keeps a text under `name` in a directory for such things, where that is possible: what is not kept is found out again.
pub fn keep(dir: &Path, name: &str, text: &str) {
    let _not_kept = write_whole(&dir.join(name), text.as_bytes());
}
