//! The catalog's files as text.

use std::fmt::Write as _;

use crate::catalog::{CudaToolkit, HeaderLibrary, TorchNpuRelease, TorchRelease, TvmFfiRelease};
use crate::part::WheelPin;

/// The first lines of the list of torch releases.
const TORCH: &str = "\
# The torch wheels that Kiln knows. Written by `cargo xtask catalog`: each wheel was read whole and its sha256 compared
# with what the index says before `record_sha256` was taken from it.
";

/// The first lines of the list of torch-npu releases.
const TORCH_NPU: &str = "\
# The wheels of torch-npu that Kiln knows. Written by `cargo xtask catalog`, which read each of them whole: the release of torch that each
# goes with is the one that its own metadata require.
";

/// The first lines of the list of tvm-ffi releases.
const TVM_FFI: &str = "\
# The wheels of tvm-ffi that Kiln knows. Written by `cargo xtask catalog`, which read each of them whole.
";

/// The first lines of the list of toolkits.
const CUDA: &str = "\
# CUDA toolkits. Written by `cargo xtask catalog`, which read each wheel whole: which versions belong together is what the metadata of
# `cuda-toolkit` say, the limits of host compilers stand in `crt/host_config.h`, the architectures are those that nvcc lists.
";

/// The first lines of the list of libraries of headers.
const HEADERS: &str = "\
# Libraries of headers that kernels name in `depends`. Written by `cargo xtask catalog`, which read each wheel whole: the release is what
# the headers themselves state.
";

/// `torch.toml` with these releases, by ascending version, then platform.
pub fn render_torch(releases: &[TorchRelease]) -> String {
    let mut releases: Vec<&TorchRelease> = releases.iter().collect();
    releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
    let mut text = TORCH.to_owned();
    for release in releases {
        let cuda = release.cuda.as_ref().map(|cuda| format!("cuda = \"{cuda}\"\n")).unwrap_or_default();
        let TorchRelease { version, platform, cxx_level, license, names, .. } = release;
        // Writing to memory does not fail.
        let _ = write!(text, "\n[[torch]]\nversion = \"{version}\"\nplatform = \"{platform}\"\n{}", pin("wheel", &release.wheel));
        let _ = write!(text, "{cuda}cxx = \"{cxx_level}\"\nlicense = \"{license}\"\nnames = \"{names}\"\n");
    }
    text
}

/// `torch-npu.toml` with these releases, by the release of torch that each is for, then platform.
pub fn render_torch_npu(releases: &[TorchNpuRelease]) -> String {
    let mut releases: Vec<&TorchNpuRelease> = releases.iter().collect();
    releases.sort_by(|a, b| (&a.torch, &a.platform).cmp(&(&b.torch, &b.platform)));
    let mut text = TORCH_NPU.to_owned();
    for TorchNpuRelease { torch, platform, wheel, license, names } in releases {
        let _ = write!(text, "\n[[torch-npu]]\ntorch = \"{torch}\"\nplatform = \"{platform}\"\n{}", pin("wheel", wheel));
        let _ = write!(text, "license = \"{license}\"\nnames = \"{names}\"\n");
    }
    text
}

/// `tvm-ffi.toml` with these releases, by ascending version, then platform.
pub fn render_tvm_ffi(releases: &[TvmFfiRelease]) -> String {
    let mut releases: Vec<&TvmFfiRelease> = releases.iter().collect();
    releases.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
    let mut text = TVM_FFI.to_owned();
    for TvmFfiRelease { version, platform, wheel, license, names } in releases {
        let _ = write!(text, "\n[[tvm-ffi]]\nversion = \"{version}\"\nplatform = \"{platform}\"\n{}", pin("wheel", wheel));
        let _ = write!(text, "license = \"{license}\"\nnames = \"{names}\"\n");
    }
    text
}

/// `cuda.toml` with these toolkits, by ascending version, then platform.
pub fn render_cuda(toolkits: &[CudaToolkit]) -> String {
    let mut toolkits: Vec<&CudaToolkit> = toolkits.iter().collect();
    toolkits.sort_by(|a, b| (&a.version, &a.platform).cmp(&(&b.version, &b.platform)));
    let mut text = CUDA.to_owned();
    for CudaToolkit { version, platform, gcc, clang, archs, license, wheels, names } in toolkits {
        let names = names.as_ref().map(|names| format!("names = \"{names}\"\n")).unwrap_or_default();
        let archs: Vec<String> = archs.iter().map(u32::to_string).collect();
        let _ = write!(text, "\n[[cuda]]\nversion = \"{version}\"\nplatform = \"{platform}\"\ngcc = {gcc}\nclang = {clang}\n");
        let _ = write!(text, "archs = [{}]\nlicense = \"{license}\"\n{names}", archs.join(", "));
        for wheel in wheels {
            let _ = write!(text, "\n[[cuda.wheel]]\nproject = \"{}\"\n{}", wheel.project, pin("file", wheel));
        }
    }
    text
}

/// `headers.toml` with these libraries, by ascending name.
pub fn render_headers(libraries: &[HeaderLibrary]) -> String {
    let mut libraries: Vec<&HeaderLibrary> = libraries.iter().collect();
    libraries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = HEADERS.to_owned();
    for HeaderLibrary { name, version, wheel, license } in libraries {
        let _ = write!(text, "\n[[headers]]\nname = \"{name}\"\nversion = \"{version}\"\nproject = \"{}\"\n", wheel.project);
        let _ = writeln!(text, "{}license = \"{license}\"", pin("file", wheel));
    }
    text
}

/// The module that compiles the names files in.
pub fn render_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    let lines: String = names.iter().map(|name| format!("    \"{name}\",\n")).collect();
    format!("{NAMES}{lines}];\n")
}

/// Everything of that module but the list.
const NAMES: &str = r#"//! The names files of the catalog, compiled in. Written by `cargo xtask catalog`.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../catalog/names/", $name)))),*]
    };
}

/// By file name, ascending.
pub(super) const FILES: &[(&str, &[u8])] = files![
"#;

/// The lines of a pin; `file` is the key of the file name.
fn pin(file: &str, wheel: &WheelPin) -> String {
    let WheelPin { file: name, size, sha256, record_sha256, .. } = wheel;
    format!("{file} = \"{name}\"\nsize = {size}\nsha256 = \"{sha256}\"\nrecord_sha256 = \"{record_sha256}\"\n")
}
