//! Whether a toolchain would be provided, asked without fetching it.

use kiln_format::Version;
use kiln_format::variant::Compute;

use super::{Item, Provisioner, part_item};
use crate::error::Error;
use crate::http::{Client, IndexUrl, RetryPolicy};
use crate::index::{self, Locations};
use crate::network::Network;
use crate::part::{Part, digest_of};
use crate::store::TreeInfo;

/// Where a toolchain would come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It is in the store.
    Stored,
    /// An index lists its wheel, which can be read.
    Listed,
}

/// Bytes of the store that a part takes at least: headers of torch come as a few MiB and are several times as many on the disk.
fn room_for(part: &Part) -> u64 {
    const AT_LEAST: u64 = 32 << 20;
    part.wheel.size.min(AT_LEAST)
}

impl Provisioner<'_> {
    /// Goes the way of [`Provisioner::torch_for`] up to the point where the wheel itself would be read: at most a page of the index and
    /// a byte of the wheel are fetched.
    ///
    /// # Errors
    /// Those with which [`Provisioner::torch_for`] would end before it compares headers.
    pub fn would_provide_torch(&self, version: &Version, compute: Compute, platform: &str) -> Result<Availability, Error> {
        let release = self.catalog.torch_for(version, compute, platform)?.release;
        let item = Item::from(release);
        let availability = self.would_provide(&item)?;
        if let Some(tree) = self.find(&item.info) {
            self.see_stated(release, &tree)?;
        }
        if !release.locked || self.store.names(&release.names).is_some() {
            return Ok(availability);
        }
        // The list of names of a pinned release is made from a whole copy of its wheel.
        self.told(|| {
            if availability == Availability::Stored {
                self.would_fetch(&item.part, &item.what, || self.forbidden(&item.what, &item.argument))?;
            }
            self.store.see_room(item.part.wheel.size)?;
            Ok(Availability::Listed)
        })
    }

    /// The same for [`Provisioner::assemble`]: each wheel whose part is not in the store is looked for.
    ///
    /// # Errors
    /// Those with which [`Provisioner::assemble`] would end.
    pub fn would_assemble(&self, name: &str, parts: &[Part]) -> Result<Availability, Error> {
        self.told(|| {
            let info = TreeInfo::new(name.to_owned(), digest_of(parts), parts.to_vec());
            if self.find(&info).is_some() {
                return Ok(Availability::Stored);
            }
            let missing = self.missing(parts);
            for part in &missing {
                let own = part_item(part, name);
                self.would_fetch(part, &own.what, || self.lacks(name, parts, &missing))?;
            }
            self.store.see_room(missing.iter().map(|part| room_for(part)).sum())?;
            Ok(if missing.is_empty() { Availability::Stored } else { Availability::Listed })
        })
    }

    /// The same for [`Provisioner::tvm_ffi`].
    ///
    /// # Errors
    /// Those with which [`Provisioner::tvm_ffi`] would end.
    pub fn would_provide_tvm_ffi(&self, version: &Version, platform: &str) -> Result<Availability, Error> {
        self.would_provide(&Item::from(self.catalog.tvm_ffi(version, platform)?))
    }

    /// The same for [`Provisioner::torch_addition`]; none where torch itself knows the device.
    ///
    /// # Errors
    /// Those with which [`Provisioner::torch_addition`] would end.
    pub fn would_provide_torch_addition(&self, torch: &Version, compute: Compute, platform: &str) -> Result<Option<Availability>, Error> {
        let Compute::Cann(_) = compute else { return Ok(None) };
        let release = self.catalog.torch_npu_for(torch, platform)?;
        self.would_provide(&Item::from(release)).map(Some)
    }

    fn would_provide(&self, item: &Item) -> Result<Availability, Error> {
        let Item { info, part, what, argument } = item;
        self.told(|| {
            if self.find(info).is_some() {
                return Ok(Availability::Stored);
            }
            let _lock = if self.is_cut_off() { None } else { Some(self.lock(&self.store.lock_file(&info.id()), what)?) };
            let found = self.would_fetch(part, what, || self.forbidden(what, argument))?;
            self.store.see_room(room_for(part))?;
            Ok(found)
        })
    }

    /// Sees that the wheel of a part could be fetched; `forbidden` is the error when the network may not be used.
    fn would_fetch(&self, part: &Part, what: &str, forbidden: impl Fn() -> Error) -> Result<Availability, Error> {
        if self.is_cut_off() {
            return Err(forbidden());
        }
        let network = (self.network)()?;
        let client = self.client(&network, what.to_owned());
        self.see(part, &network, &client).map_err(|error| if error.is_offline() { forbidden() } else { error })?;
        Ok(Availability::Listed)
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
