//! What the libraries of frameworks export, for the checks of names without a version.

use std::collections::BTreeSet;

use kiln_abi::Framework;
use kiln_backend::with_stand_ins;
use kiln_format::MajorMinor;
use kiln_format::variant::{Compute, Cpu};
use kiln_toolchain::{Catalog, CudaToolkit, Error, LibraryExports, TvmFfiRelease};

use crate::backends::{VENDORS, vendor};

/// The exports of one or several releases of torch, of tvm-ffi, and of the runtime of a vendor.
#[derive(Clone, Debug, Default)]
pub struct FrameworkNames {
    releases: Vec<Vec<LibraryExports>>,
}

impl FrameworkNames {
    /// Those of the one release that a variant is built against.
    pub fn of(exports: &[LibraryExports]) -> Self {
        Self { releases: vec![exports.to_vec()] }
    }

    /// Those of the catalog's releases that an extension may meet, in builds for Linux on `cpu`, or on all of them. `minor` is that of the
    /// framework: of torch where the framework is not known. `compute` is what the extension runs on, if that is known.
    ///
    /// Of torch: one minor for its C++ ABI, every release from the declared one on for the stable ABI, all where neither is known. Of
    /// tvm-ffi: the oldest of the minor, which every later one stands in for. Of CUDA: the variant's release, or all of them.
    ///
    /// # Errors
    /// When the catalog is damaged.
    pub fn of_catalog(
        catalog: &Catalog,
        cpu: Option<Cpu>,
        framework: Option<Framework>,
        minor: Option<MajorMinor>,
        compute: Option<Compute>,
    ) -> Result<Self, Error> {
        let prefix = cpu.map_or_else(|| "linux-".to_owned(), |cpu| format!("linux-{cpu}"));
        let fits = |release: MajorMinor| match (framework, minor) {
            (Some(Framework::TorchStable(declared)), _) => release >= declared,
            (Some(Framework::TvmFfi), _) => false,
            (_, Some(torch)) => release == torch,
            (_, None) => true,
        };
        let torch =
            catalog.releases().iter().filter(|release| release.platform.starts_with(&prefix) && fits(release.version.major_minor()));
        let vendor = compute.and_then(|compute| vendor(compute.backend()));
        let stand_ins = vendor.map_or(&[][..], |vendor| vendor.torch_stand_ins());
        let mut releases = torch.map(|release| Ok(with_stand_ins(&release.exports()?, stand_ins))).collect::<Result<Vec<_>, Error>>()?;
        if matches!(framework, None | Some(Framework::TvmFfi)) {
            let minor = minor.filter(|_| framework.is_some());
            let mut seen = BTreeSet::new();
            let oldest = catalog.tvm_ffi_releases().iter().filter(|release| {
                let of = release.version.major_minor();
                let wanted = release.platform.starts_with(&prefix) && minor.is_none_or(|minor| of == minor);
                wanted && seen.insert((of, release.platform.as_str()))
            });
            releases.extend(oldest.map(TvmFfiRelease::exports).collect::<Result<Vec<_>, _>>()?);
        }
        let cuda = catalog.cuda_toolkits().iter().filter(|toolkit| {
            let wanted = match compute {
                Some(Compute::Cuda(release)) => toolkit.version.major_minor() == release,
                Some(_) => false,
                None => true,
            };
            wanted && toolkit.platform.starts_with(&prefix)
        });
        releases.extend(cuda.map(CudaToolkit::exports).collect::<Result<Vec<_>, _>>()?);
        Ok(Self { releases })
    }

    /// The same with these libraries too.
    #[must_use]
    pub fn with(mut self, exports: &[LibraryExports]) -> Self {
        self.releases.push(exports.to_vec());
        self
    }

    /// Whether the library with this SONAME exports `name` in one of the releases; none when no release has the library.
    pub fn exports(&self, soname: &str, name: &str) -> Option<bool> {
        let libraries = self.releases.iter().flatten().filter(|library| library.soname == soname);
        let known = libraries.map(|library| library.offers(name)).reduce(|a, b| a || b);
        known.or_else(|| VENDORS.iter().find_map(|vendor| vendor.offers(soname, name)))
    }
}
