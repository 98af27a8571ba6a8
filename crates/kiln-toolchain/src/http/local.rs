//! Files of this machine, answered as a server would answer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::{Headers, HttpError, HttpFault, Request, Response};

/// Answers a request for a `file:` address.
pub(super) fn get(request: &Request) -> Result<Response, HttpError> {
    let failed = |cause: io::Error| HttpFault::Local(cause.to_string()).at(&request.url);
    let path = request.url.to_file_path().map_err(|()| HttpFault::Local("it is no path on this machine".to_owned()).at(&request.url))?;
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(empty(404)),
        Err(cause) => return Err(failed(cause)),
    };
    let stat = file.metadata().map_err(failed)?;
    if !stat.is_file() {
        return Err(HttpFault::Local("it is no file".to_owned()).at(&request.url));
    }
    let total = stat.len();
    let content_type = match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" | "htm" => Some("text/html"),
        "json" => Some("application/json"),
        _ => None,
    };
    let headers = Headers { content_type: content_type.map(str::to_owned), ..Headers::default() };
    let Some(range) = &request.range else {
        return Ok(Response { status: 200, headers: Headers { content_length: Some(total), ..headers }, body: Box::new(file) });
    };
    let end = range.end.min(total);
    if range.start >= end {
        return Ok(Response { headers: Headers { content_range: Some(format!("bytes */{total}")), ..headers }, ..empty(416) });
    }
    file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
    let len = end - range.start;
    let headers =
        Headers { content_length: Some(len), content_range: Some(format!("bytes {}-{}/{total}", range.start, end - 1)), ..headers };
    Ok(Response { status: 206, headers, body: Box::new(file.take(len)) })
}

fn empty(status: u16) -> Response {
    Response { status, headers: Headers::default(), body: Box::new(io::empty()) }
}
