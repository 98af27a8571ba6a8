//! Where the CANN toolkit of a variant comes from: this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind, View, find};
use kiln_backend::{Asked, Backend, BackendName, LibraryExports, MajorMinor, ProvideError, Sources, Toolkits, Wanted, also};

use crate::arch::{ArchRequest, is_arch};
use crate::backend::{NO_STABLE_ABI, NpuBackend};
use crate::toolkit::{NpuToolkit, ToolkitError};

/// The error of a toolkit that cannot be had or used.
fn no_cann(message: impl Into<String>) -> ProvideError {
    ProvideError::new("no-cann", message)
}

/// The CANN toolkits.
#[derive(Clone, Copy, Debug)]
pub struct NpuToolkits;

impl Toolkits for NpuToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Cann
    }

    fn kit(&self) -> Option<KitKind> {
        Some(KitKind::Cann)
    }

    fn unit_extensions(&self) -> &'static [&'static str] {
        &["asc"]
    }

    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.asc"]
    }

    fn no_stable_abi(&self) -> Option<&'static str> {
        Some(NO_STABLE_ABI)
    }

    fn claims_arch(&self, entry: &str) -> bool {
        is_arch(entry)
    }

    fn check_arch(&self, list: &str) -> Result<(), String> {
        list.parse::<ArchRequest>().map(drop).map_err(|error| error.to_string())
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let Some(wanted) = asked.compute.version() else { return Ok(()) };
        match of_release(wanted, sources) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.told()),
        }
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        let release = wanted.compute.version().unwrap_or(MajorMinor::new(0, 0));
        let toolkit = NpuToolkit::of_machine(&of_release(release, sources)?, sources.cache_dir)?;
        let request = wanted.arch.map(str::parse::<ArchRequest>).transpose();
        let request = request.map_err(|error| ProvideError::new("no-architecture", error.to_string()))?;
        Ok(Arc::new(NpuBackend::new(toolkit, request)))
    }

    /// AscendCL of this machine's toolkits.
    fn known_exports(&self, environment: &BTreeMap<String, String>) -> Vec<LibraryExports> {
        let view = View { root: Path::new("/"), environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH };
        let kits = find(KitKind::Cann, &view, None).candidates;
        kits.iter().filter_map(|kit| NpuToolkit::runtime(kit).ok()).collect()
    }
}

impl From<ToolkitError> for ProvideError {
    fn from(error: ToolkitError) -> Self {
        no_cann(error.to_string()).with_hint(error.hint())
    }
}

/// The first complete toolkit of a release.
fn of_release(release: MajorMinor, sources: &Sources<'_>) -> Result<Candidate, ProvideError> {
    let found = find(KitKind::Cann, &sources.view(), None);
    let fitting = || found.candidates.iter().filter(|kit| kit.version.as_ref().is_some_and(|version| version.major_minor() == release));
    if let Some(kit) = fitting().find(|kit| kit.is_complete()) {
        return Ok(kit.clone());
    }
    if let Some(kit) = fitting().next() {
        // What it lacks is the better message.
        NpuToolkit::check(kit)?;
    }
    let of = |kit: &Candidate| kit.described(kit.version.as_ref().map(ToString::to_string));
    let others: Vec<String> = found.candidates.iter().map(of).collect();
    let message = format!("no `bisheng` of CANN {release} was found; looked at {}{}", found.looked.join(", "), also(&others));
    Err(no_cann(message).with_hint(sources.remedy(&found, release)).with_need(KitKind::Cann.need()))
}
