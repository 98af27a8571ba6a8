//! Checks on demand: of projects, output directories, variants and single files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kiln_abi::{
    DEFAULT_POLICY, Expectation, FailureKind, Framework, Origins, Policies, Policy, PolicyError, Profile, PythonVersion, Report, Shape,
    check_file, check_variant,
};
use kiln_format::lock::Lock;
use kiln_format::variant::{ArchFramework, Variant};
use kiln_format::{Level, MajorMinor, Metadata, OpsId};
use kiln_object::macho::SystemVersion;
use kiln_toolchain::{Catalog, LibraryExports};
use thiserror::Error;

use super::builds::check_builds;
use super::names::FrameworkNames;
use super::remark::{Outcome, Remark, RemarkKind};
use super::variant::{POLICY, floor_policy, framework_minor, shape};
use crate::build::Checked;
use crate::build_error::chain;
use crate::hash::{VariantDir, find_variants};
use crate::package::METADATA;
use crate::project::BUILD_TOML;
use crate::record::{self, BuildRecord, RecordError};
use crate::small_file;

/// Which checks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Those of objects.
    pub abi: bool,
    /// Those of metadata, digests and names.
    pub builds: bool,
    /// Those of a project's files and configuration.
    pub config: bool,
}

/// Why the variants of a project could not be checked: there are none.
pub const NO_VARIANTS: &str = "no-variants";

/// Why what the build record says could not be taken into account: it is no record, or not of a known form.
pub const DAMAGED_RECORD: &str = "damaged-record";

/// A note: the floor rules were left out, since the variant was built for its host.
pub const HOST_FLOOR: &str = "host-floor";

/// How to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Which checks.
    pub checks: Checks,
    /// How strict to be.
    pub profile: Profile,
    /// The manylinux policy, by name or alias. Without one, that which the build record names for a variant, else the default.
    pub policy: Option<String>,
    /// The oldest supported Python.
    pub python: PythonVersion,
    /// The oldest macOS that files for it may ask for; none for what loaders take each variant on.
    pub macos: Option<SystemVersion>,
    /// A stable ABI of torch instead of the one that a variant's name says.
    pub stable_abi: Option<MajorMinor>,
    /// Libraries that may be needed beyond the known ones.
    pub allowed_libraries: BTreeSet<String>,
    /// What libraries of vendors export that are not in the catalog, as far as this machine knows.
    pub known_exports: Vec<LibraryExports>,
    /// Directories of this machine that must not be inside of a variant, beyond its project's.
    pub host_paths: Vec<String>,
    /// Only the findings of these rules; all when empty.
    pub only: Vec<String>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            checks: Checks { abi: true, builds: true, config: true },
            profile: Profile::Extension,
            policy: None,
            python: PythonVersion::FLOOR,
            macos: None,
            stable_abi: None,
            allowed_libraries: BTreeSet::new(),
            known_exports: Vec::new(),
            host_paths: Vec::new(),
            only: Vec::new(),
        }
    }
}

/// Nothing could be checked.
#[derive(Debug, Error)]
pub enum CheckError {
    /// The policy is unknown.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The catalog is damaged.
    #[error(transparent)]
    Catalog(#[from] kiln_toolchain::Error),
}

/// Checks every path by what it is: a project or output directory with all its variants, one variant, another directory with all
/// objects below it, or a file.
///
/// # Errors
/// When an option names what there is not. Anything else that keeps a check from running is a remark: of a path that does not exist, or a
/// project without variants, the others are checked all the same.
pub fn check_paths(paths: &[PathBuf], options: &CheckOptions) -> Result<Outcome, CheckError> {
    let policies = Policies::embedded()?;
    let asked = options.policy.as_deref().map(|name| policies.get(name)).transpose()?;
    let checker = Checker { options, default: policies.get(DEFAULT_POLICY)?, asked, policies: &policies, catalog: Catalog::embedded()? };
    let mut outcome = Outcome::default();
    for path in paths {
        checker.path(path, &mut outcome)?;
    }
    if !options.only.is_empty() {
        outcome.retain_rules(&options.only);
    }
    Ok(outcome)
}

struct Checker<'a> {
    options: &'a CheckOptions,
    default: &'a Policy,
    asked: Option<&'a Policy>,
    policies: &'a Policies,
    catalog: Catalog,
}

/// What a build record says of a variant's floor.
#[derive(Clone, Copy, Default)]
enum Recorded<'a> {
    #[default]
    Nothing,
    Host,
    Policy(&'a Policy),
}

/// What is known of the objects to check.
#[derive(Default)]
struct Subject<'a> {
    variant: Option<&'a Variant>,
    id: Option<&'a OpsId>,
    floor: Recorded<'a>,
    host_paths: Vec<String>,
}

impl Checker<'_> {
    fn path(&self, path: &Path, outcome: &mut Outcome) -> Result<(), CheckError> {
        let shown = path.display().to_string();
        let is_dir = match fs::metadata(path) {
            Ok(meta) => meta.is_dir(),
            Err(error) => {
                let cause = match error.kind() {
                    io::ErrorKind::NotFound => "there is no file or directory of this name".to_owned(),
                    _ => error.to_string(),
                };
                outcome.remarks.push(Remark::failure(FailureKind::Unreadable.code(), shown, cause, None));
                return Ok(());
            }
        };
        if !is_dir {
            if self.options.checks.abi {
                return self.file(path, outcome);
            }
            let fix = Some("name the variant's directory, or the project's".to_owned());
            outcome.remarks.push(Remark::failure(NO_VARIANTS, shown, "it is a file, and metadata belong to variants".to_owned(), fix));
            return Ok(());
        }
        if path.join(METADATA).is_file() || name_of(path).is_some_and(|name| name.parse::<Variant>().is_ok()) {
            let name = name_of(path).unwrap_or_default();
            return self.variants(&[VariantDir { name, path: path.to_owned() }], outcome);
        }
        let is_project = path.join(BUILD_TOML).exists();
        if is_project && self.options.checks.config {
            config(path, outcome);
        }
        match find_variants(path) {
            Ok(variants) => self.variants(&variants, outcome),
            // Any other directory: whatever objects there are.
            Err(_) if self.options.checks.abi && !is_project => {
                let mut report = Report::default();
                let shape = Shape::Any;
                self.with_expectation(&Subject::default(), |expected| check_variant(path, &shown, shape, expected, &mut report))?;
                outcome.extend(report);
                Ok(())
            }
            Err(error) => {
                let fix = error.hint().map(str::to_owned);
                outcome.remarks.push(Remark::failure(NO_VARIANTS, shown, chain(&error), fix));
                Ok(())
            }
        }
    }

    fn variants(&self, variants: &[VariantDir], outcome: &mut Outcome) -> Result<(), CheckError> {
        if self.options.checks.builds {
            check_builds(variants, outcome);
        }
        // All variants of one call lie in one directory.
        let record = variants.first().and_then(|variant| build_record(&variant.path, outcome));
        if !self.options.checks.abi {
            return Ok(());
        }
        for VariantDir { name, path } in variants {
            let floor = record.as_ref().map_or(Recorded::Nothing, |record| self.recorded(name, record, outcome));
            let mut report = Report::default();
            match name.parse::<Variant>() {
                Ok(variant) => {
                    let id = match ops_id(path) {
                        Ok(id) => Some(id),
                        Err(cause) => {
                            // The checks of metadata say what is wrong with them.
                            if !self.options.checks.builds {
                                outcome.remarks.push(without_id(name, cause));
                            }
                            None
                        }
                    };
                    let extension = id.as_ref().and_then(|id| variant.extension_name(id));
                    let subject = Subject { variant: Some(&variant), id: id.as_ref(), floor, host_paths: self.host_paths(path) };
                    self.with_expectation(&subject, |expected| {
                        check_variant(path, name, shape(&variant, extension.as_deref()), expected, &mut report);
                    })?;
                }
                Err(error) => {
                    let cause = format!("its name is no variant's: {error}");
                    report.failures.push(kiln_abi::Failure { kind: FailureKind::UnknownVariant, file: name.clone(), cause });
                }
            }
            outcome.extend(report);
        }
        Ok(())
    }

    fn file(&self, path: &Path, outcome: &mut Outcome) -> Result<(), CheckError> {
        // A file inside a variant is what the variant's name says.
        let variant_dir = path.parent();
        let variant = variant_dir.and_then(name_of).and_then(|name| name.parse::<Variant>().ok());
        let id = variant_dir.and_then(|dir| ops_id(dir).ok()).filter(|id| {
            let extension = variant.as_ref().and_then(|variant| variant.extension_name(id));
            extension.is_some() && extension == name_of(path)
        });
        let mut report = Report::default();
        let dir = variant_dir.filter(|_| variant.is_some());
        let floor = dir.and_then(|dir| {
            let record = build_record(dir, outcome)?;
            Some(self.recorded(&name_of(dir)?, &record, outcome))
        });
        let subject = Subject {
            variant: variant.as_ref(),
            id: id.as_ref(),
            floor: floor.unwrap_or_default(),
            host_paths: dir.map(|dir| self.host_paths(dir)).unwrap_or_default(),
        };
        self.with_expectation(&subject, |expected| {
            check_file(path, &path.display().to_string(), expected, &mut report);
        })?;
        outcome.extend(report);
        Ok(())
    }

    /// What the build record says of the floor of a variant. One that was built for its host promises nothing.
    fn recorded(&self, name: &str, record: &BuildRecord, outcome: &mut Outcome) -> Recorded<'_> {
        let record = match record.read_variant(name) {
            Some(Ok(record)) if record.floor.contains_key(POLICY) => record,
            Some(Err(fault)) => {
                outcome.remarks.push(damaged_record(format!("what it says of `{name}` cannot be read: {fault}")));
                return Recorded::Nothing;
            }
            Some(Ok(_)) | None => return Recorded::Nothing,
        };
        let Some(policy) = floor_policy(&record.floor) else {
            if self.asked.is_none() {
                outcome.remarks.push(host_floor(name));
            }
            return Recorded::Host;
        };
        match self.policies.get(policy) {
            Ok(policy) => Recorded::Policy(policy),
            Err(error) => {
                outcome.remarks.push(damaged_record(format!("the floor of `{name}`: {error}")));
                Recorded::Nothing
            }
        }
    }

    /// The directories that must not be inside of the variant `dir`: the project in whose output directory it lies, and those asked for.
    fn host_paths(&self, dir: &Path) -> Vec<String> {
        let spellings = [std::path::absolute(dir), fs::canonicalize(dir)];
        let projects =
            spellings.iter().flatten().filter_map(|dir| dir.ancestors().skip(1).take(2).find(|at| at.join(BUILD_TOML).is_file()));
        let mut paths: Vec<String> = projects.map(|project| project.display().to_string()).collect();
        paths.dedup();
        paths.extend(self.options.host_paths.iter().cloned());
        paths
    }

    fn with_expectation(&self, subject: &Subject<'_>, check: impl FnOnce(&Expectation<'_>)) -> Result<(), CheckError> {
        let Subject { variant, id, floor, host_paths } = subject;
        let variant = *variant;
        let floor = match floor {
            Recorded::Nothing => Some(self.default),
            Recorded::Host => None,
            Recorded::Policy(policy) => Some(*policy),
        };
        let stable = self.options.stable_abi.map(Framework::TorchStable);
        let framework = stable.or(match variant {
            Some(Variant::Arch(arch)) => match arch.framework {
                ArchFramework::TorchCxx { .. } => Some(Framework::Torch),
                ArchFramework::TorchStable { version } => Some(Framework::TorchStable(version)),
                ArchFramework::TvmFfi { .. } => Some(Framework::TvmFfi),
            },
            _ => None,
        });
        let (cpu, compute) = match variant {
            Some(Variant::Arch(arch)) => (Some(arch.cpu), Some(arch.compute)),
            _ => (None, None),
        };
        let names = FrameworkNames::of_catalog(&self.catalog, cpu, framework, variant.and_then(framework_minor), compute)?;
        let names = names.with(&self.options.known_exports);
        let origins = Origins::default();
        let known_names = |soname: &str, name: &str| names.exports(soname, name);
        let expected = Expectation {
            profile: self.options.profile,
            floor: self.asked.or(floor),
            framework: None,
            compute: None,
            platform: None,
            id: id.map(OpsId::as_str),
            python: self.options.python,
            macos: self.options.macos,
            allowed_libraries: &self.options.allowed_libraries,
            known_names: &known_names,
            origins: &origins,
            host_paths,
            own: id.is_some(),
        };
        let expected = variant.map_or(expected, |variant| expected.for_variant(variant));
        check(&Expectation { framework, ..expected });
        Ok(())
    }
}

/// The checks of a project's files and configuration, as `kiln check-config` shows them without its notes.
fn config(dir: &Path, outcome: &mut Outcome) {
    let shown = dir.join(BUILD_TOML).display().to_string();
    match Checked::open(dir, &Lock::default()) {
        Ok(mut checked) => {
            checked.project.retain(|diagnostic| diagnostic.level != Level::Note);
            outcome.files.push(checked.project.build_toml.source.name().to_owned());
            outcome.remarks.extend(checked.project.reports().into_iter().map(Remark::from));
        }
        Err(error) => {
            outcome.remarks.push(Remark::failure(FailureKind::Unreadable.code(), shown, chain(&error), error.hint()));
        }
    }
}

/// The record beside the variant `dir`; none after a remark that it cannot be read.
fn build_record(dir: &Path, outcome: &mut Outcome) -> Option<BuildRecord> {
    // Of a variant called `.` the parent shows only when it is resolved.
    let dir = if dir.file_name().is_some() { dir.to_owned() } else { fs::canonicalize(dir).ok()? };
    match BuildRecord::read(dir.parent()?) {
        Ok(record) => Some(record),
        Err(RecordError::Malformed { reason, .. }) => {
            outcome.remarks.push(damaged_record(format!("it is no build record of this Kiln: {reason}")));
            None
        }
        Err(error) => {
            outcome.remarks.push(Remark::failure(
                FailureKind::Unreadable.code(),
                record::FILE_NAME.to_owned(),
                chain(&error),
                REBUILD.map(str::to_owned),
            ));
            None
        }
    }
}

/// What mends a record.
const REBUILD: Option<&str> = Some("build again, or remove the file: then the default floor is checked");

/// The build record is not what it should be.
fn damaged_record(cause: String) -> Remark {
    Remark::failure(DAMAGED_RECORD, record::FILE_NAME.to_owned(), cause, REBUILD.map(str::to_owned))
}

/// That the floor rules say nothing of a variant.
fn host_floor(name: &str) -> Remark {
    Remark {
        kind: RemarkKind::Finding,
        level: Level::Note,
        ..Remark::failure(
            HOST_FLOOR,
            name.to_owned(),
            "it was built for its host: the rules of the floor do not apply".to_owned(),
            Some("name a floor with `--manylinux` to hold it against one".to_owned()),
        )
    }
}

/// Why the ops id of a variant cannot be told, without which it is not known what its extension should be called.
fn without_id(name: &str, cause: String) -> Remark {
    let fix = Some("build the variant again".to_owned());
    Remark::failure(FailureKind::Unreadable.code(), format!("{name}/{METADATA}"), cause, fix)
}

fn name_of(path: &Path) -> Option<String> {
    let name = match path.file_name() {
        Some(name) => name.to_owned(),
        // `.` and the like have a name only when they are resolved.
        None => fs::canonicalize(path).ok()?.file_name()?.to_owned(),
    };
    name.into_string().ok()
}

/// The ops id that the metadata of a variant name, or why they name none.
fn ops_id(variant: &Path) -> Result<OpsId, String> {
    let text = small_file::read_text(&variant.join(METADATA)).map_err(|cause| cause.to_string())?;
    let metadata = Metadata::read(&text).map_err(|error| chain(&error))?;
    OpsId::parse(&metadata.id).map_err(|error| error.to_string())
}
