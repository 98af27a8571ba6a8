//! A fixture index, a store and a catalog of one synthetic torch.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "helpers of tests; each test crate uses a part of them")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kiln_format::Version;
use kiln_test_server::{FixtureServer, Wheel, WheelBuilder, noise};
use kiln_toolchain::{
    AgentOptions, Catalog, Error, FetchEvent, IndexUrl, Netrc, Network, Pieces, ProvisionOptions, Provisioner, Proxies, RetryPolicy,
    Slowest, UreqTransport,
};

pub const PLATFORM: &str = "linux-x86_64";
pub const VERSION: &str = "2.13.0";
/// Headers of the synthetic torch.
pub const HEADERS: usize = 1200;

/// A synthetic torch of a size at which directory, `RECORD` and headers are several requests.
pub fn large_torch() -> Wheel {
    static WHEEL: OnceLock<Wheel> = OnceLock::new();
    WHEEL.get_or_init(|| torch_of(HEADERS).build()).clone()
}

/// A small synthetic torch.
pub fn torch() -> WheelBuilder {
    torch_of(20)
}

/// A synthetic torch: as in the real one, libraries lie before and after the headers, which lie side by side.
fn torch_of(headers: usize) -> WheelBuilder {
    let mut wheel = WheelBuilder::new("torch", VERSION)
        .file("torch/version.py", "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
        .member(kiln_test_server::Member::stored("torch/lib/libc10.so", noise(1, 300_000)))
        .member(kiln_test_server::Member { mode: 0o040_755, ..kiln_test_server::Member::stored("torch/include/", "") });
    for index in 0..headers {
        let text = format!("#pragma once\n// header {index}\n{}\n", data_encoding::HEXLOWER.encode(&noise(index as u64 + 100, 300)));
        wheel = wheel.file(&format!("torch/include/d{}/h{index}.h", index % 7), text);
    }
    wheel.member(kiln_test_server::Member::stored("torch/lib/libtorch_cpu.so", noise(2, 400_000)))
}

/// The catalog's text for a wheel.
pub fn catalog_text(wheel: &Wheel) -> String {
    format!(
        "[[torch]]\nversion = \"{VERSION}\"\nplatform = \"{PLATFORM}\"\nwheel = \"{}\"\nsize = {}\nsha256 = \"{}\"\nrecord_sha256 = \"{}\"\n\
         cuda = \"13.0\"\ncxx = \"gnu++20\"\nlicense = \"MIT\"\nnames = \"torch-2.13.0-linux-x86_64.names\"\n",
        wheel.file,
        wheel.bytes.len(),
        wheel.sha256,
        wheel.record_sha256
    )
}

/// A user's machine, with an index that carries one wheel.
pub struct Bench {
    pub server: FixtureServer,
    pub wheel: Wheel,
    pub catalog: Catalog,
    pub dir: tempfile::TempDir,
    pub events: Mutex<Vec<FetchEvent>>,
    pub index: String,
    pub offline: bool,
    pub lower: Vec<PathBuf>,
    pub retry: RetryPolicy,
    pub read_timeout: Duration,
    pub torch_index: Option<String>,
    pub netrc: String,
    pub proxies: Proxies,
    pub pieces: Pieces,
    pub slowest: Slowest,
}

impl Bench {
    /// With a sound torch.
    pub fn new() -> Self {
        Self::with(large_torch())
    }

    /// With this wheel, which the catalog pins as it is.
    pub fn with(wheel: Wheel) -> Self {
        let server = FixtureServer::start().unwrap();
        server.add("torch", &wheel);
        let catalog_text = catalog_text(&wheel);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("catalog.toml"), &catalog_text).unwrap();
        Self {
            catalog: Catalog::parse(&catalog_text).unwrap(),
            index: server.index(),
            server,
            wheel,
            dir,
            events: Mutex::default(),
            offline: false,
            lower: Vec::new(),
            retry: RetryPolicy { attempts: 3, first_delay: Duration::from_millis(1) },
            read_timeout: Duration::from_secs(20),
            torch_index: None,
            netrc: String::new(),
            proxies: Proxies::default(),
            pieces: Pieces::default(),
            slowest: Slowest::default(),
        }
    }

    pub fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    /// Does something with a provisioner.
    pub fn provision<T>(&self, act: impl FnOnce(&Provisioner<'_>) -> T) -> T {
        let network = || {
            let options = AgentOptions { read_timeout: self.read_timeout, proxies: self.proxies.clone(), ..AgentOptions::default() };
            let index = |text: &str| IndexUrl::parse(text).unwrap();
            Ok(Network {
                torch_index: self.torch_index.as_deref().map(index),
                netrc: Netrc::parse(&self.netrc),
                pieces: self.pieces,
                slowest: self.slowest,
                ..Network::new(index(&self.index), Arc::new(UreqTransport::new(&options)?))
            })
        };
        let events = |event: FetchEvent| self.events.lock().unwrap().push(event);
        let options = ProvisionOptions { cache_dir: self.cache(), lower: self.lower.clone(), offline: self.offline, retry: self.retry };
        act(&Provisioner::new(&self.catalog, options, &network, &events))
    }

    pub fn fetch(&self) -> Result<PathBuf, Error> {
        self.provision(|provisioner| provisioner.fetch(&version(), PLATFORM))
    }

    /// What a user sees of an error, with the port taken out.
    pub fn shown(&self, error: &Error) -> String {
        let hint = error.hint().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        let text = without_numbers(&format!("error: {error}{hint}"));
        let port = self.server.url();
        text.replace(&without_numbers(&port), "http://[server]").replace(&self.dir.path().display().to_string(), "[dir]")
    }

    /// The events but for progress, shortened.
    pub fn told(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let told = events.iter().filter_map(|event| match event {
            FetchEvent::Bytes { .. } => None,
            FetchEvent::Retry { attempt, attempts, reason, .. } => Some(format!("retry {attempt}/{attempts}: {}", without_numbers(reason))),
            FetchEvent::WholeFile { file, .. } => Some(format!("whole file {file}")),
            FetchEvent::Started { what } => Some(format!("started {what}")),
            FetchEvent::Finished { what, requests, .. } => Some(format!("finished {what} in {requests} requests")),
            FetchEvent::WaitingForLock { what, .. } => Some(format!("waiting for {what}")),
        });
        told.collect()
    }

    /// Asserts that nothing is in the store, whole or in part.
    pub fn assert_clean(&self) {
        for dir in ["trees", "work"] {
            let left = files_below(&self.cache().join("toolchains-v1").join(dir));
            assert_eq!(left, Vec::<String>::new(), "{dir}");
        }
    }

    /// Asserts that the tree at `dir` is what the wheel holds.
    pub fn assert_tree(&self, dir: &Path) {
        let files = files_below(dir);
        assert_eq!(files.len(), HEADERS + 1);
        assert!(files.contains(&"torch/version.py".to_owned()));
        self.provision(|provisioner| provisioner.verify(&version(), PLATFORM)).unwrap();
    }
}

/// Digests and large numbers replaced: how well a test wheel is deflated is nobody's business.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_hexdigit()) {
        let (before, found) = rest.split_at(start);
        let (word, after) = found.split_at(found.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(found.len()));
        shown.push_str(before);
        match word.len() {
            64 => shown.push_str("[sha256]"),
            5.. if word.bytes().all(|byte| byte.is_ascii_digit()) => shown.push_str("[n]"),
            _ => shown.push_str(word),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

pub fn version() -> Version {
    Version::parse(VERSION).unwrap()
}

/// Everything below a directory that is no directory, relative and sorted.
pub fn files_below(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, "", &mut found);
    found.sort();
    found
}
