//! An HTTP/1.1 server on loopback: a thread a connection, GET only.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::log::{Entry, Log};

/// How long a connection may be idle, and how long a stalled answer lasts at most.
const IDLE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path without the query, as sent.
    pub path: String,
    /// Query without its question mark, as sent.
    pub query: Option<String>,
    /// Headers by name in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Request {
    /// The first and the last byte (exclusive) of a `Range` header for a file of `len` bytes; only a single range with a
    /// start is understood.
    pub fn range(&self, len: u64) -> Option<Range<u64>> {
        let (start, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let start = start.parse().ok()?;
        let end = if last.is_empty() { len } else { last.parse::<u64>().ok()?.saturating_add(1).min(len) };
        (start < end).then_some(start..end)
    }

    /// Whether the client takes bodies compressed by gzip.
    pub fn accepts_gzip(&self) -> bool {
        self.headers.get("accept-encoding").is_some_and(|accept| accept.split(',').any(|coding| coding.trim() == "gzip"))
    }

    /// Whether the client takes JSON pages of an index.
    pub fn accepts_json(&self) -> bool {
        self.headers.get("accept").is_some_and(|accept| accept.contains("application/vnd.pypi.simple.v1+json"))
    }
}

/// An answer.
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers beside `Content-Length`.
    pub headers: Vec<(&'static str, String)>,
    /// What is announced as `Content-Length`.
    pub length: u64,
    /// The body.
    pub body: Box<dyn Read + Send>,
    /// The bytes of the file that the body is, for the log.
    pub range: Option<Range<u64>>,
    /// How the answer ends.
    pub ending: Ending,
    /// How the client is told where the body ends.
    pub framing: Framing,
}

/// How a client is told where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By `Content-Length`; the connection stays open.
    Length,
    /// In chunks.
    Chunked,
    /// By `Content-Length`, in HTTP/1.0: the connection is closed.
    Old,
    /// By the end of the connection, in HTTP/1.0.
    UntilClosed,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As announced.
    Whole,
    /// The connection is closed after this many bytes of the body.
    Cut(u64),
    /// The connection is closed without an answer.
    Hangup,
    /// One byte is sent after another, with so many milliseconds between two.
    Trickle(u64),
    /// Nothing more is sent after this many bytes of the body, and the connection stays open.
    Stalled(u64),
}

impl Response {
    /// An answer with a body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len() as u64;
        Self {
            status,
            headers: Vec::new(),
            length,
            body: Box::new(io::Cursor::new(body)),
            range: None,
            ending: Ending::Whole,
            framing: Framing::Length,
        }
    }

    /// An answer with a body, compressed by gzip.
    pub fn gzip(status: u16, body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let _ = encoder.write_all(body);
        Self::new(status, encoder.finish().unwrap_or_default()).with("content-encoding", "gzip")
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Answers requests, from any thread.
pub type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A running server. Dropping it stops it: its port then refuses connections.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<Handler>,
    log: Mutex<Log>,
    log_file: Option<Mutex<std::fs::File>>,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1. Each request is also written to `log_file`, a line each.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(port: u16, log_file: Option<std::fs::File>, handler: Box<Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler,
            log: Mutex::default(),
            log_file: log_file.map(Mutex::new),
            stopped: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&listener, &shared))
        };
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// The address, such as `http://127.0.0.1:4321`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was served so far.
    pub fn log(&self) -> Log {
        lock(&self.shared.log).clone()
    }

    /// Forgets what was served so far.
    pub fn clear_log(&self) {
        *lock(&self.shared.log) = Log::default();
    }

    /// Stops the server and closes its connections.
    pub fn stop(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which closes the port when it ends.
        let _ = TcpStream::connect(self.address);
        let _ = accepting.join();
        for stream in lock(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Locks, whatever a thread that panicked left behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accepts connections until the server is stopped.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        lock(&shared.log).connections += 1;
        if let Ok(copy) = stream.try_clone() {
            lock(&shared.open).push(copy);
        }
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that goes away is its own business.
            let _ = converse(&stream, &shared);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// Answers the requests of one connection.
fn converse(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        let response = (shared.handler)(&request);
        let (ending, framing) = (response.ending, response.framing);
        let (status, range) = (response.status, response.range.clone());
        let mut sent = 0;
        let result = send(stream, response, &mut sent);
        let range = range.map(|range| range.start..range.start.saturating_add(sent).min(range.end));
        let authorization = request.headers.get("authorization").cloned();
        let entry = Entry { path: request.path.clone(), status, bytes: sent, range, authorization };
        if let Some(file) = &shared.log_file {
            writeln!(lock(file), "{entry}")?;
        }
        lock(&shared.log).entries.push(entry);
        result?;
        match ending {
            Ending::Whole | Ending::Trickle(_) if matches!(framing, Framing::Old | Framing::UntilClosed) => return Ok(()),
            Ending::Whole | Ending::Trickle(_) => {}
            Ending::Cut(_) | Ending::Hangup => return Ok(()),
            Ending::Stalled(_) => {
                // Until the client gives up or the server stops.
                let _ = reader.read(&mut [0]);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads the head of a request; none when the client is done.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (target, None),
    };
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(Some(Request { path, query, headers }));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}

/// Sends an answer, counting the bytes of its body.
fn send(mut stream: &TcpStream, mut response: Response, sent: &mut u64) -> io::Result<()> {
    if response.ending == Ending::Hangup {
        return Ok(());
    }
    let version = if matches!(response.framing, Framing::Old | Framing::UntilClosed) { "1.0" } else { "1.1" };
    let mut head = format!("HTTP/{version} {} {}\r\n", response.status, reason(response.status));
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match response.framing {
        Framing::Length | Framing::Old => head.push_str(&format!("content-length: {}\r\n\r\n", response.length)),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n\r\n"),
        Framing::UntilClosed => head.push_str("\r\n"),
    }
    let limit = match response.ending {
        Ending::Whole | Ending::Hangup | Ending::Trickle(_) => u64::MAX,
        Ending::Cut(limit) | Ending::Stalled(limit) => limit,
    };
    stream.write_all(head.as_bytes())?;
    let pause = if let Ending::Trickle(ms) = response.ending { Some(Duration::from_millis(ms)) } else { None };
    let mut buffer = vec![0; if pause.is_some() { 1 } else { 64 << 10 }];
    while *sent < limit {
        pause.into_iter().for_each(std::thread::sleep);
        let room = usize::try_from(limit - *sent).unwrap_or(usize::MAX).min(buffer.len());
        let Some(free) = buffer.get_mut(..room) else { break };
        let read = response.body.read(free)?;
        let Some(piece) = free.get(..read).filter(|piece| !piece.is_empty()) else { break };
        if response.framing == Framing::Chunked {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        } else {
            stream.write_all(piece)?;
        }
        *sent += read as u64;
    }
    if response.framing == Framing::Chunked && *sent < limit {
        stream.write_all(b"0\r\n\r\n")?;
    }
    stream.flush()
}

/// The reason phrase of a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        404 => "Not Found",
        _ => "Status",
    }
}
