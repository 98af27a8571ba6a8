//! Entries of CUDA toolkits.

use std::path::Path;

use super::{MakeError, WholeWheel, exports};
use crate::catalog::CudaToolkit;
use crate::names;
use crate::part::WheelPin;

/// A wheel of a toolkit, and what the entry says because of it.
#[derive(Clone, Debug)]
pub struct MadeCudaWheel {
    /// The wheel.
    pub wheel: WheelPin,
    /// The licence that it names.
    pub license: String,
    /// The newest major versions of gcc and clang that its headers accept; only of `nvidia-cuda-crt`.
    pub host_limits: Option<(u32, u32)>,
    /// Names file of the runtime library of Linux; only of `nvidia-cuda-runtime`.
    pub names_file: Option<Vec<u8>>,
}

/// Reads a whole wheel of a toolkit.
///
/// # Errors
/// When the file cannot be read, is no wheel, or is damaged.
pub fn make_cuda_wheel(wheel: &Path, scratch: &Path) -> Result<MadeCudaWheel, MakeError> {
    let mut wheel = WholeWheel::open(wheel)?;
    let config = format!("{}include/crt/host_config.h", CudaToolkit::ROOT);
    let mut host_limits = None;
    if wheel.has(&config) {
        let text = String::from_utf8_lossy(&wheel.read(&config)?).into_owned();
        host_limits = Some(limits(&text).ok_or_else(|| wheel.failed(format!("`{config}` does not say which compilers it accepts")))?);
    }
    let runtime = format!("{}lib/libcudart.so.13", CudaToolkit::ROOT);
    let mut names_file = None;
    if wheel.has(&runtime) {
        let unpacked = wheel.unpack(&runtime, scratch)?;
        let set = exports::coded(unpacked.path()).map_err(|cause| wheel.failed(format!("`{runtime}`: {cause}")))?;
        names_file = Some(names::encode(&[set]));
    }
    Ok(MadeCudaWheel {
        license: wheel.terms()?.license.ok_or_else(|| wheel.failed("it states no license".to_owned()))?,
        wheel: wheel.pin().clone(),
        host_limits,
        names_file,
    })
}

/// The versions of components that the metadata of `cuda-toolkit` demand, such as `13.2.86` for `nvidia-cuda-nvcc==13.2.86.*`, for
/// those of `projects` that it has.
pub fn cuda_components(metadata: &str, projects: &[&str]) -> Vec<(String, String)> {
    let requirements: Vec<&str> = metadata.lines().filter_map(|line| line.strip_prefix("Requires-Dist:")).map(str::trim).collect();
    let version = |project: &str| {
        requirements.iter().find_map(|requirement| {
            let rest = requirement.strip_prefix(project)?.strip_prefix("==")?;
            Some(rest.split(';').next()?.trim().trim_end_matches(".*").to_owned())
        })
    };
    projects.iter().filter_map(|project| Some(((*project).to_owned(), version(project)?))).collect()
}

/// The newest major versions of gcc and clang that `crt/host_config.h` accepts.
fn limits(text: &str) -> Option<(u32, u32)> {
    let number = |rest: &str| rest.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u32>().ok();
    let gcc = number(text.split_once("__GNUC__ > ")?.1)?;
    // Clang of other vendors has limits of its own further up.
    let clang = text.split_once("defined(__clang__) &&")?.1;
    let clang = number(clang.split_once("__clang_major__ >= ")?.1)?;
    Some((gcc, clang.checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_those_of_the_metadata() {
        let metadata = "Name: cuda-toolkit\nProvides-Extra: all\n\
             Requires-Dist: nvidia-cuda-nvcc==13.2.86.*; (sys_platform == 'linux') and extra == 'all'\n\
             Requires-Dist: nvidia-cuda-nvcc-tools==1.0.*; extra == 'all'\n\
             Requires-Dist: nvidia-nvjitlink<14,>=13.2.86; extra == 'all'\n";
        let components = cuda_components(metadata, &["nvidia-cuda-nvcc", "nvidia-nvjitlink", "nvidia-cuda-crt"]);
        assert_eq!(components, [("nvidia-cuda-nvcc".to_owned(), "13.2.86".to_owned())]);
    }

    #[test]
    fn limits_are_those_of_the_compilers_themselves() {
        let text = "#if defined(__HORIZON__)\n#if (__clang_major__ >= 20)\n#endif\n#if __GNUC__ > 16\n#error\n#endif\n\
             #if defined(__clang__) && !defined(__APPLE__)\n#if (__clang_major__ >= 23) || (__clang_major__ < 3)\n";
        assert_eq!(limits(text), Some((16, 22)));
        assert_eq!(limits("#if __GNUC__ > 16\n"), None);
    }
}
