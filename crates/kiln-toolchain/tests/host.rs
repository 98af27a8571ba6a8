//! Finding compilers, with the real ones and with wrappers that log each call.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

#[path = "common/processes.rs"]
mod processes;

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kiln_toolchain::discover::Need;
use kiln_toolchain::host::{Choice, Family, Found, HostError, HostSearch, find};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A script that logs its call and then calls `program`.
    fn wrapper(&self, name: &str, program: &str) -> PathBuf {
        self.script(name, &format!("echo x >>'{}'\nexec {program} \"$@\"\n", self.path("log").display()))
    }

    fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{body}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// How often wrappers were called so far.
    fn calls(&self) -> usize {
        std::fs::read_to_string(self.path("log")).map_or(0, |log| log.lines().count())
    }

    fn find(&self, search: &HostSearch) -> Result<Found, HostError> {
        find(search, &self.path("cache/compilers.json"))
    }
}

fn system_path() -> OsString {
    "/usr/local/bin:/usr/bin:/bin".into()
}

fn chosen(value: impl Into<String>) -> HostSearch {
    let choice = Choice { value: value.into(), origin: "--cxx".to_owned() };
    HostSearch { cxx: Some(choice), path: system_path(), ..HostSearch::default() }
}

fn names(files: &[kiln_toolchain::host::RuntimeFile]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn the_first_compiler_on_path_is_found_and_identified() {
    let place = Place::new();
    let Found { compiler, probes } = place.find(&HostSearch { path: system_path(), ..HostSearch::default() }).unwrap();
    assert!(probes > 5);
    assert!(compiler.path.ends_with("g++"), "{compiler:?}");
    assert_eq!(compiler.args, <[&str; 0]>::default());
    assert_eq!((compiler.family, compiler.accepts_no_gnu_unique), (Family::Gnu, true));
    let asked = std::process::Command::new(&compiler.path).arg("-dumpfullversion").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout).trim(), compiler.version.as_str());
    assert!(compiler.target.contains("linux"), "{}", compiler.target);
    assert_eq!(compiler.identity.len(), 64);
    assert_eq!(names(&compiler.runtime.libraries)[..4], ["libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"]);
    assert!(names(&compiler.runtime.archives).contains(&"libgcc.a"));

    let runtime = compiler.runtime.names().unwrap();
    for name in
        ["_ZNSaIcEC1Ev", "malloc", "exp", "_Unwind_Resume", "__tls_get_addr", "__dso_handle", "atexit", "__divti3", "pthread_create"]
    {
        assert!(runtime.contains(name), "{name}");
    }
    assert!(!runtime.contains("_ZN3c104goneEi"));
}

#[test]
fn a_second_call_starts_no_process() {
    let place = Place::new();
    let wrapper = place.wrapper("my g++", "g++");
    let search = chosen(wrapper.to_str().unwrap());
    let first = place.find(&search).unwrap();
    let calls = place.calls();
    assert!(first.probes > 0 && calls >= first.probes as usize, "{calls} calls, {} probes", first.probes);
    assert_eq!(first.compiler.path, wrapper);

    let second = place.find(&search).unwrap();
    assert_eq!((second.probes, place.calls()), (0, calls));
    assert_eq!(second.compiler, first.compiler);

    // Another PATH is another question.
    let other = HostSearch { path: "/usr/bin:/bin".into(), ..search.clone() };
    assert!(place.find(&other).unwrap().probes > 0);
    // Both answers are kept.
    assert_eq!((place.find(&search).unwrap().probes, place.find(&other).unwrap().probes), (0, 0));
}

#[test]
fn a_changed_compiler_is_asked_again() {
    let place = Place::new();
    let wrapper = place.wrapper("g++", "g++");
    let search = chosen(wrapper.to_str().unwrap());
    let first = place.find(&search).unwrap();

    // Same size and modification time: the change time tells.
    let before = std::fs::metadata(&wrapper).unwrap().modified().unwrap();
    let text = std::fs::read_to_string(&wrapper).unwrap();
    std::fs::write(&wrapper, text.replace("echo x", "echo y")).unwrap();
    std::fs::File::options().write(true).open(&wrapper).unwrap().set_modified(before).unwrap();
    let second = place.find(&search).unwrap();
    assert!(second.probes > 0);
    assert_ne!(second.compiler.identity, first.compiler.identity);

    // An assembler that comes earlier on PATH counts, whether or not the compiler's own files change.
    let parts = place.path("parts");
    std::fs::create_dir(&parts).unwrap();
    let path = OsString::from(format!("{}:/usr/bin:/bin", parts.display()));
    let search = HostSearch { path, ..search };
    let first = place.find(&search).unwrap();
    place.script("parts/as", "exec /usr/bin/as \"$@\"");
    let second = place.find(&search).unwrap();
    let from_path = std::process::Command::new("g++").arg("-print-prog-name=as").output().unwrap().stdout == b"as\n";
    assert_eq!(second.probes > 0, from_path);
    assert_eq!(second.compiler.identity != first.compiler.identity, from_path);
}

#[test]
fn the_identity_has_no_path_in_it() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|dir| place.script(&format!("{dir}/g++"), "exec g++ \"$@\"\n"));
    let [a, b] = [a, b].map(|path| place.find(&chosen(path.to_str().unwrap())).unwrap().compiler);
    assert_eq!(a.identity, b.identity);
    assert_ne!(a.path, b.path);
    assert_eq!(a.runtime.digest(), b.runtime.digest());
}

#[test]
fn launchers_and_links_keep_their_name() {
    let place = Place::new();
    // As ccache does it: a link that is called like the compiler, to a program that looks at its name.
    place.script("bin/ccache", "case \"$0\" in */g++) exec g++ \"$@\";; *) exec \"$@\";; esac\n");
    symlink(place.path("bin/ccache"), place.path("bin/g++")).unwrap();
    let linked = place.find(&chosen(place.path("bin/g++").to_str().unwrap())).unwrap().compiler;
    assert_eq!((linked.path, linked.family), (place.path("bin/g++"), Family::Gnu));

    let launched = place.find(&chosen(format!("{} g++ -m64", place.path("bin/ccache").display()))).unwrap().compiler;
    assert_eq!(launched.path, place.path("bin/ccache"));
    assert_eq!(launched.args, ["/usr/bin/g++", "-m64"]);
    assert_eq!(launched.family, Family::Gnu);
}

#[test]
fn the_callers_environment_does_not_reach_the_compiler() {
    let place = Place::new();
    let seen = place.path("seen");
    let wrapper = place.script("g++", &format!("env >>'{}'\nexec g++ \"$@\"\n", seen.display()));
    let mut search = chosen(wrapper.to_str().unwrap());
    search.ambient.push(("HOME".into(), "/nowhere".into()));
    place.find(&search).unwrap();
    let names: std::collections::BTreeSet<String> =
        std::fs::read_to_string(seen).unwrap().lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect();
    // `PWD`, `_`, `SHLVL` and `OLDPWD` are the shell's own. `COLLECT`-like ones would be the compiler's.
    let ours: Vec<&str> = names.iter().map(String::as_str).filter(|name| !matches!(*name, "PWD" | "_" | "SHLVL" | "OLDPWD")).collect();
    // The empty CXXFLAGS are for the `cc` crate.
    assert_eq!(ours, ["CXXFLAGS", "HOME", "LC_ALL", "PATH", "TMPDIR"]);
}

#[test]
fn a_c_compiler_stands_for_its_sibling() {
    let place = Place::new();
    let cc = Some(Choice { value: "gcc".to_owned(), origin: "CC".to_owned() });
    let search = HostSearch { cc, path: system_path(), ..HostSearch::default() };
    assert_eq!(place.find(&search).unwrap().compiler.path, Path::new("/usr/bin/g++"));
}

#[test]
fn what_is_missing_is_named_in_one_line() {
    let place = Place::new();
    let error = |search: HostSearch| {
        let error = place.find(&search).unwrap_err();
        let text = format!("{error}\n{}", error.hint().unwrap_or_default());
        text.replace(place.dir.path().to_str().unwrap(), "DIR")
    };
    let empty = HostSearch { path: place.path("empty").into_os_string(), ..HostSearch::default() };
    insta::assert_snapshot!(error(empty), @r"
    no C++ compiler found: PATH has none of `g++`, `c++`, `clang++`, `g++-N`, `clang++-N`
    install one (`apt install g++` on Debian and Ubuntu, `dnf install gcc-c++` on Fedora and RHEL), or name one with `--cxx`
    ");
    insta::assert_snapshot!(error(chosen("clang++-99")), @"
    the C++ compiler `clang++-99` of `--cxx` cannot be used: it is not on PATH
    correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(error(chosen("/nowhere/g++")), @"
    the C++ compiler `/nowhere/g++` of `--cxx` cannot be used: it does not exist
    correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(error(HostSearch { path: place.path("empty").into_os_string(), ..chosen("ccache no-such-g++") }), @"
    the C++ compiler `ccache no-such-g++` of `--cxx` cannot be used: `ccache` is not on PATH
    correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(error(chosen("gcc")), @"
    the C++ compiler `gcc` of `--cxx` cannot be used: `gcc` links no C++ library, as `g++` does
    correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    insta::assert_snapshot!(error(chosen(" ")), @"
    the C++ compiler ` ` of `--cxx` cannot be used: the value is empty
    correct `--cxx`, or leave it out to take the first compiler on PATH
    ");
    let broken = place.script("broken", "echo 'cannot start' >&2; exit 3\n");
    insta::assert_snapshot!(error(chosen(broken.to_str().unwrap())), @"
    `DIR/broken` does not work as a C++ compiler: asked for `-dumpmachine` it ended with exit code 3: cannot start
    name GCC or Clang with `--cxx`
    ");
    // A C compiler without the C++ part, as a slim image has it.
    let slim = place.script("slim", "case \"$1\" in -print-prog-name=cc1plus) echo cc1plus;; *) exec g++ \"$@\";; esac\n");
    insta::assert_snapshot!(error(chosen(slim.to_str().unwrap())), @r"
    the C++ compiler `DIR/slim` lacks `cc1plus`
    install the C++ compiler proper: `g++` on Debian and Ubuntu, `gcc-c++` on Fedora and RHEL
    ");
    let bare = place.script("bare", "case \"$1\" in -print-file-name=libstdc++.so.6) echo libstdc++.so.6;; *) exec g++ \"$@\";; esac\n");
    insta::assert_snapshot!(error(chosen(bare.to_str().unwrap())), @r"
    the C++ compiler `DIR/bare` lacks `libstdc++.so.6`
    install the C++ library: `libstdc++-N-dev` on Debian and Ubuntu, `libstdc++-devel` on Fedora and RHEL
    ");
}

#[test]
fn headers_that_are_missing_are_named() {
    let place = Place::new();
    let error = |cxx: &str| {
        let error = place.find(&chosen(cxx)).unwrap_err();
        (error.to_string(), error.need())
    };
    assert_eq!(error("/usr/bin/g++ -nostdinc++").0, "the C++ compiler `/usr/bin/g++` lacks `cstddef`");
    assert!(matches!(error("/usr/bin/g++ -nostdinc++").1, Some(Need::CxxHeaders { .. })));
    // With the C++ library's headers alone.
    let bare = place.script("bare", "case \"$*\" in *stdio.h*) exit 1;; *) exec g++ \"$@\";; esac\n");
    let (message, need) = error(bare.to_str().unwrap());
    assert_eq!(
        (message.replace(place.dir.path().to_str().unwrap(), "DIR"), need),
        ("the C++ compiler `DIR/bare` lacks `stdio.h`".to_owned(), Some(Need::CHeaders))
    );
}

#[test]
fn headers_that_go_away_are_missed() {
    let place = Place::new();
    let [cxx, c] = ["include/cstddef", "include/stdio.h"].map(|name| place.path(name));
    std::fs::create_dir(place.path("include")).unwrap();
    std::fs::write(&cxx, "").unwrap();
    std::fs::write(&c, "").unwrap();
    let search = chosen(format!("/usr/bin/g++ -nostdinc -isystem{}", place.path("include").display()));
    assert!(place.find(&search).unwrap().probes > 0);
    assert_eq!(place.find(&search).unwrap().probes, 0);
    std::fs::remove_file(&cxx).unwrap();
    assert_eq!(place.find(&search).unwrap_err().to_string(), "the C++ compiler `/usr/bin/g++` lacks `cstddef`");
}

#[test]
fn a_damaged_cache_is_ignored() {
    let place = Place::new();
    let search = HostSearch { path: system_path(), ..HostSearch::default() };
    std::fs::create_dir(place.path("cache")).unwrap();
    std::fs::write(place.path("cache/compilers.json"), "{ not json").unwrap();
    assert!(place.find(&search).unwrap().probes > 0);
    assert_eq!(place.find(&search).unwrap().probes, 0);
    let mut left: Vec<_> = std::fs::read_dir(place.path("cache")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["compilers.json", "compilers.lock"]);
}

#[test]
fn compilers_that_are_found_at_the_same_time_are_all_remembered() {
    let place = Place::new();
    let wrappers: Vec<PathBuf> = (0..4).map(|index| place.wrapper(&format!("{index}/g++"), "/usr/bin/g++")).collect();
    let search = |wrapper: &PathBuf| place.find(&chosen(wrapper.to_str().unwrap())).unwrap();
    std::thread::scope(|scope| {
        for wrapper in &wrappers {
            scope.spawn(move || search(wrapper));
        }
    });
    let asked = place.calls();
    assert!(asked >= 4);
    for wrapper in &wrappers {
        search(wrapper);
    }
    assert_eq!(place.calls(), asked);
}

/// What a search with the script `body` as the compiler says after a second.
fn hopeless(body: &str) -> String {
    let place = Place::new();
    let script = place.script("g++", &format!("echo $$ >>'{}'\n{body}\n", place.path("pids").display()));
    let search = HostSearch { limit: Some(std::time::Duration::from_secs(1)), ..chosen(script.display().to_string()) };
    let error = place.find(&search).unwrap_err().to_string();
    for pid in std::fs::read_to_string(place.path("pids")).unwrap().lines() {
        assert!(processes::ends(pid), "it still runs");
    }
    error.replace(&place.path("").display().to_string(), "[dir]/")
}

#[test]
fn a_compiler_that_never_ends_is_given_up() {
    let said = "`[dir]/g++` does not work as a C++ compiler: it gave no answer in 1 s";
    assert_eq!(hopeless("exec sleep 300"), said);
    // What it says is not kept without end.
    assert_eq!(hopeless("exec cat /dev/zero"), said);
    // Whoever wants to stop waits for neither question.
    for body in ["exec sleep 300", "case \"$*\" in *-print-file-name*) exec sleep 300;; esac\nexec g++ \"$@\""] {
        let place = Place::new();
        let search = chosen(place.script("g++", body).display().to_string());
        let interrupt = search.interrupt.clone();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            interrupt.finish();
        });
        let error = place.find(&search).unwrap_err();
        assert!(matches!(error, kiln_toolchain::host::HostError::Interrupted), "{body}: {error}");
        stopper.join().unwrap();
    }
    // Also one that hangs at a later question.
    assert_eq!(hopeless("case \"$*\" in *-dumpmachine*) exec sleep 300;; esac\nexec g++ \"$@\""), said);
}
