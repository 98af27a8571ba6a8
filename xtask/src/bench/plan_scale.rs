//! How long a plan takes, and how much memory, as it grows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use kiln::backends::Backends;
use kiln::dependencies::HeaderTrees;
use kiln::frameworks::Frameworks;
use kiln::matrix::{Filters, Matrix, Selected, Set, Target, choose};
use kiln::plan::{PlanRequest, plan};
use kiln_format::variant::{ArchFramework, Compute, Cpu, Os, Variant};
use kiln_format::{BackendName, MajorMinor, OpsId, Version};
use kiln_graph::{PathRef, RootBinding, RootKind, RootName};
use kiln_toolchain::host::{Family, HostCompiler, HostRuntime};
use kiln_toolchain::{CxxLevel, LibraryExports, NameSet, Processor, Provider, TorchToolchain};

use super::timing::Spread;
use crate::workspace::{self, Workspace};

/// How many units and variants, from small to large.
const SIZES: [(usize, usize); 3] = [(125, 50), (250, 100), (500, 200)];
/// How often each is planned.
const RUNS: usize = 3;

/// One plan: what it takes.
pub(super) struct Planned {
    pub(super) units: usize,
    pub(super) variants: usize,
    /// Whether every variant compiles the units alike.
    pub(super) shared: bool,
    pub(super) steps: usize,
    /// Seconds, the median.
    pub(super) seconds: f64,
    /// The most that the process ever had in memory, in MiB.
    pub(super) memory_mib: u64,
}

/// Plans every size in a process of its own, optimised.
pub(super) fn run(workspace: &Workspace) -> anyhow::Result<Vec<Planned>> {
    let mut planned = Vec::new();
    for shared in [false, true] {
        for (units, variants) in SIZES {
            let mut command = workspace::cargo();
            command.current_dir(&workspace.root).args(["run", "--quiet", "--release", "--locked", "--package", "xtask", "--"]);
            command.args(["bench", "plan-here", &units.to_string(), &variants.to_string(), &shared.to_string()]);
            let said = crate::process::output(&mut command)?;
            let mut words = said.split_whitespace();
            let mut next = || words.next().context("the plan says too little");
            let (steps, seconds, memory_mib) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
            let one = Planned { units, variants, shared, steps, seconds, memory_mib };
            println!("{}", one.line());
            planned.push(one);
        }
    }
    Ok(planned)
}

impl Planned {
    /// One line for people.
    pub(super) fn line(&self) -> String {
        let how = if self.shared { "all shared" } else { "none shared" };
        format!(
            "{:>4} units x {:>3} variants, {how:<11}: {:>6} steps, {:.3} s, {:>4} MiB",
            self.units, self.variants, self.steps, self.seconds, self.memory_mib
        )
    }
}

/// Plans in this process, and says what [`run`] reads.
pub(super) fn here(units: usize, variants: usize, shared: bool) -> anyhow::Result<()> {
    let sources: Vec<String> = (0..units).map(|unit| format!("\"cpu/unit{unit}.cpp\"")).collect();
    let depends = if shared { "" } else { "\"torch\"" };
    let text = format!(
        "[general]\nname = \"scale\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\"]\n[torch]\nsrc = \
         [\"binding.cpp\"]\n[kernel.k]\nbackend = \"cpu\"\ndepends = [{depends}]\nsrc = [{}]\n",
        sources.join(", ")
    );
    let build = kiln_format::build::parse("build.toml", &text).build.context("the configuration is wrong")?;
    let target = Target { cpu: Cpu::X86_64, os: Os::Linux };
    let chosen = choose(&build, &Matrix::builtin()?, target, Set::All, &Filters::default(), &|_| Ok(()))?;
    let model = chosen.variants.first().context("there is no variant")?;
    let releases: Vec<Version> = (0..variants).map(|number| Version::parse(&format!("3.{number}.0"))).collect::<Result<_, _>>()?;
    let selected: Vec<Selected> = releases.iter().map(|release| of_release(model, release)).collect();
    let frameworks =
        releases.iter().fold(Frameworks::default(), |all, release| all.with_torch(release.clone(), Compute::Cpu, toolchain(release)));
    let project = tempfile::tempdir()?;
    let host = HostCompiler {
        path: PathBuf::from("/usr/bin/c++"),
        args: Vec::new(),
        family: Family::Gnu,
        version: Version::parse("12.2.0")?,
        target: "x86_64-linux-gnu".to_owned(),
        identity: "compiler".to_owned(),
        runtime: HostRuntime::default(),
        accepts_no_gnu_unique: true,
    };
    let request = PlanRequest {
        build: &build,
        project_dir: project.path(),
        variants: &selected,
        ops_ids: &BTreeMap::from([(BackendName::Cpu, OpsId::new(&build.general.name.value, BackendName::Cpu, "1")?)]),
        host: Some(&host),
        backends: &Backends::of_processor(),
        frameworks: &frameworks,
        headers: &HeaderTrees::default(),
        floor: None,
        launcher: None,
        processor: &Processor::described_by("/proc/cpuinfo"),
        ambient: &BTreeMap::new(),
    };
    let mut times = Vec::new();
    let mut steps = 0;
    for _ in 0..RUNS {
        let started = Instant::now();
        let planned = plan(&request)?;
        times.push(started.elapsed().as_secs_f64());
        steps = planned.graph.steps().count();
    }
    let seconds = Spread::of(times).context("no runs")?.median;
    println!("{steps} {seconds} {}", peak_mib()?);
    Ok(())
}

/// The model with another torch.
fn of_release(model: &Selected, release: &Version) -> Selected {
    let mut selected = model.clone();
    let minor: MajorMinor = release.major_minor();
    if let Variant::Arch(arch) = &mut selected.variant
        && let ArchFramework::TorchCxx { version, .. } = &mut arch.framework
    {
        *version = minor;
    }
    if let Some(row) = &mut selected.row {
        (row.torch, row.release) = (minor, release.clone());
    }
    selected
}

fn toolchain(release: &Version) -> TorchToolchain {
    let root = RootName::new(format!("torch-{release}"));
    let include = |path: &str| PathRef { root: root.clone(), path: path.to_owned() };
    let library = |soname: &str| LibraryExports { soname: soname.to_owned(), names: Arc::new(NameSet::default()) };
    TorchToolchain {
        version: release.clone(),
        cuda: None,
        provider: Provider::Wheel { file: String::new(), sha256: String::new(), record_sha256: String::new() },
        include_dirs: vec![include("torch/include"), include("torch/include/torch/csrc/api/include")],
        binding: RootBinding { dir: PathBuf::from("/store"), kind: RootKind::Immutable { digest: release.to_string() } },
        root,
        exports: ["libc10.so", "libtorch.so", "libtorch_cpu.so"].map(library).to_vec(),
        terms: Vec::new(),
        identity: release.to_string(),
        cxx_level: CxxLevel::Gnu20,
        stand_in: None,
    }
}

/// The most that this process ever had in memory, in MiB.
fn peak_mib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the system does not say how much memory was used")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024)
}
