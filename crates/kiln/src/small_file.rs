//! Files that are read whole: nothing that only looks like one.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The most that is read of a file, in bytes. Metadata and records have kilobytes.
const MOST: u64 = 64 << 20;

/// The content of a regular file of reasonable size. A pipe would be waited for without end, and a sparse file takes all memory.
///
/// # Errors
/// When it cannot be read, is no regular file, or has more than 64 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// When it cannot be read, is no regular file, or has more.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The last bytes of a regular file, at most `most` of them.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
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
        assert_eq!((read_end(&path, 2).unwrap(), read_end(&path, 9).unwrap()), (b"xt".to_vec(), b"text".to_vec()));
        assert_eq!(read_at_most(&path, 4).unwrap(), b"text");
        assert_eq!(read_at_most(&path, 3).unwrap_err().to_string(), "it has more than 3 bytes");
    }
}
