//! The cuda backend of one toolkit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::{
    Architectures, Backend, BackendError, BackendName, CompileProfile, Component, CudaCapability, Family, FrameworkPart, HostCompiler,
    HostUnits, KernelOptions, Lowering, ObjectFile, SourceKind, ToolkitRecord, TorchPart, UnitSource, WrongCode, classify_source, elf,
};

use crate::capability::{self, ArchRequest, Choice, Support};
use crate::dry_run::DryRuns;
use crate::flags::UserFlags;
use crate::lower::{self, Unit};
use crate::toolkit::{CudaToolkit, Origin, unusable_letter};
use crate::verify::{self, Planned};

/// Defines that torch's own package adds to extensions of its CUDA build.
const TORCH_PACKAGE_DEFINES: [&str; 6] = ["USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_RPC", "USE_TENSORPIPE", "USE_NVSHMEM", "USE_C10D_NCCL"];
/// Warnings of nvcc's front end that torch's headers cause.
const TORCH_SUPPRESSED: [&str; 6] = [
    "cc_clobber_ignored",
    "field_without_dll_interface",
    "base_class_has_different_dll_interface",
    "dll_interface_conflict_none_assumed",
    "dll_interface_conflict_dllexport_assumed",
    "bad_friend_decl",
];
/// Torch's libraries that an extension for CUDA may need.
const TORCH_LIBRARIES: [&str; 5] = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"];

/// The cuda backend of one toolkit.
#[derive(Clone, Debug)]
pub struct CudaBackend {
    toolkit: CudaToolkit,
    support: Support,
    request: Option<ArchRequest>,
    dry_runs: Option<Arc<DryRuns>>,
}

impl CudaBackend {
    /// With `toolkit`; `request` is what `--arch` asks for.
    pub fn new(toolkit: CudaToolkit, request: Option<ArchRequest>) -> Self {
        Self { support: Support::of(toolkit.release()), toolkit, request, dry_runs: None }
    }

    /// Compiles a unit's capabilities beside each other, as `dry_runs` says that nvcc does it one after the other.
    #[must_use]
    pub fn with_dry_runs(self, dry_runs: Arc<DryRuns>) -> Self {
        Self { dry_runs: Some(dry_runs), ..self }
    }

    /// The toolkit.
    pub fn toolkit(&self) -> &CudaToolkit {
        &self.toolkit
    }

    fn choice(&self, component: &Component) -> Result<Choice, BackendError> {
        if !has_device_code(component) {
            return Ok(Choice::default());
        }
        let listed = match &component.options {
            Some(KernelOptions::Cuda { capabilities: Some(listed), .. }) => {
                Some(listed.iter().map(|capability| capability.value.clone()).collect::<Vec<_>>())
            }
            _ => None,
        };
        self.support.choose(listed.as_deref(), self.request.as_ref())
    }

    fn flags(&self, component: &Component) -> Result<UserFlags, BackendError> {
        match &component.options {
            Some(KernelOptions::Cuda { flags, .. }) => {
                let flags: Vec<String> = flags.iter().map(|flag| flag.value.clone()).collect();
                UserFlags::read(&flags, self.toolkit.release())
            }
            _ => Ok(UserFlags::default()),
        }
    }

    /// What the host compiler is given beside the framework's profile: the toolkit's headers.
    fn host_profile(&self, profile: &CompileProfile) -> CompileProfile {
        let mut profile = profile.clone();
        profile.system_include_dirs.extend(self.toolkit.include_dirs.iter().cloned());
        profile.mapped_roots.push((self.toolkit.root.clone(), "cuda".to_owned()));
        profile
    }
}

/// Whether the host's library of mathematics has what came with glibc 2.41.
fn has_new_libc(host: &HostCompiler) -> bool {
    let libm = host.runtime.libraries.iter().find(|library| library.name == "libm.so.6");
    let exports = libm.and_then(|library| elf::dynamic_file(&library.path).ok()).map(|dynamic| dynamic.exports).unwrap_or_default();
    exports.iter().any(|export| export.name == "sinpi")
}

fn is_cuda(path: &str) -> bool {
    path.ends_with(".cu")
}

/// Refuses what parts of nvcc would split or give to a shell.
fn check_names(component: &Component) -> Result<(), BackendError> {
    let sources = component.sources.iter().filter(|source| is_cuda(&source.path));
    let dirs = component.include_dirs.iter().filter(|_| has_device_code(component));
    let odd = sources.chain(dirs).find_map(|path| Some((path, unusable_letter(Path::new(&path.path))?)));
    match odd {
        Some((path, letter)) => Err(BackendError::DevicePath { compiler: "nvcc", path: path.path.clone(), letter }),
        None => Ok(()),
    }
}

fn has_device_code(component: &Component) -> bool {
    component.sources.iter().any(|source| is_cuda(&source.path))
}

impl Backend for CudaBackend {
    fn name(&self) -> BackendName {
        BackendName::Cuda
    }

    fn framework_part(&self) -> FrameworkPart {
        let mut package_device_flags = vec!["-DONNX_NAMESPACE=onnx_c2".to_owned()];
        package_device_flags.extend(TORCH_SUPPRESSED.iter().flat_map(|name| ["-Xcudafe".to_owned(), format!("--diag_suppress={name}")]));
        package_device_flags.extend(["--expt-relaxed-constexpr", "--expt-extended-lambda"].map(str::to_owned));
        let torch = TorchPart {
            defines: vec!["USE_CUDA=1".to_owned()],
            package_defines: TORCH_PACKAGE_DEFINES.map(str::to_owned).to_vec(),
            package_device_flags,
            has_streams: true,
            libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(),
            ..TorchPart::default()
        };
        FrameworkPart { define: "CUDA_KERNEL", torch, runtime: vec![self.toolkit.cudart.clone()], ..FrameworkPart::default() }
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let CudaToolkit { origin, version, identity, binding, .. } = &self.toolkit;
        let provider = match origin {
            Origin::Wheels => "wheels",
            Origin::System(_) => "system",
        };
        let (version, identity, tree) = (version.to_string(), identity.clone(), Some(binding.dir.clone()));
        Some(ToolkitRecord { name: "cuda", provider, version, identity, tree, compiles_all: None })
    }

    fn preloads(&self) -> Vec<PathBuf> {
        vec![self.toolkit.binding.file(&format!("{}/{}", self.toolkit.library_dir.path, self.toolkit.cudart.soname))]
    }

    fn takes(&self, component: &Component) -> bool {
        match &component.options {
            Some(KernelOptions::Cuda { minver: Some(minver), .. }) => self.toolkit.release() >= minver.value.major_minor(),
            _ => true,
        }
    }

    /// Refuses what the toolkit's headers refuse, before anything is compiled.
    fn check_host(&self, host: &HostCompiler) -> Result<(), BackendError> {
        let (limit, name, program) = match host.family {
            Family::Gnu => (self.toolkit.limits.gnu, "GCC", "g++"),
            Family::Clang => (self.toolkit.limits.clang, "Clang", "clang++"),
        };
        match limit {
            Some(limit) if host.version.major() > limit => Err(BackendError::HostLimit {
                message: format!(
                    "CUDA {} takes {name} up to {limit}, and the host compiler is {name} {}",
                    self.toolkit.release(),
                    host.version
                ),
                hint: format!(
                    "name an older one with `--cxx {program}-{limit}`; packages are called `{program}-{limit}` on Debian and Ubuntu"
                ),
            }),
            _ if self.toolkit.contradicts_new_libc && has_new_libc(host) => Err(BackendError::HostLimit {
                message: format!(
                    "the headers of CUDA {} do not compile with those of this machine's C library, which is glibc 2.41 or newer",
                    self.toolkit.release()
                ),
                hint: "CUDA 13 knows that library: choose it with `--cuda`; or build on a system with an older one".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn architectures(&self, component: &Component) -> Result<Architectures, BackendError> {
        let Choice { capabilities, notes } = self.choice(component)?;
        Ok(Architectures { names: capabilities.iter().map(ToString::to_string).collect(), notes })
    }

    fn merge(&self, lists: &[Architectures]) -> Vec<String> {
        let all = lists.iter().flat_map(|list| &list.names).filter_map(|name| name.parse::<CudaCapability>().ok());
        capability::union(all).iter().map(ToString::to_string).collect()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        self.check_host(lowering.host)?;
        check_names(component)?;
        lowering.graph.bind_root(self.toolkit.root.clone(), self.toolkit.binding.clone())?;
        let host_profile = self.host_profile(profile);
        let capabilities = self.choice(component)?.capabilities;
        let flags = self.flags(component)?;
        let mut units = HostUnits::new(component, &host_profile);
        let mut objects = Vec::new();
        for source in &component.sources {
            match classify_source(&source.path) {
                SourceKind::Header => {}
                SourceKind::Host(language) => {
                    objects.push(units.compile(lowering, &UnitSource::Project(source.clone()), language)?);
                }
                SourceKind::Other if is_cuda(&source.path) => {
                    let toolkit = &self.toolkit;
                    let unit = Unit { toolkit, component, profile, source, capabilities: &capabilities, flags: &flags };
                    objects.extend(lower::compile(lowering, &unit, self.dry_runs.as_deref())?);
                }
                SourceKind::Other => {
                    return Err(BackendError::UnknownSource {
                        source_path: source.path.clone(),
                        backend: "cuda",
                        hint: "cuda components take `.cu`, `.cpp`, `.cc`, `.cxx`, `.c++`, `.c` and headers".to_owned(),
                    });
                }
            }
        }
        Ok(objects)
    }

    fn device_link(
        &self,
        lowering: &mut Lowering<'_>,
        components: &[Component],
        objects: &[ObjectFile],
    ) -> Result<Vec<ObjectFile>, BackendError> {
        let mut capabilities = Vec::new();
        for component in components {
            if self.flags(component)?.relocatable {
                capabilities.extend(self.choice(component)?.capabilities);
            }
        }
        if capabilities.is_empty() {
            return Ok(Vec::new());
        }
        let of_device: Vec<ObjectFile> = objects.iter().filter(|object| is_cuda(&object.source)).cloned().collect();
        Ok(vec![lower::device_link(lowering, &self.toolkit, &capability::union(capabilities), &of_device)?])
    }

    fn verify(&self, components: &[Component], file: &[u8]) -> Result<(), WrongCode> {
        let mut planned = Vec::new();
        for component in components.iter().filter(|component| has_device_code(component)) {
            // Both were settled when the component was lowered.
            let (Ok(choice), Ok(flags)) = (self.choice(component), self.flags(component)) else { continue };
            planned.push(Planned { capabilities: choice.capabilities, open: flags.names_architectures, relocatable: flags.relocatable });
        }
        verify::verify(&planned, self.toolkit.release(), file)
    }
}

#[cfg(test)]
mod tests {
    use kiln_backend::{HostRuntime, Machine, MajorMinor, RuntimeFile};
    use kiln_object::elf::SymbolKind;
    use kiln_object::stub::{Stub, Symbol};

    use super::*;
    use crate::toolkit::HostLimits;

    /// A host whose library of mathematics has these names.
    fn host(dir: &Path, names: &[&str]) -> HostCompiler {
        let path = dir.join(format!("{}.so", names.len()));
        let symbols = names.iter().map(|name| Symbol::plain(*name, SymbolKind::Function)).collect();
        std::fs::write(&path, Stub::new("libm.so.6", Machine::X86_64, symbols).write().unwrap()).unwrap();
        let libm = RuntimeFile { name: "libm.so.6".to_owned(), path, digest: String::new() };
        HostCompiler {
            path: PathBuf::from("/usr/bin/g++"),
            args: Vec::new(),
            family: Family::Gnu,
            version: "14.2.0".parse().unwrap(),
            target: "x86_64-linux-gnu".to_owned(),
            identity: "gcc".to_owned(),
            runtime: HostRuntime { libraries: vec![libm], ..HostRuntime::default() },
            accepts_no_gnu_unique: true,
        }
    }

    #[test]
    fn a_compiler_that_the_headers_refuse_is_told_before_compiling() {
        let scratch = tempfile::tempdir().unwrap();
        let limits = HostLimits { gnu: Some(15), clang: Some(21) };
        let checked = |family: Family, version: &str| {
            let toolkit = CudaToolkit { limits, ..CudaToolkit::planned(Path::new("/cuda"), MajorMinor::new(13, 2), "0") };
            let host = HostCompiler { family, version: version.parse().unwrap(), ..host(scratch.path(), &["sin"]) };
            CudaBackend::new(toolkit, None).check_host(&host).map_err(|error| (error.to_string(), error.hint().unwrap()))
        };
        assert!(checked(Family::Gnu, "15.2.0").is_ok() && checked(Family::Clang, "21.1.0").is_ok());
        let (message, hint) = checked(Family::Gnu, "99.1.0").unwrap_err();
        assert_eq!(message, "CUDA 13.2 takes GCC up to 15, and the host compiler is GCC 99.1.0");
        assert!(hint.starts_with("name an older one with `--cxx g++-15`"), "{hint}");
        let (message, _) = checked(Family::Clang, "22.0.0").unwrap_err();
        assert_eq!(message, "CUDA 13.2 takes Clang up to 21, and the host compiler is Clang 22.0.0");
    }

    #[test]
    fn a_component_that_needs_a_newer_toolkit_is_left_out() {
        let component = |minver: Option<&str>| Component {
            options: Some(KernelOptions::Cuda {
                capabilities: None,
                flags: Vec::new(),
                minver: minver.map(|minver| kiln_backend::Spanned::new(minver.parse().unwrap(), kiln_backend::Span::new(0, 0))),
            }),
            ..Component::generated("k")
        };
        let takes = |minver: Option<&str>, minor: u64| {
            CudaBackend::new(CudaToolkit::planned(Path::new("/cuda"), MajorMinor::new(13, minor), "0"), None).takes(&component(minver))
        };
        assert!(takes(None, 0) && takes(Some("12.8"), 0) && takes(Some("13.0"), 0) && takes(Some("13.2"), 10));
        assert!(!takes(Some("13.2"), 0) && !takes(Some("13.10"), 2), "by number, not by letter");
    }

    #[test]
    fn a_c_library_that_the_headers_contradict_is_told_before_compiling() {
        let scratch = tempfile::tempdir().unwrap();
        let (old, new) = (host(scratch.path(), &["sin"]), host(scratch.path(), &["sin", "sinpi"]));
        let checked = |contradicts: bool, host: &HostCompiler| {
            let toolkit = CudaToolkit::planned(Path::new("/cuda"), MajorMinor::new(12, 9), "0");
            CudaBackend::new(CudaToolkit { contradicts_new_libc: contradicts, ..toolkit }, None).check_host(host)
        };
        assert!(checked(true, &old).is_ok() && checked(false, &new).is_ok());
        let error = checked(true, &new).unwrap_err();
        assert!(error.to_string().contains("the headers of CUDA 12.9 do not compile with those of this machine's C library"), "{error}");
        assert!(error.hint().unwrap().contains("CUDA 13 knows that library"));
    }
}
