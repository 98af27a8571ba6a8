//! Which of the builds of a torch release a variant is compiled with.
//!
//! Builds of one release differ in what they were configured for, and the local part of their version says so: `2.11.0+cu126`,
//! `+cpu`, `+rocm6.4`, `+xpu`. The package index carries one build without a local part, whose CUDA release its wheel tells. A variant
//! takes the build that is its own; where none is known, another may stand in for it, first of all the one without a local part.

use kiln_format::variant::Compute;
use kiln_format::{MajorMinor, Version};

use super::{Catalog, TorchRelease};
use crate::error::Error;

/// The build that serves a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchBuild<'c> {
    /// The build.
    pub release: &'c TorchRelease,
    /// Whether it was configured for the variant's compute, or for something that makes no difference to it.
    pub own: bool,
}

impl Catalog {
    /// The build of torch `version` for variants with this compute.
    ///
    /// # Errors
    /// [`Error::UnknownTorch`] with what there is for the platform.
    pub fn torch_for(&self, version: &Version, compute: Compute, platform: &str) -> Result<TorchBuild<'_>, Error> {
        let builds = || self.releases().iter().filter(|release| release.version == *version && release.platform == platform);
        let rank = |release: &&TorchRelease| match (release.local(), is_for(release, compute)) {
            (Some(_), Fit::Named) => Some(0),
            (None, Fit::Named | Fit::Any) => Some(1),
            (Some(_), Fit::Any) => Some(2),
            _ => None,
        };
        if let Some(release) = builds().filter(|release| rank(release).is_some()).min_by_key(rank) {
            return Ok(TorchBuild { release, own: true });
        }
        Ok(TorchBuild { release: self.torch(version, platform)?, own: false })
    }
}

/// How a build goes with a compute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It was configured for it.
    Named,
    /// Its name does not say, or it makes no difference.
    Any,
    /// It was configured for something else.
    Other,
}

fn is_for(release: &TorchRelease, compute: Compute) -> Fit {
    let Some(local) = release.local() else {
        return match compute {
            Compute::Cuda(wanted) => named(release.cuda.as_ref().map(Version::major_minor) == Some(wanted)),
            Compute::Rocm(_) | Compute::Xpu(_) => Fit::Other,
            // What is compiled for the processor alone is the same in all of them.
            _ => Fit::Any,
        };
    };
    fit(flavour(local), compute)
}

fn fit(flavour: Flavour, compute: Compute) -> Fit {
    match (flavour, compute) {
        (Flavour::Unknown, _) => Fit::Any,
        (Flavour::Cpu, Compute::Cpu) => Fit::Named,
        (Flavour::Xpu, Compute::Xpu(_)) => Fit::Named,
        (Flavour::Cuda(has), Compute::Cuda(wanted)) | (Flavour::Rocm(has), Compute::Rocm(wanted)) => named(has == wanted),
        (Flavour::Cuda(_), Compute::Cpu) => Fit::Any,
        (Flavour::Cpu | Flavour::Cuda(_), Compute::Neuron | Compute::Tpu | Compute::Cann(_)) => Fit::Any,
        _ => Fit::Other,
    }
}

fn named(is: bool) -> Fit {
    if is { Fit::Named } else { Fit::Other }
}

/// What the local part of a version says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Cpu,
    Xpu,
    Cuda(MajorMinor),
    Rocm(MajorMinor),
    /// A build of somebody's own.
    Unknown,
}

fn flavour(local: &str) -> Flavour {
    let local = local.to_ascii_lowercase();
    if let Some(digits) = local.strip_prefix("cu") {
        // `cu126` is CUDA 12.6: the last digit is the minor.
        let (major, minor) = digits.split_at_checked(digits.len().saturating_sub(1)).unwrap_or_default();
        return major
            .parse()
            .ok()
            .zip(minor.parse().ok())
            .map_or(Flavour::Unknown, |(major, minor)| Flavour::Cuda(MajorMinor::new(major, minor)));
    }
    if let Some(version) = local.strip_prefix("rocm") {
        return Version::parse(version).map_or(Flavour::Unknown, |version| Flavour::Rocm(version.major_minor()));
    }
    match local.as_str() {
        "cpu" => Flavour::Cpu,
        "xpu" => Flavour::Xpu,
        _ => Flavour::Unknown,
    }
}

/// Whether a build of this local part serves variants with this compute by itself, so that a pin of it changes those variants.
pub fn torch_build_serves(local: &str, compute: Compute) -> bool {
    let flavour = flavour(local);
    flavour == Flavour::Unknown || fit(flavour, compute) == Fit::Named
}

/// The compute that a build of this local part is for and that no other part of its wheel tells, with the release as written: ROCm. The
/// name of a build for XPU does not say for which release it is.
pub fn torch_compute_of(local: &str) -> Option<(Compute, Version)> {
    let version = Version::parse(local.to_ascii_lowercase().strip_prefix("rocm")?).ok()?;
    Some((Compute::Rocm(version.major_minor()), version))
}

/// The local part of the builds that are configured for a compute; none where no build is.
pub fn torch_local_for(compute: Compute) -> Option<String> {
    match compute {
        Compute::Cpu => Some("cpu".to_owned()),
        Compute::Cuda(release) => Some(format!("cu{}{}", release.major, release.minor)),
        Compute::Rocm(release) => Some(format!("rocm{release}")),
        Compute::Xpu(_) => Some("xpu".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kiln_format::lock::{Lock, LockedTorch};

    use super::*;

    /// A catalog with a build for CUDA 13.0 without a local part, and pinned builds.
    fn catalog(locals: &[&str]) -> Catalog {
        let mut lock = Lock::default();
        for local in locals {
            let suffix = if local.is_empty() { String::new() } else { format!("+{local}") };
            lock.add(LockedTorch {
                version: Version::parse("2.11.0").unwrap(),
                platform: "linux-x86_64".to_owned(),
                wheel: format!("torch-2.11.0{suffix}-cp311-cp311-manylinux_2_28_x86_64.whl"),
                size: 1,
                sha256: "a".repeat(64),
                record_sha256: "b".repeat(64),
                cuda: Version::parse("13.0").ok().filter(|_| local.is_empty()),
                cxx: "gnu++17".to_owned(),
                license: "BSD-3-Clause".to_owned(),
                names_sha256: "c".repeat(64),
            });
        }
        Catalog::default().with_locked(&lock)
    }

    fn served(catalog: &Catalog, compute: Compute) -> String {
        let version = Version::parse("2.11.0").unwrap();
        let build = catalog.torch_for(&version, compute, "linux-x86_64").unwrap();
        format!("{}{}", build.release.local().unwrap_or("-"), if build.own { "" } else { " stands in" })
    }

    #[test]
    fn a_variant_takes_its_own_build() {
        let all = catalog(&["", "cpu", "cu126", "rocm6.4", "xpu"]);
        let cuda = |minor| Compute::Cuda(MajorMinor::new(12, minor));
        assert_eq!(served(&all, Compute::Cpu), "cpu");
        assert_eq!(served(&all, cuda(6)), "cu126");
        assert_eq!(served(&all, Compute::Cuda(MajorMinor::new(13, 0))), "-");
        assert_eq!(served(&all, cuda(8)), "- stands in");
        assert_eq!(served(&all, Compute::Rocm(MajorMinor::new(6, 4))), "rocm6.4");
        assert_eq!(served(&all, Compute::Rocm(MajorMinor::new(7, 0))), "- stands in");
        assert_eq!(served(&all, Compute::Xpu(MajorMinor::new(2025, 2))), "xpu");
        // Without a build for the processor alone, the one of the package index is as good as its own.
        assert_eq!(served(&catalog(&["", "cu126"]), Compute::Cpu), "-");
        assert_eq!(served(&catalog(&["cu126"]), Compute::Cpu), "cu126");
        // A build of somebody's own is for whatever it is used for.
        assert_eq!(served(&catalog(&["nv25.1"]), cuda(8)), "nv25.1");
        assert_eq!(served(&catalog(&["", "cu126", "nv25.1"]), cuda(8)), "nv25.1");
        assert_eq!(served(&catalog(&["cpu"]), cuda(6)), "cpu stands in");
    }

    #[test]
    fn names_of_builds() {
        for (local, shown) in [("cu126", "12.6"), ("CU130", "13.0"), ("cu118", "11.8")] {
            let Flavour::Cuda(release) = flavour(local) else { panic!("{local}") };
            assert_eq!(release.to_string(), shown);
            assert_eq!(torch_local_for(Compute::Cuda(release)), Some(local.to_ascii_lowercase()));
        }
        assert_eq!(flavour("rocm6.4.1"), Flavour::Rocm(MajorMinor::new(6, 4)));
        assert_eq!(
            torch_compute_of("ROCm6.4.1").map(|(compute, version)| format!("{compute:?} {version}")),
            Some("Rocm(MajorMinor { major: 6, minor: 4 }) 6.4.1".to_owned())
        );
        assert_eq!([torch_compute_of("cu126"), torch_compute_of("xpu"), torch_compute_of("rocmx")], [None, None, None]);
        for local in ["cu", "cu1", "cuda", "rocm", "rocmx", "git1234", "cu12.6"] {
            assert_eq!(flavour(local), Flavour::Unknown, "{local}");
        }
    }
}
