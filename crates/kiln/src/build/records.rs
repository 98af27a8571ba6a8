//! What the build record keeps of a build.

use std::collections::BTreeMap;

use kiln_backend::Backend;
use kiln_format::variant::Os;
use kiln_toolchain::floor::FloorChoice;
use kiln_toolchain::{Provider, Terms};

use super::{Prepared, Services, compiler_name};
use crate::dependencies::HeaderProvider;
use crate::floor::record as floor_record;
use crate::frameworks::Provided;
use crate::matrix::Kind;
use crate::plan::{BuildPlan, PlannedVariant};
use crate::record::{Proven, Stage, StandInRecord, StepRecord, ToolchainRecord, VariantRecord};

/// The compile and link steps of each variant, in graph order.
pub(super) fn steps(plan: &BuildPlan) -> BTreeMap<String, Vec<StepRecord>> {
    let mut records: BTreeMap<String, Vec<StepRecord>> = BTreeMap::new();
    for step in plan.graph.plan().steps {
        let kiln_graph::PlanAction::Run { argv, .. } = step.action else { continue };
        let mut argv = argv.into_iter();
        let record = StepRecord { label: step.label, program: argv.next().unwrap_or_default(), args: argv.collect() };
        for target in step.targets {
            records.entry(target).or_default().push(record.clone());
        }
    }
    records
}

/// What a variant was made from and how far it was proven, for the build record.
pub(super) fn variant(
    prepared: &Prepared<'_>,
    services: &Services<'_>,
    variant: &PlannedVariant,
    stage: Stage,
    steps: Vec<StepRecord>,
) -> VariantRecord {
    let selected = &variant.selected;
    let framework = prepared.frameworks.provided(selected);
    let mut toolchains = BTreeMap::new();
    let mut by = services.builder.version.clone();
    if selected.kind != Kind::Noarch
        && let Some(host) = &prepared.host
    {
        by = compiler_name(host);
        let identity = host.identity.clone();
        let (provider, version, instead_of) = ("system".to_owned(), by.clone(), prepared.refused_host.as_ref().map(compiler_name));
        toolchains.insert("cxx".to_owned(), ToolchainRecord { provider, version, identity, instead_of, ..ToolchainRecord::default() });
    }
    if variant.extension.is_some()
        && let Some(launcher) = &services.launcher
    {
        let version = launcher.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (provider, identity, licenses) = ("system".to_owned(), launcher.identity.clone(), BTreeMap::new());
        toolchains.insert("launcher".to_owned(), ToolchainRecord { provider, version, identity, licenses, ..ToolchainRecord::default() });
    }
    if let Some(Provided { name, version, provider, identity, terms, stand_in }) = framework {
        let (provider, wheel) = match provider {
            Provider::Wheel { file, .. } => ("wheel", Some(file.clone())),
            Provider::System { .. } => ("python", None),
        };
        let (provider, version, identity) = (provider.to_owned(), version.to_string(), identity.to_owned());
        let stands_in_for = stand_in.map(StandInRecord::from);
        toolchains.insert(
            name.to_owned(),
            ToolchainRecord { provider, version, identity, licenses: licenses(terms), wheel, stands_in_for, instead_of: None },
        );
    }
    if let Some(toolkit) = prepared.backend(selected).and_then(Backend::record) {
        if let Some(compiler) = toolkit.compiles_all {
            by = compiler;
            toolchains.remove("cxx");
        }
        let licenses = toolkit.tree.map(|dir| licenses(&services.provisioner.terms_of(&dir))).unwrap_or_default();
        let (provider, version, identity) = (toolkit.provider.to_owned(), toolkit.version, toolkit.identity);
        toolchains.insert(toolkit.name.to_owned(), ToolchainRecord { provider, version, identity, licenses, ..ToolchainRecord::default() });
    }
    for tree in selected.row.iter().flat_map(|row| prepared.headers.of(row.compute)) {
        let provider = match tree.provider {
            HeaderProvider::Wheel => "wheel",
            HeaderProvider::Directory => "system",
        };
        let (version, identity) = (tree.version.to_string(), tree.identity.clone());
        let licenses = licenses(&services.provisioner.terms_of(&tree.binding.dir));
        let record = ToolchainRecord { provider: provider.to_owned(), version, identity, licenses, ..ToolchainRecord::default() };
        toolchains.insert(tree.dependency.to_string(), record);
    }
    let catalog = framework.and_then(|framework| match framework.provider {
        Provider::Wheel { record_sha256, .. } => Some(record_sha256.clone()),
        Provider::System { .. } => None,
    });
    VariantRecord {
        id: variant.ops_id.to_string(),
        backend: selected.backend.to_string(),
        framework: selected.kind.as_str().to_owned(),
        torch: framework.filter(|framework| framework.name == "torch").map(|torch| torch.version.to_string()),
        compute: selected.compute_version().map(ToString::to_string),
        catalog,
        toolchains,
        archs: variant.archs.clone(),
        archs_narrowed: prepared.options.arch.is_some() && !variant.archs.is_empty(),
        floor: floor(prepared, variant),
        steps,
        proven: Proven { stage, by },
    }
}

/// The license that each wheel states, by project and version.
fn licenses(terms: &[Terms]) -> BTreeMap<String, String> {
    let stated =
        |terms: &Terms| (format!("{} {}", terms.project, terms.version), terms.license.clone().unwrap_or_else(|| "none stated".to_owned()));
    terms.iter().map(stated).collect()
}

/// The floor that a variant was linked for, as the build record keeps it; empty where nothing is linked, or for a system without
/// floors.
pub(super) fn floor(prepared: &Prepared<'_>, variant: &PlannedVariant) -> BTreeMap<String, String> {
    let choice = match &prepared.floor {
        Some(floor) => FloorChoice::Level(floor.level()),
        None if prepared.options.target.os == Os::Linux => FloorChoice::Host,
        None => return BTreeMap::new(),
    };
    if variant.extension.is_some() { floor_record(choice) } else { BTreeMap::new() }
}
