//! Headers of torch that include those of libraries of which a kernel uses nothing.

use kiln_format::{Diagnostic, ProjectPath, Spanned};

use crate::build::lint::include;

/// It includes cuBLAS, cuSPARSE and cuSOLVER.
const WIDE: &str = "ATen/cuda/CUDAContext.h";

/// The note on a CUDA source whose text this is, which names the first such include.
pub(super) fn check(source: &Spanned<ProjectPath>, text: &str) -> Option<Diagnostic> {
    let line = text.lines().position(|line| include(line).is_some_and(|(header, _)| header == WIDE))?;
    let message = format!("`{}:{}` includes `{WIDE}`, which reads the headers of three libraries of CUDA", source.value, line + 1);
    let hint = "`c10/cuda/CUDAStream.h` has torch's streams alone, and `kiln_stream.h` gives the current one under the stable ABI too";
    Some(Diagnostic::note("wide-include", source.span, message).with_hint(hint.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::device_sources;
    use super::super::testing::Project;

    #[test]
    fn what_is_included_and_what_is_not() {
        let kernel = "[kernel.k]\nbackend = \"cuda\"\ndepends = [\"torch\"]\nsrc = [\"k.cu\"]\n";
        let project = Project::new(&format!("[torch]\nsrc = [\"b.cpp\"]\n{kernel}"), &["k.cu"]);
        let of = |text: &str| {
            fs::write(project.root().join("k.cu"), text).unwrap();
            device_sources::check(project.root(), &project.build).iter().map(|note| note.message.clone()).collect::<Vec<_>>()
        };
        let told = of("#include <vector>\n#  include <ATen/cuda/CUDAContext.h>\n#include <ATen/cuda/CUDAContext.h>\n");
        assert_eq!(told, ["`k.cu:2` includes `ATen/cuda/CUDAContext.h`, which reads the headers of three libraries of CUDA"]);
        for fine in ["", "// #include <ATen/cuda/CUDAContext.h>\n", "#include <c10/cuda/CUDAStream.h>\n"] {
            assert!(of(fine).is_empty(), "{fine}");
        }
    }
}
