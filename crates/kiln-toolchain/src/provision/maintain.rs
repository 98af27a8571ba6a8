//! Looking after the store: what is in it, whether it is sound, and what nobody needs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kiln_format::lock::Lock;

use super::{Provisioner, part_item, torch_tree};
use crate::catalog::{Catalog, TvmFfiRelease};
use crate::error::Error;
use crate::store::{Removal, TreeInfo};
use crate::terms::Terms;

/// A tree of the user's own store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTree {
    /// Its name in the store.
    pub id: String,
    /// The directory that holds its files.
    pub dir: PathBuf,
    /// The terms of the wheels that it comes from.
    pub terms: Vec<Terms>,
    /// Whether copies of its files may be handed on, as in a shared cache. False for all that comes from wheels.
    pub redistributable: bool,
    /// File names of the wheels.
    pub wheels: Vec<String>,
}

/// Something in the store that is not what was put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedEntry {
    /// The tree, or the names file.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it was made again.
    pub repaired: bool,
}

/// What nobody needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// What was removed, or would be, sorted.
    pub removed: Vec<Removal>,
    /// Trees, and names files as `names/<digest>`, that nobody names, but that a process uses now.
    pub in_use: Vec<String>,
    /// Number of trees that stay because something names them.
    pub kept: usize,
}

impl Collected {
    /// Bytes that the disk has, or would have, more.
    pub fn freed(&self) -> u64 {
        self.removed.iter().map(|removal| removal.bytes).fold(0, u64::saturating_add)
    }
}

/// The command that makes again what is damaged.
const REPAIR: &str = "kiln toolchain verify --repair";

impl Provisioner<'_> {
    /// Every tree of the user's own store, sorted by name. Those that do not say what they are made of are left out.
    pub fn stored(&self) -> Vec<StoredTree> {
        let tree = |(id, info): (String, Result<TreeInfo, String>)| {
            let info = info.ok()?;
            let wheels = info.parts.iter().map(|part| part.wheel.file.clone()).collect();
            Some(StoredTree { dir: self.store.place(&id), id, terms: info.terms, redistributable: info.redistributable, wheels })
        };
        self.store.all().into_iter().filter_map(tree).collect()
    }

    /// Hashes all trees and names files of the user's own store again, and gives those that are damaged. With `repair` they are made
    /// again; what does not say any more what it was made of is removed, and made when it is needed.
    ///
    /// # Errors
    /// When a repair fails; what was repaired until then stays repaired.
    pub fn verify_all(&self, repair: bool) -> Result<Vec<DamagedEntry>, Error> {
        let mut damaged = Vec::new();
        for (id, info) in self.store.all() {
            let Err(Error::Damaged { reason, .. }) = self.store.verify(&id) else { continue };
            let offline = |error: Error| match error {
                error if error.is_offline() => self.forbidden(&id, "").fetched_by(REPAIR),
                error => error.fetched_by(REPAIR),
            };
            let repaired = repair && self.told(|| self.repair(&id, info.ok()).map_err(offline))?;
            damaged.push(DamagedEntry { id, reason, repaired });
        }
        for digest in self.store.all_names() {
            if self.store.names(&digest).is_some() {
                continue;
            }
            if repair {
                self.store.discard_names(&digest)?;
                let release = self.catalog.releases().iter().find(|release| release.locked && release.names == digest);
                release.map_or(Ok(()), |release| self.told(|| self.restore_names(release).map_err(|error| error.fetched_by(REPAIR))))?;
            }
            damaged.push(DamagedEntry { id: format!("names/{digest}"), reason: "it was changed".to_owned(), repaired: repair });
        }
        Ok(damaged)
    }

    /// The pinned releases whose names are not in the store, for people.
    pub fn lacking_names(&self) -> Vec<String> {
        let lacking = self.catalog.releases().iter().filter(|release| release.locked && self.store.names(&release.names).is_none());
        lacking.map(|release| format!("torch {} ({})", release.shown(), release.platform)).collect()
    }

    /// Makes a damaged tree again: its content is the same, so whoever uses it meanwhile loses nothing but the damage. True when the
    /// tree is sound or gone afterwards.
    fn repair(&self, id: &str, info: Option<TreeInfo>) -> Result<bool, Error> {
        let tvm_ffi = self.catalog.tvm_ffi_releases().iter().map(TvmFfiRelease::tree);
        let known = || self.catalog.releases().iter().map(torch_tree).chain(tvm_ffi).find(|info| info.id() == id);
        // A `tree.json` that was changed is no authority: its digest must be the one in the name of the tree.
        let Some(info) = info.filter(|info| info.id() == id && info.is_consistent()).or_else(known) else {
            let lock = self.lock(&self.store.lock_file(id), id)?;
            return self.store.discard(id, &lock).map(|()| true);
        };
        let info = TreeInfo::new(info.name, info.digest, info.parts);
        let lock = self.lock(&self.store.lock_file(id), id)?;
        if let [part] = info.parts.as_slice()
            && part.digest() == info.digest
        {
            let part = part.clone();
            self.make(info, &part, id, &lock)?;
            return Ok(true);
        }
        let mut trees = Vec::new();
        for part in &info.parts {
            let item = part_item(part, id);
            let own = item.info.id();
            if self.store.verify(&own).is_err() {
                let lock = self.lock(&self.store.lock_file(&own), &own)?;
                self.make(item.info.clone(), &item.part, &part.wheel.project, &lock)?;
            }
            trees.push((part.clone(), self.find_or_fetch(&item)?));
        }
        self.store.create(info, &lock, |tree| self.store.link(&trees, tree))?;
        Ok(true)
    }

    /// Removes the trees and names files that nothing names: no text of `texts` has the first digits of a tree's digest, or that of a
    /// names file, and no lock of `locks` pins it. What another process uses stays. With `dry_run` nothing is removed. Remains of processes that were killed go too.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn collect(&self, texts: &[String], locks: &[Lock], dry_run: bool) -> Result<Collected, Error> {
        let mut needed: BTreeSet<String> = BTreeSet::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        for lock in locks {
            // Without the catalog: what is pinned counts whether or not it is known too.
            for release in Catalog::default().with_locked(lock).releases() {
                needed.insert(torch_tree(release).id());
                names.insert(release.names.clone());
            }
        }
        let all = self.store.all();
        let named = |id: &str| {
            let digits = id.rsplit('-').next().unwrap_or(id);
            needed.contains(id) || texts.iter().any(|text| text.contains(digits))
        };
        let mut kept: BTreeSet<String> = all.iter().map(|(id, _)| id.clone()).filter(|id| named(id)).collect();
        // The trees of the parts are what a repair and the next toolkit are made from; as links they cost nothing.
        for (_, info) in all.iter().filter(|(id, _)| kept.contains(id)).cloned().collect::<Vec<_>>() {
            for part in info.into_iter().flat_map(|info| info.parts) {
                kept.insert(part_item(&part, "").info.id());
            }
        }
        let mut collected = Collected::default();
        let mut counted = crate::store::Links::default();
        for (id, _) in &all {
            if kept.contains(id) {
                collected.kept += 1;
                continue;
            }
            match self.store.remove_unused(id, &mut counted, dry_run)? {
                Some(removal) => collected.removed.push(removal),
                None => collected.in_use.push(id.clone()),
            }
        }
        let unnamed = |digest: &String| !names.contains(digest) && !texts.iter().any(|text| text.contains(digest.as_str()));
        for digest in self.store.all_names().into_iter().filter(unnamed) {
            match self.store.remove_names(&digest, dry_run)? {
                Some(removal) => collected.removed.push(removal),
                None => collected.in_use.push(format!("names/{digest}")),
            }
        }
        collected.removed.extend(self.store.sweep(dry_run)?);
        Ok(collected)
    }
}
