//! Which projects use a cache directory: noted by each build, asked when what nobody needs is removed.
//!
//! `<cache>/projects-v1/<digest>` holds, for one project (or one user's lock file), where its lock and its build records are, the text of
//! its lock, and which trees its last build used.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kiln_format::lock::{self, Lock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{record, small_file};

/// What is known of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KnownProject {
    /// The project's directory, or that of a user's lock file.
    pub root: PathBuf,
    /// Directories that its builds were put into.
    pub outputs: BTreeSet<PathBuf>,
    /// Digests of the trees that its last build used.
    pub uses: BTreeSet<String>,
    /// The text of the lock file as it was then: what it pins is needed also while the directory is away.
    #[serde(default)]
    pub lock: String,
}

/// What the projects that are known need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Texts that name trees by their digests, or by the first digits of these.
    pub texts: Vec<String>,
    /// What their lock files pin.
    pub locks: Vec<Lock>,
    /// Projects whose directory is not there (any more, or at the moment). What their last builds used counts as needed.
    pub missing: Vec<PathBuf>,
}

/// Something of a known project, or the note of it, cannot be read, so that it is not known what it needs.
#[derive(Debug, Error)]
#[error("it is not known what {} needs: `{}` cannot be read", shown(root.as_deref()), path.display())]
pub struct UnknownNeeds {
    /// The project; none when the note of it is what cannot be read.
    pub root: Option<PathBuf>,
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

impl UnknownNeeds {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self.root {
            Some(_) => "nothing was removed; correct the file, or remove it",
            None => "nothing was removed; the next build of that project writes it anew: if there is no such project any more, remove it",
        }
    }
}

fn shown(root: Option<&Path>) -> String {
    root.map_or_else(|| "a project".to_owned(), |root| format!("the project in `{}`", root.display()))
}

/// Notes that a build of a project uses the cache directory, and what its lock pins. What is noted already is not written again. A
/// cache that cannot be written to loses nothing: nobody can remove anything there either.
pub fn note(cache_dir: &Path, root: &Path, output: Option<&Path>, uses: BTreeSet<String>, lock: &Lock) {
    change(cache_dir, root, true, |project| {
        project.outputs.extend(output.map(Path::to_owned));
        project.uses = uses;
        project.lock = lock.render();
    });
}

/// Notes what the lock of a project, or of a user, pins. What its builds used stays noted; a note that does not say any more what that
/// is stays as it is.
pub fn note_lock(cache_dir: &Path, root: &Path, lock: &Lock) {
    change(cache_dir, root, false, |project| project.lock = lock.render());
}

/// Changes the note of a project; a damaged one only if it is `anew`.
fn change(cache_dir: &Path, root: &Path, anew: bool, change: impl FnOnce(&mut KnownProject)) {
    let dir = cache_dir.join(DIR);
    let path = dir.join(file_name(root));
    let known = match read_one(&path) {
        Ok(known) => known,
        Err(cause) if anew || cause.kind() == io::ErrorKind::NotFound => KnownProject::default(),
        Err(_) => return,
    };
    let mut project = KnownProject { root: root.to_owned(), ..known.clone() };
    change(&mut project);
    project.outputs.retain(|output| output.is_dir());
    if project == known {
        return;
    }
    let write = || -> io::Result<()> {
        fs::create_dir_all(&dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&dir)?;
        file.write_all(&serde_json::to_vec_pretty(&project)?)?;
        file.persist(&path)?;
        Ok(())
    };
    let _unnoted: io::Result<()> = write();
}

/// What all known projects need. What a project needs that is not there counts unless `forget_missing`; it stays noted all the same
/// ([`forget`]).
///
/// # Errors
/// When a note, a lock file or a build record is there and cannot be read, or is damaged: what it names is not known then.
pub fn needs(cache_dir: &Path, forget_missing: bool) -> Result<Needs, UnknownNeeds> {
    let dir = cache_dir.join(DIR);
    let mut needs = Needs::default();
    for path in notes(&dir).map_err(unread(&dir))? {
        let project = match read_one(&path) {
            Ok(project) => project,
            // Another process has just forgotten it.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(unread(&path)(cause)),
        };
        if !project.root.is_dir() {
            if !forget_missing {
                needs.texts.extend(project.uses);
                // As text too: digests are found in one that another Kiln has noted.
                needs.locks.extend(Lock::parse(&project.lock).ok());
                needs.texts.push(project.lock);
            }
            needs.missing.push(project.root);
            continue;
        }
        let unknown = |path: &Path| {
            let (root, path) = (Some(project.root.clone()), path.to_owned());
            move |source| UnknownNeeds { root, path, source }
        };
        let lock_file = project.root.join(lock::FILE_NAME);
        if let Some(text) = read_text(&lock_file).map_err(unknown(&lock_file))? {
            // A tree's digest is not in its text: what a damaged one pins is unknown.
            let parsed = Lock::parse(&text).map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault.message));
            needs.locks.push(parsed.map_err(unknown(&lock_file))?);
            needs.texts.push(text);
        }
        for output in project.outputs.iter().cloned().chain([project.root.join("build")]) {
            let record = output.join(record::FILE_NAME);
            let Some(text) = read_text(&record).map_err(unknown(&record))? else { continue };
            // Of whatever form; half a record lacks digests.
            serde_json::from_str::<serde::de::IgnoredAny>(&text).map_err(|fault| unknown(&record)(fault.into()))?;
            needs.texts.push(text);
        }
        needs.texts.extend(project.uses.iter().cloned());
    }
    Ok(needs)
}

/// Forgets projects: what is noted of them.
pub fn forget(cache_dir: &Path, roots: &[PathBuf]) {
    for root in roots {
        let _gone: io::Result<()> = fs::remove_file(cache_dir.join(DIR).join(file_name(root)));
    }
}

/// Where the notes are, below the cache directory.
const DIR: &str = "projects-v1";
/// Digits of a note's name.
const NAME_LENGTH: usize = 32;

fn file_name(root: &Path) -> String {
    blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex().get(..NAME_LENGTH).unwrap_or_default().to_owned()
}

/// The notes in `dir`, sorted. Files of other names were not finished, and what they are about was not begun.
fn notes(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut notes = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.len() == NAME_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            notes.push(entry.path());
        }
    }
    notes.sort();
    Ok(notes)
}

fn read_one(path: &Path) -> io::Result<KnownProject> {
    Ok(serde_json::from_slice(&small_file::read(path)?)?)
}

/// The error of a note that cannot be read.
fn unread(path: &Path) -> impl FnOnce(io::Error) -> UnknownNeeds {
    move |source| UnknownNeeds { root: None, path: path.to_owned(), source }
}

fn read_text(path: &Path) -> io::Result<Option<String>> {
    match small_file::read_text(path) {
        Ok(text) => Ok(Some(text)),
        // A link that leads nowhere is there.
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use crate::lock_file::testing::locked_torch;

    use super::*;

    #[test]
    fn what_projects_need_is_found_in_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, project) = (dir.path().join("cache"), dir.path().join("a b/prøject"));
        let out = dir.path().join("out");
        for made in [&project.join("build"), &out] {
            fs::create_dir_all(made).unwrap();
        }
        note(&cache, &project, Some(&out), BTreeSet::from(["aaaa".to_owned()]), &Lock::default());
        fs::write(project.join("build").join(record::FILE_NAME), "\"in build\"").unwrap();
        fs::write(out.join(record::FILE_NAME), "\"in out\"").unwrap();
        fs::write(project.join(lock::FILE_NAME), Lock::default().render()).unwrap();
        let found = needs(&cache, false).unwrap();
        assert_eq!((found.locks.len(), found.missing.len()), (1, 0));
        for text in ["aaaa", "\"in build\"", "\"in out\""] {
            assert!(found.texts.iter().any(|found| found == text), "{text}");
        }
        // The next build uses other trees; it need not say again where others were put.
        note(&cache, &project, None, BTreeSet::from(["bbbb".to_owned()]), &Lock::default());
        let found = needs(&cache, false).unwrap();
        assert!(found.texts.contains(&"\"in out\"".to_owned()) && !found.texts.contains(&"aaaa".to_owned()));
        fs::rename(&project, dir.path().join("moved")).unwrap();
        let found = needs(&cache, false).unwrap();
        assert_eq!((found.texts, found.missing), (vec!["bbbb".to_owned(), Lock::default().render()], vec![project.clone()]));
        let left_out = Needs { missing: vec![project], ..Needs::default() };
        assert_eq!(needs(&cache, true).unwrap(), left_out);
        assert_eq!(needs(&cache, true).unwrap(), left_out, "asking forgets nothing");
        forget(&cache, &left_out.missing);
        assert_eq!(needs(&cache, false).unwrap(), Needs::default());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, project) = (dir.path().join("cache"), dir.path().join("project"));
        let (lock, record) = (project.join(lock::FILE_NAME), project.join("build").join(record::FILE_NAME));
        fs::create_dir_all(project.join("build")).unwrap();
        note_lock(&cache, &project, &Lock::default());
        for path in [&lock, &record] {
            let refused = |why: &str| {
                let error = needs(&cache, false).expect_err(why);
                assert_eq!(error.path, *path, "{why}: {error}");
            };
            // A directory in the place of the file cannot be read by anyone, root included.
            fs::create_dir(path).unwrap();
            refused("a directory");
            fs::remove_dir(path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
            refused("a pipe");
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("nowhere", path).unwrap();
            refused("a link that leads nowhere");
            fs::remove_file(path).unwrap();
            for damaged in [&b"<<<<<<< ours\n"[..], b"{\"schema\": 1, \"vari", b"\xff\xfe"] {
                fs::write(path, damaged).unwrap();
                refused(&String::from_utf8_lossy(damaged));
            }
            fs::remove_file(path).unwrap();
        }
        assert!(needs(&cache, false).is_ok());
    }

    #[test]
    fn a_damaged_note_is_an_error_until_it_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, project) = (dir.path().join("cache"), dir.path().join("project"));
        fs::create_dir(&project).unwrap();
        note(&cache, &project, None, BTreeSet::from(["aaaa".to_owned()]), &Lock::default());
        let path = cache.join(DIR).join(file_name(&project));
        let whole = fs::read(&path).unwrap();
        // What a killed process was about to note.
        fs::write(cache.join(DIR).join(".tmpAbCdEf"), &whole[..10]).unwrap();
        assert!(needs(&cache, false).is_ok());
        for damaged in [&b""[..], &whole[..whole.len() / 2], b"{\"root\": 1}", b"\xff"] {
            fs::write(&path, damaged).unwrap();
            let error = needs(&cache, true).unwrap_err();
            assert_eq!((&error.path, &error.root), (&path, &None));
            assert!(error.to_string().starts_with("it is not known what a project needs: `") && error.hint().contains("next build"));
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(needs(&cache, false).is_err());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, b"{").unwrap();
        note_lock(&cache, &project, &Lock::default());
        assert!(needs(&cache, false).is_err(), "what its build used is not known from its lock");
        note(&cache, &project, None, BTreeSet::from(["aaaa".to_owned()]), &Lock::default());
        assert_eq!(needs(&cache, false).unwrap().texts, ["aaaa"]);
    }

    #[test]
    fn what_a_lock_pins_is_needed_while_its_directory_is_away() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, project) = (dir.path().join("cache"), dir.path().join("project"));
        fs::create_dir(&project).unwrap();
        let mut lock = Lock::default();
        lock.add(locked_torch("2.13.0"));
        note(&cache, &project, None, BTreeSet::from(["aaaa".to_owned()]), &Lock::default());
        note_lock(&cache, &project, &lock);
        fs::rename(&project, dir.path().join("away")).unwrap();
        let found = needs(&cache, false).unwrap();
        assert_eq!((found.locks, found.missing), (vec![lock], vec![project]));
        assert!(found.texts.contains(&"aaaa".to_owned()), "what its build used is kept too");
    }
}
