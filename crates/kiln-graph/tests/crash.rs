//! A build that is killed at any moment leaves a state from which the next one gives what a clean one gives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Numbers, Tree};

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
    let drive = || {
        let mut command = Command::new(&tree.project.helper);
        command.arg("drive").arg(&tree.project.dir).arg("2").stdout(Stdio::null()).stderr(Stdio::null());
        // Where coverage is measured, a process that is killed as it ends leaves half a profile, which no tool reads.
        command.env("LLVM_PROFILE_FILE", tree.project.dir.join("killed.profraw"));
        command
    };
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
            let report = tree.run();
            assert!(report.outcome.is_ok(), "point {point}: {:?}", report.events);
            assert_eq!(tree.app(), tree.clean_app(), "point {point}");
        }
    }
    assert!(tree.run().outcome.is_ok());
    tree.assert_settled();
    println!("{killed} killed, {ended} had ended");
    assert!(killed > points / 3, "only {killed} of {points} were killed before they ended");
}
