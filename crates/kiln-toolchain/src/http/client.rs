//! Redirects, retries and counting on top of a transport.

use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use url::Url;

use kiln_graph::Interrupt;

use super::agent::plain;
use super::{Credentials, Headers, HttpError, HttpFault, Request, Response, Transport, redacted};
use crate::event::{FetchEvent, FetchSink};

/// Redirects followed for one request.
const MAX_REDIRECTS: u32 = 8;

/// A connection that breaks after this many bytes has shown that it works: tries are counted anew.
const PROGRESS: usize = 256 << 10;

/// A wait is cut into pieces of this length, so that an interrupt ends it.
const SLICE: Duration = Duration::from_millis(50);

/// The longest wait that a server's `Retry-After` may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How often a request is made again when its failure may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all; at least 1.
    pub attempts: u32,
    /// Wait before the second try; doubled for each one after it, and lengthened by up to a half at random.
    pub first_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_delay: Duration::from_millis(500) }
    }
}

/// What went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Bytes of response bodies that were read.
    pub(crate) bytes: u64,
    /// Requests, redirects and retries included.
    pub(crate) requests: u32,
}

/// The answer to a request for a range.
pub(crate) enum Answer {
    /// The bytes that were asked for.
    Part(Part),
    /// The server does not do ranges: its whole file, not yet read.
    Whole(Response),
}

/// A range of a file, and what the server says of the file.
pub(crate) struct Part {
    /// The bytes that were asked for, all of them.
    pub(crate) bytes: Vec<u8>,
    /// Length of the whole file, where the server says it.
    pub(crate) total: Option<u64>,
    /// `ETag` of the file.
    pub(crate) etag: Option<String>,
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

/// Fetches for one purpose, counted and reported together.
pub(crate) struct Client<'a> {
    transport: &'a dyn Transport,
    retry: RetryPolicy,
    credentials: Option<&'a Credentials>,
    events: &'a FetchSink<'a>,
    interrupt: Interrupt,
    what: String,
    received: AtomicU64,
    expected: AtomicU64,
    requests: AtomicU32,
}

impl<'a> Client<'a> {
    /// A client that reports its progress under the name `what`. Once `interrupt` is set every request fails.
    pub(crate) fn new(
        transport: &'a dyn Transport,
        retry: RetryPolicy,
        credentials: Option<&'a Credentials>,
        events: &'a FetchSink<'a>,
        interrupt: Interrupt,
        what: String,
    ) -> Self {
        let (received, expected, requests) = Default::default();
        Self { transport, retry, credentials, events, interrupt, what, received, expected, requests }
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
            let (found, mut response) = self.send(url, None, Some(accept))?;
            let length = response.headers.content_length;
            if length.is_some_and(|length| length > limit) {
                return Err(HttpFault::Protocol(format!("the page is longer than {limit} bytes")).at(url));
            }
            self.expect(length.unwrap_or_default());
            let mut bytes = Vec::new();
            self.copy(&found, &mut response, limit.saturating_add(1), |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
            if bytes.len() as u64 > limit {
                return Err(HttpFault::Protocol(format!("the page is longer than {limit} bytes")).at(url));
            }
            Ok(Page { url: found, content_type: response.headers.content_type.unwrap_or_default(), bytes })
        })
    }

    /// Fetches bytes of a file. After a broken connection only what is missing is asked for again.
    pub(crate) fn range(&self, url: &Url, range: &Range<u64>) -> Result<Answer, HttpError> {
        self.expect(range.end.saturating_sub(range.start));
        let mut part = Part { bytes: Vec::new(), total: None, etag: None };
        let mut attempt = 1;
        loop {
            let before = part.bytes.len();
            match self.range_once(url, range, &mut part) {
                Ok(None) => return Ok(Answer::Part(part)),
                Ok(Some(whole)) => return Ok(Answer::Whole(whole)),
                Err(failure) => {
                    if part.bytes.len().saturating_sub(before) >= PROGRESS {
                        attempt = 1;
                    }
                    self.pause(url, attempt, failure)?;
                    attempt += 1;
                }
            }
        }
    }

    /// One try for what is still missing of a range. Gives the response back if it is the whole file.
    fn range_once(&self, url: &Url, range: &Range<u64>, part: &mut Part) -> Result<Option<Response>, HttpError> {
        let missing = range.start.saturating_add(part.bytes.len() as u64)..range.end;
        let (found, mut response) = self.send(url, Some(missing.clone()), None)?;
        if response.status != 206 {
            return Ok(Some(response));
        }
        let protocol = |reason: String| HttpFault::Protocol(reason).at(url);
        let (start, end, total) = content_range(&response.headers)
            .ok_or_else(|| protocol("the server answers a range request without saying which range it sends".to_owned()))?;
        if start != missing.start || end > missing.end {
            let (first, last) = (missing.start, missing.end.saturating_sub(1));
            return Err(protocol(format!("the server was asked for bytes {first}-{last} and sends {start}-{}", end.saturating_sub(1))));
        }
        if part.bytes.is_empty() {
            (part.total, part.etag) = (total, response.headers.etag.clone());
        } else if let Some(reason) = difference((part.total, &part.etag), (total, &response.headers.etag)) {
            return Err(HttpFault::Changed(reason).at(url));
        }
        let (wanted, before) = (missing.end.saturating_sub(missing.start), part.bytes.len());
        self.copy(&found, &mut response, wanted, |piece| {
            part.bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let got = part.bytes.len().saturating_sub(before) as u64;
        if got < wanted {
            return Err(HttpFault::Truncated { expected: wanted, got }.at(url));
        }
        Ok(None)
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
            let received = self.received.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
            let expected = self.expected.load(Ordering::Relaxed).max(received);
            self.tell(FetchEvent::Bytes { what: self.what.clone(), received, expected });
            sink(piece).map_err(|cause| HttpFault::Connection(format!("cannot keep the answer: {cause}")).at(url))?;
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
    fn pause(&self, url: &Url, attempt: u32, failure: HttpError) -> Result<(), HttpError> {
        if attempt >= self.retry.attempts || !failure.fault.is_transient() || self.interrupt.is_set() {
            return Err(failure);
        }
        let doubled = self.retry.first_delay.saturating_mul(1 << (attempt - 1).min(6));
        let after = failure.retry_after.unwrap_or_else(|| doubled + doubled.mul_f64(random() / 2.0)).min(MAX_RETRY_AFTER);
        let reason = failure.fault.to_string();
        self.tell(FetchEvent::Retry { url: redacted(url), attempt, attempts: self.retry.attempts, after, reason });
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
    pub(crate) fn send(&self, url: &Url, range: Option<Range<u64>>, accept: Option<&'static str>) -> Result<(Url, Response), HttpError> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.go_on(&at)?;
            let authorization = self.credentials.and_then(|known| known.header_for(&at)).map(str::to_owned);
            self.requests.fetch_add(1, Ordering::Relaxed);
            let response = self.transport.get(&Request { url: at.clone(), range: range.clone(), accept, authorization })?;
            match response.status {
                200..=299 => return Ok((at, response)),
                301 | 302 | 303 | 307 | 308 => at = redirected(&at, &response.headers)?,
                status => {
                    let retry_after = response.headers.retry_after;
                    return Err(HttpError { retry_after, ..HttpFault::Status(status).at(&at) });
                }
            }
        }
        Err(HttpFault::Protocol(format!("more than {MAX_REDIRECTS} redirects")).at(url))
    }
}

/// Says how the whole file of one answer differs from that of another, by length and `ETag`.
pub(crate) fn difference(before: (Option<u64>, &Option<String>), now: (Option<u64>, &Option<String>)) -> Option<String> {
    match (before, now) {
        ((Some(before), _), (Some(now), _)) if before != now => Some(format!("it had {before} bytes, now {now}")),
        ((_, Some(before)), (_, Some(now))) if before != now => Some("its `ETag` is another one".to_owned()),
        _ => None,
    }
}

/// Where a redirect leads.
fn redirected(from: &Url, headers: &Headers) -> Result<Url, HttpError> {
    let protocol = |reason: &str| HttpFault::Protocol(reason.to_owned()).at(from);
    let location = headers.location.as_deref().ok_or_else(|| protocol("a redirect that leads nowhere"))?;
    let mut to = from.join(location).map_err(|_| protocol("a redirect to something that is no address"))?;
    if !matches!(to.scheme(), "http" | "https") || (from.scheme() == "https" && to.scheme() == "http") {
        return Err(protocol("a redirect to an address without TLS"));
    }
    let _ = to.set_username("");
    let _ = to.set_password(None);
    Ok(to)
}

/// First byte, end (exclusive) and length of the whole file of a `Content-Range` header.
fn content_range(headers: &Headers) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = headers.content_range.as_deref()?.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        number => Some(number.parse().ok()?),
    };
    (first <= last && total.is_none_or(|total| last < total)).then(|| (first, last.saturating_add(1), total))
}

/// A number from 0 to 1 that differs between processes, so that they do not all come back at once.
fn random() -> f64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1_u64 << 53) as f64
}
