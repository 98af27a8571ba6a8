//! What a unit includes: files of the project, and headers of torch.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_format::ProjectPath;

/// Headers that include most of torch.
const UMBRELLAS: [&str; 6] = ["ATen/ATen.h", "torch/all.h", "torch/extension.h", "torch/script.h", "torch/torch.h", "torch/types.h"];

/// An include of a header of torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TorchInclude {
    /// The header, as written.
    pub(super) header: String,
    /// The file of the project that has it, and its line.
    pub(super) file: String,
    pub(super) line: usize,
}

/// What a unit includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Includes {
    /// The unit and the headers of the project that it includes, at any depth, with their texts.
    pub(super) files: BTreeMap<String, String>,
    /// Headers of torch that these include, each once, in the order in which a compiler meets them. Conditions are not looked at.
    pub(super) torch: Vec<TorchInclude>,
}

impl Includes {
    /// Reads `source`, below `root`, and what it includes. `include_dirs` are below `root` too.
    pub(super) fn of(root: &Path, source: &str, include_dirs: &[&str], torch_dirs: &[PathBuf]) -> Self {
        let mut found = Self::default();
        found.read(root, source, include_dirs, torch_dirs);
        found
    }

    /// The umbrella headers among those of torch.
    pub(super) fn umbrellas(&self) -> impl Iterator<Item = &TorchInclude> {
        self.torch.iter().filter(|include| is_umbrella(&include.header))
    }

    fn read(&mut self, root: &Path, file: &str, include_dirs: &[&str], torch_dirs: &[PathBuf]) {
        if self.files.contains_key(file) {
            return;
        }
        let Ok(bytes) = fs::read(root.join(file)) else { return };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.files.insert(file.to_owned(), text.clone());
        let own = file.rsplit_once('/').map_or("", |(dir, _)| dir);
        for (index, line) in text.lines().enumerate() {
            let Some((header, quoted)) = include(line) else { continue };
            let dirs = [own].into_iter().filter(|_| quoted).chain(include_dirs.iter().copied());
            let paths = dirs.filter_map(|dir| ProjectPath::new(&format!("./{dir}/{header}")).ok());
            let inside = paths.map(|path| path.as_str().to_owned()).find(|path| root.join(path).is_file());
            match inside {
                Some(path) => self.read(root, &path, include_dirs, torch_dirs),
                None if self.torch.iter().any(|known| known.header == header) => {}
                None if torch_dirs.iter().any(|dir| dir.join(header).is_file()) => {
                    self.torch.push(TorchInclude { header: header.to_owned(), file: file.to_owned(), line: index + 1 });
                }
                None => {}
            }
        }
    }
}

/// Whether a header includes most of torch.
pub(super) fn is_umbrella(header: &str) -> bool {
    UMBRELLAS.contains(&header)
}

/// The header that a line includes, and whether it stands in quotes.
pub(crate) fn include(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    match rest.strip_prefix('<') {
        Some(rest) => Some((rest.split_once('>')?.0, false)),
        None => Some((rest.strip_prefix('"')?.split_once('"')?.0, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_include() {
        assert_eq!(include("#include <torch/all.h>"), Some(("torch/all.h", false)));
        assert_eq!(include("  # include \"a.h\" // why"), Some(("a.h", true)));
        for line in ["// #include <a>", "#include MACRO", "#included", "include <a>", "#include <a"] {
            assert_eq!(include(line), None, "{line}");
        }
    }

    #[test]
    fn headers_of_the_project_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("p/k/unit.cu", "#include \"own.h\"\n#include <shared.h>\n#include <torch/library.h>\n#include <vector>\n");
        write("p/k/own.h", "#pragma once\n#include \"own.h\"\n#include \"../k/own.h\"\n#include <torch/all.h>\n");
        write("p/inc/shared.h", "#include <torch/all.h>\n#include <c10/macros/Macros.h>\n");
        for header in ["torch/all.h", "torch/library.h", "c10/macros/Macros.h"] {
            write(&format!("t/{header}"), "");
        }
        let found = Includes::of(&dir.path().join("p"), "k/unit.cu", &["inc"], &[dir.path().join("t")]);
        assert_eq!(found.files.keys().collect::<Vec<_>>(), ["inc/shared.h", "k/own.h", "k/unit.cu"]);
        let torch: Vec<_> = found.torch.iter().map(|include| (include.header.as_str(), include.file.as_str(), include.line)).collect();
        assert_eq!(torch, [("torch/all.h", "k/own.h", 4), ("c10/macros/Macros.h", "inc/shared.h", 2), ("torch/library.h", "k/unit.cu", 3)]);
        assert_eq!(found.umbrellas().count(), 1);
    }
}
