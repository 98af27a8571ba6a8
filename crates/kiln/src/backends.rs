//! The one place where vendors are listed.

use std::collections::BTreeMap;

use kiln_backend::{Backend, BackendName, MajorMinor, WrongCode};
use kiln_cpu::CpuBackend;
use kiln_cuda::CudaBackend;
use kiln_format::variant::Compute;
use kiln_rocm::RocmBackend;
use kiln_xpu::XpuBackend;

/// Every backend that compiles kernels, in the order of the loader's preference.
pub const COMPILED: [BackendName; 4] = [BackendName::Cuda, BackendName::Rocm, BackendName::Xpu, BackendName::Cpu];

/// Whether this Kiln can compile kernels for `backend`.
pub fn is_compiled(backend: BackendName) -> bool {
    COMPILED.contains(&backend)
}

/// Compares the device code in an extension for `compute` with the architectures that its metadata name, if they name any.
///
/// # Errors
/// When there is no code for one of them, or none at all where a backend's metadata never name any.
pub fn verify_recorded(compute: Compute, archs: Option<&[String]>, file: &[u8]) -> Result<(), WrongCode> {
    match (compute, archs) {
        (Compute::Cuda(release), Some(archs)) => kiln_cuda::verify_recorded(archs, release, file),
        (Compute::Xpu(_), _) => kiln_xpu::verify_recorded(file),
        _ => Ok(()),
    }
}

/// The backends of one build, each with its toolkit.
#[derive(Clone, Debug, Default)]
pub struct Backends {
    cpu: CpuBackend,
    cuda: BTreeMap<MajorMinor, CudaBackend>,
    rocm: BTreeMap<MajorMinor, RocmBackend>,
    xpu: BTreeMap<MajorMinor, XpuBackend>,
}

impl Backends {
    /// Adds the backend of a CUDA toolkit, for the variants of `release`.
    pub fn add_cuda(&mut self, release: MajorMinor, backend: CudaBackend) {
        self.cuda.insert(release, backend);
    }

    /// The cuda backend for the variants of `release`.
    pub fn cuda(&self, release: MajorMinor) -> Option<&CudaBackend> {
        self.cuda.get(&release)
    }

    /// Adds the backend of a ROCm, for the variants of `release`.
    pub fn add_rocm(&mut self, release: MajorMinor, backend: RocmBackend) {
        self.rocm.insert(release, backend);
    }

    /// The rocm backend for the variants of `release`.
    pub fn rocm(&self, release: MajorMinor) -> Option<&RocmBackend> {
        self.rocm.get(&release)
    }

    /// Adds the backend of a oneAPI compiler, for the variants of `release`.
    pub fn add_xpu(&mut self, release: MajorMinor, backend: XpuBackend) {
        self.xpu.insert(release, backend);
    }

    /// The xpu backend for the variants of `release`.
    pub fn xpu(&self, release: MajorMinor) -> Option<&XpuBackend> {
        self.xpu.get(&release)
    }

    /// Those with a toolkit.
    pub fn all(&self) -> Vec<&dyn Backend> {
        let cuda = self.cuda.values().map(|backend| backend as &dyn Backend);
        let rocm = self.rocm.values().map(|backend| backend as &dyn Backend);
        let xpu = self.xpu.values().map(|backend| backend as &dyn Backend);
        cuda.chain(rocm).chain(xpu).collect()
    }

    /// The backend that compiles for `compute`; none if no toolkit was provided for it.
    pub fn get(&self, compute: Compute) -> Option<&dyn Backend> {
        match compute {
            Compute::Cpu => Some(&self.cpu),
            Compute::Cuda(release) => self.cuda(release).map(|backend| backend as &dyn Backend),
            Compute::Rocm(release) => self.rocm(release).map(|backend| backend as &dyn Backend),
            Compute::Xpu(release) => self.xpu(release).map(|backend| backend as &dyn Backend),
            _ => None,
        }
    }
}
