//! What a graph accepts, what a step's identity is made of, and what a plan says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kiln_graph::{
    Action, Arg, Call, Graph, GraphError, Input, OutputRef, PathRef, Piece, Program, ResourceClass, RootBinding, RootKind, RootName, Scope,
    Step, StepId, Weight, write_file,
};
use proptest::prelude::*;

fn root(name: &str) -> RootName {
    RootName::new(name)
}

fn path(root_name: &str, path: &str) -> PathRef {
    PathRef { root: root(root_name), path: path.to_owned() }
}

fn immutable(dir: &str, digest: &str) -> RootBinding {
    RootBinding { dir: PathBuf::from(dir), kind: RootKind::Immutable { digest: digest.to_owned() } }
}

fn mutable(dir: &str) -> RootBinding {
    RootBinding { dir: PathBuf::from(dir), kind: RootKind::Mutable }
}

fn graph() -> Graph {
    let mut graph = Graph::new();
    graph.bind_root(root("project"), mutable("/home/me/kernel")).unwrap();
    graph.bind_root(root("torch"), immutable("/cache/torch", "abc")).unwrap();
    graph
}

fn generate(graph: &mut Graph) -> StepId {
    let step = Step {
        verb: "Generating",
        label: "registration.h".to_owned(),
        action: Action::Builtin(write_file("registration.h", *b"#pragma once\n")),
        inputs: Vec::new(),
        outputs: vec!["registration.h".to_owned()],
        weight: Weight { cpu_ms: 1, memory_mib: 1 },
        resource: ResourceClass::Light,
    };
    graph.add(step).unwrap()
}

fn compile(header: &StepId) -> Step {
    let own = |name: &str| Arg::default().with(Piece::Own(name.to_owned()));
    let args = vec![
        "-c".into(),
        path("project", "cpu/relu.cpp").into(),
        "-o".into(),
        own("relu.o"),
        "-MD".into(),
        "-MF".into(),
        own("relu.d"),
        Arg::text("-I").with(Piece::Path(path("torch", "include"))),
        Arg::text("-I").with(Piece::OutputDir(header.clone())),
        Arg::text("-ffile-prefix-map=").with(Piece::WorkDir).and("=/work"),
        "it's \"quoted\"".into(),
    ];
    Step {
        verb: "Compiling",
        label: "cpu/relu.cpp".to_owned(),
        action: Action::Run(Program {
            path: Path::new("/usr/bin/g++-12").into(),
            launcher: None,
            tool: "gcc 12.2.0".into(),
            args: args.into(),
            cwd: path("project", ""),
            env: Arc::new(BTreeMap::from([("LC_ALL".to_owned(), Arg::text("C"))])),
            ambient: Arc::new(BTreeMap::from([("PATH".to_owned(), PathBuf::from("/usr/bin"))])),
            depfile: Some("relu.d".to_owned()),
            then: Vec::new(),
        }),
        inputs: vec![Input::File(path("project", "flags.txt"))],
        outputs: vec!["relu.o".to_owned()],
        weight: Weight { cpu_ms: 9000, memory_mib: 700 },
        resource: ResourceClass::Cpu,
    }
}

fn call(args: &[&str]) -> Call {
    let args = args.iter().map(|arg| Arg::from(*arg)).collect();
    Call { path: PathBuf::from("/usr/bin/as"), tool: "as".to_owned(), args, env: BTreeMap::new() }
}

fn program(step: &mut Step) -> &mut Program {
    match &mut step.action {
        Action::Run(program) => program,
        Action::Builtin(_) => panic!("not a program"),
    }
}

/// Changes the arguments of a step.
fn args(step: &mut Step, change: impl FnOnce(&mut Vec<Arg>)) {
    let mut args = std::mem::take(&mut program(step).args).into_vec();
    change(&mut args);
    program(step).args = args.into();
}

fn env(step: &mut Step) -> &mut BTreeMap<String, Arg> {
    Arc::make_mut(&mut program(step).env)
}

fn ambient(step: &mut Step) -> &mut BTreeMap<String, PathBuf> {
    Arc::make_mut(&mut program(step).ambient)
}

fn full() -> (Graph, StepId, StepId) {
    let mut graph = graph();
    let header = generate(&mut graph);
    let object = graph.add(compile(&header)).unwrap();
    (graph, header, object)
}

#[test]
fn identities_are_stable() {
    // Whoever changes these on purpose raises the format of the fingerprint.
    let (_, header, object) = full();
    insta::assert_snapshot!(header, @"01597628813744f1064737ae72ca65a7");
    insta::assert_snapshot!(object, @"218bc4c0f6dbea3d74e9cb91d233187f");
}

/// A change and what it is.
type Change = (&'static str, fn(&mut Step));

#[test]
fn everything_that_may_change_the_result_changes_the_identity() {
    let changes: [Change; 25] = [
        ("nothing", |_| {}),
        ("tool", |step| program(step).tool = "x".into()),
        ("an argument", |step| program(step).args.push("-g".into())),
        ("order of arguments", |step| args(step, |args| args.swap(4, 10))),
        ("split of an argument", |step| args(step, |args| args[4] = Arg::text("-M").and("D"))),
        ("empty piece", |step| args(step, |args| args[4] = Arg::text("-MD").and(""))),
        ("two arguments for one", |step| {
            args(step, |args| drop(args.splice(4..5, ["-M".into(), "D".into()])));
        }),
        ("text for a path", |step| args(step, |args| args[1] = "project/cpu/relu.cpp".into())),
        ("another path", |step| args(step, |args| args[1] = path("project", "cpu/relu.cc").into())),
        ("another root", |step| args(step, |args| args[1] = path("torch", "cpu/relu.cpp").into())),
        ("working directory", |step| program(step).cwd = path("project", "cpu")),
        ("value in env", |step| drop(env(step).insert("LC_ALL".to_owned(), "D".into()))),
        ("name in env", |step| drop(env(step).insert("LANG".to_owned(), "C".into()))),
        ("order of name and value", |step| *env(step) = BTreeMap::from([("C".to_owned(), Arg::text("LC_ALL"))])),
        ("name of the depfile", |step| {
            program(step).depfile = Some("x.d".to_owned());
            args(step, |args| args[6] = Arg::default().with(Piece::Own("x.d".to_owned())));
        }),
        ("no depfile", |step| {
            program(step).depfile = None;
            args(step, |args| drop(args.remove(6)));
        }),
        ("a further program", |step| program(step).then.push(call(&[]))),
        ("another further program", |step| program(step).then.push(Call { tool: "x".to_owned(), ..call(&[]) })),
        ("an argument of a further program", |step| program(step).then.push(call(&["x"]))),
        ("two further programs", |step| program(step).then.extend([call(&[]), call(&[])])),
        ("a file that does not stay", |step| args(step, |args| args[4] = Arg::default().with(Piece::Scratch("relu.o2".to_owned())))),
        ("inputs", |step| step.inputs.clear()),
        ("an output", |step| step.outputs.push("relu.d2".to_owned())),
        ("name of an output", |step| {
            step.outputs = vec!["x.o".to_owned()];
            args(step, |args| args[3] = Arg::default().with(Piece::Own("x.o".to_owned())));
        }),
        ("action", |step| step.action = Action::Builtin(write_file("relu.o", *b""))),
    ];
    let mut seen: BTreeMap<StepId, &str> = BTreeMap::new();
    for (what, change) in changes {
        let mut graph = graph();
        let header = generate(&mut graph);
        let mut step = compile(&header);
        change(&mut step);
        let id = graph.add(step).unwrap();
        assert_eq!(id.as_str().len(), 32);
        assert!(id.as_str().bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        if let Some(other) = seen.insert(id, what) {
            panic!("{what} is as good as {other}");
        }
    }
}

#[test]
fn how_a_step_is_shown_scheduled_and_located_does_not_change_the_identity() {
    let (_, _, id) = full();
    let changes: [Change; 6] = [
        ("verb", |step| step.verb = "Building"),
        ("label", |step| step.label.push('x')),
        ("weight", |step| step.weight.cpu_ms += 1),
        ("resource", |step| step.resource = ResourceClass::Link),
        ("program", |step| program(step).path = Path::new("/opt/gcc/bin/g++").into()),
        ("ambient", |step| ambient(step).clear()),
    ];
    for (what, change) in changes {
        let (mut graph, header, _) = full();
        let mut step = compile(&header);
        change(&mut step);
        assert_eq!(graph.add(step).unwrap(), id, "{what}");
        assert_eq!(graph.len(), 2, "{what}");
        assert_eq!(graph.step(&id).unwrap().label, "cpu/relu.cpp", "the first one stays");
    }
    let mut elsewhere = Graph::new();
    elsewhere.bind_root(root("project"), mutable("/other place")).unwrap();
    elsewhere.bind_root(root("torch"), immutable("/other cache", "abc")).unwrap();
    let header = generate(&mut elsewhere);
    assert_eq!(elsewhere.add(compile(&header)).unwrap(), id);
}

#[test]
fn the_digest_of_a_mentioned_root_changes_the_identity() {
    let (_, header, id) = full();
    for (torch, equal) in [(immutable("/cache/torch", "abd"), false), (mutable("/cache/torch"), false), (immutable("/x", "abc"), true)] {
        let mut graph = Graph::new();
        graph.bind_root(root("project"), mutable("/home/me/kernel")).unwrap();
        graph.bind_root(root("torch"), torch).unwrap();
        assert_eq!(generate(&mut graph), header, "it mentions no root");
        assert_eq!(graph.add(compile(&header)).unwrap() == id, equal);
    }
}

#[test]
fn builtins_are_known_by_name_version_and_key() {
    let id = |change: fn(&mut kiln_graph::Builtin)| {
        let mut graph = graph();
        let mut builtin = write_file("a", *b"text");
        change(&mut builtin);
        let mut step = compile(&generate(&mut graph));
        step.action = Action::Builtin(builtin);
        step.outputs = vec!["a".to_owned()];
        graph.add(step).unwrap()
    };
    let ids = [
        id(|_| {}),
        id(|builtin| builtin.name = "other"),
        id(|builtin| builtin.version += 1),
        id(|builtin| builtin.key.push('x')),
        id(|builtin| *builtin = write_file("a", *b"texT")),
        id(|builtin| *builtin = write_file("b", *b"text")),
    ];
    assert_eq!(std::collections::BTreeSet::from(ids).len(), 6);
}

/// Adds the compile step after a change; gives the error.
fn rejected(change: impl Fn(&mut Step)) -> String {
    let mut graph = graph();
    let header = generate(&mut graph);
    let mut step = compile(&header);
    change(&mut step);
    let error = graph.add(step).unwrap_err();
    assert_eq!(graph.len(), 1, "a rejected step is not in the graph");
    error.to_string().replace(header.as_str(), "[header]")
}

#[test]
fn descriptions_that_contradict_themselves_are_rejected() {
    let stranger = StepId::clone(&full().2);
    let own = |name: &str| Arg::default().with(Piece::Own(name.to_owned()));
    let outputs = |names: &'static [&'static str]| move |step: &mut Step| step.outputs.extend(names.iter().map(|&name| name.to_owned()));
    let errors = [
        rejected(|step| step.outputs.clear()),
        rejected(outputs(&["relu.o"])),
        rejected(outputs(&["relu.d"])),
        rejected(outputs(&["a/b", "a"])),
        rejected(outputs(&["relu.o/x"])),
        rejected(outputs(&["../x"])),
        rejected(outputs(&["/x"])),
        rejected(outputs(&[""])),
        rejected(outputs(&["a//b"])),
        rejected(outputs(&["a/./b"])),
        rejected(outputs(&["a\0b"])),
        rejected(|step| program(step).depfile = Some("..".to_owned())),
        rejected(|step| program(step).args.push(own("relu.x"))),
        rejected(|step| program(step).args.push(Arg::default().with(Piece::Scratch("a/b".to_owned())))),
        rejected(|step| program(step).args.push(Arg::default().with(Piece::Scratch("relu.o".to_owned())))),
        rejected(|step| {
            let arg = Arg::from("-DX").scoped(Scope::Word("X".into()));
            program(step).then.push(Call { args: vec![arg], ..call(&[]) });
        }),
        rejected(|step| program(step).then.push(Call { args: vec![own("relu.x")], ..call(&[]) })),
        rejected(|step| program(step).cwd = path("nowhere", "")),
        rejected(|step| step.inputs.push(Input::File(path("nowhere", "a")))),
        rejected(|step| program(step).args.push(path("project", "../a").into())),
        rejected(|step| drop(env(step).insert("X".to_owned(), path("project", "/a").into()))),
        rejected(|step| drop(env(step).insert("A=B".to_owned(), "".into()))),
        rejected(|step| drop(ambient(step).insert(String::new(), PathBuf::new()))),
        rejected(|step| step.inputs.push(Input::Output(OutputRef { step: stranger.clone(), name: "relu.o".to_owned() }))),
        rejected(|step| program(step).args.push(Arg::default().with(Piece::OutputDir(stranger.clone())))),
        rejected(|step| {
            let Some(Piece::OutputDir(header)) = program(step).args.iter().nth(8).and_then(|arg| arg.0.get(1)).cloned() else {
                panic!("no directory")
            };
            let output = OutputRef { step: header.clone(), name: "x.h".to_owned() };
            program(step).args.push(output.into());
        }),
    ];
    insta::assert_snapshot!(errors.join("\n").replace('\0', "[nul]"), @r"
    step `cpu/relu.cpp` has no output
    step `cpu/relu.cpp` has outputs that collide at `relu.o`
    step `cpu/relu.cpp` has outputs that collide at `relu.d`
    step `cpu/relu.cpp` has outputs that collide at `a/b`
    step `cpu/relu.cpp` has outputs that collide at `relu.o/x`
    step `cpu/relu.cpp` has an output called `../x`, which is not a plain relative path
    step `cpu/relu.cpp` has an output called `/x`, which is not a plain relative path
    step `cpu/relu.cpp` has an output called ``, which is not a plain relative path
    step `cpu/relu.cpp` has an output called `a//b`, which is not a plain relative path
    step `cpu/relu.cpp` has an output called `a/./b`, which is not a plain relative path
    step `cpu/relu.cpp` has an output called `a[nul]b`, which is not a plain relative path
    step `cpu/relu.cpp` has an output called `..`, which is not a plain relative path
    step `cpu/relu.cpp` mentions its own file `relu.x`, which it does not declare
    step `cpu/relu.cpp` has an output called `a/b`, which is not a plain relative path
    step `cpu/relu.cpp` has outputs that collide at `relu.o`
    step `cpu/relu.cpp` has a scope on an argument of `/usr/bin/as`, which is not its first program
    step `cpu/relu.cpp` mentions its own file `relu.x`, which it does not declare
    step `cpu/relu.cpp` names the unknown root `nowhere`
    step `cpu/relu.cpp` names the unknown root `nowhere`
    step `cpu/relu.cpp` names `../a` below root `project`, which is not a plain relative path
    step `cpu/relu.cpp` names `/a` below root `project`, which is not a plain relative path
    step `cpu/relu.cpp` sets an environment variable called `A=B`
    step `cpu/relu.cpp` sets an environment variable called ``
    `cpu/relu.cpp` needs step `218bc4c0f6dbea3d74e9cb91d233187f`, which is not in the graph
    `cpu/relu.cpp` needs step `218bc4c0f6dbea3d74e9cb91d233187f`, which is not in the graph
    `cpu/relu.cpp` needs output `x.h`, which step `[header]` does not make
    ");
}

#[test]
fn roots_and_targets_have_one_meaning() {
    let (mut graph, header, object) = full();
    graph.bind_root(root("project"), mutable("/home/me/kernel")).unwrap();
    let errors = [
        graph.bind_root(root("project"), mutable("/elsewhere")).unwrap_err(),
        graph.bind_root(root("torch"), immutable("/cache/torch", "abd")).unwrap_err(),
        graph.bind_root(root("more"), mutable("relative")).unwrap_err(),
    ];
    let wanted = vec![OutputRef { step: object, name: "relu.o".to_owned() }];
    graph.add_target("cpu", wanted.clone()).unwrap();
    graph.add_target("cpu", wanted).unwrap();
    assert_eq!(graph.targets().len(), 1);
    let more = [
        graph.add_target("cpu", Vec::new()).unwrap_err(),
        graph.add_target("x", vec![OutputRef { step: header, name: "x".to_owned() }]).unwrap_err(),
    ];
    assert!(matches!(more[1], GraphError::UnknownOutput { .. }));
    let text: Vec<String> = errors.iter().chain(&more[..1]).map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    root `project` is already bound to another directory or digest
    root `torch` is already bound to another directory or digest
    root `more` is bound to the relative path `relative`
    target `cpu` is already in the graph with other files
    ");
    let names: Vec<&str> = graph.roots().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["project", "torch"]);
    assert!(graph.root(&root("more")).is_none());
}

#[test]
fn a_plan_says_what_would_run() {
    let (mut graph, header, object) = full();
    assert!(!graph.is_empty());
    graph.add_target("cpu", vec![OutputRef { step: object.clone(), name: "relu.o".to_owned() }]).unwrap();
    graph.add_target("headers", vec![OutputRef { step: header.clone(), name: "registration.h".to_owned() }]).unwrap();
    assert_eq!(graph.dependencies(&object).collect::<Vec<_>>(), [&header]);
    assert_eq!(graph.dependencies(&header).count(), 0);
    let plan = serde_json::to_string_pretty(&graph.plan()).unwrap();
    insta::assert_snapshot!(plan.replace(header.as_str(), "[header]").replace(object.as_str(), "[object]"), @r#"
    {
      "steps": [
        {
          "id": "[header]",
          "verb": "Generating",
          "label": "registration.h",
          "action": {
            "kind": "builtin",
            "name": "write-file",
            "version": 1
          },
          "inputs": [],
          "outputs": [
            "registration.h"
          ],
          "needs": [],
          "targets": [
            "cpu",
            "headers"
          ]
        },
        {
          "id": "[object]",
          "verb": "Compiling",
          "label": "cpu/relu.cpp",
          "action": {
            "kind": "run",
            "program": "/usr/bin/g++-12",
            "tool": "gcc 12.2.0",
            "argv": [
              "g++-12",
              "-c",
              "{project}/cpu/relu.cpp",
              "-o",
              "{out}/relu.o",
              "-MD",
              "-MF",
              "{out}/relu.d",
              "-I{torch}/include",
              "-I{[header]}",
              "-ffile-prefix-map={work}=/work",
              "it's \"quoted\""
            ],
            "cwd": "{project}",
            "env": [
              "LC_ALL=C"
            ]
          },
          "inputs": [
            "{project}/flags.txt",
            "{project}/cpu/relu.cpp",
            "{torch}/include",
            "{[header]}"
          ],
          "outputs": [
            "relu.o"
          ],
          "needs": [
            "[header]"
          ],
          "targets": [
            "cpu"
          ]
        }
      ],
      "targets": [
        {
          "name": "cpu",
          "outputs": [
            "{[object]}/relu.o"
          ],
          "steps": 2
        },
        {
          "name": "headers",
          "outputs": [
            "{[header]}/registration.h"
          ],
          "steps": 1
        }
      ]
    }
    "#);
}

/// A command that shares two lists of arguments and has others in front, between and behind.
fn sharing(header: &StepId, lists: [&Arc<[Arg]>; 2]) -> Step {
    let mut step = compile(header);
    let all = std::mem::take(&mut program(&mut step).args).into_vec();
    let args = &mut program(&mut step).args;
    args.extend(all[..2].iter().cloned());
    args.share(lists[0]);
    args.push(all[5].clone());
    args.share(lists[1]);
    args.extend(all[9..].iter().cloned());
    assert_eq!((args.len(), args.is_empty()), (all.len(), false));
    assert_eq!(args.iter().cloned().collect::<Vec<_>>(), all);
    step
}

/// The lists that [`sharing`] shares.
fn lists_of(header: &StepId) -> [Arc<[Arg]>; 2] {
    let all = std::mem::take(&mut program(&mut compile(header)).args).into_vec();
    [all[2..5].into(), all[6..9].into()]
}

#[test]
fn lists_that_are_shared_are_known_by_their_content() {
    let mut ids = Vec::new();
    let mut plans = Vec::new();
    for _ in 0..2 {
        let mut graph = graph();
        let header = generate(&mut graph);
        let [first, second] = lists_of(&header);
        let object = graph.add(sharing(&header, [&first, &second])).unwrap();
        // The same lists, and others with the same arguments.
        let [other, another] = lists_of(&header);
        assert_eq!(graph.add(sharing(&header, [&first, &second])).unwrap(), object);
        assert_eq!(graph.add(sharing(&header, [&other, &another])).unwrap(), object);
        assert_eq!(graph.len(), 2);
        assert_eq!(graph.dependencies(&object).collect::<Vec<_>>(), [&header]);
        // Without the lists it is another step that does the same.
        let whole = graph.add(compile(&header)).unwrap();
        assert_ne!(whole, object);
        let plan = graph.plan();
        assert_eq!((&plan.steps[1].action, &plan.steps[1].inputs), (&plan.steps[2].action, &plan.steps[2].inputs));
        plans.push(plan);
        ids.push(object);
    }
    assert_eq!((&ids[0], &plans[0]), (&ids[1], &plans[1]));
    let (mut graph, header, object) = full();
    let nothing: Arc<[Arg]> = Arc::new([]);
    let mut step = compile(&header);
    program(&mut step).args.share(&nothing);
    assert_eq!(graph.add(step).unwrap(), object, "a list without arguments is none");
}

/// What is true of arguments is true of those in shared lists: each change is another step.
#[test]
fn a_change_in_a_shared_list_changes_the_identity() {
    let changes: [fn(&mut Vec<Arg>); 6] = [
        |_| {},
        |args| args.push("-g".into()),
        |args| args.swap(0, 1),
        |args| args[0] = Arg::text("-").and("c"),
        |args| args[1] = path("project", "cpu/relu.cc").into(),
        |args| drop(args.remove(0)),
    ];
    let ids = changes.map(|change| {
        let mut graph = graph();
        let header = generate(&mut graph);
        let mut step = compile(&header);
        args(&mut step, change);
        let shared: Arc<[Arg]> = std::mem::take(&mut program(&mut step).args).into_vec().into();
        program(&mut step).args.share(&shared);
        graph.add(step).unwrap()
    });
    assert_eq!(std::collections::BTreeSet::from(ids).len(), 6);
    let of_root = |digest: &str| {
        let mut graph = Graph::new();
        graph.bind_root(root("project"), mutable("/home/me/kernel")).unwrap();
        graph.bind_root(root("torch"), immutable("/cache/torch", digest)).unwrap();
        let header = generate(&mut graph);
        let [first, second] = lists_of(&header);
        graph.add(sharing(&header, [&first, &second])).unwrap()
    };
    assert_ne!(of_root("abc"), of_root("abd"), "the second list is below the root");
}

/// The graph knows a list by its place in memory: another list that comes to lie there is another list.
#[test]
fn lists_are_told_apart_by_what_is_in_them() {
    let (mut graph, header, object) = full();
    let mut ids = std::collections::BTreeSet::from([object]);
    for number in 0..100 {
        let [first, _] = lists_of(&header);
        let second: Arc<[Arg]> = [Arg::text(format!("-D{number}"))].into();
        let mut step = compile(&header);
        program(&mut step).args.share(&first);
        program(&mut step).args.share(&second);
        ids.insert(graph.add(step).unwrap());
    }
    assert_eq!(ids.len(), 101);
}

#[test]
fn what_is_wrong_in_a_shared_list_is_rejected_with_each_step() {
    let stranger = full().2;
    let lists: [Arc<[Arg]>; 4] = [
        [path("nowhere", "a").into()].into(),
        [Arg::default().with(Piece::Own("relu.x".to_owned()))].into(),
        [Arg::default().with(Piece::Scratch("relu.o".to_owned()))].into(),
        [Arg::default().with(Piece::OutputDir(stranger))].into(),
    ];
    let mut text = String::new();
    for list in lists {
        let mut graph = graph();
        let header = generate(&mut graph);
        for _ in 0..2 {
            let mut step = compile(&header);
            program(&mut step).args.share(&list);
            text += &format!("{}\n", graph.add(step).unwrap_err());
            assert_eq!(graph.len(), 1);
        }
        assert!(graph.add(compile(&header)).is_ok());
    }
    insta::assert_snapshot!(text, @r"
    step `cpu/relu.cpp` names the unknown root `nowhere`
    step `cpu/relu.cpp` names the unknown root `nowhere`
    step `cpu/relu.cpp` mentions its own file `relu.x`, which it does not declare
    step `cpu/relu.cpp` mentions its own file `relu.x`, which it does not declare
    step `cpu/relu.cpp` has outputs that collide at `relu.o`
    step `cpu/relu.cpp` has outputs that collide at `relu.o`
    `cpu/relu.cpp` needs step `218bc4c0f6dbea3d74e9cb91d233187f`, which is not in the graph
    `cpu/relu.cpp` needs step `218bc4c0f6dbea3d74e9cb91d233187f`, which is not in the graph
    ");
}

proptest! {
    #[test]
    fn no_two_argument_lists_are_one(a in lists(), b in lists()) {
        let id = |args: &[Vec<String>]| {
            let mut graph = graph();
            let header = generate(&mut graph);
            let mut step = compile(&header);
            program(&mut step).args.extend(args.iter().map(|pieces| Arg(pieces.iter().cloned().map(Piece::Text).collect())));
            graph.add(step).unwrap()
        };
        prop_assert_eq!(id(&a) == id(&b), a == b);
    }
}

fn lists() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec("[ab]{0,2}", 0..3), 0..3)
}
