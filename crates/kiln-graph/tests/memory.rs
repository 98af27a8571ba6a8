//! Steps run side by side as far as memory goes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Report, Tree, config};
use kiln_graph::{Config, Event, Failure, Graph};

/// How many compilers ran at once at most, by what they wrote down.
fn most_at_once(log: &[String]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for line in log {
        if line.starts_with("start ") {
            now += 1;
            most = most.max(now);
        } else if line.starts_with("end ") {
            now -= 1;
        }
    }
    most
}

/// A project of `count` sources with this text.
fn project(count: usize, text: &str) -> Tree {
    let tree = Tree::empty("project");
    for number in 0..count {
        tree.write(&format!("src/{number}.c"), &format!("{text}{number}\n"));
    }
    tree
}

/// All compiles, each expected to take `memory_mib`.
fn graph(tree: &Tree, count: usize, memory_mib: u32) -> Graph {
    let mut graph = tree.project.empty_graph();
    for number in 0..count {
        let mut step = tree.project.compile(&format!("{number}.c"));
        step.weight.memory_mib = memory_mib;
        graph.add(step).unwrap();
    }
    graph
}

fn run(tree: &Tree, graph: &Graph, budget: u64) -> (Report, usize) {
    let before = tree.log().len();
    let report = tree.run_graph(graph, Config { memory_mib: Some(budget), ..config(8) });
    let most = most_at_once(&tree.log()[before..]);
    (report, most)
}

#[test]
fn no_more_run_at_once_than_fit() {
    let tree = project(6, "@sleep 30\n");
    for (budget, at_most) in [(400, 1), (100, 1), (750, 3), (10_000, 6)] {
        let (report, most) = run(&tree, &graph(&tree, 6, 250), budget);
        assert!(report.outcome.is_ok());
        assert_eq!(report.started.len(), 6);
        assert!(most <= at_most, "{most} at once with {budget} MiB");
        std::fs::remove_dir_all(tree.project.work_dir()).unwrap();
    }
}

/// What the compilers of a project take while they run.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// All of them together at most, in MiB.
    together: u64,
    /// One of them at most, in MiB.
    one: u64,
}

/// Looks at the compilers of `tree` until `done`.
fn watch(tree: &Tree, done: &AtomicBool) -> Taken {
    let mut taken = Taken::default();
    while !done.load(Ordering::Relaxed) {
        let all = resident(tree);
        taken.together = taken.together.max(all.iter().sum());
        taken.one = taken.one.max(all.into_iter().max().unwrap_or_default());
        std::thread::sleep(Duration::from_millis(2));
    }
    taken
}

/// What each compiler of `tree` that runs now has in memory, in MiB.
fn resident(tree: &Tree) -> Vec<u64> {
    let ours = |process: &Path| {
        let link = |name: &str| std::fs::read_link(process.join(name)).unwrap_or_default();
        link("exe") == tree.project.helper && link("cwd") == tree.project.dir
    };
    let mib = |process: &Path| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        kib.div_ceil(1024)
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    processes.filter(|process| ours(process)).map(|process| mib(&process)).collect()
}

#[test]
fn as_many_run_as_fit_and_take_no_more_than_the_budget() {
    const EACH: u64 = 250;
    // 2.4 GiB is room for nine of them.
    for (budget, fit) in [(400, 1), (2457, 9)] {
        // None ends before as many have all their memory as may have it at once.
        let tree = project(fit + 2, &format!("@together {fit} {EACH}\n"));
        let graph = graph(&tree, fit + 2, u32::try_from(EACH).unwrap());
        let done = AtomicBool::new(false);
        let (taken, report) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&tree, &done));
            let report = tree.run_graph(&graph, Config { memory_mib: Some(budget), ..config(fit + 2) });
            done.store(true, Ordering::Relaxed);
            (watching.join().unwrap(), report)
        });
        assert!(report.outcome.is_ok(), "{:?}", report.events);
        assert_eq!(most_at_once(&tree.log()), fit, "with {budget} MiB: {:?}", tree.log());
        assert!(taken.one >= EACH && taken.together >= EACH * fit as u64, "{taken:?} with {budget} MiB");
        let error = taken.one - EACH;
        assert!(taken.together <= budget + error, "{taken:?} with {budget} MiB");
    }
}

#[test]
fn what_a_step_took_is_what_it_is_expected_to_take() {
    let tree = project(4, "@allocate 250 30\n");
    // Nobody knows better the first time.
    let graph = graph(&tree, 4, 1);
    assert!(run(&tree, &graph, 400).0.outcome.is_ok());
    for number in 0..4 {
        tree.write(&format!("src/{number}.c"), &format!("@allocate 250 30\nedited {number}\n"));
    }
    let (report, most) = run(&tree, &graph, 400);
    assert_eq!((report.started.len(), most), (4, 1));
}

#[test]
fn a_step_that_was_killed_runs_once_more_alone() {
    let tree = project(3, "@sleep 20\n");
    tree.write("src/1.c", &format!("@kill-once {}\nb\n", tree.path("killed").display()));
    let report = tree.run_graph(&graph(&tree, 3, 1), config(4));
    assert!(report.outcome.is_ok(), "{:?}", report.events);
    let retried: Vec<&str> = report
        .events
        .iter()
        .filter_map(|event| match event {
            Event::StepRetried { label, .. } => Some(label.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(retried, ["1.c"]);
    let log = tree.log();
    let again = log.iter().rposition(|line| line == "start 1.c").unwrap();
    assert_eq!(log.get(again + 1).map(String::as_str), Some("end 1.c"), "something ran beside it: {log:?}");
}

#[test]
fn once_more_is_enough() {
    let tree = project(1, "@kill 9\n");
    let report = tree.run_graph(&graph(&tree, 1, 1), config(1));
    assert_eq!(report.started.len(), 2);
    assert!(report.events.iter().any(|event| matches!(event, Event::StepFailed { failure: Failure::Signal { signal: 9 }, .. })));
}
