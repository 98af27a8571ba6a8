//! Files that are read whole: nothing that only looks like one.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The most that is read of a file, in bytes. Metadata and records have kilobytes.
const MOST: u64 = 64 << 20;

/// The content of a regular file of reasonable size. A pipe would be waited for without end, and a sparse file takes all memory.
///
/// # Errors
/// When it cannot be read, is no regular file, or has more than 64 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

/// [`read`], as text.
///
/// # Errors
/// Those of [`read`], and for bytes that are not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause.utf8_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_reasonable_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let error = || read(&path).unwrap_err().to_string();
        fs::create_dir(&path).unwrap();
        assert_eq!(error(), "it is no regular file");
        fs::remove_dir(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(error(), "it is no regular file");
        fs::remove_file(&path).unwrap();
        File::create(&path).unwrap().set_len(20 << 30).unwrap();
        assert_eq!(error(), "it is larger than 64 MiB");
        fs::write(&path, "text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "text");
    }
}
