//! The rocm backend of one toolkit.

use kiln_backend::{
    Architectures, Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostUnits, KernelOptions, Lowering,
    MajorMinor, ObjectFile, OutputRef, PathRef, SourceKind, StepId, ToolkitRecord, TorchPart, UnitSource, WrongCode, classify_source,
};

use crate::arch::{self, ArchRequest, Choice, Target};
use crate::hipify::{Hipify, hip_path, is_cuda};
use crate::lower::{Unit, own_flags};
use crate::toolkit::RocmToolkit;
use crate::verify::{self, Planned};

/// Defines that torch's own package adds to extensions of its ROCm build.
const TORCH_PACKAGE_DEFINES: [&str; 5] = ["USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_RPC", "USE_TENSORPIPE", "HIPBLAS_V2"];
/// Torch's libraries that an extension for ROCm may need.
const TORCH_LIBRARIES: [&str; 5] = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_hip.so", "libtorch_hip.so"];
/// Those of torch's CUDA build that have the same names where an interface is the same for both.
pub const TORCH_STAND_INS: [(&str, &str); 2] = [("libc10_hip.so", "libc10_cuda.so"), ("libtorch_hip.so", "libtorch_cuda.so")];
/// What HIP's headers want to be told by every compiler that is not HIP's own.
const PLATFORM: &str = "__HIP_PLATFORM_AMD__=1";

/// The rocm backend of one toolkit.
#[derive(Clone, Debug)]
pub struct RocmBackend {
    toolkit: RocmToolkit,
    request: Option<ArchRequest>,
    hipify: Option<Hipify>,
    /// What the variants are for, where that is not the toolkit's own release.
    stands_in_for: Option<MajorMinor>,
}

impl RocmBackend {
    /// With `toolkit`; `request` is what `--arch` asks for.
    pub fn new(toolkit: RocmToolkit, request: Option<ArchRequest>) -> Self {
        Self { toolkit, request, hipify: None, stands_in_for: None }
    }

    /// Converts CUDA sources.
    #[must_use]
    pub fn with_hipify(self, hipify: Hipify) -> Self {
        Self { hipify: Some(hipify), ..self }
    }

    /// For variants of `release`, whatever the toolkit's own one is.
    #[must_use]
    pub fn for_release(self, release: MajorMinor) -> Self {
        Self { stands_in_for: Some(release).filter(|release| *release != self.toolkit.version.major_minor()), ..self }
    }

    /// The toolkit.
    pub fn toolkit(&self) -> &RocmToolkit {
        &self.toolkit
    }

    fn choice(&self, component: &Component) -> Result<Choice, BackendError> {
        if !has_device_code(component) {
            return Ok(Choice::default());
        }
        let listed = match &component.options {
            Some(KernelOptions::Rocm { archs: Some(listed), .. }) => {
                Some(listed.iter().map(|arch| arch.value.as_str().to_owned()).collect::<Vec<_>>())
            }
            _ => None,
        };
        arch::choose(listed.as_deref(), self.request.as_ref(), self.toolkit.clang_release)
    }

    /// The step that converts the CUDA sources of `component`; none where there is nothing to convert.
    fn converted(&self, lowering: &mut Lowering<'_>, component: &Component) -> Result<Option<StepId>, BackendError> {
        let wanted = |source: &&PathRef| !is_cuda(&source.path) || is_converted(component, &source.path);
        let sources: Vec<PathRef> = component.sources.iter().filter(wanted).cloned().collect();
        if !sources.iter().any(|source| is_cuda(&source.path)) {
            return Ok(None);
        }
        match &self.hipify {
            Some(hipify) => hipify.convert(lowering, &sources).map(Some),
            None => Err(BackendError::MissingTool {
                message: "CUDA sources are converted to HIP by torch's converter, and there is no Python to run it".to_owned(),
                hint: "install Python 3, so that `python3` is on PATH, or list `.hip` sources".to_owned(),
            }),
        }
    }

    /// What the host compiler is given beside the framework's profile: the toolkit's headers.
    fn host_profile(&self, profile: &CompileProfile) -> CompileProfile {
        let mut profile = profile.clone();
        profile.defines.push(PLATFORM.to_owned());
        if !self.toolkit.has_rocthrust {
            profile.defines.push("THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP".to_owned());
        }
        if !self.toolkit.include_dirs.is_empty() {
            profile.system_include_dirs.extend(self.toolkit.include_dirs.iter().cloned());
            profile.mapped_roots.push((self.toolkit.root.clone(), "rocm".to_owned()));
        }
        profile
    }
}

fn is_hip(path: &str) -> bool {
    path.ends_with(".hip")
}

fn has_device_code(component: &Component) -> bool {
    component.sources.iter().any(|source| is_hip(&source.path) || is_cuda(&source.path))
}

/// Whether a CUDA source is to be converted: not where the author has listed a HIP source of the name that it would get.
fn is_converted(component: &Component, path: &str) -> bool {
    is_cuda(path) && !component.sources.iter().any(|source| source.path == hip_path(path))
}

impl Backend for RocmBackend {
    fn name(&self) -> BackendName {
        BackendName::Rocm
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch = TorchPart {
            defines: vec!["USE_ROCM=1".to_owned()],
            package_defines: TORCH_PACKAGE_DEFINES.map(str::to_owned).to_vec(),
            package_device_flags: Vec::new(),
            has_streams: true,
            libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(),
            stand_ins: &TORCH_STAND_INS,
            ..TorchPart::default()
        };
        FrameworkPart { define: "ROCM_KERNEL", torch, runtime: vec![self.toolkit.runtime.clone()], ..FrameworkPart::default() }
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let (version, identity) = (self.toolkit.version.to_string(), self.toolkit.identity.clone());
        Some(ToolkitRecord { name: "rocm", provider: "system", version, identity, tree: None, compiles_all: None })
    }

    fn remarks(&self) -> Vec<String> {
        let stands_in = self.stands_in_for.map(|release| {
            format!(
                "ROCm {} stands in for {release}: its headers are compiled, and the run time is linked by the names that it has",
                self.toolkit.version
            )
        });
        stands_in.into_iter().collect()
    }

    fn architectures(&self, component: &Component) -> Result<Architectures, BackendError> {
        let Choice { targets, notes } = self.choice(component)?;
        Ok(Architectures { names: targets.iter().map(ToString::to_string).collect(), notes })
    }

    fn merge(&self, lists: &[Architectures]) -> Vec<String> {
        let all = lists.iter().flat_map(|list| &list.names).filter_map(|name| name.parse::<Target>().ok());
        arch::union(all).iter().map(ToString::to_string).collect()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        lowering.graph.bind_root(self.toolkit.root.clone(), self.toolkit.binding.clone())?;
        let host_profile = self.host_profile(profile);
        let targets = self.choice(component)?.targets;
        let converted = self.converted(lowering, component)?;
        let mut units = HostUnits::new(component, &host_profile);
        let mut objects = Vec::new();
        for source in &component.sources {
            let unit_source = UnitSource::Project(source.clone());
            match classify_source(&source.path) {
                SourceKind::Header => {}
                SourceKind::Host(language) => objects.push(units.compile(lowering, &unit_source, language)?),
                SourceKind::Other if is_hip(&source.path) => {
                    let toolkit = &self.toolkit;
                    let (label, beside) = (source.path.as_str(), None);
                    let unit = Unit { toolkit, component, profile, source: &unit_source, label, beside, targets: &targets };
                    objects.push(unit.lower(lowering)?);
                }
                SourceKind::Other if is_cuda(&source.path) => {
                    let Some(step) = converted.as_ref().filter(|_| is_converted(component, &source.path)) else { continue };
                    let unit_source = UnitSource::Generated(OutputRef { step: step.clone(), name: hip_path(&source.path) });
                    let toolkit = &self.toolkit;
                    let (label, beside) = (source.path.as_str(), Some(source));
                    let unit = Unit { toolkit, component, profile, source: &unit_source, label, beside, targets: &targets };
                    objects.push(unit.lower(lowering)?);
                }
                SourceKind::Other => {
                    return Err(BackendError::UnknownSource {
                        source_path: source.path.clone(),
                        backend: "rocm",
                        hint: "rocm components take `.hip`, `.cu`, `.cpp`, `.cc`, `.cxx`, `.c++`, `.c` and headers".to_owned(),
                    });
                }
            }
        }
        Ok(objects)
    }

    fn verify(&self, components: &[Component], file: &[u8]) -> Result<(), WrongCode> {
        let mut planned = Vec::new();
        for component in components.iter().filter(|component| has_device_code(component)) {
            // It was settled when the component was lowered.
            let Ok(choice) = self.choice(component) else { continue };
            let open = own_flags(component).iter().any(|flag| flag.starts_with("--offload-arch") || flag.starts_with("--cuda-gpu-arch"));
            planned.push(Planned { targets: choice.targets, open });
        }
        verify::verify(&planned, file)
    }
}
