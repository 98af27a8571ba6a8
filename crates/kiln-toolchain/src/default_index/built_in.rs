//! The index that an installed Python's pip has built in: asked once, then remembered.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use data_encoding::HEXLOWER;
use kiln_graph::Interrupt;
use sha2::{Digest, Sha256};

use crate::process::{self, NoAnswer};

/// Prints the address. pip has no command for it; the name has stood in this module since pip 10.
const SCRIPT: &str = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";

/// How long an interpreter may think: importing pip takes a second where the disk is slow.
const LIMIT: Duration = Duration::from_secs(60);

/// Asks `python` for the index that its pip has built in, without any setting of the user's.
///
/// # Errors
/// Why there is no answer, in a few words.
pub fn ask_pip(python: &Path) -> Result<String, String> {
    let shown = python.display();
    // `-I`: neither the user's site directory nor `PYTHON*` variables play a part.
    let asked = process::ask(Command::new(python).args(["-I", "-c", SCRIPT]), LIMIT, &Interrupt::new());
    let output = asked.map_err(|failure| match failure {
        NoAnswer::Io(cause) => format!("`{shown}` cannot be started: {cause}"),
        NoAnswer::TooLong(limit) => format!("`{shown}` does not answer within {} s", limit.as_secs()),
        NoAnswer::Interrupted => format!("`{shown}` was interrupted"),
    })?;
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !answer.is_empty() && !answer.contains(char::is_whitespace) {
        return Ok(answer);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    match said.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => Err(format!("`{shown}` says: {line}")),
        None => Err(format!("`{shown}` gives no answer")),
    }
}

/// Remembers the answers of [`ask_pip`] in the cache directory.
#[derive(Clone, Debug)]
pub struct BuiltInIndex {
    dir: PathBuf,
}

impl BuiltInIndex {
    /// Answers that are kept below `cache`.
    pub fn new(cache: &Path) -> Self {
        Self { dir: cache.join("pip-index-v1") }
    }

    /// The answer of `python`; `ask` is called if none is remembered or the interpreter's file has changed.
    ///
    /// # Errors
    /// What `ask` says. That an answer cannot be kept is no error: it is asked again the next time.
    pub fn get(&self, python: &Path, ask: &dyn Fn(&Path) -> Result<String, String>) -> Result<String, String> {
        let Some(place) = key(python).map(|key| self.dir.join(key)) else {
            return ask(python);
        };
        if let Ok(answer) = fs::read_to_string(&place)
            && !answer.trim().is_empty()
        {
            return Ok(answer.trim().to_owned());
        }
        let answer = ask(python)?;
        let kept = fs::create_dir_all(&self.dir).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
            writeln!(file, "{answer}")?;
            file.persist(&place).map_err(|cause| cause.error)
        });
        if let Err(cause) = kept {
            tracing::debug!(%cause, "the built-in index is not kept");
        }
        Ok(answer)
    }
}

/// A name for the interpreter that changes when its file does.
fn key(python: &Path) -> Option<String> {
    let stat = fs::metadata(python).ok()?;
    let text = format!(
        "{}\0{} {} {}.{:09} {}.{:09}",
        python.display(),
        stat.ino(),
        stat.size(),
        stat.mtime(),
        stat.mtime_nsec(),
        stat.ctime(),
        stat.ctime_nsec()
    );
    HEXLOWER.encode(&Sha256::digest(text)).get(..32).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_answer_is_asked_for_once_per_interpreter_file() {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("python3");
        fs::write(&python, "1").unwrap();
        let built_in = BuiltInIndex::new(&dir.path().join("cache"));
        let asked = Cell::new(0);
        let ask = |_: &Path| {
            asked.set(asked.get() + 1);
            Ok("https://example.org/simple".to_owned())
        };
        assert_eq!(built_in.get(&python, &ask).unwrap(), "https://example.org/simple");
        assert_eq!(built_in.get(&python, &ask).unwrap(), "https://example.org/simple");
        assert_eq!(asked.get(), 1);
        fs::write(&python, "another one").unwrap();
        built_in.get(&python, &ask).unwrap();
        assert_eq!(asked.get(), 2);
        assert_eq!(built_in.get(&python, &|_| Err("unused".to_owned())).unwrap(), "https://example.org/simple");
    }

    #[test]
    fn no_answer_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("python3");
        fs::write(&python, "1").unwrap();
        let built_in = BuiltInIndex::new(&dir.path().join("cache"));
        assert_eq!(built_in.get(&python, &|_| Err("no pip".to_owned())), Err("no pip".to_owned()));
        assert_eq!(built_in.get(&python, &|_| Ok("https://example.org".to_owned())), Ok("https://example.org".to_owned()));
    }

    #[test]
    fn an_interpreter_that_cannot_be_started_is_named() {
        let message = ask_pip(Path::new("/nonexistent/python3")).unwrap_err();
        assert_eq!(message, "`/nonexistent/python3` cannot be started: No such file or directory (os error 2)");
    }
}
