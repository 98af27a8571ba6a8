//! `kiln toolchain`, and other torches than the catalog's.

use crate::Place;

#[test]
fn releases_that_are_unknown_or_malformed() {
    let place = Place::without_torch();
    insta::assert_snapshot!(place.say(&["toolchain", "path", "torch==9.9.9"]), @"
    exit code 1
    --- stderr ---
    error[unknown-torch]: torch 9.9.9 for linux-x86_64 is not in the catalog
    hint: the catalog has 2.11.0, 2.12.1, 2.13.0, 2.14.1, 2.15.0; pin another release with `kiln toolchain add torch==9.9.9`
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "fetch", "torch==2.99"]), @"
    exit code 1
    --- stderr ---
    error[unknown-torch]: torch 2.99 for linux-x86_64 is not in the catalog
    hint: the catalog has 2.11.0, 2.12.1, 2.13.0, 2.14.1, 2.15.0; pin another release with `kiln toolchain add torch==2.99`
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "fetch", "2.13.0"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `2.13.0` names no release
    hint: write it as `torch==2.13.0`
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "path", "torch==2.x"]), @"
    exit code 2
    --- stderr ---
    error[usage]: `torch==2.x` names no release
    hint: write it as `torch==2.13.0`
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "path"]), @"
    exit code 2
    --- stderr ---
    error[usage]: the following required arguments were not provided: <RELEASE>
    hint: it is used as `kiln toolchain path <RELEASE>`
    ");
}

#[test]
fn what_is_there_and_what_is_not() {
    let place = Place::without_torch();
    insta::assert_snapshot!(place.say(&["toolchain", "path", "torch==2.13.0"]), @"
    exit code 1
    --- stderr ---
    error[not-fetched]: torch 2.13.0 is not in the store
    hint: fetch it with `kiln toolchain fetch torch==2.13.0`
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "list"]), @"
    exit code 0
    --- stdout ---
    torch==2.11.0 linux-x86_64   CUDA 13.0  gnu++17  not fetched
    torch==2.12.1 linux-x86_64   CUDA 13.0  gnu++20  not fetched
    torch==2.13.0 linux-x86_64   CUDA 13.0  gnu++20  not fetched
    torch==2.14.1 linux-x86_64   CUDA 13.0  gnu++20  not fetched
    torch==2.15.0 linux-x86_64   CUDA 13.2  gnu++20  not fetched
    tvm-ffi==0.1.9 linux-x86_64                     not fetched
    tvm-ffi==0.1.10 linux-x86_64                     not fetched
    tvm-ffi==0.1.11 linux-x86_64                     not fetched
    tvm-ffi==0.1.12 linux-x86_64                     not fetched
    tvm-ffi==0.1.13 linux-x86_64                     not fetched
    tvm-ffi==0.1.14 linux-x86_64                     not fetched
    tvm-ffi==0.1.15 linux-x86_64                     not fetched
    ");
    let place = Place::new();
    assert_eq!(place.say(&["--offline", "toolchain", "fetch"]), "exit code 0\n");
    let path = place.say(&["toolchain", "path", "torch==2.13.0"]);
    let (head, tail) = path.split_once("[dir]").unwrap();
    assert_eq!(head, "exit code 0\n--- stdout ---\n");
    assert!(tail.starts_with("/cache/toolchains-v1/trees/torch-2.13.0-linux-x86_64-") && tail.ends_with("/files\n"), "{path}");
}

#[test]
fn nowhere_to_keep_toolchains() {
    let mut place = Place::without_torch();
    place.env("KILN_CACHE_DIR", "").env("HOME", "");
    insta::assert_snapshot!(place.say(&["toolchain", "list"]), @"
    exit code 1
    --- stderr ---
    error[cache]: there is no directory for toolchains: none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set
    hint: name one with `--cache-dir DIR`
    ");
}

#[test]
fn a_python_that_has_no_torch() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["build", "--torch-from", "python9"]), @"
    exit code 1
    --- stderr ---
    error[torch-from]: there is no Python `python9`
    hint: give the path of a Python interpreter, such as `.venv/bin/python`
    ");
    // Also where units are only measured.
    assert!(place.say(&["lint", "--torch-from", "python9"]).contains("error[torch-from]: there is no Python `python9`"));
    place.script("bin/python3", "echo \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n");
    insta::assert_snapshot!(place.say(&["build", "--torch-from", "python3"]), @"
    exit code 1
    --- stderr ---
    error[torch-from]: `[dir]/bin/python3` does not work as a Python: it ended with exit code 1: ModuleNotFoundError: No module named 'torch'
    ");
}

#[test]
fn pins_that_may_not_change() {
    let place = Place::with_project();
    insta::assert_snapshot!(place.say(&["toolchain", "add", "torch==2.12.0", "--offline"]), @"
    exit code 1
    --- stderr ---
    error[offline]: torch 2.12.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain add torch==2.12.0` while online
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "add", "torch==2.12.0", "--frozen"]), @"
    exit code 1
    --- stderr ---
    error[locked]: `kiln.lock` would have to change, and `--locked` forbids it: torch 2.12.0 (linux-x86_64) is not pinned
    hint: run the command without `--locked` and `--frozen`
    ");
    // What the catalog knows needs no network.
    let said = place.say(&["toolchain", "add", "torch==2.13.0", "--offline"]);
    assert!(said.contains("Added torch 2.13.0 (linux-x86_64), CUDA 13.0, to kiln.lock; license: "), "{said}");
    insta::assert_snapshot!(place.say(&["toolchain", "add", "torch==2.13.0", "--frozen"]), @"
    exit code 0
    --- stderr ---
       Unchanged torch 2.13.0 (linux-x86_64) is pinned in kiln.lock
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "update", "torch==2.15"]), @"
    exit code 0
    --- stderr ---
       Unchanged kiln.lock pins nothing that could be updated
    ");
    place.write("relu/kiln.lock", "version = 1\n[[torch]]\nversion = \"2.12.0\"\n");
    for args in [&["check-config"][..], &["build"], &["toolchain", "list"]] {
        let said = place.say(args);
        assert!(said.contains("error[lock]: missing field `platform`") && said.contains("kiln.lock:2:1"), "{args:?}: {said}");
    }
}

#[test]
fn a_store_that_is_empty() {
    let place = Place::without_torch();
    insta::assert_snapshot!(place.say(&["toolchain", "verify"]), @"
    exit code 0
    --- stderr ---
        Verified 0 trees
    ");
    insta::assert_snapshot!(place.say(&["toolchain", "gc"]), @"
    exit code 0
    --- stderr ---
           Freed 0.0 kB in 0 entries; 0 kept
    ");
}

/// A wheel of a torch that nobody knows, with this many bytes that cannot be compressed.
pub(crate) fn unknown_torch(size: usize) -> kiln_test_server::Wheel {
    torch("2.16.0", size)
}

/// A wheel of this release of torch with so many such bytes.
pub(crate) fn torch(version: &str, size: usize) -> kiln_test_server::Wheel {
    use kiln_test_server::{Member, Wheel, WheelBuilder, noise};
    let stub = kiln_object::stub::Stub::new("libc10.so", kiln_object::elf::Machine::X86_64, Vec::new()).write().unwrap();
    let built = WheelBuilder::new("torch", version)
        .file("torch/version.py", format!("__version__ = '{version}'\ncuda: Optional[str] = None\n"))
        .member(Member::stored("torch/include/noise.h", noise(5, size)))
        .member(Member::stored("torch/lib/libc10.so", stub))
        .file(&format!("torch-{version}.dist-info/METADATA"), "Name: torch\nLicense-Expression: BSD-3-Clause\n")
        .build();
    Wheel { file: format!("torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"), ..built }
}

#[test]
fn a_store_on_a_full_disk() {
    let server = kiln_test_server::FixtureServer::start().unwrap();
    server.add("torch", &unknown_torch(3_000_000));
    let mut place = Place::without_torch();
    place.write_project();
    place.env("KILN_INDEX_URL", &server.index());
    // A file system of its own, in a namespace of its own; afterwards it gets some room.
    let script = "/usr/bin/mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 99; \"$2\" toolchain add torch==2.16.0; echo \"exit $?\" >&2; \
                  /usr/bin/find \"$1/toolchains-v1\" -mindepth 2 >&2; /usr/bin/mount -o remount,size=64m \"$1\" || exit 98; \
                  exec \"$2\" toolchain add torch==2.16.0";
    let kiln = place.command(&[]);
    let mut command = std::process::Command::new(crate::place::real_program("unshare"));
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--", "/bin/sh", "-c", script, "sh"]).arg(place.path("cache")).arg(kiln.get_program());
    command.env_clear().envs(kiln.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(place.path("relu"));
    let output = command.stdin(std::process::Stdio::null()).output().expect("`unshare` (util-linux) is needed");
    let said = String::from_utf8(output.stderr).unwrap().replace(&place.path(".").display().to_string(), "[dir]");
    assert_ne!(output.status.code(), Some(99), "a small file system could not be mounted, as this test needs it: {said}");
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("/locks/") && !line.contains("/use/")).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_lock_that_other_programs_had() {
    let place = Place::with_project();
    assert!(place.say(&["toolchain", "add", "torch==2.13.0", "--offline"]).contains("Added torch 2.13.0"));
    let lock = std::fs::read_to_string(place.path("relu/kiln.lock")).unwrap();
    // The line ends of another system.
    place.write("relu/kiln.lock", lock.replace('\n', "\r\n"));
    assert!(place.say(&["toolchain", "add", "torch==2.13.0", "--frozen"]).contains("Unchanged torch 2.13.0"));
    assert_eq!(place.run(&["check-config"]).code, Some(0));
    // What git leaves after a merge.
    let (head, entry) = lock.split_at(lock.find("[[torch]]").unwrap());
    let merged = format!("{head}<<<<<<< HEAD\n{entry}=======\n{entry}>>>>>>> theirs\n");
    place.write("relu/kiln.lock", &merged);
    insta::assert_snapshot!(place.say(&["toolchain", "add", "torch==2.11.0", "--offline"]));
    for args in [&["check-config"][..], &["build", "--offline"], &["toolchain", "list"], &["toolchain", "gc"]] {
        let said = place.say(args);
        assert!(said.contains("the file has the marks of a merge") && said.starts_with("exit code 1"), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(place.path("relu/kiln.lock")).unwrap(), merged);
}

/// A project with a pinned release, and the index that has it.
fn with_pin(version: &str) -> (kiln_test_server::FixtureServer, Place) {
    let server = kiln_test_server::FixtureServer::start().unwrap();
    server.add("torch", &torch(version, 1000));
    let mut place = Place::without_torch();
    place.write_project();
    place.env("KILN_INDEX_URL", &server.index());
    assert!(place.say(&["toolchain", "add", &format!("torch=={version}")]).contains(&format!("Added torch {version}")));
    (server, place)
}

/// What `gc` says outside of any project: its exit code and standard error.
fn collected_outside(place: &Place) -> (Option<i32>, String) {
    let output = place.command(&["toolchain", "gc"]).current_dir(place.path(".")).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_a_project_pins_is_kept_while_it_is_away_or_its_lock_is_damaged() {
    let (_server, place) = with_pin("2.16.0");
    let count = |dir: &str| std::fs::read_dir(place.path("cache/toolchains-v1").join(dir)).unwrap().count();
    assert_eq!((count("trees"), count("names")), (1, 1));

    std::fs::rename(place.path("relu"), place.path("away")).unwrap();
    let (code, said) = collected_outside(&place);
    assert!(code == Some(0) && said.contains("what it used is kept") && said.contains("in 0 entries; 1 kept"), "{code:?} {said}");
    std::fs::rename(place.path("away"), place.path("relu")).unwrap();

    let lock = std::fs::read_to_string(place.path("relu/kiln.lock")).unwrap();
    place.write("relu/kiln.lock", format!("<<<<<<< ours\n{lock}"));
    let (code, said) = collected_outside(&place);
    assert!(code == Some(1) && said.contains("relu/kiln.lock` cannot be read") && said.contains("nothing was removed"), "{code:?} {said}");

    std::fs::remove_file(place.path("relu/kiln.lock")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("relu/kiln.lock"), rustix::fs::Mode::RWXU).unwrap();
    let (code, said) = collected_outside(&place);
    assert!(code == Some(1) && said.contains("relu/kiln.lock` cannot be read"), "{code:?} {said}");
    let said = place.say(&["toolchain", "list"]);
    assert!(said.starts_with("exit code 1") && said.contains("it is no regular file"), "{said}");
    assert_eq!((count("trees"), count("names")), (1, 1));

    // Who takes the lock away means it.
    std::fs::remove_file(place.path("relu/kiln.lock")).unwrap();
    let (code, said) = collected_outside(&place);
    assert!(code == Some(0) && said.contains("in 2 entries; 0 kept"), "{code:?} {said}");
    assert_eq!((count("trees"), count("names")), (0, 0));
}

/// Another machine has pinned the release: the lock is there, and nothing of the release is.
#[test]
fn a_plan_with_a_pinned_torch_that_is_not_in_the_store() {
    let (server, place) = with_pin("2.15.9");
    for name in ["toolchains-v1", "projects-v1"] {
        std::fs::remove_dir_all(place.path("cache").join(name)).unwrap();
    }

    server.clear_log();
    for args in [&["build", "--plan"][..], &["build", "--plan", "--offline"]] {
        let said = place.say(&[args, &["--torch", "2.15"]].concat());
        assert!(said.starts_with("exit code 0\n"), "{said}");
        assert!(said.contains("variant torch215-cxx11-cpu-x86_64-linux with torch 2.15.9: _relu_cpu_[id].abi3.so\n"), "{said}");
    }
    assert_eq!(server.log().entries.len(), 0, "a plan fetches nothing");

    // Whether a build starts is another question, and it is asked where the wheel is.
    let verdict = place.say(&["doctor", "cpu"]);
    assert!(verdict.contains("torch 2.15.9 of the index"), "{verdict}");
    let offline = place.say(&["build", "--offline", "--torch", "2.15"]);
    assert!(offline.contains("error[offline]: torch 2.15.9 (linux-x86_64) is not in the store"), "{offline}");
    assert!(place.say(&["doctor", "--offline", "cpu"]).contains("error[offline]: torch 2.15.9 (linux-x86_64) is not in the store"));
}

/// A note of a project that does not say any more what it is about: nothing that it may have needed is removed.
#[test]
fn a_damaged_note_keeps_all() {
    let (_server, place) = with_pin("2.16.0");
    let notes: Vec<_> = std::fs::read_dir(place.path("cache/projects-v1")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    let whole = std::fs::read(note).unwrap();
    std::fs::write(note, &whole[..whole.len() / 2]).unwrap();
    for args in [&["toolchain", "gc"][..], &["toolchain", "gc", "--dry-run"], &["toolchain", "gc", "--forget-missing"]] {
        // From elsewhere, and in the project itself, whose lock does not say what its builds used.
        for directory in [".", "relu"] {
            let run = place.run_in(directory, args);
            let said = run.errors();
            assert!(
                run.code == Some(1) && said.contains("error[store]: it is not known what a project needs: `[dir]/cache/projects-v1/"),
                "{said}"
            );
            assert!(said.contains("hint: nothing was removed; the next build of that project writes it anew"), "{said}");
        }
    }
    assert_eq!(std::fs::read_dir(place.path("cache/toolchains-v1/trees")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(place.path("cache/toolchains-v1/names")).unwrap().count(), 1);
}

/// A build for XPU of a torch that the matrix lacks: nothing says which release of oneAPI it is for.
#[test]
fn a_pin_that_nothing_is_built_with_is_told() {
    use kiln_test_server::{Member, Wheel, WheelBuilder};
    let server = kiln_test_server::FixtureServer::start().unwrap();
    for local in ["xpu", "rocm7.9"] {
        let stub = kiln_object::stub::Stub::new("libc10.so", kiln_object::elf::Machine::X86_64, Vec::new()).write().unwrap();
        let built = WheelBuilder::new("torch", &format!("2.16.0+{local}"))
            .file("torch/version.py", format!("__version__ = '2.16.0+{local}'\ncuda: Optional[str] = None\n"))
            .member(Member::stored("torch/include/a.h", b"".to_vec()))
            .member(Member::stored("torch/lib/libc10.so", stub))
            .file(&format!("torch-2.16.0+{local}.dist-info/METADATA"), "Name: torch\nLicense-Expression: BSD-3-Clause\n")
            .build();
        server.add("torch", &Wheel { file: format!("torch-2.16.0+{local}-cp311-cp311-manylinux_2_28_x86_64.whl"), ..built });
    }
    let mut place = Place::without_torch();
    place.write_project();
    place.env("KILN_INDEX_URL", &server.index());
    let said = place.say(&["toolchain", "add", "torch==2.16.0+xpu"]);
    assert!(said.contains("Added torch 2.16.0+xpu (linux-x86_64)"), "{said}");
    assert!(
        said.contains("warning: torch 2.16.0+xpu (linux-x86_64) is pinned, but no variant is built with it: the matrix has no row"),
        "{said}"
    );
    let checked = place.say(&["check-config"]);
    assert!(checked.contains("warning[lock]: torch 2.16.0+xpu (linux-x86_64) is pinned, but no variant is built with it"), "{checked}");
    assert!(checked.contains("--> kiln.lock:1:1"), "{checked}");
    let said = place.say(&["toolchain", "add", "torch==2.16.0+rocm7.9"]);
    assert!(said.contains("Added torch 2.16.0+rocm7.9") && !said.contains("no variant is built with it"), "{said}");
}
