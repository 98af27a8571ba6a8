//! `kiln lint`: what headers of torch cost each unit, and what including less of them would save. Every number is measured.
//!
//! How. Each unit that includes torch is compiled by itself, several times, by the very steps that a build has for it, and what counts
//! is the processor time of all programs that these steps run; other work of the machine hardly changes that. A unit of device code is
//! compiled for one capability. The compiles are:
//!
//! | compile | what it is |
//! |---|---|
//! | unit | the unit as it is |
//! | headers | nothing but the headers of torch that the unit and the project's headers include, in their order |
//! | narrow | the unit with each umbrella header replaced by the headers of the names that it uses |
//! | types | the same with `torch/types.h`, where the unit uses names that only that has; if `narrow` does not compile |
//! | stable | nothing but the headers of torch's stable ABI, with the unit's flags |
//!
//! The share of torch's headers is headers / unit; an include is narrower by unit - narrow; the stable ABI saves headers - stable. A
//! replacement that does not compile is no advice. Changed copies lie below the work directory, in the same directories as in the project,
//! so that what they include is found where it was.
//!
//! | module | its job |
//! |---|---|
//! | `includes` | what a unit includes of the project and of torch |
//! | `names` | the headers of the names that a unit uses |
//! | `measure` | the compiles |
//! | `report` | what is said of them |

mod includes;
mod measure;
mod names;
mod report;

use std::time::Duration;

use kiln_backend::{SourceKind, classify_source};

use self::includes::Includes;
pub(crate) use self::includes::include;
use self::measure::{Bench, Compile};
use super::{Prepared, Services, work_dir};
use crate::build_error::BuildError;
use crate::matrix::Kind;
use crate::plan::PlannedVariant;

pub use report::{json, text};

/// From this share on a saving is worth a word.
const WORTH: f64 = 0.1;

/// What a unit costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCost {
    /// The variant that it was compiled for.
    pub variant: String,
    /// The table that lists it.
    pub component: String,
    /// The source, relative to the project.
    pub source: String,
    /// The capability that it was compiled for, and how many a build compiles it for; none without device code.
    pub capability: Option<(String, usize)>,
    /// Headers of torch that it includes, in order.
    pub torch_headers: Vec<String>,
    /// The whole unit, or what the compiler said.
    pub unit: Result<Duration, String>,
    /// Torch's headers alone; none where they do not compile alone.
    pub headers: Option<Duration>,
    /// What could be done.
    pub findings: Vec<Finding>,
}

impl UnitCost {
    /// The share of torch's headers in what the unit costs.
    pub fn share(&self) -> Option<f64> {
        let (unit, headers) = (self.unit.as_ref().ok()?.as_secs_f64(), self.headers?.as_secs_f64());
        (unit > 0.0).then(|| (headers / unit).min(1.0))
    }
}

/// Advice, with what it was measured to save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `stable-abi-include`, `torch-include-cost` or `umbrella-include`.
    pub code: &'static str,
    /// The file and line that it is about.
    pub place: (String, usize),
    /// What is so: lower case, no full stop.
    pub message: String,
    /// What to do.
    pub fix: String,
    /// What the unit then costs less.
    pub saves: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LintReport {
    /// Each unit that includes torch, in build order.
    pub units: Vec<UnitCost>,
    /// How many units include nothing of it.
    pub without_torch: usize,
}

/// Measures the units of a prepared build. `tell` is told what is compiled next.
///
/// # Errors
/// When the work directory cannot be used, or a unit cannot be planned. A unit that does not compile is no error here: the report tells.
pub fn lint(prepared: &Prepared<'_>, services: &Services<'_>, tell: &dyn Fn(&str)) -> Result<LintReport, BuildError> {
    let project = &prepared.checked.project;
    let work_dir = work_dir::open(&project.root, services)?;
    let bench = Bench::new(prepared, services, work_dir.path())?;
    let mut report = LintReport::default();
    for variant in prepared.plan.variants.iter().filter(|variant| matches!(variant.selected.kind, Kind::Torch | Kind::TorchStable(_))) {
        for component in variant.components.iter() {
            for source in component.sources.iter().filter(|source| classify_source(&source.path) != SourceKind::Header) {
                let include_dirs: Vec<&str> = component.include_dirs.iter().map(|dir| dir.path.as_str()).collect();
                let includes = component
                    .uses_framework
                    .then(|| Includes::of(&project.root, &source.path, &include_dirs, &bench.torch_dirs(variant)))
                    .filter(|includes| !includes.torch.is_empty() && !services.interrupt.is_set());
                let Some(includes) = &includes else {
                    report.without_torch += 1;
                    continue;
                };
                tell(&source.path);
                let capability = bench.capability(variant, component, &source.path);
                report.units.push(unit(&bench, variant, &Compile { component, source: &source.path, includes, capability })?);
            }
        }
    }
    Ok(report)
}

/// Measures one unit.
fn unit(bench: &Bench<'_>, variant: &PlannedVariant, compile: &Compile<'_>) -> Result<UnitCost, BuildError> {
    let includes = compile.includes;
    let mut cost = UnitCost {
        variant: variant.selected.variant.name(),
        component: compile.component.table.clone(),
        source: compile.source.to_owned(),
        capability: compile.capability.clone(),
        torch_headers: includes.torch.iter().map(|include| include.header.clone()).collect(),
        unit: bench.as_it_is(variant, compile)?,
        headers: None,
        findings: Vec::new(),
    };
    let Ok(whole) = cost.unit else { return Ok(cost) };
    // A part is no more than the whole, however busy the machine was meanwhile.
    cost.headers = bench.only(variant, compile, "headers", &cost.torch_headers)?.ok().map(|headers| headers.min(whole));
    let first = includes.torch.first().map(|include| (include.file.clone(), include.line)).unwrap_or_default();
    if let (Some(headers), Some(share)) = (cost.headers, cost.share())
        && share >= 0.5
    {
        let message = format!("torch's headers are {} of what the unit costs", percent(share));
        let fix = "include less of torch, or keep what needs it in a unit of its own".to_owned();
        cost.findings.push(Finding { code: "torch-include-cost", place: first.clone(), message, fix, saves: headers });
    }
    cost.findings.extend(narrower(bench, variant, compile, whole)?);
    if let (Kind::Torch, Some(headers)) = (variant.selected.kind, cost.headers) {
        let stable = bench.only(variant, compile, "stable", &bench.stable_headers(variant))?;
        if let Ok(stable) = stable
            && let Some(saves) = worth(headers, stable, whole)
        {
            let message = format!("the headers of torch's stable ABI cost {} in place of {}", seconds(stable), seconds(headers));
            let fix = "port the kernel to the stable ABI with `stable-abi` in `[torch]`".to_owned();
            cost.findings.push(Finding { code: "stable-abi-include", place: first, message, fix, saves });
        }
    }
    Ok(cost)
}

/// The narrower include that compiles, if it saves enough.
fn narrower(bench: &Bench<'_>, variant: &PlannedVariant, compile: &Compile<'_>, whole: Duration) -> Result<Option<Finding>, BuildError> {
    let Some(umbrella) = compile.includes.umbrellas().next() else { return Ok(None) };
    let torch_dirs = bench.torch_dirs(variant);
    let texts: Vec<&str> = compile.includes.files.values().map(String::as_str).collect();
    for replacement in [names::narrow(&texts, &torch_dirs), names::types(&texts, &umbrella.header)].into_iter().flatten() {
        let Ok(narrow) = bench.with(variant, compile, &replacement)? else { continue };
        let Some(saves) = worth(whole, narrow, whole) else { return Ok(None) };
        let headers: Vec<String> = replacement.headers.iter().map(|header| format!("<{header}>")).collect();
        let renamed = if replacement.renames { ", and write `at::` for `torch::`" } else { "" };
        return Ok(Some(Finding {
            code: "umbrella-include",
            place: (umbrella.file.clone(), umbrella.line),
            message: format!(
                "with narrower includes than `<{}>` the unit costs {} in place of {}",
                umbrella.header,
                seconds(narrow),
                seconds(whole)
            ),
            fix: format!("include {}{renamed}", headers.join(", ")),
            saves,
        }));
    }
    Ok(None)
}

/// What is saved, if that is worth a word.
fn worth(before: Duration, after: Duration, whole: Duration) -> Option<Duration> {
    before.checked_sub(after).filter(|saves| saves.as_secs_f64() >= WORTH * whole.as_secs_f64())
}

/// A duration for people.
fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A share for people.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
