//! Where the oneAPI compiler of a variant comes from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kiln_format::build::KernelOptions;
use kiln_format::variant::normalize;
use kiln_format::{BackendName, Build, Dependency, MajorMinor};
use kiln_graph::Interrupt;
use kiln_toolchain::discover::{Candidate, Distribution, Findings, KitKind, View};
use kiln_toolchain::host::{HostCompiler, HostError};
use kiln_toolchain::{LibraryExports, process, system, write_whole};
use kiln_xpu::{Kernels, XpuBackend, XpuToolkit, spirv_extensions, torch_interface};

use crate::build_error::BuildError;

/// Gives the compiler at a path.
pub type CompilerAt<'a> = dyn Fn(&Path) -> Result<HostCompiler, HostError> + Sync + 'a;

/// The oneAPI compilers that a build can have: those of this machine.
#[derive(Clone, Copy)]
pub struct XpuToolkits<'a> {
    /// The caller's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Where to keep what was found.
    pub cache_dir: &'a Path,
    /// Finds out what a compiler is.
    pub compiler_at: &'a CompilerAt<'a>,
    /// Variables that a compiler process needs to work and that never decide its result.
    pub ambient: &'a BTreeMap<String, PathBuf>,
}

impl XpuToolkits<'_> {
    /// Whether a compiler of `release` can be had.
    ///
    /// # Errors
    /// Why not, for people: what was looked for and where, and how to have it.
    pub fn has(&self, release: MajorMinor) -> Result<(), String> {
        match self.find(release) {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            }),
        }
    }

    /// The backend for variants of `release` of this kernel.
    ///
    /// # Errors
    /// When there is no such compiler, or it cannot be used.
    pub fn backend(&self, release: MajorMinor, build: &Build) -> Result<XpuBackend, BuildError> {
        let kit = self.find(release)?;
        let compiler = (self.compiler_at)(XpuToolkit::icpx(&kit)?)?;
        let toolkit = XpuToolkit::of_machine(&kit, release, compiler, self.cache_dir)?;
        self.check_release(&kit, &toolkit)?;
        let kernels = kernels(build);
        let extensions = if kernels.sycl_tla { self.spirv_extensions(&toolkit)? } else { String::new() };
        Ok(XpuBackend::new(toolkit, kernels, extensions))
    }

    /// The first complete compiler of a release.
    fn find(&self, release: MajorMinor) -> Result<Candidate, BuildError> {
        let found = XpuToolkit::find(self.environment);
        let with_release = || found.candidates.iter().map(|kit| (self.release(kit), kit));
        let fitting = || with_release().filter(|(of, _)| *of == Some(release)).map(|(_, kit)| kit);
        if let Some(kit) = fitting().find(|kit| kit.is_complete()) {
            return Ok(kit.clone());
        }
        if let Some(kit) = fitting().next() {
            // What it lacks is the better message.
            XpuToolkit::icpx(kit)?;
        }
        let of = |(of, kit): (Option<MajorMinor>, &Candidate)| match of {
            Some(of) => format!("`{}` ({}) is {of}", kit.root.display(), kit.origin),
            None => format!("`{}` ({}) does not say which release it is", kit.root.display(), kit.origin),
        };
        Err(BuildError::NoOneApi {
            release,
            found: with_release().map(of).collect(),
            looked: found.looked.clone(),
            hint: self.remedy(release, &found),
        })
    }

    /// How to have a compiler.
    fn remedy(&self, release: MajorMinor, found: &Findings) -> String {
        let view = View { root: Path::new("/"), environment: self.environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH };
        let install = Distribution::of(&view).install(KitKind::OneApi.need()).unwrap_or_default();
        let named: Vec<&str> = found.kind.variables().collect();
        format!("{install} {release}, or name its directory in {}", named.join(" or "))
    }

    /// The release of an installation: by its directory, or else by what its compiler says.
    fn release(&self, kit: &Candidate) -> Option<MajorMinor> {
        match &kit.version {
            Some(version) => Some(version.major_minor()),
            None => normalize::xpu_compiler(&self.ask(kit.part("icpx")?, &["--version"])?),
        }
    }

    /// Whether the compiler is what its directory says. What it says is kept for as long as it is the same compiler.
    fn check_release(&self, kit: &Candidate, toolkit: &XpuToolkit) -> Result<(), BuildError> {
        let kept = self.cache_dir.join(format!("icpx-version-{}.txt", toolkit.compiler.identity));
        if let Ok(known) = fs::read_to_string(&kept) {
            return Ok(XpuToolkit::check_release(kit, toolkit.release(), &known)?);
        }
        let said = self.ask(&toolkit.compiler.path, &["--version"]).unwrap_or_default();
        XpuToolkit::check_release(kit, toolkit.release(), &said)?;
        // What cannot be kept is asked again.
        let _ = write_whole(&kept, said.as_bytes());
        Ok(())
    }

    /// The extensions of SPIR-V that a compiler uses by default. What it says is kept for as long as it is the same compiler.
    fn spirv_extensions(&self, toolkit: &XpuToolkit) -> Result<String, BuildError> {
        let kept = self.cache_dir.join(format!("spirv-extensions-{}.txt", toolkit.compiler.identity));
        if let Ok(known) = fs::read_to_string(&kept) {
            return Ok(known);
        }
        let question = ["-fsycl", "-fsycl-targets=spir64_gen", "-###", "-x", "c++", "/dev/null", "-o", "/dev/null"];
        let said = self.ask(&toolkit.compiler.path, &question).unwrap_or_default();
        let extensions =
            spirv_extensions(&said).map_err(|source| BuildError::SpirvExtensions { program: toolkit.compiler.path.clone(), source })?;
        // What cannot be kept is asked again.
        let _ = write_whole(&kept, extensions.as_bytes());
        Ok(extensions)
    }

    /// What a program says, on both its streams.
    fn ask(&self, program: &Path, question: &[&str]) -> Option<String> {
        let mut command = Command::new(program);
        command.args(question).env_clear().env("LC_ALL", "C").envs(self.ambient);
        let answer = process::ask(&mut command, system::ANSWER_LIMIT, &Interrupt::new()).ok().filter(|answer| answer.status.success())?;
        Some([answer.stdout, answer.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect())
    }
}

/// What is known of the libraries that extensions for XPU need: of torch's C interface, and of the runtimes of this machine's compilers.
pub fn known_exports(environment: &BTreeMap<String, String>) -> Vec<LibraryExports> {
    let kits = XpuToolkit::find(environment).candidates;
    kits.iter().filter_map(|kit| XpuToolkit::runtime(kit).ok()).chain([torch_interface()]).collect()
}

/// What the kernels for XPU ask for.
fn kernels(build: &Build) -> Kernels {
    let mut kernels = Kernels::default();
    for kernel in build.kernels_for(BackendName::Xpu) {
        kernels.sycl_tla |= kernel.depends.iter().any(|dependency| dependency.value == Dependency::SyclTla);
        if let KernelOptions::Xpu { flags } = &kernel.options {
            kernels.sycl_flags.extend(flags.iter().map(|flag| flag.value.clone()));
        }
    }
    kernels
}
