//! The index as the catalog's maker uses it: listings, whole wheels, and pins that are compared with what is served.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kiln_graph::Interrupt;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::event::FetchSink;
use crate::http::{Client, HttpFault, Request, RetryPolicy};
use crate::index::{self, Files};
use crate::network::Network;
use crate::part::{Members, WheelPin};
use crate::wheel::{Pin, Reading, Source, Wheel};

/// No wheel is this large.
const MAX_WHEEL: u64 = 8 << 30;

/// An index that wheels are taken from.
pub struct Registry<'a> {
    network: &'a Network,
    events: &'a FetchSink<'a>,
    interrupt: Interrupt,
}

/// The files of a project, as an index lists them.
#[derive(Clone, Debug)]
pub struct Listing {
    project: String,
    files: Files,
}

impl Listing {
    /// Names of the files, ascending.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Sha256 of a file as lower-case hexadecimal text, where the index says it.
    pub fn sha256(&self, file: &str) -> Option<&str> {
        self.files.get(file)?.sha256.as_deref()
    }
}

impl<'a> Registry<'a> {
    /// The package index of `network`.
    pub fn new(network: &'a Network, events: &'a FetchSink<'a>) -> Self {
        Self { network, events, interrupt: Interrupt::new() }
    }

    /// The same, stopped by `interrupt`: a fetch fails then.
    #[must_use]
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// The files of a project.
    ///
    /// # Errors
    /// Those of a fetch and of the index.
    pub fn list(&self, project: &str) -> Result<Listing, Error> {
        let files = self.asking(&format!("the file list of `{project}`"), |client| index::files(client, &self.network.index, project))?;
        Ok(Listing { project: project.to_owned(), files })
    }

    /// Downloads a whole file into `dir` and compares it with the sha256 that the index gives.
    ///
    /// # Errors
    /// [`Error::NotListed`]; [`Error::ListedOtherwise`] when the bytes are not those that the index lists, or it lists no sha256;
    /// those of a fetch; when the file cannot be written.
    pub fn download(&self, listing: &Listing, file: &str, dir: &Path) -> Result<PathBuf, Error> {
        let listed = self.listed(listing, file)?;
        let path = dir.join(file);
        let mut copy = File::create(&path).map_err(Error::store("create", &path))?;
        let sha256 = self.asking(file, |client| {
            client
                .retrying(&listed.url, || {
                    let mut hasher = Sha256::new();
                    let unkept = |cause: std::io::Error| HttpFault::Connection(format!("cannot keep the answer: {cause}")).at(&listed.url);
                    copy.set_len(0).and_then(|()| copy.seek(SeekFrom::Start(0))).map_err(unkept)?;
                    let (found, mut response) = client.send(Request::new(listed.url.clone()))?;
                    client.copy(&found, &mut response, MAX_WHEEL, |piece| {
                        hasher.update(piece);
                        copy.write_all(piece)
                    })?;
                    Ok(HEXLOWER.encode(&hasher.finalize()))
                })
                .map_err(Error::fetch(file))
        })?;
        match &listed.sha256 {
            Some(wanted) if *wanted == sha256 => Ok(path),
            wanted => Err(self.otherwise(file, wanted.clone().unwrap_or_else(|| "no digest".to_owned()), sha256)),
        }
    }

    /// Compares a pin with what the index says of its file and with the file's own size and `RECORD`, which are read by range
    /// requests. `scratch` is used when the server does not answer these.
    ///
    /// # Errors
    /// [`Error::NotListed`], [`Error::ListedOtherwise`], [`Error::WrongWheel`], and those of a fetch.
    pub fn check(&self, listing: &Listing, pin: &WheelPin, scratch: &Path) -> Result<(), Error> {
        let listed = self.listed(listing, &pin.file)?;
        if listed.sha256.as_ref() != Some(&pin.sha256) {
            return Err(self.otherwise(&pin.file, listed.sha256.clone().unwrap_or_else(|| "no digest".to_owned()), pin.sha256.clone()));
        }
        let WheelPin { file, size, sha256, record_sha256, .. } = pin;
        self.asking(file, |client| {
            let mut source =
                Source::new(client, listed.url.clone(), Pin { file, size: *size, sha256, record_sha256 }, scratch.join("wheel"));
            Wheel::open(&mut source, &Members::default(), &Reading { large: u64::MAX, ..Reading::default() }).map(drop)
        })
    }

    fn listed<'l>(&self, listing: &'l Listing, file: &str) -> Result<&'l index::Listed, Error> {
        let missing = || Error::NotListed { file: file.to_owned(), index: self.network.index.to_string() };
        listing.files.get(file).ok_or_else(missing)
    }

    fn otherwise(&self, file: &str, listed: String, pinned: String) -> Error {
        Error::ListedOtherwise { file: file.to_owned(), index: self.network.index.to_string(), listed, pinned }
    }

    fn asking<T>(&self, what: &str, ask: impl FnOnce(&Client<'_>) -> Result<T, Error>) -> Result<T, Error> {
        ask(&self.network.client(RetryPolicy::default(), false, self.events, self.interrupt.clone(), what.to_owned()))
    }
}

impl std::fmt::Debug for Registry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("index", &self.network.index).finish_non_exhaustive()
    }
}

impl std::fmt::Display for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files of `{}`", self.files.len(), self.project)
    }
}
