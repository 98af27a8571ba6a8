//! The release of a kit, from its own files: nothing is run.

use std::fs;
use std::path::Path;

use kiln_format::Version;

use super::find::FoundPart;
use super::kits::KitKind;

/// The most that is read of a file that should be small.
const SMALL: u64 = 1 << 20;

/// The release of the kit at `root`; none when its files do not say.
pub(super) fn version(kind: KitKind, root: &Path, parts: &[FoundPart]) -> Option<Version> {
    let text = match kind {
        KitKind::Cuda => cuda(root, parts),
        KitKind::Rocm => rocm(root, parts),
        KitKind::OneApi => one_api(root),
        KitKind::Metal => None,
        KitKind::Cann => cann(root),
    };
    Version::parse(&text?).ok()
}

/// `CUDA_VERSION` of `cuda.h` (13020 is 13.2), or what `version.json` or `version.txt` says.
fn cuda(root: &Path, parts: &[FoundPart]) -> Option<String> {
    let headers = parts.iter().find(|part| part.name == "cuda_runtime.h").and_then(|part| part.path.parent());
    let from_headers = headers.and_then(|dir| {
        let defined = |file: &str, name: &str| define(&read(&dir.join(file))?, name);
        let number: u64 = defined("cuda.h", "CUDA_VERSION").or_else(|| defined("cuda_runtime_api.h", "CUDART_VERSION"))?.parse().ok()?;
        Some(format!("{}.{}", number / 1000, number % 1000 / 10))
    });
    let from_json = || {
        let json: serde_json::Value = serde_json::from_str(&read(&root.join("version.json"))?).ok()?;
        major_minor(json.get("cuda")?.get("version")?.as_str()?)
    };
    let from_text = || major_minor(read(&root.join("version.txt"))?.trim().strip_prefix("CUDA Version ")?);
    from_headers.or_else(from_json).or_else(from_text)
}

/// `.info/version` (`6.4.1-83`), `share/hip/version` or `hip_version.h`.
fn rocm(root: &Path, parts: &[FoundPart]) -> Option<String> {
    let from_info = || Some(read(&root.join(".info/version"))?.trim().split('-').next()?.to_owned());
    let three = |value: &dyn Fn(&str) -> Option<String>| {
        Some(format!("{}.{}.{}", value("HIP_VERSION_MAJOR")?, value("HIP_VERSION_MINOR")?, value("HIP_VERSION_PATCH")?))
    };
    let from_lines = || {
        let text = read(&root.join("share/hip/version")).or_else(|| read(&root.join("bin/.hipVersion")))?;
        three(&|name| text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.trim().to_owned())))
    };
    let from_header = || {
        let header = parts.iter().find(|part| part.name == "hip/hip_runtime.h")?.path.with_file_name("hip_version.h");
        let text = read(&header)?;
        three(&|name| define(&text, name))
    };
    from_info().filter(|text| Version::parse(text).is_ok()).or_else(from_lines).or_else(from_header)
}

/// The major release of the Clang at `path`: by its own name (`clang++-19`), or by the directory of its headers beside it.
pub fn clang_release(path: &Path) -> Option<u64> {
    let of_name = |path: &Path| path.file_name()?.to_str()?.rsplit_once('-')?.1.parse().ok();
    let of_headers = |path: &Path| {
        let entries = fs::read_dir(path.parent()?.parent()?.join("lib/clang")).ok()?;
        let releases = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.split('.').next()?.parse().ok());
        releases.max()
    };
    of_name(path).or_else(|| of_headers(path)).or_else(|| of_headers(&path.canonicalize().ok()?))
}

/// The compiler's directory is called by its release; `latest` is a link to it.
fn one_api(root: &Path) -> Option<String> {
    let real = root.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    name.starts_with(|c: char| c.is_ascii_digit()).then(|| name.to_owned())
}

/// `ascend_toolkit_install.info` (`version=8.0.0`) or `version.cfg` (`toolkit_running_version=[7.6:8.0.0]`).
fn cann(root: &Path) -> Option<String> {
    let info = ["aarch64-linux", "x86_64-linux", "arm64-linux", "."]
        .iter()
        .find_map(|dir| read(&root.join(dir).join("ascend_toolkit_install.info")));
    let from_info = info.and_then(|text| text.lines().find_map(|line| Some(leading(line.trim().strip_prefix("version=")?))));
    let from_cfg = || {
        let text = read(&root.join("version.cfg"))?;
        let line = text.lines().find(|line| line.contains("running_version="))?;
        Some(leading(line.rsplit(':').next()?))
    };
    from_info.or_else(from_cfg).filter(|text| !text.is_empty())
}

/// The dotted numbers that a text begins with: `8.0` of `8.0.RC1]`.
fn leading(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.get(..end).unwrap_or_default().trim_end_matches('.').to_owned()
}

/// `13.2` of `13.2.86`.
fn major_minor(text: &str) -> Option<String> {
    let mut parts = text.split('.');
    Some(format!("{}.{}", parts.next()?, parts.next()?))
}

/// The value of `#define NAME value`.
fn define(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.trim_start().strip_prefix('#')?.split_whitespace();
        (words.next() == Some("define") && words.next() == Some(name)).then(|| words.next().unwrap_or_default().to_owned())
    })
}

/// The text of a small file; none for another one.
fn read(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= SMALL);
    let bytes = if small { fs::read(path).ok()? } else { return None };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
