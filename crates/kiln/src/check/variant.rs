//! The checks of objects, with what a variant's name, its metadata and its build tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kiln_abi::{Expectation, Origins, Policies, PolicyError, Profile, PythonVersion, Report, Shape, check_variant};
use kiln_format::variant::{ArchFramework, Variant};
use kiln_format::{MajorMinor, OpsId};
use kiln_object::elf::relocatable;
use kiln_toolchain::floor::FloorChoice;

use super::names::FrameworkNames;

/// A variant that was just built, not yet in its place.
#[derive(Clone, Copy, Debug)]
pub struct BuiltVariant<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// Its ops id.
    pub id: &'a OpsId,
    /// The policy that it was linked for; none when no floor was applied.
    pub floor: Option<&'a str>,
    /// What the framework that it was built against exports.
    pub names: &'a FrameworkNames,
    /// The objects that it was linked from: label and file.
    pub objects: &'a [(String, PathBuf)],
    /// Directories of this machine, which must not be inside.
    pub host_paths: &'a [String],
}

/// Checks the directory of a variant that was just built.
///
/// # Errors
/// When the floor is no policy.
pub fn check_built(dir: &Path, built: &BuiltVariant<'_>) -> Result<Report, PolicyError> {
    let policies = Policies::embedded()?;
    let floor = built.floor.map(|name| policies.get(name)).transpose()?;
    let allowed = BTreeSet::new();
    let known = |soname: &str, name: &str| built.names.exports(soname, name);
    let check = |origins: &Origins| {
        let expected = Expectation {
            profile: Profile::Extension,
            floor,
            framework: None,
            compute: None,
            platform: None,
            id: Some(built.id.as_str()),
            python: PythonVersion::FLOOR,
            macos: None,
            allowed_libraries: &allowed,
            known_names: &known,
            origins,
            host_paths: built.host_paths,
            own: true,
        };
        let mut report = Report::default();
        let name = built.variant.name();
        let file = built.variant.extension_name(built.id);
        check_variant(dir, &name, shape(built.variant, file.as_deref()), &expected.for_variant(built.variant), &mut report);
        report
    };
    let report = check(&Origins::default());
    if report.findings.is_empty() {
        return Ok(report);
    }
    // Which object brought what is asked only when there is something to say of it.
    let objects: Vec<_> =
        built.objects.iter().filter_map(|(label, path)| Some((label.as_str(), relocatable(&std::fs::read(path).ok()?).ok()?))).collect();
    Ok(check(&Origins::new(objects.iter().map(|(label, object)| (*label, object)))))
}

/// What the directory of a variant should hold.
pub(super) fn shape<'a>(variant: &Variant, extension: Option<&'a str>) -> Shape<'a> {
    match variant {
        Variant::Noarch(_) => Shape::Noarch,
        Variant::Arch(_) => Shape::Compiled(extension),
    }
}

/// The minor of torch or of tvm-ffi that a variant's name says to be the one that it needs.
pub(super) fn framework_minor(variant: &Variant) -> Option<MajorMinor> {
    match variant {
        Variant::Arch(arch) => match arch.framework {
            ArchFramework::TorchCxx { version, .. } | ArchFramework::TvmFfi { version } => Some(version),
            ArchFramework::TorchStable { .. } => None,
        },
        Variant::Noarch(_) => None,
    }
}

/// The key under which the build record keeps the policy of a floor.
pub(super) const POLICY: &str = "policy";

/// The policy that a build's floor is checked against, by the name that the build record keeps; none for what was built for its host.
pub(crate) fn floor_policy(floor: &BTreeMap<String, String>) -> Option<&str> {
    floor.get(POLICY).map(String::as_str).filter(|policy| *policy != FloorChoice::Host.as_str())
}
