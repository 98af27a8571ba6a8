//! Patterns in `src`: replaced by the files that they match when a project is opened.
//!
//! `*` stands for any text and `?` for one character of a name, `**` for any directories. A pattern behind `!` takes files, or whole
//! directories, out of what the patterns of its list match; files that are listed by name stay. What a pattern matches stands in its
//! place, sorted. Hidden names, linked directories and Kiln's own outputs match nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kiln_format::build::Framework;
use kiln_format::{Build, Diagnostic, ProjectPath, Spanned};

use crate::project::OWN;

/// Whether a path of `src` is no file's name: a pattern, or one that excludes.
pub fn is_pattern(path: &str) -> bool {
    path.starts_with('!') || path.contains(['*', '?'])
}

/// Replaces the patterns of every `src` in `build` by the files that they match below `root`.
pub fn expand(root: &Path, build: &mut Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let framework = match &mut build.framework {
        Framework::Torch(torch) => Some(&mut torch.src),
        Framework::TvmFfi(tvm_ffi) => Some(&mut tvm_ffi.src),
        Framework::TorchNoarch(_) => None,
    };
    for list in framework.into_iter().chain(build.kernels.iter_mut().map(|kernel| &mut kernel.src)) {
        if list.iter().any(|path| is_pattern(path.as_str())) {
            *list = expand_list(root, list, &mut diagnostics);
        }
    }
    diagnostics
}

fn expand_list(root: &Path, list: &[Spanned<ProjectPath>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Spanned<ProjectPath>> {
    let mut excludes: Vec<(Spanned<String>, bool)> = Vec::new();
    for path in list {
        let Some(pattern) = path.as_str().strip_prefix('!') else { continue };
        match ProjectPath::new(pattern) {
            Ok(pattern) => excludes.push((Spanned::new(pattern.as_str().to_owned(), path.span), false)),
            Err(error) => diagnostics.push(Diagnostic::error("invalid-path", path.span, error.to_string())),
        }
    }
    let by_name: BTreeSet<&str> = list.iter().map(|path| path.as_str()).filter(|path| !is_pattern(path)).collect();
    let mut seen: BTreeSet<String> = by_name.iter().map(|&name| name.to_owned()).collect();
    let mut files = Vec::new();
    for path in list {
        let pattern = path.as_str();
        if !is_pattern(pattern) {
            files.push(path.clone());
            continue;
        }
        diagnostics.push(
            Diagnostic::note("not-portable", path.span, "kernel-builder reads no patterns: it takes this one for the name of a file")
                .with_hint("list the files".to_owned()),
        );
        if pattern.starts_with('!') {
            continue;
        }
        let matched = matches(root, pattern);
        let mut left = 0;
        for name in &matched {
            // Every exclude is asked, so that each of them knows whether it has an effect.
            let mut excluded = false;
            for (_, used) in excludes.iter_mut().filter(|(exclude, _)| covers(exclude, name)) {
                *used |= !by_name.contains(name.as_str());
                excluded = true;
            }
            left += usize::from(!excluded);
            if !excluded && seen.insert(name.clone()) {
                files.extend(ProjectPath::new(name).ok().map(|file| Spanned::new(file, path.span)));
            }
        }
        if left == 0 {
            let message = match matched.is_empty() {
                true => format!("`{pattern}` matches no file"),
                false => format!("`{pattern}` matches only files that are excluded"),
            };
            diagnostics.push(Diagnostic::error("empty-pattern", path.span, message));
        }
    }
    for (exclude, _) in excludes.iter().filter(|(_, used)| !used) {
        let message = format!("`!{}` excludes nothing", exclude.value);
        diagnostics.push(Diagnostic::warning("unused-exclude", exclude.span, message).with_hint("remove it".to_owned()));
    }
    files
}

/// Whether a pattern that excludes means `path` or a directory above it.
fn covers(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let pattern: Vec<&str> = pattern.split('/').collect();
    (1..=parts.len()).any(|length| is_match(&pattern, parts.get(..length).unwrap_or_default()))
}

/// The files below `root` that `pattern` matches, sorted.
fn matches(root: &Path, pattern: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let fixed = parts.iter().take_while(|part| !part.contains(['*', '?'])).count().min(parts.len().saturating_sub(1));
    let (start, rest) = parts.split_at_checked(fixed).unwrap_or_default();
    let mut found = BTreeSet::new();
    walk(root, &start.join("/"), rest, &mut Vec::new(), &mut found);
    found
}

/// Looks in `dir`, a directory of the project, for what `pattern` matches; `below` are the names from where it counts.
fn walk(root: &Path, dir: &str, pattern: &[&str], below: &mut Vec<String>, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(root.join(dir)) else { return };
    let deep = pattern.contains(&"**");
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || OWN.contains(&path.as_str()) {
            continue;
        }
        below.push(name);
        if kind.is_dir() {
            if deep || below.len() < pattern.len() {
                walk(root, &path, pattern, below, found);
            }
        } else if (kind.is_file() || root.join(&path).is_file()) && is_match(pattern, &below.iter().map(String::as_str).collect::<Vec<_>>())
        {
            found.insert(path);
        }
        below.pop();
    }
}

/// Whether the parts of a pattern match the parts of a path.
fn is_match(pattern: &[&str], path: &[&str]) -> bool {
    // What the pattern's parts so far can have consumed: one row of the usual table, so that no pattern takes long.
    let mut row: Vec<bool> = std::iter::once(true).chain(path.iter().map(|_| false)).collect();
    for part in pattern {
        let mut next = vec![false; row.len()];
        for (at, reached) in next.iter_mut().enumerate() {
            *reached = if *part == "**" {
                row.iter().take(at + 1).any(|&before| before)
            } else {
                at > 0 && row.get(at - 1).copied().unwrap_or(false) && path.get(at - 1).is_some_and(|name| is_name_match(part, name))
            };
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

/// Whether one part of a pattern matches one name.
fn is_name_match(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut row: Vec<bool> = std::iter::once(true).chain(name.iter().map(|_| false)).collect();
    for c in pattern.chars() {
        let mut next = vec![false; row.len()];
        for (at, reached) in next.iter_mut().enumerate() {
            *reached = match c {
                '*' => row.iter().take(at + 1).any(|&before| before),
                c => at > 0 && row.get(at - 1).copied().unwrap_or(false) && (c == '?' || name.get(at - 1) == Some(&c)),
            };
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use kiln_format::render;
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "[general]\nname = \"ab\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cuda\"]\n[torch]\n[kernel.k]\nbackend = \"cuda\"\ndepends = []\n";

    /// The files that `src` means in a project with these files, and the remarks that are no notes.
    fn expanded(src: &str, files: &[&str]) -> (Vec<String>, String) {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut build = kiln_format::build::parse("build.toml", &format!("{HEAD}src = {src}\n")).build.unwrap();
        let mut diagnostics = expand(dir.path(), &mut build);
        diagnostics.retain(|diagnostic| diagnostic.level != kiln_format::Level::Note);
        (build.kernels[0].src.iter().map(|path| path.as_str().to_owned()).collect(), render(&build.source, &diagnostics))
    }

    const FILES: &[&str] = &[
        "cuda/b.cu",
        "cuda/a.cu",
        "cuda/deep/er/c.cu",
        "cuda/old/d.cu",
        "cuda/old/e/f.cu",
        "cuda/a.h",
        "cuda/.hidden.cu",
        "build/x.cu",
        ".git/y.cu",
        "top.cu",
    ];

    #[test]
    fn sorted_and_without_what_is_excluded() {
        let of = |src: &str| {
            let (files, said) = expanded(src, FILES);
            assert_eq!(said, "", "{src}");
            files
        };
        assert_eq!(of(r#"["cuda/**/*.cu", "!cuda/old/**"]"#), ["cuda/a.cu", "cuda/b.cu", "cuda/deep/er/c.cu"]);
        assert_eq!(of(r#"["cuda/**/*.cu", "!cuda/old"]"#), ["cuda/a.cu", "cuda/b.cu", "cuda/deep/er/c.cu"]);
        assert_eq!(of(r#"["cuda/*.cu"]"#), ["cuda/a.cu", "cuda/b.cu"]);
        assert_eq!(of(r#"["cuda/?.cu", "cuda/a.h"]"#), ["cuda/a.cu", "cuda/b.cu", "cuda/a.h"]);
        assert_eq!(of(r#"["*.cu"]"#), ["top.cu"]);
        assert_eq!(of(r#"["**/*.cu", "!**/old/**"]"#), ["cuda/a.cu", "cuda/b.cu", "cuda/deep/er/c.cu", "top.cu"]);
        assert_eq!(of(r#"["cuda/b.cu", "cuda/*.cu", "!cuda/a.cu"]"#), ["cuda/b.cu"], "once, and where it is named");
        assert_eq!(of(r#"["cuda/a.cu", "cuda/nothing.cu"]"#), ["cuda/a.cu", "cuda/nothing.cu"], "names are not looked up here");
    }

    #[test]
    fn patterns_without_effect() {
        let (files, said) = expanded(r#"["cuda/*.cpp", "cuda/a.*", "!cuda/a.cu", "!cuda/a.h", "!rocm/**", "!../x"]"#, FILES);
        assert_eq!(files, [""; 0]);
        insta::assert_snapshot!(said, @r#"
        error[invalid-path]: path `../x` leaves the project
           --> build.toml:11:73
           |
        11 | src = ["cuda/*.cpp", "cuda/a.*", "!cuda/a.cu", "!cuda/a.h", "!rocm/**", "!../x"]
           |                                                                         ^^^^^^^

        error[empty-pattern]: `cuda/*.cpp` matches no file
           --> build.toml:11:8
           |
        11 | src = ["cuda/*.cpp", "cuda/a.*", "!cuda/a.cu", "!cuda/a.h", "!rocm/**", "!../x"]
           |        ^^^^^^^^^^^^

        error[empty-pattern]: `cuda/a.*` matches only files that are excluded
           --> build.toml:11:22
           |
        11 | src = ["cuda/*.cpp", "cuda/a.*", "!cuda/a.cu", "!cuda/a.h", "!rocm/**", "!../x"]
           |                      ^^^^^^^^^^

        warning[unused-exclude]: `!rocm/**` excludes nothing
           --> build.toml:11:61
           |
        11 | src = ["cuda/*.cpp", "cuda/a.*", "!cuda/a.cu", "!cuda/a.h", "!rocm/**", "!../x"]
           |                                                             ^^^^^^^^^^
        hint: remove it
        "#);
    }

    #[test]
    fn a_note_for_those_who_need_the_other_builder() {
        let mut build = kiln_format::build::parse("build.toml", &format!("{HEAD}src = [\"*.cu\"]\n")).build.unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.cu"), "").unwrap();
        let diagnostics = expand(dir.path(), &mut build);
        assert_eq!(diagnostics.iter().map(|d| (d.code, d.level.as_str())).collect::<Vec<_>>(), [("not-portable", "note")]);
    }

    proptest! {
        #[test]
        fn names(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let (pattern_chars, name_chars): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(is_name_match(&pattern, &name), slow(&pattern_chars, &name_chars));
        }

        #[test]
        fn paths(pattern in "(a|\\*|\\*\\*|b)(/(a|\\*|\\*\\*|b)){0,4}", path in "[ab](/[ab]){0,4}") {
            let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
            prop_assert_eq!(is_match(&pattern, &path), slow_path(&pattern, &path));
        }
    }

    /// By the definition, however long it takes.
    fn slow(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            (['*', rest @ ..], name) => (0..=name.len()).any(|skip| slow(rest, &name[skip..])),
            (['?', rest @ ..], [_, name @ ..]) => slow(rest, name),
            ([c, rest @ ..], [d, name @ ..]) => c == d && slow(rest, name),
            (_, []) => false,
        }
    }

    fn slow_path(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], path) => path.is_empty(),
            (["**", rest @ ..], path) => (0..=path.len()).any(|skip| slow_path(rest, &path[skip..])),
            ([part, rest @ ..], [name, path @ ..]) => is_name_match(part, name) && slow_path(rest, path),
            (_, []) => false,
        }
    }
}
