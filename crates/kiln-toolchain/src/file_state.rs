//! Telling by its metadata that a file has not changed.
//!
//! Size, modification time, change time and inode stand for the content, but for files that were changed so shortly ago that
//! another change could carry the same times.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::whole_file::write_whole;

/// Longer than the step of the clock of any file system that compilers and packages lie on.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    path: PathBuf,
    size: u64,
    mtime_ns: i128,
    ctime_ns: i128,
    inode: u64,
}

impl FileState {
    /// The file as it is, behind links.
    pub(crate) fn now(path: &Path) -> std::io::Result<Self> {
        let data = std::fs::metadata(path)?;
        let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Ok(Self {
            path: path.to_owned(),
            size: data.len(),
            mtime_ns: time(data.mtime(), data.mtime_nsec()),
            ctime_ns: time(data.ctime(), data.ctime_nsec()),
            inode: data.ino(),
        })
    }

    /// Whether the file is still the same.
    pub(crate) fn is_unchanged(&self) -> bool {
        Self::now(&self.path).is_ok_and(|now| now == *self)
    }

    /// Waits until a further change of any of the files would have another time. To be called before a state is kept, and before
    /// it is compared for the last time.
    pub(crate) fn outlast_clock_step(files: &[Self]) {
        let newest = files.iter().map(|file| file.ctime_ns).max().unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = i128::try_from(now.as_nanos()).unwrap_or_default() - newest;
        if age < i128::try_from(CLOCK_STEP.as_nanos()).unwrap_or_default() {
            std::thread::sleep(CLOCK_STEP);
        }
    }

    /// All of it as text, for keys.
    pub(crate) fn as_text(&self) -> String {
        let path = HEXLOWER.encode(self.path.as_os_str().as_encoded_bytes());
        format!("{path} {} {} {} {}", self.size, self.mtime_ns, self.ctime_ns, self.inode)
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    files: Vec<FileState>,
    digest: String,
}

/// The digest that `make` makes of `files`: what the file `cache` keeps, as long as every one of them is as it was then.
pub(crate) fn digest_of(cache: &Path, files: Vec<FileState>, make: impl FnOnce() -> std::io::Result<String>) -> std::io::Result<String> {
    let kept: Option<Kept> = std::fs::read(cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| kept.files == files) {
        return Ok(kept.digest);
    }
    let digest = make()?;
    FileState::outlast_clock_step(&files);
    if files.iter().all(FileState::is_unchanged) {
        // Making it again is slower and not wrong.
        let _unkept = write_whole(cache, &serde_json::to_vec(&Kept { files, digest: digest.clone() }).unwrap_or_default());
    }
    Ok(digest)
}
