//! What a kit is made of, as one digest: it changes when a program, a library or a header does, and knows no path outside the kit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use super::find::{Candidate, is_header};
use crate::file_state::{FileState, digest_of};

/// The digest of a kit's parts and of its header trees, as lower-case hexadecimal text. It is kept in `cache_dir` and believed for as
/// long as every file has the same size, times and inode.
///
/// # Errors
/// When a file of the kit cannot be read.
pub fn identity(kit: &Candidate, cache_dir: &Path) -> io::Result<String> {
    let files = files(kit);
    let states = files.values().map(|path| FileState::now(path)).collect::<io::Result<Vec<_>>>()?;
    let key = HEXLOWER.encode(blake3::hash(kit.root.as_os_str().as_encoded_bytes()).as_bytes());
    let cache = cache_dir.join(format!("kit-{}-{}.json", kit.kind.as_str(), key.get(..32).unwrap_or(&key)));
    digest_of(&cache, states, || {
        let mut hasher = blake3::Hasher::new();
        for (name, path) in &files {
            hasher.update(name.as_bytes()).update(b"\0").update(content(path)?.as_bytes());
        }
        Ok(HEXLOWER.encode(hasher.finalize().as_bytes()))
    })
}

/// Every file that counts, by its name in the kit.
fn files(kit: &Candidate) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for part in kit.parts.iter().filter(|part| !is_header(part.name) && part.path.is_file()) {
        files.insert(format!("part {}", part.name), part.path.clone());
    }
    let own = kit.kind.table().headers;
    for dir in kit.include_dirs() {
        // A directory that is shared with other packages counts by what begins like the kit's own names.
        let shared = kit.root.join("conda-meta").exists() || kit.root.ends_with("usr");
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !shared || own.iter().any(|beginning| name.starts_with(beginning)) {
                walk(&entry.path(), &format!("header {name}"), &mut BTreeSet::new(), &mut files);
            }
        }
    }
    files
}

/// Adds a file, or all files below a directory. `above` holds the directories on the way, so that a link to one of them ends there.
fn walk(path: &Path, name: &str, above: &mut BTreeSet<PathBuf>, files: &mut BTreeMap<String, PathBuf>) {
    if path.is_file() {
        files.insert(name.to_owned(), path.to_owned());
    } else if let Ok(real) = path.canonicalize()
        && above.insert(real.clone())
    {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            walk(&entry.path(), &format!("{name}/{}", entry.file_name().to_string_lossy()), above, files);
        }
        above.remove(&real);
    }
}

fn content(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize())
}
