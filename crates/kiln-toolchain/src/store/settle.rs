//! Whether a tree has reached the disk. See the module above for why this is asked.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::Error;

/// Name of the file that holds the run of the machine in which a tree was made.
const BOOT: &str = "boot";
/// Name of the file that says that a tree was found whole in a later run, or was synced.
const SETTLED: &str = "settled";

/// What tells this run of the machine from every other one; none where the system does not say.
pub(super) fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|boot| !boot.is_empty())
}

/// Marks a new tree: made in the run `boot`, or, where there is none, synced.
pub(super) fn mark(tree: &Path, boot: Option<&str>) -> Result<(), Error> {
    let (path, text) = match boot {
        Some(boot) => (tree.join(BOOT), boot),
        None => (tree.join(SETTLED), ""),
    };
    fs::write(&path, text).map_err(Error::store("write", &path))
}

/// Whether the tree may be used: it was made in this run of the machine, is settled, or proves whole now.
pub(super) fn is_sound(tree: &Path) -> bool {
    let made_in = fs::read_to_string(tree.join(BOOT)).unwrap_or_default();
    if boot().is_some_and(|boot| boot == made_in) || tree.join(SETTLED).exists() {
        return true;
    }
    if super::verify(tree).is_err() {
        return false;
    }
    // Where this cannot be kept, as on a file system that is read-only, it is found out again.
    let _: io::Result<()> = fs::write(tree.join(SETTLED), "");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tree::{TreeInfo, TreeWriter};

    /// A tree of one file, made in the run `boot`.
    fn tree(dir: &Path, boot: &str) -> std::path::PathBuf {
        let info = TreeInfo::new("t".to_owned(), "0".repeat(64), Vec::new());
        let mut writer = TreeWriter::new(dir, info, false).unwrap();
        writer
            .file(
                "a/b.h",
                b"text",
                &sha2::Digest::finalize(sha2::Digest::chain_update(<sha2::Sha256 as sha2::Digest>::new(), b"text")).into(),
                false,
            )
            .unwrap();
        let made = writer.finish().unwrap();
        mark(&made, Some(boot)).unwrap();
        made
    }

    #[test]
    fn a_tree_of_another_run_is_hashed_once() {
        let dir = tempfile::tempdir().unwrap();
        let made = tree(dir.path(), "another");
        assert!(is_sound(&made) && made.join(SETTLED).exists());
    }

    #[test]
    fn a_tree_that_did_not_reach_the_disk_is_not_sound() {
        for (lost, boot) in [("files/a/b.h", "another"), ("manifest", "another"), ("tree.json", "another"), ("manifest", "")] {
            let dir = tempfile::tempdir().unwrap();
            let made = tree(dir.path(), boot);
            fs::remove_file(made.join(lost)).unwrap();
            fs::write(made.join(lost), "").unwrap();
            assert!(!is_sound(&made), "{lost}");
        }
    }
}
