//! What a fetch goes through.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use kiln_format::Version;
use kiln_graph::Interrupt;

use crate::default_index::{BuiltInIndex, IndexSettings, ask_pip, certificate_files, default_index, pip_files, proxies};
use crate::error::Error;
use crate::event::FetchSink;
use crate::host::on_path;
use crate::http::{
    AgentOptions, Client, ClientOptions, Credentials, IndexUrl, Netrc, Pieces, RetryPolicy, Slowest, Transport, Trust, UreqTransport,
};
use crate::index::{self, Listed};

/// A wheel of which the release is known.
#[derive(Clone, Copy, Debug)]
pub struct WantedWheel<'w> {
    /// Normalised name of the project.
    pub project: &'w str,
    /// The release.
    pub release: &'w Version,
    /// The local part of the version, such as `cu126`.
    pub local: Option<&'w str>,
    /// What it is for, such as `linux-x86_64`.
    pub system: &'w str,
}

/// A wheel that an index lists.
#[derive(Clone, Debug)]
pub struct FoundWheel {
    /// File name.
    pub file: String,
    /// What the index says of it.
    pub(crate) listed: Listed,
    /// The index that lists it.
    pub index: IndexUrl,
}

impl FoundWheel {
    /// Its sha256 as lower-case hexadecimal text, where the index says it.
    pub fn sha256(&self) -> Option<&str> {
        self.listed.sha256.as_deref()
    }

    /// Its size in bytes, where the index says it.
    pub fn size(&self) -> Option<u64> {
        self.listed.size
    }

    /// Why it should no longer be used, if it was withdrawn; the reason may be empty.
    pub fn yanked(&self) -> Option<&str> {
        self.listed.yanked.as_deref()
    }
}

/// What a fetch goes through.
#[derive(Clone)]
pub struct Network {
    /// The package index.
    pub index: IndexUrl,
    /// The index of torch builds that the package index lacks, where one is named.
    pub torch_index: Option<IndexUrl>,
    /// Logins beside those that stand in the addresses.
    pub netrc: Netrc,
    /// How long ranges are asked for.
    pub pieces: Pieces,
    /// When an answer is too slow.
    pub slowest: Slowest,
    /// What sends the requests.
    pub transport: Arc<dyn Transport>,
}

impl Network {
    /// One index, without netrc.
    pub fn new(index: IndexUrl, transport: Arc<dyn Transport>) -> Self {
        Self { index, torch_index: None, netrc: Netrc::default(), pieces: Pieces::default(), slowest: Slowest::default(), transport }
    }

    /// What this machine says by itself: the index of pip, its certificates, proxies and logins. `environment` is the caller's; relative
    /// paths in it start at `current_dir`. What pip was asked is kept in `cache_dir`.
    ///
    /// # Errors
    /// [`Error::NoIndex`] when nothing names an index, and those of settings that cannot be used.
    pub fn of_machine(environment: &BTreeMap<String, String>, current_dir: &Path, cache_dir: &Path) -> Result<Self, Error> {
        let pip_files = pip_files(environment);
        let ask_python = || {
            let path = environment.get("PATH").map_or(OsStr::new(""), OsStr::new);
            let python = ["python3", "python"].into_iter().find_map(|name| on_path(name, path)).ok_or("there is no `python3` on PATH")?;
            BuiltInIndex::new(cache_dir).get(&python, &ask_pip)
        };
        let index = default_index(&IndexSettings::of_machine(environment, &pip_files, &ask_python, current_dir))?;
        let trust = Trust { extra: certificate_files(environment, &pip_files)? };
        let options = AgentOptions { trust, proxies: proxies(environment, &pip_files)?, ..AgentOptions::default() };
        let netrc = Netrc::of_user(environment, current_dir)?;
        Ok(Self { netrc, ..Self::new(index.url, Arc::new(UreqTransport::new(&options)?)) })
    }

    /// The indexes that a wheel is looked up in, in this order. A build with a local version (`torch-2.13.0+cu126-..`) is
    /// looked for where such builds are said to be, any other where packages come from.
    pub(crate) fn indexes_for(&self, wheel: &str) -> Vec<&IndexUrl> {
        self.indexes(wheel.contains('+'))
    }

    fn indexes(&self, local_version: bool) -> Vec<&IndexUrl> {
        let mut indexes: Vec<&IndexUrl> = std::iter::once(&self.index).chain(&self.torch_index).collect();
        if local_version {
            indexes.reverse();
        }
        indexes.dedup();
        indexes
    }

    /// Asks the indexes for a wheel of which only the release is known. `offline` leaves only indexes of this machine.
    ///
    /// # Errors
    /// Those of a fetch and of the index; [`Error::NoWheel`] with what the first index has instead.
    pub fn find_wheel(
        &self,
        wanted: &WantedWheel<'_>,
        retry: RetryPolicy,
        offline: bool,
        events: &FetchSink<'_>,
        interrupt: Interrupt,
    ) -> Result<FoundWheel, Error> {
        let client = self.client(retry, offline, events, interrupt, format!("the file list of `{}`", wanted.project));
        let mut missing = None;
        for index in self.indexes(wanted.local.is_some()) {
            let found = index::files(&client, index, wanted.project).and_then(|files| {
                let (file, listed) = index::choose(&files, wanted).map_err(|reason| Error::NoWheel { index: index.to_string(), reason })?;
                Ok(FoundWheel { file: file.to_owned(), listed: listed.clone(), index: index.clone() })
            });
            match found {
                Err(error @ (Error::NoProject { .. } | Error::NoWheel { .. } | Error::NoAccess { .. })) => {
                    missing.get_or_insert(error);
                }
                found => return found,
            }
        }
        // There is always an index: this is the error of the first one.
        Err(missing.unwrap_or_else(|| Error::NoIndex { asked: Vec::new() }))
    }

    /// Whether one of the indexes is on this machine, and so can be used without a network.
    pub(crate) fn has_local(&self) -> bool {
        self.index.local().is_some() || self.torch_index.as_ref().is_some_and(|index| index.local().is_some())
    }

    /// A client for one purpose, which it reports under the name `what`. `offline` leaves it the files of this machine.
    pub(crate) fn client<'c>(
        &'c self,
        retry: RetryPolicy,
        offline: bool,
        events: &'c FetchSink<'c>,
        interrupt: Interrupt,
        what: String,
    ) -> Client<'c> {
        let credentials = Credentials::new(std::iter::once(&self.index).chain(&self.torch_index), &self.netrc);
        let options = ClientOptions { retry, pieces: self.pieces, slowest: self.slowest, credentials, offline };
        Client::new(&*self.transport, options, events, interrupt, what)
    }
}
