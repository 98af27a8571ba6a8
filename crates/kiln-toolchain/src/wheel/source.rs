//! The bytes of a wheel: by range requests, or from a whole copy where the server has none.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use url::Url;

use crate::error::Error;
use crate::event::FetchEvent;
use crate::http::{Answer, Client, HttpError, HttpFault, Request, Response, difference, redacted};

/// What the catalog says of a wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin<'a> {
    /// File name.
    pub(crate) file: &'a str,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Sha256 of the whole file, as lower-case hexadecimal text; empty where nobody says it.
    pub(crate) sha256: &'a str,
    /// Sha256 of `RECORD`, as lower-case hexadecimal text.
    pub(crate) record_sha256: &'a str,
}

/// A wheel on a server. No byte of it is asked for twice.
pub(crate) struct Source<'a> {
    client: &'a Client<'a>,
    url: Url,
    pin: Pin<'a>,
    /// Where a whole copy goes, if it comes to that.
    copy: PathBuf,
    whole: Option<File>,
    etag: Option<String>,
    /// Bytes that are kept, by where they begin.
    kept: BTreeMap<u64, Vec<u8>>,
}

impl<'a> Source<'a> {
    /// The wheel at `url`; `copy` is the file to make if the server cannot send ranges.
    pub(crate) fn new(client: &'a Client<'a>, url: Url, pin: Pin<'a>, copy: PathBuf) -> Self {
        Self { client, url, pin, copy, whole: None, etag: None, kept: BTreeMap::new() }
    }

    /// The same with the whole copy at hand: nothing is asked of the server.
    pub(crate) fn with_copy(mut self) -> Result<Self, Error> {
        self.whole = Some(File::open(&self.copy).map_err(Error::store("open", &self.copy))?);
        Ok(self)
    }

    /// What the wheel should be.
    pub(crate) fn pin(&self) -> Pin<'a> {
        self.pin
    }

    /// The address, for messages.
    pub(crate) fn shown(&self) -> String {
        redacted(&self.url)
    }

    /// The last `len` bytes, which are kept: later reads take from them.
    pub(crate) fn read_tail(&mut self, len: u64) -> Result<Vec<u8>, Error> {
        self.keep(self.pin.size.saturating_sub(len)..self.pin.size)
    }

    /// The bytes of `range`, which are kept: later reads take from them.
    pub(crate) fn keep(&mut self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let bytes = self.read(range.clone())?;
        self.kept.retain(|start, bytes| *start < range.start || start.saturating_add(bytes.len() as u64) > range.end);
        self.kept.insert(range.start, bytes.clone());
        Ok(bytes)
    }

    /// The bytes of `range`, all of them.
    pub(crate) fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let kept = self.kept.range(..=at).find_map(|(start, bytes)| {
                let from = usize::try_from(at - start).ok()?;
                let len = usize::try_from(range.end - at).ok()?.min(bytes.len().checked_sub(from)?);
                bytes.get(from..from + len).filter(|bytes| !bytes.is_empty())
            });
            match kept {
                Some(kept) => bytes.extend_from_slice(kept),
                None => {
                    let next = self.kept.range(at..).next().map_or(range.end, |(start, _)| range.end.min(*start));
                    let fetched = self.fetch(at..next)?;
                    bytes.extend(fetched);
                }
            }
            at = range.start.saturating_add(bytes.len() as u64);
        }
        Ok(bytes)
    }

    /// Gets bytes that were not read before.
    fn fetch(&mut self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        if let Some(file) = &self.whole {
            return self.read_copy(file, &range);
        }
        match self.client.range(&self.url, &range).map_err(|cause| self.failed(cause))? {
            Answer::Part(part) => {
                if let Some(total) = part.total.filter(|total| *total != self.pin.size) {
                    return Err(self.wrong(format!("it has {total} bytes, but {} are pinned", self.pin.size)));
                }
                if let Some(reason) = difference((None, &self.etag), (None, &part.etag)) {
                    return Err(Error::Changed { file: self.pin.file.to_owned(), reason });
                }
                self.etag = part.etag;
                Ok(part.bytes)
            }
            Answer::Whole(response) => {
                let file = self.take_whole(response)?;
                let bytes = self.read_copy(&file, &range)?;
                self.whole = Some(file);
                Ok(bytes)
            }
        }
    }

    /// Reads from the whole copy.
    fn read_copy(&self, file: &File, range: &Range<u64>) -> Result<Vec<u8>, Error> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, range.start).map_err(Error::store("read", &self.copy))?;
        Ok(bytes)
    }

    /// Keeps the whole file that the server sends, and compares it with the catalog.
    fn take_whole(&self, first: Response) -> Result<File, Error> {
        let Pin { file, size, sha256, .. } = self.pin;
        if let Some(length) = first.headers.content_length.filter(|length| *length != size) {
            return Err(self.wrong(format!("it has {length} bytes, but {size} are pinned")));
        }
        self.client.tell(FetchEvent::WholeFile { file: file.to_owned(), size });
        self.client.expect(size);
        let mut first = Some(first);
        let (copy, got, digest) = self
            .client
            .retrying(&self.url, || {
                let mut response = match first.take() {
                    Some(response) => response,
                    None => self.client.send(Request::new(self.url.clone()))?.1,
                };
                let unkept = |cause: std::io::Error| HttpFault::unkept(&cause).at(&self.url);
                let mut copy = File::options().read(true).write(true).create(true).truncate(true).open(&self.copy).map_err(unkept)?;
                let mut hasher = Sha256::new();
                // One byte more than there should be tells a longer file from the right one.
                let got = self.client.copy(&self.url, &mut response, size.saturating_add(1), |piece| {
                    hasher.update(piece);
                    copy.write_all(piece)
                })?;
                if got < size {
                    return Err(HttpFault::Truncated { expected: size, got }.at(&self.url));
                }
                Ok((copy, got, HEXLOWER.encode(&hasher.finalize())))
            })
            .map_err(|cause| self.failed(cause))?;
        if got != size {
            return Err(self.wrong(format!("it has more than the {size} bytes of the catalog")));
        }
        if !sha256.is_empty() && digest != sha256 {
            return Err(self.wrong(format!("it has sha256 {digest}, but {sha256} is pinned")));
        }
        Ok(copy)
    }

    /// The error of a request.
    fn failed(&self, cause: HttpError) -> Error {
        match cause.fault {
            HttpFault::Changed(reason) => Error::Changed { file: self.pin.file.to_owned(), reason },
            HttpFault::Unkept(kind, reason) => Error::store("write", &self.copy)(std::io::Error::new(kind, reason)),
            HttpFault::Short(length) => self.wrong(format!("it has {length} bytes, but {} are pinned", self.pin.size)),
            _ => Error::fetch(&format!("`{}`", self.pin.file))(cause),
        }
    }

    /// The error of a file that is not the pinned one.
    fn wrong(&self, reason: String) -> Error {
        Error::WrongWheel { file: self.pin.file.to_owned(), url: self.shown(), reason }
    }
}
