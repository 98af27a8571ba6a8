//! The Pythons that built kernels are loaded by: what each has, and which variants it can take.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use kiln_toolchain::{Catalog, TvmFfiRelease};

use crate::kiln::Variant;
use crate::setup;
use crate::workspace::Workspace;

/// A Python with the `kernels` package, pytest and NumPy, and with some of the libraries that kernels are for.
#[derive(Clone, Debug)]
pub(crate) struct TestPython {
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// The torch release, if it has torch.
    pub(crate) torch: Option<String>,
    /// Its tvm-ffi, if it has one.
    pub(crate) tvm_ffi: Option<TvmFfi>,
    /// The directory of CUDA's runtime library, if the loader should find it: it takes the machine for one with CUDA then.
    pub(crate) cuda_runtime: Option<PathBuf>,
    /// Directories of further packages.
    pub(crate) more: Vec<PathBuf>,
    /// What it is called, for people and for file names.
    pub(crate) name: String,
}

/// An unpacked tvm-ffi.
#[derive(Clone, Debug)]
pub(crate) struct TvmFfi {
    /// The release.
    pub(crate) release: String,
    /// The directory that holds the package.
    pub(crate) dir: PathBuf,
}

/// One of the tvm-ffi releases that kernels are tried with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The oldest one of the catalog: what kernels are compiled against.
    Oldest,
    /// The newest one.
    Newest,
}

impl Which {
    /// The release, with its post-release part, as packages are asked for by.
    pub(crate) fn release(self) -> anyhow::Result<String> {
        Ok(self.of_catalog(&Catalog::embedded()?)?.wheel.version().to_owned())
    }

    /// Its entry in `catalog`.
    pub(crate) fn of_catalog(self, catalog: &Catalog) -> anyhow::Result<&TvmFfiRelease> {
        let mut here = catalog.tvm_ffi_releases().iter().filter(|release| release.platform == "linux-x86_64");
        let release = match self {
            Self::Oldest => here.next(),
            Self::Newest => here.next_back(),
        };
        release.context("the catalog has no tvm-ffi")
    }

    /// The name of its environment, which does not change with the catalog.
    pub(crate) fn directory(self) -> &'static str {
        match self {
            Self::Oldest => "tvm-ffi-oldest",
            Self::Newest => "tvm-ffi-newest",
        }
    }
}

/// Which tvm-ffi each torch is tried with; the others are tried without one.
pub(crate) const BESIDE_TORCH: [(&str, Which); 3] = [("2.12.1", Which::Oldest), ("2.14.1", Which::Newest), ("2.15.0", Which::Newest)];

impl TestPython {
    /// A Python that has torch.
    pub(crate) fn with_torch(python: PathBuf, torch: &str, tvm_ffi: Option<TvmFfi>) -> Self {
        let beside = tvm_ffi.as_ref().map(|tvm_ffi| format!(", tvm-ffi {}", tvm_ffi.release)).unwrap_or_default();
        let name = format!("torch {torch}{beside}");
        Self { python, torch: Some(torch.to_owned()), tvm_ffi, cuda_runtime: None, more: Vec::new(), name }
    }

    /// A Python that has tvm-ffi and no torch.
    pub(crate) fn without_torch(python: PathBuf, tvm_ffi: TvmFfi) -> Self {
        let name = format!("tvm-ffi {}", tvm_ffi.release);
        Self { python, torch: None, tvm_ffi: Some(tvm_ffi), cuda_runtime: None, more: Vec::new(), name }
    }

    /// The same where the loader finds CUDA's runtime library.
    pub(crate) fn with_cuda(self, runtime: PathBuf) -> Self {
        let name = format!("{}, CUDA's runtime", self.name);
        Self { cuda_runtime: Some(runtime), name, ..self }
    }

    /// The same with further packages.
    pub(crate) fn with_more(self, name: &str, dir: PathBuf) -> Self {
        let name = format!("{}, {name}", self.name);
        Self { more: vec![dir], name, ..self }
    }

    /// Its name as part of file names.
    pub(crate) fn slug(&self) -> String {
        self.name.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.', "-")
    }

    /// Whether the loader should take a variant here: without torch it asks CUDA's runtime library, which is here for CUDA 13.0.
    pub(crate) fn takes(&self, variant: &Variant) -> bool {
        let is_for_the_runtime = || variant.compute.as_deref().is_some_and(|cuda| cuda.starts_with("13.0"));
        match variant.framework.as_str() {
            "torch" => self.torch.as_deref().is_some_and(|release| is_for_torch(variant, release)),
            "tvm-ffi" => match variant.backend.as_str() {
                "cuda" => self.tvm_ffi.is_some() && self.cuda_runtime.is_some() && is_for_the_runtime(),
                // The loader sees no device of SYCL or HIP without torch.
                "rocm" | "xpu" => false,
                _ => self.tvm_ffi.is_some() && self.cuda_runtime.is_none(),
            },
            _ => self.torch.is_some(),
        }
    }

    /// Whether the tests of a project can run here: they compute on the processor.
    pub(crate) fn tests(&self, project: &Path) -> bool {
        match is_for_tvm_ffi(project) {
            true => self.tvm_ffi.is_some() && self.cuda_runtime.is_none(),
            false => self.torch.is_some(),
        }
    }

    /// Keeps a process of this Python off the user's files and off the network, gives it its libraries, and keeps its compiled leftovers in
    /// one place.
    pub(crate) fn command(&self, workspace: &Workspace) -> anyhow::Result<Command> {
        let environments = setup::environments(workspace);
        let home = environments.join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = Command::new(&self.python);
        command.env("HOME", &home).env("HF_HUB_OFFLINE", "1").env_remove("LOCAL_KERNELS").env_remove("PYTHONPATH");
        command.env("TORCHINDUCTOR_CACHE_DIR", home.join(format!("inductor-{}", self.torch.as_deref().unwrap_or("none"))));
        // Bytecode is kept, for torch is large, but neither beside the tests nor in a variant.
        command.env("PYTHONPYCACHEPREFIX", environments.join("bytecode"));
        let packages: Vec<&PathBuf> = self.tvm_ffi.iter().map(|tvm_ffi| &tvm_ffi.dir).chain(&self.more).collect();
        if !packages.is_empty() {
            command.env("PYTHONPATH", std::env::join_paths(packages)?);
        }
        if let Some(dir) = &self.cuda_runtime {
            command.env("LD_LIBRARY_PATH", dir);
        }
        Ok(command)
    }
}

/// Whether a project's kernels speak tvm-ffi.
pub(crate) fn is_for_tvm_ffi(project: &Path) -> bool {
    project.join("tvm-ffi-ext").is_dir()
}

/// Whether a variant that depends on torch's release is for this one.
pub(crate) fn is_for_torch(variant: &Variant, release: &str) -> bool {
    variant.torch.as_deref().is_some_and(|torch| same_series(torch, release))
}

/// Whether two releases, or a release and its first two numbers, agree in those two.
fn same_series(one: &str, other: &str) -> bool {
    let series = |release: &str| release.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    series(one) == series(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_not_a_prefix() {
        assert!(same_series("2.13.0", "2.13.0"));
        assert!(same_series("2.13", "2.13.1"));
        assert!(!same_series("2.130.0", "2.13.0"));
        assert!(!same_series("2.1.0", "2.13.0"));
    }

    #[test]
    fn each_variant_has_its_python() {
        let tvm_ffi = || TvmFfi { release: "0.1.9".to_owned(), dir: PathBuf::from("/tvm") };
        let torch = TestPython::with_torch(PathBuf::from("/python"), "2.13.0", None);
        let both = TestPython::with_torch(PathBuf::from("/python"), "2.15.0", Some(tvm_ffi()));
        let alone = TestPython::without_torch(PathBuf::from("/python"), tvm_ffi());
        let cuda = alone.clone().with_cuda(PathBuf::from("/cuda"));
        let takes_of = |framework: &str, backend: &str, compute: Option<&str>| {
            let release = (framework == "torch").then(|| "2.13.0".to_owned());
            let (name, framework, backend) = (String::new(), framework.to_owned(), backend.to_owned());
            let variant =
                Variant { name, backend, framework, torch: release, compute: compute.map(str::to_owned), preferred: true, default: true };
            [&torch, &both, &alone, &cuda].map(|python| python.takes(&variant))
        };
        let takes = |framework: &str, backend: &str| takes_of(framework, backend, (backend == "cuda").then_some("13.0"));
        assert_eq!(takes("torch", "cpu"), [true, false, false, false]);
        assert_eq!(takes("torch-stable-abi", "cpu"), [true, true, false, false]);
        assert_eq!(takes("torch-noarch", "cuda"), [true, true, false, false]);
        assert_eq!(takes("tvm-ffi", "cpu"), [false, true, true, false]);
        assert_eq!(takes("tvm-ffi", "cuda"), [false, false, false, true]);
        assert_eq!(takes_of("tvm-ffi", "cuda", Some("13.2")), [false; 4]);
        assert_eq!(cuda.slug(), "tvm-ffi-0.1.9--CUDA-s-runtime");
    }

    #[test]
    fn the_catalog_has_both_ends() {
        assert_eq!(Which::Oldest.release().unwrap(), "0.1.9");
        assert_ne!(Which::Newest.release().unwrap(), "0.1.9");
    }
}
