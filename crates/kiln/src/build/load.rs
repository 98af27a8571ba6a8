//! Loads built kernels of tvm-ffi, which need no Python for it: the last check of a variant that this machine can run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kiln_format::Level;
use kiln_format::variant::{ArchFramework, Compute, Variant};

use super::{BuildError, BuildOptions, Prepared, Services, cuda_release};
use crate::call::check::Loadable;
use crate::call::runtime::{Choice, RuntimeError, RuntimeFiles, of_minor};
use crate::call::{Ended, Session, Wanted, Worker, find};
use crate::check::{Remark, RemarkKind};
use crate::event::Event;
use crate::matrix::Selected;
use crate::plan::PlannedVariant;

/// How long loading may take. It takes moments; a machine that is busy must not fail a build.
const LIMIT: Duration = Duration::from_secs(300);

/// What loads the variants of a build.
#[derive(Clone, Debug)]
pub struct Loader {
    /// How a worker is started.
    pub worker: Worker,
    /// Where it writes.
    pub scratch: PathBuf,
}

/// The runtime for the variants that are loaded at the end, fetched with everything else that a build needs; none if there are none.
///
/// # Errors
/// When it cannot be fetched.
pub(super) fn runtime(selected: &[Selected], options: &BuildOptions, services: &Services<'_>) -> Result<Option<RuntimeFiles>, BuildError> {
    let minor = selected.iter().filter(|selected| is_loadable(selected, services)).find_map(|selected| match &selected.variant {
        Variant::Arch(arch) => match arch.framework {
            ArchFramework::TvmFfi { version } => Some(version),
            _ => None,
        },
        Variant::Noarch(_) => None,
    });
    let Some(minor) = minor.filter(|_| options.fetch) else { return Ok(None) };
    match of_minor(&Choice::Newest, Some(minor), options.target, services.cuda.catalog, services.provisioner) {
        Ok(runtime) => Ok(Some(runtime)),
        Err(RuntimeError::Toolchain(error)) => Err(error.into()),
        // A release line without a runtime for this machine, of a matrix of somebody's own.
        Err(RuntimeError::Unknown { .. } | RuntimeError::Call(_)) => Ok(None),
    }
}

/// Whether this machine can load a variant.
pub(super) fn is_loadable(selected: &Selected, services: &Services<'_>) -> bool {
    let Variant::Arch(arch) = &selected.variant else { return false };
    let is_known = matches!(arch.compute, Compute::Cpu | Compute::Cuda(_));
    services.loader.is_some() && is_known && matches!(arch.framework, ArchFramework::TvmFfi { .. })
}

/// Loads the variant in `dir`, if this machine can, and tells what goes wrong. False: it does not load.
pub(super) fn loads(prepared: &Prepared<'_>, services: &Services<'_>, variant: &PlannedVariant, dir: &Path) -> bool {
    let (Some(loader), Some(runtime)) = (&services.loader, &prepared.runtime) else { return true };
    if !is_loadable(&variant.selected, services) {
        return true;
    }
    let mut runtime = runtime.clone();
    if let Some(cuda) = cuda_release(&variant.selected).and_then(|release| prepared.backends.cuda(release)) {
        // That of the toolkit: the machine need not have another one.
        let toolkit = cuda.toolkit();
        runtime.preload.push(toolkit.binding.dir.join(&toolkit.library_dir.path).join(&toolkit.cudart.soname));
    }
    let session =
        Session { worker: &loader.worker, scratch: &loader.scratch, timeout: LIMIT, interrupt: &services.interrupt, keeps_output: true };
    let loaded = find(dir, &Wanted::library(), prepared.options.target)
        .and_then(|kernel| Loadable { kernel, runtime: runtime.clone() }.load(&session));
    let (detail, output) = match loaded {
        Ok(called) => match called.problem() {
            None => return true,
            // Whoever stopped it knows.
            Some(_) if called.ended == Ended::Interrupted => return false,
            Some(problem) => (problem, called.output),
        },
        Err(error) => (error.to_string(), String::new()),
    };
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let evidence = lines.last().map(|line| (*line).to_owned());
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
