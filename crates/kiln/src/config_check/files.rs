//! Listed sources and include directories: there, inside the project, and of a kind that is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kiln_backend::{SourceKind, classify_source};
use kiln_format::build::Framework;
use kiln_format::{BackendName, Build, Diagnostic, ProjectPath, Spanned};

use crate::backends::unit_extensions;

/// Whether a file with this name is compiled by itself in a component of `backend` (`None`: the binding, which is plain C++). Other
/// listed files are inputs: headers.
pub fn is_translation_unit(name: &str, backend: Option<BackendName>) -> bool {
    let Some((_, extension)) = name.rsplit_once('.') else { return false };
    match extension {
        "c" | "c++" | "cc" | "cpp" | "cxx" => true,
        other => backend.is_some_and(|backend| unit_extensions(backend).contains(&other)),
    }
}

/// Whether a listed file of this name is an input of a component of `backend`: a translation unit or a header.
pub fn is_input(name: &str, backend: Option<BackendName>) -> bool {
    is_translation_unit(name, backend) || classify_source(name) == SourceKind::Header
}

pub(super) fn check(root: &Path, build: &Build) -> Vec<Diagnostic> {
    let Ok(resolved) = root.canonicalize() else {
        return vec![Diagnostic::error("missing-file", None, format!("the project directory `{}` cannot be read", root.display()))];
    };
    let mut checker = Checker { root: resolved, listings: BTreeMap::new(), own_registration: BTreeSet::new(), diagnostics: Vec::new() };
    checker.component(build, build.framework.src(), build.framework.include(), None);
    for kernel in &build.kernels {
        checker.component(build, &kernel.src, &kernel.include, Some(kernel.backend.value));
    }
    checker.diagnostics
}

struct Checker {
    /// The project, links resolved.
    root: PathBuf,
    /// Names in directories that were read, by directory relative to the project; none for what is no directory.
    listings: BTreeMap<String, Option<BTreeSet<String>>>,
    /// Directories whose own `registration.h` was reported.
    own_registration: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Checker {
    fn component(&mut self, build: &Build, src: &[Spanned<ProjectPath>], include: &[Spanned<ProjectPath>], backend: Option<BackendName>) {
        for source in src {
            if !self.exists(source) {
                continue;
            }
            if self.root.join(source.as_str()).is_dir() {
                self.diagnostics.push(
                    Diagnostic::error("not-a-file", source.span, format!("`{}` is a directory", source.value))
                        .with_hint("`src` lists files; directories for headers go to `include`".to_owned()),
                );
                continue;
            }
            if !self.root.join(source.as_str()).is_file() {
                // A pipe would keep a compiler waiting for ever.
                let message = format!("`{}` is neither a file nor a directory", source.value);
                self.diagnostics.push(Diagnostic::error("not-a-file", source.span, message));
                continue;
            }
            self.kind(source, backend);
            if matches!(build.framework, Framework::Torch(_)) {
                self.registration(source);
            }
        }
        for dir in include {
            if self.exists(dir) && !self.root.join(dir.as_str()).is_dir() {
                self.diagnostics.push(
                    Diagnostic::error("not-a-directory", dir.span, format!("`{}` is not a directory", dir.value))
                        .with_hint("`include` lists directories".to_owned()),
                );
            }
        }
    }

    /// Reports a listed path that is not there under exactly this name, or that a link leads out of the project.
    fn exists(&mut self, path: &Spanned<ProjectPath>) -> bool {
        let mut done = String::new();
        for part in path.as_str().split('/').filter(|part| !part.is_empty()) {
            let listing = self.listing(&done);
            if !listing.is_some_and(|names| names.contains(part)) {
                let near = listing.and_then(|names| names.iter().find(|name| is_near(name, part)));
                let hint = near.map(|near| {
                    let rest = path.as_str().get(joined(&done, part).len()..).unwrap_or_default();
                    format!("there is `{}`", joined(&done, near) + rest)
                });
                let message = format!("`{}` does not exist", path.value);
                self.diagnostics.push(Diagnostic::error("missing-file", path.span, message).with_hint(hint));
                return false;
            }
            done = joined(&done, part);
        }
        match self.root.join(path.as_str()).canonicalize() {
            Ok(resolved) if resolved.starts_with(&self.root) => true,
            Ok(_) => {
                let message = format!("`{}` is reached by a link that leaves the project", path.value);
                let hint = "copy the files into the project, or move build.toml up to a directory that holds them too".to_owned();
                self.diagnostics.push(Diagnostic::error("outside-project", path.span, message).with_hint(hint));
                false
            }
            Err(e) => {
                let message = format!("`{}` cannot be read: {e}", path.value);
                self.diagnostics.push(Diagnostic::error("missing-file", path.span, message));
                false
            }
        }
    }

    /// The names in a directory of the project. They are read instead of asked for, because file systems that ignore case would say
    /// yes to a name that others do not have.
    fn listing(&mut self, dir: &str) -> Option<&BTreeSet<String>> {
        let root = &self.root;
        let read = |dir: &str| Some(fs::read_dir(root.join(dir)).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect());
        self.listings.entry(dir.to_owned()).or_insert_with(|| read(dir)).as_ref()
    }

    fn kind(&mut self, source: &Spanned<ProjectPath>, backend: Option<BackendName>) {
        let name = source.file_name();
        if is_input(name, backend) {
            return;
        }
        let refused = |message: String, hint: String| Diagnostic::error("unknown-source", source.span, message).with_hint(hint);
        let lower = name.rsplit_once('.').map(|(stem, extension)| format!("{stem}.{}", extension.to_ascii_lowercase()));
        self.diagnostics.push(match (lower.filter(|lower| lower != name && is_input(lower, backend)), backend) {
            (Some(lower), _) => refused(
                format!("`{name}` is not compiled: compilers do not agree on what its extension means"),
                format!("rename it, to `{lower}` for example"),
            ),
            (None, Some(backend)) if is_unit_elsewhere(name) => {
                refused(format!("`{name}` is not compiled in a {backend} kernel"), "list it in a kernel of its backend".to_owned())
            }
            (None, None) if is_unit_elsewhere(name) => refused(
                format!("`{name}` is not compiled in the binding, which is C++"),
                "list it in a `[kernel.*]` of its backend".to_owned(),
            ),
            // Allowed: in the shared format a file is listed to be there when others are compiled.
            (None, _) => {
                let message = format!("`{name}` is neither a source nor a header: it is not compiled");
                Diagnostic::warning("unused-source", source.span, message)
            }
        });
    }

    fn registration(&mut self, source: &Spanned<ProjectPath>) {
        let dir = source.as_str().rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
        let has = self.listing(&dir).is_some_and(|names| names.contains("registration.h"));
        if has && self.own_registration.insert(dir.clone()) {
            let message = format!("`{}` is used in place of the generated header", joined(&dir, "registration.h"));
            let hint = "remove it unless it is meant to differ".to_owned();
            self.diagnostics.push(Diagnostic::warning("own-registration", source.span, message).with_hint(hint));
        }
    }
}

/// Whether some component compiles a file of this name.
fn is_unit_elsewhere(name: &str) -> bool {
    BackendName::ALL.into_iter().any(|backend| is_translation_unit(name, Some(backend)))
}

fn joined(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// Whether two names differ in case and in `-` for `_` only, or one has `.cc` or the like for the other's `.cpp`.
pub(super) fn is_near(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let (a, b) = (plain(a), plain(b));
    let stem = |name: &str| match name.rsplit_once('.') {
        Some((stem, extension)) if is_translation_unit(&format!("x.{extension}"), None) => stem.to_owned(),
        _ => name.to_owned(),
    };
    a == b || stem(&a) == stem(&b)
}

#[cfg(test)]
mod tests {
    use kiln_format::render;

    use super::super::testing::Project;

    const HEAD: &str = "[torch]\nsrc = [\"torch-ext/torch_binding.cpp\"]\n";

    fn rendered(project: &Project) -> String {
        render(&project.build.source, &super::check(project.root(), &project.build))
    }

    #[test]
    fn nothing_to_say() {
        let project = Project::new(
            &format!(
                "{HEAD}include = [\".\", \"cpu\"]\n[kernel.relu]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = [\"cpu/relu.cpp\", \"cpu/relu.h\"]\n"
            ),
            &["torch-ext/torch_binding.cpp", "cpu/relu.cpp", "cpu/relu.h"],
        );
        assert_eq!(rendered(&project), "");
    }

    /// Compilers wait for ever for what a pipe holds.
    #[test]
    fn pipes_are_no_sources() {
        let project = Project::new(HEAD, &["torch-ext/x.h"]);
        let pipe = project.root().join("torch-ext/torch_binding.cpp");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        insta::assert_snapshot!(rendered(&project), @r#"
        error[not-a-file]: `torch-ext/torch_binding.cpp` is neither a file nor a directory
          --> build.toml:8:8
          |
        8 | src = ["torch-ext/torch_binding.cpp"]
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
    }

    /// A directory is read once, not once for each file that is listed of it: that takes minutes for so many.
    #[test]
    fn long_lists_are_checked_in_seconds() {
        let names: Vec<String> = (0..20_000).map(|index| format!("a/{index}.h")).collect();
        let files: Vec<&str> = names.iter().map(String::as_str).collect();
        let project = Project::new(&format!("[torch]\nsrc = {names:?}\n"), &files);
        let started = std::time::Instant::now();
        assert_eq!(rendered(&project), "");
        let set = crate::project::source_set(project.root(), &project.build).unwrap();
        assert_eq!(set.files.keys().filter(|name| name.starts_with("a/")).count(), files.len());
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn missing_files_with_near_misses() {
        let project = Project::new(
            &format!(
                "{HEAD}include = [\"inc\", \"cpu/Relu.cpp\"]\n[kernel.relu]\nbackend = \"cpu\"\ndepends = [\"torch\"]\n\
                 src = [\"cpu/relu.cpp\", \"CPU/Relu.cpp\", \"cpu/relu.cc\", \"gone/x.cpp\", \"cpu\"]\n"
            ),
            &["torch-ext/torch-binding.cpp", "cpu/Relu.cpp"],
        );
        insta::assert_snapshot!(rendered(&project), @r#"
        error[missing-file]: `torch-ext/torch_binding.cpp` does not exist
          --> build.toml:8:8
          |
        8 | src = ["torch-ext/torch_binding.cpp"]
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: there is `torch-ext/torch-binding.cpp`

        error[missing-file]: `inc` does not exist
          --> build.toml:9:12
          |
        9 | include = ["inc", "cpu/Relu.cpp"]
          |            ^^^^^

        error[not-a-directory]: `cpu/Relu.cpp` is not a directory
          --> build.toml:9:19
          |
        9 | include = ["inc", "cpu/Relu.cpp"]
          |                   ^^^^^^^^^^^^^^
        hint: `include` lists directories

        error[missing-file]: `cpu/relu.cpp` does not exist
           --> build.toml:13:8
           |
        13 | src = ["cpu/relu.cpp", "CPU/Relu.cpp", "cpu/relu.cc", "gone/x.cpp", "cpu"]
           |        ^^^^^^^^^^^^^^
        hint: there is `cpu/Relu.cpp`

        error[missing-file]: `CPU/Relu.cpp` does not exist
           --> build.toml:13:24
           |
        13 | src = ["cpu/relu.cpp", "CPU/Relu.cpp", "cpu/relu.cc", "gone/x.cpp", "cpu"]
           |                        ^^^^^^^^^^^^^^
        hint: there is `cpu/Relu.cpp`

        error[missing-file]: `cpu/relu.cc` does not exist
           --> build.toml:13:40
           |
        13 | src = ["cpu/relu.cpp", "CPU/Relu.cpp", "cpu/relu.cc", "gone/x.cpp", "cpu"]
           |                                        ^^^^^^^^^^^^^
        hint: there is `cpu/Relu.cpp`

        error[missing-file]: `gone/x.cpp` does not exist
           --> build.toml:13:55
           |
        13 | src = ["cpu/relu.cpp", "CPU/Relu.cpp", "cpu/relu.cc", "gone/x.cpp", "cpu"]
           |                                                       ^^^^^^^^^^^^

        error[not-a-file]: `cpu` is a directory
           --> build.toml:13:69
           |
        13 | src = ["cpu/relu.cpp", "CPU/Relu.cpp", "cpu/relu.cc", "gone/x.cpp", "cpu"]
           |                                                                     ^^^^^
        hint: `src` lists files; directories for headers go to `include`
        "#);
    }

    #[test]
    fn links_out_of_the_project() {
        let outside = Project::new(HEAD, &["secret.cpp", "inc/x.h"]);
        let project = Project::new("[torch]\nsrc = [\"a.cpp\", \"inside.cpp\"]\ninclude = [\"inc\"]\n", &["b.cpp"]);
        std::os::unix::fs::symlink(outside.root().join("secret.cpp"), project.root().join("a.cpp")).unwrap();
        std::os::unix::fs::symlink(outside.root().join("inc"), project.root().join("inc")).unwrap();
        std::os::unix::fs::symlink("b.cpp", project.root().join("inside.cpp")).unwrap();
        insta::assert_snapshot!(rendered(&project), @r#"
        error[outside-project]: `a.cpp` is reached by a link that leaves the project
          --> build.toml:8:8
          |
        8 | src = ["a.cpp", "inside.cpp"]
          |        ^^^^^^^
        hint: copy the files into the project, or move build.toml up to a directory that holds them too

        error[outside-project]: `inc` is reached by a link that leaves the project
          --> build.toml:9:12
          |
        9 | include = ["inc"]
          |            ^^^^^
        hint: copy the files into the project, or move build.toml up to a directory that holds them too
        "#);
    }

    #[test]
    fn files_that_are_not_compiled_there() {
        let project = Project::new(
            "[torch]\nsrc = [\"b.cu\"]\n[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\", \"k.cu\", \"notes.txt\", \"Makefile\", \"K.CPP\"]\n\
             [kernel.g]\nbackend = \"cuda\"\ndepends = []\nsrc = [\"k.cu\", \"k.cuh\", \"x.inl\"]\n",
            &["b.cu", "k.cpp", "k.cu", "k.cuh", "x.inl", "notes.txt", "Makefile", "K.CPP"],
        );
        insta::assert_snapshot!(rendered(&project), @r#"
        error[unknown-source]: `b.cu` is not compiled in the binding, which is C++
          --> build.toml:8:8
          |
        8 | src = ["b.cu"]
          |        ^^^^^^
        hint: list it in a `[kernel.*]` of its backend

        error[unknown-source]: `k.cu` is not compiled in a cpu kernel
           --> build.toml:12:17
           |
        12 | src = ["k.cpp", "k.cu", "notes.txt", "Makefile", "K.CPP"]
           |                 ^^^^^^
        hint: list it in a kernel of its backend

        warning[unused-source]: `notes.txt` is neither a source nor a header: it is not compiled
           --> build.toml:12:25
           |
        12 | src = ["k.cpp", "k.cu", "notes.txt", "Makefile", "K.CPP"]
           |                         ^^^^^^^^^^^

        warning[unused-source]: `Makefile` is neither a source nor a header: it is not compiled
           --> build.toml:12:38
           |
        12 | src = ["k.cpp", "k.cu", "notes.txt", "Makefile", "K.CPP"]
           |                                      ^^^^^^^^^^

        error[unknown-source]: `K.CPP` is not compiled: compilers do not agree on what its extension means
           --> build.toml:12:50
           |
        12 | src = ["k.cpp", "k.cu", "notes.txt", "Makefile", "K.CPP"]
           |                                                  ^^^^^^^
        hint: rename it, to `K.cpp` for example
        "#);
    }

    #[test]
    fn own_registration_header_is_told_once() {
        let project = Project::new(
            "[torch]\nsrc = [\"torch-ext/a.cpp\", \"torch-ext/b.cpp\"]\n",
            &["torch-ext/a.cpp", "torch-ext/b.cpp", "torch-ext/registration.h"],
        );
        insta::assert_snapshot!(rendered(&project), @r#"
        warning[own-registration]: `torch-ext/registration.h` is used in place of the generated header
          --> build.toml:8:8
          |
        8 | src = ["torch-ext/a.cpp", "torch-ext/b.cpp"]
          |        ^^^^^^^^^^^^^^^^^
        hint: remove it unless it is meant to differ
        "#);
    }
}
