//! Libraries that an extension may need, and the version nodes of those that are not of the baseline.

use kiln_format::variant::{Compute, Cpu};

use crate::expectation::{Expectation, Framework};

/// Libraries of the baseline.
const SYSTEM: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
/// Torch's libraries for every backend.
const TORCH: &[&str] = &["libtorch.so", "libtorch_cpu.so", "libc10.so"];
const TVM_FFI: &str = "libtvm_ffi.so";
/// The OpenMP runtime that torch ships.
const GOMP: &str = "libgomp.so.1";
/// The highest version nodes of torch's OpenMP runtime.
const GOMP_NODES: &[&str] = &[
    "GOMP_1.0",
    "GOMP_2.0",
    "GOMP_3.0",
    "GOMP_4.0",
    "GOMP_4.0.1",
    "GOMP_4.5",
    "OMP_1.0",
    "OMP_2.0",
    "OMP_3.0",
    "OMP_3.1",
    "OMP_4.0",
    "OMP_4.5",
];

/// What a backend brings: torch's libraries for it, and its runtime as a stem that a number follows.
struct BackendLibraries {
    torch: &'static [&'static str],
    runtime: &'static str,
}

const CUDA: BackendLibraries = BackendLibraries { torch: &["libtorch_cuda.so", "libc10_cuda.so"], runtime: "libcudart.so." };
const ROCM: BackendLibraries = BackendLibraries { torch: &["libtorch_hip.so", "libc10_hip.so"], runtime: "libamdhip64.so." };
const XPU: BackendLibraries = BackendLibraries { torch: &["libtorch_xpu.so", "libc10_xpu.so"], runtime: "libsycl.so." };
const CANN: BackendLibraries = BackendLibraries { torch: &["libtorch_npu.so"], runtime: "libascendcl.so" };

fn of_compute(compute: Compute) -> Option<&'static BackendLibraries> {
    match compute {
        Compute::Cuda(_) => Some(&CUDA),
        Compute::Rocm(_) => Some(&ROCM),
        Compute::Xpu(_) => Some(&XPU),
        Compute::Cann(_) => Some(&CANN),
        _ => None,
    }
}

/// Why a library must not be needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) detail: String,
    pub(crate) fix: String,
}

fn refusal(detail: impl Into<String>, fix: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal { detail: detail.into(), fix: fix.into() })
}

/// Whether a system of the baseline has the library.
pub(crate) fn is_of_baseline(soname: &str) -> bool {
    SYSTEM.contains(&soname)
}

/// Whether the library is one of torch's.
pub(crate) fn is_of_torch(soname: &str) -> bool {
    TORCH.contains(&soname) || [&CUDA, &ROCM, &XPU, &CANN].iter().any(|backend| backend.torch.contains(&soname))
}

/// Whether an extension as expected may need `soname`.
pub(crate) fn may_need(soname: &str, expected: &Expectation<'_>) -> Result<(), Refusal> {
    if expected.allowed_libraries.contains(soname) {
        return Ok(());
    }
    if soname.contains('/') {
        return refusal(
            format!("the library `{soname}` is needed by a path of the build machine"),
            "link a library that has a SONAME, and give the linker its directory instead of its path",
        );
    }
    if is_of_baseline(soname) {
        return match (expected.platform, soname) {
            (Some((Cpu::X86_64, _)), "ld-linux-aarch64.so.1") | (Some((Cpu::Aarch64, _)), "ld-linux-x86-64.so.2") => {
                refusal(format!("the loader `{soname}` of another processor is needed"), "link for the variant's processor")
            }
            _ => Ok(()),
        };
    }
    if soname == GOMP {
        return Ok(());
    }
    if soname.starts_with("libpython") {
        return refusal(
            format!("the library `{soname}` ties the extension to one Python"),
            "leave Python out of the link: the interpreter provides its names",
        );
    }
    if soname == "libtorch_python.so" {
        return refusal(
            "the library `libtorch_python.so` ties the extension to one Python and one torch",
            "register operators with `TORCH_LIBRARY` instead of pybind, and leave `libtorch_python` out of the link",
        );
    }
    if soname == "libcuda.so.1" {
        return refusal(
            "the driver library `libcuda.so.1` is missing on machines without a GPU, where the import would fail",
            "ask for driver functions at run time with `cudaGetDriverEntryPoint`",
        );
    }
    if soname == TVM_FFI && matches!(expected.framework, None | Some(Framework::TvmFfi)) {
        return Ok(());
    }
    if TORCH.contains(&soname) {
        return match expected.framework {
            Some(Framework::TvmFfi) => {
                refusal(format!("a tvm-ffi extension needs torch's library `{soname}`"), "use no torch headers in a tvm-ffi kernel")
            }
            _ => Ok(()),
        };
    }
    of_a_backend(soname, expected)
}

/// Whether an extension for macOS may need a library by this name: one of the system's, or one of the framework's by `@rpath`.
pub(crate) fn may_need_on_macos(name: &str, expected: &Expectation<'_>) -> Result<(), Refusal> {
    if expected.allowed_libraries.contains(name) || ["/usr/lib/", "/System/Library/"].iter().any(|dir| name.starts_with(dir)) {
        return Ok(());
    }
    let library = name.strip_prefix("@rpath/").and_then(|name| name.strip_suffix(".dylib"));
    let of_torch = library.is_some_and(|stem| TORCH.contains(&format!("{stem}.so").as_str()));
    let of_tvm_ffi = library.is_some_and(|stem| TVM_FFI.strip_suffix(".so") == Some(stem));
    match expected.framework {
        Some(Framework::TvmFfi) if of_tvm_ffi => Ok(()),
        Some(Framework::Torch | Framework::TorchStable(_)) if of_torch => Ok(()),
        None if of_torch || of_tvm_ffi => Ok(()),
        _ => refusal(
            format!("the library `{name}` is not one that users of the extension have"),
            "need libraries of macOS, and those of the framework as `@rpath/NAME.dylib`; leave Python out of the link",
        ),
    }
}

/// The verdict on a library that at most a backend brings.
fn of_a_backend(soname: &str, expected: &Expectation<'_>) -> Result<(), Refusal> {
    let torch_is_used = expected.framework != Some(Framework::TvmFfi);
    let owner = [&CUDA, &ROCM, &XPU, &CANN]
        .into_iter()
        .find(|backend| (torch_is_used && backend.torch.contains(&soname)) || is_runtime(soname, backend.runtime).is_some());
    let unknown = || {
        refusal(
            format!("the library `{soname}` is not one that users of the extension have"),
            "leave it out of the link, or compile what is used of it into the extension",
        )
    };
    let Some(owner) = owner else { return unknown() };
    let Some(compute) = expected.compute else { return Ok(()) };
    if of_compute(compute).is_none_or(|own| own.runtime != owner.runtime) {
        return refusal(
            format!("the library `{soname}` is of another backend than the variant, which is for {}", compute.backend()),
            "leave it out of the link, or build the variant of the other backend",
        );
    }
    // CUDA's runtime has the toolkit's major in its name; the numbers of the others count differently.
    if let (Compute::Cuda(version), Some(major)) = (compute, is_runtime(soname, CUDA.runtime))
        && major != version.major.to_string()
    {
        return refusal(
            format!("the library `{soname}` is not that of CUDA {version}"),
            format!("compile and link with a toolkit of CUDA {}", version.major),
        );
    }
    Ok(())
}

/// The number behind the stem of a runtime's name; empty where the name has none.
fn is_runtime<'s>(soname: &'s str, stem: &str) -> Option<&'s str> {
    let number = soname.strip_prefix(stem)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && number.is_empty() != stem.ends_with('.');
    is_number.then_some(number)
}

/// Whether `name`, wanted without a version, may be one that a library outside the baseline has, going by the name alone. A link with the
/// real library writes its version nodes down; one with a stub of a runtime does not.
pub(crate) fn may_have_unversioned(soname: &str, name: &str) -> bool {
    let starts = |prefix: &str| name.trim_start_matches('_').starts_with(prefix);
    if is_runtime(soname, CUDA.runtime).is_some() {
        return starts("cuda");
    }
    if is_runtime(soname, ROCM.runtime).is_some() {
        return starts("hip");
    }
    soname != GOMP
}

/// Whether `node` is a version node of a library that is not of the baseline; none when that is not known.
pub(crate) fn has_node(soname: &str, node: &str) -> Option<bool> {
    if soname == GOMP {
        return Some(GOMP_NODES.contains(&node));
    }
    if is_runtime(soname, CUDA.runtime).is_some() {
        return Some(node == soname);
    }
    if is_runtime(soname, ROCM.runtime).is_some() {
        return Some(node.starts_with("hip_"));
    }
    None
}
