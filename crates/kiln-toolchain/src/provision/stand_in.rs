//! Builds of torch that stand in for others of the same release.
//!
//! Where no build is known that was configured for a variant's compute, the headers of the package index's build may serve. Whether
//! they do is not assumed: the other build's `RECORD` is read off its index, a few ranges of a wheel of gigabytes, and compared. Only
//! generated headers may differ ([`crate::headers`]). The answer is kept, so that it counts without a network too, in
//! `<cache>/headers-v2/<RECORD of the build that stands in>-<name of the other build>/`: in `<RECORD of the other build>.json` what a
//! comparison gave, which stays true, and in `index-<digest of its address>` which `RECORD` an index had. So each index has its own answer.

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kiln_format::variant::Compute;
use sha2::{Digest, Sha256};

use super::{Provisioner, StoreTree};
use crate::catalog::{TorchRelease, torch_local_for};
use crate::error::Error;
use crate::headers::{HeaderDifference, HeaderSet};
use crate::http::{Answer, IndexUrl};
use crate::network::{FoundWheel, Network, WantedWheel};
use crate::stand_in::{ComparedHeaders, StandIn};
use crate::wheel::{Pin, Source, read_unpinned_record};
use crate::whole_file::write_whole;

impl ComparedHeaders {
    fn new(wheel: String, record: &[u8], found: HeaderDifference) -> Self {
        let mut differing: Vec<String> = [found.differing, found.only_first, found.only_second].concat();
        differing.sort();
        let record_sha256 = HEXLOWER.encode(&Sha256::digest(record));
        Self { wheel, record_sha256, same: found.same, generated: found.generated, differing }
    }

    fn may_stand_in(&self) -> bool {
        self.differing.is_empty() && self.same > 0
    }

    /// The error of headers that may not stand in.
    fn check(self, release: &TorchRelease, build: &str) -> Result<Self, Error> {
        if self.may_stand_in() {
            return Ok(self);
        }
        let first: Vec<String> = self.differing.iter().take(3).map(|header| format!("`{header}`")).collect();
        let example = if first.is_empty() { "they have none in common".to_owned() } else { format!("such as {}", first.join(", ")) };
        Err(Error::HeadersDiffer {
            version: release.version.to_string(),
            build: build.to_owned(),
            other: release.wheel.file.clone(),
            count: self.differing.len(),
            example,
        })
    }
}

/// What is known of the builds that one build may stand in for under one name.
struct Answers {
    dir: PathBuf,
}

impl Answers {
    /// What the build of an index was found to be.
    fn of(&self, index: &IndexUrl) -> Option<ComparedHeaders> {
        let record = fs::read_to_string(self.index_file(index)).ok()?;
        read(&self.file(record.trim())).filter(|compared| compared.record_sha256 == record.trim())
    }

    /// A build that was found to have the same headers, whatever index had it: for when none is named. Of several the first by name.
    fn good(&self) -> Option<ComparedHeaders> {
        let mut files: Vec<PathBuf> = fs::read_dir(&self.dir).ok()?.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        files.iter().filter_map(|file| read(file)).find(ComparedHeaders::may_stand_in)
    }

    /// Keeps what was found. What cannot be kept is found out again.
    fn keep(&self, found: &ComparedHeaders, index: &IndexUrl) {
        let Ok(text) = serde_json::to_vec_pretty(found) else { return };
        let kept = write_whole(&self.file(&found.record_sha256), &text);
        let _found_again = kept.and_then(|()| write_whole(&self.index_file(index), found.record_sha256.as_bytes()));
    }

    fn file(&self, record_sha256: &str) -> PathBuf {
        // Also of a damaged file: no path leads elsewhere.
        let digits: String = record_sha256.chars().filter(char::is_ascii_hexdigit).collect();
        self.dir.join(format!("{digits}.json"))
    }

    fn index_file(&self, index: &IndexUrl) -> PathBuf {
        let digest = HEXLOWER.encode(&Sha256::digest(index.url().as_str()));
        self.dir.join(format!("index-{}", digest.get(..16).unwrap_or(&digest)))
    }
}

fn read(path: &Path) -> Option<ComparedHeaders> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

impl Provisioner<'_> {
    /// Decides whether a build, whose tree is there, may stand in for the one that is configured for `compute`. Without `fetch` only what
    /// is known already counts.
    pub(super) fn stand_in(
        &self,
        release: &TorchRelease,
        tree: &StoreTree,
        compute: Compute,
        fetch: bool,
    ) -> Result<Option<StandIn>, Error> {
        let Some(build) = torch_local_for(compute) else { return Ok(None) };
        let answers = Answers { dir: self.options.cache_dir.join("headers-v2").join(format!("{}-{build}", release.wheel.record_sha256)) };
        let index = (self.network)().ok().and_then(|network| network.torch_index);
        let kept = index.as_ref().map_or_else(|| answers.good(), |index| answers.of(index));
        let compared = match kept {
            // An index that had the wrong build may have the right one by now.
            kept if fetch && kept.as_ref().is_none_or(|kept| !kept.may_stand_in()) => match self.compare(release, tree, &build)? {
                Some((found, index)) => {
                    answers.keep(&found, &index);
                    Some(found)
                }
                None => kept,
            },
            kept => kept,
        };
        let compared = compared.map(|compared| compared.check(release, &build)).transpose()?;
        Ok(Some(StandIn { build, compared }))
    }

    /// Compares the headers of a tree with those of the build `build` on the index for such builds; none if there is no such index, or
    /// it does not have the build.
    fn compare(&self, release: &TorchRelease, tree: &StoreTree, build: &str) -> Result<Option<(ComparedHeaders, IndexUrl)>, Error> {
        if self.is_cut_off() {
            return Ok(None);
        }
        let network = match (self.network)() {
            Ok(network) if network.torch_index.is_some() => network,
            _ => return Ok(None),
        };
        let wanted = WantedWheel { project: "torch", release: &release.version, local: Some(build), system: &release.platform };
        let found = match network.find_wheel(&wanted, self.options.retry, self.options.offline, self.events, self.interrupt.clone()) {
            Ok(found) => found,
            Err(Error::NoProject { .. } | Error::NoWheel { .. } | Error::NoAccess { .. }) => return Ok(None),
            Err(error) if error.is_offline() => return Ok(None),
            Err(error) => return Err(error),
        };
        let what = format!("the list of headers of torch {}+{build}", release.version);
        let record = self.record_of(&found, &network, &what)?;
        let refuse = |reason: String| Error::Record { file: found.file.clone(), record: "RECORD".to_owned(), reason };
        let text = std::str::from_utf8(&record).map_err(|_| refuse("is not UTF-8 text".to_owned()))?;
        let other = HeaderSet::of_record(text).map_err(refuse)?;
        let include = tree.dir.join("torch/include");
        let own = HeaderSet::of_dir(&include).map_err(Error::store("read", &include))?;
        let Some(index) = network.torch_index else { return Ok(None) };
        Ok(Some((ComparedHeaders::new(found.file, &record, own.compare(&other)), index)))
    }

    /// Reads the `RECORD` of a wheel that nothing pins.
    fn record_of(&self, found: &FoundWheel, network: &Network, what: &str) -> Result<Vec<u8>, Error> {
        let client = self.client(network, what.to_owned());
        let url = &found.listed.url;
        let lock = self.lock(&self.store.lock_file(&format!("record-{}", found.file)), what)?;
        let work = self.store.scratch(&format!("record-{}", found.file), &lock)?;
        let size = match found.listed.size {
            Some(size) => size,
            // HTML pages do not say it: the answer for the first byte does, or else the announced length of the whole file.
            None => {
                let size = match client.range(url, &(0..1)).map_err(Error::fetch(what))? {
                    Answer::Part(part) => part.total,
                    Answer::Whole(response) => response.headers.content_length,
                };
                let reason = || Error::WrongWheel {
                    file: found.file.clone(),
                    url: crate::http::redacted(url),
                    reason: "the server does not say how long it is".to_owned(),
                };
                size.ok_or_else(reason)?
            }
        };
        let sha256 = found.listed.sha256.as_deref().unwrap_or_default();
        let pin = Pin { file: &found.file, size, sha256, record_sha256: "" };
        let mut source = Source::new(&client, url.clone(), pin, work.path().join(&found.file));
        read_unpinned_record(&mut source)
    }
}
