//! Addresses and the credentials that must never be seen in them.

use std::fmt;

use data_encoding::BASE64;
use url::Url;

/// An address as it may be shown: without user information, query and fragment.
pub(crate) fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither call fails for an address with a host; without one there is nothing to hide.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// User name and password for one server. Neither is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    origin: url::Origin,
    header: String,
}

impl Credentials {
    /// The `Authorization` header for `url`, if these credentials are for its server.
    pub(crate) fn header_for(&self, url: &Url) -> Option<&str> {
        (url.origin() == self.origin).then_some(self.header.as_str())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// The address of a package index, with its credentials set apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexUrl {
    url: Url,
    credentials: Option<Credentials>,
}

impl IndexUrl {
    /// Reads an index address such as `https://user:password@example.org/simple`.
    ///
    /// # Errors
    /// A reason without the text itself, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut url = Url::parse(text.trim()).map_err(|cause| match cause {
            url::ParseError::RelativeUrlWithoutBase => "it does not begin with `https://` or `http://`".to_owned(),
            cause => cause.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}:` addresses are not supported, only `http:` and `https:`", url.scheme()));
        }
        if !url.has_host() {
            return Err("it names no host".to_owned());
        }
        let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let plain = [decoded(url.username()), b":".to_vec(), decoded(url.password().unwrap_or_default())].concat();
            Credentials { origin: url.origin(), header: format!("Basic {}", BASE64.encode(&plain)) }
        });
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(Self { url, credentials })
    }

    /// The address, without credentials, ending in a slash.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The credentials that stood in the address.
    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

impl fmt::Display for IndexUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.url))
    }
}

/// Percent-decodes user information.
fn decoded(text: &str) -> Vec<u8> {
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
    fn credentials_are_sent_to_their_server_only_and_never_shown() {
        let index = IndexUrl::parse("https://me:p%40ss@example.org/simple?token=secret#frag").unwrap();
        assert_eq!(index.to_string(), "https://example.org/simple/");
        assert!(!format!("{index:?}").contains("p%40ss"));
        let credentials = index.credentials().unwrap();
        assert_eq!(credentials.header_for(&Url::parse("https://example.org/files/a.whl").unwrap()), Some("Basic bWU6cEBzcw=="));
        assert_eq!(credentials.header_for(&Url::parse("https://files.example.org/a.whl").unwrap()), None);
        assert_eq!(credentials.header_for(&Url::parse("http://example.org/a.whl").unwrap()), None);
    }

    #[test]
    fn what_is_no_index_address_is_refused_without_being_quoted() {
        assert_eq!(IndexUrl::parse("me:secret@host").unwrap_err(), "`me:` addresses are not supported, only `http:` and `https:`");
        assert_eq!(IndexUrl::parse("simple").unwrap_err(), "it does not begin with `https://` or `http://`");
    }
}
