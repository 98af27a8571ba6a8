//! `catalog`: makes the pins of wheels and the names that their libraries offer anew, checks them, or takes in a release.
//!
//! Making and the full check download each wheel whole and compare it with the digest that the index gives; the plain check compares
//! the pins with the index and, by range requests, with what it serves.

mod cuda;
mod files;
mod headers;
mod network;
mod torch;
mod torch_npu;
mod tvm_ffi;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use kiln_toolchain::Catalog;
use kiln_toolchain::make_catalog::Registry;

use self::files::{Files, Made, wanted};
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Options of `catalog`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// Write nothing; fail when a pin is not what the index has
    #[arg(long)]
    check: bool,
    /// With --check: read every wheel whole, and compare names and all else that was taken from it
    #[arg(long, requires = "check")]
    full: bool,
}

/// What to do but making or checking what is there.
#[derive(clap::Subcommand)]
enum Action {
    /// Take in a release
    Add {
        /// `torch==2.16.0`, `torch-npu==2.13.0`, `apache-tvm-ffi==0.1.16`, `cuda-toolkit==13.6.0`, `nvidia-cutlass==3.8.0.0`, `sycl-tla==0.8.0` or
        /// `mlx-metal==0.32.4`
        #[arg(value_name = "NAME==VERSION", required = true)]
        releases: Vec<String>,
    },
}

/// What the catalog has for several platforms.
const PLATFORMS: [&str; 4] = ["linux-x86_64", "linux-aarch64", "darwin-aarch64", "windows-x86_64"];

/// A release to make entries of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Release {
    Torch(String),
    TorchNpu(String),
    TvmFfi(String),
    Cuda(String),
    /// A library of headers: the project, and the release of its wheel.
    Headers(&'static str, String),
}

/// The projects whose wheels are libraries of headers.
const HEADERS: [&str; 3] = ["mlx-metal", "nvidia-cutlass", "sycl-tla"];

impl Release {
    fn parse(text: &str) -> anyhow::Result<Self> {
        match text.split_once("==") {
            Some(("torch", version)) => Ok(Self::Torch(version.to_owned())),
            Some(("torch-npu", version)) => Ok(Self::TorchNpu(version.to_owned())),
            Some(("apache-tvm-ffi" | "tvm-ffi", version)) => Ok(Self::TvmFfi(version.to_owned())),
            Some(("cuda-toolkit", version)) => Ok(Self::Cuda(version.to_owned())),
            other => match other.and_then(|(name, version)| Some((HEADERS.iter().find(|known| **known == name)?, version))) {
                Some((project, version)) => Ok(Self::Headers(project, version.to_owned())),
                None => bail!("`{text}` is no `NAME==VERSION` of torch, torch-npu, apache-tvm-ffi, cuda-toolkit, {}", HEADERS.join(", ")),
            },
        }
    }

    /// Every release of the catalog.
    fn all(catalog: &Catalog) -> Vec<Self> {
        let torch = catalog.releases().iter().map(|release| Self::Torch(release.version.to_string()));
        let torch_npu = catalog.torch_npu_releases().iter().map(|release| Self::TorchNpu(release.wheel.version().to_owned()));
        let tvm_ffi = catalog.tvm_ffi_releases().iter().map(|release| Self::TvmFfi(release.wheel.version().to_owned()));
        let cuda = catalog.cuda_toolkits().iter().map(|toolkit| Self::Cuda(toolkit.version.to_string()));
        let headers = catalog.header_libraries().iter().filter_map(|library| {
            let project = HEADERS.iter().find(|project| **project == library.wheel.project)?;
            Some(Self::Headers(project, library.wheel.version().to_owned()))
        });
        let mut all: Vec<Self> = torch.chain(torch_npu).chain(tvm_ffi).chain(cuda).chain(headers).collect();
        all.dedup();
        all
    }
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let counts = match &options.action {
        Some(_) if options.check => bail!("`--check` adds nothing"),
        Some(Action::Add { releases }) => {
            let releases: Vec<Release> = releases.iter().map(|text| Release::parse(text)).collect::<Result<_, _>>()?;
            let files = Files::read(workspace)?;
            let made = make(&releases)?;
            files.with(made)?.write(workspace)?
        }
        None if options.check => check(workspace, options.full)?,
        None => {
            let files = Files::read(workspace)?;
            wanted(make(&Release::all(files.catalog()))?)?.write(workspace)?
        }
    };
    println!("{} right, {} not", counts.passed, counts.failed);
    Ok(if options.check && counts.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares the catalog with the index: its pins, or with `full` everything that is made from the wheels. Counts pins, or files.
pub(crate) fn check(workspace: &Workspace, full: bool) -> anyhow::Result<Counts> {
    let files = Files::read(workspace)?;
    if full {
        return wanted(make(&Release::all(files.catalog()))?)?.compare(workspace);
    }
    network::with_registry(|registry| check_pins(registry, files.catalog()))
}

/// Compares each pin with the index and with what it serves.
fn check_pins(registry: &Registry<'_>, catalog: &Catalog) -> anyhow::Result<Counts> {
    let torch = catalog.releases().iter().map(|release| &release.wheel);
    let torch_npu = catalog.torch_npu_releases().iter().map(|release| &release.wheel);
    let tvm_ffi = catalog.tvm_ffi_releases().iter().map(|release| &release.wheel);
    let headers = catalog.header_libraries().iter().map(|library| &library.wheel);
    let cuda = catalog.cuda_toolkits().iter().flat_map(|toolkit| &toolkit.wheels);
    let mut pins: Vec<_> = torch.chain(torch_npu).chain(tvm_ffi).chain(cuda).chain(headers).collect();
    pins.sort_by(|one, other| (&one.project, &one.file).cmp(&(&other.project, &other.file)));
    pins.dedup();
    let scratch = tempfile::tempdir()?;
    let mut counts = Counts::default();
    let mut listing = None;
    for pin in pins {
        if listing.as_ref().is_none_or(|(project, _)| *project != pin.project) {
            listing = Some((pin.project.clone(), registry.list(&pin.project)?));
        }
        let Some((_, files)) = &listing else { continue };
        match registry.check(files, pin, scratch.path()) {
            Ok(()) => counts.passed += 1,
            Err(error) => {
                println!("{error}");
                counts.failed += 1;
            }
        }
    }
    Ok(counts)
}

/// Makes the entries of these releases, for every platform that the index has.
fn make(releases: &[Release]) -> anyhow::Result<Made> {
    network::with_registry(|registry| {
        let mut made = Made::default();
        for release in releases {
            match release {
                Release::Torch(version) => torch::make(registry, version, &mut made).with_context(|| format!("torch {version}")),
                Release::TorchNpu(version) => torch_npu::make(registry, version, &mut made).with_context(|| format!("torch-npu {version}")),
                Release::TvmFfi(version) => tvm_ffi::make(registry, version, &mut made).with_context(|| format!("tvm-ffi {version}")),
                Release::Cuda(version) => cuda::make(registry, version, &mut made).with_context(|| format!("CUDA {version}")),
                Release::Headers(project, version) => {
                    headers::make(registry, project, version, &mut made).with_context(|| format!("{project} {version}"))
                }
            }?;
        }
        Ok(made)
    })
}
