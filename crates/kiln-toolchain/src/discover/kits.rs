//! The tables of vendors' toolkits: which variables name one, which program leads to one, where one usually is, and what one is
//! made of. Sources: the vendors' installation guides and file lists of their packages; Debian's from its packages.

use std::fmt;

use super::packages::Need;

/// A vendor's toolkit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KitKind {
    /// NVIDIA's CUDA toolkit.
    Cuda,
    /// AMD's ROCm.
    Rocm,
    /// Intel's oneAPI DPC++ compiler.
    OneApi,
    /// Apple's Metal tools.
    Metal,
    /// Huawei's CANN.
    Cann,
}

/// What a named value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// The kit's root.
    Root,
    /// A directory; the root is the first of these below it that exists.
    Below(&'static [&'static str]),
    /// Directories below the one that a variable names for other reasons, each with a file that must be there: that there is nothing
    /// is not worth a word.
    Perhaps(&'static [(&'static str, &'static str)]),
    /// A program in `bin` of the root.
    Program,
}

/// A thing that a kit is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// What it is called in messages, and the key under which it is found.
    pub(super) name: &'static str,
    /// Where it may be, relative to the root; the first that exists counts.
    pub(super) places: &'static [&'static str],
    /// Whether a kit without it compiles nothing.
    pub(super) must: bool,
    /// Which packages have it.
    pub(super) need: Need,
}

/// Where a kit usually is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// This directory.
    At(&'static str),
    /// Entries of a directory, by a prefix and a version, newest first.
    Versions(&'static str, &'static str),
    /// The same below the user's home.
    Home(&'static str),
    /// A system directory that is shared with everything else: a kit only when it has this file.
    Shared(&'static str, &'static str),
}

/// All that is known of a kit before looking.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) variables: &'static [(&'static str, Names)],
    pub(super) program: &'static str,
    pub(super) places: &'static [Place],
    pub(super) parts: &'static [Part],
    /// Parts and the wheels that bring them into a Python environment.
    pub(super) wheels: &'static [(&'static str, &'static str)],
    /// Names in a shared include directory that belong to the kit, by their beginnings.
    pub(super) headers: &'static [&'static str],
    /// The only system that it exists on.
    pub(super) only_on: Option<&'static str>,
}

const fn must(name: &'static str, need: Need, places: &'static [&'static str]) -> Part {
    Part { name, places, must: true, need }
}

const fn extra(name: &'static str, need: Need, places: &'static [&'static str]) -> Part {
    Part { name, places, must: false, need }
}

/// Where the wheels of CUDA 13 and later put themselves in a Python environment.
const WHEELS: (&str, &str) = ("lib/python*/site-packages/nvidia/cu*", ".");

/// Which wheel of CUDA brings which part.
const CUDA_WHEELS: &[(&str, &str)] = &[
    ("nvcc", "nvidia-cuda-nvcc"),
    ("cudafe++", "nvidia-cuda-nvcc"),
    ("ptxas", "nvidia-cuda-nvcc"),
    ("fatbinary", "nvidia-cuda-nvcc"),
    ("nvlink", "nvidia-cuda-nvcc"),
    ("cicc", "nvidia-nvvm"),
    ("libdevice.10.bc", "nvidia-nvvm"),
    ("crt/host_config.h", "nvidia-cuda-crt"),
    ("cuda_runtime.h", "nvidia-cuda-runtime"),
    ("libcudart.so", "nvidia-cuda-runtime"),
    ("libcudadevrt.a", "nvidia-cuda-runtime"),
    ("cub/cub.cuh", "nvidia-cuda-cccl"),
];

const CUDA: Table = Table {
    variables: &[
        ("CUDA_HOME", Names::Root),
        ("CUDA_PATH", Names::Root),
        ("CUDACXX", Names::Program),
        ("VIRTUAL_ENV", Names::Perhaps(&[WHEELS])),
        ("CONDA_PREFIX", Names::Perhaps(&[(".", "bin/nvcc"), WHEELS])),
    ],
    program: "nvcc",
    places: &[
        Place::At("/usr/local/cuda"),
        Place::Versions("/usr/local", "cuda-"),
        Place::At("/opt/cuda"),
        Place::Shared("/usr", "lib/nvidia-cuda-toolkit"),
    ],
    parts: &[
        must("nvcc", Need::Cuda, &["bin/nvcc"]),
        must("cudafe++", Need::Cuda, &["bin/cudafe++", "lib/nvidia-cuda-toolkit/bin/cudafe++"]),
        must("cicc", Need::Cuda, &["nvvm/bin/cicc", "lib/nvidia-cuda-toolkit/bin/cicc"]),
        must("ptxas", Need::Cuda, &["bin/ptxas", "lib/nvidia-cuda-toolkit/bin/ptxas"]),
        must("fatbinary", Need::Cuda, &["bin/fatbinary", "lib/nvidia-cuda-toolkit/bin/fatbinary"]),
        must(
            "libdevice.10.bc",
            Need::Cuda,
            &[
                "nvvm/libdevice/libdevice.10.bc",
                "lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc",
                "lib/cuda/nvvm/libdevice/libdevice.10.bc",
            ],
        ),
        must("crt/host_config.h", Need::Cuda, &["include/crt/host_config.h", "targets/{target}/include/crt/host_config.h"]),
        must("cuda_runtime.h", Need::Cuda, &["include/cuda_runtime.h", "targets/{target}/include/cuda_runtime.h"]),
        must(
            "libcudart.so",
            Need::Cuda,
            &[
                "lib64/libcudart.so",
                "lib/libcudart.so.*",
                "lib/libcudart.so",
                "targets/{target}/lib/libcudart.so",
                "lib/{multiarch}/libcudart.so",
            ],
        ),
        must(
            "cub/cub.cuh",
            Need::Cuda,
            &[
                "include/cub/cub.cuh",
                "include/cccl/cub/cub.cuh",
                "targets/{target}/include/cub/cub.cuh",
                "targets/{target}/include/cccl/cub/cub.cuh",
            ],
        ),
        extra("nvlink", Need::Cuda, &["bin/nvlink", "lib/nvidia-cuda-toolkit/bin/nvlink"]),
        extra(
            "libcudadevrt.a",
            Need::Cuda,
            &["lib64/libcudadevrt.a", "lib/libcudadevrt.a", "targets/{target}/lib/libcudadevrt.a", "lib/{multiarch}/libcudadevrt.a"],
        ),
    ],
    wheels: CUDA_WHEELS,
    headers: &[
        "builtin_types",
        "cccl",
        "channel_descriptor",
        "common_functions",
        "cooperative_groups",
        "crt",
        "cub",
        "cu",
        "device_",
        "driver_",
        "fatbin",
        "host_",
        "library_types",
        "math_",
        "nv",
        "sm_",
        "surface_",
        "texture_",
        "thrust",
        "vector_",
    ],
    only_on: None,
};

const ROCM: Table = Table {
    variables: &[("ROCM_PATH", Names::Root), ("ROCM_HOME", Names::Root), ("HIP_PATH", Names::Below(&[".", ".."]))],
    program: "hipcc",
    places: &[Place::At("/opt/rocm"), Place::Versions("/opt", "rocm-"), Place::Shared("/usr", "include/hip/hip_version.h")],
    parts: &[
        extra("hipcc", Need::Hip, &["bin/hipcc"]),
        must(
            "clang++",
            Need::Hip,
            &["llvm/bin/clang++", "lib/llvm/bin/clang++", "lib64/rocm/llvm/bin/clang++", "bin/clang++-*", "bin/clang-*"],
        ),
        must("ld.lld", Need::Hip, &["llvm/bin/ld.lld", "lib/llvm/bin/ld.lld", "lib64/rocm/llvm/bin/ld.lld", "bin/ld.lld-*"]),
        must("hip/hip_runtime.h", Need::HipRuntime, &["include/hip/hip_runtime.h"]),
        must(
            "ocml.bc",
            Need::RocmDeviceLibs,
            &[
                "amdgcn/bitcode/ocml.bc",
                "lib/llvm/lib/clang/*/lib/amdgcn/bitcode/ocml.bc",
                "lib/clang/*/amdgcn/bitcode/ocml.bc",
                "lib/{multiarch}/amdgcn/bitcode/ocml.bc",
                "lib/llvm-*/lib/clang/*/lib/amdgcn/bitcode/ocml.bc",
            ],
        ),
        must("libamdhip64.so", Need::HipRuntime, &["lib/libamdhip64.so", "lib64/libamdhip64.so", "lib/{multiarch}/libamdhip64.so"]),
        extra("thrust/version.h", Need::HipRuntime, &["include/thrust/version.h"]),
        extra("thrust/system/hip", Need::HipRuntime, &["include/thrust/system/hip"]),
    ],
    wheels: &[],
    headers: &["amd", "hip", "hsa", "roc", "thrust", "cub"],
    only_on: None,
};

const ONE_API: Table = Table {
    variables: &[("ONEAPI_ROOT", Names::Below(&["compiler/latest", "compiler/*", "."])), ("CMPLR_ROOT", Names::Root)],
    program: "icpx",
    places: &[
        Place::At("/opt/intel/oneapi/compiler/latest"),
        Place::Versions("/opt/intel/oneapi/compiler", ""),
        Place::Home("intel/oneapi/compiler/latest"),
    ],
    parts: &[
        must("icpx", Need::OneApi, &["bin/icpx", "linux/bin/icpx"]),
        must("icx", Need::OneApi, &["bin/icx", "linux/bin/icx"]),
        must("sycl/sycl.hpp", Need::OneApi, &["include/sycl/sycl.hpp", "linux/include/sycl/sycl.hpp"]),
        must("libsycl.so", Need::OneApi, &["lib/libsycl.so", "linux/lib/libsycl.so"]),
        // What the two drivers start: they are part of what decides a result.
        extra("clang++", Need::OneApi, &["bin/compiler/clang++", "bin/compiler/clang", "linux/bin-llvm/clang++"]),
        extra("llvm-spirv", Need::OneApi, &["bin/compiler/llvm-spirv", "linux/bin-llvm/llvm-spirv"]),
        extra("sycl-post-link", Need::OneApi, &["bin/compiler/sycl-post-link", "linux/bin-llvm/sycl-post-link"]),
        // What the compiler calls by itself.
        extra("libintlc.so.5", Need::OneApi, &["lib/libintlc.so.5", "linux/lib/libintlc.so.5"]),
        extra("libimf.so", Need::OneApi, &["lib/libimf.so", "linux/lib/libimf.so"]),
        extra("libirng.so", Need::OneApi, &["lib/libirng.so", "linux/lib/libirng.so"]),
        extra("libsvml.so", Need::OneApi, &["lib/libsvml.so", "linux/lib/libsvml.so"]),
        extra("ocloc", Need::OneApi, &["bin/ocloc", "../../ocloc/latest/bin/ocloc"]),
        extra("dnnl.hpp", Need::OneApi, &["include/dnnl.hpp", "../../dnnl/latest/include/dnnl.hpp"]),
        extra("libdnnl.a", Need::OneApi, &["lib/libdnnl.a", "../../dnnl/latest/lib/libdnnl.a"]),
    ],
    wheels: &[],
    headers: &["sycl", "CL"],
    only_on: None,
};

const METAL: Table = Table {
    variables: &[("DEVELOPER_DIR", Names::Below(&[".", "Contents/Developer"]))],
    program: "",
    places: &[
        Place::At("/var/db/xcode_select_link"),
        Place::At("/Applications/Xcode.app/Contents/Developer"),
        Place::At("/Library/Developer/CommandLineTools"),
    ],
    parts: &[
        must(
            "metal",
            Need::AppleTools,
            &["Toolchains/XcodeDefault.xctoolchain/usr/bin/metal", "Toolchains/Metal.xctoolchain/usr/bin/metal"],
        ),
        must(
            "metallib",
            Need::AppleTools,
            &["Toolchains/XcodeDefault.xctoolchain/usr/bin/metallib", "Toolchains/Metal.xctoolchain/usr/bin/metallib"],
        ),
        must("clang++", Need::AppleTools, &["Toolchains/XcodeDefault.xctoolchain/usr/bin/clang++", "usr/bin/clang++"]),
        must("MacOSX.sdk", Need::AppleTools, &["Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk", "SDKs/MacOSX.sdk"]),
    ],
    wheels: &[],
    headers: &[],
    only_on: Some("macos"),
};

const CANN: Table = Table {
    variables: &[("ASCEND_HOME_PATH", Names::Root), ("ASCEND_TOOLKIT_HOME", Names::Root)],
    program: "bisheng",
    places: &[Place::At("/usr/local/Ascend/ascend-toolkit/latest"), Place::Home("Ascend/ascend-toolkit/latest")],
    parts: &[
        must(
            "bisheng",
            Need::Cann,
            &["bin/bisheng", "compiler/ccec_compiler/bin/bisheng", "{cpu}-linux/ccec_compiler/bin/bisheng", "ccec_compiler/bin/bisheng"],
        ),
        must("acl/acl.h", Need::Cann, &["include/acl/acl.h", "{cpu}-linux/include/acl/acl.h"]),
        must("libascendcl.so", Need::Cann, &["lib64/libascendcl.so", "{cpu}-linux/lib64/libascendcl.so"]),
        extra("libascendc_runtime.a", Need::Cann, &["lib64/libascendc_runtime.a", "{cpu}-linux/lib64/libascendc_runtime.a"]),
        extra("libasc_plugin.so", Need::Cann, &["lib64/plugin/asc/libasc_plugin.so", "{cpu}-linux/lib64/plugin/asc/libasc_plugin.so"]),
    ],
    wheels: &[],
    headers: &["acl"],
    only_on: None,
};

impl KitKind {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Rocm, Self::OneApi, Self::Metal, Self::Cann];

    /// Its name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::OneApi => "oneapi",
            Self::Metal => "metal",
            Self::Cann => "cann",
        }
    }

    /// The variables of the environment that may lead to one, in the order in which they are looked at.
    pub fn variables(self) -> impl Iterator<Item = &'static str> {
        self.table().variables.iter().map(|(name, _)| *name)
    }

    pub(super) fn table(self) -> &'static Table {
        match self {
            Self::Cuda => &CUDA,
            Self::Rocm => &ROCM,
            Self::OneApi => &ONE_API,
            Self::Metal => &METAL,
            Self::Cann => &CANN,
        }
    }

    /// Whom to ask for one where there is none.
    pub fn need(self) -> Need {
        match self {
            Self::Cuda => Need::Cuda,
            Self::Rocm => Need::Hip,
            Self::OneApi => Need::OneApi,
            Self::Metal => Need::AppleTools,
            Self::Cann => Need::Cann,
        }
    }
}

impl fmt::Display for KitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "CUDA",
            Self::Rocm => "ROCm",
            Self::OneApi => "oneAPI",
            Self::Metal => "Metal",
            Self::Cann => "CANN",
        })
    }
}
