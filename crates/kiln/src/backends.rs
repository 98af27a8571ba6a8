//! The one place where vendors are listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_backend::{Backend, BackendName, Toolkits};
use kiln_format::variant::Compute;

/// Every vendor whose kernels are compiled, in the order of the loader's preference.
pub static VENDORS: &[&dyn Toolkits] = &[
    &kiln_cuda::CudaToolkits,
    &kiln_rocm::RocmToolkits,
    &kiln_xpu::XpuToolkits,
    &kiln_metal::MetalToolkits,
    // What every machine has comes last.
    &kiln_cpu::CpuToolkits,
];

/// The vendor of `backend`; none where this Kiln compiles nothing for it.
pub fn vendor(backend: BackendName) -> Option<&'static dyn Toolkits> {
    VENDORS.iter().copied().find(|vendor| vendor.backend() == backend)
}

/// Whether this Kiln can compile kernels for `backend`.
pub fn is_compiled(backend: BackendName) -> bool {
    vendor(backend).is_some()
}

/// The extensions of sources that components of `backend` compile, beside those of C and C++.
pub fn unit_extensions(backend: BackendName) -> &'static [&'static str] {
    match (vendor(backend), backend) {
        (Some(vendor), _) => vendor.unit_extensions(),
        (None, BackendName::Cann) => &["asc"],
        (None, _) => &[],
    }
}

/// Names of the sources of a kernel that stands in for any kernel of `backend`; none for one that runs Python kernels only.
pub fn stand_in(backend: BackendName) -> &'static [&'static str] {
    match (vendor(backend), backend) {
        (Some(vendor), _) => vendor.stand_in(),
        (None, BackendName::Cann) => &["unit.asc"],
        (None, _) => &[],
    }
}

/// The backends of one build, each with its toolkit, by what their variants run on.
#[derive(Clone, Debug, Default)]
pub struct Backends(BTreeMap<Compute, Arc<dyn Backend>>);

impl Backends {
    /// That of the processor alone, which needs no toolkit.
    pub fn of_processor() -> Self {
        Self(BTreeMap::from([(Compute::Cpu, Arc::new(kiln_cpu::CpuBackend) as Arc<dyn Backend>)]))
    }

    /// Adds the backend for the variants that run on `compute`.
    pub fn add(&mut self, compute: Compute, backend: Arc<dyn Backend>) {
        self.0.insert(compute, backend);
    }

    /// All of them.
    pub fn all(&self) -> Vec<&dyn Backend> {
        self.0.values().map(|backend| &**backend).collect()
    }

    /// The backend that compiles for `compute`; none if no toolkit was provided for it.
    pub fn get(&self, compute: Compute) -> Option<&dyn Backend> {
        self.0.get(&compute).map(|backend| &**backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendor_is_listed_once_and_tells_what_it_compiles() {
        for vendor in VENDORS {
            let backend = vendor.backend();
            assert!(backend.has_kernels(), "{backend}");
            assert_eq!(VENDORS.iter().filter(|other| other.backend() == backend).count(), 1, "{backend}");
            let compiled = |name: &str| {
                let extension = name.rsplit('.').next().unwrap_or_default();
                extension == "cpp" || vendor.unit_extensions().contains(&extension)
            };
            assert!(vendor.stand_in().iter().all(|name| compiled(name)), "{backend}: {:?}", vendor.stand_in());
        }
    }
}
