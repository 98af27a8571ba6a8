//! SYCL*TLA, which is CUTLASS for Intel's GPUs: the release that goes with a compiler, and what kernels on it get.

use kiln_backend::MajorMinor;

/// Defines of every unit.
pub(crate) const DEFINES: [&str; 3] = ["CUTLASS_ENABLE_SYCL=1", "DPCPP_SYCL_TARGET=intel_gpu_bmg_g21,intel_gpu_pvc", "SYCL_INTEL_TARGET=1"];
/// Variables of the environment of compilers.
pub(crate) const ENVIRONMENT: [(&str, &str); 4] = [
    ("IGC_ExtraOCLOptions", "-cl-intel-256-GRF-per-thread"),
    ("IGC_VISAOptions", "-perfmodel"),
    ("IGC_VectorAliasBBThreshold", "10000"),
    ("SYCL_PROGRAM_COMPILE_OPTIONS", "-ze-opt-large-register-file"),
];
/// The extension of SPIR-V that all of it uses.
const BARRIER: &str = "+SPV_INTEL_split_barrier";
/// Those that it uses with compilers that have them.
const MATRIX: &str = "+SPV_INTEL_2d_block_io,+SPV_INTEL_subgroup_matrix_multiply_accumulate";
/// The compilers that have them.
const HAS_MATRIX: [MajorMinor; 3] = [MajorMinor::new(2025, 2), MajorMinor::new(2025, 3), MajorMinor::new(2026, 0)];

/// The release that `sycl_tla` means with the compiler of a release of oneAPI; none for compilers that none goes with.
pub fn tla_release(compiler: MajorMinor) -> Option<&'static str> {
    match (compiler.major, compiler.minor) {
        (2025, 3) => Some("0.8"),
        (2026, 0) => Some("0.9.2"),
        _ => None,
    }
}

/// Why kernels on SYCL*TLA cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlaError {
    /// The compiler does not say which extensions of SPIR-V it uses by default.
    #[error("`icpx -fsycl -fsycl-targets=spir64_gen -###` names no `-spirv-ext=`")]
    NoExtensions,
}

/// The extensions of SPIR-V that a compiler uses by default, out of what `icpx -fsycl -fsycl-targets=spir64_gen -###` said of an empty
/// program.
///
/// # Errors
/// When it names none.
pub fn spirv_extensions(said: &str) -> Result<String, TlaError> {
    let value = said.split("-spirv-ext=").nth(1).ok_or(TlaError::NoExtensions)?;
    let end = value.find(|letter: char| letter.is_whitespace() || letter == '"').unwrap_or(value.len());
    let value = value.get(..end).unwrap_or_default();
    let value = value.strip_prefix("-all,").unwrap_or(value);
    if value.is_empty() { Err(TlaError::NoExtensions) } else { Ok(value.to_owned()) }
}

/// The options with which each target's translator is told the extensions: the compiler's own, and those of SYCL*TLA.
pub(crate) fn translator_options(targets: &[&str], release: MajorMinor, own: &str) -> Vec<String> {
    let matrix = HAS_MATRIX.contains(&release).then_some(MATRIX);
    let list: Vec<&str> = [own, BARRIER].into_iter().chain(matrix).collect();
    let list = list.join(",");
    targets.iter().flat_map(|target| [format!("-Xspirv-translator={target}"), format!("-spirv-ext={list}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_extensions_are_read_out_of_what_the_compiler_would_run() {
        let said = "icpx: note\n \"/opt/bin/compiler/llvm-spirv\" \"-o\" \"x.spv\" \"-spirv-max-version=1.5\" \
                    \"-spirv-ext=-all,+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes\" \"x.bc\"\n \"ld\"";
        assert_eq!(spirv_extensions(said).unwrap(), "+SPV_EXT_shader_atomic_float_add,+SPV_INTEL_blocking_pipes");
        assert_eq!(spirv_extensions("llvm-spirv -spirv-ext=+A -o x").unwrap(), "+A");
        for nothing in ["", "clang++ -cc1", "-spirv-ext= x", "\"-spirv-ext=-all,\""] {
            assert_eq!(spirv_extensions(nothing), Err(TlaError::NoExtensions), "{nothing}");
        }
    }

    #[test]
    fn releases_go_with_compilers() {
        let of = |major, minor| tla_release(MajorMinor::new(major, minor));
        assert_eq!([of(2025, 3), of(2026, 0), of(2025, 2), of(2026, 1)], [Some("0.8"), Some("0.9.2"), None, None]);
    }
}
