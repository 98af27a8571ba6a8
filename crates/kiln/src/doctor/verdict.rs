//! Whether a build would start: the build is asked.

use kiln_backend::FoundIn;
use kiln_format::{BackendName, Version};
use kiln_toolchain::Availability;
use kiln_toolchain::discover::Distribution;

use super::{Examination, stand_in, tools};
use crate::backends;
use crate::build::{BuildOptions, Checked, compiler_name, prepare, would_start};
use crate::build_error::{BuildError, Report};

/// Where a framework or a toolkit of a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkFrom {
    /// In the store.
    Store,
    /// In a wheel that the index lists.
    Index,
    /// In a Python of the machine.
    Python,
    /// A toolkit of the machine.
    Machine,
}

impl FrameworkFrom {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Index => "index",
            Self::Python => "python",
            Self::Machine => "machine",
        }
    }
}

impl From<Availability> for FrameworkFrom {
    fn from(availability: Availability) -> Self {
        match availability {
            Availability::Stored => Self::Store,
            Availability::Listed => Self::Index,
        }
    }
}

impl From<FoundIn> for FrameworkFrom {
    fn from(place: FoundIn) -> Self {
        match place {
            FoundIn::Machine => Self::Machine,
            FoundIn::Store => Self::Store,
            FoundIn::Index => Self::Index,
        }
    }
}

/// What a build that starts would work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The variants, by name; those of a kernel that stands in are what any kernel would get.
    pub variants: Vec<String>,
    /// The host compiler.
    pub compiler: Option<String>,
    /// The frameworks, each with its release.
    pub frameworks: Vec<(&'static str, Version, FrameworkFrom)>,
    /// The vendor's toolkits, each with its release.
    pub toolkits: Vec<(&'static str, Version, FrameworkFrom)>,
}

/// What a build for one backend would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The backend.
    pub backend: BackendName,
    /// What it would work on, or the error that it would end with.
    pub start: Result<Start, Report>,
    /// What to install for it to start.
    pub install: Option<String>,
}

/// The verdicts: on the backends that were asked for, else on those of the project, else on all that this Kiln compiles for.
pub(super) fn all(examination: &Examination<'_>, distribution: &Distribution) -> Vec<Verdict> {
    let of_project = || Some(examination.project?.project.build.as_ref()?.general.backends.iter().map(|backend| backend.value).collect());
    let backends: Vec<BackendName> = match examination.backends {
        [] => of_project().unwrap_or_else(|| backends::VENDORS.iter().map(|vendor| vendor.backend()).collect()),
        asked => asked.to_vec(),
    };
    backends.into_iter().map(|backend| verdict(examination, backend, distribution)).collect()
}

fn verdict(examination: &Examination<'_>, backend: BackendName, distribution: &Distribution) -> Verdict {
    let mut install = None;
    let start = match &examination.refusal {
        Some(report) => Err(report.clone()),
        None => start(examination, backend).map_err(|error| {
            install = tools::need(&error).and_then(|need| distribution.install(need));
            Report::from(&error)
        }),
    };
    Verdict { backend, start, install }
}

fn start(examination: &Examination<'_>, backend: BackendName) -> Result<Start, BuildError> {
    match examination.project {
        Some(checked) => start_of(examination, checked, backend),
        None => start_of(examination, &stand_in::open(examination.scratch, backend, examination.user_lock)?, backend),
    }
}

fn start_of(examination: &Examination<'_>, checked: &Checked, backend: BackendName) -> Result<Start, BuildError> {
    let mut options = BuildOptions { fetch: false, ..examination.options.clone() };
    options.filters.backends = vec![backend];
    let prepared = prepare(checked, options, examination.services)?;
    let used = would_start(&prepared, examination.services)?;
    let from = |availability: Option<Availability>, other| availability.map_or(other, FrameworkFrom::from);
    Ok(Start {
        variants: prepared.plan.variants.iter().map(|variant| variant.selected.variant.name()).collect(),
        compiler: prepared.host().map(compiler_name),
        frameworks: used
            .frameworks
            .into_iter()
            .map(|found| (found.name, found.release, from(found.availability, FrameworkFrom::Python)))
            .collect(),
        toolkits: used.toolkits.into_iter().map(|found| (found.name, found.version, found.place.into())).collect(),
    })
}
