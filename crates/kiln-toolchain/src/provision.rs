//! Torch toolchains from wheels: catalog, index, wheel and store put together.

use std::path::PathBuf;

use kiln_format::Version;

use crate::catalog::{Catalog, TorchRelease};
use crate::error::Error;
use crate::event::FetchSink;
use crate::http::{IndexUrl, RetryPolicy, Transport};
use crate::toolchain::TorchToolchain;

/// The directory of a provisioned tree, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    /// The release.
    pub release: TorchRelease,
    /// Where its headers are; none if they were not fetched yet.
    pub dir: Option<PathBuf>,
}

/// How a provisioner works.
#[derive(Clone, Debug)]
pub struct ProvisionOptions {
    /// The directory of everything that is shared between projects.
    pub cache_dir: PathBuf,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// How often a request is made again.
    pub retry: RetryPolicy,
}

/// Where an index comes from: asked for only when something has to be fetched.
pub type IndexSource<'a> = dyn Fn() -> Result<IndexUrl, Error> + Sync + 'a;

/// Makes torch toolchains from wheels.
pub struct Provisioner<'a> {
    catalog: &'a Catalog,
    options: ProvisionOptions,
    index: &'a IndexSource<'a>,
    transport: &'a dyn Transport,
    events: &'a FetchSink<'a>,
}

impl<'a> Provisioner<'a> {
    /// A provisioner. `index` is called only when something has to be fetched.
    pub fn new(
        catalog: &'a Catalog,
        options: ProvisionOptions,
        index: &'a IndexSource<'a>,
        transport: &'a dyn Transport,
        events: &'a FetchSink<'a>,
    ) -> Self {
        Self { catalog, options, index, transport, events }
    }

    /// The toolchain of a torch release, fetched if the store does not have it.
    ///
    /// # Errors
    /// Any of [`Error`]; nothing partial is left in the store.
    pub fn torch(&self, version: &Version, platform: &str) -> Result<TorchToolchain, Error> {
        todo!("{version} {platform} {:?}", (&self.catalog, &self.options, self.index as *const _, self.transport as *const _, self.events as *const _))
    }

    /// Fetches a release into the store, if it is not there; gives the directory of its headers.
    ///
    /// # Errors
    /// As [`Provisioner::torch`].
    pub fn fetch(&self, version: &Version, platform: &str) -> Result<PathBuf, Error> {
        todo!("{version} {platform}")
    }

    /// The directory of a release's headers if the store has it.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`].
    pub fn path(&self, version: &Version, platform: &str) -> Result<Option<PathBuf>, Error> {
        todo!("{version} {platform}")
    }

    /// Every release of the catalog for `platform`, ascending, with its place in the store.
    pub fn list(&self, platform: &str) -> Vec<StoreEntry> {
        todo!("{platform}")
    }

    /// Hashes a fetched tree again.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the first file that is not what was fetched.
    pub fn verify(&self, version: &Version, platform: &str) -> Result<(), Error> {
        todo!("{version} {platform}")
    }
}
