//! Entries of CUDA toolkits.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use kiln_format::Version;
use kiln_toolchain::CudaToolkit;
use kiln_toolchain::make_catalog::{MadeCudaWheel, Registry, WholeWheel, cuda_components, make_cuda_wheel};

use super::files::{Made, of_release, wheel_for};
use crate::process;

/// The projects whose wheels make up a toolkit, in the order of the catalog.
const PROJECTS: [&str; 10] = [
    "nvidia-cuda-nvcc",
    "nvidia-nvvm",
    "nvidia-cuda-crt",
    "nvidia-cuda-runtime",
    "nvidia-cuda-cccl",
    "nvidia-cublas",
    "nvidia-cusparse",
    "nvidia-cusolver",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvdisasm",
];

/// Where a toolkit runs. The first is the one whose nvcc can be asked here.
const PLATFORMS: [&str; 3] = ["linux-x86_64", "linux-aarch64", "windows-x86_64"];

/// Downloads and reads every wheel of a toolkit, for each platform.
pub(super) fn make(registry: &Registry<'_>, version: &str, made: &mut Made) -> anyhow::Result<()> {
    let components = components(registry, version)?;
    let mut archs = None;
    for platform in PLATFORMS {
        println!("reading CUDA {version} for {platform}");
        let mut wheels = Vec::new();
        for (project, component) in &components {
            let scratch = tempfile::tempdir()?;
            let listing = registry.list(project)?;
            let prefix = format!("{}-", project.replace('-', "_"));
            let Some(file) = of_release(&listing, &prefix, component).and_then(|prefix| wheel_for(&listing, &prefix, platform)) else {
                bail!("the index has no {project} {component} for {platform}");
            };
            let path = registry.download(&listing, file, scratch.path())?;
            if project == "nvidia-cuda-nvcc" && archs.is_none() {
                archs = Some(architectures(&path, scratch.path())?);
            }
            wheels.push(make_cuda_wheel(&path, scratch.path())?);
        }
        // Toolkits of one release list the same architectures wherever they run.
        let archs = archs.clone().context("the toolkit has no nvcc")?;
        let (toolkit, names_file) = toolkit(version, platform, archs, wheels)?;
        made.names.extend(toolkit.names.clone().zip(names_file));
        made.cuda.push(toolkit);
    }
    Ok(())
}

/// The versions of its components.
fn components(registry: &Registry<'_>, version: &str) -> anyhow::Result<Vec<(String, String)>> {
    let listing = registry.list("cuda-toolkit")?;
    let prefix = of_release(&listing, "cuda_toolkit-", version).with_context(|| format!("the index has no cuda-toolkit {version}"))?;
    let file = listing.files().find(|file| file.starts_with(&prefix) && file.ends_with("-none-any.whl"));
    let scratch = tempfile::tempdir()?;
    let wheel = registry.download(&listing, file.context("cuda-toolkit has no wheel")?, scratch.path())?;
    let components = cuda_components(&WholeWheel::open(&wheel)?.metadata()?, &PROJECTS);
    // The last two came later.
    match PROJECTS.get(..8).unwrap_or_default().iter().find(|project| !components.iter().any(|(known, _)| known == *project)) {
        Some(missing) => bail!("cuda-toolkit {version} names no {missing}"),
        None => Ok(components),
    }
}

/// The architectures that nvcc lists.
fn architectures(wheel: &Path, scratch: &Path) -> anyhow::Result<Vec<u32>> {
    let mut wheel = WholeWheel::open(wheel)?;
    let bin = scratch.join("bin");
    std::fs::create_dir(&bin)?;
    for file in ["nvcc", "nvcc.profile"] {
        std::fs::write(bin.join(file), wheel.read(&format!("{}bin/{file}", CudaToolkit::ROOT))?)?;
    }
    std::fs::set_permissions(bin.join("nvcc"), std::fs::Permissions::from_mode(0o755))?;
    let listed = process::output(Command::new(bin.join("nvcc")).arg("--list-gpu-arch"))?;
    let number = |line: &str| line.strip_prefix("compute_")?.parse::<u32>().ok();
    let mut archs: Vec<u32> = listed.lines().filter_map(number).collect();
    archs.sort_unstable();
    if archs.is_empty() { bail!("nvcc lists no architecture") } else { Ok(archs) }
}

/// The entry, and the names file of its runtime library.
fn toolkit(version: &str, platform: &str, archs: Vec<u32>, wheels: Vec<MadeCudaWheel>) -> anyhow::Result<(CudaToolkit, Option<Vec<u8>>)> {
    let (gcc, clang) = wheels.iter().find_map(|wheel| wheel.host_limits).context("no wheel says which compilers its headers accept")?;
    let names_file = wheels.iter().find_map(|wheel| wheel.names_file.clone());
    let license = wheels.first().context("the toolkit has no wheel")?.license.clone();
    if let Some(other) = wheels.iter().find(|wheel| wheel.license != license) {
        bail!("`{}` has another licence than the rest: {}", other.wheel.file, other.license);
    }
    let toolkit = CudaToolkit {
        version: Version::parse(version)?,
        platform: platform.to_owned(),
        gcc,
        clang,
        archs,
        license,
        names: names_file.is_some().then(|| format!("cuda-{version}-{platform}.names")),
        wheels: wheels.into_iter().map(|wheel| wheel.wheel).collect(),
    };
    Ok((toolkit, names_file))
}
