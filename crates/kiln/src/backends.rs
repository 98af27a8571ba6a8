//! The one place where vendors are listed.

use kiln_backend::Backend;
use kiln_cpu::CpuBackend;
use kiln_format::BackendName;

/// Every backend that compiles kernels, in the order of the loader's preference.
const BACKENDS: [&dyn Backend; 1] = [&CpuBackend];

/// The backend called `name`; none if this Kiln cannot compile kernels for it.
pub fn backend(name: BackendName) -> Option<&'static dyn Backend> {
    BACKENDS.into_iter().find(|backend| backend.name() == name)
}
