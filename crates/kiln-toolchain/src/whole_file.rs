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
