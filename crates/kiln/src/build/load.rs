//! Loads built kernels of tvm-ffi, which need no Python for it: the last check of a variant that this machine can run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kiln_backend::Backend;
use kiln_format::variant::{ArchFramework, Variant};
use kiln_format::{Level, MajorMinor};

use super::{BuildError, BuildOptions, Prepared, Services};
use crate::backends::vendor;
use crate::call::check::Loadable;
use crate::call::runtime::{Choice, RuntimeError, RuntimeFiles, of_minor, would_have};
use crate::call::{Ended, Session, Wanted, Worker, find};
use crate::check::{Remark, RemarkKind};
use crate::event::Event;
use crate::matrix::Selected;
use crate::plan::PlannedVariant;

/// Whether variants are loaded before they are put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadCheck {
    /// Those that this machine can load.
    #[default]
    WherePossible,
    /// None.
    Never,
    /// All: one that this machine cannot load is not built.
    Required,
}

/// What loads the variants of a build.
#[derive(Clone, Debug)]
pub struct Loader {
    /// How a worker is started.
    pub worker: Worker,
    /// Where it writes when the path of the work directory is no text in UTF-8, which the runtime does not take.
    pub elsewhere: PathBuf,
    /// How long loading may take. It takes moments; a machine that is busy must not fail a build.
    pub timeout: Duration,
}

/// Sees that all variants can be loaded, if they have to be.
///
/// # Errors
/// When one cannot be.
pub(super) fn require(selected: &[Selected], options: &BuildOptions, services: &Services<'_>) -> Result<(), BuildError> {
    if options.load_check != LoadCheck::Required {
        return Ok(());
    }
    let reason = |selected: &Selected| Some(format!("{}: {}", selected.variant.name(), obstacle(selected, options, services)?));
    let reasons: Vec<String> = selected.iter().filter_map(reason).collect();
    if reasons.is_empty() { Ok(()) } else { Err(BuildError::NotLoadable { variants: selected.len(), reasons }) }
}

/// The runtime for the variants that are loaded at the end, fetched with everything else that a build needs; none if there are none.
///
/// # Errors
/// When it cannot be fetched.
pub(super) fn runtime(selected: &[Selected], options: &BuildOptions, services: &Services<'_>) -> Result<Option<RuntimeFiles>, BuildError> {
    let Some(minor) = loaded_minor(selected.iter(), options, services).filter(|_| options.fetch) else { return Ok(None) };
    match of_minor(&Choice::Newest, Some(minor), options.target, services.provisioner.catalog(), services.provisioner) {
        Ok(runtime) => Ok(Some(runtime)),
        Err(RuntimeError::Toolchain(error)) => Err(error.into()),
        // A release line without a runtime for this machine, of a matrix of somebody's own.
        Err(error @ (RuntimeError::Unknown { .. } | RuntimeError::Call(_))) if options.load_check == LoadCheck::Required => {
            Err(BuildError::NotLoadable { variants: selected.len(), reasons: vec![error.to_string()] })
        }
        Err(RuntimeError::Unknown { .. } | RuntimeError::Call(_)) => Ok(None),
    }
}

/// Sees that [`runtime`] would have what it fetches.
///
/// # Errors
/// Those with which it would end.
pub(super) fn would_provide<'s>(
    selected: impl Iterator<Item = &'s Selected>,
    options: &BuildOptions,
    services: &Services<'_>,
) -> Result<(), BuildError> {
    let Some(minor) = loaded_minor(selected, options, services) else { return Ok(()) };
    match would_have(minor, options.target, services.provisioner.catalog(), services.provisioner) {
        Ok(()) | Err(RuntimeError::Unknown { .. } | RuntimeError::Call(_)) => Ok(()),
        Err(RuntimeError::Toolchain(error)) => Err(error.into()),
    }
}

/// The release line of tvm-ffi whose variants this machine would load.
fn loaded_minor<'s>(
    mut selected: impl Iterator<Item = &'s Selected>,
    options: &BuildOptions,
    services: &Services<'_>,
) -> Option<MajorMinor> {
    selected.find_map(|selected| match &selected.variant {
        Variant::Arch(arch) if is_loadable(selected, options, services) => match arch.framework {
            ArchFramework::TvmFfi { version } => Some(version),
            _ => None,
        },
        _ => None,
    })
}

/// Whether this machine is to load a variant, and can.
pub(super) fn is_loadable(selected: &Selected, options: &BuildOptions, services: &Services<'_>) -> bool {
    options.load_check != LoadCheck::Never && obstacle(selected, options, services).is_none()
}

/// Why this machine cannot load a variant; none if it can.
fn obstacle(selected: &Selected, options: &BuildOptions, services: &Services<'_>) -> Option<String> {
    let Variant::Arch(arch) = &selected.variant else {
        return Some("it is Python alone, and Kiln starts no Python".to_owned());
    };
    if !matches!(arch.framework, ArchFramework::TvmFfi { .. }) {
        return Some("only a Python with torch loads it, and Kiln starts no Python".to_owned());
    }
    if options.target != options.machine {
        return Some(format!("it is for {}, and this is {}", options.target, options.machine));
    }
    if !vendor(selected.backend).is_some_and(|vendor| vendor.loads_without_device()) {
        return Some("the libraries of its vendor are not known".to_owned());
    }
    services.loader.is_none().then(|| "Kiln does not find its own program, which would load it".to_owned())
}

/// Loads the variant in `dir`, if this machine can, and tells what goes wrong. False: it does not load. `scratch` is for what the process
/// that loads it writes.
pub(super) fn loads(prepared: &Prepared<'_>, services: &Services<'_>, variant: &PlannedVariant, dir: &Path, scratch: &Path) -> bool {
    let (Some(loader), Some(runtime)) = (&services.loader, &prepared.runtime) else { return true };
    if !is_loadable(&variant.selected, &prepared.options, services) {
        return true;
    }
    let mut runtime = runtime.clone();
    // Those of the toolkit: the machine need not have other ones.
    runtime.preload.extend(prepared.backend(&variant.selected).map(Backend::preloads).unwrap_or_default());
    let session = Session {
        worker: &loader.worker,
        scratch: if scratch.to_str().is_some() { scratch } else { &loader.elsewhere },
        timeout: loader.timeout,
        interrupt: &services.interrupt,
        keeps_output: true,
        memory: None,
    };
    let loaded = find(dir, &Wanted::library(), prepared.options.target)
        .and_then(|kernel| Loadable { kernel, runtime: runtime.clone() }.load(&session));
    let (detail, evidence) = match loaded {
        Ok(called) => match called.problem() {
            None => return true,
            // Whoever stopped it knows.
            Some(_) if called.ended == Ended::Interrupted => return false,
            Some(problem) => (problem, Some(called.known())),
        },
        Err(error) => (error.to_string(), None),
    };
    let remark = Remark {
        kind: RemarkKind::Finding,
        rule: "load".to_owned(),
        level: Level::Error,
        file: variant.selected.variant.name(),
        line: None,
        column: None,
        symbol: None,
        detail: format!("it does not load with {}: {detail}", runtime.name),
        evidence,
        caused_by: Vec::new(),
        fix: Some("`kiln call` loads what is built in the same way".to_owned()),
    };
    (services.events)(&Event::Remark { variant: variant.selected.variant.name(), remark });
    false
}
