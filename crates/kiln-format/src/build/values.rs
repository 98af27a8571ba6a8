//! Reading the value types that every edition shares: versions, paths, backends, dependencies, architectures.

use std::fmt::Display;
use std::str::FromStr;

use super::reader::{Entry, Reader, Table, Wanted};
use crate::backend::BackendName;
use crate::code;
use crate::dependency::{Dependency, RepoId};
use crate::diagnostic::Diagnostic;
use crate::git_url::GitUrl;
use crate::name::KernelName;
use crate::project_path::{ProjectPath, ProjectPathError};
use crate::python_registry::{PACKAGES, PythonDependency};
use crate::span::Spanned;
use crate::suggest::{list, nearest, quoted, toml_string};
use crate::version::Version;

/// A kernel name.
pub(super) fn kernel_name<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Spanned<KernelName>> {
    reader.string(entry, Wanted::String, |reader, text| match KernelName::new(&text) {
        Ok(name) => Some(Spanned::new(name, text.span)),
        Err(error) => {
            let hint = KernelName::corrected(&text).map(|name| is_meant(name.as_str()));
            reader.push(Diagnostic::error(code::INVALID_NAME, text.span, error.to_string()).with_hint(hint));
            None
        }
    })
}

/// A repository's address.
pub(super) fn git_url<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Spanned<GitUrl>> {
    reader.string(entry, Wanted::String, |reader, text| match GitUrl::new(&text) {
        Ok(url) => {
            if url.is_mistaken_for_a_url() {
                let message =
                    format!("`{}`: loaders take {} for a URL of an unknown scheme and refuse the kernel", entry.key, quoted(&text));
                let forms = [format!("git@{}", url.as_str()), url.to_url()].map(|form| format!("`{}`", toml_string(&form)));
                let hint = format!("write {}", forms.join(" or "));
                reader.push(Diagnostic::warning(code::NOT_LOADABLE, text.span, message).with_hint(hint));
            }
            Some(Spanned::new(url, text.span))
        }
        Err(error) => {
            let note = format!("known schemes: {}; or `host:path`", list(GitUrl::SCHEMES));
            reader.push(Diagnostic::error(code::INVALID_URL, text.span, format!("`{}`: {error}", entry.key)).with_note(note));
            None
        }
    })
}

/// A repository id.
pub(super) fn repo_id<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Spanned<RepoId>> {
    reader.string(entry, Wanted::String, |reader, text| match text.parse() {
        Ok(id) => Some(Spanned::new(id, text.span)),
        Err(_) => {
            let message = format!("`{}` must be `owner/name`, found {}", entry.key, quoted(&text));
            reader.push(Diagnostic::error(code::INVALID_REPO_ID, text.span, message));
            None
        }
    })
}

/// A version; notes when `kernel-builder` would not read it.
pub(super) fn version<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Spanned<Version>> {
    reader.string(entry, Wanted::Version, version_text)
}

/// A version whose text is at hand.
pub(super) fn version_text(reader: &mut Reader<'_>, text: Spanned<&str>) -> Option<Spanned<Version>> {
    match Version::parse(&text) {
        Ok(version) => {
            if version.components().len() != 2 {
                let message =
                    format!("version `{version}` is not readable by kernel-builder from 0.17 on, which wants exactly two numbers");
                let surplus = version.components().iter().skip(2).any(|&component| component != 0);
                let hint = (!surplus).then(|| format!("write `\"{}\"`", version.major_minor()));
                reader.push(Diagnostic::note(code::NOT_PORTABLE, text.span, message).with_hint(hint));
            }
            Some(Spanned::new(version, text.span))
        }
        Err(error) => {
            reader.push(Diagnostic::error(code::INVALID_VERSION, text.span, error.to_string()));
            None
        }
    }
}

/// Says when the range between two bounds is empty.
pub(super) fn bounds(reader: &mut Reader<'_>, minver: Option<&Spanned<Version>>, maxver: Option<&Spanned<Version>>) {
    if let (Some(minver), Some(maxver)) = (minver, maxver)
        && minver.value > maxver.value
    {
        let message = format!("`minver` {minver} is above `maxver` {maxver}");
        reader.push(Diagnostic::error(code::EMPTY_RANGE, minver.span, message));
    }
}

/// A list of paths; empty when the key is absent.
pub(super) fn paths<'a>(reader: &mut Reader<'a>, table: &Table<'a>, key: &str, example: &'static str) -> Vec<Spanned<ProjectPath>> {
    table.get(key).and_then(|entry| path_list(reader, entry, example)).unwrap_or_default()
}

/// A list of paths.
pub(super) fn path_list<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>, example: &'static str) -> Option<Vec<Spanned<ProjectPath>>> {
    reader.list(entry, example, |reader, text| match ProjectPath::new(&text) {
        Ok(path) => Some(path),
        Err(error) => {
            let other = text.replace('\\', "/");
            let is_path = matches!(error, ProjectPathError::Backslash(_)) && ProjectPath::new(&other).is_ok();
            let hint = is_path.then(|| format!("write `{}`", toml_string(&other)));
            reader.push(Diagnostic::error(code::INVALID_PATH, text.span, error.to_string()).with_hint(hint));
            None
        }
    })
}

/// A list of strings that are taken as they are; empty when the key is absent.
pub(super) fn flags<'a>(reader: &mut Reader<'a>, table: &Table<'a>, key: &str) -> Vec<Spanned<String>> {
    table.get(key).and_then(|entry| reader.list(entry, "-O3", |_, text| Some(text.value.to_owned()))).unwrap_or_default()
}

/// The extensions of shipped files.
pub(super) fn extensions<'a>(reader: &mut Reader<'a>, table: &Table<'a>) -> Option<Vec<Spanned<String>>> {
    reader.list(table.get("pyext")?, "py", |reader, text| {
        let extension = text.trim_start_matches('.');
        if extension.is_empty() || extension.contains(['/', '\\']) || extension.contains(char::is_control) {
            let message = format!("{} is no extension of a file", quoted(&text));
            reader.push(Diagnostic::error(code::INVALID_VALUE, text.span, message));
            return None;
        }
        if extension.len() != text.len() {
            let message = format!("extension {} is written with a dot, which is ignored", quoted(&text));
            reader
                .push(Diagnostic::warning(code::LEADING_DOT, text.span, message).with_hint(format!("write `{}`", toml_string(extension))));
        }
        Some(extension.to_owned())
    })
}

/// A list of architectures of one kind.
pub(super) fn archs<'a, T: FromStr<Err: Display>>(
    reader: &mut Reader<'a>,
    entry: &Entry<'a>,
    example: &'static str,
) -> Option<Vec<Spanned<T>>> {
    reader.list(entry, example, |reader, text| match text.parse::<T>() {
        Ok(arch) => Some(arch),
        Err(error) => {
            reader.push(Diagnostic::error(code::INVALID_ARCH, text.span, error.to_string()));
            None
        }
    })
}

/// The name of a backend.
pub(super) fn backend(reader: &mut Reader<'_>, text: Spanned<&str>) -> Option<BackendName> {
    backend_beside(reader, text, &|_| false)
}

/// The name of a backend where each may stand once; `taken` says which do.
pub(super) fn backend_beside(reader: &mut Reader<'_>, text: Spanned<&str>, taken: &dyn Fn(&str) -> bool) -> Option<BackendName> {
    match text.parse::<BackendName>() {
        Ok(backend) => Some(backend),
        Err(error) => {
            let diagnostic = Diagnostic::error(code::UNKNOWN_BACKEND, text.span, error.to_string());
            let names = BackendName::ALL.map(BackendName::as_str);
            let diagnostic = diagnostic.with_note(format!("known backends: {}", list(names)));
            reader.push(diagnostic.with_hint(BackendName::meant_by(&text).map(|backend| match backend.as_str() {
                name if taken(name) => is_meant_and_there(name),
                name => is_meant(name),
            })));
            None
        }
    }
}

/// A kernel's `depends`.
pub(super) fn dependencies<'a>(reader: &mut Reader<'a>, entry: &Entry<'a>) -> Option<Vec<Spanned<Dependency>>> {
    reader.list(entry, "torch", |reader, text| match text.parse() {
        Ok(dependency) => Some(dependency),
        Err(error) => {
            let error: crate::dependency::UnknownDependency = error;
            let names = Dependency::ALL.map(Dependency::as_str);
            let diagnostic = Diagnostic::error(code::UNKNOWN_DEPENDENCY, text.span, error.to_string());
            let diagnostic = diagnostic.with_note(format!("known dependencies: {}", list(names)));
            reader.push(diagnostic.with_hint(did_you_mean(&text, names)));
            None
        }
    })
}

/// `python-depends` of `backend`, or of every backend; empty when the key is absent.
pub(super) fn python_depends<'a>(
    reader: &mut Reader<'a>,
    table: &Table<'a>,
    backend: Option<BackendName>,
) -> Vec<Spanned<PythonDependency>> {
    let Some(entry) = table.get("python-depends") else { return Vec::new() };
    let read = reader.list(entry, "einops", |reader, text| {
        if let Some(dependency) = PythonDependency::find(&text, backend) {
            return Some(dependency);
        }
        let names: Vec<&str> = PythonDependency::allowed(backend).map(PythonDependency::name).collect();
        let message = format!("unknown Python dependency {}{}", quoted(&text), table.within());
        let elsewhere = PACKAGES.iter().find(|row| row.name == text.value).and_then(|row| row.backend);
        let hint = match elsewhere {
            Some(backend) => Some(format!("`{}` belongs into `python-depends` of `[general.{backend}]`", text.value)),
            None => did_you_mean(&text, names.iter().copied()),
        };
        let diagnostic = Diagnostic::error(code::UNKNOWN_PYTHON_DEPENDENCY, text.span, message);
        reader.push(diagnostic.with_note(format!("allowed here: {}", list(names))).with_hint(hint));
        None
    });
    read.unwrap_or_default()
}

/// The hint that names the nearest of `names`.
pub(super) fn did_you_mean<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(text, names).map(is_meant)
}

/// The hint that names what was meant.
pub(super) fn is_meant(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The same of a name that stands there already, and cannot a second time.
pub(super) fn is_meant_and_there(name: &str) -> String {
    format!("did you mean `{name}`? it is there already")
}
