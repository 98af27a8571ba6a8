//! What cargo tells a build script, and what is read of the rest of its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};

use kiln_graph::{ActionCache, DEFAULT_CACHE_LIMIT, JobServer, size_of_text};
use kiln_object::elf::Machine;
use kiln_toolchain::host::{Choice, HostSearch};

use super::error::BuildError;

/// The environment of a build script.
///
/// | variables | what for |
/// |---|---|
/// | `CARGO_MANIFEST_DIR`, `OUT_DIR`, `TARGET`, `HOST` | the package, where results go, and what they are for; cargo sets all of them |
/// | `NUM_JOBS`, `CARGO_MAKEFLAGS` | how much runs at once |
/// | `CXX_<target>`, `TARGET_CXX` or `HOST_CXX`, `CXX`, and the same of `CC` | the host compiler, in this order; else the first on `PATH` |
/// | `PATH`, `HOME` | what compilers need to run, and where they are looked for |
/// | `KILN_CACHE_DIR`, `XDG_CACHE_HOME`, `HOME`, `KILN_CACHE_SIZE`, `KILN_SHARED_CACHE_DIRS` | the caches that `kiln` itself uses too |
/// | those of the vendor's toolkit (`CUDA_HOME`, ...) | where a toolkit of this machine is |
/// | those that name a package index, a proxy or certificates; `CARGO_NET_OFFLINE` | only where a toolkit is fetched: as `kiln` reads them |
///
/// Nothing else is read, and none of it but `PATH` and `HOME` reaches a compiler.
#[derive(Clone, Debug)]
pub struct Cargo {
    variables: BTreeMap<String, String>,
    package: PathBuf,
    out_dir: PathBuf,
    target: String,
    host: String,
    machine: Machine,
}

impl Cargo {
    /// Takes the environment of a build script: `std::env::vars_os()`.
    ///
    /// # Errors
    /// [`BuildError::NoVariable`] when something is missing that cargo sets, [`BuildError::Target`] for a target that nothing is
    /// compiled for.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, BuildError> {
        let variables: BTreeMap<String, String> =
            variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        let of_cargo = |name: &'static str| {
            let value = variables.get(name).filter(|value| !value.is_empty());
            value.cloned().ok_or(BuildError::NoVariable { name })
        };
        let directory = |name: &'static str| of_cargo(name).map(|path| settled(Path::new(&path)));
        let target = of_cargo("TARGET")?;
        let machine = machine_of(&target).ok_or_else(|| BuildError::Target { target: target.clone() })?;
        Ok(Self {
            package: directory("CARGO_MANIFEST_DIR")?,
            out_dir: directory("OUT_DIR")?,
            host: of_cargo("HOST")?,
            target,
            machine,
            variables,
        })
    }

    /// The package that the build script belongs to.
    pub fn package(&self) -> &Path {
        &self.package
    }

    /// The file or directory that `path` names, as seen from the package.
    pub fn in_package(&self, path: &Path) -> PathBuf {
        self.package.join(path)
    }

    /// Where a build script may write.
    pub fn out_dir(&self) -> &Path {
        &self.out_dir
    }

    /// What is compiled for, such as `x86_64-unknown-linux-gnu`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The processor of [`Cargo::target`].
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Whether what is compiled is for another system than the one that compiles.
    pub fn is_cross(&self) -> bool {
        self.host != self.target
    }

    /// The environment.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// A variable that is set to something.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Where things are kept that builds share: the cache directory of `kiln`, or below `OUT_DIR` for a user who has none that can be made.
    pub fn cache_dir(&self) -> PathBuf {
        let absolute = |name: &str| self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let of_user = self
            .variable("KILN_CACHE_DIR")
            .map(|dir| self.package.join(dir))
            .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("kiln")))
            .or_else(|| Some(absolute("HOME")?.join(".cache/kiln")));
        of_user.filter(|dir| std::fs::create_dir_all(dir).is_ok()).unwrap_or_else(|| self.out_dir.join("kiln-cache"))
    }

    /// Cache directories that are read and never written to, such as one that an administrator provides.
    pub fn shared_caches(&self) -> Vec<PathBuf> {
        let dirs = self.variable("KILN_SHARED_CACHE_DIRS").unwrap_or_default();
        std::env::split_paths(dirs).filter(|dir| !dir.as_os_str().is_empty()).map(|dir| self.package.join(dir)).collect()
    }

    /// The user's action cache.
    pub(super) fn actions(&self, cache_dir: &Path) -> Result<ActionCache, BuildError> {
        const VARIABLE: &str = "KILN_CACHE_SIZE";
        let limit = match self.variable(VARIABLE) {
            None => DEFAULT_CACHE_LIMIT,
            Some(text) => size_of_text(text).ok_or_else(|| BuildError::Variable { name: VARIABLE, value: text.to_owned() })?,
        };
        Ok(ActionCache::new(cache_dir.join("actions-v1"), limit))
    }

    /// Directories that a compiler process needs to work and that never decide its result.
    pub(super) fn ambient(&self) -> BTreeMap<String, PathBuf> {
        ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.to_owned(), PathBuf::from(self.variable(name)?)))).collect()
    }

    /// Where and for what a host compiler is looked for.
    pub(super) fn host_search(&self) -> HostSearch {
        let ambient = self.variable("HOME").map(|home| ("HOME".into(), home.into()));
        HostSearch {
            cxx: self.compiler("CXX"),
            cc: self.compiler("CC"),
            machine: Some(self.machine),
            path: self.variable("PATH").unwrap_or_default().into(),
            ambient: ambient.into_iter().collect(),
            scratch: Some(self.out_dir.clone()),
            ..HostSearch::default()
        }
    }

    /// The variables that choose a host compiler, the first one that is set counts.
    pub(super) fn compiler_variables(&self, tool: &str) -> [String; 4] {
        let side = if self.is_cross() { "TARGET" } else { "HOST" };
        let underscored = self.target.replace(['-', '.'], "_");
        [format!("{tool}_{}", self.target), format!("{tool}_{underscored}"), format!("{side}_{tool}"), tool.to_owned()]
    }

    fn compiler(&self, tool: &str) -> Option<Choice> {
        self.compiler_variables(tool).into_iter().find_map(|name| Some(Choice { value: self.variable(&name)?.to_owned(), origin: name }))
    }

    pub(super) fn jobs(&self) -> NonZeroUsize {
        self.variable("NUM_JOBS").and_then(|jobs| jobs.parse().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    /// The jobs that cargo shares between all that it runs; none where it has none to share.
    pub(super) fn job_server(&self) -> Option<JobServer> {
        JobServer::of_make(self.variable("CARGO_MAKEFLAGS")?).ok().flatten()
    }
}

/// A directory by one name. Cargo gives a target directory as the user wrote it, `..` included.
fn settled(dir: &Path) -> PathBuf {
    let plain: PathBuf = dir.components().collect();
    if plain.components().any(|component| component == Component::ParentDir) { plain.canonicalize().unwrap_or(plain) } else { plain }
}

/// The processor of a target of Rust's that code is compiled for.
fn machine_of(target: &str) -> Option<Machine> {
    match target {
        "x86_64-unknown-linux-gnu" => Some(Machine::X86_64),
        "aarch64-unknown-linux-gnu" => Some(Machine::AARCH64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(more: &[(&str, &str)]) -> Result<Cargo, BuildError> {
        let fixed = [
            ("CARGO_MANIFEST_DIR", "/p/"),
            ("OUT_DIR", "/p/target/out"),
            ("TARGET", "x86_64-unknown-linux-gnu"),
            ("HOST", "x86_64-unknown-linux-gnu"),
        ];
        Cargo::new(fixed.iter().chain(more).map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn what_cargo_always_says_must_be_there() {
        assert_eq!(cargo(&[]).unwrap().package(), Path::new("/p"));
        let error = cargo(&[("OUT_DIR", "")]).unwrap_err();
        assert_eq!(error.to_string(), "`OUT_DIR` is not set, or is no text");
        assert!(error.hint().unwrap().contains("the whole environment"));
        let error = cargo(&[("TARGET", "wasm32-unknown-unknown")]).unwrap_err();
        assert_eq!(error.to_string(), "nothing can be compiled for `wasm32-unknown-unknown`");
        assert!(cargo(&[("TARGET", "x86_64-unknown-linux-musl")]).is_err(), "its C++ library is another one");
    }

    #[test]
    fn the_nearest_name_of_a_compiler_counts() {
        let chosen =
            |more: &[(&str, &str)]| cargo(more).unwrap().compiler("CXX").map(|choice| format!("{} by {}", choice.value, choice.origin));
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[("CXX", "a"), ("HOST_CXX", "b"), ("TARGET_CXX", "c")]).unwrap(), "b by HOST_CXX");
        let cross = ("TARGET", "aarch64-unknown-linux-gnu");
        assert_eq!(chosen(&[cross, ("CXX", "a"), ("HOST_CXX", "b"), ("TARGET_CXX", "c")]).unwrap(), "c by TARGET_CXX");
        let named = ("CXX_aarch64_unknown_linux_gnu", "d");
        assert_eq!(chosen(&[cross, ("TARGET_CXX", "c"), named]).unwrap(), "d by CXX_aarch64_unknown_linux_gnu");
    }

    #[test]
    fn the_cache_is_that_of_kiln_or_lies_in_the_output_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let (out, home) = (scratch.path().join("out").display().to_string(), scratch.path().join("home").display().to_string());
        let of = |more: &[(&str, &str)]| {
            let all: Vec<(&str, &str)> = [("OUT_DIR", out.as_str())].into_iter().chain(more.iter().copied()).collect();
            cargo(&all).unwrap().cache_dir().strip_prefix(scratch.path()).unwrap().display().to_string()
        };
        assert_eq!(of(&[]), "out/kiln-cache");
        assert_eq!(of(&[("HOME", &home)]), "home/.cache/kiln");
        assert_eq!(of(&[("HOME", "/proc/nobody")]), "out/kiln-cache");
        let named = scratch.path().join("named").display().to_string();
        assert_eq!(of(&[("HOME", &home), ("KILN_CACHE_DIR", &named)]), "named");
    }
}
