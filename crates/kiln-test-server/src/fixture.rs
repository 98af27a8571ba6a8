//! An index of synthetic wheels, with faults on request.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::http::{Ending, Framing, Request, Response, Server, lock};
use crate::log::Log;
use crate::wheel::Wheel;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server ignores `Range` and sends the whole file with status 200.
    NoRanges,
    /// It answers with this status and a short text.
    Status(u16),
    /// It answers with this status and asks to be left alone for so many seconds.
    RetryAfter(u16, u32),
    /// It closes the connection after this many bytes of the body.
    Cut(u64),
    /// It announces this many bytes fewer than it was asked for, and sends no more.
    Short(u64),
    /// It goes silent after this many bytes of the body, without closing the connection.
    Stall(u64),
    /// It sends a byte at a time, with so many milliseconds between two.
    Trickle(u64),
    /// It closes the connection instead of answering.
    Hangup,
    /// It redirects to the same path with a prefix that serves the same.
    Redirect,
    /// It redirects to the same path of the server with this address, with a signature behind it.
    RedirectTo(String),
    /// It says that there are no such bytes (416), the file having so many.
    NoSuchBytes(u64),
    /// It sends a body that is said to be compressed by gzip, and is not.
    FalseGzip,
    /// It redirects for ever.
    RedirectLoop,
    /// It sends another range than the one it was asked for, so many bytes further on.
    OtherRange(u64),
    /// The byte at this place of the file is another one, in every answer.
    Corrupt(u64),
    /// It answers with this content type and body.
    Other(&'static str, &'static str),
    /// The file has another `ETag`.
    OtherEtag,
    /// It tells in this way where its answer ends.
    Framed(Framing),
    /// It answers a request for a range with 206, without saying which range it is.
    NoContentRange,
    /// It answers a request for a range with 206 and a body in parts.
    Multipart,
    /// It redirects to this address, whatever it is.
    RedirectAnywhere(String),
    /// The file is said to be so many bytes longer.
    OtherLength(u64),
}

/// What a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Pages of the index.
    Pages,
    /// Files.
    Files,
}

/// A fault in force.
#[derive(Clone, Debug)]
struct Active {
    target: Target,
    fault: Fault,
    /// Requests to let pass first.
    after: u32,
    /// Requests to spoil; all if none.
    times: Option<u32>,
}

/// A file of the index.
#[derive(Clone, Debug)]
struct File {
    project: String,
    bytes: Arc<Vec<u8>>,
    listed_sha256: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    faults: Vec<Active>,
    html_only: bool,
    plain: bool,
    flat: bool,
    /// Why files were withdrawn, by name.
    yanked: BTreeMap<String, String>,
    signature: String,
    password: Option<String>,
}

/// A running index. The address of its simple index is [`FixtureServer::index`].
pub struct FixtureServer {
    server: Server,
    state: Arc<Mutex<State>>,
}

impl FixtureServer {
    /// Starts an empty index.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start() -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(0, None, Box::new(move |request| answer(&shared, request)))?;
        Ok(Self { server, state })
    }

    /// Adds a wheel, listed with its right sha256.
    pub fn add(&self, project: &str, wheel: &Wheel) {
        self.add_file(project, &wheel.file, wheel.bytes.clone(), Some(HEXLOWER.encode(&Sha256::digest(&wheel.bytes))));
    }

    /// Adds a file, listed with this sha256 or none.
    pub fn add_file(&self, project: &str, file: &str, bytes: Vec<u8>, listed_sha256: Option<String>) {
        lock(&self.state).files.insert(file.to_owned(), File { project: project.to_owned(), bytes: Arc::new(bytes), listed_sha256 });
    }

    /// Removes a file.
    pub fn remove(&self, file: &str) {
        lock(&self.state).files.remove(file);
    }

    /// Withdraws a file: it is still listed and there.
    pub fn yank(&self, file: &str, reason: &str) {
        lock(&self.state).yanked.insert(file.to_owned(), reason.to_owned());
    }

    /// Spoils every answer from now on.
    pub fn fault(&self, target: Target, fault: Fault) {
        self.fault_times(target, fault, 0, None);
    }

    /// Spoils some answers: lets `after` requests pass, then spoils `times`.
    pub fn fault_times(&self, target: Target, fault: Fault, after: u32, times: Option<u32>) {
        lock(&self.state).faults.push(Active { target, fault, after, times });
    }

    /// Ends all faults.
    pub fn heal(&self) {
        lock(&self.state).faults.clear();
    }

    /// Answers with HTML pages only.
    pub fn html_only(&self) {
        lock(&self.state).html_only = true;
    }

    /// Compresses nothing.
    pub fn plain(&self) {
        lock(&self.state).plain = true;
    }

    /// Has one page at `/simple/` with all files, and no pages of projects.
    pub fn flat(&self) {
        lock(&self.state).flat = true;
    }

    /// Lists files with this query in their addresses.
    pub fn sign(&self, query: &str) {
        lock(&self.state).signature = format!("?{query}");
    }

    /// Demands this user name and password (as `user:password`).
    pub fn demand(&self, credentials: &str) {
        lock(&self.state).password = Some(credentials.to_owned());
    }

    /// Address of the simple index.
    pub fn index(&self) -> String {
        format!("{}/simple/", self.server.url())
    }

    /// Address of the server.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// What was served so far.
    pub fn log(&self) -> Log {
        self.server.log()
    }

    /// Forgets what was served so far.
    pub fn clear_log(&self) {
        self.server.clear_log();
    }

    /// Stops the server: its port refuses connections.
    pub fn stop(&mut self) {
        self.server.stop();
    }
}

/// Answers a request.
fn answer(state: &Mutex<State>, request: &Request) -> Response {
    let mut state = lock(state);
    if let Some(credentials) = &state.password {
        let wanted = format!("Basic {}", data_encoding::BASE64.encode(credentials.as_bytes()));
        if request.headers.get("authorization") != Some(&wanted) {
            return Response::new(401, "who are you?\n");
        }
    }
    let path = request.path.strip_prefix("/elsewhere").unwrap_or(&request.path).to_owned();
    let redirected = path != request.path;
    if path == "/simple/" && state.flat {
        return page(&state, None, request);
    }
    if let Some(project) = path.strip_prefix("/simple/").and_then(|rest| rest.strip_suffix('/')).filter(|project| !project.is_empty()) {
        let faults = take_faults(&mut state, Target::Pages, redirected);
        let response = if !state.flat && state.files.values().any(|file| file.project == project) {
            page(&state, Some(project), request)
        } else {
            Response::new(404, "no such project\n")
        };
        return faults.iter().fold(response, |response, fault| spoil(response, fault, request));
    }
    let file = path.strip_prefix("/files/").and_then(|name| state.files.get(name)).cloned();
    let faults = take_faults(&mut state, Target::Files, redirected);
    drop(state);
    let response = match file {
        Some(file) => part(&file, request, &faults),
        None => Response::new(404, "no such file\n"),
    };
    faults.iter().fold(response, |response, fault| spoil(response, fault, request))
}

/// The faults that count for this request.
fn take_faults(state: &mut State, target: Target, redirected: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for active in state.faults.iter_mut().filter(|active| active.target == target) {
        if redirected && active.fault == Fault::Redirect {
            continue;
        }
        if active.after > 0 {
            active.after -= 1;
            continue;
        }
        match &mut active.times {
            Some(0) => continue,
            Some(times) => *times -= 1,
            None => {}
        }
        faults.push(active.fault.clone());
    }
    faults
}

/// The page of a project, or of all.
fn page(state: &State, project: Option<&str>, request: &Request) -> Response {
    let respond = |body: String| {
        if request.accepts_gzip() && !state.plain { Response::gzip(200, body.as_bytes()) } else { Response::new(200, body) }
    };
    let files: Vec<(&String, &File)> =
        state.files.iter().filter(|(_, file)| project.is_none_or(|project| file.project == project)).collect();
    if request.accepts_json() && !state.html_only {
        let files: Vec<serde_json::Value> = files
            .iter()
            .map(|(name, file)| {
                let hashes =
                    file.listed_sha256.as_ref().map_or_else(|| serde_json::json!({}), |sha256| serde_json::json!({ "sha256": sha256 }));
                let mut listed = serde_json::json!({ "filename": name, "url": format!("../../files/{name}{}", state.signature), "hashes": hashes, "size": file.bytes.len() });
                if let Some(reason) = state.yanked.get(*name) {
                    listed["yanked"] = reason.as_str().into();
                }
                listed
            })
            .collect();
        let page = serde_json::json!({ "meta": { "api-version": "1.1" }, "name": project.unwrap_or_default(), "files": files });
        return respond(page.to_string()).with("content-type", "application/vnd.pypi.simple.v1+json");
    }
    let mut html = "<!DOCTYPE html>\n<html><body>\n".to_owned();
    for (name, file) in files {
        let fragment = file.listed_sha256.as_ref().map_or_else(String::new, |sha256| format!("#sha256={sha256}"));
        html.push_str(&format!("<a href=\"/files/{name}{}{fragment}\">{name}</a><br/>\n", state.signature));
    }
    html.push_str("</body></html>\n");
    respond(html).with("content-type", "text/html; charset=utf-8")
}

/// A file or a part of it.
fn part(file: &File, request: &Request, faults: &[Fault]) -> Response {
    let mut bytes = Arc::clone(&file.bytes);
    let mut shift = 0;
    let mut longer = 0;
    for fault in faults {
        match fault {
            Fault::Corrupt(at) => {
                let byte = usize::try_from(*at).ok().and_then(|at| Arc::make_mut(&mut bytes).get_mut(at));
                byte.into_iter().for_each(|byte| *byte ^= 1);
            }
            Fault::OtherRange(by) => shift = *by,
            Fault::OtherLength(by) => longer = *by,
            _ => {}
        }
    }
    let len = bytes.len() as u64;
    let etag = if faults.contains(&Fault::OtherEtag) { "\"two\"" } else { "\"one\"" };
    let unchanged = request.headers.get("if-range").is_none_or(|known| known == etag);
    let range = request.range(len).filter(|_| unchanged && !faults.contains(&Fault::NoRanges));
    let response = match range {
        None => {
            let mut response = Response::new(200, bytes.to_vec());
            response.range = Some(0..len);
            response
        }
        Some(range) => {
            let range = range.start + shift..(range.end + shift).min(len);
            let piece = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
            let piece = piece.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default();
            let mut response = Response::new(206, piece);
            response.headers.push(("content-range", format!("bytes {}-{}/{}", range.start, range.end - 1, len + longer)));
            response.range = Some(range);
            response
        }
    };
    response.with("etag", etag).with("accept-ranges", "bytes")
}

/// The answer with a fault.
fn spoil(mut response: Response, fault: &Fault, request: &Request) -> Response {
    match fault {
        Fault::NoRanges | Fault::OtherRange(_) | Fault::Corrupt(_) | Fault::OtherEtag | Fault::OtherLength(_) => response,
        Fault::Status(status) => Response::new(*status, "as was asked for\n"),
        Fault::Other(kind, body) => Response::new(200, *body).with("content-type", *kind),
        Fault::RetryAfter(status, seconds) => Response::new(*status, "later\n").with("retry-after", seconds.to_string()),
        Fault::Cut(bytes) => {
            response.ending = Ending::Cut(*bytes);
            response
        }
        Fault::Short(bytes) => {
            let kept = response.length.saturating_sub(*bytes);
            response.length = kept;
            response.body = Box::new(io::Read::take(response.body, kept));
            response.range = response.range.map(|range| range.start..range.start + kept);
            response
        }
        Fault::Trickle(ms) => {
            response.ending = Ending::Trickle(*ms);
            response
        }
        Fault::Stall(bytes) => {
            response.ending = Ending::Stalled(*bytes);
            response
        }
        Fault::Hangup => {
            let mut response = Response::new(500, "");
            response.ending = Ending::Hangup;
            response
        }
        Fault::Redirect => Response::new(302, "").with("location", format!("/elsewhere{}", request.path)),
        Fault::RedirectTo(server) => Response::new(302, "").with("location", format!("{server}{}?signature=hush", request.path)),
        Fault::NoSuchBytes(length) => Response::new(416, "").with("content-range", format!("bytes */{length}")),
        Fault::FalseGzip => response.with("content-encoding", "gzip"),
        Fault::Framed(framing) => {
            response.framing = *framing;
            response
        }
        Fault::NoContentRange => {
            response.headers.retain(|(name, _)| *name != "content-range");
            response
        }
        Fault::Multipart => {
            response.headers.retain(|(name, _)| *name != "content-range");
            response.with("content-type", "multipart/byteranges; boundary=x")
        }
        Fault::RedirectAnywhere(to) => Response::new(302, "").with("location", to.clone()),
        Fault::RedirectLoop => Response::new(302, "").with("location", request.path.clone()),
    }
}
