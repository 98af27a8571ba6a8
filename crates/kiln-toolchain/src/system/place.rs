//! Where in a Python's directories the parts of torch are.

use std::path::{Path, PathBuf};

use super::ask::Answer;
use crate::toolchain::torch_libraries;

/// The parts of an installed torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TorchPlace {
    /// The package: `site-packages/torch`, or that of a source tree.
    pub(super) package: PathBuf,
    /// The directory that has the records of what is installed.
    pub(super) site: PathBuf,
}

/// Torch's headers: a directory, and the include directories below it.
pub(super) type Headers = (PathBuf, [&'static str; 2]);

/// The first torch of a Python.
pub(super) fn find(answer: &Answer) -> Option<TorchPlace> {
    answer.packages.iter().find_map(|site| {
        let package = Some(site.join("torch")).filter(|package| package.join("version.py").is_file());
        Some(TorchPlace { package: package.or_else(|| editable(site))?, site: site.clone() })
    })
}

/// The torch of a source tree that is installed in place. Setuptools leaves a module that maps names to directories; it is read as
/// text.
fn editable(site: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(site).ok()?.flatten();
    let is_finder = |name: &str| name.starts_with("__editable___torch_") && name.ends_with("_finder.py");
    let mut finders: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_finder)).map(|entry| entry.path()).collect();
    finders.sort();
    finders.iter().find_map(|finder| {
        let text = std::fs::read_to_string(finder).ok()?;
        let mapping = text.lines().find(|line| line.starts_with("MAPPING"))?;
        let package = ["'torch': '", "\"torch\": \""].iter().find_map(|key| {
            let rest = mapping.split_once(key)?.1;
            rest.split(['\'', '"']).next().map(PathBuf::from)
        })?;
        (package.is_absolute() && package.join("version.py").is_file()).then_some(package)
    })
}

impl TorchPlace {
    /// The headers: in the package, or, as conda packages them, with those of everything else.
    pub(super) fn headers(&self, answer: &Answer) -> Result<Headers, String> {
        let in_package = ["torch/include", "torch/include/torch/csrc/api/include"];
        let in_prefix = ["include", "include/torch/csrc/api/include"];
        let named_torch = self.package.file_name().is_some_and(|name| name == "torch");
        if let Some(parent) = self.package.parent().filter(|_| named_torch)
            && in_package.iter().all(|dir| parent.join(dir).is_dir())
        {
            return Ok((parent.to_owned(), in_package));
        }
        if in_prefix.iter().all(|dir| answer.prefix.join(dir).is_dir()) {
            return Ok((answer.prefix.clone(), in_prefix));
        }
        let missing = if self.package.join("include").is_dir() { in_package[1] } else { in_package[0] };
        Err(format!("it has no `{missing}`"))
    }

    /// The directory of the libraries: in the package, or, as conda packages them, with those of everything else.
    pub(super) fn libraries(&self, answer: &Answer) -> Result<PathBuf, String> {
        let dirs = [self.package.join("lib"), answer.prefix.join("lib")];
        let found = dirs.into_iter().find(|dir| torch_libraries(std::env::consts::OS).iter().any(|name| dir.join(name).is_file()));
        found.ok_or_else(|| format!("`torch/lib` has none of {}", torch_libraries(std::env::consts::OS).join(", ")))
    }
}
