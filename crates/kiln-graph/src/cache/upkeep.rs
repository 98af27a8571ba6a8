//! Keeps the cache within its size, and tells what is in it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::disk::named;
use super::{ActionCache, Kept, Manifest, ResultEntry};
use crate::fingerprint::Key;

/// What nobody refers to and is younger than this may belong to a result that is just being written.
const IN_THE_MAKING: Duration = Duration::from_secs(3600);

/// How much of the limit is left in use when the cache is made smaller, in percent: so that not every build does it.
const DOWN_TO: u64 = 80;

/// Files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// How many.
    pub files: u64,
    /// Their sizes, in bytes.
    pub bytes: u64,
}

/// What is in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Steps of which something is known.
    pub manifests: CacheCounts,
    /// Results.
    pub results: CacheCounts,
    /// Files that results consist of, each content once.
    pub blobs: CacheCounts,
}

impl CacheStats {
    /// All of it, in bytes.
    pub fn bytes(&self) -> u64 {
        self.manifests.bytes + self.results.bytes + self.blobs.bytes
    }
}

/// What was removed from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePruned {
    /// What was removed.
    pub removed: CacheCounts,
    /// What is left, in bytes.
    pub left: u64,
}

/// What a look at every file of the cache found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files that are what was written.
    pub sound: u64,
    /// Files that were not, and were removed.
    pub damaged: Vec<PathBuf>,
    /// Results whose files are not all there, and that were removed: what a cache looks like from which files were taken.
    pub incomplete: Vec<PathBuf>,
}

struct Item {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

impl ActionCache {
    /// Counts what is there.
    ///
    /// # Errors
    /// The first error of the file system; a cache that does not exist is empty.
    pub fn stats(&self) -> io::Result<CacheStats> {
        let count = |dir: &Path| -> io::Result<CacheCounts> {
            let items = items(dir)?;
            Ok(CacheCounts { files: items.len() as u64, bytes: items.iter().map(|item| item.size).sum() })
        };
        Ok(CacheStats { manifests: count(&self.manifests())?, results: count(&self.results())?, blobs: count(&self.blobs())? })
    }

    /// Removes what was not used for longest until at most `limit` bytes are left, and what dead processes left.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn prune(&self, limit: u64) -> io::Result<CachePruned> {
        if !self.dir.exists() {
            return Ok(CachePruned::default());
        }
        let _lock = self.lock()?;
        let pruned = self.shrink(limit)?;
        self.write_size(pruned.left)?;
        Ok(pruned)
    }

    /// Removes everything.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn clean(&self) -> io::Result<CachePruned> {
        if !self.dir.exists() {
            return Ok(CachePruned::default());
        }
        let _lock = self.lock()?;
        let _nobody_writes = self.alone()?;
        let mut pruned = CachePruned::default();
        for dir in [self.results(), self.manifests(), self.blobs()] {
            for item in items(&dir)? {
                remove(&item, &mut pruned)?;
            }
        }
        self.clear_tmp(Duration::ZERO);
        self.write_size(0)?;
        Ok(pruned)
    }

    /// Reads every file and removes those that are not what was written.
    ///
    /// # Errors
    /// The first error of the file system.
    pub fn verify(&self) -> io::Result<Verified> {
        let mut verified = Verified::default();
        let mut check = |path: PathBuf, good: bool| -> io::Result<()> {
            if good {
                verified.sound += 1;
            } else {
                gone(fs::remove_file(&path))?;
                verified.damaged.push(path);
            }
            Ok(())
        };
        for item in items(&self.blobs())? {
            let Some(bytes) = there(hash(&item.path))? else { continue };
            let good = named(&item.path) == Some(bytes);
            check(item.path, good)?;
        }
        for item in items(&self.manifests())? {
            let Some(bytes) = there(fs::read(&item.path))? else { continue };
            let good = named(&item.path).is_some_and(|key| Manifest::from_bytes(&bytes, &Key(key)).is_some());
            check(item.path, good)?;
        }
        let mut whole = Vec::new();
        for item in items(&self.results())? {
            let Some(bytes) = there(fs::read(&item.path))? else { continue };
            let result = named(&item.path).and_then(|key| ResultEntry::from_bytes(&bytes, &Key(key)));
            whole.extend(result.iter().map(|result| (item.path.clone(), result.clone())));
            check(item.path, result.is_some())?;
        }
        let lacks = |outputs: &[Kept]| !outputs.iter().all(|kept| super::disk::file(&self.blobs(), &kept.digest.0).exists());
        whole.retain(|(_, result)| lacks(&result.outputs));
        if whole.is_empty() {
            return Ok(verified);
        }
        // What others write or remove at this time may have been seen in part: now nobody does.
        let _lock = self.lock()?;
        let _nobody_writes = self.alone()?;
        for (path, _) in whole {
            match refers(&path) {
                Some(outputs) if !lacks(&outputs) => {}
                Some(_) => {
                    gone(fs::remove_file(&path))?;
                    verified.sound -= 1;
                    verified.incomplete.push(path);
                }
                None => verified.sound -= 1,
            }
        }
        Ok(verified)
    }

    /// Notes that `bytes` were written, and makes the cache smaller when that is too much.
    pub(crate) fn account(&self, bytes: u64) -> io::Result<()> {
        let _lock = self.lock()?;
        let size = match self.size() {
            Some(size) => size.saturating_add(bytes),
            None => self.stats()?.bytes(),
        };
        if size <= self.limit {
            return self.write_size(size);
        }
        let pruned = self.shrink(self.limit / 100 * DOWN_TO)?;
        self.write_size(pruned.left)
    }

    fn shrink(&self, limit: u64) -> io::Result<CachePruned> {
        let mut pruned = CachePruned::default();
        self.clear_tmp(IN_THE_MAKING);
        let mut entries = items(&self.results())?;
        entries.extend(items(&self.manifests())?);
        entries.sort_by_key(|item| std::cmp::Reverse(item.used));
        let blobs = items(&self.blobs())?;
        let sizes: HashMap<[u8; 32], u64> = blobs.iter().filter_map(|blob| Some((named(&blob.path)?, blob.size))).collect();
        // Newest first: what fits stays, with the blobs that it needs.
        let mut kept: HashSet<[u8; 32]> = HashSet::new();
        let mut total = 0_u64;
        let results = self.results();
        let mut full = false;
        let mut stays: HashMap<&PathBuf, SystemTime> = HashMap::new();
        for item in &entries {
            let outputs = if item.path.starts_with(&results) { refers(&item.path).unwrap_or_default() } else { Vec::new() };
            let refers: Vec<[u8; 32]> = outputs.iter().map(|kept| kept.digest.0).collect();
            let new: u64 = refers.iter().filter(|name| !kept.contains(*name)).map(|name| sizes.get(name).copied().unwrap_or(0)).sum();
            full |= total + item.size + new > limit;
            if full {
                remove(item, &mut pruned)?;
            } else {
                total += item.size + new;
                kept.extend(refers);
                stays.insert(&item.path, item.used);
            }
        }
        // A result may have been written since, of files that were there: from here on none is, until those are gone that no result has.
        let _nobody_writes = self.alone()?;
        for item in items(&results)?.iter().filter(|item| stays.get(&item.path) != Some(&item.used)) {
            kept.extend(refers(&item.path).unwrap_or_default().iter().map(|kept| kept.digest.0));
        }
        let now = SystemTime::now();
        for blob in &blobs {
            let young = now.duration_since(blob.used).is_ok_and(|age| age < IN_THE_MAKING);
            let refers = named(&blob.path).is_some_and(|name| kept.contains(&name));
            if refers {
                continue;
            }
            // When something had to go, its young blobs go too: the worst is a miss.
            if young && !full {
                total += blob.size;
            } else {
                remove(blob, &mut pruned)?;
            }
        }
        pruned.left = total;
        Ok(pruned)
    }

    fn clear_tmp(&self, older_than: Duration) {
        let now = SystemTime::now();
        for entry in fs::read_dir(self.tmp()).into_iter().flatten().flatten() {
            let old = entry
                .metadata()
                .and_then(|known| known.modified())
                .is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= older_than));
            if old {
                let path = entry.path();
                let _left = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }

    /// One process at a time counts, removes, or writes down the size.
    fn lock(&self) -> io::Result<File> {
        self.locked("lock", FlockOperation::LockExclusive)
    }

    /// Held while a result and its files are written, so that none of these is removed in between. Any number may hold it.
    pub(crate) fn writing(&self) -> io::Result<File> {
        self.locked("writing", FlockOperation::LockShared)
    }

    /// Held while files are removed that no result refers to: no result is written meanwhile.
    fn alone(&self) -> io::Result<File> {
        self.locked("writing", FlockOperation::LockExclusive)
    }

    fn locked(&self, name: &str, how: FlockOperation) -> io::Result<File> {
        fs::create_dir_all(&self.dir)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.dir.join(name))?;
        loop {
            match flock(&file, how) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn size(&self) -> Option<u64> {
        fs::read_to_string(self.dir.join("size")).ok()?.trim().parse().ok()
    }

    fn write_size(&self, size: u64) -> io::Result<()> {
        // Under the lock, and a number that cannot be read is counted anew.
        File::create(self.dir.join("size"))?.write_all(format!("{size}\n").as_bytes())
    }
}

/// The files that a result refers to; nothing where there is no such result.
fn refers(path: &Path) -> Option<Vec<Kept>> {
    let (key, bytes) = named(path).zip(fs::read(path).ok())?;
    Some(ResultEntry::from_bytes(&bytes, &Key(key))?.outputs)
}

/// All files of a kind; none in a directory that does not exist.
fn items(dir: &Path) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for first in there(fs::read_dir(dir))?.into_iter().flatten() {
        let first = first?.path();
        let Ok(files) = fs::read_dir(first) else { continue };
        for file in files {
            let file = file?;
            let Some(known) = there(file.metadata())? else { continue };
            items.push(Item { path: file.path(), size: known.len(), used: known.modified()? });
        }
    }
    items.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(items)
}

fn remove(item: &Item, pruned: &mut CachePruned) -> io::Result<()> {
    gone(fs::remove_file(&item.path))?;
    pruned.removed.files += 1;
    pruned.removed.bytes += item.size;
    Ok(())
}

/// Removing what another process has removed is as good.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    there(removed).map(drop)
}

/// What is there; nothing if it is not.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn hash(path: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Digest;
    use crate::record::Cost;

    fn kept(text: &str) -> Kept {
        let digest = Digest(*blake3::hash(text.as_bytes()).as_bytes());
        Kept { name: "out".to_owned(), digest, size: text.len() as u64, executable: false }
    }

    /// Keeps `text` as the result `key`, as a step does that ran.
    fn keep(cache: &ActionCache, key: u8, text: &str) {
        let from = cache.dir().with_file_name("out");
        fs::write(&from, text).unwrap();
        cache.copy_in(&kept(text), &from).unwrap();
        let result = ResultEntry { outputs: vec![kept(text)], log: Vec::new(), cost: Cost::default() };
        cache.save_result(&Key([key; 32]), &result).unwrap();
    }

    #[test]
    fn a_result_of_an_old_file_written_beside_a_prune_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ActionCache::new(dir.path().join("actions"), 1_000_000);
        keep(&cache, 1, "text");
        let old = super::super::disk::file(&cache.results(), &[1; 32]);
        let writing = cache.writing().unwrap();
        let pruned = std::thread::scope(|scope| {
            let pruning = scope.spawn(|| cache.prune(0).unwrap());
            while old.exists() {
                std::thread::yield_now();
            }
            // The step finds the file there, and does not write it again.
            keep(&cache, 2, "text");
            drop(writing);
            pruning.join().unwrap()
        });
        assert_eq!(pruned.removed.files, 1, "the old result");
        let verified = cache.verify().unwrap();
        assert_eq!((verified.sound, verified.incomplete.len(), verified.damaged.len()), (2, 0, 0));
        cache.copy_out(&kept("text"), &dir.path().join("again")).unwrap();
    }

    #[test]
    fn a_result_that_lost_its_file_is_not_damage() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ActionCache::new(dir.path().join("actions"), 1_000_000);
        keep(&cache, 1, "text");
        fs::remove_file(super::super::disk::file(&cache.blobs(), &kept("text").digest.0)).unwrap();
        let verified = cache.verify().unwrap();
        assert_eq!((verified.sound, verified.incomplete.len(), verified.damaged.len()), (0, 1, 0));
        assert_eq!(cache.verify().unwrap(), Verified::default());
    }
}
