//! Flags that no extension can be compiled with, that do nothing, or that make code for one machine only.

use std::path::Path;

use kiln_backend::{FlagFault, FlagList, audit_flags};
use kiln_format::{Build, Diagnostic, ProjectPath, Spanned};

use crate::backends::vendor;

pub(super) fn check(root: &Path, build: &Build) -> Vec<Diagnostic> {
    lists(build).into_iter().flat_map(|(list, flags)| of_list(root, list, flags)).collect()
}

/// The remarks on flags that compile for the machine that builds.
pub(crate) fn machine_flags(root: &Path, build: &Build) -> Vec<Diagnostic> {
    let mut found = check(root, build);
    found.retain(|diagnostic| diagnostic.code == "machine-flag");
    found
}

/// Every list of flags in the file, in its order within each table, with the compiler that reads it.
fn lists(build: &Build) -> Vec<(FlagList, &[Spanned<String>])> {
    let mut lists = vec![(FlagList::Host, build.framework.cxx_flags())];
    for kernel in &build.kernels {
        lists.push((FlagList::Host, &kernel.cxx_flags));
        let list = vendor(kernel.backend.value).map_or(FlagList::Host, |vendor| vendor.flag_list());
        lists.push((list, kernel.options.device_flags()));
    }
    lists
}

fn of_list(root: &Path, list: FlagList, flags: &[Spanned<String>]) -> Vec<Diagnostic> {
    let texts: Vec<&str> = flags.iter().map(|flag| flag.as_str()).collect();
    let remark = |(span, fault): (_, FlagFault)| match fault {
        FlagFault::Refused { message, hint } => Some(Diagnostic::error("refused-flag", span, message).with_hint(hint)),
        FlagFault::MachineBound { message, hint } => Some(Diagnostic::warning("machine-flag", span, message).with_hint(hint)),
        FlagFault::NoEffect { message, hint } => Some(Diagnostic::warning("unused-flag", span, message).with_hint(hint)),
        FlagFault::Reads { flag, path } => unreadable(root, &path).map(|why| {
            let hint = "write the path of a file of the project, from where `build.toml` is".to_owned();
            Diagnostic::error("refused-flag", span, format!("`{flag}` cannot read `{path}`: {why}")).with_hint(hint)
        }),
    };
    let placed = audit_flags(list, &texts).into_iter().filter_map(|found| Some((flags.get(found.at)?.span, found.fault)));
    placed.filter_map(remark).collect()
}

/// Why `path` is not a file of the project, which compilers would find before any other of its name.
fn unreadable(root: &Path, path: &str) -> Option<String> {
    let path = match ProjectPath::new(path) {
        Ok(path) => path,
        Err(error) => return Some(error.to_string()),
    };
    let resolved = root.join(path.as_str()).canonicalize().ok().filter(|resolved| resolved.is_file());
    match (resolved, root.canonicalize()) {
        (Some(file), Ok(root)) if file.starts_with(&root) => None,
        (Some(_), _) => Some("a link leads it out of the project".to_owned()),
        (None, _) => Some("the project has no such file".to_owned()),
    }
}

/// The project files that flags make compilers read before a source.
pub(crate) fn files_read_by_flags(build: &Build) -> Vec<String> {
    let mut files = Vec::new();
    for (list, flags) in lists(build) {
        let texts: Vec<&str> = flags.iter().map(|flag| flag.as_str()).collect();
        files.extend(audit_flags(list, &texts).into_iter().filter_map(|found| match found.fault {
            FlagFault::Reads { path, .. } => ProjectPath::new(&path).ok().map(|path| path.as_str().to_owned()),
            _ => None,
        }));
    }
    files
}

#[cfg(test)]
mod tests {
    use kiln_format::render;

    use super::super::testing::Project;

    fn messages(rest: &str, files: &[&str]) -> String {
        let project = Project::new(rest, files);
        render(&project.build.source, &super::check(project.root(), &project.build))
    }

    #[test]
    fn each_list_is_read_as_its_compiler_reads_it() {
        let kernel = |backend: &str, key: &str| {
            format!("[torch]\n[kernel.k]\nbackend = \"{backend}\"\ndepends = []\nsrc = []\n{key} = [\"-O2\", \"-ccbin\", \"x\"]\n")
        };
        assert!(messages(&kernel("cuda", "cuda-flags"), &[]).starts_with("error[refused-flag]: `-ccbin` cannot be used"));
        for (backend, key) in [("cpu", "cxx-flags"), ("rocm", "hip-flags"), ("xpu", "sycl-flags"), ("cann", "asc-flags")] {
            // To others it is no flag that they know, and `x` would be a file.
            let text = messages(&kernel(backend, key), &[]);
            assert!(text.starts_with("error[refused-flag]: `x` cannot be used"), "{text}");
        }
    }

    #[test]
    fn files_that_are_read_before_the_source() {
        let flags = "[torch]\ncxx-flags = [\"-include\", \"pre/a.h\", \"-include\", \"pre/none.h\", \"--include=/usr/include/stdio.h\", \"-imacros../x.h\"]\n";
        insta::assert_snapshot!(messages(flags, &["pre/a.h"]), @r#"
        error[refused-flag]: `-include` cannot read `pre/none.h`: the project has no such file
          --> build.toml:8:49
          |
        8 | cxx-flags = ["-include", "pre/a.h", "-include", "pre/none.h", "--include=/usr/include/stdio.h", "-imacros../x.h"]
          |                                                 ^^^^^^^^^^^^
        hint: write the path of a file of the project, from where `build.toml` is

        error[refused-flag]: `--include` cannot read `/usr/include/stdio.h`: `/usr/include/stdio.h` is an absolute path: paths are relative to the project
          --> build.toml:8:63
          |
        8 | cxx-flags = ["-include", "pre/a.h", "-include", "pre/none.h", "--include=/usr/include/stdio.h", "-imacros../x.h"]
          |                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write the path of a file of the project, from where `build.toml` is

        error[refused-flag]: `-imacros` cannot read `../x.h`: path `../x.h` leaves the project
          --> build.toml:8:97
          |
        8 | cxx-flags = ["-include", "pre/a.h", "-include", "pre/none.h", "--include=/usr/include/stdio.h", "-imacros../x.h"]
          |                                                                                                 ^^^^^^^^^^^^^^^^
        hint: write the path of a file of the project, from where `build.toml` is
        "#);
        let project = Project::new(flags, &[]);
        assert_eq!(super::files_read_by_flags(&project.build), ["pre/a.h", "pre/none.h"]);
    }
}
