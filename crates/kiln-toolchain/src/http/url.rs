//! Addresses of indexes, and how an address may be shown.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

use super::credentials::Login;

/// An address as it may be shown: without user information, query and fragment, and without the token of a path such as
/// `/t/TOKEN/simple`, in which some servers take one.
pub(crate) fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    if let Some(path) = without_token(url.path()) {
        shown.set_path(&path);
    }
    // Neither call fails for an address with a host; without one there is nothing to hide.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// The path with stars for what follows the first directory `t`; none when there is nothing to hide.
fn without_token(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let at = parts.iter().position(|part| *part == "t")? + 1;
    let token = parts.get_mut(at).filter(|part| !part.is_empty())?;
    *token = "***";
    Some(parts.join("/"))
}

/// The address of a package index, with its credentials set apart: a server's, or a directory of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexUrl {
    url: Url,
    login: Option<Login>,
}

impl IndexUrl {
    /// Reads an index address such as `https://user:password@example.org/simple`, `file:///srv/wheels` or `/srv/wheels`.
    ///
    /// # Errors
    /// A reason without the text itself, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_in(text, Path::new(""))
    }

    /// The same, where a path that begins with `./` or `../` is one from the directory `base`, which is absolute.
    ///
    /// # Errors
    /// As [`IndexUrl::parse`].
    pub fn parse_in(text: &str, base: &Path) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with("//") {
            return Err("it begins with `//`: an address has a scheme before that, a path just one of them".to_owned());
        }
        let path = Path::new(text);
        let relative = path.starts_with(".") || path.starts_with("..");
        if relative || path.is_absolute() {
            // A trailing slash is what makes a directory of an address: see below.
            let path = base.join(path);
            let url = Url::from_file_path(&path).map_err(|()| "it is a relative path where none can be meant".to_owned())?;
            return Ok(Self { url: directory(url), login: None });
        }
        let mut url = Url::parse(text).map_err(|cause| match cause {
            url::ParseError::RelativeUrlWithoutBase => {
                "it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`".to_owned()
            }
            cause => cause.to_string(),
        })?;
        url.set_fragment(None);
        match url.scheme() {
            "file" if url.to_file_path().is_err() => return Err("it is no path on this machine".to_owned()),
            "file" => {
                url.set_query(None);
                return Ok(Self { url: directory(url), login: None });
            }
            "http" | "https" => {}
            other => return Err(unsupported(other)),
        }
        if !url.has_host() {
            return Err("it names no host".to_owned());
        }
        let login = (!url.username().is_empty() || url.password().is_some())
            .then(|| Login { user: unescaped(url.username()), password: url.password().map(unescaped) });
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { url: directory(url), login })
    }

    /// The address, without credentials; ends in a slash unless it is that of a single page.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The path, where the index is on this machine.
    pub fn local(&self) -> Option<PathBuf> {
        (self.url.scheme() == "file").then(|| self.url.to_file_path().ok()).flatten()
    }

    /// Its server, or the path of one on this machine, for people: some servers take secrets in the rest of an address.
    pub fn server(&self) -> String {
        match self.local() {
            Some(path) => path.display().to_string(),
            None => self.url.origin().ascii_serialization(),
        }
    }

    /// Whether the address is that of a single page, which lists files of several projects.
    pub(crate) fn is_page(&self) -> bool {
        !self.url.path().ends_with('/')
    }

    /// The credentials that stood in the address.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }
}

/// Why an address with this scheme is none. What stands before a colon may also be the name of a user, or a token, which is not shown.
fn unsupported(scheme: &str) -> String {
    const KNOWN: [&str; 10] = ["ftp", "ftps", "sftp", "scp", "ssh", "git", "s3", "gs", "data", "socks5"];
    let only = "only `https:`, `http:` and `file:`";
    if KNOWN.contains(&scheme) {
        return format!("`{scheme}:` addresses are not supported, {only}");
    }
    format!("what stands before its first colon is no scheme that is supported: {only}")
}

/// With a slash at the end, so that names can be joined to it; pages (`.html`) are left alone.
fn directory(mut url: Url) -> Url {
    let page = [".html", ".htm", ".json"].iter().any(|suffix| url.path().to_ascii_lowercase().ends_with(suffix));
    if !page && !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}

impl fmt::Display for IndexUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.local() {
            Some(path) => write!(f, "{}", path.display()),
            None => f.write_str(&redacted(&self.url)),
        }
    }
}

/// The bytes that percent signs stand for.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| first == b'%').and_then(|hex| data_encoding::HEXLOWER_PERMISSIVE.decode(hex).ok());
        match hex {
            Some(byte) => {
                bytes.extend(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_set_apart_and_never_shown() {
        let index = IndexUrl::parse("https://me:p%40ss@example.org/simple?token=secret#frag").unwrap();
        assert_eq!(index.to_string(), "https://example.org/simple/");
        assert!(!format!("{index:?}").contains("p%40ss"));
        assert_eq!(index.login(), Some(&Login { user: b"me".to_vec(), password: Some(b"p@ss".to_vec()) }));
    }

    #[test]
    fn what_may_be_a_token_is_never_quoted() {
        for text in [
            "ghp-hush:abc",
            "hush:x-oauth-basic@host/simple",
            "hush@host/simple",
            "hush:/simple",
            "ghp-hush://host/simple",
            "https://host:hush/simple",
            "https://hu%sh@hush host/",
            "//hush@host/simple",
            "file://hush@host/simple",
        ] {
            let reason = IndexUrl::parse(text).unwrap_err();
            assert!(!reason.contains("hush"), "{text}: {reason}");
        }
        for text in [
            "https://hush@host/simple",
            "https:hush@host/simple",
            "https:/hush:@host/simple",
            "https://:hush@host/simple",
            "https://host/t/hush/simple?token=hush#hush",
            "https://host/conda/t/hush/",
        ] {
            let index = IndexUrl::parse(text).unwrap();
            let file = redacted(&index.url().join("torch/torch.whl?sig=hush").unwrap());
            let shown = format!("{index} {} {file}", index.server());
            assert!(!shown.contains("hush") && shown.contains("https://host/"), "{text}: {shown}");
        }
        assert_eq!(IndexUrl::parse("https://host/t").unwrap().to_string(), "https://host/t/");
    }

    #[test]
    fn directories_and_pages() {
        let shown = |text: &str, base: &str| {
            let index = IndexUrl::parse_in(text, Path::new(base)).unwrap();
            format!("{} {} {}", index.url(), index, index.is_page())
        };
        insta::assert_snapshot!([
            shown("/srv/my wheels é", "/p"),
            shown("./wheels", "/my project"),
            shown("../wheels/", "/a/b"),
            shown("file:///srv/wheels", "/p"),
            shown("https://example.org/whl/torch_stable.html", "/p"),
            shown("/srv/index.html", "/p"),
        ].join("\n"), @r"
        file:///srv/my%20wheels%20%C3%A9/ /srv/my wheels é/ false
        file:///my%20project/wheels/ /my project/wheels/ false
        file:///a/wheels/ /a/wheels/ false
        file:///srv/wheels/ /srv/wheels/ false
        https://example.org/whl/torch_stable.html https://example.org/whl/torch_stable.html true
        file:///srv/index.html /srv/index.html true
        ");
    }

    #[test]
    fn what_is_no_index_address_is_refused_without_being_quoted() {
        insta::assert_snapshot!(["me:secret@host", "simple", "./wheels", "file://host/share"].map(|text| IndexUrl::parse(text).unwrap_err()).join("\n"), @r"
        what stands before its first colon is no scheme that is supported: only `https:`, `http:` and `file:`
        it begins neither with `https://`, `http://` or `file://` nor, as a path, with `/`, `./` or `../`
        it is a relative path where none can be meant
        it is no path on this machine
        ");
    }
}
