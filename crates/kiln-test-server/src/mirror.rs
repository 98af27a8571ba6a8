//! A local index that passes on what an upstream index has, and counts it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::http::{Request, Response, Server, lock};
use crate::log::Log;

/// A mirror. The address of its simple index is [`MirrorServer::index`].
pub struct MirrorServer {
    server: Server,
}

/// What a mirror knows.
struct Mirror {
    upstream: String,
    agent: Agent,
    cache: Option<PathBuf>,
    /// Upstream address and size of each file that was listed, by name.
    files: Mutex<BTreeMap<String, (String, Option<u64>)>>,
}

/// How a mirror works.
#[derive(Clone, Debug, Default)]
pub struct MirrorOptions {
    /// Port; a free one if 0.
    pub port: u16,
    /// Where upstream bytes are kept, so that later runs need not fetch them; nowhere if none.
    pub cache: Option<PathBuf>,
    /// Where each request is written to, a line each.
    pub log: Option<PathBuf>,
}

impl MirrorServer {
    /// Starts a mirror of the simple index at `upstream`. Nothing is fetched before it is asked for.
    ///
    /// # Errors
    /// When no port can be had, or the log or the certificates cannot be opened.
    pub fn start(upstream: &str, options: &MirrorOptions) -> io::Result<Self> {
        let log = options.log.as_ref().map(|path| fs::File::options().create(true).append(true).open(path)).transpose()?;
        let mirror = Arc::new(Mirror {
            upstream: upstream.trim_end_matches('/').to_owned(),
            agent: agent()?,
            cache: options.cache.clone(),
            files: Mutex::default(),
        });
        let handler = move |request: &Request| mirror.answer(request).unwrap_or_else(|cause| Response::new(502, format!("{cause}\n")));
        Ok(Self { server: Server::start(options.port, log, Box::new(handler))? })
    }

    /// Address of the simple index.
    pub fn index(&self) -> String {
        format!("{}/simple/", self.server.url())
    }

    /// What was served so far.
    pub fn log(&self) -> Log {
        self.server.log()
    }

    /// Forgets what was served so far.
    pub fn clear_log(&self) {
        self.server.clear_log();
    }
}

/// The client for the upstream.
fn agent() -> io::Result<Agent> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(io::Error::other("the system has no certificates"));
    }
    let roots: Vec<Certificate<'static>> = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let config = Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(RootCerts::from(roots)).build())
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .accept_encoding("identity")
        .build();
    Ok(config.new_agent())
}

impl Mirror {
    /// Answers a request.
    fn answer(&self, request: &Request) -> io::Result<Response> {
        if let Some(project) = request.path.strip_prefix("/simple/").and_then(|rest| rest.strip_suffix('/')) {
            return self.page(project, request);
        }
        match request.path.strip_prefix("/files/").filter(|name| !name.contains('/') && !name.starts_with('.')) {
            Some(name) => self.file(name, request),
            None => Ok(Response::new(404, "no such path\n")),
        }
    }

    /// The page of a project, its files said to be here.
    fn page(&self, project: &str, request: &Request) -> io::Result<Response> {
        if project.is_empty() || !project.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Ok(Response::new(404, "no such project\n"));
        }
        let mut page = self.upstream_page(project)?;
        let files =
            page.get_mut("files").and_then(serde_json::Value::as_array_mut).ok_or_else(|| io::Error::other("a page without files"))?;
        let mut html = "<!DOCTYPE html>\n<html><body>\n".to_owned();
        for file in files {
            let text = |key: &str| file.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
            let (Some(name), Some(url)) = (text("filename"), text("url")) else { continue };
            let sha256 = file.pointer("/hashes/sha256").and_then(serde_json::Value::as_str).unwrap_or_default();
            html.push_str(&format!("<a href=\"/files/{name}#sha256={sha256}\">{name}</a><br/>\n"));
            let size = file.get("size").and_then(serde_json::Value::as_u64);
            let here = format!("/files/{name}");
            if let Some(file) = file.as_object_mut() {
                file.insert("url".to_owned(), here.into());
            }
            lock(&self.files).insert(name, (url, size));
        }
        html.push_str("</body></html>\n");
        let (kind, text) =
            if request.accepts_json() { ("application/vnd.pypi.simple.v1+json", page.to_string()) } else { ("text/html", html) };
        let response = if request.accepts_gzip() { Response::gzip(200, text.as_bytes()) } else { Response::new(200, text) };
        Ok(response.with("content-type", kind))
    }

    /// The upstream's page of a project.
    fn upstream_page(&self, project: &str) -> io::Result<serde_json::Value> {
        let kept = self.cache.as_ref().map(|dir| dir.join(format!("{project}.json")));
        let text = match kept.as_ref().map(fs::read) {
            Some(Ok(text)) => text,
            _ => {
                let url = format!("{}/{project}/", self.upstream);
                let call = self.agent.get(&url).header("accept", "application/vnd.pypi.simple.v1+json");
                let mut text = Vec::new();
                call.call().map_err(io::Error::other)?.into_body().into_reader().read_to_end(&mut text)?;
                if let Some(kept) = kept {
                    keep(&kept, &text)?;
                }
                text
            }
        };
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    /// A file or a part of it.
    fn file(&self, name: &str, request: &Request) -> io::Result<Response> {
        let known = lock(&self.files).get(name).cloned();
        let Some((url, Some(size))) = known else {
            return Ok(Response::new(404, "no such file was listed\n"));
        };
        let Some(range) = request.range(size) else {
            let answer = self.agent.get(&url).call().map_err(io::Error::other)?;
            let mut response = Response::new(200, "");
            (response.length, response.body, response.range) = (size, Box::new(answer.into_body().into_reader()), Some(0..size));
            return Ok(response);
        };
        let bytes = self.part(name, &url, &range)?;
        let mut response = Response::new(206, bytes)
            .with("content-range", format!("bytes {}-{}/{size}", range.start, range.end - 1))
            .with("accept-ranges", "bytes")
            .with("etag", format!("\"{name}\""));
        response.range = Some(range);
        Ok(response)
    }

    /// Some bytes of a file, from the cache or from upstream.
    fn part(&self, name: &str, url: &str, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let dir = self.cache.as_ref().map(|dir| dir.join(name));
        if let Some(bytes) = dir.as_deref().and_then(|dir| kept_part(dir, range)) {
            return Ok(bytes);
        }
        let call = self.agent.get(url).header("range", format!("bytes={}-{}", range.start, range.end - 1));
        let answer = call.call().map_err(io::Error::other)?;
        if answer.status().as_u16() != 206 {
            return Err(io::Error::other("the upstream does not answer range requests"));
        }
        let mut bytes = Vec::new();
        answer.into_body().into_reader().read_to_end(&mut bytes)?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(io::Error::other("the upstream sent another number of bytes"));
        }
        if let Some(dir) = dir {
            keep(&dir.join(format!("{}-{}", range.start, range.end)), &bytes)?;
        }
        Ok(bytes)
    }
}

/// Bytes of a kept part that covers `range`.
fn kept_part(dir: &Path, range: &Range<u64>) -> Option<Vec<u8>> {
    for entry in fs::read_dir(dir).ok()? {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let Some((start, end)) = name.split_once('-').and_then(|(start, end)| Some((start.parse::<u64>().ok()?, end.parse::<u64>().ok()?)))
        else {
            continue;
        };
        if start <= range.start && range.end <= end {
            let bytes = fs::read(dir.join(name)).ok()?;
            let from = usize::try_from(range.start - start).ok()?;
            let len = usize::try_from(range.end - range.start).ok()?;
            return bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec);
        }
    }
    None
}

/// Writes a file of the cache, whole or not at all.
fn keep(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = place.parent().ok_or_else(|| io::Error::other("a cache without a directory"))?;
    fs::create_dir_all(dir)?;
    let mut file = tempfile::Builder::new().prefix(".new").tempfile_in(dir)?;
    io::Write::write_all(&mut file, bytes)?;
    file.persist(place)?;
    Ok(())
}
