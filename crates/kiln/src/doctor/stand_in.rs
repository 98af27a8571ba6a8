//! A kernel that stands in for a project: the smallest one that a backend compiles.

use std::fs;
use std::io;
use std::path::Path;

use kiln_format::BackendName;
use kiln_format::lock::Lock;

use crate::backends;
use crate::build::Checked;
use crate::build_error::BuildError;
use crate::project::ProjectError;

/// Its name.
pub(super) const NAME: &str = "doctor";

/// Writes the kernel of a backend below `scratch` and opens it.
///
/// # Errors
/// When it cannot be written.
pub(super) fn open(scratch: &Path, backend: BackendName, user_lock: &Lock) -> Result<Checked, BuildError> {
    let dir = scratch.join(backend.as_str());
    for (name, content) in files(backend) {
        write(&dir.join(name), &content).map_err(|source| ProjectError::Io { path: dir.join(name), source })?;
    }
    Checked::open(&dir, user_lock)
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, content)
}

fn files(backend: BackendName) -> Vec<(&'static str, String)> {
    let head = format!("[general]\nname = \"{NAME}\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = [\"{backend}\"]\n\n");
    let sources = backends::stand_in(backend);
    if sources.is_empty() {
        let package = ("torch-ext/doctor/__init__.py", String::new());
        return vec![("build.toml", format!("{head}[torch-noarch]\n")), package];
    }
    let kernel = format!("[kernel.unit]\nbackend = \"{backend}\"\ndepends = [\"torch\"]\nsrc = {sources:?}\n");
    let binding = "#include \"registration.h\"\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\n".to_owned();
    let mut files = vec![
        ("build.toml", format!("{head}[torch]\nsrc = [\"binding.cpp\"]\n\n{kernel}")),
        ("torch-ext/doctor/__init__.py", "from ._ops import ops\n".to_owned()),
        ("binding.cpp", binding),
    ];
    files.extend(sources.iter().map(|name| (*name, String::new())));
    files
}

#[cfg(test)]
mod tests {
    use kiln_format::Level;

    use super::*;

    #[test]
    fn every_backend_has_a_kernel_without_remarks() {
        let dir = tempfile::tempdir().unwrap();
        for backend in BackendName::ALL {
            let checked = open(dir.path(), backend, &Lock::default()).unwrap();
            let said = checked.project.render();
            assert_eq!((checked.project.count(Level::Error), checked.project.count(Level::Warning)), (0, 0), "{backend}: {said}");
        }
    }
}
