//! Faults of the files that `build.toml` tells of.

use std::fs;

use crate::Place;

#[test]
fn no_package() {
    let place = Place::with_project();
    fs::remove_file(place.path("relu/torch-ext/relu/__init__.py")).unwrap();
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: `torch-ext/relu/__init__.py` does not exist
      --> build.toml:2:8
      |
    2 | name = "relu"
      |        ^^^^^^
    hint: make it: it is what `import` runs, and it may be empty
    "#);
    place.write("relu/torch-ext/relu/init.py", "");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: `torch-ext/relu/__init__.py` does not exist
      --> build.toml:2:8
      |
    2 | name = "relu"
      |        ^^^^^^
    hint: rename `torch-ext/relu/init.py` to `torch-ext/relu/__init__.py`
    "#);
    fs::rename(place.path("relu/torch-ext"), place.path("relu/torch_ext")).unwrap();
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: the directory `torch-ext` does not exist
      --> build.toml:2:8
      |
    2 | name = "relu"
      |        ^^^^^^
      = it holds the Python package `relu`
    hint: rename `torch_ext` to `torch-ext`

    error[missing-file]: `torch-ext/binding.cpp` does not exist
      --> build.toml:9:8
      |
    9 | src = ["torch-ext/binding.cpp"]
      |        ^^^^^^^^^^^^^^^^^^^^^^^
    hint: there is `torch_ext/binding.cpp`
    "#);
}

#[test]
fn a_package_with_a_dash() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "\"relu\"", "\"my-relu\"");
    fs::rename(place.path("relu/torch-ext/relu"), place.path("relu/torch-ext/my-relu")).unwrap();
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: the Python package `torch-ext/my_relu` does not exist
      --> build.toml:2:8
      |
    2 | name = "my-relu"
      |        ^^^^^^^^^
      = kernel `my-relu` is the Python package `my_relu`
    hint: rename `torch-ext/my-relu` to `torch-ext/my_relu`
    "#);
    fs::rename(place.path("relu/torch-ext/my-relu"), place.path("relu/torch-ext/myrelu")).unwrap();
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: the Python package `torch-ext/my_relu` does not exist
      --> build.toml:2:8
      |
    2 | name = "my-relu"
      |        ^^^^^^^^^
      = kernel `my-relu` is the Python package `my_relu`
    hint: rename `torch-ext/myrelu` to `torch-ext/my_relu`
    "#);
}

#[test]
fn a_missing_source() {
    let place = Place::with_project();
    fs::rename(place.path("relu/cpu/relu.cpp"), place.path("relu/cpu/ReLU.cpp")).unwrap();
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[missing-file]: `cpu/relu.cpp` does not exist
       --> build.toml:14:8
       |
    14 | src = ["cpu/relu.cpp"]
       |        ^^^^^^^^^^^^^^
    hint: there is `cpu/ReLU.cpp`
    error[configuration]: the configuration has 1 error
    "#);
    fs::rename(place.path("relu/cpu/ReLU.cpp"), place.path("relu/cpu/other.cpp")).unwrap();
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[missing-file]: `cpu/relu.cpp` does not exist
       --> build.toml:14:8
       |
    14 | src = ["cpu/relu.cpp"]
       |        ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_source_outside_the_project() {
    let place = Place::with_project();
    place.write("secret.cpp", "");
    let listed = |path: &str| {
        place.write_project();
        place.edit("relu/build.toml", "cpu/relu.cpp", path);
        place.say(&["build"])
    };
    insta::assert_snapshot!(listed("/etc/passwd"), @r#"
    exit code 1
    --- stderr ---
    error[invalid-path]: `/etc/passwd` is an absolute path: paths are relative to the project
       --> build.toml:14:8
       |
    14 | src = ["/etc/passwd"]
       |        ^^^^^^^^^^^^^
    error[configuration]: the configuration has 1 error
    "#);
    insta::assert_snapshot!(listed("cpu/../../secret.cpp"), @r#"
    exit code 1
    --- stderr ---
    error[invalid-path]: path `cpu/../../secret.cpp` leaves the project
       --> build.toml:14:8
       |
    14 | src = ["cpu/../../secret.cpp"]
       |        ^^^^^^^^^^^^^^^^^^^^^^
    error[configuration]: the configuration has 1 error
    "#);
    insta::assert_snapshot!(listed("C:\\\\secret.cpp"), @r#"
    exit code 1
    --- stderr ---
    error[invalid-path]: `C:\secret.cpp` is an absolute path: paths are relative to the project
       --> build.toml:14:8
       |
    14 | src = ["C:\\secret.cpp"]
       |        ^^^^^^^^^^^^^^^^
    error[configuration]: the configuration has 1 error
    "#);
    place.link("relu/cpu/linked.cpp", "../../secret.cpp");
    insta::assert_snapshot!(listed("cpu/linked.cpp"), @r#"
    exit code 1
    --- stderr ---
    error[outside-project]: `cpu/linked.cpp` is reached by a link that leaves the project
       --> build.toml:14:8
       |
    14 | src = ["cpu/linked.cpp"]
       |        ^^^^^^^^^^^^^^^^
    hint: copy the files into the project, or move build.toml up to a directory that holds them too
    error[configuration]: the configuration has 1 error
    "#);
}

#[test]
fn a_package_file_outside_the_project() {
    let place = Place::with_project();
    place.write("secret.py", "");
    place.link("relu/torch-ext/relu/secret.py", "../../../secret.py");
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[package]: `torch-ext/relu/secret.py` is a link that leaves the project
      --> build.toml:2:8
      |
    2 | name = "relu"
      |        ^^^^^^
    hint: copy what it leads to into the project: a variant must be whole without it
    error[configuration]: the configuration has 1 error
    "#);
}

#[test]
fn nothing_to_compile() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "binding.cpp", "binding.h");
    place.edit("relu/build.toml", "relu.cpp", "relu.h");
    place.write("relu/torch-ext/binding.h", "");
    place.write("relu/cpu/relu.h", "");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[no-translation-unit]: there is nothing to compile for cpu: no `src` lists a translation unit
       --> build.toml:11:9
       |
    11 | [kernel.relu_cpu]
       |         ^^^^^^^^
    hint: list a source such as a `.cpp`, or remove the kernels of cpu to ship Python only for it
    error[configuration]: the configuration has 1 error
    ");
    place.edit("relu/build.toml", "\"torch-ext/binding.h\"", "");
    place.edit("relu/build.toml", "\"cpu/relu.h\"", "");
    insta::assert_snapshot!(place.say(&["check-config"]), @"
    exit code 1
    --- stderr ---
    error[no-translation-unit]: there is nothing to compile for cpu: no `src` lists a translation unit
       --> build.toml:11:9
       |
    11 | [kernel.relu_cpu]
       |         ^^^^^^^^
    hint: list a source such as a `.cpp`, or remove the kernels of cpu to ship Python only for it
    ");
}

#[test]
fn no_licence() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "license = \"Apache-2.0\"\n", "");
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[missing-key]: `license` is required in [general]
      --> build.toml:1:2
      |
    1 | [general]
      |  ^^^^^^^
    hint: add `license = "Apache-2.0"`
    error[configuration]: the configuration has 1 error
    "#);
}

#[test]
fn sources_that_nobody_compiles() {
    let place = Place::with_project();
    let listed = |name: &str| {
        place.write_project();
        place.write(&format!("relu/cpu/{name}"), "");
        place.edit("relu/build.toml", "\"cpu/relu.cpp\"", &format!("\"cpu/relu.cpp\", \"cpu/{name}\""));
    };
    listed("relu.cu");
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[unknown-source]: `relu.cu` is not compiled in a cpu kernel
       --> build.toml:14:24
       |
    14 | src = ["cpu/relu.cpp", "cpu/relu.cu"]
       |                        ^^^^^^^^^^^^^
    hint: list it in a kernel of its backend
    error[configuration]: the configuration has 1 error
    "#);
    listed("more.CPP");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[unknown-source]: `more.CPP` is not compiled: compilers do not agree on what its extension means
       --> build.toml:14:24
       |
    14 | src = ["cpu/relu.cpp", "cpu/more.CPP"]
       |                        ^^^^^^^^^^^^^^
    hint: rename it, to `more.cpp` for example
    "#);
    // Files of no kind are listed to be there; they are told, and the kernel is built.
    listed("table.dat");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @r#"
    exit code 0
    --- stderr ---
    warning[unused-source]: `table.dat` is neither a source nor a header: it is not compiled
       --> build.toml:14:24
       |
    14 | src = ["cpu/relu.cpp", "cpu/table.dat"]
       |                        ^^^^^^^^^^^^^^^
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
       Compiling module_init.c
         Linking _relu_cpu_[id].abi3.so
        Packaged [dir]/relu/build/torch215-cxx11-cpu-x86_64-linux
        Finished 1 of 1 variant (1 changed), 8 steps ran, 0 up to date, in [n] s
    "#);
}

#[test]
fn a_directory_listed_as_a_source() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "\"cpu/relu.cpp\"", "\"cpu\"");
    place.edit("relu/build.toml", "depends = []", "depends = []\ninclude = [\"cpu/relu.cpp\"]");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[not-a-directory]: `cpu/relu.cpp` is not a directory
       --> build.toml:14:12
       |
    14 | include = ["cpu/relu.cpp"]
       |            ^^^^^^^^^^^^^^
    hint: `include` lists directories

    error[not-a-file]: `cpu` is a directory
       --> build.toml:15:8
       |
    15 | src = ["cpu"]
       |        ^^^^^
    hint: `src` lists files; directories for headers go to `include`
    "#);
}

#[test]
fn flags_that_can_never_work() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends = []", "depends = []\ncxx-flags = [\"-O2\", \"-static-libgcc\"]");
    place.edit("relu/build.toml", "[torch]\n", "[torch]\ncxx-flags = [\"-static-libstdc++\"]\n");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 1
    --- stderr ---
    error[refused-flag]: `-static-libstdc++` cannot be used: a second C++ runtime in the process breaks exceptions and locales that cross the extension's border
      --> build.toml:9:14
      |
    9 | cxx-flags = ["-static-libstdc++"]
      |              ^^^^^^^^^^^^^^^^^^^
    hint: remove it

    error[refused-flag]: `-static-libgcc` cannot be used: the first exception that leaves the extension would end the process
       --> build.toml:15:21
       |
    15 | cxx-flags = ["-O2", "-static-libgcc"]
       |                     ^^^^^^^^^^^^^^^^
    hint: remove it
    "#);
}

#[test]
fn flags_that_leave_a_step_without_its_object() {
    let place = Place::with_project();
    let flags = r#"["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]"#;
    place.edit("relu/build.toml", "depends = []", &format!("depends = []\ncxx-flags = {flags}"));
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[refused-flag]: `-S` cannot be used: it makes the compiler do something else than to write an object
       --> build.toml:14:14
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |              ^^^^
    hint: remove it

    error[refused-flag]: `-MF` cannot be used: Kiln asks the compiler itself which files it reads
       --> build.toml:14:20
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                    ^^^^^
    hint: remove it

    error[refused-flag]: an empty flag cannot be used: compilers take it for the name of a file
       --> build.toml:14:34
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                  ^^
    hint: remove it

    error[refused-flag]: `@more` cannot be used: flags in a file are not looked at, and an edit of it would not be noticed
       --> build.toml:14:38
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                      ^^^^^^^
    hint: write the flags here

    error[refused-flag]: `cpu/relu.cpp` cannot be used: compilers take it for the name of a file
       --> build.toml:14:47
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                               ^^^^^^^^^^^^^^
    hint: list sources in `src`

    error[refused-flag]: `-I` cannot be used: directories that only flags name are not watched, and need not exist elsewhere
       --> build.toml:14:63
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                                               ^^^^
    hint: list the directory, which must lie in the project, in `include` as `include = ["third_party"]`

    error[refused-flag]: `-O2 -g` cannot be used: it is several flags in one text
       --> build.toml:14:84
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                                                                    ^^^^^^^^
    hint: write "-O2", "-g"

    error[refused-flag]: `-D` has no value: it would take the next flag of the command for it
       --> build.toml:14:94
       |
    14 | cxx-flags = ["-S", "-MF", "x.d", "", "@more", "cpu/relu.cpp", "-I", "third_party", "-O2 -g", "-D"]
       |                                                                                              ^^^^
    hint: add the value as the next entry, or remove the flag
    error[configuration]: the configuration has 8 errors
    "#);
}

#[test]
fn flags_for_this_machine_only() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends = []", "depends = []\ncxx-flags = [\"-march=native\", \"-lm\"]");
    insta::assert_snapshot!(place.say(&["check-config"]), @r#"
    exit code 0
    --- stderr ---
    warning[machine-flag]: `-march=native` compiles for the processor of the machine that builds: others may not run it, and no two agree on it
       --> build.toml:14:14
       |
    14 | cxx-flags = ["-march=native", "-lm"]
       |              ^^^^^^^^^^^^^^^
    hint: name the processor, as in `-march=x86-64-v3`, in a kernel that is called only where it runs

    warning[unused-flag]: `-lm` has no effect: it is for links, and these flags are for compiling
       --> build.toml:14:31
       |
    14 | cxx-flags = ["-march=native", "-lm"]
       |                               ^^^^^
    hint: remove it
    "#);
    // Nobody publishes it, whatever the project says of it.
    place.write("relu/kiln.toml", "[checks]\nmachine-flag = \"it is for my own machine\"\nunused-flag = \"it was there\"\n");
    assert_eq!(place.say(&["check-config"]), "exit code 0\n");
    insta::assert_snapshot!(place.say(&["build", "--release"]), @r#"
    exit code 1
    --- stderr ---
    error[machine-flag]: `-march=native` compiles for the processor of the machine that builds: others may not run it, and no two agree on it
       --> build.toml:14:14
       |
    14 | cxx-flags = ["-march=native", "-lm"]
       |              ^^^^^^^^^^^^^^^
    hint: name the processor, as in `-march=x86-64-v3`, in a kernel that is called only where it runs
    error[configuration]: the configuration has 1 error
    "#);
}

#[test]
fn a_language_level_below_torch() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "[torch]\n", "[torch]\ncxx-flags = [\"-std=c++17\"]\n");
    insta::assert_snapshot!(place.say(&["build", "--plan"]), @"
    exit code 1
    --- stderr ---
    error[cxx-level]: [torch]: `-std` asks for C++17, and the headers of torch 2.15.0 need C++20 or newer
    hint: leave the flag out to take the level that torch itself uses, or stay below that torch with `torch.maxver`
    ");
}
