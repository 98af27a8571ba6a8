//! Where the oneAPI compiler of a variant comes from: this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use kiln_backend::discover::{Candidate, KitKind};
use kiln_backend::{
    Asked, Backend, BackendName, Build, Compute, Dependency, KernelOptions, LibraryExports, MajorMinor, ProvideError, Sources, Toolkits,
    Wanted, WrongCode, also, keep, kept, normalize,
};

use crate::backend::{XpuBackend, torch_interface};
use crate::targets::Kernels;
use crate::tla::spirv_extensions;
use crate::toolkit::{ToolkitError, XpuToolkit};
use crate::verify::verify_recorded;

/// The code of errors of toolkits.
const NO_ONE_API: fn(String) -> ProvideError = |message| ProvideError::new("no-oneapi", message);

/// The oneAPI compilers.
#[derive(Clone, Copy, Debug)]
pub struct XpuToolkits;

impl Toolkits for XpuToolkits {
    fn backend(&self) -> BackendName {
        BackendName::Xpu
    }

    fn kit(&self) -> Option<KitKind> {
        Some(KitKind::OneApi)
    }

    fn has(&self, asked: &Asked<'_>, sources: &Sources<'_>) -> Result<(), String> {
        let Some(wanted) = asked.compute.version() else { return Ok(()) };
        match find(wanted, sources) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.told()),
        }
    }

    fn provide(&self, wanted: &Wanted<'_>, sources: &Sources<'_>) -> Result<Arc<dyn Backend>, ProvideError> {
        let release = wanted.compute.version().unwrap_or(MajorMinor::new(0, 0));
        let kit = find(release, sources)?;
        let compiler = (sources.compiler_at)(XpuToolkit::icpx(&kit)?)?;
        let toolkit = XpuToolkit::of_machine(&kit, release, compiler, sources.cache_dir)?;
        if wanted.fetch {
            check_release(&kit, &toolkit, sources)?;
        }
        let kernels = kernels(wanted.build);
        let extensions = if kernels.sycl_tla { kept_extensions(&toolkit, sources)? } else { String::new() };
        Ok(Arc::new(XpuBackend::new(toolkit, kernels, extensions)))
    }

    fn verify_recorded(&self, _: Compute, _: &[String], file: &[u8]) -> Result<(), WrongCode> {
        verify_recorded(file)
    }

    /// Torch's C interface, and the runtimes of this machine's compilers.
    fn known_exports(&self, environment: &BTreeMap<String, String>) -> Vec<LibraryExports> {
        let kits = XpuToolkit::find(environment).candidates;
        kits.iter().filter_map(|kit| XpuToolkit::runtime(kit).ok()).flatten().chain([torch_interface()]).collect()
    }

    /// All that SYCL's run time offers to programs is in its namespace, or begins so: a machine without oneAPI can check extensions too.
    fn offers(&self, soname: &str, name: &str) -> Option<bool> {
        soname.starts_with("libsycl.so.").then(|| name.starts_with("__sycl_") || name.contains("4sycl3_V1"))
    }
}

impl From<ToolkitError> for ProvideError {
    fn from(error: ToolkitError) -> Self {
        NO_ONE_API(error.to_string()).with_hint(error.hint())
    }
}

/// The first complete compiler of a release.
fn find(release: MajorMinor, sources: &Sources<'_>) -> Result<Candidate, ProvideError> {
    let found = XpuToolkit::find(sources.environment);
    let with_release = || found.candidates.iter().map(|kit| (release_of(kit, sources), kit));
    let fitting = || with_release().filter(|(of, _)| *of == Some(release)).map(|(_, kit)| kit);
    if let Some(kit) = fitting().find(|kit| kit.is_complete()) {
        return Ok(kit.clone());
    }
    if let Some(kit) = fitting().next() {
        // What it lacks is the better message.
        XpuToolkit::icpx(kit)?;
    }
    let of = |(of, kit): (Option<MajorMinor>, &Candidate)| kit.described(of.map(|of| of.to_string()));
    let others: Vec<String> = with_release().map(of).collect();
    let message = format!("no `icpx` of oneAPI {release} was found; looked at {}{}", found.looked.join(", "), also(&others));
    Err(NO_ONE_API(message).with_hint(sources.remedy(&found, release)))
}

/// The release of an installation: by its directory, or else by what its compiler says.
fn release_of(kit: &Candidate, sources: &Sources<'_>) -> Option<MajorMinor> {
    match &kit.version {
        Some(version) => Some(version.major_minor()),
        None => normalize::xpu_compiler(&(sources.ask)(kit.part("icpx")?, &["--version"])?),
    }
}

/// Whether the compiler is of the release that its directory says. What it says is kept for as long as it is the same compiler.
fn check_release(kit: &Candidate, toolkit: &XpuToolkit, sources: &Sources<'_>) -> Result<(), ProvideError> {
    let name = format!("icpx-version-{}.txt", toolkit.compiler.identity);
    if kept(sources.cache_dir, &name).is_some_and(|said| XpuToolkit::check_release(kit, toolkit.release(), &said).is_ok()) {
        return Ok(());
    }
    let said = (sources.ask)(&toolkit.compiler.path, &["--version"]).unwrap_or_default();
    XpuToolkit::check_release(kit, toolkit.release(), &said)?;
    keep(sources.cache_dir, &name, &said);
    Ok(())
}

/// The extensions of SPIR-V that a compiler uses by default. What it says is kept for as long as it is the same compiler.
fn kept_extensions(toolkit: &XpuToolkit, sources: &Sources<'_>) -> Result<String, ProvideError> {
    let name = format!("spirv-extensions-{}.txt", toolkit.compiler.identity);
    if let Some(known) = kept(sources.cache_dir, &name) {
        return Ok(known);
    }
    let question = ["-fsycl", "-fsycl-targets=spir64_gen", "-###", "-x", "c++", "/dev/null", "-o", "/dev/null"];
    let program = &toolkit.compiler.path;
    let said = (sources.ask)(program, &question).unwrap_or_default();
    let extensions = spirv_extensions(&said)
        .map_err(|source| NO_ONE_API(format!("`{}` cannot compile kernels on SYCL*TLA", program.display())).with_source(source))?;
    keep(sources.cache_dir, &name, &extensions);
    Ok(extensions)
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
