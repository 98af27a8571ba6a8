//! Addresses of git repositories, as `upstream` and `source` hold them.

use crate::suggest::quoted;
use crate::text_value::text_value;

/// An absolute URL of a scheme that git knows, or the scp form `host:path`. The written text is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GitUrl(String);

/// Why a text is no [`GitUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitUrlError {
    /// A URL of a scheme that is not in [`GitUrl::SCHEMES`].
    #[error("scheme {} is not one that git repositories are read from", quoted(.0))]
    Scheme(String),
    /// A URL of a known scheme that is malformed otherwise, and why.
    #[error("{} is not a valid URL: {reason}", quoted(.text))]
    Malformed {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Neither a URL nor the scp form.
    #[error("{} is neither a git URL nor of the form `host:path`", quoted(.0))]
    Form(String),
}

impl GitUrl {
    /// The schemes of absolute URLs.
    pub const SCHEMES: [&str; 7] = ["https", "http", "git", "ssh", "git+ssh", "git+https", "git+http"];

    /// Checks `text`.
    ///
    /// # Errors
    /// When the text is neither an absolute URL of a known scheme, nor `host:path` with both parts not empty and a path
    /// that does not start with `/`.
    pub fn new(text: &str) -> Result<Self, GitUrlError> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(GitUrlError::Form(text.to_owned()));
        }
        let Some((before, after)) = text.split_once(':') else { return Err(GitUrlError::Form(text.to_owned())) };
        if after.starts_with("//") {
            let scheme = before.to_ascii_lowercase();
            if !Self::SCHEMES.contains(&scheme.as_str()) {
                return Err(GitUrlError::Scheme(before.to_owned()));
            }
            url::Url::parse(text).map_err(|error| GitUrlError::Malformed { text: text.to_owned(), reason: error.to_string() })?;
        } else if before.is_empty() || after.is_empty() || after.starts_with('/') {
            return Err(GitUrlError::Form(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same address as a URL: the scp form `host:path` becomes `ssh://host/path`.
    pub fn to_url(&self) -> String {
        match self.scp_parts() {
            Some((host, path)) => format!("ssh://{host}/{path}"),
            None => self.0.clone(),
        }
    }

    /// Whether loaders take this scp form for a URL, because what stands before the colon could be a scheme, and so
    /// refuse it: `example.org:path`, but not `git@example.org:path`.
    pub fn is_mistaken_for_a_url(&self) -> bool {
        let scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        self.scp_parts().is_some_and(|(host, _)| host.starts_with(|c: char| c.is_ascii_alphabetic()) && host.chars().all(scheme))
    }

    /// Host and path of the scp form.
    fn scp_parts(&self) -> Option<(&str, &str)> {
        let (host, path) = self.0.split_once(':')?;
        (!path.starts_with("//") && !Self::SCHEMES.contains(&host)).then_some((host, path))
    }
}

text_value!(GitUrl: Display, FromStr(new, GitUrlError), Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted() {
        for (text, url) in [
            ("https://example.org/team/repo", "https://example.org/team/repo"),
            ("git+ssh://git@example.org:22/repo", "git+ssh://git@example.org:22/repo"),
            ("HTTP://example.org", "HTTP://example.org"),
            ("git@example.org:team/repo.git", "ssh://git@example.org/team/repo.git"),
            ("host:path", "ssh://host/path"),
            ("./a:b", "ssh://./a/b"),
            ("https:example.org", "https:example.org"),
            ("ssh:///srv/x", "ssh:///srv/x"),
        ] {
            let git_url: GitUrl = text.parse().unwrap();
            assert_eq!((git_url.as_str(), git_url.to_url()), (text, url.to_owned()));
            assert_eq!(serde_json::from_str::<GitUrl>(&serde_json::to_string(&git_url).unwrap()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistaken_for_a_url() {
        for (text, mistaken) in [
            ("host:path", true),
            ("example.org:a/b", true),
            ("git@example.org:a", false),
            ("my_host:a", false),
            ("https://example.org", false),
            ("https:a", false),
        ] {
            assert_eq!(GitUrl::new(text).unwrap().is_mistaken_for_a_url(), mistaken, "{text}");
        }
    }

    #[test]
    fn refused() {
        let messages: Vec<String> = [
            "ftp://example.org/x",
            "file:///srv/x",
            "https://",
            "https://exa mple.org",
            "https://example.org:port/",
            "host:",
            ":path",
            "host:/path",
            "plain",
            "",
        ]
        .iter()
        .map(|text| GitUrl::new(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(messages.join("\n"), @"
        scheme `ftp` is not one that git repositories are read from
        scheme `file` is not one that git repositories are read from
        `https://` is not a valid URL: empty host
        `https://exa mple.org` is neither a git URL nor of the form `host:path`
        `https://example.org:port/` is not a valid URL: invalid port number
        `host:` is neither a git URL nor of the form `host:path`
        `:path` is neither a git URL nor of the form `host:path`
        `host:/path` is neither a git URL nor of the form `host:path`
        `plain` is neither a git URL nor of the form `host:path`
        `` is neither a git URL nor of the form `host:path`
        ");
        assert!(serde_json::from_str::<GitUrl>("\"plain\"").is_err());
    }
}
