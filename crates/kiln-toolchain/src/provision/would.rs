//! Whether a toolchain would be provided, asked without fetching it.

use kiln_format::Version;

use super::{Item, Provisioner};
use crate::error::Error;
use crate::http::{Client, HttpError, HttpFault, IndexUrl, RetryPolicy};
use crate::index::{self, Locations};
use crate::network::Network;
use crate::part::Part;

/// Where a toolchain would come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It is in the store.
    Stored,
    /// An index lists its wheel, which can be read.
    Listed,
}

impl Provisioner<'_> {
    /// Goes the way of [`Provisioner::torch`] up to the point where the wheel itself would be read: at most a page of the index and
    /// a byte of the wheel are fetched.
    ///
    /// # Errors
    /// Those with which [`Provisioner::torch`] would end.
    pub fn would_provide_torch(&self, version: &Version, platform: &str) -> Result<Availability, Error> {
        self.would_provide(&Item::from(self.catalog.torch(version, platform)?))
    }

    /// The same for [`Provisioner::tvm_ffi`].
    ///
    /// # Errors
    /// Those with which [`Provisioner::tvm_ffi`] would end.
    pub fn would_provide_tvm_ffi(&self, version: &Version, platform: &str) -> Result<Availability, Error> {
        self.would_provide(&Item::from(self.catalog.tvm_ffi(version, platform)?))
    }

    fn would_provide(&self, item: &Item) -> Result<Availability, Error> {
        let Item { info, part, what, argument } = item;
        self.told(|| {
            if self.find(info).is_some() {
                return Ok(Availability::Stored);
            }
            let forbidden = || self.forbidden(what, argument);
            if self.options.offline && !(self.network)().is_ok_and(|network| network.has_local()) {
                return Err(forbidden());
            }
            let _lock = self.lock(&self.store.lock_file(&info.id()), what)?;
            let network = (self.network)()?;
            let client = network.client(self.options.retry, self.options.offline, self.events, self.interrupt.clone(), what.clone());
            self.see(part, &network, &client).map_err(|error| match error {
                Error::Fetch { source: HttpError { fault: HttpFault::Offline, .. }, .. } => forbidden(),
                error => error,
            })?;
            Ok(Availability::Listed)
        })
    }

    /// Asks the package index for one page, once.
    ///
    /// # Errors
    /// When there is no index, or it does not answer as one.
    pub fn ask_index(&self) -> Result<(), Error> {
        self.told(|| {
            let network = (self.network)()?;
            let once = RetryPolicy { attempts: 1, ..self.options.retry };
            let client = network.client(once, self.options.offline, self.events, self.interrupt.clone(), "the index".to_owned());
            index::files(&client, &network.index, "torch").map(drop)
        })
    }

    /// Sees that one of the indexes has the wheel of a part.
    fn see(&self, part: &Part, network: &Network, client: &Client<'_>) -> Result<(), Error> {
        let mut missing = None;
        for index in network.indexes_for(&part.wheel.file) {
            match self.see_at(part, index, client) {
                Err(error @ (Error::NoProject { .. } | Error::NotListed { .. } | Error::NoAccess { .. })) => {
                    missing.get_or_insert(error);
                }
                result => return result,
            }
        }
        Err(missing.unwrap_or_else(|| Error::NoIndex { asked: Vec::new() }))
    }

    fn see_at(&self, part: &Part, index: &IndexUrl, client: &Client<'_>) -> Result<(), Error> {
        let locations = Locations::new(&self.options.cache_dir, index);
        let first_byte = |url: &url::Url| client.range(url, &(0..1)).map(drop).map_err(Error::fetch(&format!("`{}`", part.wheel.file)));
        if let Some(url) = locations.get(&part.wheel.sha256) {
            match first_byte(&url) {
                Err(Error::Fetch { source, .. }) if source.fault.is_gone() => locations.forget(&part.wheel.sha256),
                result => return result,
            }
        }
        first_byte(&self.look_up(&part.wheel, index, &locations, client)?)
    }
}
