//! The Python package of the project: where loaders expect it, and without names that are generated.

use std::fs;
use std::path::Path;

use kiln_format::{Build, Diagnostic};

use super::files::is_near;
use crate::build_error::causes;
use crate::shipped::{ShippedError, shipped_files};
use crate::{ops_py, package};

pub(super) fn check(root: &Path, build: &Build) -> Vec<Diagnostic> {
    // The package's name follows from the kernel's, so that is where every remark points.
    let at = build.general.name.span;
    let (ext, name) = (build.ext_dir(), build.python_name());
    let package = format!("{ext}/{name}");
    let error = |message: String| Diagnostic::error("layout", at, message);

    if !root.join(ext).is_dir() {
        let near = names(root).into_iter().find(|n| n != ext && squeezed(n) == squeezed(ext) && root.join(n).is_dir());
        let hint = near.map(|near| format!("rename `{near}` to `{ext}`"));
        return vec![
            error(format!("the directory `{ext}` does not exist"))
                .with_note(format!("it holds the Python package `{name}`"))
                .with_hint(hint),
        ];
    }
    if !root.join(&package).is_dir() {
        let alike = |n: &str| is_near(n, &name) || squeezed(n) == squeezed(&name);
        let near = names(&root.join(ext)).into_iter().find(|n| *n != name && alike(n) && root.join(ext).join(n).is_dir());
        let hint = near.map(|near| format!("rename `{ext}/{near}` to `{package}`"));
        let note = format!("kernel `{}` is the Python package `{name}`", build.general.name.value);
        return vec![error(format!("the Python package `{package}` does not exist")).with_note(note).with_hint(hint)];
    }
    let mut diagnostics = Vec::new();
    let has = |file: &str| root.join(&package).join(file).exists();
    if !has("__init__.py") {
        let near = names(&root.join(&package)).into_iter().find(|n| n.ends_with(".py") && squeezed(n) == squeezed("__init__.py"));
        let hint = match near {
            Some(near) => format!("rename `{package}/{near}` to `{package}/__init__.py`"),
            None => "make it: it is what `import` runs, and it may be empty".to_owned(),
        };
        diagnostics.push(error(format!("`{package}/__init__.py` does not exist")).with_hint(hint));
    }
    if has(&name) {
        let hint = format!("move its files to `{package}`, or give it another name");
        diagnostics.push(error(format!("`{package}/{name}` would be imported in place of the kernel by older loaders")).with_hint(hint));
    }
    if has(package::METADATA) {
        diagnostics.push(error(format!("`{package}/{}` has the name of a generated file", package::METADATA)));
    }
    if has(ops_py::FILE_NAME) {
        let message = format!("`{package}/{}` is not shipped: the generated one takes its place", ops_py::FILE_NAME);
        diagnostics.push(Diagnostic::note("layout", at, message));
    }
    if let Err(fault) = shipped_files(root, &package, &build.shipped_extensions()) {
        // What is generated has been reported above.
        if !matches!(fault, ShippedError::Reserved { .. }) || diagnostics.is_empty() {
            let causes = causes(&fault);
            let cause = causes.first().map(String::as_str);
            let error = Diagnostic::error("package", at, fault.to_string()).with_hint(fault.hint().map(str::to_owned));
            diagnostics.push(cause.iter().fold(error, |error, cause| error.with_note((*cause).to_owned())));
        }
    }
    diagnostics
}

/// The UTF-8 names in a directory, sorted; none when it cannot be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A name without what is easily mistyped.
fn squeezed(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect()
}

#[cfg(test)]
mod tests {
    use kiln_format::render;

    use super::super::testing::Project;

    fn messages(files: &[&str]) -> String {
        let project = Project::new("[torch]\n", files);
        render(&project.build.source, &super::check(project.root(), &project.build))
    }

    #[test]
    fn nothing_to_say() {
        assert_eq!(messages(&["torch-ext/my_relu/__init__.py", "torch-ext/my_relu/layers/metadata.json"]), "");
    }

    #[test]
    fn no_ext_directory() {
        insta::assert_snapshot!(messages(&["torch_ext/my_relu/__init__.py"]), @r#"
        error[layout]: the directory `torch-ext` does not exist
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^
          = it holds the Python package `my_relu`
        hint: rename `torch_ext` to `torch-ext`
        "#);
        assert!(!messages(&["x"]).contains("hint"));
    }

    #[test]
    fn package_with_dashes() {
        insta::assert_snapshot!(messages(&["torch-ext/my-relu/__init__.py", "torch-ext/other/__init__.py"]), @r#"
        error[layout]: the Python package `torch-ext/my_relu` does not exist
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^
          = kernel `my-relu` is the Python package `my_relu`
        hint: rename `torch-ext/my-relu` to `torch-ext/my_relu`
        "#);
        assert!(!messages(&["torch-ext/other/__init__.py"]).contains("hint"));
    }

    #[test]
    fn inside_the_package() {
        insta::assert_snapshot!(
            messages(&["torch-ext/my_relu/_init_.py", "torch-ext/my_relu/my_relu/x.py", "torch-ext/my_relu/metadata.json", "torch-ext/my_relu/_ops.py"]),
            @r#"
        error[layout]: `torch-ext/my_relu/__init__.py` does not exist
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^
        hint: rename `torch-ext/my_relu/_init_.py` to `torch-ext/my_relu/__init__.py`

        error[layout]: `torch-ext/my_relu/my_relu` would be imported in place of the kernel by older loaders
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^
        hint: move its files to `torch-ext/my_relu`, or give it another name

        error[layout]: `torch-ext/my_relu/metadata.json` has the name of a generated file
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^

        note[layout]: `torch-ext/my_relu/_ops.py` is not shipped: the generated one takes its place
          --> build.toml:2:8
          |
        2 | name = "my-relu"
          |        ^^^^^^^^^
        "#
        );
    }
}
