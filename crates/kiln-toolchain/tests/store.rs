//! The store: shared between processes, whole or not at all, checked on demand, usable without a network.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{Bench, HEADERS, PLATFORM, VERSION, version};
use kiln_test_server::{Fault, Target};
use kiln_toolchain::Provider;

/// A process that fetches.
fn command(bench: &Bench) -> Command {
    let catalog = bench.dir.path().join("catalog.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln-toolchain-test-fetch"));
    command.args([catalog.as_os_str(), bench.cache().as_os_str(), bench.index.as_ref(), VERSION.as_ref()]).stdin(Stdio::null());
    command
}

/// Starts a process that fetches.
fn process(bench: &Bench) -> Child {
    command(bench).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_toolchain_says_what_it_is() {
    let bench = Bench::new();
    let toolchain = bench.provision(|provisioner| provisioner.torch(&version(), PLATFORM)).unwrap();
    assert_eq!(toolchain.cuda.as_ref().unwrap().to_string(), "13.0");
    assert_eq!(toolchain.cxx_level.as_str(), "gnu++20");
    assert!(matches!(&toolchain.provider, Provider::Wheel { file, .. } if *file == bench.wheel.file));
    let dirs: Vec<&str> = toolchain.include_dirs.iter().map(|dir| dir.path.as_str()).collect();
    assert_eq!(dirs, ["torch/include", "torch/include/torch/csrc/api/include"]);
    assert!(toolchain.root.as_str().starts_with("torch-2.13.0-linux-x86_64-"));
    let header = toolchain.binding.dir.join("torch/include/d3/h3.h");
    assert!(std::fs::read_to_string(&header).unwrap().contains("// header 3\n"));
    assert_eq!(std::fs::metadata(&header).unwrap().permissions().mode() & 0o222, 0);
    // Again, from the store.
    bench.server.clear_log();
    let again = bench.provision(|provisioner| provisioner.torch(&version(), PLATFORM)).unwrap();
    assert_eq!((again.identity, again.binding), (toolchain.identity, toolchain.binding));
    assert_eq!(bench.server.log().entries.len(), 0);
}

#[test]
fn equal_pins_give_one_tree_and_others_another() {
    let identity = |bench: &Bench| bench.provision(|provisioner| provisioner.torch(&version(), PLATFORM)).unwrap().identity;
    let changed = Bench::with(common::torch().file("torch/include/new.h", "new").build());
    assert_eq!(identity(&Bench::new()), identity(&Bench::new()));
    assert_ne!(identity(&Bench::new()), identity(&changed));
}

#[test]
fn listing_and_finding() {
    let bench = Bench::new();
    let place = |bench: &Bench| bench.provision(|provisioner| provisioner.path(&version(), PLATFORM)).unwrap();
    assert_eq!(place(&bench), None);
    let dir = bench.fetch().unwrap();
    assert_eq!(place(&bench), Some(dir.clone()));
    let listed = bench.provision(|provisioner| provisioner.list());
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].release.version.to_string().as_str(), &listed[0].dir), (VERSION, &Some(dir)));
}

#[test]
fn offline_names_what_is_missing_and_the_command() {
    let mut bench = Bench::new();
    bench.offline = true;
    let error = bench.fetch().unwrap_err();
    insta::assert_snapshot!(bench.shown(&error), @r"
    error: torch 2.13.0 (linux-x86_64) is not in the store, and `--offline` forbids to fetch it
    hint: run `kiln toolchain fetch torch==2.13.0` while online
    ");
    assert_eq!(bench.server.log().entries.len(), 0);
    assert!(!bench.cache().exists(), "nothing is created offline");
    bench.offline = false;
    bench.fetch().unwrap();
    bench.server.stop();
    bench.offline = true;
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
}

#[test]
fn damage_is_found_and_named() {
    let bench = Bench::new();
    let dir = bench.fetch().unwrap();
    let verify = || bench.provision(|provisioner| provisioner.verify(&version(), PLATFORM)).map_err(|error| bench.shown(&error));
    verify().unwrap();
    let header = dir.join("torch/include/d3/h3.h");
    let sound = std::fs::read(&header).unwrap();
    replace(&header, b"evil");
    insta::assert_snapshot!(verify().unwrap_err().replace(dir.parent().unwrap().file_name().unwrap().to_str().unwrap(), "[id]"), @r"
    error: the store's tree `[dir]/cache/toolchains-v1/trees/[id]` is damaged: `torch/include/d3/h3.h` was changed
    hint: run `kiln toolchain verify --repair`
    ");
    replace(&header, &sound);
    verify().unwrap();
    std::fs::write(dir.join("torch/include/new.h"), "new").unwrap();
    assert!(verify().unwrap_err().contains("`torch/include/new.h` does not belong there"));
    std::fs::remove_file(dir.join("torch/include/new.h")).unwrap();
    std::fs::remove_file(&header).unwrap();
    assert!(verify().unwrap_err().contains("`torch/include/d3/h3.h` cannot be read: No such file"));
}

/// Puts a file in the place of a read-only one.
fn replace(path: &Path, content: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn threads_started_together_fetch_once() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| bench.fetch().unwrap())).collect();
        let dirs: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(dirs.windows(2).all(|pair| pair[0] == pair[1]));
    });
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());
    assert_eq!(bench.told().iter().filter(|told| told.starts_with("finished")).count(), 1);
}

#[test]
fn processes_started_together_fetch_once() {
    let bench = Bench::new();
    let processes: Vec<Child> = (0..4).map(|_| process(&bench)).collect();
    let said: Vec<String> =
        processes.into_iter().map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()).collect();
    let last: Vec<&str> = said.iter().map(|text| text.lines().last().unwrap()).collect();
    assert!(last.iter().all(|line| line.starts_with("ok ") && *line == last[0]), "{said:?}");
    assert_eq!(bench.server.log().sent_twice(), Vec::<String>::new());
    assert_eq!(said.iter().filter(|text| text.contains("Finished")).count(), 1, "{said:?}");
    bench.assert_tree(Path::new(last[0].strip_prefix("ok ").unwrap()));
}

/// Ten processes provision one empty store at once; the one that fetches and two that wait are killed. As many rounds as
/// `KILN_TEST_STORE_ROUNDS` says, or two.
#[test]
fn ten_processes_some_of_them_killed() {
    let rounds = std::env::var("KILN_TEST_STORE_ROUNDS").map_or(2, |rounds| rounds.parse().unwrap());
    let bench = Bench::new();
    for round in 0..rounds {
        // The first to come hangs at one of its requests, another one each round.
        bench.server.heal();
        bench.server.fault_times(Target::Files, Fault::Stall(1000), round % 4, Some(1));
        let mut children: Vec<Child> = (0..10).map(|_| process(&bench)).collect();
        let mut outputs: Vec<_> = children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()).lines()).collect();
        let first: Vec<String> = outputs.iter_mut().map(|lines| lines.next().unwrap().unwrap()).collect();
        let holder = first.iter().position(|line| line.starts_with("Started")).unwrap();
        assert_eq!(first.iter().filter(|line| line.starts_with("WaitingForLock")).count(), 9, "{first:?}");
        let killed = [(holder + 3) % 10, (holder + 6) % 10, holder];
        let reached = usize::try_from(round % 4).unwrap() + 1;
        wait_for(|| bench.server.log().requests("/files/") >= reached);
        for index in killed {
            children[index].kill().unwrap();
            children[index].wait().unwrap();
        }
        let mut places = Vec::new();
        for (index, (mut child, lines)) in children.into_iter().zip(outputs).enumerate().filter(|(index, _)| !killed.contains(index)) {
            let said: Vec<String> = lines.map(Result::unwrap).collect();
            assert!(child.wait().unwrap().success(), "{index}: {said:?}");
            places.push(said.last().unwrap().strip_prefix("ok ").unwrap().to_owned());
        }
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]), "{places:?}");
        bench.assert_tree(Path::new(&places[0]));
        assert!(most_sent(&bench.server.log()) <= 2, "round {round}: {:?}", bench.server.log().sent_twice());
        assert_eq!(common::files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
        std::fs::remove_dir_all(bench.cache()).unwrap();
        bench.server.clear_log();
    }
}

/// How often the byte that was sent most often was sent.
fn most_sent(log: &kiln_test_server::Log) -> usize {
    let ranges = |entry: &kiln_test_server::Entry| entry.range.clone().unwrap_or(0..entry.bytes);
    let sent: Vec<_> = log.entries.iter().filter(|entry| entry.bytes > 0).collect();
    let overlapping = |at: u64, path: &str| sent.iter().filter(|entry| entry.path == path && ranges(entry).contains(&at)).count();
    sent.iter().map(|entry| overlapping(ranges(entry).start, &entry.path)).max().unwrap_or(0)
}

#[test]
fn proxies_of_the_environment_are_not_asked() {
    let bench = Bench::new();
    let nowhere = "http://127.0.0.1:9";
    let variables = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, nowhere));
    let output = command(&bench).envs(variables).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().last().unwrap().starts_with("ok "), "{said}");
}

#[test]
fn a_process_that_waits_says_for_whom() {
    let mut bench = Bench::new();
    // The first process hangs in its fetch until it is killed; then the other one does the work.
    bench.server.fault_times(Target::Files, Fault::Stall(1000), 3, Some(1));
    bench.retry.attempts = 1;
    let mut first = process(&bench);
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("Started"));
    wait_for(|| bench.server.log().requests("/files/") >= 4);
    let mut second = process(&bench);
    let mut second_lines = BufReader::new(second.stdout.take().unwrap()).lines();
    let waiting = second_lines.next().unwrap().unwrap();
    assert_eq!(waiting, format!("WaitingForLock {{ what: \"torch 2.13.0 (linux-x86_64)\", pid: Some({}) }}", first.id()));
    first.kill().unwrap();
    first.wait().unwrap();
    let rest: Vec<String> = second_lines.map(Result::unwrap).collect();
    assert!(second.wait().unwrap().success(), "{rest:?}");
    let dir = rest.last().unwrap().strip_prefix("ok ").unwrap().to_owned();
    bench.assert_tree(Path::new(&dir));
    assert_eq!(common::files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
}

/// A process killed at each request of the fetch in turn.
#[test]
fn killed_processes_leave_nothing_that_counts() {
    let bench = Bench::new();
    for passed in 0..5 {
        bench.server.heal();
        bench.server.fault_times(Target::Files, Fault::Stall(20), passed, Some(1));
        bench.server.clear_log();
        let mut child = process(&bench);
        let reached = usize::try_from(passed).unwrap() + 1;
        wait_for(|| bench.server.log().requests("/files/") >= reached);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(common::files_below(&bench.cache().join("toolchains-v1/trees")), Vec::<String>::new(), "{passed}");
    }
    bench.server.heal();
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    assert_eq!(common::files_below(&bench.cache().join("toolchains-v1/work")), Vec::<String>::new());
    assert_eq!(common::files_below(&dir).len(), HEADERS + 1);
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let bench = Bench::new();
    let dir = bench.fetch().unwrap();
    let id = dir.parent().unwrap().file_name().unwrap().to_owned();
    std::fs::remove_dir_all(dir.parent().unwrap()).unwrap();
    let work = bench.cache().join("toolchains-v1/work").join(id).join("tree/files/torch/include/d3");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("h3.h"), "half of it").unwrap();
    std::fs::write(work.join("stale.h"), "from before").unwrap();
    let dir = bench.fetch().unwrap();
    bench.assert_tree(&dir);
    assert!(!work.exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let bench = Bench::new();
    std::fs::write(bench.cache(), "a file in its place").unwrap();
    let error = bench.fetch().unwrap_err();
    insta::assert_snapshot!(bench.shown(&error), @r"
    error: cannot create `[dir]/cache/toolchains-v1/locks`: Not a directory (os error 20)
    hint: toolchains can be kept elsewhere with `--cache-dir DIR`
    ");
}

/// File systems that are too small, by bytes and by files, for what comes by ranges and for a whole copy.
#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    for (small, ranges) in [("size=64k", true), ("size=2m", true), ("nr_inodes=200", true), ("size=64k", false), ("size=2m", false)] {
        let bench = Bench::new();
        if !ranges {
            bench.server.fault(Target::Files, Fault::NoRanges);
        }
        std::fs::create_dir(bench.cache()).unwrap();
        // A file system of its own, in a namespace of its own: it is gone with the process.
        let script = "mount -t tmpfs -o \"$1\" tmpfs \"$2\" || exit 99; shift; cache=\"$1\"; shift; \"$@\" && exit 98; \
                      find \"$cache/toolchains-v1/trees\" \"$cache/toolchains-v1/work\" -mindepth 1 2>&1 | sed 's/^/left /' | grep -v 'No such file'; \
                      mount -o remount,size=64m,nr_inodes=100k \"$cache\" || exit 97; \"$@\"";
        let fetch = command(&bench);
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--", "/bin/sh", "-c", script, "sh", small]).arg(bench.cache());
        let output = command.arg(fetch.get_program()).args(fetch.get_args()).output().expect("`unshare` (util-linux) is needed");
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(99), "a small file system could not be mounted, as this test needs it: {errors}");
        let lines: Vec<&str> = said.lines().collect();
        let error = lines.iter().position(|line| line.starts_with("error ")).unwrap_or_else(|| panic!("{small} {ranges}: {said}{errors}"));
        let place = bench.cache().display().to_string();
        assert!(lines[error].contains(&place) && lines[error].ends_with(": No space left on device (os error 28)"), "{said}");
        assert!(lines[error + 1].starts_with("hint free some space there, or keep toolchains elsewhere with `--cache-dir DIR`"), "{said}");
        // Nothing is left, and with room the same command works.
        assert!(!lines.iter().any(|line| line.starts_with("left ")), "{said}");
        assert!(output.status.success() && lines.last().unwrap().starts_with("ok "), "{small} {ranges}: {said}{errors}");
    }
}

/// Waits until something is so, for a minute at most.
fn wait_for(mut done: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not come to it");
}
