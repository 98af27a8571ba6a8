//! Host compilers that are missing or do not work.

use std::fs;

use crate::place::{Place, real_program};

fn with_cxx(value: &str) -> String {
    Place::with_project().say(&["build", "--cxx", value])
}

#[test]
fn none_on_path() {
    let place = Place::with_project();
    for name in ["g++", "as", "ld"] {
        fs::remove_file(place.path("bin").join(name)).unwrap();
    }
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[no-compiler]: no C++ compiler found: PATH has none of `g++`, `c++`, `clang++`, `g++-N`, `clang++-N`
    hint: install one (`apt install g++` on Debian and Ubuntu, `dnf install gcc-c++` on Fedora and RHEL), or name one with `--cxx`
    ");
    // Nothing is compiled for Python alone.
    place.edit("relu/build.toml", "[torch]\nsrc = [\"torch-ext/binding.cpp\"]\n", "[torch-noarch]\n");
    let text = fs::read_to_string(place.path("relu/build.toml")).unwrap();
    place.write("relu/build.toml", text.split("[kernel").next().unwrap());
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 0
    --- stderr ---
        Packaged [dir]/relu/build/torch-cpu
        Finished 1 of 1 variant (1 changed), 0 steps ran, 0 up to date, in [n] s
    ");
}

#[test]
fn chosen_and_not_there() {
    insta::assert_snapshot!(with_cxx("g++-99"), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `g++-99` of `--cxx` cannot be used: it is not on PATH
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(with_cxx("/opt/gcc/bin/g++"), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `/opt/gcc/bin/g++` of `--cxx` cannot be used: it does not exist
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(with_cxx("build.toml"), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `build.toml` of `--cxx` cannot be used: it is not on PATH
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(with_cxx(""), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `` of `--cxx` cannot be used: the value is empty
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(with_cxx("ccache g++"), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `ccache g++` of `--cxx` cannot be used: `ccache` is not on PATH
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
}

#[test]
fn chosen_and_no_compiler() {
    let place = Place::with_project();
    place.script("bin/silent", "exit 1\n");
    insta::assert_snapshot!(place.say(&["build", "--cxx", "silent"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: `[dir]/bin/silent` does not work as a C++ compiler: asked for `-dumpmachine` it ended with exit code 1 and said nothing
    hint: name GCC or Clang with `--cxx`
    ");
    place.script("bin/broken", "echo 'error while loading shared libraries: libmpc.so.3' >&2\nexit 127\n");
    insta::assert_snapshot!(place.say(&["build", "--cxx", "broken"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: `[dir]/bin/broken` does not work as a C++ compiler: asked for `-dumpmachine` it ended with exit code 127: error while loading shared libraries: libmpc.so.3
    hint: name GCC or Clang with `--cxx`
    ");
    place.script("bin/nothing", "exit 0\n");
    insta::assert_snapshot!(place.say(&["build", "--cxx", "nothing"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: `[dir]/bin/nothing` does not work as a C++ compiler: it is neither GCC nor Clang
    hint: name GCC or Clang with `--cxx`
    ");
    place.script("bin/dies", "kill -SEGV $$\n");
    insta::assert_snapshot!(place.say(&["build", "--cxx", "dies"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: `[dir]/bin/dies` does not work as a C++ compiler: asked for `-dumpmachine` it ended with signal 11 and said nothing
    hint: name GCC or Clang with `--cxx`
    ");
}

#[test]
fn a_c_compiler() {
    let place = Place::with_project();
    place.script("bin/gcc", "exit 0\n");
    insta::assert_snapshot!(place.say(&["build", "--cxx", "gcc"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `gcc` of `--cxx` cannot be used: `gcc` links no C++ library, as `g++` does
    hint: correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
}

#[test]
fn chosen_by_a_variable() {
    let mut place = Place::with_project();
    place.env("CXX", "g++-99");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `g++-99` of `CXX` cannot be used: it is not on PATH
    hint: correct `CXX`, or leave it out to take the first compiler on PATH
    ");
    let mut place = Place::with_project();
    place.env("CC", "clang-99");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `clang++-99` of `CC` cannot be used: it is not on PATH
    hint: correct `CC`, or leave it out to take the first compiler on PATH
    ");
}

#[test]
fn chosen_by_the_projects_settings() {
    let place = Place::with_project();
    place.write("relu/kiln.toml", "[build]\ncxx = \"g++-99\"\n");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `g++-99` of `kiln.toml: build.cxx` cannot be used: it is not on PATH
    hint: correct `kiln.toml: build.cxx`, or leave it out to take the first compiler on PATH
    ");
}

#[test]
fn a_compiler_without_its_parts() {
    let place = Place::with_project();
    place.compiler("case \"$*\" in *-print-prog-name=cc1plus*) echo cc1plus; exit 0;; esac\n");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `[dir]/bin/g++` lacks `cc1plus`
    hint: install the C++ compiler proper: `g++` on Debian and Ubuntu, `gcc-c++` on Fedora and RHEL
    ");
    place.compiler("case \"$*\" in *-print-file-name=libstdc++.so.6*) echo libstdc++.so.6; exit 0;; esac\n");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[host-compiler]: the C++ compiler `[dir]/bin/g++` lacks `libstdc++.so.6`
    hint: install the C++ library: `libstdc++-N-dev` on Debian and Ubuntu, `libstdc++-devel` on Fedora and RHEL
    ");
}

#[test]
fn a_compiler_that_vanishes_during_the_build() {
    let place = Place::with_project();
    // This compile is the last of the script.
    let rm = real_program("rm");
    place.compiler(&format!("case \"$*\" in *' -c '*cpu/relu.cpp*) '{}' \"$0\";; esac\n", rm.display()));
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
       Compiling module_init.c
    error[step-not-started]: failed to compile `module_init.c`: cannot run `[dir]/bin/g++`: No such file or directory (os error 2)
      command: [dir]/bin/g++ [flags] -c [dir]/relu/.kiln/out/[step]/module_init.c [..]
    error[build-failed]: 1 of 1 variant could not be made: 1 step failed, 3 skipped
    ");
}
