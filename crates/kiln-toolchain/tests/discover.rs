//! What is found of toolkits, compilers and Pythons on machines that are directories of a test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kiln_toolchain::discover::{Distribution, Findings, KitKind, View, compilers, find, identity, pythons};

/// A machine: a directory that stands for `/`, and an environment.
struct Machine {
    dir: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    os: &'static str,
    cpu: &'static str,
}

impl Machine {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), environment: BTreeMap::new(), os: "linux", cpu: "x86_64" }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = if name.contains("bin/") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn files(&self, root: &str, names: &[&str]) -> &Self {
        for name in names {
            self.file(&format!("{root}/{name}"), "");
        }
        self
    }

    fn link(&self, name: &str, target: &str) -> &Self {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        symlink(self.path(target), self.path(name)).unwrap();
        self
    }

    /// Sets a variable; `@` in its value stands for the machine's directory.
    fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.environment.insert(name.to_owned(), value.replace('@', &self.dir.path().display().to_string()));
        self
    }

    fn view(&self) -> View<'_> {
        View { root: self.dir.path(), environment: &self.environment, os: self.os, cpu: self.cpu }
    }

    fn find(&self, kind: KitKind) -> Findings {
        find(kind, &self.view(), None)
    }

    /// What was found, as text.
    fn say(&self, kind: KitKind) -> String {
        let found = self.find(kind);
        let mut text = String::new();
        if let Some(os) = found.only_on {
            text += &format!("only on {os}\n");
        }
        for kit in &found.candidates {
            let taken = if found.taken() == Some(kit) { "taken" } else { "found" };
            let version = kit.version.as_ref().map_or("?".to_owned(), ToString::to_string);
            text += &format!("{taken} {version} at {} by {}", kit.root.display(), kit.origin);
            let lacks: Vec<&str> = kit.lacks.iter().filter(|lack| lack.must).map(|lack| lack.name).collect();
            if !lacks.is_empty() {
                text += &format!(", lacks {}", lacks.join(" "));
            }
            text += "\n";
        }
        for passed in &found.passed {
            text += &format!("passed {} of {}: {}\n", passed.value, passed.origin, passed.reason);
        }
        if text.is_empty() {
            text = format!("nothing in {}\n", found.looked.join(", "));
        }
        text.replace(&self.dir.path().display().to_string(), "@")
    }
}

const CUDA: &[&str] = &[
    "bin/nvcc",
    "bin/cudafe++",
    "bin/ptxas",
    "bin/fatbinary",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "include/crt/host_config.h",
    "include/cuda_runtime.h",
    "include/cub/cub.cuh",
    "lib64/libcudart.so",
];

const ROCM: &[&str] =
    &["bin/hipcc", "llvm/bin/clang++", "llvm/bin/ld.lld", "include/hip/hip_runtime.h", "amdgcn/bitcode/ocml.bc", "lib/libamdhip64.so"];

fn cuda(machine: &Machine, root: &str, version: &str) {
    machine.files(root, CUDA).file(&format!("{root}/include/cuda.h"), &format!("#define CUDA_VERSION {version}\n"));
}

#[test]
fn nothing_is_told_with_the_places_that_were_looked_at() {
    let machine = Machine::new();
    let all: String = KitKind::ALL.into_iter().map(|kind| format!("{kind}: {}", machine.say(kind))).collect();
    insta::assert_snapshot!(all, @"
    CUDA: nothing in CUDA_HOME, CUDA_PATH, CUDACXX, VIRTUAL_ENV, CONDA_PREFIX, `nvcc` on PATH, /usr/local/cuda, /usr/local/cuda-X.Y, /opt/cuda, /usr
    ROCm: nothing in ROCM_PATH, ROCM_HOME, HIP_PATH, `hipcc` on PATH, /opt/rocm, /opt/rocm-X.Y, /usr
    oneAPI: nothing in ONEAPI_ROOT, CMPLR_ROOT, `icpx` on PATH, /opt/intel/oneapi/compiler/latest, /opt/intel/oneapi/compiler/X.Y, ~/intel/oneapi/compiler/latest
    Metal: only on macos
    CANN: nothing in ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, `bisheng` on PATH, /usr/local/Ascend/ascend-toolkit/latest, ~/Ascend/ascend-toolkit/latest
    ");
}

#[test]
fn cuda_is_found_in_its_order() {
    let mut machine = Machine::new();
    cuda(&machine, "usr/local/cuda-13.2", "13020");
    cuda(&machine, "usr/local/cuda-12.8", "12080");
    cuda(&machine, "usr/local/cuda-9.9", "9090");
    machine.link("usr/local/cuda", "usr/local/cuda-12.8");
    cuda(&machine, "opt/cuda", "13010");
    // A link of the system's alternatives leads to another directory than its own.
    cuda(&machine, "opt/other", "13000");
    machine.link("bin/nvcc", "opt/other/bin/nvcc");
    machine.set("PATH", "@/bin");
    insta::assert_snapshot!(machine.say(KitKind::Cuda), @"
    taken 13.0 at @/opt/other by `nvcc` on PATH
    found 12.8 at @/usr/local/cuda by its usual place
    found 13.2 at @/usr/local/cuda-13.2 by its usual place
    found 9.9 at @/usr/local/cuda-9.9 by its usual place
    found 13.1 at @/opt/cuda by its usual place
    ");
    // A runtime image: libraries, no compiler.
    machine
        .files("home/rt", &["lib64/libcudart.so", "include/cuda_runtime.h"])
        .file("home/rt/version.json", r#"{"cuda": {"version": "12.4.1"}}"#);
    machine.set("CUDA_HOME", "@/home/rt").set("CUDA_PATH", "@/home/none").set("CUDACXX", "nvcc-99");
    insta::assert_snapshot!(machine.say(KitKind::Cuda).lines().filter(|line| !line.contains("usual")).collect::<Vec<_>>().join("\n"), @"
    found 12.4 at @/home/rt by CUDA_HOME, lacks nvcc cudafe++ cicc ptxas fatbinary libdevice.10.bc crt/host_config.h cub/cub.cuh
    taken 13.0 at @/opt/other by `nvcc` on PATH
    passed @/home/none of CUDA_PATH: does not exist
    passed nvcc-99 of CUDACXX: is not on PATH
    ");
    machine.set("CUDA_HOME", "cuda").set("CUDA_PATH", "@/opt/cuda").set("CUDACXX", "@/opt/other/bin/nvcc");
    insta::assert_snapshot!(machine.say(KitKind::Cuda).lines().filter(|line| !line.contains("usual")).collect::<Vec<_>>().join("\n"), @"
    taken 13.1 at @/opt/cuda by CUDA_PATH
    found 13.0 at @/opt/other by CUDACXX
    passed cuda of CUDA_HOME: is no absolute path
    ");
    let named = find(KitKind::Cuda, &machine.view(), Some(("--cuda-home", &machine.path("usr/local/cuda-13.2"))));
    assert_eq!(named.taken().unwrap().origin.to_string(), "`--cuda-home`");
}

#[test]
fn cuda_of_environments_and_of_debian() {
    let mut machine = Machine::new();
    let wheels = "venv/lib/python3.11/site-packages/nvidia/cu13";
    machine.files(wheels, &CUDA[..8]).files(wheels, &["lib/libcudart.so.13", "include/cccl/cub/cub.cuh", "include/cccl/nv/target"]);
    machine.file(&format!("{wheels}/include/cuda_runtime_api.h"), "#define CUDART_VERSION  13000\n");
    machine.set("VIRTUAL_ENV", "@/venv");
    let found = machine.find(KitKind::Cuda);
    let kit = found.taken().unwrap();
    assert_eq!(kit.version.as_ref().unwrap().as_str(), "13.0");
    assert_eq!(kit.part("libcudart.so").unwrap(), machine.path(wheels).join("lib/libcudart.so.13"));
    assert_eq!(kit.include_dirs(), ["include", "include/cccl"].map(|dir| machine.path(wheels).join(dir)));

    // A venv that has the libraries that torch needs, and no compiler, is told and not taken.
    fs::remove_file(machine.path(wheels).join("bin/nvcc")).unwrap();
    // conda-forge: programs in the prefix, headers by target.
    machine.files("conda", &CUDA[..6]).files("conda/targets/x86_64-linux", &["include/crt/host_config.h", "include/cuda_runtime.h"]);
    machine.files("conda/targets/x86_64-linux", &["lib/libcudart.so", "include/cccl/cub/cub.cuh"]);
    machine.file("conda/targets/x86_64-linux/include/cuda.h", "#define CUDA_VERSION 12060\n");
    machine.set("CONDA_PREFIX", "@/conda");
    // Debian: in the system's directories.
    let own = "usr/lib/nvidia-cuda-toolkit";
    machine.files(own, &["bin/cudafe++", "bin/ptxas", "bin/fatbinary", "bin/cicc", "libdevice/libdevice.10.bc"]);
    machine.files("usr", &["bin/nvcc", "include/crt/host_config.h", "include/cuda_runtime.h", "include/cub/cub.cuh"]);
    machine.file("usr/include/cuda.h", "#define CUDA_VERSION 11080\n").file("usr/lib/x86_64-linux-gnu/libcudart.so", "");
    machine.set("PATH", "@/usr/bin");
    let found = machine.find(KitKind::Cuda);
    assert_eq!(found.candidates[0].lacks.iter().find(|lack| lack.must).unwrap().wheel, Some("nvidia-cuda-nvcc"));
    insta::assert_snapshot!(machine.say(KitKind::Cuda), @"
    found 13.0 at @/venv/lib/python3.11/site-packages/nvidia/cu13 by VIRTUAL_ENV, lacks nvcc
    taken 12.6 at @/conda by CONDA_PREFIX
    found 11.8 at @/usr by `nvcc` on PATH
    ");
}

#[test]
fn a_launcher_called_nvcc_is_no_kit() {
    let mut machine = Machine::new();
    cuda(&machine, "opt/cuda", "13020");
    machine.file("usr/bin/ccache", "").link("usr/lib/ccache/bin/nvcc", "usr/bin/ccache");
    machine.set("PATH", "@/usr/lib/ccache/bin:@/opt/cuda/bin:relative");
    insta::assert_snapshot!(machine.say(KitKind::Cuda), @"taken 13.2 at @/opt/cuda by `nvcc` on PATH");
}

#[test]
fn rocm_in_opt_and_of_debian() {
    let mut machine = Machine::new();
    machine.files("opt/rocm-6.4.1", ROCM).file("opt/rocm-6.4.1/.info/version", "6.4.1-83\n");
    machine
        .files("opt/rocm-10.0.0", ROCM)
        .file("opt/rocm-10.0.0/share/hip/version", "HIP_VERSION_MAJOR=10\nHIP_VERSION_MINOR=0\nHIP_VERSION_PATCH=1\n");
    machine.link("opt/rocm", "opt/rocm-6.4.1");
    // Debian's packages, but for the device libraries.
    machine
        .files("usr", &["bin/hipcc", "bin/clang-15", "bin/ld.lld-15", "include/hip/hip_runtime.h", "lib/x86_64-linux-gnu/libamdhip64.so"]);
    machine.file(
        "usr/include/hip/hip_version.h",
        "#define HIP_VERSION_MAJOR 5\n#define HIP_VERSION_MINOR 2\n# define HIP_VERSION_PATCH 21153\n",
    );
    insta::assert_snapshot!(machine.say(KitKind::Rocm), @"
    taken 6.4.1 at @/opt/rocm by its usual place
    found 10.0.1 at @/opt/rocm-10.0.0 by its usual place
    found 5.2.21153 at @/usr by its usual place, lacks ocml.bc
    ");
    machine.file("opt/old/hip/include/x.h", "").files("opt/old", &ROCM[..4]).file("opt/old/.info/version", "soon\n");
    machine.set("HIP_PATH", "@/opt/old/hip").set("ROCM_PATH", "@/opt/rocm-6.4.1");
    insta::assert_snapshot!(machine.say(KitKind::Rocm).lines().take(2).collect::<Vec<_>>().join("\n"), @"
    taken 6.4.1 at @/opt/rocm-6.4.1 by ROCM_PATH
    found ? at @/opt/old by HIP_PATH, lacks ocml.bc libamdhip64.so
    ");
}

#[test]
fn one_api_cann_and_metal() {
    let mut machine = Machine::new();
    let sycl = ["bin/icpx", "bin/icx", "include/sycl/sycl.hpp", "lib/libsycl.so"];
    machine.files("opt/intel/oneapi/compiler/2025.3", &sycl).link("opt/intel/oneapi/compiler/latest", "opt/intel/oneapi/compiler/2025.3");
    machine.files("opt/intel/oneapi/compiler/2024.1", &sycl[..2]);
    machine.set("HOME", "@/home");
    let cann = "home/Ascend/ascend-toolkit/latest";
    machine.files(cann, &["compiler/ccec_compiler/bin/bisheng", "x86_64-linux/include/acl/acl.h", "lib64/libascendcl.so"]);
    machine.file(&format!("{cann}/version.cfg"), "# version: 1.0\ntoolkit_running_version=[7.6.0.1.220:8.1.RC1]\n");
    machine.set("ONEAPI_ROOT", "@/opt/intel/oneapi");
    insta::assert_snapshot!(machine.say(KitKind::OneApi) + &machine.say(KitKind::Cann) + &machine.say(KitKind::Metal), @"
    taken 2025.3 at @/opt/intel/oneapi/compiler/latest by ONEAPI_ROOT
    found 2024.1 at @/opt/intel/oneapi/compiler/2024.1 by its usual place, lacks sycl/sycl.hpp libsycl.so
    taken 8.1 at @/home/Ascend/ascend-toolkit/latest by its usual place
    only on macos
    ");
    // Since 8.5 the compiler lies below the directory of the processor, which the variable may name itself.
    let files = ["ccec_compiler/bin/bisheng", "include/acl/acl.h", "lib64/libascendcl.so"];
    machine.files("opt/cann/x86_64-linux", &files).file("opt/cann/x86_64-linux/ascend_toolkit_install.info", "version=8.5.0\n");
    machine.link("opt/cann/lib64", "opt/cann/x86_64-linux/lib64");
    for named in ["@/opt/cann", "@/opt/cann/x86_64-linux"] {
        machine.set("ASCEND_HOME_PATH", named);
        let taken = format!("taken 8.5.0 at {named} by ASCEND_HOME_PATH");
        assert_eq!(machine.say(KitKind::Cann).lines().next(), Some(taken.as_str()));
    }
    machine.os = "macos";
    machine.files("Library/Developer/CommandLineTools", &["usr/bin/clang++", "SDKs/MacOSX.sdk/x"]);
    insta::assert_snapshot!(machine.say(KitKind::Metal), @"found ? at @/Library/Developer/CommandLineTools by its usual place, lacks metal metallib");
}

#[test]
fn an_identity_changes_when_a_file_does_and_not_with_the_place() {
    let machine = Machine::new();
    cuda(&machine, "opt/cuda", "13020");
    cuda(&machine, "usr/local/cuda", "13020");
    machine.link("opt/cuda/include/loop", "opt/cuda/include").link("usr/local/cuda/include/loop", "usr/local/cuda/include");
    let cache = machine.path("cache");
    let of = |at: usize| identity(&machine.find(KitKind::Cuda).candidates[at], &cache).unwrap();
    assert_eq!(of(0), of(1));
    let mut seen = vec![of(1), of(1)];
    seen.dedup();
    for (name, text) in [("nvvm/bin/cicc", "new"), ("include/crt/more.h", "x"), ("include/crt/more.h", "y")] {
        machine.file(&format!("opt/cuda/{name}"), text);
        seen.push(of(1));
        assert_ne!(of(0), of(1));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn compilers_by_name() {
    let mut machine = Machine::new();
    machine.files("usr", &["bin/x86_64-linux-gnu-g++-12", "bin/clang-19", "bin/g++-9", "bin/ccache", "bin/g++-x", "bin/gcc"]);
    machine.link("usr/bin/g++-12", "usr/bin/x86_64-linux-gnu-g++-12").link("usr/bin/g++", "usr/bin/g++-12");
    machine.link("usr/bin/c++", "usr/bin/g++").link("usr/bin/clang++-19", "usr/bin/clang-19");
    machine.link("usr/lib/ccache/g++", "usr/bin/ccache").link("usr/lib/ccache/g++-12", "usr/bin/ccache");
    machine.file("usr/bin/clang++", "");
    fs::set_permissions(machine.path("usr/bin/clang++"), fs::Permissions::from_mode(0o644)).unwrap();
    machine.link("bin", "usr/bin");
    machine.set("PATH", "@/usr/lib/ccache:@/usr/bin:@/bin:@/none");
    let found: String = compilers(&machine.view())
        .iter()
        .map(|compiler| {
            let short = |path: &Path| path.strip_prefix(machine.dir.path().canonicalize().unwrap()).unwrap_or(path).display().to_string();
            format!(
                "{} is {} {}\n",
                compiler.path.strip_prefix(machine.dir.path()).unwrap().display(),
                short(&compiler.real),
                compiler.through.as_deref().unwrap_or_default()
            )
        })
        .collect();
    insta::assert_snapshot!(found, @"
    usr/lib/ccache/g++ is usr/bin/ccache ccache
    usr/lib/ccache/g++-12 is usr/bin/ccache ccache
    usr/bin/c++ is usr/bin/x86_64-linux-gnu-g++-12 
    usr/bin/clang++-19 is usr/bin/clang-19 
    usr/bin/g++-9 is usr/bin/g++-9
    ");
}

#[test]
fn pythons_in_their_order() {
    let mut machine = Machine::new();
    machine.files("usr", &["bin/python3.11"]).link("usr/bin/python3", "usr/bin/python3.11").link("bin", "usr/bin");
    machine.link("venv/bin/python", "usr/bin/python3").file("venv/pyvenv.cfg", "").link("venv/bin/python3", "usr/bin/python3");
    machine.files("conda", &["bin/python3", "conda-meta/history"]);
    machine.set("PATH", "@/venv/bin:@/usr/bin:@/bin").set("VIRTUAL_ENV", "@/venv").set("CONDA_PREFIX", "@/conda");
    let say = |machine: &Machine, named: Option<(&str, &Path)>| {
        let (found, passed) = pythons(&machine.view(), named);
        let found = found.iter().map(|python| format!("{} by {}, a {}\n", python.python.display(), python.origin, python.layout.as_str()));
        let passed = passed.iter().map(|passed| format!("passed {} of {}: {}\n", passed.value, passed.origin, passed.reason));
        found.chain(passed).collect::<String>().replace(&machine.dir.path().display().to_string(), "@")
    };
    insta::assert_snapshot!(say(&machine, None), @"
    @/venv/bin/python by VIRTUAL_ENV, a virtual environment
    @/conda/bin/python3 by CONDA_PREFIX, a conda environment
    ");
    machine.set("VIRTUAL_ENV", "@/gone").set("CONDA_PREFIX", "@/usr/bin").set("PATH", "@/bin");
    insta::assert_snapshot!(say(&machine, Some(("--torch-from", Path::new("python9")))), @"
    @/bin/python3 by `python3` on PATH, a installation
    passed python9 of `--torch-from`: does not exist
    passed @/gone of VIRTUAL_ENV: does not exist
    passed @/usr/bin of CONDA_PREFIX: has no `bin/python`
    ");
}

#[test]
fn the_distribution_of_a_machine() {
    let machine = Machine::new();
    assert_eq!(Distribution::of(&machine.view()).name, "linux");
    machine.file("usr/lib/os-release", "ID=fedora\nPRETTY_NAME=\"Fedora Linux 44\"\n");
    assert_eq!(Distribution::of(&machine.view()).name, "Fedora Linux 44");
}
