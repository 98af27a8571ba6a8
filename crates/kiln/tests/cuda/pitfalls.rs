//! The faults of other builders that users reported, as far as they are about CUDA: where each is tested, and those that stand nowhere
//! else.
//!
//! | fault | test |
//! |---|---|
//! | a launch without a stream | here |
//! | host flags to nvcc; hidden half operators | `flags_reach_the_compiler_that_they_are_for` |
//! | no GPU on the build box | here; `native_is_what_the_driver_says` |
//! | stale arch tables | `a_stale_list_is_mended`, `what_no_toolkit_has_is_told_before_compiling` |
//! | plain and suffixed | `the_loose_intersection` of kiln-cuda, `capability-coverage` of check-config, and here |
//! | invisible commands | `code_that_differs_from_the_plan_is_not_put_in_place`; `arch-flag` in kiln-format |
//! | what is compiled is what metadata list | `other_capabilities_are_other_code`; `kernels_for_other_devices` of check-config |
//! | size | `code_is_packed_for_size_on_request`, `what_a_toolkit_does_not_know` of kiln-cuda |
//! | an old build hides new archs | `other_capabilities_are_other_code` |
//! | host gcc too new | `the_newest_compiler_that_the_toolkit_takes_stands_in`, `limits_are_those_of_the_toolkits_own_headers` |
//! | new glibc | `a_c_library_that_the_headers_contradict_..` of kiln-cuda |
//! | template kernels are local | `a_template_that_is_launched_elsewhere_does_not_link_in_silence` |
//! | weak kernels collide | here |
//! | objects that differ each time | `checkouts_give_equal_bytes_and_know_no_place`, `units_that_offer_nothing_give_equal_bytes` |
//! | driver calls | here |
//! | relocatable device code | `relocatable_code_is_linked`, and here |
//! | wheels are not seen; `lib` against `lib64` | `a_toolkit_that_is_named_is_taken_or_told_about` |
//! | headers that nobody uses | `headers_that_torch_includes_are_there` |
//! | one total of jobs; caches that do not know nvcc | `an_edit_compiles_its_unit_alone`, and the tests of kiln-graph |

use std::fs;

use crate::support::project::{ProjectBuilder, kept, write};
use crate::support::tree;
use crate::{ONLY, build, code, extension, fails, fetch, project, sandbox};

/// What is inside is what the list comes to, for every kind of list.
#[test]
fn cubins_are_those_of_the_list() {
    let sandbox = sandbox();
    let dir = sandbox.path("project");
    for (list, expected) in [
        (None, "compute_121 sm_100 sm_110 sm_120 sm_121 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90"),
        (Some("\"9.0\", \"9.0a\""), "sm_90 sm_90a"),
        (Some("\"10.0\", \"10.0a\", \"12.0f\""), "sm_100 sm_100a sm_120f"),
        (Some("\"10.0f\""), "sm_100f"),
        (Some("\"8.0+PTX\""), "compute_80 sm_80"),
        (Some("\"5.0\", \"8.0\", \"8.6\""), "sm_80 sm_86"),
    ] {
        let keys = list.map(|list| format!("cuda-capabilities = [{list}]")).unwrap_or_default();
        project(&keys).write(&dir);
        // No driver and no device can be asked for it: there is none in the sandbox.
        build(&sandbox, &dir, &[]);
        assert_eq!(code(&extension(&dir)).join(" "), expected, "{list:?}");
    }
}

/// An instruction of one device's alone, in a unit that is for the plain capability too.
#[test]
fn a_plain_capability_that_does_not_compile_is_told() {
    let sandbox = sandbox();
    let text = "__global__ void k() { asm volatile(\"wgmma.fence.sync.aligned;\"); }\nvoid tiny_go() { k<<<1, 1, 0, nullptr>>>(); }\n";
    let write = |list: &str| {
        let project =
            project(&format!("cuda-capabilities = [{list}]")).file("gpu/k.cu", &format!("{text}{}", kept("(tiny_go != nullptr)")));
        project.write(&sandbox.path("project"))
    };
    let said = fails(&sandbox, &write("\"9.0\", \"9.0a\""), &[]);
    let advice = "warning: `gpu/k.cu` does not compile for `9.0`, and its list has `9.0a`: if it is for that alone, remove `9.0`";
    assert_eq!(said.matches(advice).count(), 1, "{said}");
    assert!(!fails(&sandbox, &write("\"9.0\""), &[]).contains("does not compile for `9.0`"));
    let dir = write("\"9.0a\"");
    build(&sandbox, &dir, &[]);
    assert_eq!(code(&extension(&dir)), ["sm_90a"]);
}

#[test]
fn a_launch_without_a_stream_is_told() {
    let sandbox = sandbox();
    let source = |launch: &str| {
        format!(
            "#include <kiln_stream.h>\n__global__ void k(int *p) {{ *p = 1; }}\nvoid tiny_go(int *p) {{ {launch}(p); }}\n{}",
            kept("(tiny_go != nullptr)")
        )
    };
    // The header gives the stream under either ABI.
    for (name, stable) in [("classic", ""), ("stable", "stable-abi = { cuda = \"2.11\" }")] {
        let text = source("k<<<1, 1, 0, kiln::current_stream(0)>>>");
        let dir = ProjectBuilder::new()
            .for_cuda()
            .torch(stable)
            .file("gpu/k.cu", &text)
            .cuda_with("k", &["torch"], &["gpu/k.cu"], "cuda-capabilities = [\"8.0\"]")
            .write(&sandbox.path(name));
        fetch(&dir, &ONLY);
        let run = build(&sandbox, &dir, &[]);
        assert!(!run.stdout.contains("default-stream"), "{}", run.stdout);
        write(&dir, "gpu/k.cu", &source("k<<<1, 1>>>"));
        let run = sandbox.run(&dir, &["check-config"]);
        assert!(run.stderr.contains("warning[default-stream]: `gpu/k.cu:3` launches a kernel without a stream"), "{}", run.stderr);
        assert!(run.stderr.contains("kiln::current_stream"), "{}", run.stderr);
    }
}

/// Kernels of libraries of templates are in many extensions, and each must launch its own.
#[test]
fn kernels_of_templates_are_not_to_be_seen() {
    let sandbox = sandbox();
    let text = "#include <cub/cub.cuh>\nint tiny_sum(float *from, float *to, void *space, size_t size, int count) {\n\
        return cub::DeviceReduce::Sum(space, size, from, to, count, nullptr); }\n";
    let dir = project("cuda-capabilities = [\"8.0\"]")
        .file("gpu/k.cu", &format!("{text}{}", kept("(tiny_sum != nullptr)")))
        .write(&sandbox.path("project"));
    build(&sandbox, &dir, &[]);
    let bytes = fs::read(extension(&dir)).unwrap();
    assert!(bytes.windows(12).any(|window| window == b"DeviceReduce"), "the kernels are there");
    let exports = kiln_object::elf::dynamic(&bytes).unwrap().exports;
    assert!(exports.iter().all(|export| export.name.starts_with("PyInit_")), "{exports:?}");
}

/// The driver's own library is missing where there is no device.
#[test]
fn a_call_of_the_driver_does_not_link() {
    let sandbox = sandbox();
    let text = "extern \"C\" int cuTensorMapEncodeTiled(void *);\n__global__ void k() {}\nint tiny_go(void *p) { return cuTensorMapEncodeTiled(p); }\n";
    let dir = project("cuda-capabilities = [\"8.0\"]")
        .file("gpu/k.cu", &format!("{text}{}", kept("tiny_go(nullptr)")))
        .write(&sandbox.path("project"));
    let said = fails(&sandbox, &dir, &[]);
    assert!(said.contains("cuTensorMapEncodeTiled"), "{said}");
    assert!(said.contains("cudaGetDriverEntryPoint"), "{said}");
}

/// Relocatable code of one kernel beside code of another one that is compiled in parts.
#[test]
fn relocatable_code_beside_other_code_is_linked() {
    let sandbox = sandbox();
    let other = format!("__global__ void other() {{}}\nint tiny_b() {{ other<<<1, 1, 0, nullptr>>>(); return 1; }}\n{}", kept("tiny_b()"));
    let dir = project("cuda-capabilities = [\"8.0\"]\ncuda-flags = [\"-rdc=true\"]")
        .file("b/k.cu", &other)
        .cuda("b", &["b/k.cu"], "cuda-capabilities = [\"9.0\"]")
        .write(&sandbox.path("project"));
    fetch(&dir, &ONLY);
    assert_eq!(tree::extensions(&dir.join("build")).len(), 1);
    assert_eq!(code(&extension(&dir)), ["sm_80", "sm_90"]);
}
