//! The toolkits that a build's variants are compiled with.

use std::collections::BTreeSet;

use kiln_backend::{Asked, FoundToolkit, Toolkits, TorchWanted, Wanted};
use kiln_format::build::Framework;
use kiln_format::variant::Compute;
use kiln_format::{BackendName, Build};
use kiln_toolchain::Provider;

use super::{BuildOptions, Checked, Services};
use crate::backends::{Backends, vendor};
use crate::build_error::BuildError;
use crate::frameworks::TorchSource;
use crate::matrix::{Filters, Kind, Selected, Target};

/// Whether the toolkit that a variant is compiled with can be had.
///
/// # Errors
/// Why not, for people.
pub(super) fn have_that_of(selected: &Selected, checked: &Checked, services: &Services<'_>, platform: &str) -> Result<(), String> {
    let compute = selected.row.as_ref().map(|row| row.compute);
    let known = compute.and_then(|compute| Some((vendor(compute.backend())?, compute)));
    let (Some((vendor, compute)), Ok(build)) = (known, checked.build()) else { return Ok(()) };
    let settings = checked.project.settings.of_vendor(compute.backend());
    vendor.has(&Asked { build, compute, platform, settings }, &services.sources)
}

/// Refuses a kernel for tvm-ffi with components of a backend that tvm-ffi does not have, unless `filters` leave it out.
///
/// # Errors
/// [`BuildError::NoTvmFfi`].
pub(super) fn see_framework(build: &Build, filters: &Filters) -> Result<(), BuildError> {
    if !matches!(build.framework, Framework::TvmFfi(_)) {
        return Ok(());
    }
    let wanted = |backend: &BackendName| {
        let is_asked = filters.backends.is_empty() || filters.backends.contains(backend);
        is_asked && build.kernels_for(*backend).next().is_some() && vendor(*backend).is_some_and(|vendor| !vendor.has_tvm_ffi())
    };
    match build.backends().find(wanted) {
        Some(backend) => Err(BuildError::NoTvmFfi { backend }),
        None => Ok(()),
    }
}

/// Whether variants are planned for a backend without any of its toolkits, on any machine.
pub(super) fn plans_without(selected: &Selected) -> bool {
    vendor(selected.backend).is_some_and(|vendor| vendor.plans_without_toolkit())
}

/// Whether what a variant compiles can be compiled on `machine`: there are cross-compilers for processors, and some vendors' for systems.
///
/// # Errors
/// Why not, for people.
pub(super) fn is_of_system(selected: &Selected, machine: Target) -> Result<(), String> {
    match selected.target {
        Some(target) if target.os != machine.os && !vendor(selected.backend).is_some_and(|vendor| vendor.crosses_systems()) => {
            Err(format!("what is compiled for {target} is built on such a machine, and this is {machine}"))
        }
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
    let mut backends = Backends::default();
    of_each(checked, variants.iter(), options, services, options.fetch, &mut |vendor, wanted| {
        backends.add(wanted.compute, vendor.provide(wanted, &services.sources)?);
        Ok(())
    })?;
    Ok(backends)
}

/// The toolkits that [`provide`] would find.
///
/// # Errors
/// Those with which a fetch would end.
pub(super) fn would_provide<'s>(
    checked: &Checked,
    variants: impl Iterator<Item = &'s Selected> + Clone,
    options: &BuildOptions,
    services: &Services<'_>,
) -> Result<Vec<FoundToolkit>, BuildError> {
    let mut found = Vec::new();
    of_each(checked, variants, options, services, false, &mut |vendor, wanted| {
        found.extend(vendor.would_provide(wanted, &services.sources)?);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `act` with each vendor and what the variants for each of its releases want, in the order of what they run on.
fn of_each<'s>(
    checked: &Checked,
    variants: impl Iterator<Item = &'s Selected> + Clone,
    options: &BuildOptions,
    services: &Services<'_>,
    fetch: bool,
    act: &mut dyn FnMut(&dyn Toolkits, &Wanted<'_>) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let build: &Build = checked.build()?;
    let platform = options.target.platform();
    let compiled = variants.filter(|selected| selected.kind != Kind::Noarch);
    let compute_of = |selected: &Selected| selected.row.as_ref().map(|row| row.compute);
    for compute in compiled.clone().filter_map(compute_of).collect::<BTreeSet<Compute>>() {
        let Some(vendor) = vendor(compute.backend()) else { continue };
        let of_compute = || compiled.clone().filter(|selected| compute_of(selected) == Some(compute));
        let with_torch = of_compute().filter(|selected| !matches!(selected.kind, Kind::TvmFfi(_)));
        let torch = TorchWanted {
            newest: with_torch.filter_map(|selected| selected.row.as_ref()).map(|row| &row.release).max(),
            cxx: compiled.clone().any(|selected| selected.kind == Kind::Torch && selected.backend == compute.backend()),
            installed: installed_torch(&services.torch),
        };
        let arch = options.arch.as_ref().and_then(|arch| arch.of(compute.backend()));
        let settings = checked.project.settings.of_vendor(compute.backend());
        act(
            vendor,
            &Wanted {
                build,
                project_dir: &checked.project.root,
                compute,
                platform: &platform,
                settings,
                torch,
                arch,
                fetch,
                bare: options.without_toolkits,
            },
        )?;
    }
    Ok(())
}

/// Where the packages are of the Python whose torch is used.
pub(super) fn installed_torch(torch: &TorchSource) -> Option<&std::path::Path> {
    match torch {
        TorchSource::System(toolchain) => match &toolchain.provider {
            Provider::System { site_packages, .. } => Some(site_packages),
            Provider::Wheel { .. } => None,
        },
        TorchSource::Wheels => None,
    }
}
