//! Requests: a small transport trait, its ureq implementation, and the client with redirects and retries on top.

mod agent;
mod client;
mod credentials;
mod encoding;
mod local;
mod proxy;
mod range;
mod retry;
mod trust;
mod url;

use std::io::Read;
use std::ops::Range;
use std::time::Duration;

pub use self::agent::{AgentOptions, UreqTransport};
pub(crate) use self::client::{Client, ClientOptions};
pub(crate) use self::credentials::Credentials;
pub use self::credentials::Netrc;
pub use self::proxy::Proxies;
pub use self::range::Pieces;
pub(crate) use self::range::{Answer, difference};
pub use self::retry::{RetryPolicy, Slowest};
pub use self::trust::Trust;
pub use self::url::IndexUrl;
pub(crate) use self::url::{redacted, unescaped};

/// One GET request, without redirects and retries.
#[derive(Clone)]
pub struct Request {
    /// The address; its user information is never sent and must be empty.
    pub url: ::url::Url,
    /// The bytes that are wanted; all of them if none.
    pub range: Option<Range<u64>>,
    /// Value of the `Accept` header.
    pub accept: Option<&'static str>,
    /// Value of the `Authorization` header.
    pub authorization: Option<String>,
    /// The range is wanted only if the file still has this `ETag`, else the whole file.
    pub if_range: Option<String>,
    /// Whether the body may come compressed by gzip.
    pub gzip: bool,
}

impl Request {
    /// A request for all of `url`, with no header that could be left out.
    pub fn new(url: ::url::Url) -> Self {
        Self { url, range: None, accept: None, authorization: None, if_range: None, gzip: false }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("url", &redacted(&self.url)).field("range", &self.range).finish_non_exhaustive()
    }
}

/// The head and the body of an answer.
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The headers that matter here.
    pub headers: Headers,
    /// The body. Fails with [`std::io::ErrorKind::TimedOut`] when the server is silent for too long.
    pub body: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response").field("status", &self.status).field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// The headers that matter here, as sent.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Length`, in bytes.
    pub content_length: Option<u64>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Range`.
    pub content_range: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// How long `Retry-After` asks to wait.
    pub retry_after: Option<Duration>,
}

/// How bytes come from a server. One exchange a call.
pub trait Transport: Send + Sync {
    /// Sends the request and reads the head of the answer.
    ///
    /// # Errors
    /// When no answer came. A status of 4xx or 5xx is an answer.
    fn get(&self, request: &Request) -> Result<Response, HttpError>;
}

/// A request that failed: where, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {fault}")]
pub struct HttpError {
    /// The address, without credentials and query.
    pub url: String,
    /// What went wrong.
    pub fault: HttpFault,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// How a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    /// No connection, or it broke. Holds the cause.
    #[error("{0}")]
    Connection(String),
    /// No data came for longer than the transport's limit.
    #[error("the server was silent for too long")]
    Stalled,
    /// Data came, but less than is waited for.
    #[error("the server sends too slowly")]
    Slow,
    /// The certificate of the server was not accepted, or the handshake failed otherwise. Holds the cause.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server answered with this status.
    #[error("the server answered {0}")]
    Status(u16),
    /// The body ended early.
    #[error("the answer ended after {got} of {expected} bytes")]
    Truncated {
        /// Announced length in bytes.
        expected: u64,
        /// Received bytes.
        got: u64,
    },
    /// The file is not the one that the answer before was about. Holds what differs.
    #[error("the file changed while it was read: {0}")]
    Changed(String),
    /// The file ends before the bytes that were asked for. Holds its length in bytes.
    #[error("the file has only {0} bytes")]
    Short(u64),
    /// A file of this machine cannot be read. Holds the cause.
    #[error("{0}")]
    Local(String),
    /// What came cannot be kept. Holds the kind and the text of the cause.
    #[error("cannot keep the answer: {1}")]
    Unkept(std::io::ErrorKind, String),
    /// The network may not be used.
    #[error("`--offline` forbids to fetch it")]
    Offline,
    /// The proxy did not let us through.
    #[error("the proxy `{proxy}` {trouble}")]
    Proxy {
        /// Its host and port.
        proxy: String,
        /// What is the matter with it.
        trouble: ProxyTrouble,
    },
    /// The answer makes no sense. Holds what is wrong with it.
    #[error("{0}")]
    Protocol(String),
}

/// What is the matter with a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyTrouble {
    /// It answered with this status.
    #[error("answered {0}")]
    Status(u16),
    /// It gave no answer that a proxy would give.
    #[error("gave no answer that makes sense")]
    NoAnswer,
    /// There is no way to it.
    #[error("refused the connection")]
    Refused,
    /// Nobody knows it.
    #[error("is not known: no host has this name")]
    Unknown,
}

impl HttpFault {
    /// The fault of an answer that cannot be kept.
    pub(crate) fn unkept(cause: &std::io::Error) -> Self {
        Self::Unkept(cause.kind(), cause.to_string())
    }

    /// The error of this fault at `url`.
    pub fn at(self, url: &::url::Url) -> HttpError {
        HttpError { url: redacted(url), fault: self, retry_after: None }
    }

    /// Whether the same request may well succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Stalled | Self::Slow | Self::Truncated { .. } => true,
            Self::Proxy { trouble: ProxyTrouble::Status(status), .. } => *status >= 500,
            Self::Proxy { .. } => true,
            Self::Status(status) => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Self::Tls(_) | Self::Changed(_) | Self::Short(_) | Self::Local(_) | Self::Unkept(..) | Self::Offline | Self::Protocol(_) => {
                false
            }
        }
    }

    /// Whether the server said that there is nothing (any more) at this address, or nothing for us.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Status(403 | 404 | 410))
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Tls(_) => "certificates beside the system's can be given with `SSL_CERT_FILE` or pip's `cert` setting",
            Self::Status(401) => "the server wants credentials: they may stand in netrc, or in the index URL",
            Self::Status(403) => "the server does not let everybody have this: credentials may stand in netrc, or in the index URL",
            Self::Status(407) | Self::Proxy { trouble: ProxyTrouble::Status(407), .. } => {
                "the proxy wants credentials: they may stand in its URL"
            }
            Self::Connection(_) | Self::Stalled | Self::Slow | Self::Truncated { .. } => {
                "is the network up, and is the index the right one? another can be given with `--index URL`"
            }
            Self::Proxy { .. } => "hosts that are reached without the proxy can be listed in `no_proxy`",
            Self::Status(500..) => "the server is in trouble: try again later, or give another index with `--index URL`",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
