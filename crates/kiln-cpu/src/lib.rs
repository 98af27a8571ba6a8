//! The cpu backend: C++ through the host compiler, no architecture flags.
//!
//! A `build.rs` compiles C and C++ with [`Build`]:
//!
//! ```no_run
//! fn main() -> Result<(), kiln_cpu::BuildError> {
//!     let cargo = kiln_cpu::Cargo::new(std::env::vars_os())?;
//!     let library = kiln_cpu::Build::new(&cargo).file("src/sum.cpp").include("include").compile("sum")?;
//!     print!("{library}");
//!     Ok(())
//! }
//! ```

use std::sync::Arc;

pub use kiln_backend::build_script::{BuildError, Cargo, Library, StepFailure};
use kiln_backend::build_script::{Provided, Request, Vendor};

use kiln_backend::{
    Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostUnits, Lowering, ObjectFile, ProvideError, Sources,
    Toolkits, TorchPart, Wanted,
};

/// Defines that torch's own package adds to extensions of its cpu build.
const TORCH_PACKAGE_DEFINES: [&str; 4] = ["USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_RPC", "USE_TENSORPIPE"];
/// Torch's libraries that a cpu extension may need.
const TORCH_LIBRARIES: [&str; 3] = ["libc10.so", "libtorch.so", "libtorch_cpu.so"];

/// The host compiler, as what compiles kernels for the processor.
#[derive(Clone, Copy, Debug)]
pub struct CpuToolkits;

impl Toolkits for CpuToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Cpu
    }

    fn provide(&self, _: &Wanted<'_>, _: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        Ok(Arc::new(CpuBackend))
    }

    fn loads_without_device(&self) -> bool {
        true
    }
}

/// The cpu backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuBackend;

/// A static library of C and C++.
pub type Build = kiln_backend::build_script::Build<Cpu>;

/// The vendor of [`Build`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Vendor for Cpu {
    fn provide(&self, _: &Request<'_>) -> Result<Provided, BuildError> {
        Ok(Provided::plain(CpuBackend, None))
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> BackendName {
        BackendName::Cpu
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch = TorchPart {
            package_defines: TORCH_PACKAGE_DEFINES.map(str::to_owned).to_vec(),
            libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(),
            ..TorchPart::default()
        };
        FrameworkPart { define: "CPU_KERNEL", torch, ..FrameworkPart::default() }
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        HostUnits::new(component, profile).compile_all(lowering, "cpu")
    }
}
