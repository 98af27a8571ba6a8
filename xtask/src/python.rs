//! The Python of this machine: found, judged, and told apart by what it can do.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::process;

/// The oldest Python that the `kernels` package runs on.
const OLDEST: (u32, u32) = (3, 10);

/// A Python that can make virtual environments.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    /// The interpreter.
    pub(crate) program: PathBuf,
    /// Major and minor version.
    pub(crate) version: (u32, u32),
    /// Whether `venv` and `ensurepip` are there.
    pub(crate) has_venv: bool,
    /// Whether its C headers are there.
    pub(crate) has_headers: bool,
}

impl Python {
    /// The first of `python3` and the versioned names that is new enough; one that has everything comes before others.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let names = std::iter::once("python3".to_owned()).chain((OLDEST.1..=14).rev().map(|minor| format!("python3.{minor}")));
        let found: Vec<Self> = names.filter_map(|name| Self::ask(&name).ok()).collect();
        Self::best(&found).cloned()
    }

    fn best(found: &[Self]) -> anyhow::Result<&Self> {
        let fit: Vec<&Self> = found.iter().filter(|python| python.version >= OLDEST).collect();
        let complete = fit.iter().find(|python| python.has_venv && python.has_headers);
        match (complete.or(fit.first()), found.first()) {
            (Some(python), _) => Ok(python),
            (None, Some(old)) => bail!(
                "`{}` is Python {}, but the `kernels` package needs {}.{} or newer: install the package `python3.{}`",
                old.program.display(),
                old.version_text(),
                OLDEST.0,
                OLDEST.1,
                OLDEST.1
            ),
            (None, None) => bail!("no Python: install the package `python3` ({}.{} or newer)", OLDEST.0, OLDEST.1),
        }
    }

    fn ask(name: &str) -> anyhow::Result<Self> {
        const QUESTION: &str = "\
import importlib.util as u, os, sys, sysconfig
print(sys.executable)
print(sys.version_info[0], sys.version_info[1])
print(all(u.find_spec(m) for m in ('venv', 'ensurepip')))
print(os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))";
        let text = process::output(Command::new(name).args(["-c", QUESTION]))?;
        let mut lines = text.lines();
        let mut next = || lines.next().context("python answered too little");
        let program = PathBuf::from(next()?);
        let (major, minor) = next()?.split_once(' ').context("python gave no version")?;
        let version = (major.parse()?, minor.parse()?);
        Ok(Self { program, version, has_venv: next()? == "True", has_headers: next()? == "True" })
    }

    /// The version as text, such as `3.11`.
    pub(crate) fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(minor: u32, has_venv: bool, has_headers: bool) -> Python {
        Python { program: format!("/bin/python3.{minor}").into(), version: (3, minor), has_venv, has_headers }
    }

    #[test]
    fn the_first_complete_one_is_taken() {
        let found = [python(9, true, true), python(13, true, false), python(11, true, true), python(12, true, true)];
        assert_eq!(Python::best(&found).unwrap().version, (3, 11));
        assert_eq!(Python::best(&found[..2]).unwrap().version, (3, 13));
    }

    #[test]
    fn what_to_install_is_said() {
        assert_eq!(Python::best(&[]).unwrap_err().to_string(), "no Python: install the package `python3` (3.10 or newer)");
        assert_eq!(
            Python::best(&[python(9, true, true)]).unwrap_err().to_string(),
            "`/bin/python3.9` is Python 3.9, but the `kernels` package needs 3.10 or newer: install the package `python3.10`"
        );
    }

    #[test]
    fn this_machine_has_one() {
        let python = Python::find().unwrap();
        assert!(python.version >= OLDEST && python.program.is_absolute());
    }
}
