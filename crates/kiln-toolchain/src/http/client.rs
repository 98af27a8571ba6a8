//! Redirects, retries and counting on top of a transport.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

use kiln_graph::Interrupt;

use super::agent::plain;
use super::range::unsatisfied;
use super::{
    Credentials, Headers, HttpError, HttpFault, Pieces, Request, Response, RetryPolicy, Slowest, Transport, encoding, local, redacted,
};
use crate::event::{FetchEvent, FetchSink};

/// Redirects followed for one request.
const MAX_REDIRECTS: u32 = 8;

/// A wait is cut into pieces of this length, so that an interrupt ends it.
const SLICE: Duration = Duration::from_millis(50);

/// What went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Bytes of response bodies that were read.
    pub(crate) bytes: u64,
    /// Requests, redirects and retries included.
    pub(crate) requests: u32,
}

/// A small document.
pub(crate) struct Page {
    /// The address that finally answered; relative links start there.
    pub(crate) url: Url,
    /// `Content-Type`, as sent.
    pub(crate) content_type: String,
    /// The document.
    pub(crate) bytes: Vec<u8>,
}

/// How a client works.
#[derive(Clone, Debug)]
pub(crate) struct ClientOptions {
    /// How often a request is made again.
    pub(crate) retry: RetryPolicy,
    /// How long ranges are asked for.
    pub(crate) pieces: Pieces,
    /// When an answer is too slow.
    pub(crate) slowest: Slowest,
    /// Who may see which login.
    pub(crate) credentials: Credentials,
    /// Whether only files of this machine may be read.
    pub(crate) offline: bool,
}

/// Fetches for one purpose, counted and reported together.
pub(crate) struct Client<'a> {
    transport: &'a dyn Transport,
    pub(super) options: ClientOptions,
    events: &'a FetchSink<'a>,
    interrupt: Interrupt,
    what: String,
    received: AtomicU64,
    expected: AtomicU64,
    requests: AtomicU32,
    /// Where files were found that redirects led to.
    moved: Mutex<BTreeMap<Url, Url>>,
}

impl<'a> Client<'a> {
    /// A client that reports its progress under the name `what`. Once `interrupt` is set every request fails.
    pub(crate) fn new(
        transport: &'a dyn Transport,
        options: ClientOptions,
        events: &'a FetchSink<'a>,
        interrupt: Interrupt,
        what: String,
    ) -> Self {
        let (received, expected, requests, moved) = Default::default();
        Self { transport, options, events, interrupt, what, received, expected, requests, moved }
    }

    /// What was transferred so far.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { bytes: self.received.load(Ordering::Relaxed), requests: self.requests.load(Ordering::Relaxed) }
    }

    /// Says something about the fetch.
    pub(crate) fn tell(&self, event: FetchEvent) {
        (self.events)(event);
    }

    /// Announces bytes that will be asked for.
    pub(crate) fn expect(&self, bytes: u64) {
        self.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Fetches a document of at most `limit` bytes.
    pub(crate) fn page(&self, url: &Url, accept: &'static str, limit: u64) -> Result<Page, HttpError> {
        self.retrying(url, || {
            let (found, mut response) = self.send(Request { accept: Some(accept), gzip: true, ..Request::new(url.clone()) })?;
            self.expect(response.headers.content_length.unwrap_or_default());
            let mut bytes = Vec::new();
            self.copy(&found, &mut response, limit.saturating_add(1), |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
            let bytes = encoding::decoded(&response.headers, bytes, limit).map_err(|fault| fault.at(url))?;
            Ok(Page { url: found, content_type: response.headers.content_type.unwrap_or_default(), bytes })
        })
    }

    /// Reads the rest of a whole-file answer, calling `sink` for each piece. At most `limit` bytes are read.
    pub(crate) fn copy(
        &self,
        url: &Url,
        response: &mut Response,
        limit: u64,
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, HttpError> {
        let announced = response.headers.content_length;
        let mut buffer = vec![0; 128 << 10];
        let mut got: u64 = 0;
        let Slowest { bytes: least, window } = self.options.slowest;
        let (mut since, mut before) = (Instant::now(), 0);
        while got < limit {
            self.go_on(url)?;
            let room = usize::try_from(limit - got).unwrap_or(usize::MAX).min(buffer.len());
            let Some(free) = buffer.get_mut(..room) else { break };
            let read = match response.body.read(free) {
                Ok(read) => read,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) if cause.kind() == io::ErrorKind::TimedOut => return Err(HttpFault::Stalled.at(url)),
                Err(cause) => {
                    return Err(match announced {
                        Some(expected) if got < expected => HttpFault::Truncated { expected, got }.at(url),
                        _ => HttpFault::Connection(plain(&cause)).at(url),
                    });
                }
            };
            let Some(piece) = free.get(..read).filter(|piece| !piece.is_empty()) else { break };
            got += read as u64;
            if since.elapsed() >= window {
                if got - before < least && announced.is_none_or(|announced| got < announced) {
                    return Err(HttpFault::Slow.at(url));
                }
                (since, before) = (Instant::now(), got);
            }
            let received = self.received.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
            let expected = self.expected.load(Ordering::Relaxed).max(received);
            self.tell(FetchEvent::Bytes { what: self.what.clone(), received, expected });
            sink(piece).map_err(|cause| HttpFault::unkept(&cause).at(url))?;
        }
        if announced.is_none_or(|announced| announced == got) {
            // Only a body that was read to its end gives its connection back for the next request.
            let _ = response.body.read(&mut [0]);
        }
        match announced {
            Some(expected) if got < expected.min(limit) => Err(HttpFault::Truncated { expected, got }.at(url)),
            _ => Ok(got),
        }
    }

    /// Makes `call` again while its failure may pass.
    pub(crate) fn retrying<T>(&self, url: &Url, mut call: impl FnMut() -> Result<T, HttpError>) -> Result<T, HttpError> {
        let mut attempt = 1;
        loop {
            match call() {
                Ok(value) => return Ok(value),
                Err(failure) => self.pause(url, attempt, failure)?,
            }
            attempt += 1;
        }
    }

    /// Waits before the next try, or gives the failure back if there is none.
    pub(super) fn pause(&self, url: &Url, attempt: u32, failure: HttpError) -> Result<(), HttpError> {
        let after = match self.options.retry.wait(attempt, &failure) {
            Some(after) if !self.interrupt.is_set() => after,
            _ => return Err(failure),
        };
        let reason = failure.fault.to_string();
        self.tell(FetchEvent::Retry { url: redacted(url), attempt, attempts: self.options.retry.attempts, after, reason });
        let mut left = after;
        while !left.is_zero() {
            self.go_on(url)?;
            std::thread::sleep(left.min(SLICE));
            left = left.saturating_sub(SLICE);
        }
        Ok(())
    }

    /// Fails once the fetch was interrupted.
    fn go_on(&self, url: &Url) -> Result<(), HttpError> {
        if self.interrupt.is_set() { Err(HttpFault::Connection("interrupted".to_owned()).at(url)) } else { Ok(()) }
    }

    /// Sends one request and follows redirects. A status other than 2xx is an error.
    ///
    /// Where a redirect has led for a file, later requests for it go at once. Such a place may be for a while only: when it
    /// is gone, the address that led there is asked again.
    pub(crate) fn send(&self, request: Request) -> Result<(Url, Response), HttpError> {
        let moved = self.moved().get(&request.url).cloned().filter(|_| request.range.is_some());
        if let Some(place) = moved {
            match self.follow(&request, place) {
                Err(failure) if failure.fault.is_gone() => self.moved().remove(&request.url),
                answer => return answer,
            };
        }
        let (found, response) = self.follow(&request, request.url.clone())?;
        if found != request.url && request.range.is_some() {
            self.moved().insert(request.url, found.clone());
        }
        Ok((found, response))
    }

    fn moved(&self) -> MutexGuard<'_, BTreeMap<Url, Url>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `request` to `at` and to where redirects lead from there.
    fn follow(&self, request: &Request, mut at: Url) -> Result<(Url, Response), HttpError> {
        for _ in 0..=MAX_REDIRECTS {
            self.go_on(&at)?;
            let sent = Request { url: at.clone(), authorization: self.options.credentials.header_for(&at), ..request.clone() };
            let response = if at.scheme() == "file" {
                local::get(&sent)?
            } else if self.options.offline {
                return Err(HttpFault::Offline.at(&at));
            } else {
                self.requests.fetch_add(1, Ordering::Relaxed);
                self.transport.get(&sent)?
            };
            match response.status {
                200..=299 => return Ok((at, response)),
                301 | 302 | 303 | 307 | 308 => at = redirected(&at, &response.headers)?,
                416 if unsatisfied(&response.headers).is_some() => {
                    return Err(HttpFault::Short(unsatisfied(&response.headers).unwrap_or_default()).at(&at));
                }
                status => {
                    let retry_after = response.headers.retry_after;
                    return Err(HttpError { retry_after, ..HttpFault::Status(status).at(&at) });
                }
            }
        }
        Err(HttpFault::Protocol(format!("more than {MAX_REDIRECTS} redirects")).at(&request.url))
    }
}

/// Where a redirect leads.
fn redirected(from: &Url, headers: &Headers) -> Result<Url, HttpError> {
    let protocol = |reason: &str| HttpFault::Protocol(reason.to_owned()).at(from);
    let location = headers.location.as_deref().ok_or_else(|| protocol("a redirect that leads nowhere"))?;
    let mut to = from.join(location).map_err(|_| protocol("a redirect to something that is no address"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(protocol("a redirect to an address that is neither `https:` nor `http:`"));
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(protocol("a redirect to an address without TLS"));
    }
    let _ = to.set_username("");
    let _ = to.set_password(None);
    Ok(to)
}
