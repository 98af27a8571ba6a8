//! Host compilers that toolkits refuse: which one is taken instead, and what is said where there is none.
//!
//! The compilers that are too new are stand-ins, which give another number than the real one behind them; all others are real.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::started::real_program;
use crate::support::{Sandbox, shared_cache};
use crate::{ONLY, build, code, extension, fails, project, sandbox};

/// Lets the usual compiler of a sandbox give a number, and leaves no other one there than those that are named.
fn only(sandbox: &Sandbox, version: &str, others: &[&str]) {
    let bin = sandbox.path("bin");
    for name in ["c++", "clang++", "g++", "g++-11", "g++-12"] {
        let _not_there = fs::remove_file(bin.join(name));
    }
    let real = real_program("g++").unwrap();
    let script = format!("#!/bin/sh\ncase \"$*\" in *-dumpfullversion*) echo {version}; exit;; esac\nexec '{}' \"$@\"\n", real.display());
    fs::write(bin.join("g++"), script).unwrap();
    fs::set_permissions(bin.join("g++"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in others {
        symlink(real_program(name).unwrap_or_else(|| panic!("`{name}` is needed")), bin.join(name)).unwrap();
    }
}

/// What a plan says that starts well.
fn planned(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> String {
    let run = sandbox.run(dir, &[&["build", "--plan"][..], args].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stderr
}

#[test]
fn the_newest_compiler_that_the_toolkit_takes_stands_in() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"8.0\"]").write(&sandbox.path("project"));
    only(&sandbox, "99.1.0", &["g++-11", "g++-12", "clang++"]);
    let refused = "CUDA 13.2 takes GCC up to 15, and the host compiler is GCC 99.1.0";
    let run = build(&sandbox, &dir, &[]);
    let warnings: Vec<String> = run.reason("warning").iter().map(|warning| warning["message"].as_str().unwrap().to_owned()).collect();
    assert!(warnings.len() == 1 && warnings[0].starts_with(&format!("{refused}: GCC 12.")), "{warnings:?}");
    assert!(warnings[0].ends_with("/bin/g++-12` compiles instead"), "{warnings:?}");
    assert_eq!(code(&extension(&dir)), ["sm_80"]);
    let record: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("build/kiln-build.json")).unwrap()).unwrap();
    let compiler = &record["variants"].as_object().unwrap().values().next().unwrap()["toolchains"]["cxx"];
    assert!(compiler["version"].as_str().unwrap().starts_with("g++ 12."), "{compiler}");
    assert_eq!(compiler["instead-of"], "g++ 99.1.0");
    // All of them are known by now.
    sandbox.started();
    assert_eq!(build(&sandbox, &dir, &[]).steps().0, 0);
    assert!(sandbox.started().beside_git().is_empty());

    // A plan and doctor, which have no toolkit before them, know the same.
    assert!(planned(&sandbox, &dir, &ONLY).contains(refused));
    let doctor = sandbox.run(&dir, &["doctor", "cuda"]);
    assert!(doctor.stdout.contains("with g++ 12."), "{}", doctor.stdout);
    only(&sandbox, "99.1.0", &["clang++"]);
    assert!(planned(&sandbox, &dir, &ONLY).contains(&format!("{refused}: Clang ")));

    // Whoever names one gets no other.
    only(&sandbox, "99.1.0", &["g++-12"]);
    for args in [&["--cxx", "g++"][..], &["--plan", "--cxx", "g++"]] {
        let said = fails(&sandbox, &dir, args);
        assert!(said.contains(&format!("error[host-compiler-limit]: [torch]: {refused}")), "{said}");
    }
    only(&sandbox, "99.1.0", &[]);
    let said = fails(&sandbox, &dir, &[]);
    assert!(said.contains(refused) && said.contains("packages are called `g++-15` on Debian and Ubuntu"), "{said}");
    assert_eq!(sandbox.run(&dir, &["doctor", "cuda"]).code, Some(1));
}

/// The toolkit of the tests, with other words in its headers.
fn toolkit(sandbox: &Sandbox, release: u32, limit: u32) -> PathBuf {
    let mut trees = fs::read_dir(shared_cache().join("toolchains-v1/trees")).unwrap().flatten().map(|entry| entry.path());
    let real = trees.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("cuda-13.2")).unwrap().join("files");
    let dir = sandbox.path(format!("cuda-{release}-{limit}"));
    for entry in walkdir::WalkDir::new(&real) {
        let entry = entry.unwrap();
        let place = dir.join(entry.path().strip_prefix(&real).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(place).unwrap(),
            false => symlink(entry.path(), place).unwrap(),
        }
    }
    let replace = |file: &str, old: &str, new: String| {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        assert!(text.contains(old), "{file}");
        fs::remove_file(dir.join(file)).unwrap();
        fs::write(dir.join(file), text.replace(old, &new)).unwrap();
    };
    replace("include/cuda.h", "#define CUDA_VERSION 13020", format!("#define CUDA_VERSION {release}"));
    replace("include/crt/host_config.h", "#if __GNUC__ > 15", format!("#if __GNUC__ > {limit}"));
    dir
}

#[test]
fn limits_are_those_of_the_toolkits_own_headers() {
    let sandbox = sandbox();
    let dir = project("cuda-capabilities = [\"8.0\"]").write(&sandbox.path("project"));
    // As in CUDA 12.6, and in a toolkit of the same release that somebody has changed.
    for (release, limit, usual, others, taken) in [
        (12060, 13, "14.2.0", &["g++-11", "g++-12"][..], Some("GCC 12.")),
        (12060, 13, "13.4.0", &["g++-12"], None),
        (13020, 11, "12.2.0", &["g++-11", "g++-12"], Some("GCC 11.")),
    ] {
        only(&sandbox, usual, others);
        let named = toolkit(&sandbox, release, limit);
        let said = planned(&sandbox, &dir, &["--cuda-from", named.to_str().unwrap()]);
        match taken {
            Some(taken) => {
                assert!(said.contains(&format!("takes GCC up to {limit}, and the host compiler is GCC {usual}: {taken}")), "{said}");
            }
            None => assert!(!said.contains("compiles instead"), "{said}"),
        }
        fs::remove_dir_all(named).unwrap();
    }
}
