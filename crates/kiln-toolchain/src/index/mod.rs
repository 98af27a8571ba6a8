//! A client of the simple package index: where the files of a project are.
//!
//! Asks for JSON (PEP 691) and takes HTML (PEP 503) where an index has nothing better.

mod html;
mod json;
mod locations;

use std::collections::BTreeMap;

use url::Url;

pub(crate) use self::locations::Locations;
use crate::error::Error;
use crate::http::{Client, IndexUrl};

/// What is asked for, in the order of PEP 691.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01";

/// The longest page: that of the projects with the most files has a few MB.
const MAX_PAGE: u64 = 64 << 20;

/// A file that an index lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Where it is.
    pub(crate) url: Url,
    /// Its sha256 as lower-case hexadecimal text, where the index says it.
    pub(crate) sha256: Option<String>,
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
pub(crate) fn files(client: &Client<'_>, index: &IndexUrl, project: &str) -> Result<BTreeMap<String, Listed>, Error> {
    let project = normalized(project);
    let url = index
        .url()
        .join(&format!("{project}/"))
        .map_err(|cause| Error::IndexUrl { origin: index.to_string(), reason: cause.to_string() })?;
    let page = match client.page(&url, ACCEPT, MAX_PAGE) {
        Ok(page) => page,
        Err(cause) if cause.fault.is_gone() => return Err(Error::NoProject { project, index: index.to_string() }),
        Err(cause) => return Err(Error::fetch(&format!("the file list of `{project}`"))(cause)),
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
        other => Err(wrong(format!("its content type is `{}`", other.escape_default()))),
    }
}

/// The address `href` on the page at `base`, without user information.
fn resolved(base: &Url, href: &str) -> Option<Url> {
    let mut url = base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
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
    use super::normalized;

    #[test]
    fn names_are_normalised() {
        assert_eq!(normalized("Apache-TVM_FFI"), "apache-tvm-ffi");
        assert_eq!(normalized("a.-_b"), "a-b");
        assert_eq!(normalized("torch"), "torch");
    }
}
