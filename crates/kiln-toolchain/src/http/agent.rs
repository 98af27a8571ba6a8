//! The transport over ureq.

use std::io::{self, Read};
use std::time::Duration;

use ureq::Agent;
use ureq::tls::TlsConfig;

use super::{Headers, HttpError, HttpFault, Request, Response, Transport, Trust};
use crate::error::Error;

/// What a transport needs to know.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Certificate authorities.
    pub trust: Trust,
    /// A proxy for all requests, such as `http://user:password@proxy.example.org:3128`.
    pub proxy: Option<String>,
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// How long the server may be silent, before its answer and within it.
    pub read_timeout: Duration,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self { trust: Trust::default(), proxy: None, connect_timeout: Duration::from_secs(20), read_timeout: Duration::from_secs(30) }
    }
}

/// HTTP/1.1 with TLS, keeping connections open.
#[derive(Debug)]
pub struct UreqTransport {
    agent: Agent,
}

impl UreqTransport {
    /// A transport. Reads nothing from the environment; the proxy in particular is only what `options` say.
    ///
    /// # Errors
    /// When certificates cannot be read or the proxy is no URL.
    pub fn new(options: &AgentOptions) -> Result<Self, Error> {
        let proxy = match &options.proxy {
            None => None,
            Some(text) => {
                Some(ureq::Proxy::new(text).map_err(|cause| Error::Proxy { proxy: shown_proxy(text), reason: cause.to_string() })?)
            }
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(options.trust.roots()?).build())
            .user_agent(concat!("kiln/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_connect(Some(options.connect_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .timeout_per_write(Some(options.read_timeout))
            .build();
        Ok(Self { agent: config.new_agent() })
    }
}

impl Transport for UreqTransport {
    fn get(&self, request: &Request) -> Result<Response, HttpError> {
        let mut call = self.agent.get(request.url.as_str());
        if let Some(range) = &request.range {
            call = call.header("Range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
        }
        if let Some(accept) = request.accept {
            call = call.header("Accept", accept);
        }
        if let Some(authorization) = &request.authorization {
            call = call.header("Authorization", authorization);
        }
        let answer = call.call().map_err(|cause| fault(cause).at(&request.url))?;
        let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let headers = Headers {
            content_type: text("content-type"),
            content_length: text("content-length").and_then(|length| length.parse().ok()),
            content_range: text("content-range"),
            etag: text("etag"),
            location: text("location"),
            retry_after: text("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs),
        };
        let status = answer.status().as_u16();
        Ok(Response { status, headers, body: Box::new(Body(answer.into_body().into_reader())) })
    }
}

/// Sorts ureq's errors into ours.
fn fault(cause: ureq::Error) -> HttpFault {
    match cause {
        ureq::Error::Timeout(_) => HttpFault::Stalled,
        ureq::Error::HostNotFound => HttpFault::Connection("the host is not known".to_owned()),
        ureq::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut => HttpFault::Stalled,
        ureq::Error::Io(cause) => match cause.get_ref().map(ToString::to_string) {
            // The handshake's errors come wrapped into those of the connection.
            Some(reason) if cause.kind() == io::ErrorKind::InvalidData => HttpFault::Tls(reason),
            _ => HttpFault::Connection(plain(&cause)),
        },
        ureq::Error::Rustls(cause) => HttpFault::Tls(cause.to_string()),
        ureq::Error::Tls(reason) => HttpFault::Tls(reason.to_owned()),
        ureq::Error::ConnectionFailed => HttpFault::Connection("no connection".to_owned()),
        ureq::Error::ConnectProxyFailed(reason) => HttpFault::Connection(format!("the proxy refused: {reason}")),
        other => HttpFault::Protocol(other.to_string()),
    }
}

/// A body whose errors are those that [`Response::body`] promises.
struct Body(ureq::BodyReader<'static>);

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|cause| match cause.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
            Some(ureq::Error::Timeout(_)) => io::ErrorKind::TimedOut.into(),
            _ => cause,
        })
    }
}

/// The text of an I/O error in the words of this house.
pub(crate) fn plain(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            "the connection broke".to_owned()
        }
        io::ErrorKind::TimedOut => "no data for too long".to_owned(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "the network cannot be reached".to_owned(),
        _ => cause.to_string(),
    }
}

/// A proxy setting without what may be a password.
fn shown_proxy(text: &str) -> String {
    text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned()
}
