//! Torch toolchains from wheels: catalog, index, wheel and store put together.

use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use kiln_format::Version;
use kiln_graph::{Interrupt, PathRef, RootBinding, RootKind, RootName};
use sha2::{Digest, Sha256};
use url::Url;

use crate::catalog::{Catalog, TorchRelease};
use crate::error::Error;
use crate::event::{FetchEvent, FetchSink};
use crate::http::{Client, IndexUrl, RetryPolicy, Transport};
use crate::index::{self, Locations};
use crate::names;
use crate::store::{Lock, Store, TreeWriter};
use crate::toolchain::{Provider, TorchToolchain};
use crate::wheel::{Pin, Selection, Source, Wheel};

/// What a build needs of a torch wheel: all headers, and the file that says which build it is.
const TORCH: Selection = Selection { dirs: &["torch/include/"], files: &["torch/version.py"], max_size: 512 << 20 };

/// A release of the catalog and its place in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    /// The release.
    pub release: TorchRelease,
    /// The directory that holds its `torch/include`; none if it was not fetched yet.
    pub dir: Option<PathBuf>,
}

/// How a provisioner works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionOptions {
    /// The directory of everything that is shared between projects.
    pub cache_dir: PathBuf,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// How often a request is made again.
    pub retry: RetryPolicy,
}

/// What a fetch goes through.
#[derive(Clone)]
pub struct Network {
    /// The package index.
    pub index: IndexUrl,
    /// What sends the requests.
    pub transport: Arc<dyn Transport>,
}

/// Makes torch toolchains from wheels.
pub struct Provisioner<'a> {
    catalog: &'a Catalog,
    options: ProvisionOptions,
    network: &'a (dyn Fn() -> Result<Network, Error> + Sync),
    events: &'a FetchSink<'a>,
    interrupt: Interrupt,
    store: Store,
}

impl<'a> Provisioner<'a> {
    /// A provisioner. `network` is called only when something has to be fetched, and never offline.
    pub fn new(
        catalog: &'a Catalog,
        options: ProvisionOptions,
        network: &'a (dyn Fn() -> Result<Network, Error> + Sync),
        events: &'a FetchSink<'a>,
    ) -> Self {
        let store = Store::new(&options.cache_dir);
        Self { catalog, options, network, events, interrupt: Interrupt::new(), store }
    }

    /// The same, stopped by `interrupt`: a fetch, or a wait for another one, ends with [`Error::Interrupted`] then.
    #[must_use]
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// The toolchain of a torch release, fetched if the store does not have it. With everything in the store this reads
    /// no more than a directory entry and the names of the libraries.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`]; [`Error::Offline`]; those of a fetch, of the index and of the store. Nothing partial is
    /// ever left in the store.
    pub fn torch(&self, version: &Version, platform: &str) -> Result<TorchToolchain, Error> {
        let release = self.catalog.torch(version, platform)?;
        Self::toolchain(release, self.provide(release)?)
    }

    /// The toolchain of a torch release as a plan needs it: nothing is fetched, so the directory that it names may not
    /// be there.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn planned_torch(&self, version: &Version, platform: &str) -> Result<TorchToolchain, Error> {
        let release = self.catalog.torch(version, platform)?;
        Self::toolchain(release, self.store.place(&tree_name(release)))
    }

    fn toolchain(release: &TorchRelease, dir: PathBuf) -> Result<TorchToolchain, Error> {
        let tree = tree_digest(release);
        let root = RootName::new(tree_name(release));
        let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
        Ok(TorchToolchain {
            version: release.version.clone(),
            cuda: release.cuda.clone(),
            provider: Provider::Wheel {
                file: release.wheel.clone(),
                sha256: release.sha256.clone(),
                record_sha256: release.record_sha256.clone(),
            },
            include_dirs: vec![include("torch/include"), include("torch/include/torch/csrc/api/include")],
            root,
            binding: RootBinding { dir, kind: RootKind::Immutable { digest: tree.clone() } },
            exports: names::of_catalog(&release.names)?,
            identity: tree,
            cxx_level: release.cxx_level,
        })
    }

    /// Fetches a release into the store, if it is not there; gives the directory that holds its `torch/include`.
    ///
    /// # Errors
    /// As [`Provisioner::torch`].
    pub fn fetch(&self, version: &Version, platform: &str) -> Result<PathBuf, Error> {
        self.provide(self.catalog.torch(version, platform)?)
    }

    /// The directory that holds a release's `torch/include`, if the store has it.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn path(&self, version: &Version, platform: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.store.tree(&tree_name(self.catalog.torch(version, platform)?)))
    }

    /// Every release of the catalog, by ascending version, then platform, with its place in the store.
    pub fn list(&self) -> Vec<StoreEntry> {
        let entry = |release: &TorchRelease| StoreEntry { release: release.clone(), dir: self.store.tree(&tree_name(release)) };
        self.catalog.releases().iter().map(entry).collect()
    }

    /// Hashes a fetched release again.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`]; [`Error::Damaged`] with the first file that is not what was fetched.
    pub fn verify(&self, version: &Version, platform: &str) -> Result<(), Error> {
        self.store.verify(&tree_name(self.catalog.torch(version, platform)?))
    }

    /// The files of a release, out of the store or fetched. Whatever fails after an interrupt fails because of it.
    fn provide(&self, release: &TorchRelease) -> Result<PathBuf, Error> {
        self.find_or_fetch(release).map_err(|error| if self.interrupt.is_set() { Error::Interrupted } else { error })
    }

    fn find_or_fetch(&self, release: &TorchRelease) -> Result<PathBuf, Error> {
        let id = tree_name(release);
        if let Some(dir) = self.store.tree(&id) {
            return Ok(dir);
        }
        let what = format!("torch {} ({})", release.version, release.platform);
        if self.options.offline {
            return Err(Error::Offline { what, command: format!("kiln toolchain fetch torch=={}", release.version) });
        }
        let lock = self.lock(&self.store.lock_file(&id), &what)?;
        if let Some(dir) = self.store.tree(&id) {
            return Ok(dir);
        }
        let network = (self.network)()?;
        let client = self.client(&network, what.clone());
        client.tell(FetchEvent::Started { what: what.clone() });
        let dir = self.store.create(&id, &lock, |tree| self.fill(release, &network.index, &client, tree))?;
        let traffic = client.traffic();
        client.tell(FetchEvent::Finished { what, bytes: traffic.bytes, requests: traffic.requests });
        Ok(dir)
    }

    /// Fetches the files of a release into a new tree.
    fn fill(&self, release: &TorchRelease, index: &IndexUrl, client: &Client<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let locations = Locations::new(&self.options.cache_dir, index);
        if let Some(url) = locations.get(&release.sha256) {
            match self.fill_from(release, url, client, tree) {
                Err(Error::Fetch { source, .. }) if source.fault.is_gone() => {
                    locations.forget(&release.sha256);
                    tree.clear()?;
                }
                result => return result,
            }
        }
        let url = self.look_up(release, index, &locations, client)?;
        self.fill_from(release, url, client, tree)
    }

    /// Asks the index where a wheel is. What else of the catalog its answer locates is remembered too.
    fn look_up(&self, release: &TorchRelease, index: &IndexUrl, locations: &Locations, client: &Client<'_>) -> Result<Url, Error> {
        let _lock = self.lock(&locations.lock_file(), "the index")?;
        if let Some(url) = locations.get(&release.sha256) {
            // Another process asked while this one waited.
            return Ok(url);
        }
        let files = index::files(client, index, "torch")?;
        let (file, index) = (release.wheel.clone(), index.to_string());
        let found = files.get(&release.wheel).ok_or_else(|| Error::NotListed { file: file.clone(), index: index.clone() })?;
        if let Some(listed) = found.sha256.clone().filter(|listed| *listed != release.sha256) {
            return Err(Error::ListedOtherwise { file, index, listed, pinned: release.sha256.clone() });
        }
        for known in self.catalog.releases() {
            if let Some(listed) = files.get(&known.wheel).filter(|listed| listed.sha256.as_ref() == Some(&known.sha256)) {
                locations.put(&known.sha256, &listed.url)?;
            }
        }
        Ok(found.url.clone())
    }

    /// Takes the files of a release out of the wheel at `url`.
    fn fill_from(&self, release: &TorchRelease, url: Url, client: &Client<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let TorchRelease { wheel: file, size, sha256, record_sha256, .. } = release;
        let pin = Pin { file, size: *size, sha256, record_sha256 };
        let mut source = Source::new(client, url, pin, tree.scratch("wheel"));
        let wheel = Wheel::open(&mut source)?;
        wheel.extract(&mut source, &TORCH, &mut |file| tree.file(file.path, file.content, &file.sha256))
    }

    /// A client of the index for one purpose.
    fn client<'c>(&'c self, network: &'c Network, what: String) -> Client<'c> {
        let credentials = network.index.credentials();
        Client::new(&*network.transport, self.options.retry, credentials, self.events, self.interrupt.clone(), what)
    }

    /// Takes a lock, and says so if that means waiting.
    fn lock(&self, path: &std::path::Path, what: &str) -> Result<Lock, Error> {
        Lock::acquire(path, &self.interrupt, |pid| (self.events)(FetchEvent::WaitingForLock { what: what.to_owned(), pid }))
    }
}

/// What decides the content of a release's tree, as 64 hexadecimal digits.
fn tree_digest(release: &TorchRelease) -> String {
    HEXLOWER.encode(&Sha256::digest(format!("kiln tree 1\n{}\n{}", release.record_sha256, TORCH.key())))
}

/// Name of a release's tree, in the store and as a root.
fn tree_name(release: &TorchRelease) -> String {
    let digest = tree_digest(release);
    format!("torch-{}-{}-{}", release.version, release.platform, digest.get(..16).unwrap_or(&digest))
}
