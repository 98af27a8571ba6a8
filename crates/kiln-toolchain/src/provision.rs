//! Toolchains from wheels: catalog, index, wheel and store put together.

mod maintain;
mod pin;
mod stand_in;
mod would;

pub use self::maintain::{Collected, DamagedEntry, StoredTree};
pub use self::pin::{OfferedTorch, PinnedTorch};

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_format::Version;
use kiln_format::variant::Compute;
use kiln_graph::{Interrupt, PathRef, RootBinding, RootKind, RootName};
use url::Url;

pub use self::would::Availability;
use crate::catalog::{Catalog, TorchBuild, TorchNpuRelease, TorchRelease, TvmFfiRelease};
use crate::error::Error;
use crate::event::{FetchEvent, FetchSink};
use crate::http::{Client, IndexUrl, RetryPolicy};
use crate::index::{self, Locations};
use crate::names::{self, LibraryExports};
use crate::network::Network;
use crate::part::{Members, Part, WheelPin, digest_of};
use crate::store::{Lock, Store, StoreTree, TreeInfo, TreeWriter};
use crate::terms::Terms;
use crate::toolchain::{Provider, TorchAddition, TorchToolchain, TvmFfiToolchain, torch_libraries};
use crate::wheel::{Pin, Reading, Source, Wheel};

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
    /// Further cache directories, such as one that an administrator provides. Their trees are used as they are; nothing is written there.
    pub lower: Vec<PathBuf>,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// How often a request is made again.
    pub retry: RetryPolicy,
}

/// Makes toolchains from wheels.
pub struct Provisioner<'a> {
    catalog: &'a Catalog,
    options: ProvisionOptions,
    network: &'a (dyn Fn() -> Result<Network, Error> + Sync),
    events: &'a FetchSink<'a>,
    interrupt: Interrupt,
    store: Store,
    /// The trees that were given out, by id. The files keep them from being removed by others.
    used: Mutex<BTreeMap<String, (StoreTree, Option<File>)>>,
    /// Files that keep names files from being removed by others.
    held: Mutex<Vec<File>>,
    /// The names files that were read, by name: every compute of a release asks for the same one.
    names: Mutex<BTreeMap<String, Vec<LibraryExports>>>,
}

impl<'a> Provisioner<'a> {
    /// A provisioner. `network` is called only when something has to be fetched. Offline, only indexes that are on this
    /// machine are used.
    pub fn new(
        catalog: &'a Catalog,
        options: ProvisionOptions,
        network: &'a (dyn Fn() -> Result<Network, Error> + Sync),
        events: &'a FetchSink<'a>,
    ) -> Self {
        let store = Store::new(&options.cache_dir, &options.lower);
        let (used, held, names) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { catalog, options, network, events, interrupt: Interrupt::new(), store, used, held, names }
    }

    /// The same, stopped by `interrupt`: a fetch, or a wait for another one, ends with [`Error::Interrupted`] then.
    #[must_use]
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// The toolchain of a torch release, fetched if the store does not have it. With everything in the store this reads
    /// no more than a few small files and the names of the libraries.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`]; [`Error::Offline`]; those of a fetch, of the index and of the store. Nothing partial is
    /// ever left in the store.
    pub fn torch(&self, version: &Version, platform: &str) -> Result<TorchToolchain, Error> {
        let release = self.catalog.torch(version, platform)?;
        let tree = self.provide(release)?;
        Ok(self.toolchain(release, tree, self.exports(release)?))
    }

    /// The toolchain of a torch release for variants with this compute: of the build that is configured for it, or of one that may
    /// stand in for that. Without `fetch`, as [`Provisioner::planned_torch`].
    ///
    /// # Errors
    /// As [`Provisioner::torch`]; [`Error::HeadersDiffer`] where no build may stand in.
    pub fn torch_for(&self, version: &Version, compute: Compute, platform: &str, fetch: bool) -> Result<TorchToolchain, Error> {
        let TorchBuild { release, own } = self.catalog.torch_for(version, compute, platform)?;
        let tree = if fetch { self.provide(release)? } else { self.planned(torch_tree(release)) };
        let stand_in = if own { None } else { self.told(|| self.stand_in(release, &tree, compute, fetch))? };
        let exports = if fetch { self.exports(release)? } else { self.planned_exports(release)? };
        Ok(TorchToolchain { stand_in, ..self.toolchain(release, tree, exports) })
    }

    /// The toolchain of a torch release as a plan needs it: nothing is fetched, so the directory that it names may not
    /// be there, and the sets of exported names may be empty.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn planned_torch(&self, version: &Version, platform: &str) -> Result<TorchToolchain, Error> {
        let release = self.catalog.torch(version, platform)?;
        Ok(self.toolchain(release, self.planned(torch_tree(release)), self.planned_exports(release)?))
    }

    /// The toolchain of a tvm-ffi release, fetched if the store does not have it.
    ///
    /// # Errors
    /// [`Error::UnknownTvmFfi`]; otherwise as [`Provisioner::torch`].
    pub fn tvm_ffi(&self, version: &Version, platform: &str) -> Result<TvmFfiToolchain, Error> {
        let release = self.catalog.tvm_ffi(version, platform)?;
        tvm_ffi_toolchain(release, self.told(|| self.find_or_fetch(&Item::from(release)))?)
    }

    /// The toolchain of a tvm-ffi release as a plan needs it: nothing is fetched, so the directory that it names may not be there.
    ///
    /// # Errors
    /// [`Error::UnknownTvmFfi`].
    pub fn planned_tvm_ffi(&self, version: &Version, platform: &str) -> Result<TvmFfiToolchain, Error> {
        let release = self.catalog.tvm_ffi(version, platform)?;
        tvm_ffi_toolchain(release, self.planned(release.tree()))
    }

    /// The package beside torch that variants of a torch release with this compute need; none where torch itself knows the device. Without
    /// `fetch` as a plan needs it: the directory that it names may not be there.
    ///
    /// # Errors
    /// [`Error::UnknownTorchNpu`]; otherwise as [`Provisioner::torch`].
    pub fn torch_addition(&self, torch: &Version, compute: Compute, platform: &str, fetch: bool) -> Result<Option<TorchAddition>, Error> {
        let Compute::Cann(_) = compute else { return Ok(None) };
        let release = self.catalog.torch_npu_for(torch, platform)?;
        let tree = if fetch { self.told(|| self.find_or_fetch(&Item::from(release)))? } else { self.planned(release.tree()) };
        torch_addition(release, tree).map(Some)
    }

    /// The catalog that it works from.
    pub fn catalog(&self) -> &Catalog {
        self.catalog
    }

    /// A tree of several wheels: the parts are fetched, each into a tree of its own that others can share, and put together by hard
    /// links (copies where the file system has none). `name` is for people; the tree's id also has a digest of all parts. The tree
    /// stays in use, and is not removed by another process, for as long as this provisioner lives.
    ///
    /// # Errors
    /// As [`Provisioner::torch`]; [`Error::Member`] for a path at which two wheels have different files.
    pub fn assemble(&self, name: &str, parts: &[Part]) -> Result<StoreTree, Error> {
        self.told(|| self.find_or_assemble(name, parts))
    }

    /// The tree that [`Provisioner::assemble`] would give, as a plan needs it: nothing is fetched, so it may not be there.
    pub fn planned_tree(&self, name: &str, parts: &[Part]) -> StoreTree {
        self.planned(TreeInfo::new(name.to_owned(), digest_of(parts), parts.to_vec()))
    }

    /// The ids of the trees that were given out so far, sorted.
    pub fn given_out(&self) -> BTreeSet<String> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// What keeps the trees that were given out from being removed by others, for as long as these files are open.
    pub fn into_marks(self) -> Vec<File> {
        let used = self.used.into_inner().unwrap_or_else(PoisonError::into_inner);
        used.into_values().filter_map(|(_, mark)| mark).collect()
    }

    /// The terms under which the files in `dir` come, if that is the directory of a tree that was given out.
    pub fn terms_of(&self, dir: &Path) -> Vec<Terms> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.values().find(|(tree, _)| tree.dir == dir).map(|(tree, _)| tree.terms.clone()).unwrap_or_default()
    }

    fn planned(&self, info: TreeInfo) -> StoreTree {
        let dir = self.store.place(&info.id());
        self.store.find(&info).unwrap_or_else(|| StoreTree { id: info.id(), digest: info.digest, dir, terms: Vec::new() })
    }

    fn toolchain(&self, release: &TorchRelease, tree: StoreTree, exports: Vec<LibraryExports>) -> TorchToolchain {
        let root = RootName::new(tree.id);
        let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
        TorchToolchain {
            version: release.version.clone(),
            cuda: release.cuda.clone(),
            provider: provider(&release.wheel),
            include_dirs: vec![include("torch/include"), include("torch/include/torch/csrc/api/include")],
            root,
            binding: RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest.clone() } },
            exports,
            terms: tree.terms,
            identity: tree.digest,
            cxx_level: release.cxx_level,
            stand_in: None,
            addition: None,
        }
    }

    /// What the libraries of a release export.
    fn exports(&self, release: &TorchRelease) -> Result<Vec<LibraryExports>, Error> {
        let mut read = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(&release.names) {
            return Ok(known.clone());
        }
        let exports = self.read_exports(release)?;
        read.insert(release.names.clone(), exports.clone());
        Ok(exports)
    }

    /// The same for a plan, which fetches nothing. The names of a pinned release are made from its whole wheel: as long as they are not
    /// in the store, only what its libraries are called is known, and the sets are empty.
    fn planned_exports(&self, release: &TorchRelease) -> Result<Vec<LibraryExports>, Error> {
        if !release.locked || self.store.names(&release.names).is_some() {
            return self.exports(release);
        }
        let library = |soname: &&str| LibraryExports { soname: (*soname).to_owned(), names: Arc::default() };
        Ok(torch_libraries(&release.platform).iter().map(library).collect())
    }

    fn read_exports(&self, release: &TorchRelease) -> Result<Vec<LibraryExports>, Error> {
        if !release.locked {
            return names::of_catalog(&release.names);
        }
        // Whoever provides the release has seen to it that they are there.
        let place = self.store.names_place(&release.names);
        let bytes = self.store.names(&release.names).ok_or_else(|| Error::store("read", &place)(io::ErrorKind::NotFound.into()))?;
        names::decode(&bytes).map_err(|cause| Error::Catalog { reason: format!("names file `{}`: {cause}", release.names) })
    }

    /// Fetches a release into the store, if it is not there; gives the directory that holds its `torch/include`.
    ///
    /// # Errors
    /// As [`Provisioner::torch`].
    pub fn fetch(&self, version: &Version, platform: &str) -> Result<PathBuf, Error> {
        Ok(self.provide(self.catalog.torch(version, platform)?)?.dir)
    }

    /// The same for the build with just this local part of its version, or with none.
    ///
    /// # Errors
    /// As [`Provisioner::torch`].
    pub fn fetch_build(&self, version: &Version, local: Option<&str>, platform: &str) -> Result<PathBuf, Error> {
        Ok(self.provide(self.catalog.torch_build(version, local, platform)?)?.dir)
    }

    /// The directory that holds a build's `torch/include`, if the store has it.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn path_of_build(&self, version: &Version, local: Option<&str>, platform: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.store.tree(&torch_tree(self.catalog.torch_build(version, local, platform)?).id()))
    }

    /// The directory that holds a release's `torch/include`, if the store has it.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn path(&self, version: &Version, platform: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.store.tree(&torch_tree(self.catalog.torch(version, platform)?).id()))
    }

    /// Every release of the catalog, by ascending version, then platform, with its place in the store.
    pub fn list(&self) -> Vec<StoreEntry> {
        let entry = |release: &TorchRelease| StoreEntry { release: release.clone(), dir: self.store.tree(&torch_tree(release).id()) };
        self.catalog.releases().iter().map(entry).collect()
    }

    /// Fetches a release of tvm-ffi into the store, if it is not there.
    ///
    /// # Errors
    /// As [`Provisioner::tvm_ffi`].
    pub fn fetch_tvm_ffi(&self, version: &Version, platform: &str) -> Result<(), Error> {
        let item = Item::from(self.catalog.tvm_ffi(version, platform)?);
        self.told(|| self.find_or_fetch(&item)).map(drop)
    }

    /// The directory that holds the headers of a release of tvm-ffi, if the store has it.
    ///
    /// # Errors
    /// [`Error::UnknownTvmFfi`].
    pub fn path_of_tvm_ffi(&self, version: &Version, platform: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.store.tree(&self.catalog.tvm_ffi(version, platform)?.tree().id()))
    }

    /// Hashes a fetched release again.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`]; [`Error::Damaged`] with the first file that is not what was fetched.
    pub fn verify(&self, version: &Version, platform: &str) -> Result<(), Error> {
        self.store.verify(&torch_tree(self.catalog.torch(version, platform)?).id())
    }

    /// The files of a release, out of the store or fetched.
    fn provide(&self, release: &TorchRelease) -> Result<StoreTree, Error> {
        self.told(|| {
            self.restore_names(release)?;
            let tree = self.find_or_fetch(&Item::from(release))?;
            self.see_stated(release, &tree)?;
            Ok(tree)
        })
    }

    /// The error of something that is missing while the network may not be used.
    fn forbidden(&self, what: &str, argument: &str) -> Error {
        // What is a release can be fetched by itself; whatever else a build needs, it fetches.
        let is_release = argument.split_once("==").is_some_and(|(name, _)| matches!(name, "torch" | "tvm-ffi"));
        let command = if is_release { format!("kiln toolchain fetch {argument}") } else { "kiln build".to_owned() };
        Error::Offline { what: what.to_owned(), command }
    }

    /// Whatever fails after an interrupt fails because of it.
    fn told<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        act().map_err(|error| if self.interrupt.is_set() { Error::Interrupted } else { error })
    }

    fn find_or_assemble(&self, name: &str, parts: &[Part]) -> Result<StoreTree, Error> {
        let info = TreeInfo::new(name.to_owned(), digest_of(parts), parts.to_vec());
        if let Some(tree) = self.find(&info) {
            return Ok(tree);
        }
        let lock = self.lock(&self.store.lock_file(&info.id()), name)?;
        if let Some(tree) = self.find(&info) {
            return Ok(tree);
        }
        let missing = if self.is_cut_off() { self.missing(parts) } else { Vec::new() };
        if !missing.is_empty() {
            // All that is missing, not just the first.
            return Err(self.lacks(name, parts, &missing));
        }
        let mut trees = Vec::new();
        for part in parts {
            trees.push((part.clone(), self.find_or_fetch(&part_item(part, name))?));
        }
        let _mark = self.store.mark_used(&info.id());
        let tree = self.store.create(info.clone(), &lock, |tree| self.store.link(&trees, tree))?;
        Ok(self.find(&info).unwrap_or(tree))
    }

    /// Those parts whose trees are not in the store.
    fn missing<'p>(&self, parts: &'p [Part]) -> Vec<&'p Part> {
        parts.iter().filter(|part| self.find(&part_item(part, "").info).is_none()).collect()
    }

    /// The error of a tree of `parts`, some of which are missing, while the network may not be used.
    fn lacks(&self, name: &str, parts: &[Part], missing: &[&Part]) -> Error {
        let wheels: Vec<String> = missing.iter().map(|part| part_item(part, "").what).collect();
        let wheels = wheels.join(", ");
        self.forbidden(&if parts.len() == 1 { wheels } else { format!("{name} ({wheels})") }, name)
    }

    /// Whether there is no way to any index.
    fn is_cut_off(&self) -> bool {
        self.options.offline && !(self.network)().is_ok_and(|network| network.has_local())
    }

    /// A tree that is there; from now on it is in use.
    fn find(&self, info: &TreeInfo) -> Option<StoreTree> {
        // In this order: a tree is not removed while it is in use.
        let mark = self.store.mark_used(&info.id());
        let tree = self.store.find(info)?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).entry(info.id()).or_insert((tree.clone(), mark));
        Some(tree)
    }

    /// The tree of one part, out of the store or fetched.
    fn find_or_fetch(&self, item: &Item) -> Result<StoreTree, Error> {
        let Item { info, part, what, argument } = item;
        if let Some(tree) = self.find(info) {
            return Ok(tree);
        }
        let forbidden = || self.forbidden(what, argument);
        if self.is_cut_off() {
            return Err(forbidden());
        }
        let lock = self.lock(&self.store.lock_file(&info.id()), what)?;
        if let Some(tree) = self.find(info) {
            return Ok(tree);
        }
        // In use before it is there: nobody removes it in between.
        let _mark = self.store.mark_used(&info.id());
        let tree = self.make(info.clone(), part, what, &lock).map_err(|error| if error.is_offline() { forbidden() } else { error })?;
        Ok(self.find(info).unwrap_or(tree))
    }

    /// Fetches a part and makes its tree, whose lock the caller holds.
    fn make(&self, info: TreeInfo, part: &Part, what: &str, lock: &Lock) -> Result<StoreTree, Error> {
        let network = (self.network)()?;
        let client = self.client(&network, what.to_owned());
        client.tell(FetchEvent::Started { what: what.to_owned() });
        let tree = self.store.create(info, lock, |tree| self.fill(part, &network, &client, tree))?;
        let traffic = client.traffic();
        client.tell(FetchEvent::Finished { what: what.to_owned(), bytes: traffic.bytes, requests: traffic.requests });
        Ok(tree)
    }

    /// Fetches the files of a part into a new tree, from the first index that has its wheel.
    fn fill(&self, part: &Part, network: &Network, client: &Client<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let mut missing = None;
        for index in network.indexes_for(&part.wheel.file) {
            match self.fill_at(part, index, client, tree) {
                Err(error @ (Error::NoProject { .. } | Error::NotListed { .. } | Error::NoAccess { .. })) => {
                    missing.get_or_insert(error);
                }
                result => return result,
            }
        }
        // There is always an index: this is the error of the first one.
        Err(missing.unwrap_or_else(|| Error::NoIndex { asked: Vec::new() }))
    }

    /// The same, from one index.
    fn fill_at(&self, part: &Part, index: &IndexUrl, client: &Client<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let locations = Locations::new(&self.options.cache_dir, index);
        if let Some(url) = locations.get(&part.wheel.sha256) {
            match Self::fill_from(part, url, client, tree) {
                Err(Error::Fetch { source, .. }) if source.fault.is_gone() => {
                    locations.forget(&part.wheel.sha256);
                    tree.clear()?;
                }
                result => return result,
            }
        }
        let url = self.look_up(&part.wheel, index, &locations, client)?;
        Self::fill_from(part, url, client, tree)
    }

    /// Asks the index where a wheel is. What else of the catalog its answer locates is remembered too.
    fn look_up(&self, pin: &WheelPin, index: &IndexUrl, locations: &Locations, client: &Client<'_>) -> Result<Url, Error> {
        let _lock = self.lock(&locations.lock_file(), "the index")?;
        if let Some(url) = locations.get(&pin.sha256) {
            // Another process asked while this one waited.
            return Ok(url);
        }
        let files = index::files(client, index, &pin.project)?;
        let (file, index) = (pin.file.clone(), index.to_string());
        let found = files.get(&pin.file).ok_or_else(|| Error::NotListed { file: file.clone(), index: index.clone() })?;
        if let Some(listed) = found.sha256.clone().filter(|listed| *listed != pin.sha256) {
            return Err(Error::ListedOtherwise { file, index, listed, pinned: pin.sha256.clone() });
        }
        locations.put(&pin.sha256, &found.url)?;
        let torch = self.catalog.releases().iter().map(|release| &release.wheel);
        let torch_npu = self.catalog.torch_npu_releases().iter().map(|release| &release.wheel);
        for known in torch.chain(torch_npu).chain(self.catalog.tvm_ffi_releases().iter().map(|release| &release.wheel)) {
            if let Some(listed) = files.get(&known.file).filter(|listed| listed.sha256.as_ref() == Some(&known.sha256)) {
                locations.put(&known.sha256, &listed.url)?;
            }
        }
        Ok(found.url.clone())
    }

    /// Takes the files of a part, and the terms of its wheel, out of the wheel at `url`.
    fn fill_from(part: &Part, url: Url, client: &Client<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let WheelPin { file, size, sha256, record_sha256, .. } = &part.wheel;
        let pin = Pin { file, size: *size, sha256, record_sha256 };
        let mut source = Source::new(client, url, pin, tree.scratch("wheel"));
        Self::unpack(part, &mut source, tree)
    }

    fn unpack(part: &Part, source: &mut Source<'_>, tree: &mut TreeWriter) -> Result<(), Error> {
        let wheel = Wheel::open(source, &part.members, &Reading::default())?;
        let (mut terms, texts) = wheel.terms(source, &part.wheel)?;
        wheel.extract(source, &part.members, &mut |file| tree.file(file.path, file.content, &file.sha256, file.program))?;
        for (name, content) in texts {
            let path = format!("{}-{}/{name}", part.wheel.project, part.wheel.version());
            tree.term(&path, &content)?;
            terms.files.push(path);
        }
        tree.info.terms = vec![Terms { ..terms }];
        Ok(())
    }

    /// A client for one purpose, which it reports under the name `what`.
    fn client<'c>(&'c self, network: &'c Network, what: String) -> Client<'c> {
        network.client(self.options.retry, self.options.offline, self.events, self.interrupt.clone(), what)
    }

    /// Takes a lock, and says so if that means waiting.
    fn lock(&self, path: &std::path::Path, what: &str) -> Result<Lock, Error> {
        Lock::acquire(path, &self.interrupt, |pid| (self.events)(FetchEvent::WaitingForLock { what: what.to_owned(), pid }))
    }
}

/// The member of a torch wheel that says which build it is.
const VERSION_PY: &str = "torch/version.py";

/// What a build needs of a torch wheel: all headers, and the file that says which build it is.
fn torch_part(release: &TorchRelease) -> Part {
    let members =
        Members { dirs: vec!["torch/include/".to_owned()], files: vec![VERSION_PY.to_owned()], programs: Vec::new(), max_size: 512 << 20 };
    Part::whole(release.wheel.clone(), members)
}

/// The tree of a release: its one part.
fn torch_tree(release: &TorchRelease) -> TreeInfo {
    let part = torch_part(release);
    TreeInfo::new(format!("torch-{}-{}", release.version, release.platform), part.digest(), vec![part])
}

/// A tree of one part, and what messages call it.
struct Item {
    info: TreeInfo,
    part: Part,
    /// For people: `torch 2.13.0 (linux-x86_64)`.
    what: String,
    /// For commands: `torch==2.13.0`.
    argument: String,
}

impl From<&TorchRelease> for Item {
    fn from(release: &TorchRelease) -> Self {
        Self {
            info: torch_tree(release),
            part: torch_part(release),
            what: format!("torch {} ({})", release.shown(), release.platform),
            argument: format!("torch=={}", release.shown()),
        }
    }
}

impl From<&TvmFfiRelease> for Item {
    fn from(release: &TvmFfiRelease) -> Self {
        Self {
            info: release.tree(),
            part: release.part(),
            what: format!("tvm-ffi {} ({})", release.version, release.platform),
            argument: format!("tvm-ffi=={}", release.version),
        }
    }
}

impl From<&TorchNpuRelease> for Item {
    fn from(release: &TorchNpuRelease) -> Self {
        Self {
            info: release.tree(),
            part: release.part(),
            what: format!("torch-npu {} ({})", release.wheel.version(), release.platform),
            argument: format!("torch-npu=={}", release.wheel.version()),
        }
    }
}

fn provider(wheel: &WheelPin) -> Provider {
    Provider::Wheel { file: wheel.file.clone(), sha256: wheel.sha256.clone(), record_sha256: wheel.record_sha256.clone() }
}

fn tvm_ffi_toolchain(release: &TvmFfiRelease, tree: StoreTree) -> Result<TvmFfiToolchain, Error> {
    let root = RootName::new(tree.id);
    Ok(TvmFfiToolchain {
        version: release.version.clone(),
        provider: provider(&release.wheel),
        include_dirs: TvmFfiRelease::INCLUDE_DIRS.map(|dir| PathRef { root: root.clone(), path: dir.to_owned() }).to_vec(),
        root,
        binding: RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest.clone() } },
        exports: release.exports()?,
        identity: tree.digest,
        terms: tree.terms,
    })
}

fn torch_addition(release: &TorchNpuRelease, tree: StoreTree) -> Result<TorchAddition, Error> {
    let root = RootName::new(tree.id);
    Ok(TorchAddition {
        name: release.wheel.project.clone(),
        version: release.wheel.version().to_owned(),
        torch: release.torch.clone(),
        provider: provider(&release.wheel),
        include_dirs: TorchNpuRelease::INCLUDE_DIRS.map(|dir| PathRef { root: root.clone(), path: dir.to_owned() }).to_vec(),
        root,
        binding: RootBinding { dir: tree.dir, kind: RootKind::Immutable { digest: tree.digest.clone() } },
        exports: release.exports()?,
        identity: tree.digest,
        terms: tree.terms,
    })
}

/// The tree of a part by itself, which trees that are put together share. `argument` is what asks for it.
fn part_item(part: &Part, argument: &str) -> Item {
    let (project, version) = (&part.wheel.project, part.wheel.version());
    let info = TreeInfo::new(format!("{project}-{version}"), part.digest(), vec![part_in_place(part)]);
    Item { info, part: part_in_place(part), what: format!("{project} {version}"), argument: argument.to_owned() }
}

/// The same part with its members at their own paths.
fn part_in_place(part: &Part) -> Part {
    Part::whole(part.wheel.clone(), part.members.clone())
}
