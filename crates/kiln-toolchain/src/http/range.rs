//! Ranges of files: asked for, checked, and resumed where they broke off.

use std::ops::Range;

use url::Url;

use super::{Client, Headers, HttpError, HttpFault, Request, Response, encoding};

/// A connection that breaks after this many bytes has shown that it works: tries are counted anew.
const PROGRESS: usize = 256 << 10;

/// How a long range is asked for: in several requests at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Bytes that a piece has at least.
    pub size: u64,
    /// Requests at the same time, at most.
    pub parallel: u64,
}

impl Default for Pieces {
    /// The headers of a torch release come in two pieces: more would cost more requests than they save time.
    fn default() -> Self {
        Self { size: 4 << 20, parallel: 3 }
    }
}

impl Pieces {
    /// Cuts a range.
    fn cut(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let len = range.end.saturating_sub(range.start);
        let count = len.checked_div(self.size).unwrap_or(1).clamp(1, self.parallel.max(1));
        let place = |index: u64| range.start + len / count * index;
        (0..count).map(|index| place(index)..if index + 1 == count { range.end } else { place(index + 1) }).collect()
    }
}

/// The answer to a request for a range.
pub(crate) enum Answer {
    /// The bytes that were asked for.
    Part(Part),
    /// The server does not do ranges: its whole file, not yet read.
    Whole(Response),
}

/// A range of a file, and what the server says of the file.
#[derive(Default)]
pub(crate) struct Part {
    /// The bytes that were asked for, all of them.
    pub(crate) bytes: Vec<u8>,
    /// Length of the whole file, where the server says it.
    pub(crate) total: Option<u64>,
    /// `ETag` of the file.
    pub(crate) etag: Option<String>,
}

impl Client<'_> {
    /// Fetches bytes of a file, long ranges in several pieces at the same time. After a broken connection only what is
    /// missing is asked for again.
    pub(crate) fn range(&self, url: &Url, range: &Range<u64>) -> Result<Answer, HttpError> {
        self.expect(range.end.saturating_sub(range.start));
        let pieces = self.options.pieces.cut(range);
        if pieces.len() < 2 {
            return self.piece(url, range);
        }
        let answers: Vec<Result<Answer, HttpError>> = std::thread::scope(|scope| {
            let running: Vec<_> = pieces.iter().map(|piece| scope.spawn(|| self.piece(url, piece))).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let mut whole = Part::default();
        for answer in answers {
            match answer? {
                Answer::Part(part) if whole.bytes.is_empty() => whole = part,
                Answer::Part(part) => {
                    if let Some(reason) = difference((whole.total, &whole.etag), (part.total, &part.etag)) {
                        return Err(HttpFault::Changed(reason).at(url));
                    }
                    whole.bytes.extend(part.bytes);
                }
                file @ Answer::Whole(_) => return Ok(file),
            }
        }
        Ok(Answer::Part(whole))
    }

    /// Fetches one piece.
    fn piece(&self, url: &Url, range: &Range<u64>) -> Result<Answer, HttpError> {
        let mut part = Part::default();
        let mut attempt = 1;
        loop {
            let before = part.bytes.len();
            match self.piece_once(url, range, &mut part) {
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
    fn piece_once(&self, url: &Url, range: &Range<u64>, part: &mut Part) -> Result<Option<Response>, HttpError> {
        let missing = range.start.saturating_add(part.bytes.len() as u64)..range.end;
        let resumed = !part.bytes.is_empty();
        // Only a strong `ETag` says that every byte is the same (RFC 9110, 13.1.5).
        let if_range = part.etag.clone().filter(|etag| resumed && !etag.starts_with("W/"));
        let (found, mut response) = self.send(Request { range: Some(missing.clone()), if_range, ..Request::new(url.clone()) })?;
        let protocol = |reason: String| HttpFault::Protocol(reason).at(url);
        if !encoding::is_plain(&response.headers) {
            return Err(protocol("the server compresses the file: places in it cannot be asked for".to_owned()));
        }
        if response.status != 206 {
            return match difference((None, &part.etag), (None, &response.headers.etag)).filter(|_| resumed) {
                Some(reason) => Err(HttpFault::Changed(reason).at(url)),
                None => Ok(Some(response)),
            };
        }
        let (start, end, total) = content_range(&response.headers).ok_or_else(|| protocol(unclear_range(&response.headers)))?;
        if start != missing.start || end > missing.end {
            let (first, last) = (missing.start, missing.end.saturating_sub(1));
            return Err(protocol(format!("the server was asked for bytes {first}-{last} and sends {start}-{}", end.saturating_sub(1))));
        }
        if !resumed {
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
}

/// Says how the whole file of one answer differs from that of another, by length and `ETag`.
pub(crate) fn difference(before: (Option<u64>, &Option<String>), now: (Option<u64>, &Option<String>)) -> Option<String> {
    match (before, now) {
        ((Some(before), _), (Some(now), _)) if before != now => Some(format!("it had {before} bytes, now {now}")),
        ((_, Some(before)), (_, Some(now))) if before != now => Some("its `ETag` is another one".to_owned()),
        _ => None,
    }
}

/// What is wrong with an answer of which it is not clear which range it is.
fn unclear_range(headers: &Headers) -> String {
    match headers.content_range.as_deref() {
        Some(said) => {
            let said: String = said.chars().take(60).collect();
            format!("the server answers a range request with `{}`, which is no range of a file", said.escape_debug())
        }
        None => "the server answers a range request without saying which range it sends".to_owned(),
    }
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

/// Length of the whole file, from the `Content-Range` of an answer that no such range exists (RFC 9110, 15.5.17).
pub(super) fn unsatisfied(headers: &Headers) -> Option<u64> {
    headers.content_range.as_deref()?.trim().strip_prefix("bytes ")?.trim().strip_prefix("*/")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ranges_are_cut_without_gaps() {
        let pieces = Pieces { size: 10, parallel: 3 };
        assert_eq!(pieces.cut(&(5..24)), vec![5..24; 1]);
        assert_eq!(pieces.cut(&(5..26)), [5..15, 15..26]);
        assert_eq!(pieces.cut(&(0..1001)), [0..333, 333..666, 666..1001]);
        assert_eq!(Pieces { size: 0, parallel: 0 }.cut(&(0..9)), vec![0..9; 1]);
        assert_eq!(pieces.cut(&(7..7)), vec![7..7; 1]);
    }

    #[test]
    fn content_ranges() {
        let headers = |text: &str| Headers { content_range: Some(text.to_owned()), ..Headers::default() };
        let read = |text: &str| content_range(&headers(text));
        assert_eq!(read("bytes 0-9/100"), Some((0, 10, Some(100))));
        assert_eq!(read(" bytes 5-5/*"), Some((5, 6, None)));
        for text in ["", "bytes 9-0/100", "bytes 0-100/100", "bytes */100", "items 0-9/100", "bytes 0-9", "bytes 0-x/10"] {
            assert_eq!(read(text), None, "{text}");
            assert!(unclear_range(&headers(text)).contains(&format!("with `{text}`, which is no range")), "{text}");
        }
        assert!(unclear_range(&Headers::default()).contains("without saying which range it sends"));
        assert_eq!(unsatisfied(&headers("bytes */100")), Some(100));
        assert_eq!(unsatisfied(&headers("bytes 0-1/100")), None);
    }
}
