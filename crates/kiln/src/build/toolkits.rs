//! The toolkits that a build's variants are compiled with.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_cuda::{CudaBackend, DryRuns};
use kiln_format::build::KernelOptions;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build, MajorMinor};
use kiln_rocm::RocmBackend;
use kiln_toolchain::CudaUse;

use super::{BuildOptions, Checked, Services};
use crate::backends::Backends;
use crate::build_error::BuildError;
use crate::cuda::{self, Wanted};
use crate::matrix::{Kind, Selected};
use crate::rocm::{self, ConverterSource};

/// Whether the toolkit that a variant is compiled with can be had.
///
/// # Errors
/// Why not, for people.
pub(super) fn have_that_of(selected: &Selected, services: &Services<'_>, platform: &str) -> Result<(), String> {
    match selected.row.as_ref().map(|row| row.compute) {
        Some(Compute::Cuda(release)) => services.cuda.has(release, platform),
        Some(Compute::Rocm(release)) => services.rocm.has(release),
        Some(Compute::Xpu(release)) => services.xpu.has(release),
        _ => Ok(()),
    }
}

/// The backends of all variants that are compiled, each with its toolkit.
///
/// # Errors
/// When a toolkit cannot be had or used.
pub(super) fn provide(
    checked: &Checked,
    variants: &[Selected],
    options: &BuildOptions,
    services: &Services<'_>,
) -> Result<Backends, BuildError> {
    let build = checked.build()?;
    let compiled: Vec<&Selected> = variants.iter().filter(|selected| selected.kind != Kind::Noarch).collect();
    let releases =
        |of: fn(&Selected) -> Option<MajorMinor>| -> BTreeSet<MajorMinor> { compiled.iter().filter_map(|selected| of(selected)).collect() };
    let mut backends = Backends::default();
    let cuda = releases(cuda_release);
    if !cuda.is_empty() {
        cuda::check_path(&checked.project.root)?;
        cuda::check_path(services.cache_dir)?;
    }
    let platform = options.target.platform();
    let dry_runs = Arc::new(DryRuns::kept_in(services.cache_dir));
    let cuda_uses = cuda_uses(build, variants.iter());
    for release in cuda {
        let wanted = Wanted { release, platform: &platform, uses: cuda_uses.clone(), fetch: options.fetch };
        let backend = CudaBackend::new(services.cuda.toolkit(&wanted)?, options.arch.as_ref().and_then(|arch| arch.cuda.clone()));
        // A toolkit that is only planned cannot be asked.
        backends.add_cuda(release, if options.fetch { backend.with_dry_runs(Arc::clone(&dry_runs)) } else { backend });
    }
    for release in releases(rocm_release) {
        backends.add_rocm(release, of_rocm(release, build, &compiled, options, services)?);
    }
    for release in releases(xpu_release) {
        backends.add_xpu(release, services.xpu.backend(release, build)?);
    }
    Ok(backends)
}

/// The backend of the ROCm for the variants of `release`, with torch's converter where a kernel's sources are CUDA's.
fn of_rocm(
    release: MajorMinor,
    build: &Build,
    compiled: &[&Selected],
    options: &BuildOptions,
    services: &Services<'_>,
) -> Result<RocmBackend, BuildError> {
    let toolkit = services.rocm.toolkit(release)?;
    let backend = RocmBackend::new(toolkit, options.arch.as_ref().and_then(|arch| arch.rocm.clone()));
    if !rocm::needs_converter(build) {
        return Ok(backend);
    }
    let torches = compiled.iter().filter(|selected| rocm_release(selected) == Some(release) && !matches!(selected.kind, Kind::TvmFfi(_)));
    let newest = torches.filter_map(|selected| selected.row.as_ref()).map(|row| &row.release).max();
    let (provisioner, torch, platform) = (services.provisioner, &services.torch, options.target.platform());
    let source = ConverterSource { provisioner, torch, release: newest, platform: &platform, fetch: options.fetch };
    Ok(match rocm::converter(&source, services.rocm.environment)? {
        Some(hipify) => backend.with_hipify(hipify),
        None => backend,
    })
}

/// The CUDA release that a variant is compiled for.
pub(super) fn cuda_release(selected: &Selected) -> Option<MajorMinor> {
    match selected.row.as_ref()?.compute {
        Compute::Cuda(release) => Some(release),
        _ => None,
    }
}

/// The ROCm release that a variant is compiled for.
pub(super) fn rocm_release(selected: &Selected) -> Option<MajorMinor> {
    match selected.row.as_ref()?.compute {
        Compute::Rocm(release) => Some(release),
        _ => None,
    }
}

/// The release of oneAPI that a variant is compiled for.
pub(super) fn xpu_release(selected: &Selected) -> Option<MajorMinor> {
    match selected.row.as_ref()?.compute {
        Compute::Xpu(release) => Some(release),
        _ => None,
    }
}

/// What the variants for CUDA need of a toolkit beside its compilers.
pub(super) fn cuda_uses<'s>(build: &Build, mut variants: impl Iterator<Item = &'s Selected>) -> Vec<CudaUse> {
    let mut uses = Vec::new();
    let flags = build.kernels_for(BackendName::Cuda).filter_map(|kernel| match &kernel.options {
        KernelOptions::Cuda { flags, .. } => Some(flags),
        _ => None,
    });
    if flags.flatten().any(|flag| kiln_cuda::is_relocatable(&flag.value)) {
        uses.push(CudaUse::DeviceLink);
    }
    if variants.any(|variant| variant.kind == Kind::Torch && cuda_release(variant).is_some()) {
        uses.push(CudaUse::TorchHeaders);
    }
    uses
}
