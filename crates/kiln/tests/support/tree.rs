//! What is in a directory: bytes and modes to compare two directories, inodes and times to see whether one was touched. And a
//! copy of what a project's author wrote.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Every file and directory below `dir`: mode and bytes by relative path. A directory's name ends with `/`.
pub fn files(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(dir).into_iter().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let meta = entry.path().symlink_metadata().unwrap();
            let bytes = if meta.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            (name(dir, entry.path(), meta.is_dir()), (meta.mode() & 0o7777, bytes))
        })
        .collect()
}

/// Inode and modification time (nanoseconds) of everything below `dir` and of `dir` itself.
pub fn stamps(dir: &Path) -> BTreeMap<String, (u64, i128)> {
    let entries = walkdir::WalkDir::new(dir).into_iter().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let meta = entry.path().symlink_metadata().unwrap();
            let time = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
            (name(dir, entry.path(), meta.is_dir()), (meta.ino(), time))
        })
        .collect()
}

/// Asserts that two directories hold the same; a difference is told by name, not by bytes.
pub fn assert_equal(a: &Path, b: &Path) {
    let (left, right) = (files(a), files(b));
    let names = |files: &BTreeMap<String, _>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&left), names(&right), "{} and {}", a.display(), b.display());
    let differing: Vec<_> = left.iter().filter(|(name, value)| right.get(*name) != Some(value)).map(|(name, _)| name).collect();
    assert!(differing.is_empty(), "{} and {} differ in {differing:?}", a.display(), b.display());
}

/// Copies a project without what was built of it.
pub fn copy_sources(from: &Path, to: &Path) {
    let is_source = |entry: &walkdir::DirEntry| !matches!(entry.file_name().to_str(), Some(".kiln" | "build" | "__pycache__"));
    for entry in walkdir::WalkDir::new(from).into_iter().filter_entry(is_source) {
        let entry = entry.unwrap();
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(place).unwrap(),
            false => drop(fs::copy(entry.path(), place).unwrap()),
        }
    }
}

/// The paths of the extensions below `dir`.
pub fn extensions(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "so")).collect()
}

/// The path of the only extension of what was built in `project`.
pub fn only_extension(project: &Path) -> std::path::PathBuf {
    let mut extensions = extensions(&project.join("build"));
    assert_eq!(extensions.len(), 1);
    extensions.remove(0)
}

fn name(dir: &Path, path: &Path, is_dir: bool) -> String {
    let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    if is_dir { name + "/" } else { name }
}
