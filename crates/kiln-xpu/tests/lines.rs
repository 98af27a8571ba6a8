//! Command lines of `icpx`, written by hand from the rules for SYCL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kiln_backend::{
    Backend, Component, Framework, HostCompiler, HostRuntime, KernelOptions, Lowering, Machine, ObjectFile, Processor, Span, Spanned,
    TvmFfiFramework,
};
use kiln_format::{MajorMinor, Version};
use kiln_graph::{Graph, PathRef, PlanAction, RootBinding, RootKind, RootName};
use kiln_toolchain::host::Family;
use kiln_toolchain::stubs::RuntimeNames;
use kiln_toolchain::{LibraryExports, NameSet, Provider, TvmFfiToolchain};
use kiln_xpu::{Kernels, XpuBackend, XpuToolkit};

/// What the compiler says that it uses by default.
const DEFAULT_EXTENSIONS: &str = "+SPV_EXT_one,+SPV_INTEL_two";

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn toolkit(release: &str) -> XpuToolkit {
    let compiler = HostCompiler {
        path: PathBuf::from("/oneapi/bin/icpx"),
        args: Vec::new(),
        family: Family::Clang,
        version: version("21.0.0"),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        identity: "icpx".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: false,
    };
    XpuToolkit {
        version: version(release),
        origin: "ONEAPI_ROOT".to_owned(),
        compiler,
        root: RootName::new("oneapi"),
        binding: RootBinding { dir: PathBuf::from("/oneapi"), kind: RootKind::Mutable },
        runtime: vec![LibraryExports { soname: "libsycl.so.8".to_owned(), names: Arc::new(NameSet::default()) }],
        ocloc: Some(PathBuf::from("/ocloc/bin/ocloc")),
        dnnl: None,
    }
}

fn tvm_ffi() -> TvmFfiFramework {
    let root = RootName::new("tvm-ffi");
    let toolchain = TvmFfiToolchain {
        version: version("0.1.9"),
        provider: Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() },
        include_dirs: vec![PathRef { root: root.clone(), path: "include".to_owned() }],
        binding: RootBinding { dir: PathBuf::from("/store"), kind: RootKind::Immutable { digest: "0".to_owned() } },
        root,
        exports: vec![LibraryExports { soname: "libtvm_ffi.so".to_owned(), names: Arc::new(NameSet::default()) }],
        identity: "0".to_owned(),
        terms: Vec::new(),
    };
    TvmFfiFramework { toolchain, ops_id: "_k_xpu_1".to_owned(), file_name: "_k_xpu_1.so".to_owned() }
}

/// What runs: label, arguments, and the environment that counts.
struct Lines {
    steps: Vec<(String, Vec<String>, Vec<String>)>,
}

impl Lines {
    /// The lines of a kernel with these flags, whose framework has a source of its own.
    fn of(release: &str, sycl_tla: bool, sycl_flags: &[&str]) -> Self {
        let project = RootName::new("project");
        let source = |path: &str| vec![PathRef { root: project.clone(), path: path.to_owned() }];
        let spanned = |flag: &&str| Spanned::new((*flag).to_owned(), Span::default());
        let options = KernelOptions::Xpu { flags: sycl_flags.iter().map(spanned).collect() };
        let binding = Component { sources: source("binding.cpp"), uses_framework: true, ..Component::generated("tvm-ffi") };
        let kernel = Component {
            sources: source("k.cpp"),
            cxx_flags: vec!["-DMINE".to_owned()],
            uses_framework: true,
            options: Some(options),
            ..Component::generated("kernel.k")
        };
        let kernels = Kernels { sycl_tla, sycl_flags: sycl_flags.iter().map(|flag| (*flag).to_owned()).collect() };
        let backend = XpuBackend::new(toolkit(release), kernels, DEFAULT_EXTENSIONS.to_owned());
        let mut graph = Graph::new();
        graph.bind_root(project.clone(), RootBinding { dir: PathBuf::from("/project"), kind: RootKind::Mutable }).unwrap();
        let framework = tvm_ffi();
        let (root, place) = framework.root();
        graph.bind_root(root, place).unwrap();
        let host = backend.host().unwrap();
        let ambient = BTreeMap::from([("PATH".to_owned(), PathBuf::from("/usr/bin"))]);
        let mut lowering = Lowering {
            graph: &mut graph,
            host,
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
        for component in [&binding, &kernel] {
            let profile = framework.profile(&mut lowering, &part, component).unwrap();
            objects.extend(backend.lower(&mut lowering, component, &profile).unwrap());
        }
        let extension = framework.link(&mut lowering, &part, &objects).unwrap();
        graph.add_target("x".to_owned(), vec![extension]).unwrap();
        let run = |step: kiln_graph::PlanStep| match step.action {
            PlanAction::Run { argv, env, .. } => Some((step.label, argv, env)),
            _ => None,
        };
        Self { steps: graph.plan().steps.into_iter().filter_map(run).collect() }
    }

    fn argv(&self, label: &str) -> Vec<&str> {
        let found = self.steps.iter().find(|(known, ..)| known == label);
        found.map(|(_, argv, _)| argv.iter().map(String::as_str).collect()).unwrap_or_else(|| panic!("nothing makes {label}"))
    }

    fn environment(&self, label: &str) -> &[String] {
        self.steps.iter().find(|(known, ..)| known == label).map(|(_, _, env)| env.as_slice()).unwrap_or_default()
    }

    /// The arguments from `-fsycl` to the author's last flag.
    fn compile(&self) -> Vec<&str> {
        let argv = self.argv("k.cpp");
        let from = argv.iter().position(|arg| *arg == "-fsycl").expect("it is no SYCL unit");
        let to = argv.iter().position(|arg| *arg == "-MD").unwrap();
        argv[from..to].to_vec()
    }

    /// The link's arguments behind the libraries.
    fn link(&self) -> Vec<&str> {
        let argv = self.argv("_k_xpu_1.so");
        let from = argv.iter().position(|arg| *arg == "-Wl,-z,noexecstack").unwrap();
        argv[from..].iter().copied().filter(|arg| !arg.starts_with("-Wl,-soname=")).collect()
    }
}

const TLA_ENVIRONMENT: [&str; 4] = [
    "IGC_ExtraOCLOptions=-cl-intel-256-GRF-per-thread",
    "IGC_VISAOptions=-perfmodel",
    "IGC_VectorAliasBBThreshold=10000",
    "SYCL_PROGRAM_COMPILE_OPTIONS=-ze-opt-large-register-file",
];

#[test]
fn kernels_without_a_library_of_headers() {
    for release in ["2025.3", "2026.0"] {
        let lines = Lines::of(release, false, &["-O2", "-DMARK=1"]);
        assert_eq!(
            lines.compile(),
            [
                "-fsycl",
                "-fhonor-nans",
                "-fhonor-infinities",
                "-fno-associative-math",
                "-fno-approx-func",
                "-foffload-fp32-prec-div",
                "-foffload-fp32-prec-sqrt",
                "-fno-sycl-instrument-device-code",
                "--offload-compress",
                "-fsycl-targets=spir64_gen,spir64",
                "-DMINE",
                "-O2",
                "-DMARK=1",
            ]
        );
        assert_eq!(
            lines.link(),
            [
                "-Wl,-z,noexecstack",
                "-fsycl",
                "--offload-compress",
                "-foffload-fp32-prec-div",
                "-foffload-fp32-prec-sqrt",
                "-fsycl-targets=spir64_gen,spir64",
                "-Xsycl-target-backend=spir64_gen",
                "-device pvc,xe-lpg,ats-m150 -options '-cl-intel-enable-auto-large-GRF-mode -cl-poison-unsupported-fp64-kernels \
                 -cl-intel-greater-than-4GB-buffer-required'",
            ]
        );
        // The library that the runtime is, and nothing that only SYCL*TLA has.
        assert!(lines.argv("_k_xpu_1.so").iter().any(|arg| arg.ends_with("/libsycl.so.8")));
        for label in ["k.cpp", "_k_xpu_1.so"] {
            assert!(!lines.environment(label).iter().any(|variable| TLA_ENVIRONMENT.contains(&variable.as_str())));
        }
        assert!(!lines.argv("k.cpp").iter().any(|arg| arg.contains("CUTLASS")));
    }
}

#[test]
fn everything_is_compiled_and_linked_by_one_compiler_and_only_kernels_are_sycl() {
    let lines = Lines::of("2025.3", false, &[]);
    for (label, argv, _) in &lines.steps {
        assert_eq!(argv[0], "icpx", "{label}");
    }
    let binding = lines.argv("binding.cpp");
    assert!(!binding.iter().any(|arg| arg.contains("sycl") || arg.contains("offload")), "{binding:?}");
    for defined in ["-DXPU_KERNEL", "-fPIC"] {
        assert!(binding.contains(&defined) && lines.argv("k.cpp").contains(&defined), "{defined}");
    }
    // Options of GCC that Clang does not have.
    for argv in [binding, lines.argv("k.cpp")] {
        assert!(!argv.iter().any(|arg| arg.starts_with("-frandom-seed") || *arg == "-fno-gnu-unique"), "{argv:?}");
    }
}

#[test]
fn the_devices_called_cri_count_with_sycl_tla_alone() {
    let flag = ["-D__SYCL_TARGET_INTEL_GPU_CRI__"];
    assert_eq!(Lines::of("2026.0", false, &flag).link(), Lines::of("2026.0", false, &[]).link());
    let lines = Lines::of("2026.0", true, &flag);
    assert!(lines.compile().contains(&"-fsycl-targets=intel_gpu_pvc,intel_gpu_bmg_g21,spir64_gen,spir64"));
    let options = "-options '-cl-intel-enable-auto-large-GRF-mode -cl-poison-unsupported-fp64-kernels \
                   -cl-intel-greater-than-4GB-buffer-required'";
    let of_gen = format!("-device cri {options}");
    let extensions = "-spirv-ext=+SPV_EXT_one,+SPV_INTEL_two,+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io,\
                      +SPV_INTEL_subgroup_matrix_multiply_accumulate";
    assert_eq!(
        lines.link(),
        [
            "-Wl,-z,noexecstack",
            "-fsycl",
            "--offload-compress",
            "-foffload-fp32-prec-div",
            "-foffload-fp32-prec-sqrt",
            "-fsycl-targets=intel_gpu_pvc,intel_gpu_bmg_g21,spir64_gen,spir64",
            "-Xsycl-target-backend=spir64_gen",
            of_gen.as_str(),
            "-Xsycl-target-backend=intel_gpu_pvc",
            options,
            "-Xsycl-target-backend=intel_gpu_bmg_g21",
            options,
            "-Xspirv-translator=intel_gpu_pvc",
            extensions,
            "-Xspirv-translator=intel_gpu_bmg_g21",
            extensions,
            "-Xspirv-translator=spir64_gen",
            extensions,
            "-Xspirv-translator=spir64",
            extensions,
        ]
    );
}

#[test]
fn sycl_tla_with_the_compiler_of_2025_3_is_left_to_the_driver() {
    let lines = Lines::of("2025.3", true, &["-D__SYCL_TARGET_INTEL_GPU_CRI__"]);
    assert!(lines.compile().contains(&"-fsycl-targets=spir64"));
    assert_eq!(
        lines.link(),
        [
            "-Wl,-z,noexecstack",
            "-fsycl",
            "--offload-compress",
            "-foffload-fp32-prec-div",
            "-foffload-fp32-prec-sqrt",
            "-fsycl-targets=spir64",
            "-Xspirv-translator=spir64",
            "-spirv-ext=+SPV_EXT_one,+SPV_INTEL_two,+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io,\
             +SPV_INTEL_subgroup_matrix_multiply_accumulate",
        ]
    );
}

#[test]
fn sycl_tla_with_the_compiler_of_2026_0() {
    let lines = Lines::of("2026.0", true, &[]);
    assert!(lines.compile().contains(&"-fsycl-targets=spir64_gen,spir64"));
    let extensions = "-spirv-ext=+SPV_EXT_one,+SPV_INTEL_two,+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io,\
                      +SPV_INTEL_subgroup_matrix_multiply_accumulate";
    assert_eq!(
        lines.link(),
        [
            "-Wl,-z,noexecstack",
            "-fsycl",
            "--offload-compress",
            "-foffload-fp32-prec-div",
            "-foffload-fp32-prec-sqrt",
            "-fsycl-targets=spir64_gen,spir64",
            "-Xsycl-target-backend=spir64_gen",
            "-device pvc,bmg-g21,cri -options '-cl-intel-enable-auto-large-GRF-mode -cl-poison-unsupported-fp64-kernels \
             -cl-intel-greater-than-4GB-buffer-required'",
            "-Xspirv-translator=spir64_gen",
            extensions,
            "-Xspirv-translator=spir64",
            extensions,
        ]
    );
    // Every unit may include the library, and every process is told what its compilers are to do.
    for label in ["binding.cpp", "k.cpp"] {
        let argv = lines.argv(label);
        for defined in ["-DCUTLASS_ENABLE_SYCL=1", "-DDPCPP_SYCL_TARGET=intel_gpu_bmg_g21,intel_gpu_pvc", "-DSYCL_INTEL_TARGET=1"] {
            assert!(argv.contains(&defined), "{label} lacks {defined}");
        }
    }
    for label in ["binding.cpp", "k.cpp", "_k_xpu_1.so"] {
        let environment = lines.environment(label);
        for variable in TLA_ENVIRONMENT {
            assert!(environment.iter().any(|known| known == variable), "{label} lacks {variable}");
        }
    }
}

#[test]
fn releases_are_told_apart_by_their_numbers() {
    assert_eq!(toolkit("2025.3").release(), MajorMinor::new(2025, 3));
}

/// What kernel-builder 0.16.2 writes into the CMake files of a project, by its package in the crates registry: the newest one there is.
/// `cargo xtask test --full` makes such files and asks CMake for the command lines.
mod peer {
    pub(super) const COMPILE: &str = "-fPIC -fsycl -fhonor-nans -fhonor-infinities -fno-associative-math -fno-approx-func \
                                      -fno-sycl-instrument-device-code --offload-compress -fsycl-targets=spir64_gen,spir64";
    pub(super) const LINK: &str = "-Wl,-z,noexecstack -fsycl --offload-compress -fsycl-targets=spir64_gen,spir64 -Xs";
    pub(super) const OF_TARGET: &str = "-device pvc,xe-lpg,ats-m150 -options ' -cl-intel-enable-auto-large-GRF-mode \
                                        -cl-poison-unsupported-fp64-kernels -cl-intel-greater-than-4GB-buffer-required'";
    /// SYCL*TLA with the compiler of 2025.3, the only one that it knows there: behind `-Xspirv-translator`.
    pub(super) const EXTENSIONS: &str =
        "-spirv-ext=+SPV_INTEL_split_barrier,+SPV_INTEL_2d_block_io,+SPV_INTEL_subgroup_matrix_multiply_accumulate";
    /// Options of later releases, which 0.16.2 does not have yet: division and square roots as IEEE 754 has them.
    pub(super) const LATER: [&str; 2] = ["-foffload-fp32-prec-div", "-foffload-fp32-prec-sqrt"];
}

fn without_later<'a>(line: &[&'a str]) -> Vec<&'a str> {
    line.iter().copied().filter(|arg| !peer::LATER.contains(arg)).collect()
}

#[test]
fn lines_are_those_of_the_other_builder() {
    let lines = Lines::of("2025.3", false, &[]);
    let ours = without_later(&lines.compile());
    let theirs: Vec<&str> = peer::COMPILE.split(' ').filter(|arg| *arg != "-fPIC").chain(["-DMINE"]).collect();
    assert_eq!(ours, theirs);
    assert!(lines.argv("k.cpp").contains(&"-fPIC"));

    let link = lines.link();
    let (value, head) = link.split_last().unwrap();
    // What is told to the compiler of one target is told with its name since then.
    let head: Vec<&str> =
        without_later(head).into_iter().map(|arg| if arg == "-Xsycl-target-backend=spir64_gen" { "-Xs" } else { arg }).collect();
    assert_eq!(head, peer::LINK.split(' ').collect::<Vec<_>>());
    assert_eq!(*value, peer::OF_TARGET.replace("' -cl", "'-cl"));
}

#[test]
fn lines_for_sycl_tla_are_those_of_the_other_builder() {
    let lines = Lines::of("2025.3", true, &[]);
    let link = lines.link();
    // It tells the compiler of a target that is not compiled for, and all translators without a name the same; since then the compiler's own
    // extensions stand in front, which the option would take away otherwise.
    let theirs = peer::LINK.replace("spir64_gen,spir64", "spir64").replace(" -Xs", "");
    let theirs: Vec<&str> = theirs.split(' ').chain(["-Xspirv-translator=spir64"]).collect();
    let (value, head) = link.split_last().unwrap();
    assert_eq!(without_later(head), theirs);
    assert_eq!(value.replace(DEFAULT_EXTENSIONS, "").replace("=,", "="), peer::EXTENSIONS);
}
