//! The command line as scripts use it: plans, failures among successes, exit codes, messages for programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends at its first failure")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::project::{ProjectBuilder, commit_all, usual, write};
use support::{Sandbox, message, tree};

/// Everything in a directory that a command could have changed.
fn snapshot(dir: &Path) -> (usize, std::collections::BTreeMap<String, (u64, i128)>) {
    let stamps = tree::stamps(dir);
    (stamps.len(), stamps)
}

#[test]
fn a_plan_runs_and_writes_nothing() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    commit_all(&dir);
    let before = snapshot(&dir);
    // The compiler has to be known, so the first plan asks it; nothing is compiled or linked.
    let first = sandbox.run(&dir, &["build", "--plan"]);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let started = sandbox.started();
    assert_eq!((started.compiles(), started.links()), (0, 0), "{started:?}");
    let second = sandbox.run(&dir, &["build", "--plan"]);
    assert_eq!(second.stdout, first.stdout);
    assert!(sandbox.started().beside_git().is_empty());
    assert_eq!(before, snapshot(&dir));

    // What it says is what happens.
    let run = sandbox.build(&dir, &["-j1"]);
    let steps: Vec<_> = run.reason("step-started").iter().map(|step| step["step"].as_str().unwrap().to_owned()).collect();
    for step in &steps {
        assert!(first.stdout.contains(step.as_str()), "{step} is not in the plan: {}", first.stdout);
    }
    let json = sandbox.run(&dir, &["build", "--plan", "--message-format", "json"]).messages();
    assert_eq!((json.len(), &json[0]["reason"]), (1, &"plan".into()));
    let planned = json[0]["graph"]["steps"].as_array().unwrap();
    assert_eq!(planned.len(), steps.len());

    // A plan of what was built already says the same, and changes nothing of it.
    let before = snapshot(&dir);
    assert_eq!(sandbox.run(&dir, &["build", "--plan"]).stdout, first.stdout);
    assert_eq!(before, snapshot(&dir));
}

#[test]
fn a_plan_is_the_same_in_two_checkouts() {
    let plan = |name: &str, json: bool| {
        let sandbox = Sandbox::new();
        let dir = usual().write(&sandbox.path(name));
        commit_all(&dir);
        let args: &[&str] = if json { &["build", "--plan", "--message-format", "json"] } else { &["build", "--plan"] };
        let run = sandbox.run(&dir, args);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        // The only difference: where the programs are.
        let bin = sandbox.path("bin");
        assert!(json || run.stdout.contains("g++"));
        run.stdout.replace(bin.to_str().unwrap(), "BIN")
    };
    for json in [false, true] {
        let (one, two) = (plan("one", json), plan("zwei – Ü", json));
        assert_eq!(one, two);
        assert!(!one.contains("kiln-e2e-"), "a directory of this machine is in the plan: {one}");
    }
}

#[test]
fn a_plan_fetches_nothing() {
    let sandbox = Sandbox::without_torch();
    let dir = usual().write(&sandbox.path("project"));
    // No index is known and the network may not be used.
    let run = sandbox.run(&dir, &["build", "--plan", "--offline"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("variant torch-stable-abi211-cpu-x86_64-linux with torch 2.15.0"), "{}", run.stdout);
    assert!(!sandbox.cache().join("toolchains-v1").exists() && !dir.join(".kiln").exists() && !dir.join("build").exists());
}

/// A project of two components, one of which does not compile for torch 2.13 and newer.
fn half_broken(dir: &Path) -> PathBuf {
    let dir = ProjectBuilder::new()
        .file("good.cpp", "int tiny_good;\n")
        .file(
            "half.cpp",
            "#include <torch/headeronly/version.h>\n#if TORCH_VERSION_MINOR >= 13\n#error not for this torch\n#endif\nint tiny_half;\n",
        )
        .file("last.cpp", "int tiny_last;\n")
        .kernel("good", &[], &["good.cpp"], "")
        .kernel("half", &["torch"], &["half.cpp"], "")
        .kernel("last", &[], &["last.cpp"], "")
        .write(dir);
    commit_all(&dir);
    dir
}

const TWO: [&str; 5] = ["--all", "--torch", "2.11", "--torch", "2.13"];

#[test]
fn keep_going_makes_what_can_be_made() {
    let sandbox = Sandbox::new();
    let dir = half_broken(&sandbox.path("project"));
    let args = [&["build", "--message-format", "json", "--keep-going", "-j1"][..], &TWO].concat();
    let run = sandbox.run(&dir, &args);
    assert_eq!(run.code, Some(1));
    let last = &run.reason("build-finished")[0];
    assert_eq!((&last["success"], &last["built"], &last["failed"]), (&false.into(), &1.into(), &1.into()));
    assert_eq!(run.reason("variant-finished")[0]["variant"], "torch211-cxx11-cpu-x86_64-linux");
    assert_eq!(run.reason("variant-failed")[0]["variant"], "torch213-cxx11-cpu-x86_64-linux");
    // The failed unit, and what needs its object: the names and the link.
    let (_, _, failed, skipped) = run.steps();
    assert_eq!((failed, skipped), (1, 2));
    let failure = &run.reason("step-failed")[0];
    assert_eq!((&failure["label"], &failure["failure"]["how"]), (&"half.cpp".into(), &"exit".into()), "{failure}");
    assert!(failure["output"].as_str().unwrap().contains("#error not for this torch"));
    let built = tree::files(&dir.join("build"));
    assert!(built.contains_key("torch211-cxx11-cpu-x86_64-linux/") && !built.contains_key("torch213-cxx11-cpu-x86_64-linux/"));
    let record = fs::read_to_string(dir.join("build/kiln-build.json")).unwrap();
    assert!(record.contains("torch211-") && !record.contains("torch213-"));

    // The good one alone is up to date, and the bad one fails again.
    sandbox.started();
    assert_eq!(sandbox.build(&dir, &["--torch", "2.11"]).steps().0, 0);
    assert_eq!(sandbox.run(&dir, &args).steps(), (0, failed_run_up_to_date(&run), 1, 2));
}

/// Steps that ended well in a run.
fn failed_run_up_to_date(run: &support::Run) -> u64 {
    run.steps().0 + run.steps().1
}

#[test]
fn without_keep_going_nothing_starts_after_a_failure() {
    let sandbox = Sandbox::new();
    let dir = half_broken(&sandbox.path("project"));
    let run = sandbox.run(&dir, &[&["build", "--message-format", "json", "-j1", "--torch", "2.13"][..]].concat());
    assert_eq!(run.code, Some(1));
    let messages = run.messages();
    let failed = messages.iter().position(|message| message["reason"] == "step-failed").unwrap();
    assert!(messages[failed..].iter().all(|message| message["reason"] != "step-started"), "{}", run.stdout);
    assert!(!dir.join("build/torch213-cxx11-cpu-x86_64-linux").exists());
}

#[test]
fn a_failed_build_leaves_the_variant_that_is_there() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    commit_all(&dir);
    sandbox.build(&dir, &[]);
    let before = tree::stamps(&dir.join("build"));
    write(&dir, "plain/plain.cpp", "no C++\n");
    assert_eq!(sandbox.run(&dir, &["build"]).code, Some(1));
    assert_eq!(before, tree::stamps(&dir.join("build")));
}

#[test]
fn exit_codes() {
    let sandbox = Sandbox::new();
    let good = usual().write(&sandbox.path("good"));
    let bad = ProjectBuilder::new().write(&sandbox.path("bad"));
    write(&bad, "build.toml", "[general]\nname = 5\n");
    for (args, code) in [
        (&["build", "good"][..], 0),
        (&["build", "good", "--plan"], 0),
        (&["check-config", "good"], 0),
        (&["list-variants", "good"], 0),
        (&["matrix", "good"], 0),
        (&["hash", "good"], 0),
        (&["toolchain", "list"], 0),
        (&["--version"], 0),
        (&["build", "bad"], 1),
        (&["check-config", "bad"], 1),
        (&["build", "missing"], 1),
        (&["hash", "bad"], 1),
        (&["build", "good", "--backend", "rocm"], 2),
        (&["build", "good", "--variant", "nothing"], 2),
        (&["build", "good", "--torch", "2.99"], 2),
        (&["build", "good", "--unique-id", "a-b"], 2),
        (&["build", "good", "-j0"], 2),
        (&["build", "good", "--no-such-flag"], 2),
        (&["no-such-command"], 2),
        (&[], 2),
    ] {
        let run = sandbox.run(&sandbox.path(""), args);
        assert_eq!(run.code, Some(code), "{args:?}: {}{}", run.stdout, run.stderr);
        // Results are on stdout, everything else on stderr; an error is never silent.
        assert!(code == 0 || (run.stdout.is_empty() && !run.stderr.is_empty()), "{args:?}: {}", run.stdout);
    }
    assert!(good.join("build").exists());
}

/// Whoever reads results must not take a part of them for the whole.
#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let sandbox = Sandbox::new();
    let good = usual().write(&sandbox.path("good"));
    for args in [&["matrix"][..], &["list-variants"], &["build", "--plan"], &["check-config", "--format", "json"], &["toolchain", "list"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = sandbox.kiln(&good, args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("error[io]: the results cannot be written\n  caused by: No space left on device"), "{args:?}: {said}");
    }
}

/// What is compiled needs a machine of its system; what is only copied does not, also in a project that has both.
#[test]
fn for_another_operating_system() {
    let sandbox = Sandbox::new();
    let dir = usual().write(&sandbox.path("project"));
    let build = fs::read_to_string(dir.join("build.toml")).unwrap();
    write(&dir, "build.toml", &build.replace("backends = [\"cpu\"]", "backends = [\"cpu\", \"metal\"]"));
    let args = ["build", "--target", "aarch64-darwin"];
    let run = sandbox.run(&dir, &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(tree::extensions(&dir.join("build")), Vec::<std::path::PathBuf>::new());
    assert!(dir.join("build/torch-metal/metadata.json").is_file());
    let compiled = sandbox.run(&dir, &[&args[..], &["--backend", "cpu"]].concat());
    assert_eq!(compiled.code, Some(1));
    let why = "it cannot be built here: what is compiled for aarch64-darwin is built on such a machine, and this is ";
    assert!(compiled.stderr.contains(why), "{}", compiled.stderr);
}

#[test]
fn messages_for_programs_are_one_object_a_line() {
    let sandbox = Sandbox::new();
    let good = usual().write(&sandbox.path("good"));
    let bad = ProjectBuilder::new().write(&sandbox.path("bad"));
    write(&bad, "build.toml", "[general]\nname = 5\n");
    let broken = half_broken(&sandbox.path("broken"));
    for (dir, args, code) in [
        (&good, &["--print-commands", "--explain"][..], 0),
        (&good, &[], 0),
        (&good, &["--variant", "nothing"], 2),
        (&bad, &[], 1),
        (&broken, &["--torch", "2.13"], 1),
        (&broken, &["--torch", "2.13", "--keep-going", "--quiet"], 1),
    ] {
        let run = sandbox.run(dir, &[&["build", "--message-format", "json"], args].concat());
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        assert!(run.stdout.is_empty() || run.stdout.ends_with('\n'));
        let messages: Vec<_> = run.stdout.lines().map(message).collect();
        if code == 0 {
            assert_eq!(messages.last().unwrap()["reason"], "build-finished");
            assert_eq!(run.stderr, "", "messages are on stdout alone");
        } else {
            assert!(messages.iter().any(|message| message["reason"] == "error"), "{}", run.stdout);
        }
        // Every step that starts ends, and only then do targets and the graph.
        let count = |reason: &str| messages.iter().filter(|message| message["reason"] == reason).count();
        assert_eq!(count("step-started"), count("step-finished") + count("step-failed"));
        assert!(count("graph-started") == count("graph-finished") && count("graph-started") <= 1);
    }
}
