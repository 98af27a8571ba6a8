//! `kiln doctor`, and that it agrees with `kiln build`.

use std::path::Path;
use std::process::Command;

use crate::place::{Place, Run, real_program};

/// What doctor says, without what differs from machine to machine.
fn say(place: &Place, args: &[&str]) -> String {
    masked(&place.run_in("home", &[&["doctor"], args].concat()))
}

fn masked(run: &Run) -> String {
    let masks = [
        (r"(?m)^[^\n]+, x86_64-linux$", "[system], x86_64-linux"),
        (r"\d+\.\d+ GiB free|\d+ MiB free, which is little", "[room] free"),
        (r"(g\+\+|clang\+\+|Python|git) \d+(\.\d+)+", "$1 [version]"),
        (r"run `(apt|dnf|apk|pacman|zypper) [^`]*`", "run `[install]`"),
        (r"identity [0-9a-f]{64}", "identity [digest]"),
    ];
    masks.iter().fold(run.to_string(), |text, (mask, shown)| regex::Regex::new(mask).unwrap().replace_all(&text, *shown).into_owned())
}

/// The error that a run ends with: its code and message.
fn error_of(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| Some(line[line.find("error[")?..].to_owned()))
}

/// Doctor and build on the same place: where one says no the other fails with the same words, where one says yes the other starts.
fn agree(place: &Place, args: &[&str]) -> bool {
    let asked = place.run(&[&["doctor"], args].concat());
    let built = place.run(&[&["build", "-j1"], args].concat());
    let (asked_text, built_text) = (asked.to_string(), built.errors());
    let starts = built_text.contains("Compiling ") || built.code == Some(0);
    assert_eq!(asked.code, Some(if starts { 0 } else { 1 }), "{asked_text}\n{built_text}");
    if !starts {
        let report = asked_text.split("--- stderr ---").next().unwrap();
        assert_eq!(error_of(report), error_of(&built_text), "{asked_text}\n{built_text}");
    }
    starts
}

#[test]
fn a_machine_that_is_well() {
    let place = Place::new();
    place.link("bin/git", real_program("git"));
    insta::assert_snapshot!(say(&place, &["--offline", "cpu"]), @"
    exit code 0
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      taken    g++ [version] at [dir]/bin/g++

    Python and torch
      none     nothing was found
               hint: run `[install]`

    Git
      taken    git [version] at [dir]/bin/git

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      yes      cpu: torch215-cxx11-cpu-x86_64-linux with g++ [version], torch 2.15.0 of the store
    ");
}

#[test]
fn a_bare_machine() {
    let place = Place::without_torch();
    for name in ["g++", "as", "ld"] {
        std::fs::remove_file(place.path("bin").join(name)).unwrap();
    }
    insta::assert_snapshot!(say(&place, &["--offline", "cpu"]), @"
    exit code 1
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      none     nothing was found
               hint: run `[install]`

    Python and torch
      none     nothing was found
               hint: run `[install]`

    Git
      none     `git` is not installed; builds take the content of a project for its state
               hint: run `[install]`

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      no       cpu: error[no-compiler]: no C++ compiler found: PATH has none of `g++`, `c++`, `clang++`, `g++-N`, `clang++-N`
               hint: run `[install]`
    ");
    place.write_project();
    assert!(!agree(&place, &["--offline"]));
}

#[test]
fn a_compiler_without_its_headers() {
    let mut place = Place::with_project();
    place.env("CXX", "g++ -nostdinc++");
    insta::assert_snapshot!(say(&place, &["--offline", "cpu", "-v"]), @"
    exit code 1
    --- stdout ---
    [system], x86_64-linux

    C++ compilers
      lacks    C++ compiler at [dir]/bin/g++: `cstddef`
               hint: run `[install]`
               looked at --cxx, kiln.toml, CXX, CC, PATH

    Python and torch
      none     nothing was found
               hint: run `[install]`
               looked at --torch-from, VIRTUAL_ENV, CONDA_PREFIX, `python3` and `python` on PATH

    Git
      none     `git` is not installed; builds take the content of a project for its state
               hint: run `[install]`
               looked at PATH

    Store
      taken    directory at [dir]/cache: [room] free

    Package index
      none     no package index is configured
               hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
                 `--index`
                 `kiln.toml`
                 `KILN_INDEX_URL`
                 `UV_DEFAULT_INDEX`
                 `PIP_INDEX_URL`
                 pip's configuration files
                 the installed Python's pip: there is no `python3` on PATH

    Would a build of a kernel start?
      no       cpu: error[host-compiler]: the C++ compiler `[dir]/bin/g++` lacks `cstddef`
               hint: run `[install]`
    ");
    assert!(!agree(&place, &["--offline"]));
    place.env("CXX", "g++");
    assert!(agree(&place, &["--offline"]));
}

#[test]
fn torch_that_would_have_to_be_fetched() {
    let place = Place::without_torch();
    place.write_project();
    assert!(!agree(&place, &["--offline"]));
    // No index at all.
    assert!(!agree(&place, &[]));
    // One that does not answer, with a password that nobody shows.
    let index = "http://user:secret@127.0.0.1:1/simple/";
    assert!(!agree(&place, &["--index", index]));
    let text = say(&place, &["--index", index, "cpu"]);
    assert!(text.contains("http://127.0.0.1:[port], from the value of `--index`") && !text.contains("secret"), "{text}");
}

#[test]
fn a_python_without_torch_and_one_that_is_none() {
    let mut place = Place::with_project();
    let made = Command::new(real_program("python3")).args(["-m", "venv", "--without-pip"]).arg(place.path("bare")).status().unwrap();
    assert!(made.success());
    let bare = place.path("bare/bin/python").display().to_string();
    assert!(!agree(&place, &["--offline", "--torch-from", &bare]));
    place.script("bin/python3", &format!("exec '{bare}' \"$@\"\n"));
    assert!(!agree(&place, &["--offline", "--torch-from", "python3"]));
    assert!(!agree(&place, &["--offline", "--torch-from", "nowhere/python"]));
    place.script("venv/bin/python", "echo 'this is not Python' >&2\nexit 7\n");
    let venv = place.path("venv").display().to_string();
    place.env("VIRTUAL_ENV", &venv).env("CONDA_PREFIX", "/nowhere");
    let text = say(&place, &["--offline", "cpu"]);
    let section: Vec<&str> = text.lines().skip_while(|line| *line != "Python and torch").take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(section.join("\n"), @"
    Python and torch
      unusable Python at [dir]/venv/bin/python, from VIRTUAL_ENV: `[dir]/venv/bin/python` does not work as a Python: it ended with exit code 7: this is not Python
      found    Python [version] at [dir]/bin/python3, from `python3` on PATH: no torch
      unusable Python, from CONDA_PREFIX: `/nowhere` does not exist
    ");
    assert!(agree(&place, &["--offline"]));
}

#[test]
fn places_that_cannot_be_written_to() {
    // The project: work goes to the cache, the output cannot be made.
    let place = Place::with_project().into_unprivileged();
    assert!(!agree(&place, &["--offline"]));
    // The cache: nothing can be kept there.
    place.set_mode("relu", 0o777);
    assert!(agree(&place, &["--offline"]));
    place.set_mode("cache", 0o555);
    std::fs::remove_file(place.path("cache/host-compilers-v1.json")).unwrap();
    // What is known of the compiler is not kept then; everything else is there.
    assert!(agree(&place, &["--offline"]));
    let text = say(&place, &["--offline", "cpu"]);
    assert!(text.contains("unusable directory at [dir]/cache: cannot write to `[dir]/cache`: permission denied"), "{text}");
}

#[test]
fn a_project_with_faults() {
    let place = Place::with_project();
    place.edit("relu/build.toml", "depends = []", "depend = []");
    assert!(!agree(&place, &["--offline"]));
    place.write_project();
    place.edit("relu/build.toml", "backends = [\"cpu\"]", "backends = [\"cpu\", \"xpu\"]");
    assert!(agree(&place, &["--offline"]));
    // What the project has no kernel for, and what it has only Python for.
    for (backend, starts) in [("cuda", false), ("xpu", true)] {
        let (asked, built) = (place.run(&["doctor", "--offline", backend]), place.run(&["build", "--offline", "--backend", backend]));
        assert_eq!((asked.code == Some(0), built.code == Some(0)), (starts, starts), "{asked}{built}");
        assert_eq!(error_of(&asked.to_string()), error_of(&built.errors()), "{asked}{built}");
    }
}

#[test]
fn programs_read_it_too() {
    let place = Place::with_project();
    let run = place.run(&["doctor", "--offline", "--format", "json", "cpu"]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let names: Vec<&str> = report["sections"].as_array().unwrap().iter().map(|section| section["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cxx", "python", "git", "store", "index"]);
    let cxx = &report["sections"][0]["items"][0];
    assert_eq!((cxx["state"].as_str(), cxx["name"].as_str()), (Some("taken"), Some("g++")));
    assert_eq!(Path::new(cxx["path"].as_str().unwrap()), place.path("bin/g++"));
    assert_eq!(report["project"].as_str().map(Path::new), Some(place.path("relu").canonicalize().unwrap().as_path()));
    assert_eq!(report["verdicts"][0]["starts"], true);
    assert_eq!(report["verdicts"][0]["frameworks"][0]["from"], "store");
    // Nothing is left behind in the project.
    assert!(!place.path("relu/build").exists() && !place.path("relu/.kiln").exists());
}

#[test]
fn what_is_no_backend() {
    let place = Place::with_project();
    for (name, said) in [
        ("gpu", "`gpu`: unknown backend `gpu`\nhint: did you mean `cuda`? there is "),
        ("cdua", "`cdua`: unknown backend `cdua`\nhint: did you mean `cuda`? there is "),
        ("everything", "`everything`: unknown backend `everything`\nhint: there is "),
        ("", "`''`: unknown backend ``\nhint: there is "),
        (".", "`.` is a path, "),
        ("..", "`..` is a path, "),
        ("relu", "`relu` is a path, "),
        ("relu/build.toml", "`relu/build.toml` is a path, "),
        ("/nowhere", "`/nowhere` is a path, "),
    ] {
        let run = place.run_in("", &["doctor", name]);
        assert_eq!((run.code, run.stdout.is_empty()), (Some(2), true), "{run}");
        assert!(run.errors().starts_with(&format!("error[usage]: {said}")), "{name}: {run}");
    }
    insta::assert_snapshot!(place.run_in("", &["doctor", "relu"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `relu` is a path, and `kiln doctor` takes names of backends
    hint: for the backends of a project run `kiln doctor` in its directory; else there is `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    ");
    insta::assert_snapshot!(place.run_in("", &["doctor", "cpu", "cudaa"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `cudaa`: unknown backend `cudaa`
    hint: did you mean `cuda`? there is `cann`, `cpu`, `cuda`, `metal`, `neuron`, `rocm`, `tpu`, `xpu`
    ");
}
