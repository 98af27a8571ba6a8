//! Headers of torch that include those of libraries of which a kernel uses nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kiln_format::{BackendName, Build, Diagnostic};

use crate::build::lint::include;

/// It includes cuBLAS, cuSPARSE and cuSOLVER.
const WIDE: &str = "ATen/cuda/CUDAContext.h";

/// One note for each file, at its place in `build.toml`.
pub(super) fn check(root: &Path, build: &Build) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut told = BTreeSet::new();
    for source in build.kernels_for(BackendName::Cuda).flat_map(|kernel| &kernel.src) {
        let Ok(bytes) = fs::read(root.join(source.as_str())) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let found = text.lines().position(|line| include(line).is_some_and(|(header, _)| header == WIDE));
        let Some(line) = found.filter(|_| told.insert(source.as_str())) else { continue };
        let message = format!("`{}:{}` includes `{WIDE}`, which reads the headers of three libraries of CUDA", source.value, line + 1);
        let hint = "`c10/cuda/CUDAStream.h` has torch's streams alone, and `kiln_stream.h` gives the current one under the stable ABI too";
        diagnostics.push(Diagnostic::note("wide-include", source.span, message).with_hint(hint.to_owned()));
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    #[test]
    fn what_is_included_and_what_is_not() {
        let kernel = "[kernel.k]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"k.cu\"]\n";
        let project = Project::new(&format!("[torch]\nsrc = [\"b.cpp\"]\n{kernel}"), &["k.cu"]);
        let of = |text: &str| {
            fs::write(project.root().join("k.cu"), text).unwrap();
            check(project.root(), &project.build).iter().map(|note| note.message.clone()).collect::<Vec<_>>()
        };
        let told = of("#include <vector>\n#  include <ATen/cuda/CUDAContext.h>\n#include <ATen/cuda/CUDAContext.h>\n");
        assert_eq!(told, ["`k.cu:2` includes `ATen/cuda/CUDAContext.h`, which reads the headers of three libraries of CUDA"]);
        for fine in ["", "// #include <ATen/cuda/CUDAContext.h>\n", "#include <c10/cuda/CUDAStream.h>\n"] {
            assert!(of(fine).is_empty(), "{fine}");
        }
    }
}
