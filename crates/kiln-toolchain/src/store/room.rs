//! Whether there is room for what would be fetched.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

use super::Store;
use crate::error::Error;

impl Store {
    /// Sees that the file system of the user's own store has room for so many bytes. Asked, not tried: nothing is made. One that
    /// does not tell counts as having it.
    ///
    /// # Errors
    /// [`Error::Store`], as when writing there fails.
    pub(crate) fn see_room(&self, bytes: u64) -> Result<(), Error> {
        let dir = self.root.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
        match statvfs(dir) {
            Ok(found) if is_less(found.f_bavail.saturating_mul(found.f_frsize), (found.f_files, found.f_favail), bytes) => {
                Err(Error::Store { action: "write to", path: self.root.clone(), source: io::ErrorKind::StorageFull.into() })
            }
            _ => Ok(()),
        }
    }
}

/// Whether there are fewer than `wanted` bytes, or no inode of those that the file system counts.
fn is_less(free: u64, (inodes, free_inodes): (u64, u64), wanted: u64) -> bool {
    free < wanted || (inodes > 0 && free_inodes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_inodes_count() {
        assert!(is_less(9, (0, 0), 10) && !is_less(10, (0, 0), 10));
        assert!(is_less(10, (5, 0), 10) && !is_less(10, (5, 1), 10));
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(&dir.path().join("not/there"), &[]);
        store.see_room(1).unwrap();
        let full = store.see_room(u64::MAX).unwrap_err();
        assert!(full.to_string().starts_with("cannot write to `") && full.hint().unwrap().starts_with("free some space"), "{full}");
        assert!(!dir.path().join("not").exists());
    }
}
