//! Command lines, written by hand from the rules for backends and frameworks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_backend::Machine;
use kiln_format::variant::{Compute, Cpu, Os};
use kiln_format::{BackendName, OpsId, Version};
use kiln_graph::{PathRef, PlanAction, RootBinding, RootKind, RootName};
use kiln_toolchain::floor::{Floor, FloorLevel};
use kiln_toolchain::host::{Family, HostCompiler, HostRuntime};
use kiln_toolchain::{CxxLevel, Launcher, LibraryExports, NameSet, Processor, Provider, TorchToolchain, TvmFfiToolchain};

use super::{BuildPlan, PlanError, PlanRequest, plan};
use crate::backends::Backends;
use crate::frameworks::Frameworks;
use crate::matrix::{Filters, Matrix, Set, Target, choose};

const LINUX: Target = Target { cpu: Cpu::X86_64, os: Os::Linux };

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn compiler(family: Family) -> HostCompiler {
    HostCompiler {
        path: PathBuf::from("/usr/bin/c++"),
        args: Vec::new(),
        family,
        version: version("12.2.0"),
        target: "x86_64-linux-gnu".to_owned(),
        identity: "compiler".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: family == Family::Gnu,
    }
}

fn torch(release: &str, cxx_level: CxxLevel) -> TorchToolchain {
    let root = RootName::new(format!("torch-{release}"));
    let library = |soname: &str| LibraryExports { soname: soname.to_owned(), names: Arc::new(NameSet::default()) };
    let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
    TorchToolchain {
        version: version(release),
        cuda: Some(version("13.0")),
        provider: Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() },
        include_dirs: vec![include("torch/include"), include("torch/include/torch/csrc/api/include")],
        binding: RootBinding { dir: PathBuf::from("/store"), kind: RootKind::Immutable { digest: release.to_owned() } },
        root,
        exports: ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so"].map(library).to_vec(),
        terms: Vec::new(),
        identity: release.to_owned(),
        cxx_level,
        stand_in: None,
    }
}

fn tvm_ffi() -> TvmFfiToolchain {
    let root = RootName::new("tvm-ffi-0.1.9");
    let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
    TvmFfiToolchain {
        version: version("0.1.9"),
        provider: Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() },
        include_dirs: ["tvm_ffi/include", "tvm_ffi/3rdparty/dlpack/include"].map(include).to_vec(),
        binding: RootBinding { dir: PathBuf::from("/store"), kind: RootKind::Immutable { digest: "0.1.9".to_owned() } },
        root,
        exports: vec![LibraryExports { soname: "libtvm_ffi.so".to_owned(), names: Arc::new(NameSet::default()) }],
        identity: "0.1.9".to_owned(),
        terms: Vec::new(),
    }
}

struct Setup<'a> {
    framework: &'static str,
    torch_table: &'static str,
    kernels: &'a str,
    family: Family,
    csrc: bool,
    floor: bool,
    launcher: Option<Launcher>,
    cpuinfo: PathBuf,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            framework: "torch",
            torch_table: "src = [\"ext/binding.cpp\", \"ext/binding.h\"]",
            kernels: "[kernel.k]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = [\"cpu/k.cpp\"]\ninclude = [\"cpu\"]\ncxx-flags = [\"-DMINE\"]",
            family: Family::Gnu,
            csrc: false,
            floor: false,
            launcher: None,
            cpuinfo: PathBuf::from("/nowhere"),
        }
    }
}

impl Setup<'_> {
    fn plan(&self, variants: &[&str]) -> Result<BuildPlan, PlanError> {
        let text = format!(
            "[general]\nname = \"relu\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\"]\n[{}]\n{}\n{}\n",
            self.framework, self.torch_table, self.kernels
        );
        let parsed = kiln_format::build::parse("build.toml", &text);
        let build = parsed.build.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let filters = Filters { variants: variants.iter().map(|name| (*name).to_owned()).collect(), ..Filters::default() };
        let selection = choose(&build, &Matrix::builtin().unwrap(), LINUX, Set::All, &filters, &|_| Ok(())).unwrap();
        let project = tempfile::tempdir().unwrap();
        if self.csrc {
            fs::create_dir(project.path().join("csrc")).unwrap();
        }
        let torches = [("2.11.0", CxxLevel::Gnu17), ("2.13.0", CxxLevel::Gnu20), ("2.15.0", CxxLevel::Gnu20)];
        let host = compiler(self.family);
        let store = Path::new("/floors");
        let floor = Floor::new(&host, Machine::X86_64, FloorLevel::Manylinux2_28, &BTreeMap::new(), store).map(Arc::new).unwrap();
        plan(&PlanRequest {
            build: &build,
            project_dir: project.path(),
            variants: &selection.variants,
            ops_ids: &BTreeMap::from([(BackendName::Cpu, OpsId::new(&build.general.name.value, BackendName::Cpu, "1").unwrap())]),
            host: Some(&host),
            backends: &Backends::of_processor(),
            headers: &crate::dependencies::HeaderTrees::default(),
            frameworks: &torches
                .into_iter()
                .fold(Frameworks::default(), |all, (release, level)| all.with_torch(version(release), Compute::Cpu, torch(release, level)))
                .with_tvm_ffi(tvm_ffi()),
            floor: self.floor.then_some(&floor),
            launcher: self.launcher.as_ref(),
            processor: &Processor::described_by(&self.cpuinfo),
            ambient: &BTreeMap::new(),
        })
    }

    /// Every command of the plan, an argument a line; ids of steps are replaced by what the steps make.
    fn commands(&self, variants: &[&str], label: &str) -> String {
        let plan = self.plan(variants).unwrap().graph.plan();
        let mut text = String::new();
        for step in plan.steps.iter().filter(|step| step.label.contains(label)) {
            if let PlanAction::Run { argv, cwd, env, .. } = &step.action {
                text += &format!("in {cwd} with {}\n{}\n", env.join(" "), argv.join("\n"));
            }
        }
        for step in &plan.steps {
            text = text.replace(&step.id, &format!("{}: {}", step.verb, step.label));
        }
        text
    }
}

const TORCH_213: &str = "torch213-cxx11-cpu-x86_64-linux";
const TORCH_211: &str = "torch211-cxx11-cpu-x86_64-linux";
const TORCH_215: &str = "torch215-cxx11-cpu-x86_64-linux";

#[test]
fn a_unit_that_uses_torch() {
    insta::assert_snapshot!(Setup { csrc: true, ..Setup::default() }.commands(&[TORCH_213], "k.cpp"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -O3
    -DNDEBUG
    -fPIC
    -fvisibility=hidden
    -fno-gnu-unique
    -frandom-seed=cpu/k.cpp
    -fno-canonical-system-headers
    -ffile-prefix-map={project}=.
    -ffile-prefix-map={torch-2.13.0}=torch
    -ffile-prefix-map={work}=.kiln
    -std=gnu++20
    -DCPU_KERNEL
    -DUSE_DISTRIBUTED
    -DUSE_C10D_GLOO
    -DUSE_RPC
    -DUSE_TENSORPIPE
    -DPy_LIMITED_API=3
    -DTORCH_EXTENSION_NAME=_relu_cpu_1
    -D_relu_cpu_1_EXPORTS
    -I{project}/cpu
    -I{project}/csrc
    -I{Generating: registration.h}
    -isystem
    {torch-2.13.0}/torch/include
    -isystem
    {torch-2.13.0}/torch/include/torch/csrc/api/include
    -DMINE
    -MD
    -MF
    {out}/unit.d
    -c
    {project}/cpu/k.cpp
    -o
    {out}/unit.o
    ");
}

#[test]
fn the_flags_of_a_kernel_reach_its_own_units_only() {
    let binding = Setup::default().commands(&[TORCH_213], "binding.cpp");
    assert!(!binding.contains("-DMINE") && !binding.contains("-I{project}/cpu"), "{binding}");
}

#[test]
fn the_language_level_follows_torch() {
    assert!(Setup::default().commands(&[TORCH_211], "k.cpp").contains("-std=gnu++17\n"));
    assert!(Setup::default().commands(&[TORCH_215], "k.cpp").contains("-std=gnu++20\n"));
}

#[test]
fn the_stable_abi_is_one_more_define_on_every_unit() {
    let setup = Setup { torch_table: "src = [\"ext/binding.cpp\"]\nstable-abi = { cpu = \"2.11\" }", ..Setup::default() };
    let commands = setup.commands(&["torch-stable-abi211-cpu-x86_64-linux"], ".cpp");
    assert_eq!(commands.matches("-DTORCH_TARGET_VERSION=0x020b000000000000\n").count(), 2, "{commands}");
}

#[test]
fn clang_gets_none_of_gccs_own_flags() {
    let commands = Setup { family: Family::Clang, ..Setup::default() }.commands(&[TORCH_213], "k.cpp");
    assert!(
        !commands.contains("-fno-gnu-unique") && !commands.contains("-frandom-seed") && !commands.contains("-fno-canonical"),
        "{commands}"
    );
}

#[test]
fn a_unit_without_torch_is_one_step_for_every_torch() {
    let setup = Setup { kernels: "[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"cpu/k.cpp\"]", ..Setup::default() };
    insta::assert_snapshot!(setup.commands(&[TORCH_211, TORCH_213, TORCH_215], "k.cpp"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -O3
    -DNDEBUG
    -fPIC
    -fvisibility=hidden
    -fno-gnu-unique
    -frandom-seed=cpu/k.cpp
    -fno-canonical-system-headers
    -ffile-prefix-map={project}=.
    -ffile-prefix-map={work}=.kiln
    -std=gnu++20
    -DCPU_KERNEL
    -I{Generating: registration.h}
    -MD
    -MF
    {out}/unit.d
    -c
    {project}/cpu/k.cpp
    -o
    {out}/unit.o
    ");
}

#[test]
fn a_source_of_two_kernels_is_compiled_for_each_and_equal_base_names_do_not_meet() {
    let kernels = "[kernel.a]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"x/k.cpp\", \"y/k.cpp\"]\n\
                   [kernel.b]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"x/k.cpp\"]\ncxx-flags = [\"-DB\"]";
    let commands = Setup { kernels, ..Setup::default() }.commands(&[TORCH_213], "k.cpp");
    assert_eq!(commands.matches("{project}/x/k.cpp\n").count(), 2);
    assert_eq!(commands.matches("{project}/y/k.cpp\n").count(), 1);
    assert_eq!(commands.matches("-DB\n").count(), 1);
}

/// It is one step then, and a linker that gets its object twice finds every definition twice.
#[test]
fn an_object_that_two_kernels_share_is_linked_once() {
    let kernel = "backend = \"cpu\"\ndepends = []\nsrc = [\"x/k.cpp\"]\n";
    let setup = Setup { kernels: &format!("[kernel.a]\n{kernel}[kernel.b]\n{kernel}"), ..Setup::default() };
    let link = setup.commands(&[TORCH_213], ".abi3.so");
    assert_eq!(link.matches("{Compiling: x/k.cpp}/unit.o\n").count(), 1, "{link}");
}

/// `-Wl` splits what it is given at commas, and directories may have some in their names.
#[test]
fn no_path_of_the_machine_is_split_at_commas() {
    let commands = Setup { floor: true, ..Setup::default() }.commands(&[TORCH_213], "");
    assert!(!commands.lines().any(|arg| arg.starts_with("-W") && arg.contains('{')), "{commands}");
}

#[test]
fn a_variant_without_a_translation_unit_is_refused() {
    let setup =
        Setup { torch_table: "src = [\"a.h\"]", kernels: "[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = []", ..Setup::default() };
    let error = setup.plan(&[TORCH_213]).unwrap_err();
    assert!(matches!(&error, PlanError::NoUnit { variant } if variant == TORCH_213), "{error}");
}

#[test]
fn a_language_level_below_what_the_headers_take_is_refused_before_compiling() {
    let kernels = "[kernel.k]\nbackend = \"cpu\"\ndepends = [\"torch\"]\nsrc = [\"k.cpp\"]\ncxx-flags = [\"-std=c++17\"]";
    let setup = Setup { kernels, ..Setup::default() };
    insta::assert_snapshot!(
        setup.plan(&[TORCH_215]).unwrap_err(),
        @"[kernel.k]: `-std` asks for C++17, and the headers of torch 2.15.0 need C++20 or newer"
    );
    assert!(setup.plan(&[TORCH_213]).is_ok());
    let stable = Setup { torch_table: "src = []\nstable-abi = \"2.11\"", kernels, ..Setup::default() };
    assert!(stable.plan(&["torch-stable-abi211-cpu-x86_64-linux"]).is_ok());
}

#[test]
fn the_link_names_stubs_exports_and_nothing_of_the_machine() {
    insta::assert_snapshot!(Setup::default().commands(&[TORCH_213], ".abi3.so"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -shared
    -o
    {out}/_relu_cpu_1.abi3.so
    {Compiling: ext/binding.cpp}/unit.o
    {Compiling: cpu/k.cpp}/unit.o
    {Compiling: module_init.c}/unit.o
    -Wl,--as-needed
    {Resolving: _relu_cpu_1.abi3.so}/libc10.so
    {Resolving: _relu_cpu_1.abi3.so}/libtorch.so
    {Resolving: _relu_cpu_1.abi3.so}/libtorch_cpu.so
    -Xlinker
    --version-script={Generating: exports.map}/exports.map
    -Wl,-z,noexecstack
    ");
}

/// The floor's directory comes before all others, its C++ library before torch's libraries, and the C library is always needed.
#[test]
fn a_link_keeps_to_the_floor() {
    insta::assert_snapshot!(Setup { floor: true, ..Setup::default() }.commands(&[TORCH_213], ".abi3.so"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -shared
    -o
    {out}/_relu_cpu_1.abi3.so
    {Compiling: ext/binding.cpp}/unit.o
    {Compiling: cpu/k.cpp}/unit.o
    {Compiling: module_init.c}/unit.o
    -Wl,--as-needed
    -L{floor}
    -Wl,--gc-sections
    -Wl,-z,nopack-relative-relocs
    -lstdc++
    {Resolving: _relu_cpu_1.abi3.so}/libc10.so
    {Resolving: _relu_cpu_1.abi3.so}/libtorch.so
    {Resolving: _relu_cpu_1.abi3.so}/libtorch_cpu.so
    -lgomp
    -Wl,--push-state
    -Wl,--no-as-needed
    -l:libc.so.6
    -Wl,--pop-state
    -Xlinker
    --version-script={Generating: exports.map}/exports.map
    -Wl,-z,noexecstack
    ");
}

/// The steps of a plan by label: identity of the program, and how the command begins.
fn tools(setup: &Setup<'_>) -> BTreeMap<String, (String, Vec<String>)> {
    let of = |action| match action {
        PlanAction::Run { tool, argv, .. } => Some((tool, argv.into_iter().take_while(|arg| !arg.starts_with('-')).collect())),
        PlanAction::Builtin { .. } => None,
    };
    setup.plan(&[TORCH_213]).unwrap().graph.plan().steps.into_iter().filter_map(|step| Some((step.label, of(step.action)?))).collect()
}

#[test]
fn a_launcher_stands_in_front_of_units_and_counts_by_its_content() {
    let launcher = |path: &str, identity: &str| Launcher {
        path: PathBuf::from(path),
        identity: identity.to_owned(),
        ambient: BTreeMap::from([("FRONT_DIR".to_owned(), PathBuf::from("/f"))]),
    };
    let with = |launcher: Launcher| tools(&Setup { launcher: Some(launcher), ..Setup::default() });
    let (without, one) = (tools(&Setup::default()), with(launcher("/usr/bin/front", "1")));
    assert_eq!(without.len(), 4);
    for (label, (tool, start)) in &without {
        let (launched_tool, launched) = &one[label];
        // What is linked is not compiled.
        let is_unit = label.ends_with(".cpp") || label.ends_with(".c");
        assert_eq!((launched.len(), launched.last(), tool != launched_tool), (1 + usize::from(is_unit), start.last(), is_unit), "{label}");
        assert_eq!(launched[0], if is_unit { "front" } else { "c++" });
    }
    assert_eq!(with(launcher("/opt/bin/front", "1")), one);
    assert_ne!(with(launcher("/usr/bin/front", "2"))["cpu/k.cpp"].0, one["cpu/k.cpp"].0);
}

#[test]
fn the_processor_counts_where_a_flag_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let cpuinfo = |model: &str| {
        let file = dir.path().join(model);
        fs::write(&file, format!("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: {model}\nflags\t\t: fpu sse2\n\n")).unwrap();
        file
    };
    let kernel = |flag: &str| format!("[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"cpu/k.cpp\"]\ncxx-flags = [{flag}]");
    for flag in ["\"-march=native\"", "\"-mtune=native\"", "\"-mcpu=native\"", "\"-O2\", \"-march=native\""] {
        let kernels = kernel(flag);
        let on = |model: &str| tools(&Setup { kernels: &kernels, cpuinfo: cpuinfo(model), ..Setup::default() });
        let (one, other) = (on("85"), on("143"));
        assert_ne!(one["cpu/k.cpp"].0, other["cpu/k.cpp"].0, "{flag}");
        // Units without the flag are the same everywhere.
        assert_eq!(one["ext/binding.cpp"], other["ext/binding.cpp"]);
        assert_eq!(one["ext/binding.cpp"], tools(&Setup::default())["ext/binding.cpp"]);
        assert_eq!(on("85"), one);
    }
    let plain = kernel("\"-march=x86-64-v3\"");
    let plain = |model: &str| tools(&Setup { kernels: &plain, cpuinfo: cpuinfo(model), ..Setup::default() });
    assert_eq!(plain("85"), plain("143"));
    let kernels = kernel("\"-march=native\"");
    let error = Setup { kernels: &kernels, ..Setup::default() }.plan(&[TORCH_213]).unwrap_err();
    assert_eq!((error.code(), error.hint().is_some()), ("unknown-processor", true));
    insta::assert_snapshot!(error, @"[kernel.k]: `-march=native` compiles for the processor of this machine, and `/nowhere` does not say which one that is");
}

const TVM_FFI: &str = "tvm-ffi01-cpu-x86_64-linux";

/// No torch, no Python: other defines, headers and libraries, and nothing else.
#[test]
fn a_tvm_ffi_kernel() {
    let kernels = "[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"cpu/k.cpp\"]\ninclude = [\"cpu\"]\ncxx-flags = [\"-DMINE\"]";
    let setup = Setup { framework: "tvm-ffi", kernels, floor: true, ..Setup::default() };
    insta::assert_snapshot!(setup.commands(&[TVM_FFI], "k.cpp"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -O3
    -DNDEBUG
    -fPIC
    -fvisibility=hidden
    -fno-gnu-unique
    -frandom-seed=cpu/k.cpp
    -fno-canonical-system-headers
    -ffile-prefix-map={project}=.
    -ffile-prefix-map={tvm-ffi-0.1.9}=tvm_ffi
    -ffile-prefix-map={work}=.kiln
    -std=gnu++17
    -DCPU_KERNEL
    -DTVM_FFI_EXTENSION_NAME=_relu_cpu_1
    -D_relu_cpu_1_EXPORTS
    -I{project}/cpu
    -isystem
    {tvm-ffi-0.1.9}/tvm_ffi/include
    -isystem
    {tvm-ffi-0.1.9}/tvm_ffi/3rdparty/dlpack/include
    -DMINE
    -MD
    -MF
    {out}/unit.d
    -c
    {project}/cpu/k.cpp
    -o
    {out}/unit.o
    ");
    insta::assert_snapshot!(setup.commands(&[TVM_FFI], "_relu_cpu_1.so"), @r"
    in {project} with LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=0
    c++
    -shared
    -o
    {out}/_relu_cpu_1.so
    {Compiling: ext/binding.cpp}/unit.o
    {Compiling: cpu/k.cpp}/unit.o
    -Wl,--as-needed
    -L{floor}
    -Wl,--gc-sections
    -Wl,-z,nopack-relative-relocs
    -lstdc++
    {Resolving: _relu_cpu_1.so}/libtvm_ffi.so
    -lgomp
    -Wl,--push-state
    -Wl,--no-as-needed
    -l:libc.so.6
    -Wl,--pop-state
    -Xlinker
    --version-script={Generating: exports.map}/exports.map
    -Wl,-z,noexecstack
    -Wl,-soname=_relu_cpu_1.so
    ");
}

#[test]
fn tvm_ffi_takes_cxx17_and_newer() {
    let of = |flag: &str| {
        let kernels = format!("[kernel.k]\nbackend = \"cpu\"\ndepends = []\nsrc = [\"k.cpp\"]\ncxx-flags = [\"{flag}\"]");
        Setup { framework: "tvm-ffi", kernels: &kernels, ..Setup::default() }.plan(&[TVM_FFI]).map(drop)
    };
    insta::assert_snapshot!(of("-std=c++14").unwrap_err(), @"[kernel.k]: `-std` asks for C++14, and the headers of tvm-ffi 0.1.9 need C++17 or newer");
    assert!(of("-std=c++17").is_ok() && of("-std=c++20").is_ok());
}

#[test]
fn builds_that_stand_in_without_a_comparison_are_told_once() {
    let standing = |build: &str| TorchToolchain {
        stand_in: Some(kiln_toolchain::StandIn { build: build.to_owned(), compared: None }),
        ..torch("2.11.0", CxxLevel::Gnu17)
    };
    let of = |toolchain: TorchToolchain| Frameworks::default().with_torch(version("2.11.0"), Compute::Cpu, toolchain).uncompared();
    assert_eq!(of(torch("2.11.0", CxxLevel::Gnu17)), Vec::<String>::new());
    let said = of(standing("cu126"));
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("stand in for those of 2.11.0+cu126, without having been compared"), "{}", said[0]);
    assert!(said[0].contains("`kiln toolchain add torch==2.11.0+cu126`"), "{}", said[0]);
}
