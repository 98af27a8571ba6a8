//! A client of the simple package index: where the files of a project are.
//!
//! Asks for JSON (PEP 691) and takes HTML (PEP 503) where an index has nothing better. An index may also be a single page
//! that links to wheels of several projects, or a directory of this machine, with such pages or just with wheels in it.

mod directory;
mod html;
mod json;
mod locations;
mod wheels;

use std::collections::BTreeMap;

use url::Url;

pub(crate) use self::locations::Locations;
pub(crate) use self::wheels::{WheelName, choose};
use crate::error::Error;
use crate::http::{Client, HttpFault, IndexUrl};

/// What is asked for, in the order of PEP 691.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01";

/// The longest page: that of the projects with the most files has a few MB.
const MAX_PAGE: u64 = 64 << 20;

/// The files of a page, by name.
pub(crate) type Files = BTreeMap<String, Listed>;

/// A file that an index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Where it is.
    pub(crate) url: Url,
    /// Its sha256 as lower-case hexadecimal text, where the index says it.
    pub(crate) sha256: Option<String>,
    /// Its size in bytes, where the index says it (PEP 700).
    pub(crate) size: Option<u64>,
    /// Why it should no longer be used (PEP 592), if so; the reason may be empty.
    pub(crate) yanked: Option<String>,
    /// The Pythons that it is for, as a version specifier, where the index says it.
    pub(crate) requires_python: Option<String>,
    /// Whether its `METADATA` can be had alone, at the same address with `.metadata` behind it (PEP 658).
    pub(crate) metadata: bool,
}

impl Listed {
    /// A file of which nothing is said.
    pub(crate) fn at(url: Url) -> Self {
        Self { url, sha256: None, size: None, yanked: None, requires_python: None, metadata: false }
    }
}

/// The name of a project in the one spelling that an index uses (PEP 503): lower case, runs of `-`, `_` and `.` as one `-`.
pub(crate) fn normalized(project: &str) -> String {
    let mut name = String::with_capacity(project.len());
    for letter in project.chars() {
        match letter {
            '-' | '_' | '.' if name.ends_with('-') => {}
            '-' | '_' | '.' => name.push('-'),
            other => name.push(other.to_ascii_lowercase()),
        }
    }
    name
}

/// Fetches the files of `project`, by file name.
pub(crate) fn files(client: &Client<'_>, index: &IndexUrl, project: &str) -> Result<Files, Error> {
    let project = normalized(project);
    if let Some(dir) = index.local() {
        return directory::files(client, index, &dir, &project);
    }
    if index.is_page() {
        return Ok(of_project(page(client, index, index.url(), &project)?, &project));
    }
    let url = joined(index, &format!("{project}/"))?;
    match page(client, index, &url, &project) {
        // The address may be that of a page itself, with links to wheels: only then is it of use.
        Err(Error::NoProject { .. }) => {
            let flat = page(client, index, index.url(), &project).map(|files| of_project(files, &project));
            flat.ok().filter(|files| !files.is_empty()).ok_or(Error::NoProject { project, index: index.to_string() })
        }
        files => files,
    }
}

/// The address of something below an index. What stands behind a question mark in the index's own address, such as a
/// signature, is for its pages as well.
fn joined(index: &IndexUrl, path: &str) -> Result<Url, Error> {
    let wrong = |cause: url::ParseError| Error::IndexUrl { origin: index.to_string(), reason: cause.to_string() };
    let mut url = index.url().join(path).map_err(wrong)?;
    url.set_query(index.url().query());
    Ok(url)
}

/// The wheels of `project` among files of all kinds.
fn of_project(files: Files, project: &str) -> Files {
    files.into_iter().filter(|(file, _)| WheelName::parse(file).is_some_and(|name| normalized(name.project) == project)).collect()
}

/// Fetches and reads one page.
fn page(client: &Client<'_>, index: &IndexUrl, url: &Url, project: &str) -> Result<Files, Error> {
    let (project, index) = (project.to_owned(), index.to_string());
    let page = match client.page(url, ACCEPT, MAX_PAGE) {
        Ok(page) => page,
        Err(cause) => {
            return Err(match cause.fault {
                HttpFault::Status(404 | 410) => Error::NoProject { project, index },
                HttpFault::Status(status @ (401 | 403)) => Error::NoAccess { project, index, status },
                _ => Error::fetch(&format!("the file list of `{project}`"))(cause),
            });
        }
    };
    let wrong = |reason: String| Error::IndexPage { url: crate::http::redacted(&page.url), reason };
    let kind = page.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/vnd.pypi.simple.v1+json" | "application/vnd.pypi.simple.latest+json" | "application/json" => {
            json::files(&page.bytes, &page.url).map_err(wrong)
        }
        "application/vnd.pypi.simple.v1+html" | "application/vnd.pypi.simple.latest+html" | "text/html" => {
            Ok(html::files(&String::from_utf8_lossy(&page.bytes), &page.url))
        }
        "" => Err(wrong("it does not say what it is".to_owned())),
        other => Err(wrong(format!("its content type is `{}`", other.escape_default()))),
    }
}

/// The address `href` on the page at `base`, without user information. A page from a server cannot lead to files of this
/// machine.
fn resolved(base: &Url, href: &str) -> Option<Url> {
    let allowed = |scheme: &str| matches!(scheme, "http" | "https") || (scheme == "file" && base.scheme() == "file");
    let mut url = base.join(href).ok().filter(|url| allowed(url.scheme()))?;
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(url)
}

/// A sha256 as it is compared: 64 hexadecimal digits in lower case.
fn digest(text: &str) -> Option<String> {
    (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised() {
        assert_eq!(normalized("Apache-TVM_FFI"), "apache-tvm-ffi");
        assert_eq!(normalized("a.-_b"), "a-b");
        assert_eq!(normalized("torch"), "torch");
    }

    #[test]
    fn only_pages_of_this_machine_lead_to_its_files() {
        let resolved = |base: &str, href: &str| resolved(&Url::parse(base).unwrap(), href).map(String::from);
        assert_eq!(resolved("https://example.org/simple/", "file:///etc/passwd"), None);
        assert_eq!(resolved("file:///srv/index.html", "a.whl").as_deref(), Some("file:///srv/a.whl"));
        assert_eq!(resolved("file:///srv/index.html", "https://me:x@example.org/a.whl").as_deref(), Some("https://example.org/a.whl"));
    }
}
