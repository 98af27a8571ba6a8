//! Asking a Python where its packages are.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::{SystemError, SystemSearch};
use crate::file_state::FileState;
use crate::process::{self, NoAnswer};

/// What is run: imports nothing that is not part of the interpreter's own start. Old Pythons understand it too, so that they can be
/// named. The answer goes past `sys.stdout`, which start-up code of the user's may have replaced, and stands between two marks, since
/// such code may print whatever it likes.
const PROGRAM: &str = r"
import os, site, sys, sysconfig
names = ['stdlib', 'platstdlib', 'include', 'platlib', 'purelib']
said = ['.'.join(map(str, sys.version_info[:3])), sys.prefix, getattr(sys, 'base_prefix', sys.prefix)]
try:
    said.append(site.getusersitepackages())
except Exception:
    said.append('')
said += [sysconfig.get_path(name) or '' for name in names]
said += sys.path
data = '\0'.join(said)
if not isinstance(data, bytes):
    data = data.encode('utf-8', 'surrogateescape')
os.write(1, b'\0kiln<' + data + b'>kiln\0')
";
const BEGIN: &[u8] = b"\0kiln<";
const END: &[u8] = b">kiln\0";

/// What a Python says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Its release: `3.11.7`.
    pub(super) version: String,
    /// The directory that it is installed in.
    pub(super) prefix: PathBuf,
    /// Directories that hold packages, in the order in which it looks into them.
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
    let cache = search.cache_dir.join(format!("python-v2-{}.json", key.get(..32).unwrap_or(&key)));
    let kept: Option<Kept> = std::fs::read(&cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept
        && !kept.files.is_empty()
        && kept.files.iter().all(FileState::is_unchanged)
    {
        return Ok((kept.answer, 0));
    }
    let interpreter = interpreter_files(python);
    let answer = run(python, search)?;
    if let Some(mut files) = interpreter {
        files.extend(deciding_files(&answer));
        FileState::outlast_clock_step(&files);
        if files.iter().all(FileState::is_unchanged) {
            crate::whole_file::write_whole(&cache, &serde_json::to_vec(&Kept { files, answer: answer.clone() }).unwrap_or_default())
                .map_err(SystemError::cache(&cache))?;
        }
    }
    Ok((answer, 1))
}

/// The files that decide which Python answers: the interpreter and the file that makes it a virtual environment. None when that
/// cannot be said: a script (as version managers put it on PATH) may start another one each time.
fn interpreter_files(python: &Path) -> Option<Vec<FileState>> {
    let mut magic = [0; 4];
    let is_program = std::fs::File::open(python).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF";
    let beside = python.parent().and_then(Path::parent).map(|dir| dir.join("pyvenv.cfg"));
    is_program.then(|| [Some(python.to_owned()), beside].into_iter().flatten().filter_map(|path| FileState::now(&path).ok()).collect())
}

/// What decides which directories it looks into: those directories, whose entries may add others, and the files in them that do.
fn deciding_files(answer: &Answer) -> Vec<FileState> {
    let adds = |name: &str| name.ends_with(".pth") || name == "sitecustomize.py" || name == "usercustomize.py";
    let mut files = Vec::new();
    for dir in &answer.packages {
        let Ok(state) = FileState::now(dir) else { continue };
        files.push(state);
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut adding: Vec<PathBuf> =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(adds)).map(|entry| entry.path()).collect();
        adding.sort();
        files.extend(adding.iter().filter_map(|path| FileState::now(path).ok()));
    }
    files
}

fn run(python: &Path, search: &SystemSearch<'_>) -> Result<Answer, SystemError> {
    let broken = |reason: String| SystemError::NotPython { python: python.to_owned(), reason };
    let mut command = Command::new(python);
    // Isolated: neither the caller's variables nor the current directory may change what is found.
    command.args(["-I", "-c", PROGRAM]).env_clear().env("PATH", search.path).env("LC_ALL", "C.UTF-8");
    command.envs(search.ambient.iter().map(|(name, value)| (name, value)));
    let output = process::ask(&mut command, search.limit, search.interrupt).map_err(|failure| match failure {
        NoAnswer::Interrupted => SystemError::Interrupted,
        failure => broken(failure.to_string()),
    })?;
    if let Some(said) = between(&output.stdout) {
        return read(said).ok_or_else(|| broken("it does not say where its packages are".to_owned()))?.map_err(broken);
    }
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).map(|line| format!(": {line}"));
        let ending = output.status.code().map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(broken(format!("it ended with {ending}{}", last.as_deref().unwrap_or(" and said nothing"))));
    }
    Err(broken("it does not say where its packages are".to_owned()))
}

/// The answer in what was said.
fn between(said: &[u8]) -> Option<&[u8]> {
    let position = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
    let rest = said.get(position(said, BEGIN)? + BEGIN.len()..)?;
    rest.get(..position(rest, END)?)
}

/// Reads an answer; none when it is not of that form, an error for a Python that nothing can be built for.
fn read(said: &[u8]) -> Option<Result<Answer, String>> {
    use std::os::unix::ffi::OsStringExt;
    let mut fields = said.split(|byte| *byte == 0).map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec())));
    let version = fields.next()?.into_os_string().into_string().ok()?;
    if !version.starts_with("3.") {
        return Some(Err(format!("it is Python {version}")));
    }
    let (prefix, base, user) = (fields.next()?, fields.next()?, fields.next()?);
    let (stdlib, platstdlib, include) = (fields.next()?, fields.next()?, fields.next()?);
    let (platlib, purelib) = (fields.next()?, fields.next()?);
    let of_itself = |dir: &Path| {
        let own = [&stdlib, &platstdlib].into_iter().any(|lib| dir == lib || dir == lib.join("lib-dynload"));
        own || dir.extension().is_some_and(|extension| extension == "zip")
    };
    // An isolated Python leaves out the user's own packages, which the same Python finds otherwise.
    let user = Some(user).filter(|_| prefix == base || shares_packages(&prefix));
    let path: Vec<PathBuf> = fields.collect();
    let mut packages: Vec<PathBuf> = Vec::new();
    for dir in user.into_iter().chain(path).chain([platlib, purelib]) {
        if dir.is_absolute() && !of_itself(&dir) && !packages.contains(&dir) {
            packages.push(dir);
        }
    }
    let usable = prefix.is_absolute() && include.is_absolute() && !packages.is_empty();
    usable.then_some(Ok(Answer { version, prefix, packages, include }))
}

/// Whether a virtual environment sees the packages of the Python that it was made from.
fn shares_packages(prefix: &Path) -> bool {
    let text = std::fs::read_to_string(prefix.join("pyvenv.cfg")).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "include-system-site-packages").then(|| value.trim().eq_ignore_ascii_case("true"))
    });
    value.unwrap_or(false)
}
