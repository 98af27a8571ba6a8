//! Extensions for macOS on torch's stable ABI, planned and made.

#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::discover::apple::MetalPrograms;
use kiln_backend::{
    Backend, BackendError, Component, Family, Framework, HostCompiler, HostRuntime, Lowering, Machine, ObjectFile, OutputRef, PathRef,
    Processor, RootBinding, RootKind, RootName, TorchFramework, Version,
};
use kiln_graph::{Graph, Plan, PlanAction};
use kiln_metal::{MetalBackend, MetalSettings, MetalToolkit, ShaderGroup, is_shader};
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{CxxLevel, LibraryExports, NameSet, Provider, TorchToolchain};

/// The ops id of what is made.
pub(crate) const OPS: &str = "_k_metal_1";

pub(crate) fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// A path of the project.
pub(crate) fn path(path: &str) -> PathRef {
    PathRef { root: RootName::new("project"), path: path.to_owned() }
}

/// A component with these sources, which may use torch.
pub(crate) fn component(table: &str, sources: &[&str]) -> Component {
    Component { sources: sources.iter().map(|source| path(source)).collect(), uses_framework: true, ..Component::generated(table) }
}

pub(crate) fn settings(deployment_target: Option<&str>, language: Option<&str>) -> MetalSettings {
    MetalSettings::of(deployment_target, language).unwrap()
}

/// Apple's tools, as far as a plan goes.
fn planned_toolkit(settings: &MetalSettings) -> MetalToolkit {
    let compiler = HostCompiler {
        path: PathBuf::from("/xcode/clang++"),
        args: vec!["-arch".to_owned(), "arm64".to_owned(), format!("-mmacosx-version-min={}", settings.minimum())],
        family: Family::Clang,
        version: version("17.0.0"),
        target: "arm64-apple-darwin25.0.0".to_owned(),
        identity: "clang".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: false,
    };
    let programs = MetalPrograms { metal: PathBuf::from("/xcode/metal"), metallib: PathBuf::from("/xcode/metallib") };
    MetalToolkit {
        version: "32023.830".to_owned(),
        origin: "DEVELOPER_DIR".to_owned(),
        programs,
        identity: "metal".to_owned(),
        compiler,
        ambient: BTreeMap::new(),
    }
}

/// Torch's stable ABI with these headers; `names` are what its libraries export.
pub(crate) fn torch(dir: &Path, names: Vec<LibraryExports>) -> TorchFramework {
    let root = RootName::new("torch");
    let dirs = ["torch/include", "torch/include/torch/csrc/api/include"];
    let toolchain = TorchToolchain {
        version: version("2.13.0"),
        cuda: None,
        provider: Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() },
        stand_in: None,
        include_dirs: dirs.map(|dir| PathRef { root: root.clone(), path: dir.to_owned() }).to_vec(),
        binding: RootBinding { dir: dir.to_owned(), kind: RootKind::Mutable },
        root,
        exports: names,
        identity: "0".to_owned(),
        cxx_level: CxxLevel::Gnu20,
        terms: Vec::new(),
        addition: None,
    };
    TorchFramework { toolchain, stable_abi: Some(version("2.11")), ops_id: OPS.to_owned(), file_name: format!("{OPS}.abi3.so") }
}

/// Torch's libraries, of which nothing is known.
fn no_names() -> Vec<LibraryExports> {
    let library = |name: &str| LibraryExports { soname: format!("@rpath/{name}.dylib"), names: Arc::new(NameSet::default()) };
    ["libc10", "libtorch", "libtorch_cpu"].map(library).to_vec()
}

/// The groups of shaders of these components.
pub(crate) fn shaders(components: &[Component]) -> Vec<ShaderGroup> {
    let group = |component: &Component| ShaderGroup {
        sources: component.sources.iter().filter(|source| is_shader(&source.path)).cloned().collect(),
        include_dirs: component.include_dirs.clone(),
    };
    components.iter().map(group).collect()
}

/// What a graph is made of.
pub(crate) struct Parts<'a> {
    pub(crate) project: &'a Path,
    pub(crate) toolkit: MetalToolkit,
    pub(crate) settings: MetalSettings,
    pub(crate) framework: TorchFramework,
    pub(crate) ambient: BTreeMap<String, PathBuf>,
    /// Directories of a library that kernels depend on.
    pub(crate) headers: Vec<PathBuf>,
}

impl Parts<'_> {
    /// The graph of an extension of these components.
    pub(crate) fn graph(self, components: &[Component]) -> Result<(Graph, OutputRef), BackendError> {
        let project = RootName::new("project");
        let mut graph = Graph::new();
        graph.bind_root(project.clone(), RootBinding { dir: self.project.to_owned(), kind: RootKind::Mutable }).unwrap();
        let (root, place) = self.framework.root();
        graph.bind_root(root, place).unwrap();
        let backend = MetalBackend::new(self.toolkit, self.settings, shaders(components));
        let host = backend.host().unwrap();
        let mut lowering = Lowering {
            graph: &mut graph,
            host,
            runtime: Arc::new(RuntimeNames::new(host.runtime.clone())),
            floor: None,
            machine: Machine::AARCH64,
            project,
            launcher: None,
            processor: &Processor::described_by("/nowhere"),
            ambient: &self.ambient,
            parts: BTreeMap::new(),
            notes: Vec::new(),
        };
        let part = backend.framework_part();
        let mut objects: Vec<ObjectFile> = Vec::new();
        for component in components {
            let mut profile = self.framework.profile(&mut lowering, &part, component)?;
            for (number, dir) in self.headers.iter().enumerate() {
                let root = RootName::new(format!("headers-{number}"));
                lowering.graph.bind_root(root.clone(), RootBinding { dir: dir.clone(), kind: RootKind::Mutable })?;
                profile.include_dirs.push(PathRef { root, path: String::new() });
            }
            objects.extend(backend.lower(&mut lowering, component, &profile)?);
        }
        let extension = self.framework.link(&mut lowering, &part, &objects)?;
        graph.add_target("x".to_owned(), vec![extension.clone()])?;
        Ok((graph, extension))
    }
}

/// What would run.
#[derive(Debug)]
pub(crate) struct Made {
    plan: Plan,
}

impl Made {
    pub(crate) fn plan(components: &[Component], settings: MetalSettings) -> Self {
        Self::try_plan(components, settings).unwrap()
    }

    pub(crate) fn try_plan(components: &[Component], settings: MetalSettings) -> Result<Self, BackendError> {
        let parts = Parts {
            project: Path::new("/project"),
            toolkit: planned_toolkit(&settings),
            settings,
            framework: torch(Path::new("/store"), no_names()),
            ambient: BTreeMap::from([("PATH".to_owned(), PathBuf::from("/usr/bin"))]),
            headers: Vec::new(),
        };
        Ok(Self { plan: parts.graph(components)?.0.plan() })
    }

    /// The label of every step.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &str> {
        self.plan.steps.iter().map(|step| step.label.as_str())
    }

    /// The program and its arguments of the one step with this label that runs something.
    pub(crate) fn argv(&self, label: &str) -> Vec<&str> {
        let mut found = self.plan.steps.iter().filter(|step| step.label == label).filter_map(|step| match &step.action {
            PlanAction::Run { argv, .. } => Some(argv.iter().map(String::as_str).collect()),
            _ => None,
        });
        let argv = found.next().unwrap_or_else(|| panic!("nothing makes {label}"));
        assert!(found.next().is_none(), "several steps make {label}");
        argv
    }

    /// Labels of the steps that run a program.
    pub(crate) fn labels(&self, program: &str) -> Vec<&str> {
        let runs = |step: &&kiln_graph::PlanStep| matches!(&step.action, PlanAction::Run { argv, .. } if argv[0] == program);
        self.plan.steps.iter().filter(runs).map(|step| step.label.as_str()).collect()
    }

    /// The directory of what the step with this label makes, as arguments name it.
    pub(crate) fn output_dir(&self, label: &str) -> String {
        format!("{{{}}}", self.plan.steps.iter().find(|step| step.label == label).unwrap().id)
    }
}
