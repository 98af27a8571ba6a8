//! Pinning releases that the catalog does not know, and making again what such a pin stands for.

use std::path::Path;
use std::sync::PoisonError;

use data_encoding::HEXLOWER;
use kiln_format::Version;
use kiln_format::lock::{self, LockedTorch};
use sha2::{Digest, Sha256};
use url::Url;

use super::{Provisioner, StoreTree, VERSION_PY, torch_part, torch_tree};
use crate::catalog::{TorchRelease, shown};
use crate::error::Error;
use crate::event::FetchEvent;
use crate::http::Client;
use crate::index::{self, Files, Locations, WheelName};
use crate::make_catalog::{self, MadeRelease};
use crate::network::{FoundWheel, Network, WantedWheel};
use crate::part::WheelPin;
use crate::toolchain::CxxLevel;
use crate::version_py::VersionPy;
use crate::wheel::{Pin, Source, fetch_whole};

/// A release of torch that an index offers for a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTorch {
    /// Release, without a local part.
    pub version: Version,
    /// The local part, such as `cu126`, where the release has one.
    pub local: Option<String>,
    /// Whether its publisher has withdrawn it.
    pub yanked: bool,
}

/// What a wheel says of itself that a lock file says too.
struct Stated<'s> {
    version: &'s Version,
    platform: Option<&'s str>,
    cuda: Option<&'s Version>,
    license: Option<&'s str>,
}

impl<'s> Stated<'s> {
    fn of(release: &'s TorchRelease) -> Self {
        let TorchRelease { version, platform, cuda, license, .. } = release;
        Self { version, platform: Some(platform), cuda: cuda.as_ref(), license: Some(license) }
    }

    /// The keys of a lock whose values are others.
    fn differing(&self, release: &TorchRelease) -> Vec<&'static str> {
        // A lock keeps a license without what its text cannot hold.
        let license = self.license.map(lock::storable);
        let all = [
            ("version", *self.version == release.version),
            ("platform", self.platform == Some(&release.platform)),
            ("cuda", self.cuda == release.cuda.as_ref()),
            ("cxx", CxxLevel::of_torch(self.version) == release.cxx_level),
            ("license", license.as_deref() == Some(&lock::storable(&release.license))),
        ];
        all.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
    }
}

fn refuse_differing(release: &TorchRelease, differing: Vec<&'static str>) -> Result<(), Error> {
    if differing.is_empty() {
        return Ok(());
    }
    Err(Error::LockDiffers { version: release.shown(), platform: release.platform.clone(), differing })
}

/// A release that was read and pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedTorch {
    /// What goes into the lock file.
    pub locked: LockedTorch,
    /// Whether the index vouches for the wheel with a digest of its own. If not, the lock holds what was found.
    pub vouched: bool,
    /// Why its publisher has withdrawn it, if that is so; the reason may be empty.
    pub yanked: Option<String>,
}

impl Provisioner<'_> {
    /// The releases of torch that the indexes offer for `platform`, by ascending version. Pre-releases are none.
    ///
    /// # Errors
    /// [`Error::Offline`], and those of a request.
    pub fn offered_torch(&self, platform: &str) -> Result<Vec<OfferedTorch>, Error> {
        self.told(|| {
            let network = self.online("the list of torch releases", "kiln toolchain update")?;
            let client = self.client(&network, "torch".to_owned());
            let mut files = index::files(&client, &network.index, "torch")?;
            if let Some(index) = &network.torch_index {
                // What both list is counted once.
                files.extend(index::files(&client, index, "torch")?);
            }
            Ok(offers(&files, platform))
        })
    }

    /// Reads a release of torch whole, compares its sha256 with what the index says, and gives what a lock file pins of it. What a
    /// build needs of it is in the store afterwards. A release that the catalog knows, or that is pinned already, is not read again.
    ///
    /// # Errors
    /// [`Error::NoWheel`] for a release that the index does not have for `platform`; [`Error::Unvouched`] when the wheel is not what the
    /// index says; [`Error::Offline`]; those of a fetch and of the store, and [`Error::Make`] for a wheel that is no torch.
    pub fn pin_torch(&self, version: &Version, local: Option<&str>, platform: &str) -> Result<PinnedTorch, Error> {
        if let Ok(known) = self.catalog.torch_build(version, local, platform) {
            return Ok(PinnedTorch { locked: self.locked(known)?, vouched: true, yanked: None });
        }
        self.told(|| self.read_torch(version, local, platform))
    }

    /// What a lock file says of a release that is known already.
    fn locked(&self, release: &TorchRelease) -> Result<LockedTorch, Error> {
        let names_sha256 = if release.locked {
            release.names.clone()
        } else {
            HEXLOWER.encode(&Sha256::digest(crate::names::catalog_file(&release.names)?))
        };
        let TorchRelease { version, platform, wheel, cuda, cxx_level, license, .. } = release.clone();
        let WheelPin { file: wheel, size, sha256, record_sha256, .. } = wheel;
        Ok(LockedTorch { version, platform, wheel, size, sha256, record_sha256, cuda, cxx: cxx_level.to_string(), license, names_sha256 })
    }

    fn read_torch(&self, version: &Version, local: Option<&str>, platform: &str) -> Result<PinnedTorch, Error> {
        let shown = shown(version, local);
        let what = format!("torch {shown} ({platform})");
        let command = format!("kiln toolchain add torch=={shown}");
        let network = self.online(&what, &command)?;
        let wanted = WantedWheel { project: "torch", release: version, local, system: platform };
        let FoundWheel { file, listed, index } = network
            .find_wheel(&wanted, self.options.retry, self.options.offline, self.events, self.interrupt.clone())
            .map_err(|error| if error.is_offline() { Error::Offline { what: what.clone(), command: command.clone() } } else { error })?;
        let lock = self.lock(&self.store.lock_file(&format!("pin-{file}")), &what)?;
        let work = self.store.scratch(&format!("pin-{file}"), &lock)?;
        let client = self.client(&network, what.clone());
        client.tell(FetchEvent::Started { what: what.clone() });
        let made = read_whole(&client, &listed.url, &file, listed.sha256.as_deref(), work.path())?;
        let (found, at) = (&made.release.version, &made.release.platform);
        if found != version || at != platform {
            let reason = format!("it is torch {found} for {at}, not {version} for {platform}");
            return Err(Error::Make(make_catalog::MakeError { wheel: file, reason }));
        }
        let names = self.keep_names(&made.names_file)?;
        let release = TorchRelease { names, locked: true, ..made.release };
        self.take_from(&release, &listed.url, &client, &work.path().join(&release.wheel.file))?;
        let locations = Locations::new(&self.options.cache_dir, &index);
        locations.put(&release.wheel.sha256, &listed.url)?;
        let traffic = client.traffic();
        client.tell(FetchEvent::Finished { what, bytes: traffic.bytes, requests: traffic.requests });
        Ok(PinnedTorch { locked: self.locked(&release)?, vouched: listed.sha256.is_some(), yanked: listed.yanked })
    }

    /// Sees to it that the names of a locked release are in the store: another machine may have pinned it. They are made from the whole
    /// wheel, as they were when it was pinned, and compared.
    pub(super) fn restore_names(&self, release: &TorchRelease) -> Result<(), Error> {
        if !release.locked || self.store.names(&release.names).is_some() {
            return Ok(());
        }
        let what = format!("torch {} ({})", release.shown(), release.platform);
        let network = self.online(&what, &format!("kiln toolchain fetch torch=={}", release.shown()))?;
        let lock = self.lock(&self.store.lock_file(&format!("pin-{}", release.wheel.file)), &what)?;
        if self.store.names(&release.names).is_some() {
            return Ok(());
        }
        let work = self.store.scratch(&format!("pin-{}", release.wheel.file), &lock)?;
        let client = self.client(&network, what.clone());
        client.tell(FetchEvent::Started { what: what.clone() });
        let url = self.find_pinned(&release.wheel, &network, &client)?;
        let made =
            read_whole(&client, &url, &release.wheel.file, Some(&release.wheel.sha256), work.path()).map_err(|error| match error {
                // Not the index, but the lock says which it is.
                Error::Unvouched { file, url, listed, found } => {
                    Error::WrongWheel { file, url, reason: format!("it has sha256 {found}, but {listed} is pinned") }
                }
                error => error,
            })?;
        let names = HEXLOWER.encode(&Sha256::digest(&made.names_file));
        let (wheel, pinned) = (&made.release.wheel, &release.wheel);
        let mut differing = Stated::of(&made.release).differing(release);
        differing.extend((wheel.size != pinned.size).then_some("size"));
        differing.extend((wheel.record_sha256 != pinned.record_sha256).then_some("record-sha256"));
        differing.extend((names != release.names).then_some("names-sha256"));
        refuse_differing(release, differing)?;
        self.keep_names(&made.names_file)?;
        self.take_from(release, &url, &client, &work.path().join(&release.wheel.file))?;
        let traffic = client.traffic();
        client.tell(FetchEvent::Finished { what, bytes: traffic.bytes, requests: traffic.requests });
        Ok(())
    }

    /// Compares what a lock says of a release with what the wheel itself says, of which its tree has what that is read from.
    ///
    /// # Errors
    /// [`Error::LockDiffers`]; those of reading the tree.
    pub(super) fn see_stated(&self, release: &TorchRelease, tree: &StoreTree) -> Result<(), Error> {
        if !release.locked {
            return Ok(());
        }
        let path = tree.dir.join(VERSION_PY);
        let text = std::fs::read(&path).map_err(Error::store("read", &path))?;
        let damaged = |reason| Error::Damaged { path: tree.dir.clone(), reason };
        let VersionPy { version, cuda, .. } = VersionPy::parse(&String::from_utf8_lossy(&text)).map_err(damaged)?;
        let license = tree.terms.first().and_then(|terms| terms.license.as_deref());
        let platform = WheelName::parse(&release.wheel.file).and_then(|name| name.system());
        refuse_differing(release, Stated { version: &version, platform, cuda: cuda.as_ref(), license }.differing(release))
    }

    /// Keeps a names file, which no other process removes for as long as this provisioner lives.
    fn keep_names(&self, content: &[u8]) -> Result<String, Error> {
        let digest = HEXLOWER.encode(&Sha256::digest(content));
        let mark = self.store.mark_used(&digest);
        self.store.put_names(&digest, content)?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(mark);
        Ok(digest)
    }

    /// Puts the tree of a release into the store, out of a whole copy of its wheel.
    fn take_from(&self, release: &TorchRelease, url: &Url, client: &Client<'_>, copy: &Path) -> Result<(), Error> {
        let (info, part) = (torch_tree(release), torch_part(release));
        if self.find(&info).is_some() {
            return Ok(());
        }
        let lock = self.lock(&self.store.lock_file(&info.id()), &format!("torch {}", release.shown()))?;
        if self.find(&info).is_some() {
            return Ok(());
        }
        let WheelPin { file, size, sha256, record_sha256, .. } = &release.wheel;
        let pin = Pin { file, size: *size, sha256, record_sha256 };
        let _mark = self.store.mark_used(&info.id());
        self.store.create(info.clone(), &lock, |tree| {
            let mut source = Source::new(client, url.clone(), pin, copy.to_owned()).with_copy()?;
            Self::unpack(&part, &mut source, tree)
        })?;
        self.find(&info);
        Ok(())
    }

    /// Where a pinned wheel is, on the first index that has it.
    fn find_pinned(&self, pin: &WheelPin, network: &Network, client: &Client<'_>) -> Result<Url, Error> {
        let mut missing = None;
        for index in network.indexes_for(&pin.file) {
            let locations = Locations::new(&self.options.cache_dir, index);
            match self.look_up(pin, index, &locations, client) {
                Err(error @ (Error::NoProject { .. } | Error::NotListed { .. } | Error::NoAccess { .. })) => {
                    missing.get_or_insert(error);
                }
                result => return result,
            }
        }
        Err(missing.unwrap_or_else(|| Error::NoIndex { asked: Vec::new() }))
    }

    /// The network, unless it is forbidden and no index is on this machine.
    fn online(&self, what: &str, command: &str) -> Result<Network, Error> {
        let forbidden = || Error::Offline { what: what.to_owned(), command: command.to_owned() };
        if !self.options.offline {
            return (self.network)();
        }
        (self.network)().ok().filter(Network::has_local).ok_or_else(forbidden)
    }
}

/// Fetches a wheel whole into `work`, compares it with `sha256` and reads it.
fn read_whole(client: &Client<'_>, url: &Url, file: &str, sha256: Option<&str>, work: &Path) -> Result<MadeRelease, Error> {
    let copy = work.join(file);
    let (_, _, found) = fetch_whole(client, url, file, &copy)?;
    if let Some(listed) = sha256.filter(|listed| *listed != found) {
        return Err(Error::Unvouched { file: file.to_owned(), url: crate::http::redacted(url), listed: listed.to_owned(), found });
    }
    make_catalog::make_release(&copy, work).map_err(Error::Make)
}

/// The releases among an index's files for `platform`, ascending. One is withdrawn when all its wheels are.
fn offers(files: &Files, platform: &str) -> Vec<OfferedTorch> {
    let mut offers: Vec<OfferedTorch> = Vec::new();
    for (file, listed) in files {
        let Some(name) = WheelName::parse(file).filter(|name| name.project == "torch" && name.system() == Some(platform)) else { continue };
        let Ok(version) = Version::parse(name.public) else { continue };
        let (local, yanked) = (name.local.map(str::to_owned), listed.yanked.is_some());
        match offers.iter_mut().find(|known| (&known.version, &known.local) == (&version, &local)) {
            Some(known) => known.yanked &= yanked,
            None => offers.push(OfferedTorch { version, local, yanked }),
        }
    }
    offers.sort_by(|a, b| (&a.version, &a.local).cmp(&(&b.version, &b.local)));
    offers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Listed;

    #[test]
    fn wheels_are_offers_of_their_releases() {
        let names = [
            "torch-2.12.0-cp310-cp310-manylinux_2_28_x86_64.whl",
            "!torch-2.12.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            "torch-2.12.0-cp311-cp311-manylinux_2_28_aarch64.whl",
            "torch-2.9.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
            "!torch-2.13.0-1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "torch-2.14.0rc1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "torch-2.12.0.tar.gz",
            "torchvision-2.12.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        ];
        let yanked = |name: &str| name.starts_with('!').then(String::new);
        let url = Url::parse("https://example.org/x").unwrap();
        let files = names
            .into_iter()
            .map(|name| (name.trim_start_matches('!').to_owned(), Listed { yanked: yanked(name), ..Listed::at(url.clone()) }))
            .collect();
        let shown = |offer: &OfferedTorch| format!("{} {:?} {}", offer.version, offer.local, offer.yanked);
        let shown: Vec<String> = offers(&files, "linux-x86_64").iter().map(shown).collect();
        assert_eq!(shown, ["2.9.0 Some(\"cu126\") false", "2.12.0 None false", "2.13.0 None true"]);
    }
}
