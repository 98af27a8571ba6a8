//! The headers of the names that a unit uses.
//!
//! What is found is a proposal: it is advice only when the unit compiles with it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::includes::{include, is_umbrella};

/// Names of `at::` and `c10::`, which `torch::` has too, and the header of each.
const NAMES: &[(&str, &str)] = &[
    ("Tensor", "ATen/core/Tensor.h"),
    ("TensorOptions", "c10/core/TensorOptions.h"),
    ("ScalarType", "c10/core/ScalarType.h"),
    ("MemoryFormat", "c10/core/MemoryFormat.h"),
    ("Device", "c10/core/Device.h"),
    ("DeviceType", "c10/core/DeviceType.h"),
    ("DeviceGuard", "ATen/DeviceGuard.h"),
    ("device_of", "ATen/DeviceGuard.h"),
    ("IntArrayRef", "c10/util/ArrayRef.h"),
    ("ArrayRef", "c10/util/ArrayRef.h"),
    ("Half", "c10/util/Half.h"),
    ("BFloat16", "c10/util/BFloat16.h"),
    ("kCPU", "c10/core/DeviceType.h"),
    ("kCUDA", "c10/core/DeviceType.h"),
    ("kByte", "c10/core/ScalarType.h"),
    ("kChar", "c10/core/ScalarType.h"),
    ("kShort", "c10/core/ScalarType.h"),
    ("kInt", "c10/core/ScalarType.h"),
    ("kLong", "c10/core/ScalarType.h"),
    ("kHalf", "c10/core/ScalarType.h"),
    ("kFloat", "c10/core/ScalarType.h"),
    ("kDouble", "c10/core/ScalarType.h"),
    ("kBool", "c10/core/ScalarType.h"),
    ("kBFloat16", "c10/core/ScalarType.h"),
];

/// Beginnings of macros, and the header of each.
const MACROS: &[(&str, &str)] = &[
    ("TORCH_CHECK", "c10/util/Exception.h"),
    ("TORCH_INTERNAL_ASSERT", "c10/util/Exception.h"),
    ("TORCH_WARN", "c10/util/Exception.h"),
    ("TORCH_LIBRARY", "torch/library.h"),
    ("AT_DISPATCH_", "ATen/Dispatch.h"),
    ("C10_CUDA_", "c10/cuda/CUDAException.h"),
    ("AT_CUDA_CHECK", "c10/cuda/CUDAException.h"),
];

/// Where the functions of torch have their headers.
const OPS: &str = "ATen/ops";

/// What may stand in the place of umbrella headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    /// The headers, sorted.
    pub(super) headers: Vec<String>,
    /// Whether names of `torch::` have to be written with `at::`.
    pub(super) renames: bool,
}

impl Replacement {
    /// `text` with the headers in the place of each umbrella header. Lines keep their numbers.
    pub(super) fn apply(&self, text: &str) -> String {
        let all: String = self.headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        let mut changed = String::new();
        for (index, line) in text.lines().enumerate() {
            match include(line) {
                Some((header, _)) if is_umbrella(header) => changed.push_str(&format!("{all}#line {}\n", index + 2)),
                _ if self.renames => changed.push_str(&format!("{}\n", renamed(line))),
                _ => changed.push_str(&format!("{line}\n")),
            }
        }
        changed
    }
}

/// The headers of the names that `texts` use, if all that they use of `torch::` has another name too.
pub(super) fn narrow(texts: &[&str], torch_dirs: &[PathBuf]) -> Option<Replacement> {
    let mut headers = BTreeSet::from(["ATen/core/Tensor.h".to_owned()]);
    let mut renames = false;
    for text in texts {
        let mut words = words(text).peekable();
        while let Some(word) = words.next() {
            if let Some((_, header)) = MACROS.iter().find(|(start, _)| word.starts_with(start)) {
                headers.insert((*header).to_owned());
            }
            if !matches!(word, "at" | "c10" | "torch") || words.peek() != Some(&"::") {
                continue;
            }
            words.next();
            let Some(name) = words.peek().copied() else { continue };
            let header = header_of(name, torch_dirs);
            if word == "torch" {
                match (&header, name) {
                    (Some(_), _) => renames = true,
                    (None, "Library") => {}
                    // Only an umbrella header has it.
                    (None, _) => return None,
                }
            }
            headers.extend(header);
        }
    }
    Some(Replacement { headers: headers.into_iter().collect(), renames })
}

/// `torch/types.h`, which has the names of `torch::`, and what it does not include of what macros need.
pub(super) fn types(texts: &[&str], umbrella: &str) -> Option<Replacement> {
    let mut headers = BTreeSet::from(["torch/types.h".to_owned()]);
    let macros = texts.iter().flat_map(|text| words(text)).flat_map(|word| MACROS.iter().filter(move |(start, _)| word.starts_with(start)));
    headers.extend(macros.map(|(_, header)| (*header).to_owned()));
    (umbrella != "torch/types.h").then(|| Replacement { headers: headers.into_iter().collect(), renames: false })
}

/// The header of a name of `at::` or `c10::`.
fn header_of(name: &str, torch_dirs: &[PathBuf]) -> Option<String> {
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, header)| (*header).to_owned());
    let of_function = || {
        let header = format!("{OPS}/{name}.h");
        torch_dirs.iter().any(|dir| dir.join(&header).is_file()).then_some(header)
    };
    known.or_else(of_function)
}

/// A line with `at::` for `torch::`, but for the names that only that has.
fn renamed(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("torch::") {
        let (before, found) = rest.split_at(at);
        let after = found.strip_prefix("torch::").unwrap_or_default();
        let is_whole = !before.ends_with(|letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':'));
        text.push_str(before);
        text.push_str(if is_whole && !after.starts_with("Library") { "at::" } else { "torch::" });
        rest = after;
    }
    text + rest
}

/// The words of a text and the `::` between them; comments and strings are none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(inside) = rest.strip_prefix("/*") {
                rest = inside.split_once("*/").map_or("", |(_, rest)| rest);
            } else if let Some(behind) = rest.strip_prefix("::") {
                rest = behind;
                return Some("::");
            } else if let Some(inside) = rest.strip_prefix('"') {
                rest = end_of_string(inside);
            } else if first.is_ascii_alphanumeric() || first == '_' {
                let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                rest = behind;
                return Some(word);
            } else {
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    })
}

/// What follows a string whose first quote is gone.
fn end_of_string(inside: &str) -> &str {
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' | '\n' => return inside.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn headers_are_those_of_the_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(OPS)).unwrap();
        fs::write(dir.path().join(OPS).join("empty_like.h"), "").unwrap();
        let dirs = [dir.path().to_owned()];
        let text = "torch::Tensor f(const torch::Tensor &x) { // at::kCUDA\n  TORCH_CHECK(x.dim() == 1, \"at::Half \\\"\");\n  return torch::empty_like(x); }\n";
        let found = narrow(&[text], &dirs).unwrap();
        assert_eq!(found.headers, ["ATen/core/Tensor.h", "ATen/ops/empty_like.h", "c10/util/Exception.h"]);
        assert!(found.renames);
        assert_eq!(narrow(&["torch::autograd::Node *n;"], &dirs), None);
        let library = narrow(&["TORCH_LIBRARY_IMPL(a, CUDA, m) {} void f(torch::Library &m, at::Tensor);"], &dirs).unwrap();
        assert_eq!((library.headers, library.renames), (vec!["ATen/core/Tensor.h".to_owned(), "torch/library.h".to_owned()], false));
        assert_eq!(types(&[text], "torch/all.h").unwrap().headers, ["c10/util/Exception.h", "torch/types.h"]);
        assert_eq!(types(&[text], "torch/types.h"), None);
    }

    #[test]
    fn a_replacement_stands_in_the_place_of_umbrellas() {
        let replacement = Replacement { headers: vec!["a.h".to_owned(), "b.h".to_owned()], renames: true };
        let text = "#include <torch/all.h>\n#include <torch/library.h>\nusing torch::Tensor; mytorch::x; torch::Library l;\n";
        let expected =
            "#include <a.h>\n#include <b.h>\n#line 2\n#include <torch/library.h>\nusing at::Tensor; mytorch::x; torch::Library l;\n";
        assert_eq!(replacement.apply(text), expected);
    }
}
