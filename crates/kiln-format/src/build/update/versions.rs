//! Versions as `kernel-builder` from 0.17 on reads them: exactly two numbers.

use super::ChangeKind;
use super::editor::Editor;
use crate::build::model::{Build, Framework, KernelOptions, StableAbi};
use crate::span::Spanned;
use crate::version::Version;

/// Rewrites every version of `build` that is not of the form `major.minor` and can be without losing anything.
pub(super) fn rewrite(editor: &mut Editor<'_>, build: &Build) {
    for (key, version) in versions(build) {
        let raw = build.source.slice(version.span);
        match literal(raw, &version.value) {
            Some(new) if new != raw => {
                editor.note(ChangeKind::Changed, key, format!("`{raw}` became `{new}`"));
                editor.replace(version.span, &new);
            }
            Some(_) => {}
            None => {
                editor.note(ChangeKind::Kept, key, format!("`{raw}` has three numbers, which kernel-builder from 0.17 on does not read"))
            }
        }
    }
}

/// Every version in a file, with its key.
fn versions(build: &Build) -> Vec<(String, &Spanned<Version>)> {
    let mut all: Vec<(String, &Spanned<Version>)> = Vec::new();
    let mut bounds = vec![("general.cuda.minver", &build.general.cuda_minver), ("general.cuda.maxver", &build.general.cuda_maxver)];
    if let Framework::Torch(torch) = &build.framework {
        bounds.extend([("torch.minver", &torch.minver), ("torch.maxver", &torch.maxver)]);
        match &torch.stable_abi {
            StableAbi::None => {}
            StableAbi::All(version) => all.push(("torch.stable-abi".to_owned(), version)),
            StableAbi::PerBackend(entries) => {
                all.extend(entries.iter().map(|(backend, version)| (format!("torch.stable-abi.{backend}"), version)));
            }
        }
    }
    all.extend(bounds.into_iter().filter_map(|(key, version)| version.as_ref().map(|version| (key.to_owned(), version))));
    for kernel in &build.kernels {
        if let KernelOptions::Cuda { minver: Some(version), .. } = &kernel.options {
            all.push((format!("kernel.{}.cuda-minver", kernel.name), version));
        }
    }
    all
}

/// The string `raw`, which holds `version`, with two numbers and in the same quotes; `None` when a third number would be lost.
pub(in crate::build) fn literal(raw: &str, version: &Version) -> Option<String> {
    if version.components().len() == 2 {
        return Some(raw.to_owned());
    }
    if version.components().iter().skip(2).any(|&component| component != 0) {
        return None;
    }
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| raw.starts_with(quotes)).unwrap_or("\"");
    Some(format!("{quotes}{}{quotes}", version.major_minor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        let of = |raw: &str, text: &str| literal(raw, &Version::parse(text).unwrap());
        for (raw, text, expected) in [
            ("\"12\"", "12", Some("\"12.0\"")),
            ("'13.0.0'", "13.0.0", Some("'13.0'")),
            ("\"\"\"12.8.0\"\"\"", "12.8.0", Some("\"\"\"12.8\"\"\"")),
            ("\" 2.9 \"", "2.9", Some("\" 2.9 \"")),
            ("\"12.8.1\"", "12.8.1", None),
        ] {
            assert_eq!(of(raw, text).as_deref(), expected, "{raw}");
        }
    }
}
