//! A build that is killed at any moment, or has others beside it, leaves a state from which the next one gives what a clean one gives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Numbers, Tree, config};
use kiln_graph::Config;

/// How often the build is killed.
const POINTS: u64 = 60;
/// The same in a whole run.
const ALL_POINTS: u64 = 500;

/// Removes a part of the work directory, which a killed process may not have made again yet.
fn remove(tree: &Tree, part: &str) {
    let dir = tree.project.work_dir().join(part);
    if dir.exists() {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn killed_anywhere() {
    let mut numbers = Numbers::of_test();
    let tree = Tree::new();
    let work_dir = tree.project.work_dir();
    let drive = || tree.drive(&work_dir, 2);
    let start = Instant::now();
    assert!(drive().status().unwrap().success());
    // Kills are spread over about as long as a build takes, on this machine and just now.
    let mut longest = start.elapsed();

    let (mut killed, mut ended) = (0, 0);
    let points = if common::is_whole() { ALL_POINTS } else { POINTS };
    for point in 0..points {
        // Edits, reverts and damage, so that records are old, new, or lie.
        match numbers.below(6) {
            0 => tree.write("include/one.h", &format!("one {}\n", numbers.below(2))),
            1 => tree.write("include/deep.h", &format!("deep {}\n", numbers.below(2))),
            2 => tree.write("src/a.c", &format!("#include one.h\n@sleep {}\na\n", numbers.below(4))),
            3 => tree.write("src/b.c", &format!("#include one.h\n#include two.h\nb {}\n", numbers.below(2))),
            4 => remove(&tree, "out"),
            _ => remove(&tree, "records"),
        }
        let mut child = drive().spawn().unwrap();
        let delay = longest.mul_f64(numbers.below(1000) as f64 / 1000.0);
        std::thread::sleep(delay);
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
            longest = longest.mul_f64(1.1);
        } else {
            ended += 1;
            longest = delay.max(Duration::from_millis(2));
        }
        child.wait().unwrap();
        // Sometimes the next process is killed in the state that this one left.
        if numbers.below(3) > 0 {
            // With what the killed ones have kept, or without.
            let cache = (numbers.below(2) > 0).then(|| tree.cache());
            let report = tree.run_graph(&tree.project.graph(), Config { cache, ..config(2) });
            assert!(report.outcome.is_ok(), "point {point}: {:?}", report.events);
            assert_eq!(tree.app(), tree.clean_app(), "point {point}");
        }
        if point % 10 == 0 {
            tree.assert_sound_cache();
        }
    }
    tree.assert_sound_cache();
    assert!(tree.cache().stats().unwrap().results.files > 0);
    assert!(tree.run().outcome.is_ok());
    tree.assert_settled();
    println!("{killed} killed, {ended} had ended");
    assert!(killed > points / 3, "only {killed} of {points} were killed before they ended");
}

/// How often eight processes build together, here and in a whole run.
const ROUNDS: u64 = 4;
const ALL_ROUNDS: u64 = 100;

#[test]
fn eight_processes_with_one_cache() {
    let mut numbers = Numbers::of_test();
    let tree = Tree::new();
    // Four share the project's own work directory; the others are other checkouts as far as the work goes.
    let work_dirs: Vec<PathBuf> =
        (0..8).map(|number| if number < 4 { tree.project.work_dir() } else { tree.path(&format!("work {number}")) }).collect();
    for round in 0..if common::is_whole() { ALL_ROUNDS } else { ROUNDS } {
        tree.write("include/one.h", &format!("one {}\n", numbers.below(3)));
        tree.write("src/b.c", &format!("#include one.h\n#include two.h\nb {}\n", numbers.below(3)));
        if numbers.below(2) == 0 {
            // Whoever begins from nothing takes what others have kept, or keep just now.
            let dir = &work_dirs[usize::try_from(4 + numbers.below(4)).unwrap()];
            if dir.exists() {
                std::fs::remove_dir_all(dir).unwrap();
            }
        }
        let mut children: Vec<_> = work_dirs.iter().map(|dir| tree.drive(dir, 2).spawn().unwrap()).collect();
        if numbers.below(3) == 0 {
            // What goes under their hands is made again.
            tree.cache().prune(1000).unwrap();
        }
        for (number, child) in children.iter_mut().enumerate() {
            assert!(child.wait().unwrap().success(), "process {number} of round {round}");
        }
        let clean = tree.clean_app();
        for dir in &work_dirs {
            assert_eq!(tree.app_in(dir), clean, "round {round}, {}", dir.display());
        }
        tree.assert_sound_cache();
    }
}

#[test]
fn builds_beside_prunes_leave_a_sound_cache() {
    let tree = Tree::new();
    let work_dirs = [tree.project.work_dir(), tree.path("work 1")];
    for round in 0..if common::is_whole() { ALL_ROUNDS } else { ROUNDS } {
        // Objects that were kept before, as results of other sources.
        tree.write("src/a.c", &format!("#include one.h\n@sleep {}\na\n", round % 3));
        let mut children: Vec<_> = work_dirs
            .iter()
            .map(|dir| {
                drop(std::fs::remove_dir_all(dir));
                tree.drive(dir, 2).spawn().unwrap()
            })
            .collect();
        while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
            tree.cache().prune(1500).unwrap();
            tree.assert_sound_cache();
        }
        for child in &mut children {
            assert!(child.wait().unwrap().success(), "round {round}");
        }
        tree.assert_sound_cache();
        assert_eq!(tree.app(), tree.clean_app());
    }
}
