//! Builds that run at the same time share the work, the cache and the downloads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use support::project::{ProjectBuilder, usual, write};
use support::{Run, Sandbox, index, tree};

/// Starts `kiln build` with JSON messages and more arguments.
fn start(sandbox: &Sandbox, dir: &Path, env: &[(&str, &str)], args: &[&str]) -> Child {
    let mut command = sandbox.kiln(dir, &[&["build", "--message-format", "json"], args].concat());
    command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for builds, all of which must succeed.
fn all_succeed(children: Vec<Child>) -> Vec<Run> {
    // Each pipe is read by a thread of its own: a build must not wait because another one's messages are read first.
    let threads: Vec<_> = children.into_iter().map(|child| std::thread::spawn(|| Run::from(child.wait_with_output().unwrap()))).collect();
    let runs: Vec<Run> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for run in &runs {
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    }
    runs
}

#[test]
fn two_builds_of_one_project_share_the_work() {
    let sandbox = Sandbox::new();
    // The compiler is known before, so that both come to the work directory at once.
    let other = usual().write(&sandbox.path("other"));
    sandbox.build(&other, &[]);
    sandbox.started();

    let dir = usual().write(&sandbox.path("project"));
    let runs = all_succeed(vec![start(&sandbox, &dir, &[], &["--no-cache"]), start(&sandbox, &dir, &[], &["--no-cache"])]);
    let started = sandbox.started();
    assert_eq!((started.compiles(), started.links(), started.probes()), (4, 1, 0), "{started:?}");
    let mut ran: Vec<(u64, u64)> = runs.iter().map(|run| (run.steps().0, run.steps().1)).collect();
    ran.sort_unstable();
    assert_eq!((ran[0].0, ran[1].1), (0, 0), "one did everything, the other nothing: {ran:?}");
    assert_eq!(ran[0].1, ran[1].0);
    assert_eq!(runs.iter().map(|run| run.reason("waiting").len()).sum::<usize>(), 1);
    tree::assert_equal(&other.join("build"), &dir.join("build"));
}

#[test]
fn builds_of_different_projects_do_not_wait_for_each_other() {
    let sandbox = Sandbox::new();
    let dirs: Vec<PathBuf> = ["one", "two", "three"].iter().map(|name| usual().write(&sandbox.path(name))).collect();
    let runs = all_succeed(dirs.iter().map(|dir| start(&sandbox, dir, &[], &["-j1"])).collect());
    for (run, dir) in runs.iter().zip(&dirs) {
        assert_eq!((run.steps().1, run.reason("waiting").len()), (0, 0));
        tree::assert_equal(&dirs[0].join("build"), &dir.join("build"));
    }
    // Whoever learned about the compiler last has not made the cache forget what others learned.
    sandbox.started();
    sandbox.build(&dirs[1], &[]);
    assert!(sandbox.started().beside_git().is_empty());
}

/// A copy of one of the repository's examples.
fn example(name: &str, to: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-examples").join(name);
    let keep = |entry: &walkdir::DirEntry| !["build", ".kiln", "__pycache__"].contains(&entry.file_name().to_str().unwrap());
    for entry in walkdir::WalkDir::new(&from).into_iter().filter_entry(keep) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(&from).unwrap().to_str().unwrap();
            write(to, name, &std::fs::read_to_string(entry.path()).unwrap());
        }
    }
    to.to_owned()
}

/// The most that may be fetched to build for one torch.
const MOST: u64 = 20_000_000;

#[test]
fn a_torch_is_fetched_once_and_in_part() {
    let mirror = index::mirror();
    let index = mirror.index();
    let sandbox = Sandbox::without_torch();
    // Two projects, so that nothing but the store makes one wait for the other; the second one takes a moment only.
    let relu = example("relu", &sandbox.path("relu"));
    let tiny = ProjectBuilder::new().file("plain.cpp", "int tiny_plain;\n").kernel("plain", &[], &["plain.cpp"], "");
    let tiny = tiny.write(&sandbox.path("tiny"));
    let env = [("KILN_INDEX_URL", index.as_str())];
    let torch = ["--backend", "cpu", "--torch", "2.13"];
    let runs = all_succeed(vec![start(&sandbox, &relu, &env, &torch), start(&sandbox, &tiny, &env, &torch)]);

    let log = mirror.log();
    println!("{} bytes in {} requests", log.bytes(), log.entries.len());

    assert!(log.bytes() > 1_000_000, "the count is broken: {log:?}");
    assert!(log.bytes() <= MOST, "{} bytes", log.bytes());
    assert_eq!(log.sent_twice(), Vec::<String>::new());
    assert_eq!(log.requests("/simple/"), 1);
    let finished: Vec<_> = runs.iter().flat_map(|run| run.reason("fetch-finished")).collect();
    assert_eq!(finished.len(), 1);
    assert_eq!(finished[0]["bytes"].as_u64(), Some(log.bytes()), "what Kiln says is what the server sent");
    assert_eq!(runs.iter().map(|run| run.reason("fetch-waiting").len()).sum::<usize>(), 1);
    for (dir, name) in [(&relu, "_relu_cpu_"), (&tiny, "_tiny_cpu_")] {
        let extensions = tree::extensions(&dir.join("build"));
        assert_eq!(extensions.len(), 1);
        assert!(extensions[0].file_name().unwrap().to_str().unwrap().starts_with(name));
    }

    // Another torch of the catalog: where it lies is known from the first answer of the index.
    mirror.clear_log();
    all_succeed(vec![start(&sandbox, &tiny, &env, &["--torch", "2.11"])]);
    let log = mirror.log();
    assert!(log.bytes() <= MOST, "{} bytes", log.bytes());
    assert_eq!((log.requests("/simple/"), log.sent_twice()), (0, Vec::new()));

    // And now nothing more, with the network or without.
    mirror.clear_log();
    all_succeed(vec![start(&sandbox, &tiny, &env, &["--torch", "2.11", "--torch", "2.13"])]);
    all_succeed(vec![start(&sandbox, &tiny, &[], &["--offline", "--torch", "2.11", "--torch", "2.13"])]);
    assert_eq!(mirror.log().entries, []);
}
