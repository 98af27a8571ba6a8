//! Vendors' toolkits.

use std::path::Path;

use kiln_toolchain::discover::{Candidate, Distribution, Findings, KitKind, Lack, find, identity};

use super::{Examination, Item, Section, State};
use crate::backends::VENDORS;

/// What was found of one kind.
pub(super) fn section(kind: KitKind, examination: &Examination<'_>, distribution: &Distribution) -> Section {
    let vendor = VENDORS.iter().find(|vendor| vendor.kit() == Some(kind));
    let named = vendor.and_then(|vendor| Some((vendor.option()?, examination.services.sources.named(vendor.backend())?)));
    // Where somebody asks for it, it is worth saying how to have one.
    let wanted = !examination.backends.is_empty();
    told(&find(kind, &examination.view, named), distribution, examination.services.cache_dir, wanted)
}

/// Findings as a section. `wanted`: somebody asked for such a kit.
fn told(found: &Findings, distribution: &Distribution, cache_dir: &Path, wanted: bool) -> Section {
    let kind = found.kind;
    let taken = found.taken().cloned();
    let mut items = Vec::new();
    for kit in &found.candidates {
        let is_taken = taken.as_ref() == Some(kit);
        let state = if kit.is_complete() { State::Found } else { State::Lacks };
        let missing: Vec<&Lack> = kit.lacks.iter().filter(|lack| lack.must).collect();
        items.push(Item {
            version: kit.version.as_ref().map(ToString::to_string),
            path: Some(kit.root.clone()),
            origin: Some(kit.origin.to_string()),
            lacks: missing.iter().map(|lack| lack.name.to_owned()).collect(),
            install: missing.first().and_then(|_| remedy(kit, &missing, distribution)),
            // Reading a whole kit is only worth it for the one that counts.
            identity: if is_taken { identity(kit, cache_dir).ok() } else { None },
            ..Item::new(state, kind.to_string())
        });
    }
    for passed in &found.passed {
        items.push(Item {
            origin: Some(passed.origin.to_string()),
            detail: Some(format!("`{}` {}", passed.value, passed.reason)),
            ..Item::new(State::Unusable, kind.to_string())
        });
    }
    if let Some(os) = found.only_on {
        let os = if os == "macos" { "macOS" } else { os };
        items.push(Item { detail: Some(format!("only on {os}")), ..Item::new(State::Skipped, kind.to_string()) });
    } else if found.candidates.is_empty() {
        let install = wanted.then(|| distribution.install(kind.need())).flatten();
        items.push(Item { install, ..Item::new(State::None, kind.to_string()) });
    }
    Section { key: kind.as_str(), title: kind.to_string(), items, looked: found.looked.clone() }
}

/// How to have what a kit lacks: each thing to do once.
fn remedy(kit: &Candidate, missing: &[&Lack], distribution: &Distribution) -> Option<String> {
    let mut remedies: Vec<String> = Vec::new();
    // Wheels of different releases do not work together.
    let release = kit.version.as_ref().map(|version| format!("=={version}.*")).unwrap_or_default();
    let wheels: Vec<String> = missing.iter().filter_map(|lack| Some(format!("{}{release}", lack.wheel?))).collect();
    for lack in missing {
        let remedy = match lack.wheel {
            Some(_) => {
                let mut names = wheels.clone();
                names.sort();
                names.dedup();
                Some(format!("run `pip install {}`", names.join(" ")))
            }
            None => distribution.install(lack.need),
        };
        remedies.extend(remedy.filter(|remedy| !remedies.contains(remedy)));
    }
    (!remedies.is_empty()).then(|| remedies.join("; "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use kiln_toolchain::discover::View;

    use super::super::report::section_text;
    use super::*;

    /// What is said of the kits of a machine that has these files.
    fn say(kind: KitKind, os_release: &str, files: &[&str], variables: &[(&str, &str)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = if name.ends_with("cuda_runtime_api.h") { "#define CUDART_VERSION 13000\n" } else { "" };
            fs::write(path, text).unwrap();
        }
        let here = dir.path().display().to_string();
        let environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.replace('@', &here))).collect();
        let view = View { root: dir.path(), environment: &environment, os: "linux", cpu: "x86_64" };
        let distribution = Distribution::parse(os_release, "linux");
        let section = told(&find(kind, &view, None), &distribution, &dir.path().join("cache"), true);
        section_text(&section, false).replace(&here, "@")
    }

    #[test]
    fn rocm_of_a_vendor_and_of_a_distribution() {
        let whole = [
            "bin/hipcc",
            "llvm/bin/clang++",
            "llvm/bin/ld.lld",
            "include/hip/hip_runtime.h",
            "amdgcn/bitcode/ocml.bc",
            "lib/libamdhip64.so",
        ];
        let whole = whole.map(|name| format!("opt/rocm/{name}"));
        let mut files: Vec<&str> = whole.iter().map(String::as_str).collect();
        insta::assert_snapshot!(say(KitKind::Rocm, "ID=debian", &files, &[]), @"
        ROCm
          found    ROCm at @/opt/rocm, from its usual place
        ");
        // Debian's compiler, without what belongs to it.
        files = vec![
            "usr/bin/hipcc",
            "usr/bin/clang-15",
            "usr/bin/ld.lld-15",
            "usr/include/hip/hip_version.h",
            "usr/include/hip/hip_runtime.h",
        ];
        insta::assert_snapshot!(say(KitKind::Rocm, "ID=debian", &files, &[("HIP_PATH", "@/gone")]), @"
        ROCm
          lacks    ROCm at @/usr, from its usual place: `ocml.bc`, `libamdhip64.so`
                   hint: run `apt install rocm-device-libs`, or install AMD's ROCm packages; run `apt install libamdhip64-dev`, or install AMD's ROCm packages
          unusable ROCm, from HIP_PATH: `@/gone` does not exist
        ");
        insta::assert_snapshot!(say(KitKind::Rocm, "ID=fedora", &[], &[]), @"
        ROCm
          none     nothing was found
                   hint: run `dnf install hipcc`, or install AMD's ROCm packages
        ");
        insta::assert_snapshot!(say(KitKind::Rocm, "", &[], &[]), @"
        ROCm
          none     nothing was found
                   hint: install AMD's ROCm packages
        ");
    }

    #[test]
    fn wheels_without_the_compiler() {
        let root = "venv/lib/python3.12/site-packages/nvidia/cu13";
        let files = ["include/cuda_runtime.h", "include/cuda_runtime_api.h", "lib/libcudart.so.13", "include/crt/host_config.h"];
        let files = files.map(|name| format!("{root}/{name}"));
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        insta::assert_snapshot!(say(KitKind::Cuda, "ID=ubuntu", &files, &[("VIRTUAL_ENV", "@/venv")]), @"
        CUDA
          lacks    CUDA 13.0 at @/venv/lib/python3.12/site-packages/nvidia/cu13, from VIRTUAL_ENV: `nvcc`, `cudafe++`, `cicc`, `ptxas`, `fatbinary`, `libdevice.10.bc`, `cub/cub.cuh`
                   hint: run `pip install nvidia-cuda-cccl==13.0.* nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.*`
        ");
    }
}
