//! How steps fail, what that leaves, and what still runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use common::project::{path, step};
use common::{Report, Tree, args, config};
use kiln_graph::{
    Action, Arg, Builtin, BuiltinError, Call, Config, Event, Failure, Graph, OutputRef, Piece, Step, StepId, StepState, write_file,
};

/// Runs one compile of `src/a.c`, which has this text.
fn compile(tree: &Tree, text: &str) -> Report {
    tree.write("src/a.c", text);
    let mut graph = tree.project.empty_graph();
    graph.add(tree.project.compile("a.c")).unwrap();
    let report = tree.run_graph(&graph, config(1));
    assert_eq!(tree.leftovers(), Vec::<PathBuf>::new());
    report
}

fn failure(report: &Report) -> (Failure, String) {
    let failures: Vec<_> = report
        .events
        .iter()
        .filter_map(|event| match event {
            Event::StepFailed { failure, output, .. } => Some((failure.clone(), String::from_utf8(output.clone()).unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(failures.len(), 1, "{:?}", report.events);
    assert_eq!(report.outcome.counts().failed, 1);
    failures[0].clone()
}

fn builtin(run: impl Fn() -> Result<(), BuiltinError> + Send + Sync + 'static) -> Step {
    let builtin = Builtin { name: "test", version: 1, key: String::new(), run: std::sync::Arc::new(move |_| run()) };
    step("Generating", "it", Action::Builtin(builtin), Vec::new(), "it")
}

#[test]
fn a_program_that_fails_is_shown_with_its_output_in_order_of_arrival() {
    let tree = Tree::empty("project");
    let report = compile(&tree, "@print one\n@eprint two\n@print three\n@exit 7\n");
    assert_eq!(failure(&report), (Failure::Exit { code: 7 }, "one\ntwo\nthree\n".to_owned()));
    let Some(Event::StepFailed { command: Some(command), .. }) =
        report.events.iter().find(|event| matches!(event, Event::StepFailed { .. }))
    else {
        panic!("no command")
    };
    assert_eq!(command[0], tree.project.helper.to_str().unwrap());
    assert_eq!(command[1..3], ["compile", "--out"]);
    assert!(command[3].ends_with("/a.c.o") && command[3].contains("/.kiln/out/"), "own files are named where they will be kept");
    assert_eq!(command.last().unwrap(), tree.path("src/a.c").to_str().unwrap());
}

#[test]
fn output_of_a_program_that_ends_well_is_kept_too() {
    let tree = Tree::empty("project");
    let report = compile(&tree, "@print a warning\n");
    let finished = report.events.iter().find_map(|event| match event {
        Event::StepFinished { output, .. } => Some(output.clone()),
        _ => None,
    });
    assert_eq!(finished.unwrap(), b"a warning\n");
}

#[test]
fn a_program_that_is_killed_says_by_what() {
    let tree = Tree::empty("project");
    for signal in [9, 6] {
        assert_eq!(failure(&compile(&tree, &format!("@kill {signal}\n"))).0, Failure::Signal { signal });
    }
    assert_eq!(compile(&tree, "fine\n").counts(), (1, 0, 0, 0), "and the next run tries again");
}

#[test]
fn programs_that_cannot_start() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "a\n");
    tree.write("not-a-program", "text");
    let run = |change: &dyn Fn(&mut kiln_graph::Program)| {
        let mut graph = tree.project.empty_graph();
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        change(program);
        graph.add(step).unwrap();
        match failure(&tree.run_graph(&graph, config(1))).0 {
            Failure::Spawn { message } => message.replace(tree.project.dir.to_str().unwrap(), "[project]"),
            other => panic!("{other:?}"),
        }
    };
    insta::assert_snapshot!(run(&|program| program.path = tree.path("missing").into()), @"cannot run `[project]/missing`: No such file or directory (os error 2)");
    insta::assert_snapshot!(run(&|program| program.path = tree.path("not-a-program").into()), @"cannot run `[project]/not-a-program`: Permission denied (os error 13)");
    let elsewhere = run(&|program| program.cwd = path("missing")).replace(tree.project.helper.to_str().unwrap(), "[helper]");
    insta::assert_snapshot!(elsewhere, @"cannot run `[helper]` in `[project]/missing`, which is not a directory");
    let nul = run(&|program| program.args.push("a\0b".into())).replace(tree.project.helper.to_str().unwrap(), "[helper]");
    insta::assert_snapshot!(nul, @"cannot run `[helper]`: nul byte found in provided data");
    assert_eq!(tree.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn what_a_step_promises_must_be_there() {
    let tree = Tree::empty("project");
    let missing = |output: &str| Failure::MissingOutput { output: output.to_owned() };
    assert_eq!(failure(&compile(&tree, "@no-output\n")).0, missing("a.c.o"));
    assert_eq!(failure(&compile(&tree, "@no-depfile\n")).0, missing("a.c.d"));
    assert_eq!(failure(&compile(&tree, "@empty-depfile\n")).0, missing("a.c.d"));
    let mut graph = Graph::new();
    graph.add(builtin(|| Ok(()))).unwrap();
    assert_eq!(failure(&tree.run_graph(&graph, config(1))).0, missing("it"));
}

#[test]
fn a_failed_step_keeps_what_it_had() {
    let tree = Tree::empty("project");
    compile(&tree, "good\n");
    failure(&compile(&tree, "@exit 1\n"));
    let back = compile(&tree, "good\n");
    assert_eq!(back.counts(), (0, 1, 0, 0), "back to what the record says");
}

#[test]
fn builtins_fail_with_a_text_and_panics_are_failures() {
    let tree = Tree::empty("project");
    let panic = |message: &str| Failure::Panic { message: message.to_owned() };
    let hint = || Some("another symbol".to_owned());
    for (run, expected) in [
        (
            Box::new(move || Err(BuiltinError { hint: hint(), ..BuiltinError::new("symbol", "no such symbol") }))
                as Box<dyn Fn() -> _ + Send + Sync>,
            Failure::Builtin { code: "symbol", message: "no such symbol".to_owned(), hint: hint() },
        ),
        (Box::new(|| panic!("a bug")), panic("a bug")),
        (Box::new(|| panic!("{}", String::from("formatted"))), panic("formatted")),
        (Box::new(|| std::panic::panic_any(1)), panic("for an unknown reason")),
    ] {
        let mut graph = Graph::new();
        graph.add(builtin(run)).unwrap();
        assert_eq!(failure(&tree.run_graph(&graph, config(1))).0, expected);
    }
    let mut graph = Graph::new();
    graph.add(step("Generating", "a", Action::Builtin(write_file("b", *b"text")), Vec::new(), "a")).unwrap();
    assert_eq!(failure(&tree.run_graph(&graph, config(1))).0, Failure::MissingOutput { output: "a".to_owned() });
}

#[test]
fn reading_what_another_step_makes_without_needing_it_is_an_error() {
    let tree = Tree::empty("project");
    let mut graph = tree.project.empty_graph();
    let header = graph.add(step("Generating", "g.h", Action::Builtin(write_file("g.h", *b"text\n")), Vec::new(), "g.h")).unwrap();
    tree.write("src/a.c", &format!("@depend {}\n", tree.output_path(&header, "g.h").display()));
    let careless = graph.add(tree.project.compile("a.c")).unwrap();
    let report = tree.run_graph(&graph, config(1));
    assert_eq!(failure(&report).0, Failure::UndeclaredInput { input: "{g.h}/g.h".to_owned() });
    assert!(report.outcome.step(&header).unwrap().state.is_ok());
    assert!(matches!(report.outcome.step(&careless).unwrap().state, StepState::Failed(_)));

    // A file that no step makes is no better.
    tree.write("src/a.c", &format!("@depend {}\n", tree.output_path(&StepId::clone(&header), "h.h").display()));
    assert_eq!(failure(&tree.run_graph(&graph, config(1))).0, Failure::UndeclaredInput { input: "{g.h}/h.h".to_owned() });

    // What a step needs by way of another one is sure to be there.
    tree.write("src/a.c", &format!("@depend {}\n", tree.output_path(&header, "g.h").display()));
    let mut graph = tree.project.empty_graph();
    graph.add(step("Generating", "g.h", Action::Builtin(write_file("g.h", *b"text\n")), Vec::new(), "g.h")).unwrap();
    let between = tree.project.link(&[OutputRef { step: header.clone(), name: "g.h".to_owned() }]);
    let between = graph.add(between).unwrap();
    let mut careful = tree.project.compile("a.c");
    careful.inputs.push(kiln_graph::Input::Output(OutputRef { step: between, name: "app".to_owned() }));
    graph.add(careful).unwrap();
    assert_eq!(tree.run_graph(&graph, config(1)).counts().2, 0);
    assert_eq!(tree.run_graph(&graph, config(1)).counts(), (0, 3, 0, 0));
}

#[test]
fn files_that_cannot_be_written_are_an_io_failure() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "a\n");
    let mut graph = tree.project.empty_graph();
    let id = graph.add(tree.project.compile("a.c")).unwrap();
    let record = tree.project.work_dir().join("records").join(id.as_str());
    fs::create_dir_all(record.join("in the way")).unwrap();
    let (failure, _) = failure(&tree.run_graph(&graph, config(1)));
    let Failure::Io { message } = failure else { panic!("{failure:?}") };
    assert!(message.starts_with(&format!("cannot write `{}`: ", record.display())), "{message}");
    fs::remove_dir_all(&record).unwrap();
    assert_eq!(tree.run_graph(&graph, config(1)).counts(), (1, 0, 0, 0));
}

#[test]
fn what_a_step_does_not_declare_is_not_kept() {
    let tree = Tree::empty("project");
    let mut graph = Graph::new();
    let builtin = Builtin {
        name: "test",
        version: 1,
        key: String::new(),
        run: std::sync::Arc::new(|context| {
            fs::write(context.out_dir.join("it"), "it").unwrap();
            fs::write(context.out_dir.join("scratch"), "more").unwrap();
            Ok(())
        }),
    };
    let id = graph.add(step("Generating", "it", Action::Builtin(builtin), Vec::new(), "it")).unwrap();
    assert_eq!(tree.run_graph(&graph, config(1)).counts(), (1, 0, 0, 0));
    assert_eq!(fs::read_dir(tree.output_path(&id, "")).unwrap().count(), 1);
    // A link is not an output: what it leads to may change behind everybody's back.
    let mut graph = Graph::new();
    let builtin = Builtin {
        name: "test",
        version: 2,
        key: String::new(),
        run: std::sync::Arc::new(|context| {
            std::os::unix::fs::symlink("/dev/null", context.out_dir.join("it")).unwrap();
            Ok(())
        }),
    };
    graph.add(step("Generating", "it", Action::Builtin(builtin), Vec::new(), "it")).unwrap();
    assert_eq!(failure(&tree.run_graph(&graph, config(1))).0, Failure::MissingOutput { output: "it".to_owned() });
}

/// Three independent sources, of which the first fails, and what needs them.
fn broken() -> Tree {
    let tree = Tree::new();
    tree.write("src/a.c", "@exit 1\n");
    tree
}

fn labels(report: &Report, wanted: &str) -> Vec<String> {
    let label = |event: &Event| match (wanted, event) {
        ("skipped", Event::StepSkipped { label, .. }) | ("finished", Event::StepFinished { label, .. }) => Some(label.clone()),
        _ => None,
    };
    report.events.iter().filter_map(label).collect()
}

#[test]
fn the_first_failure_stops_the_run() {
    let tree = broken();
    let mut graph = tree.project.graph();
    let other = graph.add(tree.project.compile("c.c")).unwrap();
    graph.add_target("object", vec![OutputRef { step: other, name: "c.c.o".to_owned() }]).unwrap();
    let report = tree.run_graph(&graph, config(1));
    assert_eq!(report.counts(), (0, 0, 1, 3));
    assert_eq!(labels(&report, "skipped"), ["b.c", "c.c", "app"]);
    let targets: Vec<_> = report.outcome.targets().iter().map(|target| (target.target.as_str(), target.ok)).collect();
    assert_eq!(targets, [("app", false), ("object", false)]);
    assert!(!report.outcome.is_ok());
}

#[test]
fn keep_going_runs_all_that_can_run() {
    let tree = broken();
    let mut graph = tree.project.graph();
    let other = graph.add(tree.project.compile("c.c")).unwrap();
    graph.add_target("object", vec![OutputRef { step: other, name: "c.c.o".to_owned() }]).unwrap();
    let report = tree.run_graph(&graph, Config { keep_going: true, ..config(2) });
    assert_eq!(report.counts(), (2, 0, 1, 1));
    assert_eq!(labels(&report, "skipped"), ["app"]);
    assert!(report.outcome.is_target_ok("object") && !report.outcome.is_target_ok("app") && !report.outcome.is_target_ok("none"));
    let again = tree.run_graph(&graph, Config { keep_going: true, ..config(2) });
    assert_eq!(again.counts(), (0, 2, 1, 1));
}

#[test]
fn steps_that_run_when_another_fails_are_let_finish() {
    let tree = Tree::new();
    // `b.c` starts, and fails once `a.c` has started for sure.
    tree.write("src/a.c", "@sleep 600\nslow\n");
    tree.write("src/b.c", "@sleep 200\n@exit 1\n");
    let report = tree.run();
    assert_eq!(report.counts(), (1, 0, 1, 2));
    assert_eq!(labels(&report, "finished"), ["a.c"]);
}

#[test]
fn the_environment_is_what_the_step_says() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "@env HOME\n@env PATH\n@env OWN\n@env EXTRA\n@cwd\n@stdin\n@scratch text\n");
    let mut graph = tree.project.empty_graph();
    let mut step = tree.project.compile("a.c");
    let Action::Run(program) = &mut step.action else { unreachable!() };
    Arc::make_mut(&mut program.env)
        .insert("OWN".to_owned(), Arg::text("in ").with(Piece::Path(path("src"))).and(" and ").with(Piece::WorkDir));
    Arc::make_mut(&mut program.env).insert("EXTRA".to_owned(), "from env".into());
    Arc::make_mut(&mut program.ambient).insert("EXTRA".to_owned(), "from ambient".into());
    program.cwd = path("src");
    let id = graph.add(step).unwrap();
    assert_eq!(tree.run_graph(&graph, config(1)).counts(), (1, 0, 0, 0));
    let text = tree.output(&id, "a.c.o").replace(tree.project.dir.to_str().unwrap(), "[project]");
    insta::assert_snapshot!(text, @r#"
    compiled
    HOME=Err(NotPresent)
    PATH=Err(NotPresent)
    OWN=Ok("in [project]/src and [project]/.kiln")
    EXTRA=Ok("from env")
    [project]/src
    stdin Ok("")
    text
    "#);
}

/// Programs of one step: each runs after the one before, in the directory of the outputs, and only then.
#[test]
fn a_step_may_run_several_programs() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "first\n");
    let graph = |second: &str| {
        tree.write("src/b.c", second);
        let Action::Run(mut program) = tree.project.compile("a.c").action else { panic!("a program") };
        let at = program.args.iter().position(|arg| arg.0 == [Piece::Own("a.c.o".to_owned())]).unwrap();
        args(&mut program, |args| args[at] = Arg(vec![Piece::Scratch("first.o".to_owned())]));
        let call = tree.project.program(vec!["compile".into(), "--out".into(), "a.c.o".into(), "first.o".into(), path("src/b.c").into()]);
        program.then = vec![Call {
            path: call.path.to_path_buf(),
            tool: call.tool.to_string(),
            args: call.args.into_vec(),
            env: [("OWN".to_owned(), Arg::text("x"))].into(),
        }];
        let mut graph = tree.project.empty_graph();
        let id = graph.add(step("Compiling", "a.c", Action::Run(program), Vec::new(), "a.c.o")).unwrap();
        (graph, id)
    };
    let (first, id) = graph("second\n@cwd\n@env OWN\n");
    let report = tree.run_graph(&first, config(1));
    assert_eq!(report.outcome.counts().ran, 1, "{:?}", report.events);
    let made = tree.output(&id, "a.c.o");
    assert!(made.contains("first") && made.contains("second") && made.contains("OWN=Ok(\"x\")"), "{made}");
    assert!(made.contains("/o\n"), "the second one runs where the outputs are made: {made}");
    assert_eq!(tree.leftovers(), Vec::<PathBuf>::new());
    let Some(Event::StepStarted { command: Some(command), .. }) =
        report.events.iter().find(|event| matches!(event, Event::StepStarted { .. }))
    else {
        panic!("no command")
    };
    assert_eq!(command.iter().filter(|word| *word == "&&").count(), 2, "a change of directory and a program: {command:?}");

    let (failing, id) = graph("@exit 3\n");
    let report = tree.run_graph(&failing, config(1));
    assert_eq!(failure(&report).0, Failure::Exit { code: 3 });
    assert!(tree.output(&id, "a.c.o").contains("second"), "what was made before is still there");
}
