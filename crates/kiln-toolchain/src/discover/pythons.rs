//! The Pythons that somebody named or that are on `PATH`.

use std::path::{Path, PathBuf};

use super::find::{Origin, Passed};
use super::view::{View, real};

/// How a Python is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonLayout {
    /// A virtual environment.
    Venv,
    /// An environment of conda.
    Conda,
    /// Any other: the system's, one that was built, a version manager's.
    Plain,
}

impl PythonLayout {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Venv => "virtual environment",
            Self::Conda => "conda environment",
            Self::Plain => "installation",
        }
    }
}

/// A Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonCandidate {
    /// The interpreter, as it was named or found.
    pub python: PathBuf,
    /// What led to it.
    pub origin: Origin,
    /// How it is installed.
    pub layout: PythonLayout,
}

/// The Pythons, in the order in which they count: the command line's, that of `VIRTUAL_ENV`, that of `CONDA_PREFIX`, then `python3`
/// and `python` on `PATH`. Each once. The second list is what was named and is none.
pub fn pythons(view: &View<'_>, named: Option<(&str, &Path)>) -> (Vec<PythonCandidate>, Vec<Passed>) {
    let (mut found, mut passed) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    let mut add = |python: PathBuf, origin: Origin| {
        // A virtual environment's interpreter is a link to that of another installation: its directory counts too.
        let key = (real(python.parent().unwrap_or(Path::new("/"))), real(&python));
        if !seen.contains(&key) {
            seen.push(key);
            let layout = layout(&python);
            found.push(PythonCandidate { python, origin, layout });
        }
    };
    if let Some((option, python)) = named {
        let origin = Origin::Option(option.to_owned());
        let path = if python.components().count() > 1 { Some(python.to_owned()) } else { view.on_path(&python.to_string_lossy()) };
        match path.filter(|path| path.is_file()) {
            Some(path) => add(path, origin),
            None => passed.push(Passed { origin, value: python.display().to_string(), reason: "does not exist".to_owned() }),
        }
    }
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(value) = view.variable(variable) else { continue };
        let inside = ["bin/python", "bin/python3"].iter().map(|name| Path::new(value).join(name)).find(|path| path.is_file());
        match inside {
            Some(python) => add(python, Origin::Variable(variable)),
            None => {
                let reason = if Path::new(value).is_dir() { "has no `bin/python`" } else { "does not exist" };
                passed.push(Passed { origin: Origin::Variable(variable), value: value.to_owned(), reason: reason.to_owned() });
            }
        }
    }
    for name in ["python3", "python"] {
        if let Some(python) = view.on_path(name) {
            add(python, Origin::Path(name));
        }
    }
    (found, passed)
}

fn layout(python: &Path) -> PythonLayout {
    let prefix = python.parent().and_then(Path::parent);
    let has = |name: &str| prefix.is_some_and(|prefix| prefix.join(name).exists());
    if has("pyvenv.cfg") {
        PythonLayout::Venv
    } else if has("conda-meta") {
        PythonLayout::Conda
    } else {
        PythonLayout::Plain
    }
}
