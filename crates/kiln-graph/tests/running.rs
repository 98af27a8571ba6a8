//! Order, concurrency, interruption, and the stream of events.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::project::step;
use common::{Tree, config};
use kiln_graph::{Action, Arg, Config, Event, Executor, Failure, Graph, Input, Interrupt, OutputRef, Piece, StepState, write_file};

#[test]
fn the_longest_path_goes_first() {
    let tree = Tree::empty("project");
    let mut graph = tree.project.empty_graph();
    let add = |graph: &mut Graph, name: &str, cost: u32, needs: Option<&OutputRef>| {
        let mut step = step("Generating", name, Action::Builtin(write_file(name, *b"")), Vec::new(), name);
        step.weight.cpu_ms = cost;
        step.inputs.extend(needs.cloned().map(Input::Output));
        OutputRef { step: graph.add(step).unwrap(), name: name.to_owned() }
    };
    add(&mut graph, "short", 10, None);
    add(&mut graph, "equal 1", 20, None);
    add(&mut graph, "equal 2", 20, None);
    let head = add(&mut graph, "cheap head", 1, None);
    add(&mut graph, "long", 100, None);
    let middle = add(&mut graph, "middle", 60, Some(&head));
    add(&mut graph, "tail", 50, Some(&middle));
    let order = tree.run_graph(&graph, config(1)).events;
    let order: Vec<String> = order
        .into_iter()
        .filter_map(|event| match event {
            Event::StepStarted { label, .. } => Some(label),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["cheap head", "middle", "long", "tail", "equal 1", "equal 2", "short"]);
}

/// The names of the first compilers to start.
fn first(tree: &Tree, count: usize) -> Vec<String> {
    let mut first: Vec<String> = tree.log().iter().filter_map(|line| line.strip_prefix("start ").map(str::to_owned)).take(count).collect();
    first.sort();
    first
}

#[test]
fn the_chain_that_took_longest_goes_first() {
    let tree = Tree::empty("project");
    let singles = ["a.c", "b.c", "d.c", "e.c", "f.c"];
    // The graph has the chain at its end, and says of each step what it is expected to take.
    let graph = |single: u32, chain: u32| {
        let mut graph = tree.project.empty_graph();
        for name in singles {
            let mut step = tree.project.compile(name);
            step.weight.cpu_ms = single;
            graph.add(step).unwrap();
        }
        let mut needs: Option<OutputRef> = None;
        for name in ["y.c", "z.c"] {
            let mut step = tree.project.compile(name);
            step.weight.cpu_ms = chain;
            step.inputs.extend(needs.take().map(Input::Output));
            needs = Some(OutputRef { step: graph.add(step).unwrap(), name: format!("{name}.o") });
        }
        graph
    };
    let write = |edit: u32, jobs: usize| {
        // None of them ends before as many have started as may: the log tells who they were.
        singles.iter().for_each(|name| tree.write(&format!("src/{name}"), &format!("@await {jobs}\n{edit}\n")));
        // The head of the chain takes longer than everything else together: it waits for it.
        tree.write("src/y.c", &format!("@await-ends {}\n@sleep 400\n{edit}\n", singles.len()));
        tree.write("src/z.c", &format!("{edit}\n"));
    };
    write(1, 2);
    // Nothing is known: what is expected decides, and equal paths go in graph order.
    assert!(tree.run_graph(&graph(1, 9), config(2)).outcome.is_ok());
    assert_eq!(first(&tree, 2), ["a.c", "y.c"]);

    // Now the expectations are wrong, and the run before tells.
    let again = |edit: u32, jobs: usize, count: usize| {
        write(edit, jobs);
        fs::remove_file(tree.project.log()).unwrap();
        assert!(tree.run_graph(&graph(9, 1), config(jobs)).outcome.is_ok());
        first(&tree, count)
    };
    assert!(again(2, 2, 2).contains(&"y.c".to_owned()));
    // The same when the steps are new ones of the same names.
    fs::remove_dir_all(tree.project.work_dir().join("records")).unwrap();
    assert!(again(3, 2, 2).contains(&"y.c".to_owned()));
    // With one job the order is that of the graph whatever was learned.
    assert_eq!(again(4, 1, 1), ["a.c"]);
    // Damage is no reason to stop, and what is expected counts again.
    fs::remove_dir_all(tree.project.work_dir().join("records")).unwrap();
    fs::write(tree.project.work_dir().join("durations"), "damaged").unwrap();
    assert_eq!(again(5, 2, 2), ["a.c", "b.c"]);
}

#[test]
fn never_more_than_the_jobs_and_all_of_them() {
    for jobs in [1, 2, 5] {
        let tree = Tree::empty("project");
        for number in 0..12 {
            tree.write(&format!("src/{number:02}.c"), &format!("@await {jobs}\n{number}\n"));
        }
        assert_eq!(tree.run_graph(&tree.project.graph(), config(jobs)).counts(), (13, 0, 0, 0));
        let (mut running, mut most) = (0_usize, 0);
        for line in tree.log() {
            if line.starts_with("start") {
                running += 1;
                most = most.max(running);
            } else {
                running -= 1;
            }
        }
        assert_eq!(most, jobs);
    }
}

#[test]
fn events_are_one_story() {
    let tree = Tree::new();
    tree.write("src/b.c", "@exit 1\n");
    let report = tree.run_graph(&tree.project.graph(), Config { keep_going: true, ..config(1) });
    let story: Vec<String> = report
        .events
        .iter()
        .map(|event| match event {
            Event::GraphStarted { steps, targets } => format!("{steps} steps, {targets} targets"),
            Event::StepUpToDate { label, .. } => format!("fresh {label}"),
            Event::StepStarted { verb, label, .. } => format!("{verb} {label}"),
            Event::StepFinished { label, .. } => format!("finished {label}"),
            Event::StepFailed { label, failure, .. } => format!("failed {label}: {failure:?}"),
            Event::StepSkipped { label, .. } => format!("skipped {label}"),
            Event::TargetFinished { target, ok } => format!("target {target}: {ok}"),
            Event::StepRestored { label, .. } => format!("restored {label}"),
            Event::StepRetried { label, .. } => format!("again {label}"),
            Event::Stopping { running, kills } => format!("stopping {running} {kills}"),
            Event::CacheDamaged { .. } => "damaged".to_owned(),
            Event::CacheUnusable { .. } => "unusable".to_owned(),
            Event::GraphFinished { ran, up_to_date, failed, skipped, .. } => format!("{ran} {up_to_date} {failed} {skipped}"),
        })
        .collect();
    insta::assert_snapshot!(story.join("\n"), @"
    4 steps, 1 targets
    Compiling a.c
    finished a.c
    Compiling b.c
    failed b.c: Exit { code: 1 }
    skipped app
    Compiling c.c
    finished c.c
    target app: false
    2 0 1 1
    ");
}

#[test]
fn a_graph_without_steps_is_done() {
    let tree = Tree::empty("project");
    let mut graph = Graph::new();
    graph.add_target("nothing", Vec::new()).unwrap();
    let report = tree.run_graph(&graph, config(2));
    assert!(report.outcome.is_ok() && report.outcome.is_target_ok("nothing"));
    assert_eq!(report.events.len(), 3);
}

/// A graph with one step that runs `script` in a shell, which makes `it` in `$OUT`, and one that needs it.
fn script(tree: &Tree, script: &str) -> Graph {
    let mut graph = tree.project.empty_graph();
    let mut program = tree.project.program(vec!["-c".into(), script.into()]);
    program.path = Path::new("/bin/sh").into();
    Arc::make_mut(&mut program.env).insert("OUT".to_owned(), Arg::default().with(Piece::Own("it".to_owned())));
    Arc::make_mut(&mut program.ambient).insert("PATH".to_owned(), "/usr/bin:/bin".into());
    Arc::make_mut(&mut program.ambient).insert("HERE".to_owned(), tree.project.dir.clone());
    let it = graph.add(step("Running", "script", Action::Run(program), Vec::new(), "it")).unwrap();
    let link = tree.project.link(&[OutputRef { step: it, name: "it".to_owned() }]);
    let link = graph.add(link).unwrap();
    graph.add_target("app", vec![OutputRef { step: link, name: "app".to_owned() }]).unwrap();
    graph
}

/// Runs `text` and interrupts it once the file `ready` is there. Gives the state of the two steps and the time it took after that.
fn interrupted(tree: &Tree, text: &str, grace: Duration) -> (StepState, StepState, Duration) {
    let graph = script(tree, text);
    let interrupt = Interrupt::new();
    let locked = tree.lock();
    let executor = Executor::new(&locked, Config { interrupt: interrupt.clone(), grace, ..config(2) });
    let (outcome, took) = std::thread::scope(|scope| {
        let run = scope.spawn(|| executor.run(&graph, &|_| {}));
        while !tree.path("ready").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        interrupt.stop();
        (run.join().unwrap(), asked.elapsed())
    });
    assert!(outcome.is_interrupted() && !outcome.is_target_ok("app"));
    assert_eq!(tree.leftovers(), Vec::<PathBuf>::new());
    (outcome.steps()[0].state.clone(), outcome.steps()[1].state.clone(), took)
}

#[test]
fn an_interrupted_program_is_asked_to_end() {
    let tree = Tree::empty("project");
    let text = "trap 'echo asked > \"$HERE/asked\"; exit 1' TERM; : > \"$HERE/ready\"; sleep 60 & wait";
    let (first, second, took) = interrupted(&tree, text, Duration::from_secs(60));
    assert_eq!((first, second), (StepState::Failed(Failure::Interrupted), StepState::Skipped));
    assert!(tree.path("asked").exists());
    assert!(took < Duration::from_secs(30), "nobody waits for the grace to end");
}

#[test]
fn a_program_that_does_not_listen_is_killed_with_its_children() {
    let tree = Tree::empty("project");
    let text = "trap '' TERM; (trap '' TERM; sleep 60) & echo $! > \"$HERE/child\"; : > \"$HERE/ready\"; sleep 60; sleep 60";
    let (first, _, took) = interrupted(&tree, text, Duration::from_millis(200));
    assert_eq!(first, StepState::Failed(Failure::Interrupted));
    assert!(took >= Duration::from_millis(200));
    let child: i32 = fs::read_to_string(tree.path("child")).unwrap().trim().parse().unwrap();
    assert!(is_gone(child), "the child lives on");
}

#[test]
fn a_child_that_outlives_an_interrupted_program_is_killed() {
    let tree = Tree::empty("project");
    let text = "(trap '' TERM; : > \"$HERE/deaf\"; sleep 60) & echo $! > \"$HERE/child\"; \
                while ! test -e \"$HERE/deaf\"; do sleep 0.01; done; : > \"$HERE/ready\"; wait";
    let (first, _, took) = interrupted(&tree, text, Duration::from_secs(60));
    assert_eq!(first, StepState::Failed(Failure::Interrupted));
    assert!(took < Duration::from_secs(30));
    let child: i32 = fs::read_to_string(tree.path("child")).unwrap().trim().parse().unwrap();
    assert!(is_gone(child), "the child lives on");
}

/// Whether a process is dead, or is so in a moment: it may be a zombie that nobody has reaped yet.
fn is_gone(pid: i32) -> bool {
    let gone = || match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
    };
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        gone()
    })
}

#[test]
fn a_program_that_ends_well_in_spite_of_the_interrupt_has_run() {
    let tree = Tree::empty("project");
    let text = "trap 'echo done > \"$OUT\"; exit 0' TERM; : > \"$HERE/ready\"; sleep 60 & wait";
    let (first, second, _) = interrupted(&tree, text, Duration::from_secs(60));
    assert_eq!((first, second), (StepState::Ran, StepState::Skipped));
    assert_eq!(tree.run_graph(&script(&tree, text), config(1)).counts(), (1, 1, 0, 0));
}

/// A handshake: `file` is there.
fn wait_for(path: &std::path::Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_runs_may_end_when_nothing_more_is_to_start() {
    let tree = Tree::empty("project");
    let text = "trap 'exit 9' TERM; : > \"$HERE/ready\"; while ! test -e \"$HERE/go\"; do sleep 0.01; done; echo done > \"$OUT\"";
    let (graph, interrupt, locked) = (script(&tree, text), Interrupt::new(), tree.lock());
    let executor = Executor::new(&locked, Config { interrupt: interrupt.clone(), ..config(2) });
    let told = Mutex::new(Vec::new());
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            executor.run(&graph, &|event| {
                if let Event::Stopping { running, kills } = event {
                    told.lock().unwrap().push((*running, *kills));
                    fs::write(tree.path("go"), "").unwrap();
                }
            })
        });
        wait_for(&tree.path("ready"));
        interrupt.finish();
        run.join().unwrap()
    });
    assert_eq!(*told.lock().unwrap(), [(1, false)]);
    let states: Vec<&StepState> = outcome.steps().iter().map(|step| &step.state).collect();
    assert_eq!(states, [&StepState::Ran, &StepState::Skipped]);
    assert!(outcome.is_interrupted());
}

/// The state of a process, as one letter.
fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().trim_start().chars().next().unwrap()
}

#[test]
fn a_suspended_run_goes_on_where_it_was_and_learns_nothing() {
    let tree = Tree::empty("project");
    let text = "sh -c 'echo $$ > \"$HERE/pid.new\"; mv \"$HERE/pid.new\" \"$HERE/pid\"; \
                while ! test -e \"$HERE/go\"; do :; done'; echo done > \"$OUT\"";
    let (graph, interrupt, locked) = (script(&tree, text), Interrupt::new(), tree.lock());
    let executor = Executor::new(&locked, Config { interrupt: interrupt.clone(), ..config(2) });
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| executor.run(&graph, &|_| {}));
        wait_for(&tree.path("pid"));
        let pid: i32 = fs::read_to_string(tree.path("pid")).unwrap().trim().parse().unwrap();
        // What a program has started is stopped with it. It starts nothing itself: see the test in `process.rs`.
        interrupt.suspend();
        while state(pid) != 'T' {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::write(tree.path("go"), "").unwrap();
        assert_eq!(state(pid), 'T');
        interrupt.resume();
        run.join().unwrap()
    });
    assert!(outcome.is_ok());
    drop(locked);
    // Only the step that ran undisturbed has left its time.
    let bytes = fs::read(tree.project.work_dir().join("durations")).unwrap();
    let (magic, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1);
    assert_eq!((magic, rest[0]), (&b"kiln durations 1\n"[..], 1));
}

#[test]
fn an_interrupt_before_the_start_skips_everything() {
    let tree = Tree::new();
    let interrupt = Interrupt::new();
    interrupt.finish();
    let report = tree.run_graph(&tree.project.graph(), Config { interrupt, ..config(2) });
    assert_eq!(report.counts(), (0, 0, 0, 4));
    assert_eq!(report.started, Vec::<String>::new());
    tree.run();
    tree.assert_settled();
}

#[test]
fn a_panic_of_the_observer_ends_the_run_and_reaches_the_caller() {
    let tree = Tree::new();
    let locked = tree.lock();
    let graph = tree.project.graph();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Executor::new(&locked, config(2)).run(&graph, &|event| assert!(!matches!(event, Event::StepFinished { .. }), "no more"))
    }));
    assert!(result.is_err());
    drop(locked);
    tree.run();
    tree.assert_settled();
}

#[test]
fn durations_are_measured() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "@sleep 50\n");
    let report = tree.run();
    let told = report.events.iter().find_map(|event| match event {
        Event::StepFinished { label, duration, .. } if label == "a.c" => Some(*duration),
        _ => None,
    });
    assert!(told.unwrap() >= Duration::from_millis(50));
    assert_eq!(report.outcome.steps()[0].duration, told.unwrap());
    let seen = Mutex::new(0);
    let locked = tree.lock();
    let again = Executor::new(&locked, Config::default()).run(&tree.project.graph(), &|_| *seen.lock().unwrap() += 1);
    assert_eq!(again.steps()[0].duration, Duration::ZERO);
    assert_eq!(*seen.lock().unwrap(), 5);
}
