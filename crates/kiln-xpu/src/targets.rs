//! What device code is compiled for.
//!
//! One table for compiling and for linking. Source: the options that torch's own SYCL kernels are built with, and the targets that the
//! ecosystem's builder releases for.

use std::collections::BTreeSet;

use kiln_backend::MajorMinor;

/// The define of kernels for the GPUs called CRI, which only an author's own flags have.
const CRI_DEFINE: &str = "__SYCL_TARGET_INTEL_GPU_CRI__";
/// What every target's compiler is told.
const OPTIONS: &str = "-cl-intel-enable-auto-large-GRF-mode -cl-poison-unsupported-fp64-kernels -cl-intel-greater-than-4GB-buffer-required";
/// The target that is a list of devices.
const GEN: &str = "spir64_gen";
/// SPIR-V that the driver of whatever device is there compiles.
pub(crate) const JIT: &str = "spir64";

/// The option that names targets.
pub(crate) const OPTION: &str = "-fsycl-targets=";

/// What the kernels of a variant ask for beside their code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernels {
    /// Whether one of them depends on `sycl_tla`.
    pub sycl_tla: bool,
    /// `sycl-flags` of all of them.
    pub sycl_flags: Vec<String>,
}

/// What a variant's device code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// The targets, as `-fsycl-targets=` takes them.
    names: &'static [&'static str],
    /// The devices of the target that is a list of them.
    devices: &'static str,
}

impl Targets {
    /// The targets of a variant with these kernels.
    pub(crate) fn of(release: MajorMinor, kernels: &Kernels) -> Self {
        let for_cri = kernels.sycl_flags.iter().any(|flag| flag.contains(CRI_DEFINE));
        let (names, devices): (&[&str], _) = match (kernels.sycl_tla, release < MajorMinor::new(2026, 0), for_cri) {
            (false, _, _) => (&[GEN, JIT], "pvc,xe-lpg,ats-m150"),
            (true, true, _) => (&[JIT], ""),
            (true, false, false) => (&[GEN, JIT], "pvc,bmg-g21,cri"),
            (true, false, true) => (&["intel_gpu_pvc", "intel_gpu_bmg_g21", GEN, JIT], "cri"),
        };
        Self { names, devices }
    }

    /// The targets one by one.
    pub(crate) fn names(self) -> &'static [&'static str] {
        self.names
    }

    /// The targets by the names that code for them has in a file, where each GPU's own target is what the list of devices is.
    pub(crate) fn in_files(self) -> BTreeSet<&'static str> {
        self.names.iter().map(|name| if *name == JIT { JIT } else { GEN }).collect()
    }

    /// The option that names them.
    pub(crate) fn option(self) -> String {
        format!("{OPTION}{}", self.names.join(","))
    }

    /// What the compilers of the targets that are compiled ahead of time are told. An option for each, whether or not another one says
    /// the same.
    pub(crate) fn backend_options(self) -> Vec<String> {
        let of_gen = format!("-device {} -options '{OPTIONS}'", self.devices);
        let gen_option = self.names.iter().filter(|name| **name == GEN).map(|name| (*name, of_gen.clone()));
        let of_gpu = self.names.iter().filter(|name| name.starts_with("intel_gpu_")).map(|name| (*name, format!("-options '{OPTIONS}'")));
        gen_option.chain(of_gpu).flat_map(|(name, value)| [format!("-Xsycl-target-backend={name}"), value]).collect()
    }

    /// Whether something is compiled ahead of time, for which `ocloc` is needed.
    pub(crate) fn is_ahead_of_time(self) -> bool {
        self.names.iter().any(|name| *name != JIT)
    }
}
