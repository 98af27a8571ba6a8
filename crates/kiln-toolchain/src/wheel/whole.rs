//! A wheel that is read whole: only to pin it, or to make again what its pin stands for.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use url::Url;

use crate::error::Error;
use crate::http::{Answer, Client, HttpFault, Request, Response, difference, redacted};

/// What is asked for at a time: what a broken connection can lose at most, and what is held in memory.
const PIECE: u64 = 16 << 20;

/// The largest file that is taken: a few times the largest wheel of torch.
const LARGEST: u64 = 8 << 30;

/// Fetches the file at `url` to `copy`, which must not be there. Gives it with its size and its sha256 in lower-case hexadecimal
/// digits, which the caller compares; `name` is for messages.
pub(crate) fn fetch_whole(client: &Client<'_>, url: &Url, name: &str, copy: &Path) -> Result<(File, u64, String), Error> {
    let failed = |cause: crate::http::HttpError| match cause.fault {
        HttpFault::Changed(reason) => Error::Changed { file: name.to_owned(), reason },
        HttpFault::Unkept(kind, reason) => Error::store("write", copy)(std::io::Error::new(kind, reason)),
        _ => Error::fetch(&format!("`{name}`"))(cause),
    };
    let mut file = File::options().read(true).write(true).create_new(true).open(copy).map_err(Error::store("create", copy))?;
    let (mut hasher, mut at) = (Sha256::new(), 0);
    let mut known: Option<(u64, Option<String>)> = None;
    loop {
        let range: Range<u64> = match &known {
            None => 0..1,
            Some((total, _)) => at..at.saturating_add(PIECE).min(*total),
        };
        if range.is_empty() {
            break;
        }
        match client.range(url, &range).map_err(failed)? {
            Answer::Part(part) => {
                let total = part
                    .total
                    .ok_or_else(|| failed(HttpFault::Protocol("the server does not say how long the file is".to_owned()).at(url)))?;
                if total > LARGEST {
                    return Err(Error::TooLarge { file: name.to_owned(), size: total, largest: LARGEST });
                }
                if let Some((before, etag)) = &known
                    && let Some(reason) = difference((Some(*before), etag), (Some(total), &part.etag))
                {
                    return Err(Error::Changed { file: name.to_owned(), reason });
                }
                known.get_or_insert((total, part.etag));
                file.write_all(&part.bytes).map_err(Error::store("write", copy))?;
                hasher.update(&part.bytes);
                at = at.saturating_add(part.bytes.len() as u64);
            }
            Answer::Whole(response) => return stream(client, url, response, copy, file).map_err(failed),
        }
    }
    Ok((file, at, HEXLOWER.encode(&hasher.finalize())))
}

/// Takes the whole file from a server that knows no ranges.
fn stream(
    client: &Client<'_>,
    url: &Url,
    first: Response,
    copy: &Path,
    mut file: File,
) -> Result<(File, u64, String), crate::http::HttpError> {
    let mut first = Some(first);
    let (size, digest) = client.retrying(url, || {
        let mut response = match first.take() {
            Some(response) => response,
            None => client.send(Request::new(url.clone()))?.1,
        };
        let unkept = |cause: std::io::Error| HttpFault::unkept(&cause).at(url);
        file = File::options().read(true).write(true).create(true).truncate(true).open(copy).map_err(unkept)?;
        let mut hasher = Sha256::new();
        let size = client.copy(url, &mut response, LARGEST, |piece| {
            hasher.update(piece);
            file.write_all(piece)
        })?;
        Ok((size, HEXLOWER.encode(&hasher.finalize())))
    })?;
    tracing::debug!(url = redacted(url), size, "taken whole");
    Ok((file, size, digest))
}
