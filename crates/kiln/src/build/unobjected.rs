//! Which variants the checks had nothing to say of.
//!
//! Reading an extension and the lists that it is held against takes longer than everything else in a build that has nothing to do.
//! So the work directory keeps, for each variant, a digest of all that a check depends on: the bytes of the directory, what was
//! planned for it, the libraries that it may take names from, and the program that checks. Only a variant without any remark is
//! noted: what is to be said is said by every build.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kiln_format::{Digest, Metadata};

use super::Services;
use super::packaging::Looked;
use crate::replace;

/// The notes of a work directory.
pub(super) struct Unobjected {
    dir: PathBuf,
}

impl Unobjected {
    /// Those in `work_dir`.
    pub(super) fn of(work_dir: &Path) -> Self {
        Self { dir: work_dir.join("unobjected") }
    }

    /// Whether the checks had nothing to say of just this.
    pub(super) fn has(&self, variant: &str, key: &str) -> bool {
        fs::read_to_string(self.dir.join(variant)).is_ok_and(|noted| noted == key)
    }

    /// Notes that the checks had nothing to say. Not worth an error: without the note they run again.
    pub(super) fn note(&self, variant: &str, key: &str) {
        if fs::create_dir_all(&self.dir).is_ok() {
            let _unnoted = replace::write_file(&self.dir.join(variant), |file| file.write_all(key.as_bytes()));
        }
    }
}

/// Digest of everything that the checks of a variant depend on; none when it is not known which program this is.
/// `loads` says whether it was also loaded.
pub(super) fn key(looked: &Looked<'_>, services: &Services<'_>, files: &Digest, metadata: &Metadata, loads: bool) -> Option<String> {
    let program = services.program.as_ref()?;
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    };
    add(program);
    add(&metadata.to_json());
    add(if loads { "loaded" } else { "" });
    files.files.iter().for_each(|(name, hash)| [name, hash].into_iter().for_each(|text| add(text)));
    // As developers see them: what is another text for no reason is only checked again.
    add(&format!("{:?} {:?} {:?}", looked.variant, looked.floor, looked.host_paths));
    for library in &looked.exports {
        add(&library.soname);
        add(&library.names.digest());
    }
    Some(hasher.finalize().to_hex().to_string())
}
