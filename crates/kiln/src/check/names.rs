//! What torch's libraries export, for the checks of names without a version.

use kiln_abi::Framework;
use kiln_format::MajorMinor;
use kiln_format::variant::Cpu;
use kiln_toolchain::{Catalog, Error, LibraryExports};

/// The exports of one or several torch releases.
#[derive(Clone, Debug, Default)]
pub struct TorchNames {
    releases: Vec<Vec<LibraryExports>>,
}

impl TorchNames {
    /// Those of the one torch that a variant is built against.
    pub fn of(exports: &[LibraryExports]) -> Self {
        Self { releases: vec![exports.to_vec()] }
    }

    /// Those of the catalog's releases that an extension may meet: of one minor for torch's C++ ABI, of every release from the
    /// declared one on for the stable ABI, of all where neither is known; of builds for Linux on `cpu`, or on all of them.
    ///
    /// # Errors
    /// When the catalog is damaged.
    pub fn of_catalog(catalog: &Catalog, cpu: Option<Cpu>, framework: Option<Framework>, torch: Option<MajorMinor>) -> Result<Self, Error> {
        let platform = cpu.map_or_else(|| "linux-".to_owned(), |cpu| format!("linux-{cpu}"));
        let fits = |release: MajorMinor| match (framework, torch) {
            (Some(Framework::TorchStable(declared)), _) => release >= declared,
            (Some(Framework::TvmFfi), _) => false,
            (_, Some(torch)) => release == torch,
            (_, None) => true,
        };
        let fitting =
            catalog.releases().iter().filter(|release| release.platform.starts_with(&platform) && fits(release.version.major_minor()));
        Ok(Self { releases: fitting.map(kiln_toolchain::TorchRelease::exports).collect::<Result<_, _>>()? })
    }

    /// Whether the library with this SONAME exports `name` in one of the releases; none when no release has the library.
    pub fn exports(&self, soname: &str, name: &str) -> Option<bool> {
        let libraries = self.releases.iter().flatten().filter(|library| library.soname == soname);
        libraries.map(|library| library.offers(name)).reduce(|a, b| a || b)
    }
}
