//! The compiler that a variable names.

use std::path::Path;
use std::sync::Arc;

use kiln_backend::{Asked, Backend, BackendName, Compute, MajorMinor, ProvideError, SettingKey, Sources, Toolkits, Wanted, WrongCode};

use crate::backend::{AcmeBackend, contains};

/// The variable that names the compiler.
const VARIABLE: &str = "ACME_CXX";

/// The toolkits of Acme.
#[derive(Clone, Copy, Debug)]
pub struct AcmeToolkits;

/// The compiler for variants of a release.
fn compiler<'a>(release: MajorMinor, sources: &Sources<'a>) -> Result<&'a Path, ProvideError> {
    match sources.environment.get(VARIABLE) {
        Some(program) => Ok(Path::new(program)),
        None => Err(ProvideError::new("no-acme", format!("no compiler of Acme {release} was found; looked at {VARIABLE}"))
            .with_hint(format!("name one in {VARIABLE}"))),
    }
}

impl Toolkits for AcmeToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Acme
    }

    fn settings(&self) -> &'static [SettingKey] {
        &[SettingKey { name: "mood", check: |text| if text == "good" { Ok(()) } else { Err("`mood` must be `good`".to_owned()) } }]
    }

    fn unit_extensions(&self) -> &'static [&'static str] {
        &["acme"]
    }

    fn stand_in(&self) -> &'static [&'static str] {
        &["unit.acme"]
    }

    fn claims_arch(&self, entry: &str) -> bool {
        entry.starts_with("acme")
    }

    fn check_arch(&self, list: &str) -> Result<(), String> {
        if list == "acme1" { Ok(()) } else { Err(format!("`--arch` has `{list}`, which is no architecture of Acme's")) }
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let release = asked.compute.version().unwrap_or(MajorMinor::new(0, 0));
        compiler(release, sources).map(|_| ()).map_err(|error| error.to_string())
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        let release = wanted.compute.version().unwrap_or(MajorMinor::new(0, 0));
        let compiler = (sources.compiler_at)(compiler(release, sources)?)?;
        Ok(Arc::new(AcmeBackend::new(compiler, release)))
    }

    fn loads_without_device(&self) -> bool {
        true
    }

    fn verify_recorded(&self, _: Compute, archs: &[String], file: &[u8]) -> Result<(), WrongCode> {
        match archs.iter().find(|arch| !contains(file, &format!("units for {arch}"))) {
            Some(arch) => Err(WrongCode { message: format!("the extension has no code for `{arch}`"), hint: None }),
            None => Ok(()),
        }
    }
}
