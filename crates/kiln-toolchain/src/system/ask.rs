//! Asking a Python where its packages are.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::{SystemError, SystemSearch};
use crate::file_state::FileState;

/// What is run. Paths may have any character but NUL.
const PROGRAM: &str = "import sysconfig\nprint(*(sysconfig.get_path(p) for p in ('platlib', 'purelib', 'include')), sep='\\0', end='')";

/// What a Python says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Directories that hold packages; those with compiled code first.
    pub(super) packages: Vec<PathBuf>,
    /// The directory of Python's own headers.
    pub(super) include: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    files: Vec<FileState>,
    answer: Answer,
}

/// The program, absolute.
pub(super) fn resolve(search: &SystemSearch<'_>) -> Result<PathBuf, SystemError> {
    let named = search.python;
    let missing = || SystemError::NoPython { python: named.to_owned() };
    let found = if named.components().count() > 1 || named.is_absolute() {
        std::path::absolute(named).ok().filter(|path| path.is_file())
    } else {
        crate::host::on_path(&named.to_string_lossy(), search.path)
    };
    found.ok_or_else(missing)
}

/// The answer, from the cache or from the Python, and the number of processes that it took.
pub(super) fn ask(python: &Path, search: &SystemSearch<'_>) -> Result<(Answer, u32), SystemError> {
    let key = HEXLOWER.encode(blake3::hash(python.as_os_str().as_encoded_bytes()).as_bytes());
    let cache = search.cache_dir.join(format!("python-{}.json", key.get(..32).unwrap_or(&key)));
    let kept: Option<Kept> = std::fs::read(&cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept
        && !kept.files.is_empty()
        && kept.files.iter().all(FileState::is_unchanged)
    {
        return Ok((kept.answer, 0));
    }
    let files = deciding_files(python);
    let answer = run(python, search)?;
    FileState::outlast_clock_step(&files);
    if !files.is_empty() && files.iter().all(FileState::is_unchanged) {
        crate::file_state::write(&cache, &serde_json::to_vec(&Kept { files, answer: answer.clone() }).unwrap_or_default())
            .map_err(SystemError::cache(&cache))?;
    }
    Ok((answer, 1))
}

/// The files that decide what a Python answers: the interpreter and the file that makes it a virtual environment. None when
/// that cannot be said: a script (as version managers put it on PATH) may start another one each time.
fn deciding_files(python: &Path) -> Vec<FileState> {
    let mut magic = [0; 4];
    let is_program = std::fs::File::open(python).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF";
    if !is_program {
        return Vec::new();
    }
    let beside = python.parent().and_then(Path::parent).map(|dir| dir.join("pyvenv.cfg"));
    [Some(python.to_owned()), beside].into_iter().flatten().filter_map(|path| FileState::now(&path).ok()).collect()
}

fn run(python: &Path, search: &SystemSearch<'_>) -> Result<Answer, SystemError> {
    let broken = |reason: String| SystemError::NotPython { python: python.to_owned(), reason };
    let mut command = Command::new(python);
    // Isolated: neither the caller's variables nor the current directory may change what is found.
    command.args(["-I", "-c", PROGRAM]).env_clear().env("PATH", search.path).env("LC_ALL", "C.UTF-8");
    command.envs(search.ambient.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).output().map_err(|cause| broken(cause.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).map(|line| format!(": {line}"));
        let ending = output.status.code().map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(broken(format!("it ended with {ending}{}", last.as_deref().unwrap_or(" and said nothing"))));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| broken("it answered with bytes that are no text".to_owned()))?;
    let paths: Vec<PathBuf> = text.split('\0').map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    let Ok([platlib, purelib, include]) = <[PathBuf; 3]>::try_from(paths) else {
        return Err(broken("it does not say where its packages are".to_owned()));
    };
    let mut packages = vec![platlib];
    if !packages.contains(&purelib) {
        packages.push(purelib);
    }
    Ok(Answer { packages, include })
}
