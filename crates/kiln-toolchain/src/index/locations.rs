//! Where the files of an index were found, so that its pages need not be fetched again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use url::Url;

use crate::error::Error;
use crate::http::IndexUrl;

/// The remembered locations of one index. They are hints: what is found there is verified all the same.
#[derive(Debug)]
pub(crate) struct Locations {
    dir: PathBuf,
}

impl Locations {
    /// Those of `index`, kept below `cache`.
    pub(crate) fn new(cache: &Path, index: &IndexUrl) -> Self {
        let digest = HEXLOWER.encode(&Sha256::digest(index.url().as_str()));
        Self { dir: cache.join("locations-v1").join(digest.get(..16).unwrap_or(&digest)) }
    }

    /// The file that is locked while pages of this index are fetched.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Where the file with this digest was found.
    pub(crate) fn get(&self, sha256: &str) -> Option<Url> {
        let text = fs::read_to_string(self.dir.join(sha256)).ok()?;
        Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    }

    /// Remembers where a file is. Addresses with a query are not kept: it may be a
    /// signature, which is secret and ages; nor are files of this machine, which are found at once.
    pub(crate) fn put(&self, sha256: &str, url: &Url) -> Result<(), Error> {
        if url.query().is_some() || url.scheme() == "file" {
            return Ok(());
        }
        fs::create_dir_all(&self.dir).map_err(Error::store("create", &self.dir))?;
        let mut file = tempfile::NamedTempFile::new_in(&self.dir).map_err(Error::store("write to", &self.dir))?;
        let place = self.dir.join(sha256);
        writeln!(file, "{url}").map_err(Error::store("write", &place))?;
        file.persist(&place).map_err(|cause| Error::Store { action: "write", path: place.clone(), source: cause.error })?;
        Ok(())
    }

    /// Forgets where a file is.
    pub(crate) fn forget(&self, sha256: &str) {
        // If it cannot be removed it is found to be of no use again, and looked up again.
        let _ = fs::remove_file(self.dir.join(sha256));
    }
}
