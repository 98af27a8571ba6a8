//! Output directories that cannot be used, and those that can.

use std::fs;

use crate::Place;

const VARIANT: &str = "torch215-cxx11-cpu-x86_64-linux";

/// The first error of a build, and that no compiler was started for it.
fn refused(place: &Place, args: &[&str]) -> String {
    let run = place.run(args);
    assert!(!run.errors().contains("Compiling"), "{run}");
    run.to_string()
}

#[test]
fn a_file_in_the_way() {
    let place = Place::with_project();
    place.write("relu/build", "");
    insta::assert_snapshot!(refused(&place, &["build"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to make the output directory `[dir]/relu/build`: `[dir]/relu/build` is not a directory
    hint: `--out DIR` puts the variants elsewhere
    ");
    place.write("file", "");
    insta::assert_snapshot!(refused(&place, &["build", "--out", "../file/deeper/out"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to make the output directory `[dir]/relu/../file/deeper/out`: `[dir]/relu/../file` is not a directory
    hint: `--out DIR` puts the variants elsewhere
    ");
    place.link("relu/dangling", "nowhere");
    insta::assert_snapshot!(refused(&place, &["build", "--out", "dangling"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to make the output directory `[dir]/relu/dangling`: `[dir]/relu/dangling` is not a directory
    hint: `--out DIR` puts the variants elsewhere
    ");
    assert_eq!(fs::read_to_string(place.path("relu/build")).unwrap(), "");
}

#[test]
fn file_systems_that_take_no_files() {
    let place = Place::with_project();
    insta::assert_snapshot!(refused(&place, &["build", "--out", "/proc/kiln"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to make the output directory `/proc/kiln`
      caused by: No such file or directory (os error 2)
    hint: `--out DIR` puts the variants elsewhere
    ");
    let sys = refused(&place, &["build", "--out", "/sys/kiln"]);
    // In some containers it is mounted read-only: another cause.
    assert!(sys.starts_with("exit code 1\n--- stderr ---\nerror[output]: failed to make the output directory `/sys/kiln`\n  caused by: "));
    assert!(sys.ends_with("hint: `--out DIR` puts the variants elsewhere\n"), "{sys}");
}

#[test]
fn directories_without_permission() {
    let place = Place::with_project();
    fs::create_dir_all(place.path("relu/build")).unwrap();
    fs::create_dir_all(place.path("locked")).unwrap();
    for name in ["relu", "relu/build", "locked"] {
        place.set_mode(name, 0o555);
    }
    let place = place.into_unprivileged();
    insta::assert_snapshot!(refused(&place, &["build"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to write to the output directory `[dir]/relu/build`
      caused by: Permission denied (os error 13)
    hint: `--out DIR` puts the variants elsewhere
    ");
    insta::assert_snapshot!(refused(&place, &["build", "--out", "../locked/out"]), @"
    exit code 1
    --- stderr ---
    error[output]: failed to make the output directory `[dir]/relu/../locked/out`
      caused by: Permission denied (os error 13)
    hint: `--out DIR` puts the variants elsewhere
    ");
    // The work directory has another place when the project cannot be written to.
    insta::assert_snapshot!(place.say(&["build", "-j1", "--out", "../home/out"]), @"
    exit code 0
    --- stderr ---
       Compiling torch-ext/binding.cpp
       Compiling cpu/relu.cpp
       Compiling module_init.c
         Linking _relu_cpu_[id].abi3.so
        Packaged [dir]/relu/../home/out/torch215-cxx11-cpu-x86_64-linux
        Finished 1 of 1 variant (1 changed), 8 steps ran, 0 up to date, in [n] s
    ");
    for name in ["relu", "relu/build", "locked"] {
        place.set_mode(name, 0o755);
    }
}

#[test]
fn odd_places_that_work() {
    let place = Place::with_project();
    for out in ["../with space/deep/er", "cpu/out", "ü"] {
        let run = place.run(&["build", "--quiet", "--out", out]);
        assert_eq!(run.to_string(), "exit code 0\n", "{out}");
        assert!(place.path("relu").join(out).join(VARIANT).join("metadata.json").is_file(), "{out}");
    }
    // A link to a directory is as good as the directory.
    fs::create_dir(place.path("elsewhere")).unwrap();
    place.link("relu/build", "../elsewhere");
    assert_eq!(place.run(&["build"]).code, Some(0));
    assert!(place.path("elsewhere").join(VARIANT).join("metadata.json").is_file());
}

#[test]
fn the_place_of_a_variant_taken_by_something_else() {
    let place = Place::with_project();
    let variant = format!("relu/build/{VARIANT}");
    place.write(&variant, "a file");
    insta::assert_snapshot!(place.say(&["build", "-j1"]), @"
    exit code 1
    --- stderr ---
    error[output]: `[dir]/relu/build/torch215-cxx11-cpu-x86_64-linux` is not a directory, and a build makes one there
    hint: remove it, or give it another name
    ");
    assert_eq!(fs::read_to_string(place.path(&variant)).unwrap(), "a file");

    fs::remove_file(place.path(&variant)).unwrap();
    place.write("precious/data", "kept");
    place.link(&variant, "../../precious");
    assert!(place.say(&["build"]).starts_with("exit code 1\n--- stderr ---\nerror[output]: "));
    assert!(fs::symlink_metadata(place.path(&variant)).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(place.path("precious/data")).unwrap(), "kept");
}

#[test]
fn an_output_directory_that_the_next_build_would_read() {
    let place = Place::with_project();
    place.link("relu/link", "torch-ext/relu");
    insta::assert_snapshot!(place.say(&["build", "--out", "link/../relu/out"]), @"
    exit code 2
    --- stderr ---
    error[usage]: the output directory `[dir]/relu/link/../relu/out` lies in the Python package, which is shipped
    hint: choose a directory outside it with `--out`
    ");
    insta::assert_snapshot!(place.say(&["build", "--out", ".kiln/out"]), @"
    exit code 2
    --- stderr ---
    error[usage]: the output directory `[dir]/relu/.kiln/out` lies in the work directory, which is cleaned
    hint: choose a directory outside it with `--out`
    ");
}

#[test]
fn nowhere_to_work() {
    let place = Place::with_project();
    place.write("relu/.kiln", "mine");
    insta::assert_snapshot!(place.say(&["build"]), @"
    exit code 1
    --- stderr ---
    error[work-directory]: `[dir]/relu/.kiln` is not a directory, and a build works there
    hint: remove it, or give it another name
    ");
    assert_eq!(fs::read_to_string(place.path("relu/.kiln")).unwrap(), "mine");

    let place = Place::with_project();
    place.set_mode("relu", 0o555);
    place.write("cache/work", "");
    let place = place.into_unprivileged();
    insta::assert_snapshot!(place.say(&["build", "--out", "../home/out"]), @"
    exit code 1
    --- stderr ---
    error[work-directory]: cannot use `[dir]/relu/.kiln`: Permission denied (os error 13)
    hint: work needs a directory there, or a cache directory that can be written to
    ");
    place.set_mode("relu", 0o755);

    let place = Place::with_project().into_unprivileged();
    place.set_mode("cache", 0o555);
    insta::assert_snapshot!(place.say(&["build", "--out", "../home/out"]), @"
    exit code 1
    --- stderr ---
    error[work-directory]: cannot use `[dir]/cache/floors-v1/work`: Permission denied (os error 13)
    hint: work needs a directory there, or a cache directory that can be written to
    ");
    place.set_mode("cache", 0o755);
}

#[test]
fn package_files_that_clash_with_generated_ones() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "[torch]\n", "[torch]\npyext = [\"py\", \"json\"]\n");
    place.write("relu/torch-ext/relu/metadata.json", "{}");
    insta::assert_snapshot!(place.say(&["build"]), @r#"
    exit code 1
    --- stderr ---
    error[layout]: `torch-ext/relu/metadata.json` has the name of a generated file
      --> build.toml:2:8
      |
    2 | name = "relu"
      |        ^^^^^^
    error[configuration]: the configuration has 1 error
    "#);
}

#[test]
fn variants_of_earlier_builds() {
    let place = Place::new();
    let file = "[general]\nname = \"tiny\"\nversion = 1\nedition = 5\nlicense = \"MIT\"\nbackends = [\"cpu\", \"cuda\", \"xpu\"]\n[torch-noarch]\n";
    place.write("tiny/build.toml", file);
    place.write("tiny/torch-ext/tiny/__init__.py", "");
    let build = |args: &[&str]| place.run_in("tiny", &[&["build", "--quiet", "--unique-id"], args].concat()).to_string();
    assert_eq!(build(&["one"]), "exit code 0\n");
    // Not by Kiln, so not for Kiln to judge.
    place.write("tiny/build/torch-metal/__init__.py", "");
    assert_eq!(build(&["one", "--backend", "cpu"]), "exit code 0\n");
    place.edit("tiny/build.toml", "\"cpu\", \"cuda\", \"xpu\"", "\"cpu\", \"cuda\"");
    insta::assert_snapshot!(build(&["two"]), @"
    exit code 0
    --- stderr ---
    warning: in `[dir]/tiny/build`, `torch-xpu` is no variant of this kernel any more: `kiln build --prune` removes it
    ");
    insta::assert_snapshot!(build(&["three", "--backend", "cpu"]), @"
    exit code 0
    --- stderr ---
    warning: in `[dir]/tiny/build`, `torch-xpu` is no variant of this kernel any more: `kiln build --prune` removes it
    ");
    assert!(place.path("tiny/build/torch-xpu").is_dir());
    insta::assert_snapshot!(place.run_in("tiny", &["build", "--unique-id", "three", "--backend", "cpu", "--prune"]).to_string(), @"
    exit code 0
    --- stderr ---
        Packaged [dir]/tiny/build/torch-cpu (unchanged)
         Removed [dir]/tiny/build/torch-xpu
        Finished 1 of 1 variant (0 changed), 0 steps ran, 0 up to date, in [n] s
    ");
    assert_eq!(build(&["three", "--backend", "cpu"]), "exit code 0\n");
    let mut left: Vec<_> = fs::read_dir(place.path("tiny/build")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["kiln-build.json", "torch-cpu", "torch-cuda", "torch-metal"]);
}
