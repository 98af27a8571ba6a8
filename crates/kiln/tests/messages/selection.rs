//! Variants that are not there, and command lines that cannot be meant.

use crate::Place;

#[test]
fn names_that_no_variant_has() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--variant", "torch299-cxx11-cpu-x86_64-linux"]), @"
    exit code 2
    --- stderr ---
    error[selection]: no variant of this kernel is called `torch299-cxx11-cpu-x86_64-linux`
    hint: there is `torch211-cxx11-cpu-x86_64-linux`, `torch212-cxx11-cpu-x86_64-linux`, `torch213-cxx11-cpu-x86_64-linux`, `torch214-cxx11-cpu-x86_64-linux`, `torch215-cxx11-cpu-x86_64-linux`
    ");
    insta::assert_snapshot!(place.say(&["list-variants", "--variant", "*cuda*"]), @"
    exit code 2
    --- stderr ---
    error[selection]: no variant of this kernel is called `*cuda*`
    hint: there is `torch211-cxx11-cpu-x86_64-linux`, `torch212-cxx11-cpu-x86_64-linux`, `torch213-cxx11-cpu-x86_64-linux`, `torch214-cxx11-cpu-x86_64-linux`, `torch215-cxx11-cpu-x86_64-linux`
    ");
}

#[test]
fn filters_that_match_nothing() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--backend", "cudaa"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `--backend cudaa`: unknown backend `cudaa`
    hint: did you mean `cuda`? there is `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    ");
    insta::assert_snapshot!(place.say(&["build", "--backend", "cuda"]), @"
    exit code 2
    --- stderr ---
    error[selection]: this kernel has no backend `cuda`
    hint: there is `cpu`
    ");
    insta::assert_snapshot!(place.say(&["build", "--torch", "9.9"]), @"
    exit code 2
    --- stderr ---
    error[selection]: no row of the matrix has torch 9.9
    hint: there is `2.11`, `2.12`, `2.13`, `2.14`, `2.15`
    ");
    place.edit("relu/build.toml", "[\"cpu\"]", "[\"cpu\", \"cuda\"]");
    place.edit(
        "relu/build.toml",
        "[kernel.relu_cpu]",
        "[kernel.relu_cuda]\nbackend = \"cuda\"\ndepends = []\nsrc = []\n\n[kernel.relu_cpu]",
    );
    insta::assert_snapshot!(place.say(&["list-variants", "--cuda", "9.0"]), @"
    exit code 2
    --- stderr ---
    error[selection]: no row of the matrix has CUDA 9.0
    hint: there is `12.6`, `13.0`, `13.2`
    ");
}

#[test]
fn versions_that_choose_nothing() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--cuda", "13.0"]), @"
    exit code 2
    --- stderr ---
    error[selection]: `--cuda` chooses nothing: this kernel has no variant that is compiled for CUDA
    hint: there is `cpu`
    ");
    // The default set, which has no 2.11, unless all is asked for.
    insta::assert_snapshot!(place.say(&["matrix", "--torch", "2.11"]), @"
    exit code 1
    --- stderr ---
    error[selection]: no variant is left to build
      caused by: `--torch` leaves it out (4 left out)
      caused by: it is not in the default set (`--all` builds it) (1 left out)
    hint: `kiln list-variants --reasons` shows what there is
    ");
    insta::assert_snapshot!(place.say(&["matrix", "--torch", "2.11", "--all", "--format", "github"]), @r#"
    exit code 0
    --- stdout ---
    {"include":[{"variant":"torch211-cxx11-cpu-x86_64-linux","backend":"cpu","os":"ubuntu-24.04","torch":"2.11.0"}]}
    "#);
}

#[test]
fn nothing_selected() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "[torch]\n", "[torch]\nminver = \"2.13\"\n");
    insta::assert_snapshot!(place.say(&["build", "--torch", "2.11"]), @"
    exit code 1
    --- stderr ---
    error[selection]: no variant is left to build
      caused by: torch is older than `torch.minver` = 2.13 (2 left out)
      caused by: `--torch` leaves it out (3 left out)
    hint: `kiln list-variants --reasons` shows what there is
    ");
    place.edit("relu/build.toml", "minver = \"2.13\"", "maxver = \"2.1\"");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[selection]: no variant is left to build
      caused by: torch is newer than `torch.maxver` = 2.1 (5 left out)
    hint: `kiln list-variants --reasons` shows what there is
    ");
    insta::assert_snapshot!(place.say(&["list-variants", "--reasons"]), @"
    exit code 0
    --- stdout ---

    left out:
      torch 2.11 cpu  torch is newer than `torch.maxver` = 2.1
      torch 2.12 cpu  torch is newer than `torch.maxver` = 2.1
      torch 2.13 cpu  torch is newer than `torch.maxver` = 2.1
      torch 2.14 cpu  torch is newer than `torch.maxver` = 2.1
      torch 2.15 cpu  torch is newer than `torch.maxver` = 2.1
    ");
}

#[test]
fn a_backend_whose_tools_are_missing() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "[\"cpu\"]", "[\"metal\"]");
    place.edit("relu/build.toml", "backend = \"cpu\"", "backend = \"metal\"");
    insta::assert_snapshot!(place.say(&["build", "--target", "aarch64-darwin"]), @"
    exit code 1
    --- stderr ---
    error[selection]: no variant is left to build
      caused by: it cannot be built here: there is no compiler for macOS: neither Xcode's `clang++` nor `zig` on PATH or in VIRTUAL_ENV; on a Mac install Xcode 26 or newer; elsewhere run `pip install ziglang` in a virtual environment (2 left out)
    hint: `kiln list-variants --reasons` shows what there is
    ");
}

#[test]
fn malformed_versions_and_numbers() {
    let mut place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--torch", "2.x"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `--torch 2.x`: malformed version `2.x`: numbers separated by dots are expected, such as `2.11`
    ");
    insta::assert_snapshot!(place.say(&["matrix", "--cuda", ""]), @"
    exit code 2
    --- stderr ---
    error[usage]: `--cuda ''`: a version cannot be empty
    ");
    insta::assert_snapshot!(place.say(&["build", "--jobs", "0"]), @"
    exit code 2
    --- stderr ---
    error[usage]: invalid value `0` for `--jobs <N>`: 0 is not in 1..=65535
    hint: `--help` tells more
    ");
    insta::assert_snapshot!(place.say(&["build", "--unique-id", "a b"]), @"
    exit code 2
    --- stderr ---
    error[unique-id]: unique id `a b` contains ` `: only letters, digits and underscores are allowed
    ");
    place.env("MAX_JOBS", "many");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 2
    --- stderr ---
    error[usage]: MAX_JOBS is `many`: it must be a number from 1 on
    ");
}

#[test]
fn command_lines_that_cannot_be_meant() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--fast"]), @"
    exit code 2
    --- stderr ---
    error[usage]: unexpected argument `--fast` found
    hint: to pass `--fast` as a value, use `-- --fast`
    hint: it is used as `kiln build [OPTIONS] [KERNEL_DIR]`
    ");
    insta::assert_snapshot!(place.say(&["biuld"]), @"
    exit code 2
    --- stderr ---
    error[usage]: unrecognized subcommand `biuld`
    hint: some similar subcommands exist: `build-and-copy`, `build`
    hint: it is used as `kiln [OPTIONS] <COMMAND>`
    ");
    insta::assert_snapshot!(place.say(&["build", "--release", "--all"]), @"
    exit code 2
    --- stderr ---
    error[usage]: the argument `--release` cannot be used with `--all`
    hint: it is used as `kiln build --release [KERNEL_DIR]`
    ");
    insta::assert_snapshot!(place.say(&["matrix", "--format", "yaml"]), @"
    exit code 2
    --- stderr ---
    error[usage]: invalid value `yaml` for `--format <FORMAT>`
    hint: the values are `github`, `json`
    ");
    let nothing = place.run(&[]);
    assert_eq!((nothing.code, nothing.stdout.is_empty()), (Some(2), true));
    assert!(nothing.errors().contains("Usage: kiln [OPTIONS] <COMMAND>"), "{nothing}");
}
