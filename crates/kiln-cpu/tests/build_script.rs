//! What a build script gets of [`kiln_cpu::Build`], with the real compilers of this machine.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends at its first failure")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kiln_cpu::{Build, BuildError, Cargo, Library};
use kiln_object::archive;
use kiln_object::elf::{self, Machine};

const X86: &str = "x86_64-unknown-linux-gnu";
const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// A package with a build script, and the user whose cache it shares.
struct Package {
    scratch: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

impl Package {
    fn new(files: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name).display().to_string();
        let host = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86 };
        let fixed = [
            ("CARGO_MANIFEST_DIR", path("p")),
            ("OUT_DIR", path("p/target/debug/build/p-1/out")),
            ("TARGET", host.to_owned()),
            ("HOST", host.to_owned()),
            ("NUM_JOBS", "2".to_owned()),
            ("HOME", path("home")),
            ("PATH", std::env::var("PATH").unwrap()),
        ];
        let package = Self { variables: fixed.map(|(name, value)| (name.to_owned(), value)).into(), scratch };
        fs::create_dir_all(package.out_dir()).unwrap();
        fs::create_dir_all(package.scratch.path().join("home")).unwrap();
        files.iter().for_each(|(name, text)| package.write(name, text));
        package
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path().join("p")
    }

    fn out_dir(&self) -> PathBuf {
        PathBuf::from(&self.variables["OUT_DIR"])
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn build(&self) -> Build {
        let variables = self.variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Build::new(&Cargo::new(variables).unwrap())
    }

    /// The lines for cargo, without the directories of this machine.
    fn lines(&self, library: &Library) -> String {
        let text = library.to_string().replace(&self.out_dir().display().to_string(), "OUT");
        let text = text.replace(&self.dir().display().to_string(), "PACKAGE");
        text.lines().filter(|line| !line.contains("=/") && !line.contains("env-changed")).map(|line| format!("{line}\n")).collect()
    }
}

const SUM: (&str, &str) = ("src/a b/sum.cpp", "#include \"sum.h\"\nint sum(int a, int b) { return OFFSET + a + b; }\n");
const HEADER: (&str, &str) = ("include dir/sum.h", "#pragma once\n#include <cstddef>\nextern \"C\" int sum(int a, int b);\n");

fn sum(package: &Package) -> Result<Library, BuildError> {
    package.build().file(SUM.0).include("include dir").define("OFFSET", "1").compile("sum")
}

fn objects(library: &Library) -> Vec<String> {
    let bytes = fs::read(library.archive()).unwrap();
    archive::members(&bytes).unwrap().iter().map(|member| member.name.to_owned()).collect()
}

#[test]
fn a_library_and_what_cargo_must_know_of_it() {
    let package = Package::new(&[SUM, HEADER]);
    let library = sum(&package).unwrap();
    assert_eq!(library.archive(), package.out_dir().join("libsum.a"));
    assert_eq!(objects(&library), ["0-sum.cpp.o"]);
    let bytes = fs::read(library.archive()).unwrap();
    assert!(archive::symbol_index(&bytes).unwrap().iter().any(|entry| entry.name == "sum"), "linkers look into the index");
    assert_eq!(
        package.lines(&library),
        "cargo:rustc-link-search=native=OUT\ncargo:rustc-link-lib=static=sum\ncargo:rustc-link-lib=dylib=stdc++\n\
         cargo:rerun-if-changed=PACKAGE/include dir\ncargo:rerun-if-changed=PACKAGE/include dir/sum.h\n\
         cargo:rerun-if-changed=PACKAGE/src/a b/sum.cpp\n"
    );
    let whole = library.to_string();
    assert!(whole.contains("cargo:rerun-if-changed=/usr/include/"), "headers of the system count as well: {whole}");
    assert!(whole.contains("cargo:rerun-if-env-changed=CXX\n") && whole.contains("cargo:rerun-if-env-changed=HOST_CXX\n"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(library.archive()).unwrap().permissions());
    assert_eq!(mode & 0o444, 0o444, "as other users' tools find what cargo makes");
    // Where a build script says itself what to link.
    let quiet = package.build().file(SUM.0).include("include dir").define("OFFSET", "1").cargo_metadata(false).compile("libsum.a").unwrap();
    assert_eq!(quiet.steps_run(), 0);
}

#[test]
fn only_what_changed_is_compiled_again() {
    let other = ("src/other.cpp", "extern \"C\" int other() { return 2; }\n");
    let package = Package::new(&[SUM, HEADER, other]);
    let build = || package.build().files([SUM.0, other.0]).include("include dir").define("OFFSET", "1").compile("sum").unwrap();
    let first = build();
    assert_eq!(first.steps_run(), 3, "two units and the archive");
    let written = fs::metadata(first.archive()).unwrap().modified().unwrap();
    assert_eq!(build().steps_run(), 0);
    assert_eq!(fs::metadata(first.archive()).unwrap().modified().unwrap(), written, "what is the same stays as it is");
    package.write(HEADER.0, "extern \"C\" int sum(int a, int b); inline int more() { return 1; }\n");
    assert_eq!(build().steps_run(), 1, "the unit that includes it, whose object is the same as before");
    package.write(other.0, "extern \"C\" int other() { return 3; }\n");
    assert_eq!(build().steps_run(), 2);
    // Another clone of the package, or a cleaned one, finds what the user has made before.
    fs::remove_dir_all(package.out_dir()).unwrap();
    fs::create_dir_all(package.out_dir()).unwrap();
    assert_eq!(build().steps_run(), 0);
    // Not with its own way.
    fs::remove_dir_all(package.out_dir()).unwrap();
    fs::create_dir_all(package.out_dir()).unwrap();
    let alone = package.build().files([SUM.0, other.0]).include("include dir").define("OFFSET", "1").shared_cache(false).compile("sum");
    assert_eq!(alone.unwrap().steps_run(), 3);
}

#[test]
fn two_libraries_of_one_build_script() {
    let package = Package::new(&[("one/x.c", "int one(void) { return 1; }\n"), ("two/x.c", "int two(void) { return 2; }\n")]);
    let one = package.build().file("one/x.c").compile("one").unwrap();
    let both = package.build().files(["one/x.c", "two/x.c", "one/x.c"]).flag("-g0").compile("both").unwrap();
    assert_eq!((objects(&one), objects(&both)), (vec!["0-x.c.o".to_owned()], vec!["0-x.c.o".to_owned(), "1-x.c.o".to_owned()]));
    assert!(!one.to_string().contains("stdc++"), "C needs no C++ library");
    assert_eq!(package.build().file("one/x.c").compile("one").unwrap().steps_run(), 0, "each has its own work directory");
}

#[test]
fn generated_sources_and_those_of_other_directories() {
    let package = Package::new(&[("src/lib.rs", "")]);
    fs::write(package.out_dir().join("made.cpp"), "#include \"shared.h\"\nconst char *where() { return __FILE__; }\nint x = SHARED;\n")
        .unwrap();
    let shared = package.scratch.path().join("shared");
    fs::create_dir_all(&shared).unwrap();
    fs::write(shared.join("shared.h"), "#define SHARED 1\n").unwrap();
    let library = package.build().file(package.out_dir().join("made.cpp")).include("../shared").compile("made").unwrap();
    let text = library.to_string();
    assert!(text.contains(&format!("cargo:rerun-if-changed={}\n", shared.join("shared.h").display())), "{text}");
    assert!(text.contains(&format!("cargo:rerun-if-changed={}\n", package.out_dir().join("made.cpp").display())), "{text}");
    let bytes = fs::read(library.archive()).unwrap();
    let place = package.scratch.path().display().to_string();
    assert!(!bytes.windows(place.len()).any(|window| window == place.as_bytes()), "no directory of this machine is in it");
}

#[test]
fn what_a_compiler_says_is_shown_as_it_is() {
    let package = Package::new(&[("bad.cpp", "int x() {\n    return y;\n}\n"), ("odd.cpp", "static int unused() { return 1; }\n")]);
    let error = package.build().file("bad.cpp").compile("bad").unwrap_err();
    let BuildError::Steps { steps } = &error else { panic!("{error:?}") };
    assert_eq!((steps.len(), steps[0].label.as_str()), (1, "bad.cpp"));
    let text = format!("{error:?}");
    let said = String::from_utf8_lossy(&steps[0].output);
    assert!(text.starts_with("failed to compile `bad.cpp`: exit code 1\n"), "{text}");
    assert!(text.contains(said.trim_end()) && said.contains("return y;\n"), "{text}");
    assert!(!package.out_dir().join("libbad.a").exists());
    // A warning stops nothing, and cargo shows it.
    let library = package.build().file("odd.cpp").flag("-Wall").compile("odd").unwrap();
    assert!(library.to_string().contains("/p/odd.cpp:1:12: warning: ") && library.to_string().contains("\ncargo:warning="), "{library}");
}

#[test]
fn what_cannot_be_built_is_told_before_anything_runs() {
    let package = Package::new(&[SUM, HEADER, ("k.cu", "")]);
    let said =
        |result: Result<Library, BuildError>| format!("{:?}", result.unwrap_err()).replace(&package.dir().display().to_string(), "PACKAGE");
    let missing = said(package.build().file("src/none.cpp").compile("x"));
    assert_eq!(
        missing,
        "the source `PACKAGE/src/none.cpp` does not exist\nhint: paths are relative to the directory of the package's `Cargo.toml`"
    );
    assert!(
        said(package.build().file(SUM.0).include("none").compile("x")).starts_with("the include directory `PACKAGE/none` does not exist")
    );
    assert!(said(package.build().file(HEADER.0).compile("x")).starts_with("the library `x` has no source"));
    assert!(said(package.build().file("k.cu").compile("x")).starts_with("`k.cu` is neither a source nor a header that cpu compiles"));
    for name in ["", "a/b", "-x", "a b", "lib.a"] {
        assert!(said(package.build().file(SUM.0).compile(name)).contains("cannot be the name of a library"), "{name}");
    }
    let level = said(package.build().file(SUM.0).include("include dir").std("c++98").compile("x"));
    assert!(level.starts_with("`c++98` is no C++ level\nhint: levels are `c++17`"), "{level}");
    let flag = said(package.build().file(SUM.0).flag("-o").flag("x.o").compile("x"));
    assert!(flag.contains("`-o`") && flag.contains("hint: "), "{flag}");
}

#[test]
fn an_output_directory_that_cannot_be_written_to_is_told() {
    let package = Package::new(&[SUM, HEADER]).with("OUT_DIR", "/proc/nobody/out");
    let error = sum(&package).unwrap_err().to_string();
    assert!(error.starts_with("cannot use `/proc/nobody/out/kiln-sum`: "), "{error}");
}

#[test]
fn a_user_without_a_home_builds() {
    let package = Package::new(&[SUM, HEADER]).with("HOME", "/proc/nobody");
    assert_eq!(sum(&package).unwrap().steps_run(), 2);
    assert!(package.out_dir().join("kiln-cache").is_dir());
}

#[test]
fn another_target_takes_its_own_compiler() {
    if cfg!(target_arch = "aarch64") {
        return;
    }
    let package = Package::new(&[SUM, HEADER]).with("TARGET", AARCH64);
    let library = sum(&package).unwrap();
    let bytes = fs::read(library.archive()).unwrap();
    let members = archive::members(&bytes).unwrap();
    assert_eq!(elf::relocatable(members[0].data).unwrap().machine, Machine::AARCH64);
    // The variables that build scripts know choose it.
    let named = Package::new(&[SUM, HEADER]).with("TARGET", AARCH64).with("CXX_aarch64_unknown_linux_gnu", "no-such-compiler");
    let error = format!("{:?}", sum(&named).unwrap_err());
    assert!(error.contains("`no-such-compiler` of `CXX_aarch64_unknown_linux_gnu`"), "{error}");
    let wrong = Package::new(&[SUM, HEADER]).with("TARGET", AARCH64).with("TARGET_CXX", "g++");
    let error = format!("{:?}", sum(&wrong).unwrap_err());
    assert!(error.contains("not for aarch64") && !error.contains("--cxx"), "{error}");
}

#[test]
fn the_compiler_can_be_chosen() {
    let package = Package::new(&[SUM, HEADER]).with("CXX", "clang++");
    let library = sum(&package).unwrap();
    let bytes = fs::read(library.archive()).unwrap();
    assert!(bytes.windows(5).any(|window| window == b"clang"), "its name is in its objects");
    assert!(Path::new(library.archive()).is_file());
}
