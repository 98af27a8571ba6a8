//! A proxy that tunnels and remembers who asked for what.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::http::lock;

/// A request to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Host and port that it leads to.
    pub target: String,
    /// The `Proxy-Authorization` header.
    pub authorization: Option<String>,
}

/// A running proxy on loopback. It answers `CONNECT` only, and lives as long as the process.
pub struct ProxyServer {
    address: SocketAddr,
    tunnels: Arc<Mutex<Vec<Tunnel>>>,
    received: Arc<AtomicU64>,
}

impl ProxyServer {
    /// Starts a proxy. Requests without the user and password `demanded` (as `user:password`) are refused.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn start(demanded: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let tunnels: Arc<Mutex<Vec<Tunnel>>> = Arc::default();
        let demanded = demanded.map(|text| format!("Basic {}", data_encoding::BASE64.encode(text.as_bytes())));
        let known = Arc::clone(&tunnels);
        let received = Arc::<AtomicU64>::default();
        let count = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, demanded, count) = (Arc::clone(&known), demanded.clone(), Arc::clone(&count));
                std::thread::spawn(move || {
                    // A client that goes away is its own business.
                    let _ = tunnel(&stream, &known, &count, demanded.as_deref());
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Ok(Self { address, tunnels, received })
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// How many bytes servers have sent through it so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Who asked for what so far.
    pub fn tunnels(&self) -> Vec<Tunnel> {
        lock(&self.tunnels).clone()
    }
}

/// A stream whose bytes are counted before they are written.
struct Counted<'a> {
    to: &'a TcpStream,
    count: &'a AtomicU64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.count.fetch_add(u64::try_from(written).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Answers one client.
fn tunnel(mut client: &TcpStream, known: &Mutex<Vec<Tunnel>>, count: &Arc<AtomicU64>, demanded: Option<&str>) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned();
    let mut authorization = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("proxy-authorization")
        {
            authorization = Some(value.trim().to_owned());
        }
    }
    let refused = demanded.is_some_and(|demanded| authorization.as_deref() != Some(demanded));
    lock(known).push(Tunnel { target: target.clone(), authorization });
    if refused {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    }
    let server = TcpStream::connect(&target)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (up, down) = (client.try_clone()?, server.try_clone()?);
    let count = Arc::clone(count);
    let back = std::thread::spawn(move || {
        let _ = io::copy(&mut &down, &mut Counted { to: &up, count: &count });
        let _ = up.shutdown(Shutdown::Write);
    });
    // The client waits for the answer before it sends more than its head: nothing is left in the buffer.
    let _ = io::copy(&mut reader, &mut &server);
    let _ = server.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}
