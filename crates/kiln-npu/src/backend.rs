//! The cann backend of one toolkit.

use kiln_backend::{
    Architectures, Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostUnits, KernelOptions, LinkPart,
    Lowering, ObjectFile, SourceKind, ToolkitRecord, TorchPart, UnitSource, classify_source,
};

use crate::arch::{self, ArchRequest, Choice};
use crate::lower::Unit;
use crate::toolkit::NpuToolkit;

/// Defines that torch's own package adds to extensions of its build for the processor, which is the one that torch-npu extends.
const TORCH_PACKAGE_DEFINES: [&str; 4] = ["USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_RPC", "USE_TENSORPIPE"];
/// Torch's libraries, and that of torch-npu, that an extension for NPUs may need.
const TORCH_LIBRARIES: [&str; 4] = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_npu.so"];
/// Why there is no extension for NPUs under torch's stable ABI.
pub(crate) const NO_STABLE_ABI: &str = "it has no NPU: neither streams nor devices of torch-npu can be reached through it";

/// The cann backend of one toolkit.
#[derive(Clone, Debug)]
pub struct NpuBackend {
    toolkit: NpuToolkit,
    request: Option<ArchRequest>,
}

impl NpuBackend {
    /// With `toolkit`; `request` is what `--arch` asks for.
    pub fn new(toolkit: NpuToolkit, request: Option<ArchRequest>) -> Self {
        Self { toolkit, request }
    }

    /// The toolkit.
    pub fn toolkit(&self) -> &NpuToolkit {
        &self.toolkit
    }

    fn choice(&self, component: &Component) -> Result<Choice, BackendError> {
        let listed = match &component.options {
            Some(KernelOptions::Cann { archs: Some(listed), .. }) => {
                Some(listed.iter().map(|arch| arch.value.as_str().to_owned()).collect::<Vec<_>>())
            }
            _ => None,
        };
        arch::choose(listed.as_deref(), self.request.as_ref())
    }

    /// What units get beside the framework's profile: the toolkit's headers.
    fn profile(&self, profile: &CompileProfile) -> CompileProfile {
        let mut profile = profile.clone();
        profile.system_include_dirs.extend(self.toolkit.include_dirs.iter().cloned());
        profile.mapped_roots.push((self.toolkit.root.clone(), "cann".to_owned()));
        profile
    }
}

fn is_asc(path: &str) -> bool {
    path.ends_with(".asc")
}

fn has_device_code(component: &Component) -> bool {
    component.sources.iter().any(|source| is_asc(&source.path))
}

impl Backend for NpuBackend {
    fn name(&self) -> BackendName {
        BackendName::Cann
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch = TorchPart {
            defines: vec!["USE_NPU=1".to_owned()],
            package_defines: TORCH_PACKAGE_DEFINES.map(str::to_owned).to_vec(),
            libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(),
            no_stable_abi: Some(NO_STABLE_ABI),
            ..TorchPart::default()
        };
        let link = LinkPart { archives: self.toolkit.launch.iter().cloned().collect(), ..LinkPart::default() };
        FrameworkPart { define: "CANN_KERNEL", torch, runtime: vec![self.toolkit.runtime.clone()], link }
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let (version, identity) = (self.toolkit.version.to_string(), self.toolkit.identity.clone());
        Some(ToolkitRecord { name: "cann", provider: "system", version, identity, tree: None, compiles_all: None })
    }

    /// No names: loaders would not know them. What there is to say of the choice.
    fn architectures(&self, component: &Component) -> Result<Architectures, BackendError> {
        if !has_device_code(component) {
            return Ok(Architectures::default());
        }
        Ok(Architectures { names: Vec::new(), notes: self.choice(component)?.notes })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        lowering.graph.bind_root(self.toolkit.root.clone(), self.toolkit.binding.clone())?;
        let profile = self.profile(profile);
        let mut units = HostUnits::new(component, &profile);
        let mut objects = Vec::new();
        for source in &component.sources {
            match classify_source(&source.path) {
                SourceKind::Header => {}
                SourceKind::Host(language) => objects.push(units.compile(lowering, &UnitSource::Project(source.clone()), language)?),
                SourceKind::Other if is_asc(&source.path) => {
                    let Choice { arch, .. } = self.choice(component)?;
                    let unit = Unit { toolkit: &self.toolkit, component, profile: &profile, source, arch: &arch };
                    objects.push(unit.lower(lowering)?);
                }
                SourceKind::Other => {
                    return Err(BackendError::UnknownSource {
                        source_path: source.path.clone(),
                        backend: "cann",
                        hint: "cann components take `.asc`, `.cpp`, `.cc`, `.cxx`, `.c++`, `.c` and headers".to_owned(),
                    });
                }
            }
        }
        Ok(objects)
    }
}
