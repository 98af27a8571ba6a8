//! What `toolchain add`, `update` and `gc` do to pins, and which commands bring what is missing.

use kiln_test_server::FixtureServer;

use crate::Place;
use crate::toolchain::torch;

/// A place with a project and an index that has these releases of torch.
fn place(releases: &[&str]) -> (Place, FixtureServer) {
    let server = FixtureServer::start().unwrap();
    for release in releases {
        server.add("torch", &torch(release, 1000));
    }
    let mut place = Place::without_torch();
    place.write_project();
    place.env("KILN_INDEX_URL", &server.index());
    (place, server)
}

#[test]
fn a_dry_run_tells_what_would_be_removed() {
    let (place, _server) = place(&["2.16.0"]);
    assert!(place.say(&["toolchain", "add", "torch==2.16.0"]).contains("Added torch 2.16.0"));
    std::fs::remove_dir_all(place.path("relu")).unwrap();
    let collect = |args: &[&str]| {
        let run = place.run_in(".", &[&["toolchain", "gc", "--forget-missing"], args].concat());
        let said = run.errors();
        assert_eq!(run.code, Some(0), "{said}");
        let (_, number) = said.trim().split_once(" in ").unwrap_or_else(|| panic!("{said}"));
        (String::from_utf8(run.stdout).unwrap(), number.to_owned())
    };
    let would = collect(&["--dry-run"]);
    assert_eq!(would.1, "2 entries; 0 kept");
    assert_eq!(collect(&["--dry-run"]), would, "a dry run forgets nothing");
    assert_eq!(std::fs::read_dir(place.path("cache/projects-v1")).unwrap().count(), 1);
    assert_eq!(collect(&[]), would);
    assert_eq!(std::fs::read_dir(place.path("cache/projects-v1")).unwrap().count(), 0);
    assert_eq!(collect(&[]).1, "0 entries; 0 kept");
}

#[test]
fn all_releases_are_pinned_or_none() {
    let (place, _server) = place(&["2.16.0", "2.16.1"]);
    let said = place.say(&["toolchain", "add", "torch==2.16.0", "torch==9.9.9"]);
    assert!(said.starts_with("exit code 1") && !said.contains("Added"), "{said}");
    assert!(!place.path("relu/kiln.lock").exists());
    let said = place.say(&["toolchain", "add", "torch==2.16.0", "torch==2.16.1", "torch==2.16.0"]);
    assert!(said.starts_with("exit code 0") && said.contains("Added torch 2.16.0 ") && said.contains("Added torch 2.16.1 "), "{said}");
    let lock = std::fs::read_to_string(place.path("relu/kiln.lock")).unwrap();
    assert_eq!(lock.matches("[[torch]]").count(), 2);
    let left: Vec<_> = std::fs::read_dir(place.path("relu")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn a_release_that_was_withdrawn_is_told() {
    let (place, server) = place(&["2.16.0"]);
    server.yank(&torch("2.16.0", 1000).file, "broken on all machines");
    let said = place.say(&["toolchain", "add", "torch==2.16.0"]);
    let warning = "warning: the publisher has withdrawn `torch-2.16.0-cp311-cp311-manylinux_2_28_x86_64.whl`: broken on all machines";
    assert!(said.starts_with("exit code 0") && said.contains(warning), "{said}");
}

#[test]
fn an_index_without_the_line_is_told() {
    let (place, server) = place(&["2.16.0"]);
    assert!(place.say(&["toolchain", "add", "torch==2.16.0"]).contains("Added torch 2.16.0"));
    assert!(place.say(&["toolchain", "update"]).contains("Unchanged torch 2.16.0 (linux-x86_64) is the newest of its line"));
    server.remove(&torch("2.16.0", 1000).file);
    server.add("torch", &torch("2.17.0", 1000));
    let said = place.say(&["toolchain", "update"]);
    assert!(said.contains("Unchanged torch 2.16.0 (linux-x86_64): the index offers no torch 2.16"), "{said}");
}

/// The lock says of a release what its wheel does not: nothing is built with it.
#[test]
fn a_lock_that_says_what_its_wheel_does_not_is_refused() {
    let (place, _server) = place(&["2.16.1"]);
    assert!(place.say(&["toolchain", "add", "torch==2.16.1"]).contains("Added torch 2.16.1"));
    let sound = std::fs::read_to_string(place.path("relu/kiln.lock")).unwrap();
    let edited = |from: &str, to: &str| {
        assert!(sound.contains(from), "{sound}");
        place.write("relu/kiln.lock", sound.replace(from, to));
        place.say(&["build", "--offline", "--locked", "--torch", "2.16"])
    };
    for (from, to, key) in
        [("cxx = \"gnu++20\"", "cuda = \"12.8\"\ncxx = \"gnu++20\"", "cuda"), ("gnu++20", "gnu++17", "cxx"), ("BSD-3", "Evil", "license")]
    {
        let said = edited(from, to);
        assert!(said.starts_with("exit code 1") && said.contains("error[lock]: the lock file is damaged"), "{said}");
        assert!(said.contains(&format!("is not what the wheel gives: `{key}`")), "{said}");
    }
    let said = edited("version = \"2.16.1\"", "version = \"2.16.2\"");
    assert!(said.contains("`2.16.2` is not the version of its wheel") && said.contains("kiln.lock:5:"), "{said}");
}

/// Each error of something that is missing names the command that brings just that.
#[test]
fn the_command_that_fetches_is_named() {
    let (place, _server) = place(&[]);
    let hint = |args: &[&str]| {
        let said = place.say(&[&["--offline", "toolchain"], args].concat());
        assert!(said.contains("error[offline]: "), "{said}");
        said.lines().find_map(|line| Some(line.trim().strip_prefix("hint: run `")?.to_owned())).unwrap_or_else(|| panic!("{said}"))
    };
    for release in ["torch==2.13.0", "tvm-ffi==0.1.12", "cuda==13.2"] {
        assert_eq!(hint(&["fetch", release]), format!("kiln toolchain fetch {release}` while online"));
    }
}

#[test]
fn a_repair_needs_the_network() {
    let (place, _server) = place(&["2.16.0"]);
    assert!(place.say(&["toolchain", "add", "torch==2.16.0"]).contains("Added torch 2.16.0"));
    let tree = std::fs::read_dir(place.path("cache/toolchains-v1/trees")).unwrap().next().unwrap().unwrap().path();
    let header = tree.join("files/torch/include/noise.h");
    for path in [header.parent().unwrap(), &header] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(&header, "changed").unwrap();
    let said = place.say(&["--offline", "toolchain", "verify", "--repair"]);
    assert!(said.starts_with("exit code 1") && said.contains("error[offline]: torch-2.16.0-linux-x86_64-"), "{said}");
    assert!(said.contains("hint: run `kiln toolchain verify --repair` while online"), "{said}");
    let said = place.say(&["toolchain", "verify", "--repair"]);
    assert!(said.starts_with("exit code 0") && said.contains("repaired torch-2.16.0"), "{said}");
}
