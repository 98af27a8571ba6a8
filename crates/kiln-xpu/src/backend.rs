//! The xpu backend of one toolkit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kiln_backend::{
    Backend, BackendError, BackendName, CompileProfile, Component, FrameworkPart, HostCompiler, HostUnits, KernelOptions, Language,
    LibraryExports, LinkPart, Lowering, NameSet, ObjectFile, PathRef, SourceKind, ToolkitRecord, TorchPart, Weight, WrongCode,
    classify_source,
};

use crate::targets::{self, Kernels, Targets};
use crate::tla;
use crate::toolkit::{Dnnl, XpuToolkit};
use crate::verify::{self, Planned};

/// What every SYCL unit is compiled with, behind `-fPIC` and before the option that names targets. The compiler's own default is faster and
/// takes liberties with floats.
const COMPILE: [&str; 9] = [
    "-fsycl",
    "-fhonor-nans",
    "-fhonor-infinities",
    "-fno-associative-math",
    "-fno-approx-func",
    "-foffload-fp32-prec-div",
    "-foffload-fp32-prec-sqrt",
    "-fno-sycl-instrument-device-code",
    "--offload-compress",
];
/// What the link is given, before the option that names targets.
const LINK: [&str; 4] = ["-fsycl", "--offload-compress", "-foffload-fp32-prec-div", "-foffload-fp32-prec-sqrt"];
/// Torch's libraries that an extension for XPU may need.
const TORCH_LIBRARIES: [&str; 5] = ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_xpu.so", "libtorch_xpu.so"];
/// The functions for XPU of torch's C interface, which is the same in all builds: `shim_xpu.h` of torch 2.11 to 2.15.
const TORCH_FUNCTIONS: [&str; 9] = [
    "aoti_torch_create_xpu_guard",
    "aoti_torch_create_xpu_stream_guard",
    "aoti_torch_delete_xpu_guard",
    "aoti_torch_delete_xpu_stream_guard",
    "aoti_torch_get_current_sycl_queue",
    "aoti_torch_get_current_xpu_device",
    "aoti_torch_get_current_xpu_stream",
    "aoti_torch_set_current_xpu_device",
    "aoti_torch_xpu_guard_set_index",
];
/// What a SYCL unit costs beside its framework's headers: SYCL's own, read once for the host and once for the device.
const SYCL: Weight = Weight { cpu_ms: 6_000, memory_mib: 800 };

/// What extensions may take from torch's library for XPU without its build for XPU at hand: its C interface.
pub fn torch_interface() -> LibraryExports {
    let names = NameSet::exact(TORCH_FUNCTIONS.map(str::to_owned));
    LibraryExports { soname: "libtorch_xpu.so".to_owned(), names: Arc::new(names) }
}

/// The xpu backend of one toolkit, for the kernels of one project.
#[derive(Clone, Debug)]
pub struct XpuBackend {
    toolkit: XpuToolkit,
    kernels: Kernels,
    targets: Targets,
    spirv_extensions: String,
}

impl XpuBackend {
    /// With `toolkit`, for variants with these kernels. `spirv_extensions` is what [`spirv_extensions`](crate::spirv_extensions) gives; it
    /// counts only for kernels on SYCL*TLA.
    pub fn new(toolkit: XpuToolkit, kernels: Kernels, spirv_extensions: String) -> Self {
        Self { targets: Targets::of(toolkit.release(), &kernels), toolkit, kernels, spirv_extensions }
    }

    /// The toolkit.
    pub fn toolkit(&self) -> &XpuToolkit {
        &self.toolkit
    }

    /// A component as its units are compiled: with the options of SYCL before its own where it is a kernel.
    fn with_sycl(&self, component: &Component) -> Component {
        let mut component = component.clone();
        if let Some(KernelOptions::Xpu { flags }) = &component.options {
            let mut all: Vec<String> = COMPILE.map(str::to_owned).to_vec();
            all.push(self.targets.option());
            all.append(&mut component.cxx_flags);
            all.extend(flags.iter().map(|flag| flag.value.clone()));
            component.cxx_flags = all;
        }
        component
    }

    /// What units get beside the framework's profile.
    fn profile(&self, component: &Component, profile: &CompileProfile) -> CompileProfile {
        let mut profile = profile.clone();
        profile.mapped_roots.push((self.toolkit.root.clone(), "oneapi".to_owned()));
        if self.kernels.sycl_tla {
            profile.defines.extend(tla::DEFINES.map(str::to_owned));
            profile.env.extend(tla::ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        if component.options.is_some() {
            if let Some(Dnnl { include: (root, _), .. }) = &self.toolkit.dnnl {
                profile.system_include_dirs.push(PathRef { root: root.clone(), path: String::new() });
            }
            let host = profile.weight.unwrap_or(Weight { cpu_ms: 0, memory_mib: 0 });
            profile.weight = Some(Weight {
                cpu_ms: SYCL.cpu_ms.saturating_add(host.cpu_ms.saturating_mul(2)),
                memory_mib: SYCL.memory_mib.max(host.memory_mib),
            });
        }
        profile
    }

    fn link(&self) -> LinkPart {
        let mut args: Vec<String> = LINK.map(str::to_owned).to_vec();
        args.push(self.targets.option());
        args.extend(self.targets.backend_options());
        let mut env = BTreeMap::new();
        if self.kernels.sycl_tla {
            args.extend(tla::translator_options(self.targets.names(), self.toolkit.release(), &self.spirv_extensions));
            env.extend(tla::ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        let ocloc = self.toolkit.ocloc.as_deref().filter(|_| self.targets.is_ahead_of_time());
        let library = |dnnl: &Dnnl| PathRef { root: dnnl.lib.0.clone(), path: Dnnl::LIBRARY.to_owned() };
        let archives = self.toolkit.dnnl.iter().map(library).collect();
        LinkPart { archives, args, env, path: ocloc.and_then(Path::parent).map(Path::to_owned).into_iter().collect() }
    }
}

impl Backend for XpuBackend {
    fn name(&self) -> BackendName {
        BackendName::Xpu
    }

    fn framework_part(&self) -> FrameworkPart {
        let torch = TorchPart {
            defines: vec!["USE_XPU".to_owned()],
            libraries: TORCH_LIBRARIES.map(str::to_owned).to_vec(),
            known: vec![torch_interface()],
            ..TorchPart::default()
        };
        FrameworkPart { define: "XPU_KERNEL", torch, runtime: self.toolkit.runtime.clone(), link: self.link() }
    }

    fn record(&self) -> Option<ToolkitRecord> {
        let (version, identity) = (self.toolkit.version.to_string(), self.toolkit.compiler.identity.clone());
        let compiles_all = Some(format!("icpx {version}"));
        Some(ToolkitRecord { name: "oneapi", provider: "system", version, identity, tree: None, compiles_all })
    }

    fn host(&self) -> Option<&HostCompiler> {
        Some(&self.toolkit.compiler)
    }

    fn lower(&self, lowering: &mut Lowering<'_>, component: &Component, profile: &CompileProfile) -> Result<Vec<ObjectFile>, BackendError> {
        lowering.graph.bind_root(self.toolkit.root.clone(), self.toolkit.binding.clone())?;
        for (root, binding) in self.toolkit.dnnl.iter().flat_map(|dnnl| [&dnnl.include, &dnnl.lib]) {
            lowering.graph.bind_root(root.clone(), binding.clone())?;
        }
        let profile = self.profile(component, profile);
        let component = self.with_sycl(component);
        HostUnits::new(&component, &profile).compile_all(lowering, "xpu")
    }

    fn verify(&self, components: &[Component], file: &[u8]) -> Result<(), WrongCode> {
        let is_sycl = |component: &&Component| component.options.is_some() && component.sources.iter().any(|source| is_cxx(&source.path));
        let kernels: Vec<&Component> = components.iter().filter(is_sycl).collect();
        if kernels.is_empty() {
            return Ok(());
        }
        let open = kernels.iter().flat_map(|component| own_flags(component)).any(|flag| flag.starts_with(targets::OPTION));
        verify::verify(&Planned { targets: self.targets.in_files(), open }, file)
    }
}

/// Whether a source is compiled as SYCL.
fn is_cxx(path: &str) -> bool {
    matches!(classify_source(path), SourceKind::Host(Language::Cxx))
}

/// The flags of a kernel that its author wrote.
fn own_flags(component: &Component) -> impl Iterator<Item = &String> {
    let of_sycl = match &component.options {
        Some(KernelOptions::Xpu { flags }) => flags.as_slice(),
        _ => &[],
    };
    component.cxx_flags.iter().chain(of_sycl.iter().map(|flag| &flag.value))
}
