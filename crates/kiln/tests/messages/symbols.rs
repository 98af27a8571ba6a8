//! Extensions that torch or Python would not load.

use crate::Place;

/// Builds the usual project with this text as its kernel; the errors.
fn kernel(text: &str) -> String {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", text);
    let run = place.run(&["build", "--quiet"]);
    assert_eq!(run.code, Some(1), "{run}");
    run.errors()
}

/// The same with this text as its binding.
fn binding(text: &str) -> String {
    let place = Place::with_project();
    place.write("relu/torch-ext/binding.cpp", text);
    let run = place.run(&["build", "--quiet"]);
    assert_eq!(run.code, Some(1), "{run}");
    run.errors()
}

#[test]
fn a_name_that_torch_does_not_have() {
    insta::assert_snapshot!(kernel("namespace c10 { void gone(int); }\nvoid relu() { c10::gone(1); }\n"), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `c10::gone(int)`
      wanted by cpu/relu.cpp
      torch 2.15.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
    hint: is the declaration right? what only some torch releases have needs `torch.minver` or `torch.maxver`
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
}

#[test]
fn the_torch_that_is_compiled_with_is_named() {
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", "namespace c10 { void gone(int); }\nvoid relu() { c10::gone(1); }\n");
    let errors = place.run(&["build", "--quiet", "--torch", "2.13"]).errors();
    assert!(errors.contains("torch 2.13.0 does not export it"), "{errors}");
}

#[test]
fn a_name_of_another_backend() {
    insta::assert_snapshot!(kernel("namespace c10::cuda { int device_count() noexcept; }\nint relu() { return c10::cuda::device_count(); }\n"), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `c10::cuda::device_count()`
      wanted by cpu/relu.cpp
      torch 2.15.0 exports it from libc10_cuda.so, which this variant does not link
    hint: keep what belongs to another backend inside `#if defined(..)` of that backend's define
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
}

#[test]
fn a_name_of_the_authors_own() {
    insta::assert_snapshot!(kernel("void helper(const char*);\nvoid relu() { helper(\"x\"); }\n"), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `helper(char const*)`
      wanted by cpu/relu.cpp
      no source of this extension defines it, and torch 2.15.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
    hint: list the source that defines it in `src`, or correct its declaration
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
}

#[test]
fn names_of_python() {
    insta::assert_snapshot!(kernel("extern \"C\" const char* PyUnicode_AsUTF8(void*);\nvoid relu(void* o) { PyUnicode_AsUTF8(o); }\n"), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `PyUnicode_AsUTF8`
      wanted by cpu/relu.cpp
      it is not in Python's limited API
    hint: one build serves every Python: use the functions that Python's manual calls part of the stable ABI
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
    insta::assert_snapshot!(kernel("extern \"C\" void* PyType_GetName(void*);\nvoid relu(void* o) { PyType_GetName(o); }\n"), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `PyType_GetName`
      wanted by cpu/relu.cpp
      Python has it from 3.11 on, newer than Python 3.9's limited API
    hint: an extension must load in Python 3.9 too: use an older function
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
}

#[test]
fn several_names_at_once() {
    insta::assert_snapshot!(
        kernel("namespace at { void a(); void b(); }\nvoid c();\nextern \"C\" void PyEval_InitThreads2();\nvoid relu() { at::a(); at::b(); c(); PyEval_InitThreads2(); }\n"),
        @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: 4 undefined symbols
      `at::a()`
        wanted by cpu/relu.cpp
        torch 2.15.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `at::b()`
        wanted by cpu/relu.cpp
        torch 2.15.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `c()`
        wanted by cpu/relu.cpp
        no source of this extension defines it, and torch 2.15.0 does not export it (libc10.so, libtorch.so, libtorch_cpu.so)
      `PyEval_InitThreads2`
        wanted by cpu/relu.cpp
        it is not in Python's limited API
    hint: is the declaration right? what only some torch releases have needs `torch.minver` or `torch.maxver`
    hint: list the source that defines it in `src`, or correct its declaration
    hint: one build serves every Python: use the functions that Python's manual calls part of the stable ABI
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    "
    );
}

#[test]
fn a_binding_without_an_entry_point() {
    insta::assert_snapshot!(binding("int nothing;\n"), @r#"
    error[entry-point]: the extension does not define `PyInit__relu_cpu_[id]`, by which Python loads it
      in torch215-cxx11-cpu-x86_64-linux/_relu_cpu_[id].abi3.so
      found no `PyInit__relu_cpu_[id]` in the dynamic symbol table
    hint: put `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and `#include "registration.h"` into one of the [torch] sources
    error[checks]: failed to make `torch215-cxx11-cpu-x86_64-linux`: the checks refuse what was built
    error[build-failed]: 1 of 1 variant could not be made
    "#);
}

#[test]
fn an_entry_point_of_another_name() {
    insta::assert_snapshot!(binding("#include \"registration.h\"\nREGISTER_EXTENSION(relu)\n"), @"
    error[entry-point]: the extension defines `PyInit_relu`, but Python looks for `PyInit__relu_cpu_[id]`
      in torch215-cxx11-cpu-x86_64-linux/_relu_cpu_[id].abi3.so
      found no `PyInit__relu_cpu_[id]` in the dynamic symbol table
    hint: write `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)`: the name is made for each build
    error[exports]: `PyInit_relu` is visible to other libraries, of which one may be used in its place
      in torch215-cxx11-cpu-x86_64-linux/_relu_cpu_[id].abi3.so
      found `PyInit_relu` is in the dynamic symbol table
      from torch-ext/binding.cpp
    hint: write one `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and no other entry point
    error[checks]: failed to make `torch215-cxx11-cpu-x86_64-linux`: the checks refuse what was built
    error[build-failed]: 1 of 1 variant could not be made
    ");
    insta::assert_snapshot!(binding("#include \"registration.h\"\nREGISTER_EXTENSION(TORCH_EXTENSION_NAME)\nREGISTER_EXTENSION(relu)\n"), @"
    error[exports]: `PyInit_relu` is visible to other libraries, of which one may be used in its place
      in torch215-cxx11-cpu-x86_64-linux/_relu_cpu_[id].abi3.so
      found `PyInit_relu` is in the dynamic symbol table
      from torch-ext/binding.cpp
    hint: write one `REGISTER_EXTENSION(TORCH_EXTENSION_NAME)` and no other entry point
    error[checks]: failed to make `torch215-cxx11-cpu-x86_64-linux`: the checks refuse what was built
    error[build-failed]: 1 of 1 variant could not be made
    ");
}

/// A `.symver` is how an author asks for an old version of a name: what the floor has is linked, for the rest the versions are told.
#[test]
fn versions_of_names() {
    let with = |name: &str, version: &str| {
        format!(
            "extern \"C\" double {name}(double);\n__asm__(\".symver {name},{name}@{version}\");\ndouble relu(double x) {{ return {name}(x); }}\n"
        )
    };
    let place = Place::with_project();
    place.write("relu/cpu/relu.cpp", with("exp", "GLIBC_2.2.5"));
    let run = place.run(&["build", "--quiet"]);
    assert_eq!((run.code, run.errors().as_str()), (Some(0), ""), "{run}");
    insta::assert_snapshot!(kernel(&with("exp", "GLIBC_2.29")), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `exp@GLIBC_2.29`
      wanted by cpu/relu.cpp
      `.symver` asks for version GLIBC_2.29 of it, and the baseline of manylinux_2_28 has GLIBC_2.2.5
    hint: name one of the versions that there are in the `.symver`, such as GLIBC_2.2.5, or remove it
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
    insta::assert_snapshot!(kernel(&with("helper", "V_1")), @"
    error[undefined-symbol]: failed to link `_relu_cpu_[id].abi3.so`: undefined symbol `helper@V_1`
      wanted by cpu/relu.cpp
      `.symver` asks for version V_1 of it, and the baseline of manylinux_2_28 has none with a version
    hint: remove the `.symver` that names a version of it
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 1 skipped
    ");
}
