//! Who may use a work directory, and what stays in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::project::step;
use common::{Tree, config, lock};
use kiln_graph::{Action, Config, Executor, Graph, Interrupt, KEPT_GRAPHS, TryLock, WorkDir, WorkDirError, write_file};

fn busy(dir: &Path) -> (WorkDir, Option<u32>) {
    match WorkDir::open(dir).unwrap().try_lock().unwrap() {
        TryLock::Busy { work_dir, holder } => (work_dir, holder),
        TryLock::Locked(_) => panic!("the lock is free"),
    }
}

#[test]
fn one_user_at_a_time() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("a/b");
    let first = lock(&dir);
    assert_eq!(first.path(), dir);
    let (second, holder) = busy(&dir);
    assert_eq!(second.path(), dir);
    assert_eq!(holder, Some(std::process::id()));
    let short = Some(Duration::from_millis(10));
    let error = second.lock(short, &Interrupt::new(), &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), format!("another build uses `{}` (process {})", dir.display(), std::process::id()));
    drop(first);
    assert!(matches!(WorkDir::open(&dir).unwrap().try_lock().unwrap(), TryLock::Locked(_)));
}

#[test]
fn waiting_is_said_once_and_ends() {
    let temp = tempfile::tempdir().unwrap();
    let first = lock(temp.path());
    let mut told = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            drop(first);
        });
        WorkDir::open(temp.path()).unwrap().lock(None, &Interrupt::new(), &mut |holder| told.push(holder)).unwrap();
    });
    assert_eq!(told[0], Some(std::process::id()));
    // The first may have emptied the file without having let go of the lock.
    assert!(told.len() == 1 || told[1..] == [None], "{told:?}");
}

#[test]
fn waiting_can_be_interrupted() {
    let temp = tempfile::tempdir().unwrap();
    let _first = lock(temp.path());
    let interrupt = Interrupt::new();
    let stop = interrupt.clone();
    let error = WorkDir::open(temp.path()).unwrap().lock(None, &interrupt, &mut |_| stop.stop()).unwrap_err();
    assert!(matches!(error, WorkDirError::Interrupted { .. }), "{error}");
}

#[test]
fn a_lock_file_without_a_number_names_nobody() {
    let temp = tempfile::tempdir().unwrap();
    let _first = lock(temp.path());
    fs::write(temp.path().join("lock"), "what").unwrap();
    assert_eq!(busy(temp.path()).1, None);
    let error = busy(temp.path()).0.lock(Some(Duration::ZERO), &Interrupt::new(), &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), format!("another build uses `{}`", temp.path().display()));
}

#[test]
fn places_that_cannot_be_used() {
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(WorkDir::open("relative").unwrap_err().to_string(), "work directory `relative` is not an absolute path");
    fs::write(temp.path().join("file"), "").unwrap();
    let error = WorkDir::open(temp.path().join("file/below")).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot use `{}/file/below`: ", temp.path().display())), "{error}");
    fs::create_dir(temp.path().join("lock")).unwrap();
    assert!(matches!(WorkDir::open(temp.path()).unwrap_err(), WorkDirError::Io { .. }));
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("out"), "in the way").unwrap();
    assert!(matches!(WorkDir::open(other.path()).unwrap().try_lock().unwrap_err(), WorkDirError::Io { .. }));
}

#[test]
fn what_dead_processes_left_is_removed() {
    let tree = Tree::new();
    tree.run();
    let tmp = tree.project.work_dir().join("tmp");
    fs::create_dir_all(tmp.join("abc/o/deep")).unwrap();
    fs::write(tmp.join("abc/o/deep/file"), "").unwrap();
    fs::write(tmp.join("record"), "").unwrap();
    drop(tree.lock());
    assert_eq!(fs::read_dir(tmp).unwrap().count(), 0);
}

fn drive(tree: &Tree) -> Child {
    let mut command = Command::new(&tree.project.helper);
    command.arg("drive").arg(&tree.project.dir).arg("1").stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn of_two_processes_the_second_waits_and_finds_all_done() {
    let tree = Tree::new();
    tree.write("src/a.c", "@sleep 500\na\n");
    let mut first = drive(&tree);
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "locked");
    let second = drive(&tree).wait_with_output().unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["Counts { ran: 4, up_to_date: 0, cached: 0, shared: 0, failed: 0, skipped: 0 }"]);
    let text = String::from_utf8(second.stdout).unwrap();
    let text: Vec<&str> = text.lines().collect();
    assert_eq!(text[0], format!("waiting for Some({})", first.id()));
    assert_eq!(text.last().unwrap(), &"Counts { ran: 0, up_to_date: 4, cached: 0, shared: 0, failed: 0, skipped: 0 }");
    assert!(first.wait().unwrap().success());
    assert_eq!(tree.log().len(), 8, "each step ran once");
}

/// A graph of one step that is like no other.
fn graph(number: usize) -> Graph {
    let mut graph = Graph::new();
    let text = format!("{number}").into_bytes();
    graph.add(step("Generating", "it", Action::Builtin(write_file("it", text)), Vec::new(), "it")).unwrap();
    graph
}

fn entries(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn outputs_of_the_last_graphs_are_kept_and_those_of_older_ones_are_not() {
    let tree = Tree::empty("project");
    let ids: Vec<String> = (0..KEPT_GRAPHS + 3)
        .map(|number| {
            let graph = graph(number);
            assert_eq!(tree.run_graph(&graph, config(1)).counts(), (1, 0, 0, 0));
            // The first graph is run again and again, and so never among the oldest.
            assert_eq!(tree.run_graph(&self::graph(0), config(1)).counts(), (0, 1, 0, 0));
            graph.steps().next().unwrap().0.to_string()
        })
        .collect();
    let kept: BTreeSet<String> = ids[4..].iter().chain([&ids[0]]).cloned().collect();
    assert_eq!(kept.len(), KEPT_GRAPHS);
    assert_eq!(entries(&tree.project.work_dir().join("out")), kept);
    assert_eq!(entries(&tree.project.work_dir().join("records")), kept);
    assert_eq!(entries(&tree.project.work_dir().join("runs")).len(), KEPT_GRAPHS);
}

#[test]
fn a_failed_run_removes_nothing() {
    let tree = Tree::new();
    tree.run();
    let out = entries(&tree.project.work_dir().join("out"));
    tree.write("src/d.c", "@exit 1\n");
    tree.run();
    assert!(entries(&tree.project.work_dir().join("out")).is_superset(&out));
    assert_eq!(entries(&tree.project.work_dir().join("runs")).len(), 2);
}

#[test]
fn what_a_failed_run_made_outlives_other_runs() {
    let tree = Tree::new();
    tree.write("src/d.c", "@exit 1\n");
    let run = || tree.run_graph(&tree.project.graph(), Config { keep_going: true, ..config(1) }).counts();
    let (ran, _, failed, skipped) = run();
    assert!(ran > 0 && failed == 1);
    tree.run_graph(&graph(1), config(1));
    assert_eq!(run(), (0, ran, failed, skipped));
}

#[test]
fn prune_keeps_what_it_is_told_to() {
    let tree = Tree::new();
    tree.run();
    let graph = tree.project.graph();
    let keep: BTreeSet<_> = graph.steps().take(2).map(|(id, _)| id.clone()).collect();
    fs::write(tree.project.work_dir().join("out/stray file"), "").unwrap();
    let pruned = tree.lock().prune(&keep).unwrap();
    assert_eq!(pruned.entries, 5);
    let names: BTreeSet<String> = keep.iter().map(ToString::to_string).collect();
    assert_eq!(entries(&tree.project.work_dir().join("out")), names);
    assert_eq!(tree.run().outcome.counts().ran, 2);
    tree.assert_settled();
}

#[test]
fn outputs_lie_where_they_are_said_to() {
    let tree = Tree::new();
    let graph = tree.project.graph();
    let locked = tree.lock();
    let outcome = Executor::new(&locked, config(2)).run(&graph, &|_| {});
    let app = common::app(&graph);
    assert_eq!(outcome.output_path(&app), locked.output_path(&app));
    assert!(outcome.output_path(&app).is_file());
    assert!(outcome.step(&app.step).unwrap().state.is_ok());
}
