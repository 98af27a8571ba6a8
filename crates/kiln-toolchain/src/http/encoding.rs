//! Bodies as they are meant: what came compressed is inflated.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use super::{Headers, HttpFault};

/// The document behind `body`, which may have at most `limit` bytes.
pub(super) fn decoded(headers: &Headers, body: Vec<u8>, limit: u64) -> Result<Vec<u8>, HttpFault> {
    let too_long = || HttpFault::Protocol(format!("the page is longer than {limit} bytes"));
    let encoding = headers.content_encoding.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
    let plain = match encoding.as_str() {
        "" | "identity" => body,
        "gzip" | "x-gzip" => {
            let mut plain = Vec::new();
            let mut decoder = MultiGzDecoder::new(body.as_slice()).take(limit.saturating_add(1));
            decoder.read_to_end(&mut plain).map_err(|_| HttpFault::Protocol("the page is compressed and damaged".to_owned()))?;
            plain
        }
        other => return Err(HttpFault::Protocol(format!("the page is encoded as `{}`, which was not asked for", other.escape_default()))),
    };
    if plain.len() as u64 > limit { Err(too_long()) } else { Ok(plain) }
}

/// Whether the bytes of the body are those of the file.
pub(super) fn is_plain(headers: &Headers) -> bool {
    headers.content_encoding.as_deref().is_none_or(|encoding| matches!(encoding.trim(), "" | "identity"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn headers(encoding: &str) -> Headers {
        Headers { content_encoding: Some(encoding.to_owned()), ..Headers::default() }
    }

    #[test]
    fn pages_are_inflated_within_their_limit() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&[b'x'; 100_000]).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(decoded(&headers("GZIP"), packed.clone(), 100_000).unwrap(), vec![b'x'; 100_000]);
        let message = |encoding: &str, body: &[u8]| decoded(&headers(encoding), body.to_vec(), 99_999).unwrap_err().to_string();
        assert_eq!(message("gzip", &packed), "the page is longer than 99999 bytes");
        assert_eq!(message("gzip", &packed[..50]), "the page is compressed and damaged");
        assert_eq!(message("gzip", b"<html>"), "the page is compressed and damaged");
        assert_eq!(message("br", b"x"), "the page is encoded as `br`, which was not asked for");
    }
}
