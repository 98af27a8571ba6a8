//! From a linked extension to a variant's directory that the checks have seen.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_backend::{Backend, ObjectFile, with_stand_ins};
use kiln_graph::Outcome;
use kiln_toolchain::LibraryExports;

use super::unobjected::{self, Unobjected};
use super::{Prepared, Services, load, records};
use crate::build_error::Report;
use crate::check::{self, BuiltVariant, FrameworkNames, Remark, check_built};
use crate::event::Event;
use crate::matrix::{Kind, Selected};
use crate::package::{self, Contents, PackageError, Placed};
use crate::plan::PlannedVariant;
use crate::record::Stage;

/// Verifies and packages one variant; `scratch` is a directory for temporary files. An error without a report means that a step of the graph has said why.
pub(super) fn package_variant(
    prepared: &Prepared<'_>,
    services: &Services<'_>,
    variant: &PlannedVariant,
    outcome: &Outcome,
    out_dir: &Path,
    unobjected: &Unobjected,
    scratch: &Path,
) -> Result<(Placed, Stage), Option<Report>> {
    let name = variant.selected.variant.name();
    let package_error = |error: PackageError| Some(Report::of(&error, error.code(), error.hint()));
    let library = match &variant.extension {
        None => None,
        Some(_) if !outcome.is_target_ok(&name) => return Err(None),
        Some(extension) => Some(outcome.output_path(extension)),
    };
    let build = prepared.checked.build().map_err(|error| Some(Report::from(&error)))?;
    let shipped = library.as_deref().zip(variant.extension.as_ref().map(|extension| extension.name.as_str()));
    let contents = Contents::collect(&prepared.checked.project.root, build, &variant.ops_id, shipped).map_err(package_error)?;
    let provenance = package::provenance(services.builder.clone(), &prepared.scm, prepared.dirty);
    let selected = &variant.selected;
    let metadata =
        package::metadata(build, selected.backend, selected.kind, &variant.ops_id, &variant.archs, provenance).map_err(package_error)?;
    let digest = contents.digest().map_err(package_error)?;
    let loads = prepared.runtime.is_some() && load::is_loadable(selected, &prepared.options, services);
    let stage = match loads {
        true => Stage::Loaded,
        false if is_linked_by_other_names(prepared, selected) => Stage::Compiled,
        false => Stage::Linked,
    };
    let looked = Looked::at(prepared, services, variant, outcome);
    let key = unobjected::key(&looked, services, &digest, &metadata, loads);
    if key.as_ref().is_some_and(|key| unobjected.has(&name, key)) {
        let placed = package::place(out_dir, &name, &contents, digest, &metadata, &|_| true).map_err(package_error)?;
        return Ok((placed, stage));
    }
    if let Some(library) = &library {
        verify_code(prepared, variant, library)?;
    }
    let remarks = Cell::new(0);
    let inspect = |dir: &Path| looked.inspect(services, dir, &remarks) && load::loads(prepared, services, variant, dir, scratch);
    let placed = package::place(out_dir, &name, &contents, digest, &metadata, &inspect).map_err(package_error)?;
    if let (Some(key), 0) = (key, remarks.get()) {
        unobjected.note(&name, &key);
    }
    Ok((placed, stage))
}

/// Whether libraries of another build of torch gave the names that a variant under torch's C++ ABI is linked by: what its own build has
/// was not seen. Under the stable ABI the names are the same for all.
fn is_linked_by_other_names(prepared: &Prepared<'_>, selected: &Selected) -> bool {
    let backend = selected.row.as_ref().and_then(|row| prepared.backends.get(row.compute));
    let (Some(torch), Some(backend)) = (prepared.frameworks.torch(selected), backend) else { return false };
    let has = |soname: &str| torch.exports.iter().any(|library| library.soname == soname);
    selected.kind == Kind::Torch && backend.framework_part().torch.stand_ins.iter().any(|(own, _)| !has(own))
}

/// Whether the device code in a linked extension is what was planned.
fn verify_code(prepared: &Prepared<'_>, variant: &PlannedVariant, library: &Path) -> Result<(), Option<Report>> {
    let Some(backend) = variant.selected.row.as_ref().and_then(|row| prepared.backends.get(row.compute)) else { return Ok(()) };
    let bytes = fs::read(library).map_err(|cause| {
        let message = format!("cannot read `{}`", library.display());
        Some(Report { code: "work-directory", message, causes: vec![cause.to_string()], hint: None })
    })?;
    backend
        .verify(&variant.components, &bytes)
        .map_err(|wrong| Some(Report { code: wrong.code(), message: wrong.message, causes: Vec::new(), hint: wrong.hint }))
}

/// What the checks of a built variant look at beside its directory.
pub(super) struct Looked<'a> {
    pub(super) variant: &'a PlannedVariant,
    pub(super) floor: BTreeMap<String, String>,
    pub(super) exports: Vec<LibraryExports>,
    objects: Vec<(String, PathBuf)>,
    pub(super) host_paths: [String; 2],
}

impl<'a> Looked<'a> {
    fn at(prepared: &Prepared<'_>, services: &Services<'_>, variant: &'a PlannedVariant, outcome: &Outcome) -> Self {
        let project = &prepared.checked.project.root;
        let framework = prepared.checked.build().ok().and_then(|build| prepared.frameworks.bind(build, &variant.selected, &variant.ops_id));
        let backend = variant.selected.row.as_ref().and_then(|row| prepared.backends.get(row.compute));
        let part = backend.map(Backend::framework_part).unwrap_or_default();
        let exports = framework.iter().flat_map(|framework| with_stand_ins(framework.exports(), part.torch.stand_ins));
        let exports = exports.chain(part.torch.known).chain(part.runtime).collect();
        let object = |object: &ObjectFile| (object.source.clone(), outcome.output_path(&object.output));
        Self {
            variant,
            floor: records::floor(prepared, variant),
            exports,
            objects: variant.objects.iter().map(object).collect(),
            host_paths: [project, services.cache_dir].map(|path| path.display().to_string()),
        }
    }

    /// Runs the checks on a variant's directory and tells what they say, as many times as it counts. False: it must not be put in
    /// place.
    fn inspect(&self, services: &Services<'_>, dir: &Path, told: &Cell<usize>) -> bool {
        let built = BuiltVariant {
            variant: &self.variant.selected.variant,
            id: &self.variant.ops_id,
            floor: check::floor_policy(&self.floor),
            names: &FrameworkNames::of(&self.exports),
            objects: &self.objects,
            host_paths: &self.host_paths,
        };
        let name = self.variant.selected.variant.name();
        match check_built(dir, &built) {
            Ok(report) => {
                let ok = report.is_ok();
                let remarks = report.findings.into_iter().map(Remark::from).chain(report.failures.into_iter().map(Remark::from));
                for remark in remarks {
                    told.set(told.get() + 1);
                    (services.events)(&Event::Remark { variant: name.clone(), remark });
                }
                ok
            }
            Err(error) => {
                told.set(told.get() + 1);
                (services.events)(&Event::Warning { message: error.to_string() });
                false
            }
        }
    }
}
