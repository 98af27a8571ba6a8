//! Headers beyond those of the toolkit: libraries that `depends` names, and what torch's own headers include.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project::{ProjectBuilder, kept, write};
use crate::support::{Run, Sandbox};
use crate::{ONLY, code, extension, fetch, sandbox};

/// A matrix product that CUTLASS makes, and the release that it was compiled with.
const GEMM: &str = "#include <cutlass/cutlass.h>\n#include <cutlass/gemm/device/gemm.h>\n#include <cutlass/version.h>\n\
    static_assert(CUTLASS_MAJOR == 3 && CUTLASS_MINOR == 8 && CUTLASS_PATCH == 0, \"another release\");\n\
    using Row = cutlass::layout::RowMajor;\n\
    using Gemm = cutlass::gemm::device::Gemm<float, Row, float, Row, float, Row>;\n\
    int tiny_gemm(float *p, int n) {\n\
      Gemm gemm;\n\
      return static_cast<int>(gemm({{n, n, n}, {p, n}, {p, n}, {p, n}, {p, n}, {1.0f, 0.0f}}, nullptr, nullptr));\n\
    }\n";

/// Writes a project whose kernel depends on a library.
fn with(dependency: &str, text: &str, dir: &Path) -> PathBuf {
    ProjectBuilder::new()
        .for_cuda()
        .torch("stable-abi = { cuda = \"2.11\" }")
        .file("gpu/k.cu", text)
        .cuda_with("k", &[dependency], &["gpu/k.cu"], "cuda-capabilities = [\"8.0\"]")
        .write(dir)
}

#[test]
fn cutlass_comes_out_of_a_wheel() {
    let sandbox = sandbox();
    let text = format!("{GEMM}{}", kept("(tiny_gemm != nullptr)"));
    let dir = with("cutlass_3_8", &text, &sandbox.path("project"));
    fetch(&dir, &ONLY);
    let run = sandbox.build(&dir, &ONLY);
    assert_eq!(code(&extension(&dir)), ["sm_80"], "{}", run.stdout);
    let bytes = fs::read(extension(&dir)).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("cutlass") && !has("toolchains-v1") && !has(sandbox.path("").to_str().unwrap()));
    let record: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let variants = record["variants"].as_object().unwrap();
    let library = &variants.values().next().unwrap()["toolchains"]["cutlass_3_8"];
    assert_eq!((library["provider"].as_str(), library["version"].as_str()), (Some("wheel"), Some("3.8.0")), "{record}");
    assert_eq!(library["licenses"]["nvidia-cutlass 3.8.0.0"].as_str(), Some("BSD-3-Clause"));
    // Nothing but headers was taken from the wheel.
    let trees = fs::read_dir(sandbox.cache().join("toolchains-v1/trees")).unwrap().flatten();
    let tree =
        trees.map(|entry| entry.path()).find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("cutlass-3.8.0")).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(tree.join("files")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["cute", "cutlass"]);
}

/// The sources of a release, as far as a build looks at them.
fn sources(sandbox: &Sandbox, name: &str, [major, minor, patch]: [u32; 3]) -> PathBuf {
    let dir = sandbox.path(name);
    let header = format!("#pragma once\n#define CUTLASS_MAJOR {major}\n#define CUTLASS_MINOR {minor}\n#define CUTLASS_PATCH {patch}\n");
    write(&dir, "include/cutlass/version.h", &header);
    dir
}

#[test]
fn cutlass_that_no_wheel_carries_is_the_users() {
    let sandbox = sandbox();
    let text = format!(
        "#include <cutlass/version.h>\nint tiny_minor() {{ return CUTLASS_MINOR; }}\n__global__ void k() {{}}\n{}",
        kept("tiny_minor()")
    );
    let dir = with("cutlass_3_9", &text, &sandbox.path("project"));
    let build = |variable: Option<&Path>| {
        let mut kiln = sandbox.kiln(&dir, &[&["build"][..], &ONLY].concat());
        Run::of(kiln.envs(variable.map(|path| ("CUTLASS_SRC_DIR", path))))
    };
    let fails = |variable: Option<&Path>, expected: &str| {
        let run = build(variable);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        run.stderr
    };
    let said = fails(None, "error[no-headers]: `cutlass_3_9` wants the headers of CUTLASS 3.9.2, which no wheel carries");
    let hint = "hint: get the sources of CUTLASS 3.9.2 (tag `v3.9.2` of NVIDIA/cutlass) and name their directory in the variable CUTLASS_SRC_DIR or with `headers.cutlass` in `kiln.toml`";
    assert!(said.contains(hint), "{said}");
    fails(Some(&sandbox.path("nowhere")), "which CUTLASS_SRC_DIR names, has no `include/cutlass/version.h`");
    let right = sources(&sandbox, "right", [3, 9, 2]);
    let run = build(Some(&right));
    assert_eq!((run.code, run.stderr.contains("warning")), (Some(0), false), "{}", run.stderr);
    // An edit there is seen, and the release that it makes of it is told.
    sources(&sandbox, "right", [3, 7, 0]);
    let run = build(Some(&right));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("warning: `cutlass_3_9` means CUTLASS 3.9.2, and"), "{}", run.stderr);
    assert!(run.stderr.contains("names, holds 3.7.0"), "{}", run.stderr);
    assert!(run.stderr.contains("Compiling gpu/k.cu"), "{}", run.stderr);
    // What the project names stands before the variable.
    sources(&sandbox, "project/third_party/cutlass", [3, 9, 2]);
    write(&dir, "kiln.toml", "[headers]\ncutlass = \"third_party/cutlass\"\n");
    let run = build(Some(&right));
    assert_eq!((run.code, run.stderr.contains("warning")), (Some(0), false), "{}", run.stderr);
}

/// `ATen/cuda/CUDAContext.h` includes headers of three libraries that no kernel needs to compile.
#[test]
fn headers_that_torch_includes_are_there() {
    let sandbox = sandbox();
    let text = "#include <ATen/cuda/CUDAContext.h>\n__global__ void k() {}\n\
        void tiny_go() { k<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(); }\n";
    let dir = ProjectBuilder::new()
        .for_cuda()
        .file("gpu/k.cu", &format!("{text}{}", kept("(tiny_go != nullptr)")))
        .cuda_with("k", &["torch"], &["gpu/k.cu"], "cuda-capabilities = [\"8.0\"]")
        .write(&sandbox.path("project"));
    fetch(&dir, &ONLY);
    sandbox.build(&dir, &ONLY);
    assert_eq!(code(&extension(&dir)), ["sm_80"]);
    let checked = sandbox.run(&dir, &["check-config", "-v"]).stderr;
    assert!(checked.contains("note[wide-include]") && checked.contains("`c10/cuda/CUDAStream.h` has torch's streams alone"), "{checked}");
}
