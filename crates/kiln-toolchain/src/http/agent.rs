//! The transport over ureq.

use std::io::{self, Read};
use std::time::Duration;

use ureq::Agent;
use ureq::tls::TlsConfig;

use super::proxy::shown_proxy;
use super::{Headers, HttpError, HttpFault, Proxies, ProxyTrouble, Request, Response, Transport, Trust};
use crate::error::Error;

/// What a transport needs to know.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Certificate authorities.
    pub trust: Trust,
    /// Proxies, and what is reached without one.
    pub proxies: Proxies,
    /// How long a connection may take to stand.
    pub connect_timeout: Duration,
    /// How long the server may be silent, before its answer and within it.
    pub read_timeout: Duration,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            proxies: Proxies::default(),
            connect_timeout: Duration::from_secs(20),
            read_timeout: Duration::from_secs(30),
        }
    }
}

/// HTTP/1.1 with TLS, keeping connections open.
#[derive(Debug)]
pub struct UreqTransport {
    direct: Agent,
    http: Option<Agent>,
    https: Option<Agent>,
    proxies: Proxies,
}

impl UreqTransport {
    /// A transport. Reads nothing from the environment; the proxies in particular are only what `options` say.
    ///
    /// # Errors
    /// When certificates cannot be read or a proxy is no URL.
    pub fn new(options: &AgentOptions) -> Result<Self, Error> {
        let roots = options.trust.roots()?;
        let agent = |proxy| {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(proxy)
                .tls_config(TlsConfig::builder().root_certs(roots.clone()).build())
                .user_agent(concat!("kiln/", env!("CARGO_PKG_VERSION")))
                .accept_encoding("identity")
                .timeout_connect(Some(options.connect_timeout))
                .timeout_per_read(Some(options.read_timeout))
                .timeout_per_write(Some(options.read_timeout))
                .build();
            config.new_agent()
        };
        let proxied = |proxy: &Option<String>| proxy.as_deref().map(|text| Ok(agent(Some(parsed(text)?)))).transpose();
        let Proxies { http, https, .. } = &options.proxies;
        Ok(Self { direct: agent(None), http: proxied(http)?, https: proxied(https)?, proxies: options.proxies.clone() })
    }

    /// The way to `url`, and the proxy on it.
    fn way(&self, url: &url::Url) -> (&Agent, Option<&str>) {
        let Proxies { http, https, .. } = &self.proxies;
        let (agent, proxy) = if url.scheme() == "https" { (&self.https, https) } else { (&self.http, http) };
        match agent.as_ref().filter(|_| !self.proxies.exempts(url)) {
            Some(agent) => (agent, proxy.as_deref()),
            None => (&self.direct, None),
        }
    }
}

/// A proxy setting as ureq wants it.
fn parsed(text: &str) -> Result<ureq::Proxy, Error> {
    let wrong = |reason: &str| Error::Proxy { proxy: shown_proxy(text), reason: reason.to_owned() };
    let proxy = ureq::Proxy::new(text).map_err(|_| wrong("it is not of the form `http://host:port`"))?;
    match proxy.protocol() {
        ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https => Ok(proxy),
        _ => Err(wrong("only `http:` and `https:` proxies are supported")),
    }
}

impl Transport for UreqTransport {
    fn get(&self, request: &Request) -> Result<Response, HttpError> {
        let (agent, proxy) = self.way(&request.url);
        let mut call = agent.get(request.url.as_str());
        if request.gzip {
            call = call.header("Accept-Encoding", "gzip");
        }
        if let Some(range) = &request.range {
            call = call.header("Range", format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
        }
        if let Some(etag) = &request.if_range {
            call = call.header("If-Range", etag);
        }
        if let Some(accept) = request.accept {
            call = call.header("Accept", accept);
        }
        if let Some(authorization) = &request.authorization {
            call = call.header("Authorization", authorization);
        }
        let answer = call.call().map_err(|cause| fault(cause, proxy.map(shown_proxy)).at(&request.url))?;
        let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let headers = Headers {
            content_type: text("content-type"),
            content_length: text("content-length").and_then(|length| length.parse().ok()),
            content_encoding: text("content-encoding"),
            content_range: text("content-range"),
            etag: text("etag"),
            location: text("location"),
            retry_after: text("retry-after").and_then(|text| super::retry::retry_after(&text, std::time::SystemTime::now())),
        };
        let status = answer.status().as_u16();
        Ok(Response { status, headers, body: Box::new(Body(answer.into_body().into_reader())) })
    }
}

/// Sorts ureq's errors into ours. `proxy` is the one that the request was to go through: every connection is one to it.
fn fault(cause: ureq::Error, proxy: Option<String>) -> HttpFault {
    let of_proxy = |trouble| proxy.clone().map(|proxy| HttpFault::Proxy { proxy, trouble });
    let through = |reason: String| match &proxy {
        Some(proxy) => format!("{reason} (through the proxy `{proxy}`)"),
        None => reason,
    };
    let connection = |reason: String| HttpFault::Connection(through(reason));
    match cause {
        ureq::Error::Timeout(_) => HttpFault::Stalled,
        ureq::Error::HostNotFound => of_proxy(ProxyTrouble::Unknown).unwrap_or_else(|| connection("the host is not known".to_owned())),
        ureq::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut => HttpFault::Stalled,
        ureq::Error::Io(cause) => match cause.get_ref().map(ToString::to_string) {
            // The handshake's errors come wrapped into those of the connection.
            Some(reason) if cause.kind() == io::ErrorKind::InvalidData => HttpFault::Tls(reason),
            _ if cause.kind() == io::ErrorKind::ConnectionRefused => {
                of_proxy(ProxyTrouble::Refused).unwrap_or_else(|| connection(plain(&cause)))
            }
            _ => connection(plain(&cause)),
        },
        ureq::Error::Rustls(cause) => HttpFault::Tls(cause.to_string()),
        ureq::Error::Tls(reason) => HttpFault::Tls(reason.to_owned()),
        ureq::Error::ConnectionFailed => connection("no connection".to_owned()),
        ureq::Error::ConnectProxyFailed(reason) => {
            let trouble = status_in(&reason).map_or(ProxyTrouble::NoAnswer, ProxyTrouble::Status);
            HttpFault::Proxy { proxy: proxy.clone().unwrap_or_default(), trouble }
        }
        other => HttpFault::Protocol(through(other.to_string())),
    }
}

/// The status in a text of ureq's.
fn status_in(reason: &str) -> Option<u16> {
    reason.split(|letter: char| !letter.is_ascii_digit()).filter(|word| word.len() == 3).find_map(|word| word.parse().ok())
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
