//! The catalog: which wheel carries which torch, pinned by digest.

use kiln_format::Version;
use serde::Deserialize;

use crate::error::Error;
use crate::names::LibraryExports;
use crate::toolchain::CxxLevel;

/// The catalog that is compiled in.
const EMBEDDED: &str = include_str!("../catalog/torch.toml");

/// Every torch release that Kiln can provision from wheels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    releases: Vec<TorchRelease>,
}

/// One torch build: a wheel for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchRelease {
    /// Release, without a local part.
    pub version: Version,
    /// What the wheel is built for, such as `linux-x86_64`.
    pub platform: String,
    /// File name of the wheel.
    pub wheel: String,
    /// Size of the wheel in bytes.
    pub size: u64,
    /// Sha256 of the wheel, as lower-case hexadecimal text.
    pub sha256: String,
    /// Sha256 of the wheel's `RECORD`, as lower-case hexadecimal text.
    pub record_sha256: String,
    /// The CUDA release it was built with; none for a CPU build.
    pub cuda: Option<Version>,
    /// The language level that its umbrella headers want.
    pub cxx_level: CxxLevel,
    /// Name of the data file that holds the names its libraries export.
    pub names: String,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalog {
    #[serde(default)]
    torch: Vec<RawRelease>,
}

/// An entry as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRelease {
    version: String,
    platform: String,
    wheel: String,
    size: u64,
    sha256: String,
    record_sha256: String,
    cuda: Option<String>,
    cxx: String,
    names: String,
}

impl TorchRelease {
    /// What its libraries export, in link order.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn exports(&self) -> Result<Vec<LibraryExports>, Error> {
        crate::names::of_catalog(&self.names)
    }
}

impl Catalog {
    /// The catalog that is compiled in.
    ///
    /// # Errors
    /// When the compiled-in data is damaged; the tests see to it that it is not.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse(EMBEDDED)
    }

    /// Reads a catalog in TOML: `[[torch]]` tables with the fields of [`TorchRelease`] (`cxx` for the language level).
    /// Entries are kept by ascending version, then platform.
    ///
    /// # Errors
    /// [`Error::Catalog`] when the text is no TOML, an entry lacks a field, has one too many or a malformed one, or two
    /// entries are for one version and platform.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let raw: RawCatalog = toml::from_str(text).map_err(|cause| Error::Catalog { reason: cause.message().to_owned() })?;
        let mut releases = raw.torch.into_iter().map(release).collect::<Result<Vec<_>, _>>()?;
        releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
        for pair in releases.windows(2) {
            if let [a, b] = pair
                && (&a.version, &a.platform) == (&b.version, &b.platform)
            {
                return Err(Error::Catalog { reason: format!("torch {} for {} has two entries", a.version, a.platform) });
            }
        }
        Ok(Self { releases })
    }

    /// All releases, by ascending version, then platform.
    pub fn releases(&self) -> &[TorchRelease] {
        &self.releases
    }

    /// The release `version` for `platform`.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`] with what there is for the platform.
    pub fn torch(&self, version: &Version, platform: &str) -> Result<&TorchRelease, Error> {
        self.releases.iter().find(|release| release.version == *version && release.platform == platform).ok_or_else(|| {
            let known = self.releases.iter().filter(|release| release.platform == platform);
            let known = known.map(|release| release.version.to_string()).collect();
            Error::UnknownTorch { version: version.to_string(), platform: platform.to_owned(), known }
        })
    }
}

/// Checks one entry.
fn release(raw: RawRelease) -> Result<TorchRelease, Error> {
    let place = format!("torch {} for {}", raw.version, raw.platform);
    let damaged = |field: &str, value: &str| Error::Catalog { reason: format!("{place}: `{value}` is no {field}") };
    let version = |field: &str, text: &str| Version::parse(text).map_err(|_| damaged(field, text));
    for (field, digest) in [("sha256", &raw.sha256), ("record_sha256", &raw.record_sha256)] {
        if digest.len() != 64 || !digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(damaged(field, digest));
        }
    }
    if !raw.wheel.ends_with(".whl") || raw.wheel.contains('/') {
        return Err(damaged("wheel", &raw.wheel));
    }
    Ok(TorchRelease {
        version: version("version", &raw.version)?,
        cuda: raw.cuda.as_deref().map(|text| version("CUDA version", text)).transpose()?,
        cxx_level: CxxLevel::parse(&raw.cxx).ok_or_else(|| damaged("language level", &raw.cxx))?,
        platform: raw.platform,
        wheel: raw.wheel,
        size: raw.size,
        sha256: raw.sha256,
        record_sha256: raw.record_sha256,
        names: raw.names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalog_has_the_releases_that_are_supported() {
        let catalog = Catalog::embedded().unwrap();
        let shown: Vec<String> = catalog
            .releases()
            .iter()
            .map(|release| format!("{} {} {} {}", release.version, release.platform, release.cuda.as_ref().unwrap(), release.cxx_level))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        2.11.0 linux-x86_64 13.0 gnu++17
        2.12.1 linux-x86_64 13.0 gnu++20
        2.13.0 linux-x86_64 13.0 gnu++20
        2.14.1 linux-x86_64 13.0 gnu++20
        2.15.0 linux-x86_64 13.2 gnu++20
        ");
    }

    #[test]
    fn an_unknown_release_is_answered_with_the_known_ones() {
        let error = Catalog::embedded().unwrap().torch(&Version::parse("2.12.0").unwrap(), "linux-x86_64").unwrap_err();
        insta::assert_snapshot!(error.to_string(), @"torch 2.12.0 for linux-x86_64 is not in the catalog");
        insta::assert_snapshot!(error.hint().unwrap(), @"the catalog has 2.11.0, 2.12.1, 2.13.0, 2.14.1, 2.15.0");
    }

    #[test]
    fn damaged_catalogs_are_refused() {
        let entry = EMBEDDED.find("[[torch]]").map(|start| &EMBEDDED[start..]).unwrap();
        let first = entry[9..].find("[[torch]]").map(|end| &entry[..end + 9]).unwrap();
        let message = |text: &str| Catalog::parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(message(&format!("{first}{first}")), @"the catalog is damaged: torch 2.11.0 for linux-x86_64 has two entries");
        insta::assert_snapshot!(message(&first.replace("gnu++17", "c++9")), @"the catalog is damaged: torch 2.11.0 for linux-x86_64: `c++9` is no language level");
        insta::assert_snapshot!(message(&first.replace("size = ", "length = ")), @"the catalog is damaged: unknown field `length`, expected one of `version`, `platform`, `wheel`, `size`, `sha256`, `record_sha256`, `cuda`, `cxx`, `names`");
    }
}
