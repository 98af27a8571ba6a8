//! Writes a variant directory and puts it in place.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kiln_format::{Digest, DigestAlgorithm, Metadata};

use super::METADATA;
use super::contents::{Contents, Entry, Source};
use super::error::{PackageError, io_error};
use crate::replace::Staging;

/// What [`place`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The directory had the same contents and was not touched.
    Unchanged,
    /// There was none before.
    New,
    /// The old one was replaced.
    Replaced,
}

/// Looks at a variant's directory before it is put in place, and at one that stays as it is. False: it must not be there.
pub type Inspect<'a> = dyn Fn(&Path) -> bool + 'a;

/// Puts the directory `out/variant` in place, whole or not at all, unless `inspect` refuses it. `digest` is that of `contents`, and is
/// added to `metadata`.
///
/// # Errors
/// When a file cannot be read or written, or the directory is refused; what was in place is then still there.
pub fn place(
    out: &Path,
    variant: &str,
    contents: &Contents,
    digest: Digest,
    metadata: &Metadata,
    inspect: &Inspect<'_>,
) -> Result<Placed, PackageError> {
    let text = Metadata { digest: Some(digest.clone()), ..metadata.clone() }.to_json();
    let mut all = contents.clone();
    all.files.insert(METADATA.to_owned(), Entry { source: Source::Bytes(text.into_bytes()), executable: false });

    let dir = out.join(variant);
    if is_equal(&dir, &all, &digest) {
        return if inspect(&dir) { Ok(Placed::Unchanged) } else { Err(PackageError::Refused) };
    }
    let existed = fs::symlink_metadata(&dir).is_ok();
    let staging = Staging::new(out, variant)?;
    for (name, entry) in &all.files {
        write(staging.path(), name, entry, digest.files.get(name))?;
    }
    if !inspect(staging.path()) {
        return Err(PackageError::Refused);
    }
    staging.commit()?;
    Ok(if existed { Placed::Replaced } else { Placed::New })
}

pub(super) fn write(dir: &Path, name: &str, entry: &Entry, hash: Option<&String>) -> Result<(), PackageError> {
    let path = dir.join(name);
    let error = |source| io_error("write", &path, source);
    make_parents(dir, name).map_err(error)?;
    let mut file = File::create_new(&path).map_err(error)?;
    match &entry.source {
        Source::Bytes(bytes) => file.write_all(bytes).map_err(error)?,
        Source::File(from) => {
            let input = File::open(from).map_err(|source| io_error("read", from, source))?;
            // Hashed again on the way: the digest must be that of the bytes that were written.
            let mut copy = Copy { input, output: &mut file };
            let written = DigestAlgorithm::Sha256.hash(&mut copy).map_err(error)?;
            if hash != Some(&written) {
                return Err(PackageError::Changed { path: from.clone() });
            }
        }
    }
    file.set_permissions(fs::Permissions::from_mode(entry.mode())).map_err(error)
}

/// The directories of a file, with the mode that every directory has, whatever the umask.
fn make_parents(dir: &Path, name: &str) -> io::Result<()> {
    let mut at = dir.to_owned();
    let parents = name.rsplit_once('/').map_or("", |(parents, _)| parents);
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        at.push(part);
        match fs::create_dir(&at) {
            Ok(()) => fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A reader that also writes what it reads.
struct Copy<'a> {
    input: File,
    output: &'a mut File,
}

impl Read for Copy<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.output.write_all(buffer.get(..length).unwrap_or_default())?;
        Ok(length)
    }
}

/// Whether `dir` holds exactly these files with these bytes and modes, and nothing else. Anything that cannot be read is a difference.
fn is_equal(dir: &Path, contents: &Contents, digest: &Digest) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) && compare(dir, contents, digest).unwrap_or(false)
}

fn compare(dir: &Path, contents: &Contents, digest: &Digest) -> io::Result<bool> {
    let mut seen = 0;
    let mut pending = vec![(dir.to_owned(), String::new())];
    while let Some((at, prefix)) = pending.pop() {
        if fs::symlink_metadata(&at)?.permissions().mode() & 0o7777 != 0o755 {
            return Ok(false);
        }
        let mut entries = 0;
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            entries += 1;
            let Ok(name) = entry.file_name().into_string() else { return Ok(false) };
            let (name, meta) = (format!("{prefix}{name}"), fs::symlink_metadata(entry.path())?);
            if meta.is_dir() {
                pending.push((entry.path(), format!("{name}/")));
                continue;
            }
            let Some(wanted) = contents.files.get(&name) else { return Ok(false) };
            if !meta.is_file() || meta.permissions().mode() & 0o7777 != wanted.mode() {
                return Ok(false);
            }
            seen += 1;
            let equal = match (&wanted.source, digest.files.get(&name)) {
                (Source::Bytes(bytes), _) => meta.len() == bytes.len() as u64 && fs::read(entry.path())? == *bytes,
                (Source::File(_), Some(hash)) => digest.algorithm.hash(File::open(entry.path())?)? == *hash,
                (Source::File(_), None) => false,
            };
            if !equal {
                return Ok(false);
            }
        }
        if entries == 0 {
            return Ok(false);
        }
    }
    Ok(seen == contents.files.len())
}
