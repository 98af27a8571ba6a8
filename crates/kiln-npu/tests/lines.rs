//! Command lines of `bisheng` and of the host's compiler, written by hand from the rules for NPUs. Of device code that is all that is
//! tested: no compiler for it is there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kiln_backend::{
    Backend, BackendError, Component, Framework, HostCompiler, HostRuntime, KernelOptions, Lowering, Machine, ObjectFile, Processor, Span,
    Spanned, TorchFramework, TvmFfiFramework,
};
use kiln_format::Version;
use kiln_graph::{Graph, PathRef, PlanAction, RootBinding, RootKind, RootName};
use kiln_npu::{NpuBackend, NpuToolkit};
use kiln_toolchain::host::Family;
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{CxxLevel, LibraryExports, NameSet, Provider, TorchAddition, TorchToolchain, TvmFfiToolchain};

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn library(soname: &str) -> LibraryExports {
    LibraryExports { soname: soname.to_owned(), names: Arc::new(NameSet::default()) }
}

fn immutable(dir: &str) -> RootBinding {
    RootBinding { dir: PathBuf::from(dir), kind: RootKind::Immutable { digest: "0".to_owned() } }
}

fn wheel() -> Provider {
    Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() }
}

fn host() -> HostCompiler {
    HostCompiler {
        path: PathBuf::from("/usr/bin/g++"),
        args: Vec::new(),
        family: Family::Gnu,
        version: version("12.2.0"),
        target: "x86_64-linux-gnu".to_owned(),
        identity: "g++".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: true,
    }
}

fn toolkit() -> NpuToolkit {
    let root = RootName::new("cann");
    NpuToolkit {
        version: version("8.5.0"),
        origin: "ASCEND_HOME_PATH".to_owned(),
        bisheng: PathBuf::from("/cann/bin/bisheng"),
        environment: BTreeMap::from([
            ("ASCEND_HOME_PATH".to_owned(), PathBuf::from("/cann")),
            ("LD_LIBRARY_PATH".to_owned(), PathBuf::from("/cann/lib64")),
        ]),
        include_dirs: vec![PathRef { root: root.clone(), path: "include".to_owned() }],
        launch: Some(PathRef { root: root.clone(), path: "lib64/libascendc_runtime.a".to_owned() }),
        binding: RootBinding { dir: PathBuf::from("/cann"), kind: RootKind::Mutable },
        root,
        runtime: library("libascendcl.so"),
        identity: "cann".to_owned(),
    }
}

/// torch with torch-npu beside it.
fn torch(stable_abi: Option<&str>) -> TorchFramework {
    let root = RootName::new("torch");
    let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
    let toolchain = TorchToolchain {
        version: version("2.12.1"),
        cuda: None,
        provider: wheel(),
        include_dirs: vec![include("torch/include"), include("torch/include/torch/csrc/api/include")],
        binding: immutable("/torch"),
        root: root.clone(),
        exports: ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"].map(library).to_vec(),
        terms: Vec::new(),
        identity: "0".to_owned(),
        cxx_level: CxxLevel::Gnu20,
        stand_in: None,
        addition: None,
    };
    let root = RootName::new("torch-npu");
    let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
    let addition = TorchAddition {
        name: "torch-npu".to_owned(),
        version: "2.12.0.post3".to_owned(),
        torch: version("2.12.0"),
        provider: wheel(),
        include_dirs: vec![include("torch_npu/include"), include("torch_npu/include/third_party/hccl/inc")],
        binding: immutable("/npu"),
        root: root.clone(),
        exports: vec![library("libtorch_npu.so")],
        identity: "0".to_owned(),
        terms: Vec::new(),
    };
    let stable_abi = stable_abi.map(version);
    TorchFramework {
        toolchain: toolchain.with_addition(addition),
        stable_abi,
        ops_id: "_k_cann_1".to_owned(),
        file_name: "_k_cann_1.abi3.so".to_owned(),
    }
}

fn tvm_ffi() -> TvmFfiFramework {
    let root = RootName::new("tvm-ffi");
    let toolchain = TvmFfiToolchain {
        version: version("0.1.9"),
        provider: wheel(),
        include_dirs: vec![PathRef { root: root.clone(), path: "include".to_owned() }],
        binding: immutable("/store"),
        root,
        exports: vec![library("libtvm_ffi.so")],
        identity: "0".to_owned(),
        terms: Vec::new(),
    };
    TvmFfiFramework { toolchain, ops_id: "_k_cann_1".to_owned(), file_name: "_k_cann_1.so".to_owned() }
}

/// What runs: label, arguments as they would be in `/work`, and the environment.
struct Lines {
    steps: Vec<(String, Vec<String>, Vec<String>)>,
    notes: Vec<String>,
}

/// The lines of an extension with a kernel for these architectures, whose framework has a source of its own.
fn lines(framework: &dyn Framework, archs: Option<&[&str]>, flags: &[&str]) -> Result<Lines, BackendError> {
    let project = RootName::new("project");
    let source = |path: &str| PathRef { root: project.clone(), path: path.to_owned() };
    let spanned = |text: &str| Spanned::new(text.to_owned(), Span::default());
    let options = KernelOptions::Cann {
        archs: archs.map(|archs| archs.iter().map(|arch| Spanned::new(arch.parse().unwrap(), Span::default())).collect()),
        flags: flags.iter().map(|flag| spanned(flag)).collect(),
    };
    let binding = Component { sources: vec![source("binding.cpp")], uses_framework: true, ..Component::generated("torch") };
    let kernel = Component {
        sources: vec![source("npu/k.asc"), source("npu/host.cpp"), source("npu/k.h")],
        include_dirs: vec![source("npu")],
        cxx_flags: vec!["-DHOST_ONLY".to_owned()],
        uses_framework: true,
        options: Some(options),
        ..Component::generated("kernel.k")
    };
    let backend = NpuBackend::new(toolkit(), None);
    let mut graph = Graph::new();
    graph.bind_root(project.clone(), RootBinding { dir: PathBuf::from("/project"), kind: RootKind::Mutable }).unwrap();
    for (root, place) in framework.roots() {
        graph.bind_root(root, place).unwrap();
    }
    let host = host();
    let ambient = BTreeMap::from([("PATH".to_owned(), PathBuf::from("/usr/bin"))]);
    let mut lowering = Lowering {
        graph: &mut graph,
        host: &host,
        runtime: Arc::new(RuntimeNames::new(host.runtime.clone())),
        floor: None,
        machine: Machine::X86_64,
        project,
        launcher: None,
        processor: &Processor::described_by("/nowhere"),
        ambient: &ambient,
        parts: BTreeMap::new(),
        notes: Vec::new(),
    };
    let part = backend.framework_part();
    let mut objects: Vec<ObjectFile> = Vec::new();
    let mut notes = Vec::new();
    for component in [&binding, &kernel] {
        notes.extend(backend.architectures(component)?.notes);
        let profile = framework.profile(&mut lowering, &part, component)?;
        objects.extend(backend.lower(&mut lowering, component, &profile)?);
    }
    let extension = framework.link(&mut lowering, &part, &objects)?;
    graph.add_target("x".to_owned(), vec![extension]).unwrap();
    let run = |step: kiln_graph::PlanStep| match step.action {
        PlanAction::Run { argv, env, .. } => Some((step.label, argv, env)),
        _ => None,
    };
    Ok(Lines { steps: graph.plan().steps.into_iter().filter_map(run).collect(), notes })
}

impl Lines {
    fn argv(&self, label: &str) -> Vec<&str> {
        let found = self.steps.iter().find(|(known, ..)| known == label);
        found
            .map(|(_, argv, _)| argv.iter().map(String::as_str).collect())
            .unwrap_or_else(|| panic!("nothing makes {label}: {:?}", self.labels()))
    }

    fn labels(&self) -> Vec<&str> {
        self.steps.iter().map(|(label, ..)| label.as_str()).collect()
    }
}

/// The same without what names the places of roots and of other steps' outputs.
fn plain<'a>(argv: &[&'a str]) -> Vec<&'a str> {
    argv.iter()
        .copied()
        .filter(|arg| !arg.starts_with("-ffile-prefix-map=") && !arg.starts_with("-I.kiln") && !arg.contains("${"))
        .collect()
}

#[test]
fn the_line_of_bisheng() {
    for (archs, arch) in [(None, "dav-2201"), (Some(["dav-3510"].as_slice()), "dav-3510")] {
        let lines = lines(&tvm_ffi(), archs, &["-DMARK=1", "-O2"]).unwrap();
        let argv = lines.argv(&format!("npu/k.asc ({arch})"));
        assert_eq!(argv[0], "bisheng");
        let npu_arch = format!("--npu-arch={arch}");
        assert_eq!(argv[1..8], ["-x", "asc", npu_arch.as_str(), "-O3", "-DNDEBUG", "-fPIC", "-std=c++17"]);
        // What the author wrote is behind everything of ours.
        let own = argv.iter().position(|arg| *arg == "-DMARK=1").unwrap();
        assert_eq!(argv[own..own + 3], ["-DMARK=1", "-O2", "-MD"]);
        assert!(argv[..own].contains(&"-DCANN_KERNEL") && argv[..own].contains(&"-I./npu"), "{argv:?}");
        assert!(argv.contains(&"-c") && argv.contains(&"./npu/k.asc"), "{argv:?}");
        // Flags of host sources stay with those.
        assert!(!argv.contains(&"-DHOST_ONLY"), "{argv:?}");
        assert!(plain(&argv).iter().all(|arg| !arg.contains("torch")), "{argv:?}");
        assert_eq!(lines.notes, [] as [&str; 0]);
    }
}

#[test]
fn sources_of_the_host_are_its_compilers() {
    let lines = lines(&torch(None), None, &["-DMARK=1"]).unwrap();
    for (label, own) in [("binding.cpp", false), ("npu/host.cpp", true)] {
        let argv = lines.argv(label);
        assert_eq!(argv[0], "g++");
        for define in ["-DCANN_KERNEL", "-DUSE_NPU=1", "-DPy_LIMITED_API=3", "-std=gnu++20"] {
            assert!(argv.contains(&define), "{label} lacks {define}: {argv:?}");
        }
        assert!(!argv.contains(&"-DMARK=1") && !argv.iter().any(|arg| arg.contains("npu-arch")), "{argv:?}");
        assert_eq!(argv.contains(&"-DHOST_ONLY"), own, "{argv:?}");
        // torch, torch-npu, the toolkit.
        let system = argv.windows(2).filter(|pair| pair[0] == "-isystem").map(|pair| pair[1]).collect::<Vec<_>>();
        let ends = ["/torch/include", "/torch/csrc/api/include", "/torch_npu/include", "/third_party/hccl/inc", "/include"];
        assert_eq!(system.len(), ends.len(), "{system:?}");
        assert!(system.iter().zip(ends).all(|(dir, end)| dir.ends_with(end)), "{system:?}");
    }
    let link = lines.argv("_k_cann_1.abi3.so");
    assert_eq!(link[0], "g++");
    let libraries: Vec<&str> = link.iter().filter_map(|arg| arg.rsplit('/').next().filter(|name| name.starts_with("lib"))).collect();
    let wanted = ["libascendc_runtime.a", "libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_npu.so", "libascendcl.so"];
    assert!(wanted.iter().all(|name| libraries.contains(name)), "{libraries:?}");
    assert!(!libraries.iter().any(|name| name.contains("cuda")), "{libraries:?}");
    assert!(link.contains(&"-Wl,--as-needed") && !link.iter().any(|arg| arg.contains("rpath")), "{link:?}");
}

#[test]
fn tvm_ffi_needs_no_torch() {
    let lines = lines(&tvm_ffi(), None, &[]).unwrap();
    for label in ["binding.cpp", "npu/host.cpp"] {
        let argv = lines.argv(label);
        assert!(argv.contains(&"-DCANN_KERNEL") && !argv.contains(&"-DUSE_NPU=1"), "{argv:?}");
        assert!(!argv.iter().any(|arg| arg.contains("torch")), "{argv:?}");
    }
    let link = lines.argv("_k_cann_1.so");
    let libraries: Vec<&str> = link.iter().filter_map(|arg| arg.rsplit('/').next().filter(|name| name.ends_with(".so"))).collect();
    assert_eq!(libraries.iter().filter(|name| name.starts_with("lib")).copied().collect::<Vec<_>>(), ["libtvm_ffi.so", "libascendcl.so"]);
}

#[test]
fn two_architectures_in_one_component_are_an_error() {
    let error = lines(&tvm_ffi(), Some(&["dav-2201", "dav-3510"]), &[]).err().unwrap();
    assert!(error.to_string().starts_with("`npu-archs` lists dav-2201 dav-3510: `bisheng` compiles for one architecture"), "{error}");
    assert!(error.hint().unwrap().contains("`[kernel.*]` of its own"));
}

#[test]
fn the_stable_abi_has_no_npu() {
    let error = lines(&torch(Some("2.11")), None, &[]).err().unwrap();
    assert!(error.to_string().starts_with("torch's stable ABI cannot be used here: it has no NPU"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("leave the backend out of `stable-abi`"));
}

#[test]
fn sources_of_other_vendors_are_refused() {
    let backend = NpuBackend::new(toolkit(), None);
    let project = RootName::new("project");
    let source = PathRef { root: project.clone(), path: "k.cu".to_owned() };
    let component = Component { sources: vec![source], ..Component::generated("kernel.k") };
    let (mut graph, host, ambient) = (Graph::new(), host(), BTreeMap::new());
    let mut lowering = Lowering {
        graph: &mut graph,
        host: &host,
        runtime: Arc::new(RuntimeNames::new(host.runtime.clone())),
        floor: None,
        machine: Machine::X86_64,
        project,
        launcher: None,
        processor: &Processor::described_by("/nowhere"),
        ambient: &ambient,
        parts: BTreeMap::new(),
        notes: Vec::new(),
    };
    let error = backend.lower(&mut lowering, &component, &Default::default()).unwrap_err();
    assert_eq!(error.to_string(), "`k.cu` is neither a source nor a header that cann compiles");
}
