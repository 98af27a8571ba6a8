//! Reads and writes the files of the cache.

use std::fs::{self, File, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{ActionCache, Kept, Manifest, ResultEntry};
use crate::content::Digest;
use crate::fingerprint::Key;

/// How old the time of a file that is used must be to be set anew. Whoever looks for what was not used of late needs no more.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// Why an entry cannot be used.
#[derive(Debug)]
pub(crate) enum Damage {
    /// There is none.
    Missing,
    /// This file is not what was written. It was removed.
    Damaged(PathBuf),
    /// It cannot be read, or not be copied out.
    Io(io::Error),
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Io(error) }
    }
}

impl ActionCache {
    pub(super) fn manifests(&self) -> PathBuf {
        self.dir.join("manifests")
    }

    pub(super) fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    pub(super) fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Reads the manifest of a step.
    pub(crate) fn manifest(&self, key: &Key) -> Result<Manifest, Damage> {
        let path = file(&self.manifests(), &key.0);
        let bytes = fs::read(&path)?;
        let manifest = Manifest::from_bytes(&bytes, key).ok_or_else(|| damaged(&path))?;
        touch(&path);
        Ok(manifest)
    }

    /// Writes the manifest of a step. Returns how many bytes.
    pub(crate) fn save_manifest(&self, key: &Key, manifest: &Manifest) -> io::Result<u64> {
        self.write(&file(&self.manifests(), &key.0), &manifest.to_bytes(key))
    }

    /// Reads a result.
    pub(crate) fn result(&self, key: &Key) -> Result<ResultEntry, Damage> {
        let path = file(&self.results(), &key.0);
        let bytes = fs::read(&path)?;
        let result = ResultEntry::from_bytes(&bytes, key).ok_or_else(|| damaged(&path))?;
        touch(&path);
        Ok(result)
    }

    /// Writes a result whose blobs are kept. Returns how many bytes.
    pub(crate) fn save_result(&self, key: &Key, result: &ResultEntry) -> io::Result<u64> {
        self.write(&file(&self.results(), &key.0), &result.to_bytes(key))
    }

    /// Copies a blob to `to`, which must not exist.
    pub(crate) fn copy_out(&self, kept: &Kept, to: &Path) -> Result<(), Damage> {
        let path = file(&self.blobs(), &kept.digest.0);
        let from = File::open(&path)?;
        if copy(from, to, kept.executable)? == kept.digest {
            return Ok(());
        }
        fs::remove_file(to)?;
        Err(damaged(&path))
    }

    /// Keeps the file `from` as a blob unless it is. Returns how many bytes were written.
    pub(crate) fn copy_in(&self, kept: &Kept, from: &Path) -> io::Result<u64> {
        let path = file(&self.blobs(), &kept.digest.0);
        if fs::metadata(&path).is_ok_and(|known| known.len() == kept.size) {
            return Ok(0);
        }
        let dir = tempfile::Builder::new().prefix("blob-").tempdir_in(self.made(self.tmp())?)?;
        let copied = dir.path().join("blob");
        if copy(File::open(from)?, &copied, false)? != kept.digest {
            return Err(io::Error::other("an output changed while it was kept"));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(copied, path)?;
        Ok(kept.size)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<u64> {
        let mut file = tempfile::NamedTempFile::new_in(self.made(self.tmp())?)?;
        file.write_all(bytes)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(bytes.len() as u64)
    }

    fn made(&self, dir: PathBuf) -> io::Result<PathBuf> {
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

/// The file in `dir` for a digest.
pub(super) fn file(dir: &Path, digest: &[u8; 32]) -> PathBuf {
    let hex = blake3::Hash::from_bytes(*digest).to_hex();
    let (first, rest) = hex.split_at(2);
    dir.join(first).join(rest)
}

/// The digest that a file of the cache is named by.
pub(super) fn named(path: &Path) -> Option<[u8; 32]> {
    let rest = path.file_name()?.to_str()?;
    let first = path.parent()?.file_name()?.to_str()?;
    blake3::Hash::from_hex(format!("{first}{rest}")).ok().map(|hash| *hash.as_bytes())
}

/// Removes a file that is not what was written.
fn damaged(path: &Path) -> Damage {
    let _gone = fs::remove_file(path);
    Damage::Damaged(path.to_owned())
}

/// Copies and hashes.
fn copy(mut from: File, to: &Path, executable: bool) -> io::Result<Digest> {
    let mut out = File::options().write(true).create_new(true).open(to)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => {
                let part = buffer.get(..len).unwrap_or_default();
                hasher.update(part);
                out.write_all(part)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if executable {
        make_executable(&out)?;
    }
    Ok(Digest(*hasher.finalize().as_bytes()))
}

/// Lets those run a file who may read it.
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode();
    file.set_permissions(fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))
}

/// Notes that a file was used. A cache that cannot be written to serves all the same.
fn touch(path: &Path) {
    let now = SystemTime::now();
    let old =
        fs::metadata(path).and_then(|known| known.modified()).is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > TOUCH_AFTER));
    if old {
        let _unused = File::options().append(true).open(path).and_then(|file| file.set_times(FileTimes::new().set_modified(now)));
    }
}
