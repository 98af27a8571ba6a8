//! What runs again after what, and why.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::fs;
use std::sync::Arc;

use common::project::path;
use common::{Tree, app, args, config};
use kiln_graph::{
    Action, Arg, Graph, Input, OutputRef, PathRef, Piece, Reason, RootBinding, RootKind, RootName, Scope, StepId, write_file,
};

fn changed(label: &str, input: impl Into<String>) -> (String, Reason) {
    (label.to_owned(), Reason::InputChanged { input: input.into() })
}

fn object(tree: &Tree, source: &str) -> OutputRef {
    let mut graph = tree.project.empty_graph();
    OutputRef { step: graph.add(tree.project.compile(source)).unwrap(), name: format!("{source}.o") }
}

#[test]
fn first_everything_then_nothing() {
    let tree = Tree::new();
    let first = tree.run();
    assert_eq!(first.counts(), (4, 0, 0, 0));
    assert!(first.reasons().iter().all(|(_, reason)| *reason == Reason::NoRecord));
    // Two compiles run at once, so only the set of names is sure.
    let mut started = first.started.clone();
    started.sort();
    assert_eq!(started, ["a.c", "a.c.o", "b.c", "c.c"]);
    assert!(first.outcome.is_target_ok("app"));
    let second = tree.run();
    assert_eq!(second.counts(), (0, 4, 0, 0));
    assert_eq!(second.started, Vec::<String>::new());
    tree.assert_settled();
}

#[test]
fn touching_runs_nothing() {
    let tree = Tree::new();
    tree.run();
    for file in ["src/a.c", "include/one.h"] {
        fs::File::options().append(true).open(tree.path(file)).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
        // The same content in another file.
        fs::write(tree.path("copy"), fs::read(tree.path(file)).unwrap()).unwrap();
        fs::rename(tree.path("copy"), tree.path(file)).unwrap();
    }
    tree.assert_settled();
}

#[test]
fn an_edit_runs_one_step_and_what_needs_it() {
    let tree = Tree::new();
    tree.run();
    tree.write("src/a.c", "#include one.h\nA\n");
    let edited = tree.run();
    assert_eq!(edited.reasons(), [changed("a.c", "project:src/a.c"), changed("app", "{a.c}/a.c.o")]);
    assert_eq!(edited.started, ["a.c", "a.c.o"]);
    tree.assert_settled();
}

#[test]
fn an_edit_of_the_same_size_and_time_is_noticed() {
    let tree = Tree::new();
    tree.run();
    // Records with stamps that stand for the content.
    std::thread::sleep(std::time::Duration::from_millis(100));
    tree.run();
    let time = fs::metadata(tree.path("src/a.c")).unwrap().modified().unwrap();
    tree.write("src/a.c", "#include one.h\nA\n");
    fs::File::options().append(true).open(tree.path("src/a.c")).unwrap().set_modified(time).unwrap();
    assert_eq!(tree.run().ran(), ["a.c", "app"]);
    tree.assert_settled();
}

#[test]
fn a_header_runs_exactly_its_users() {
    let tree = Tree::new();
    tree.run();
    tree.write("include/one.h", "ONE\n");
    assert_eq!(tree.run().ran(), ["a.c", "app", "b.c"]);
    tree.write("include/deep.h", "DEEP\n");
    let deep = tree.run();
    assert_eq!(deep.ran(), ["app", "b.c", "c.c"]);
    assert!(deep.reasons().contains(&changed("c.c", "project:include/deep.h")));
    tree.write("README.md", "nobody reads me\n");
    tree.assert_settled();
}

#[test]
fn an_edit_that_changes_no_object_stops_there() {
    let tree = Tree::new();
    tree.run();
    tree.write("src/a.c", "@print a remark\n#include one.h\na\n");
    let edited = tree.run();
    assert_eq!(edited.ran(), ["a.c"]);
    assert_eq!(edited.counts(), (1, 3, 0, 0));
    tree.assert_settled();
}

#[test]
fn back_and_forth() {
    let tree = Tree::new();
    tree.run();
    let old = tree.app();
    tree.write("src/a.c", "new\n");
    tree.run();
    tree.write("src/a.c", "#include one.h\na\n");
    assert_eq!(tree.run().ran(), ["a.c", "app"]);
    assert_eq!(tree.app(), old);
    tree.assert_settled();
}

#[test]
fn a_deleted_header_is_missed_and_one_that_nobody_includes_is_not() {
    let tree = Tree::new();
    tree.run();
    tree.remove("include/one.h");
    let broken = tree.run_graph(&tree.project.graph(), config(1));
    assert_eq!(broken.outcome.counts().failed, 1, "the first failure stops the run");
    assert!(broken.reasons().contains(&("a.c".to_owned(), Reason::InputMissing { input: "project:include/one.h".to_owned() })));
    tree.write("src/a.c", "a\n");
    tree.write("src/b.c", "#include two.h\nb\n");
    assert_eq!(tree.run().ran(), ["a.c", "app", "b.c"]);
    tree.assert_settled();
    tree.write("include/one.h", "back, and unused\n");
    tree.assert_settled();
}

#[test]
fn a_new_source_and_a_removed_one() {
    let tree = Tree::new();
    tree.run();
    tree.write("src/d.c", "d\n");
    assert_eq!(tree.run().ran(), ["app", "d.c"]);
    tree.remove("src/d.c");
    let fewer = tree.run();
    assert_eq!(fewer.ran(), Vec::<String>::new(), "the link without d.c is still there");
    tree.assert_settled();
}

#[test]
fn outputs_that_were_altered_or_removed_are_made_again() {
    let tree = Tree::new();
    tree.run();
    let object = object(&tree, "a.c");
    let file = tree.output_path(&object.step, &object.name);
    let good = fs::read(&file).unwrap();

    fs::write(&file, "altered").unwrap();
    let altered = tree.run();
    assert_eq!(altered.reasons(), [("a.c".to_owned(), Reason::OutputAltered { output: "a.c.o".to_owned() })]);
    assert_eq!(fs::read(&file).unwrap(), good);

    // The same size, and the time of before.
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    let mut bad = good.clone();
    bad[0] ^= 1;
    fs::write(&file, bad).unwrap();
    fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
    assert_eq!(tree.run().ran(), ["a.c"]);
    assert_eq!(fs::read(&file).unwrap(), good);

    fs::remove_file(&file).unwrap();
    assert_eq!(tree.run().reasons(), [("a.c".to_owned(), Reason::OutputMissing { output: "a.c.o".to_owned() })]);
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    assert_eq!(tree.run().ran(), ["a.c"]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(tree.run().reasons(), [("a.c".to_owned(), Reason::OutputAltered { output: "a.c.o".to_owned() })]);
    tree.assert_settled();
}

#[test]
fn a_damaged_record_is_no_record() {
    let tree = Tree::new();
    tree.run();
    let object = object(&tree, "a.c");
    let record = tree.project.work_dir().join("records").join(object.step.as_str());
    let good = fs::read(&record).unwrap();
    for bad in [&b""[..], &good[..good.len() / 2], &good[..good.len() - 1], b"garbage"] {
        fs::write(&record, bad).unwrap();
        assert_eq!(tree.run().reasons(), [("a.c".to_owned(), Reason::NoRecord)]);
    }
    // The record of another step in its place.
    let other = self::object(&tree, "b.c");
    fs::copy(tree.project.work_dir().join("records").join(other.step.as_str()), &record).unwrap();
    assert_eq!(tree.run().reasons(), [("a.c".to_owned(), Reason::NoRecord)]);
    tree.assert_settled();
}

#[test]
fn an_input_that_changes_while_the_step_runs_is_not_taken_for_built() {
    for (file, label) in [("src/a.c", "the source"), ("include/one.h", "a header that only the depfile names")] {
        let tree = Tree::new();
        // The edit comes after the text was read.
        let edit = format!("@append {} more\n", tree.path(file).display());
        let first = if file == "src/a.c" { format!("#include one.h\na\n{edit}") } else { format!("#include one.h\n{edit}a\n") };
        tree.write("src/a.c", &first);
        let graph = tree.project.graph();
        assert_eq!(tree.run_graph(&graph, config(1)).counts(), (4, 0, 0, 0), "{label}");
        let text = fs::read_to_string(tree.path(file)).unwrap().replace(&edit, "");
        tree.write("src/a.c", "#include one.h\na\n");
        if file == "src/a.c" {
            // As if the edit had been the user's last: the file is what it was at the end of the run, but for the command.
            tree.write(file, &text);
        }
        let second = tree.run();
        assert!(second.ran().contains(&"a.c".to_owned()), "{label}");
        tree.assert_settled();
    }
}

#[test]
fn a_change_that_is_undone_while_the_step_runs_is_noticed_once() {
    let tree = Tree::new();
    tree.run();
    let header = tree.path("include/one.h");
    tree.write("src/a.c", &format!("@append {} more\n#include one.h\na\n", header.display()));
    tree.run();
    // The step saw `more`, which is gone: by its content the header is what it was before the run.
    tree.write("include/one.h", "one\n");
    let source = fs::read_to_string(tree.path("src/a.c")).unwrap();
    let reasons = tree.run_graph(&tree.project.graph(), config(1)).reasons();
    let unknown = Reason::InputUnknown { input: "project:include/one.h".to_owned() };
    assert!(reasons.contains(&("a.c".to_owned(), unknown)), "{reasons:?}");
    assert_eq!(fs::read_to_string(tree.path("src/a.c")).unwrap(), source);
}

#[test]
fn a_header_that_vanishes_while_the_step_runs_is_noticed() {
    let tree = Tree::new();
    tree.write("include/gone.h", "gone\n");
    tree.write("src/a.c", &format!("#include gone.h\n@remove {}\na\n", tree.path("include/gone.h").display()));
    tree.run();
    let again = tree.run();
    assert!(again.reasons().contains(&("a.c".to_owned(), Reason::InputMissing { input: "project:include/gone.h".to_owned() })));
}

#[test]
fn a_moved_tree_is_up_to_date() {
    let tree = Tree::new();
    tree.run();
    let target = tree.project.dir.with_file_name("moved elsewhere – ünder a $trange #name");
    fs::rename(&tree.project.dir, &target).unwrap();
    let mut tree = tree;
    tree.project.dir = target;
    tree.assert_settled();
    tree.write("include/one.h", "ONE\n");
    assert_eq!(tree.run().ran(), ["a.c", "app", "b.c"]);
    tree.assert_settled();

    // A copy has other inodes and times, and the same content.
    let copy = tree.project.dir.with_file_name("copy");
    let status = std::process::Command::new("cp").arg("-r").arg(&tree.project.dir).arg(&copy).status().unwrap();
    assert!(status.success());
    tree.project.dir = copy;
    tree.assert_settled();
}

#[test]
fn odd_names() {
    let tree = Tree::below("my prøject $HOME #1");
    tree.write("src/d e.c", "#include 頭 $x.h\nd\n");
    tree.write("include/頭 $x.h", "head\n");
    tree.run();
    tree.assert_settled();
    tree.write("include/頭 $x.h", "HEAD\n");
    let edited = tree.run();
    assert_eq!(edited.reasons()[1], changed("d e.c", "project:include/頭 $x.h"));
    assert_eq!(edited.ran(), ["app", "d e.c"]);
    tree.assert_settled();
}

#[test]
fn other_arguments_are_another_step_and_both_are_kept() {
    let tree = Tree::new();
    let graph = |flag: &str| {
        let mut graph = tree.project.empty_graph();
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        Arc::make_mut(&mut program.env).insert("FLAG".to_owned(), flag.into());
        graph.add(step).unwrap();
        graph
    };
    tree.write("src/a.c", "@env FLAG\n");
    for (flag, ran) in [("one", 1), ("two", 1), ("one", 0), ("two", 0)] {
        let graph = graph(flag);
        assert_eq!(tree.run_graph(&graph, config(1)).outcome.counts().ran, ran);
        let (id, _) = graph.steps().next().unwrap();
        assert_eq!(tree.output(id, "a.c.o"), format!("compiled\nFLAG=Ok({flag:?})\n"));
    }
}

#[test]
fn a_directory_that_appears_on_the_path_is_noticed() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.path("include")).unwrap();
    for source in ["a.c", "b.c", "c.c"] {
        tree.write(&format!("src/{source}"), "text\n");
    }
    tree.run();
    fs::create_dir(tree.path("include")).unwrap();
    let appeared = Reason::InputAppeared { input: "project:include".to_owned() };
    assert!(tree.run().reasons().contains(&("a.c".to_owned(), appeared)));
    tree.assert_settled();
    fs::remove_dir(tree.path("include")).unwrap();
    assert_eq!(tree.run().ran(), ["a.c", "b.c", "c.c"]);
}

#[test]
fn files_of_immutable_roots_are_known_by_the_digest_of_the_root() {
    let tree = Tree::empty("project");
    tree.write("torch/t.h", "torch\n");
    tree.write("other/o.h", "#include t.h\nother\n");
    tree.write("src/a.c", "#include t.h\n#include o.h\na\n");
    let graph = |digest: &str, mention_other: bool| {
        let mut graph = tree.project.empty_graph();
        for root in ["torch", "other"] {
            let kind = RootKind::Immutable { digest: format!("{root} {digest}") };
            graph.bind_root(RootName::new(root), RootBinding { dir: tree.path(root), kind }).unwrap();
        }
        let include = |root: &str| Arg::from(PathRef { root: RootName::new(root), path: String::new() });
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        // The second directory is reached without being named as a root, as by a flag of the user's.
        let other = if mention_other { include("other") } else { tree.path("other").to_str().unwrap().into() };
        args(program, |args| drop(args.splice(5..7, ["-I".into(), include("torch"), "-I".into(), other])));
        graph.add(step).unwrap();
        graph
    };

    let mentioned = graph("1", true);
    assert_eq!(tree.run_graph(&mentioned, config(1)).counts(), (1, 0, 0, 0));
    let record = fs::read(tree.project.work_dir().join("records").join(mentioned.steps().next().unwrap().0.as_str())).unwrap();
    assert!(!String::from_utf8_lossy(&record).contains(".h"), "no header of an immutable root is listed");
    // Nobody looks at the files.
    tree.write("torch/t.h", "changed against all promises\n");
    assert_eq!(tree.run_graph(&mentioned, config(1)).counts(), (0, 1, 0, 0));
    // Another digest is another step.
    assert_eq!(tree.run_graph(&graph("2", true), config(1)).counts(), (1, 0, 0, 0));

    let partly = graph("1", false);
    tree.run_graph(&partly, config(1));
    assert_eq!(tree.run_graph(&partly, config(1)).counts(), (0, 1, 0, 0));
    tree.write("other/o.h", "#include t.h\nnothing stands for this file but itself\n");
    assert_eq!(tree.run_graph(&partly, config(1)).reasons(), [changed("a.c", "other:o.h")]);
}

#[test]
fn headers_outside_all_roots_are_followed_by_absolute_path() {
    let tree = Tree::new();
    let system = tree.temp.path().join("system.h");
    fs::write(&system, "one\n").unwrap();
    tree.write("src/a.c", &format!("#include {}\n", system.display()));
    tree.run();
    tree.assert_settled();
    fs::write(&system, "two\n").unwrap();
    assert_eq!(tree.run().reasons()[0], changed("a.c", system.display().to_string()));
    tree.assert_settled();
    fs::remove_file(&system).unwrap();
    let reasons = tree.run().reasons();
    assert_eq!(reasons[0], ("a.c".to_owned(), Reason::InputMissing { input: system.display().to_string() }));
}

#[test]
fn generated_headers_are_followed_by_content() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "#include gen/config.h\na\n");
    let run = |text: &str| {
        let mut graph = tree.project.empty_graph();
        // The generator's identity stays; what it writes comes from a file.
        let source = Input::File(path("config.in"));
        tree.write("config.in", text);
        let mut builtin = write_file("gen/config.h", *b"");
        builtin.run = std::sync::Arc::new(|context| {
            let text = fs::read_to_string(&context.inputs[0]).unwrap();
            fs::write(context.out_dir.join("gen/config.h"), text.to_uppercase()).unwrap();
            Ok(())
        });
        let generated = graph.add(common::project::step("Generating", "config.h", Action::Builtin(builtin), vec![source], "gen/config.h"));
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        args(program, |args| args[6] = Arg::default().with(Piece::OutputDir(generated.unwrap())));
        graph.add(step).unwrap();
        tree.run_graph(&graph, config(2)).ran()
    };
    assert_eq!(run("one"), ["a.c", "config.h"]);
    assert_eq!(run("one"), Vec::<String>::new());
    assert_eq!(run("ONE"), ["config.h"], "the header is the same");
    assert_eq!(run("two"), ["a.c", "config.h"]);
}

#[test]
fn equal_steps_run_once() {
    let tree = Tree::new();
    let mut graph = tree.project.empty_graph();
    let ids: Vec<StepId> = (0..3)
        .map(|number| {
            let mut step = tree.project.compile("a.c");
            step.label = format!("a.c of variant {number}");
            step.weight.cpu_ms = number;
            graph.add(step).unwrap()
        })
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(graph.len(), 1);
    let run = tree.run_graph(&graph, config(3));
    assert_eq!((run.started.len(), run.ran()), (1, vec!["a.c of variant 0".to_owned()]));
}

#[test]
fn a_record_is_refreshed_so_that_old_files_are_not_read_again() {
    let tree = Tree::new();
    tree.run();
    std::thread::sleep(std::time::Duration::from_millis(100));
    tree.run();
    let records = || {
        let mut records = Vec::new();
        for entry in fs::read_dir(tree.project.work_dir().join("records")).unwrap() {
            let entry = entry.unwrap();
            records.push((entry.file_name(), entry.metadata().unwrap().modified().unwrap()));
        }
        records.sort();
        records
    };
    let before = records();
    tree.run();
    assert_eq!(records(), before, "nothing to refresh");
    assert_eq!(app(&tree.project.graph()).name, "app");
}

#[test]
fn what_is_different_about_a_step_is_said() {
    let tree = Tree::new();
    let build = |tool: &str, tag: &str| {
        let mut graph = tree.project.empty_graph();
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        program.tool = tool.into();
        program.args.extend(["--tag".into(), tag.into()]);
        graph.add(step).unwrap();
        tree.run_graph(&graph, config(1)).reasons().into_iter().map(|(_, reason)| reason).collect::<Vec<_>>()
    };
    assert_eq!(build("1", "x"), [Reason::NoRecord]);
    assert_eq!(build("1", "y"), [Reason::ArgumentsChanged { added: vec!["y".to_owned()], removed: vec!["x".to_owned()] }]);
    assert_eq!(build("2", "y"), [Reason::ToolChanged]);
    assert_eq!(build("1", "x"), []);
}

/// `a.c` with a word that it does not mention, so that the word makes no difference, linked.
fn named(tree: &Tree, word: &str, flag: &str) -> Graph {
    let mut graph = tree.project.empty_graph();
    let mut step = tree.project.compile("a.c");
    let Action::Run(program) = &mut step.action else { unreachable!() };
    let scoped = Arg(vec![Piece::Scope(Scope::Word("NAME".into())), Piece::Text(format!("-DNAME={word}"))]);
    args(program, |args| args.extend(["--tag".into(), flag.into(), scoped]));
    let object = OutputRef { step: graph.add(step).unwrap(), name: "a.c.o".to_owned() };
    let app = OutputRef { step: graph.add(tree.project.link(&[object])).unwrap(), name: "app".to_owned() };
    graph.add_target("app", vec![app]).unwrap();
    graph
}

fn reason_for(tree: &Tree, graph: &Graph, label: &str) -> Reason {
    let reasons = tree.run_graph(graph, config(1)).reasons();
    reasons.into_iter().find(|(of, _)| of == label).unwrap_or_else(|| panic!("`{label}` did not run")).1
}

fn several(reasons: impl IntoIterator<Item = Reason>, more: usize) -> Reason {
    Reason::Several { reasons: reasons.into_iter().collect(), more }
}

#[test]
fn an_edit_is_the_reason_though_a_name_in_arguments_changed_with_it() {
    let tree = Tree::new();
    tree.run_graph(&named(&tree, "one", "x"), config(1));
    let edited = Reason::InputChanged { input: "project:include/one.h".to_owned() };
    tree.write("include/one.h", "ONE\n");
    assert_eq!(reason_for(&tree, &named(&tree, "two", "x"), "a.c"), edited);
    tree.write("include/one.h", "more\n");
    // What was linked is called by the unit that it comes from.
    let linked = Reason::InputChanged { input: "{a.c}/a.c.o".to_owned() };
    assert_eq!(reason_for(&tree, &named(&tree, "three", "x"), "app"), linked);
    // A header in front of another.
    tree.write("src/one.h", "near\n");
    let appeared = Reason::InputAppeared { input: "project:src/one.h".to_owned() };
    assert_eq!(reason_for(&tree, &named(&tree, "four", "x"), "a.c"), appeared);
    // An argument that makes a difference stands beside it.
    tree.write("src/one.h", "nearer\n");
    let near = Reason::InputChanged { input: "project:src/one.h".to_owned() };
    let arguments = Reason::ArgumentsChanged { added: vec!["y".to_owned()], removed: vec!["x".to_owned()] };
    assert_eq!(reason_for(&tree, &named(&tree, "five", "y"), "a.c"), several([near, arguments.clone()], 0));
    // With nothing else, all arguments are told.
    let name = Reason::ArgumentsChanged { added: vec!["-DNAME=six".to_owned()], removed: vec!["-DNAME=five".to_owned()] };
    assert_eq!(reason_for(&tree, &named(&tree, "six", "y"), "a.c"), name);
}

#[test]
fn a_name_that_a_file_mentions_is_a_reason_beside_an_edit() {
    let tree = Tree::new();
    tree.write("src/a.c", "#include one.h\nNAME\n");
    tree.run_graph(&named(&tree, "one", "x"), config(1));
    tree.write("include/one.h", "ONE\n");
    let edited = Reason::InputChanged { input: "project:include/one.h".to_owned() };
    let name = Reason::ArgumentsChanged { added: vec!["-DNAME=two".to_owned()], removed: vec!["-DNAME=one".to_owned()] };
    assert_eq!(reason_for(&tree, &named(&tree, "two", "x"), "a.c"), several([edited, name], 0));
}

#[test]
fn several_inputs_that_changed_are_named_and_the_rest_is_counted() {
    let tree = Tree::new();
    let names = ["1.h", "2.h", "3.h", "4.h", "5.h", "6.h"];
    let includes: String = names.iter().map(|name| format!("#include {name}\n")).collect();
    let write = |text: &str, count: usize| names.iter().take(count).for_each(|name| tree.write(&format!("include/{name}"), text));
    write("1", 6);
    tree.write("src/a.c", &includes);
    tree.run();
    let edited = |name: &&str| Reason::InputChanged { input: format!("project:include/{name}") };
    write("2", 2);
    assert!(tree.run().reasons().contains(&("a.c".to_owned(), several(names[..2].iter().map(edited), 0))));
    write("3", 6);
    assert!(tree.run().reasons().contains(&("a.c".to_owned(), several(names[..4].iter().map(edited), 2))));
}

#[test]
fn what_became_of_an_input_is_said_as_it_is() {
    let tree = Tree::new();
    tree.run();
    fs::remove_dir_all(tree.path("include")).unwrap();
    let gone = |input: &str| Reason::InputMissing { input: input.to_owned() };
    let reason = tree.run_graph(&tree.project.graph(), kiln_graph::Config { keep_going: true, ..config(1) }).reasons();
    let a = reason.into_iter().find(|(label, _)| label == "a.c").unwrap().1;
    assert_eq!(a, several([gone("project:include"), gone("project:include/one.h")], 0));
}

#[test]
fn damaged_notes_are_no_reason() {
    let tree = Tree::new();
    tree.run();
    for dir in ["records", "last"] {
        for file in fs::read_dir(tree.project.work_dir().join(dir)).unwrap() {
            let file = file.unwrap().path();
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    let reasons = tree.run().reasons();
    assert_eq!(reasons.len(), 4);
    assert!(reasons.iter().all(|(_, reason)| *reason == Reason::NoRecord), "{reasons:?}");
}
