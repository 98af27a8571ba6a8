//! Results that are taken from elsewhere: when they are, and when they must not be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Report, Tree, config};
use kiln_graph::{
    Action, ActionCache, Arg, Config, DEFAULT_CACHE_LIMIT, Event, Graph, Origin, PathRef, Reason, RootBinding, RootKind, RootName, Scope,
};

/// A cache in a directory that goes when the test ends.
struct Cache {
    dir: tempfile::TempDir,
}

impl Cache {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn get(&self) -> ActionCache {
        ActionCache::new(self.dir.path().join("actions"), DEFAULT_CACHE_LIMIT)
    }

    fn config(&self) -> Config {
        Config { cache: Some(self.get()), ..config(2) }
    }

    fn run(&self, tree: &Tree) -> Report {
        tree.run_graph(&tree.project.graph(), self.config())
    }

    /// All files but the count of bytes and the lock.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for kind in ["manifests", "results", "blobs"] {
            for first in fs::read_dir(self.get().dir().join(kind)).unwrap() {
                files.extend(fs::read_dir(first.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
            }
        }
        files.sort();
        files
    }
}

fn restored(report: &Report) -> usize {
    report.outcome.counts().cached
}

fn damaged(report: &Report) -> usize {
    let files = |event: &Event| match event {
        Event::CacheDamaged { files } => Some(files.len()),
        _ => None,
    };
    report.events.iter().filter_map(files).sum()
}

fn forget(tree: &Tree) {
    fs::remove_dir_all(tree.project.work_dir()).unwrap();
}

#[test]
fn another_checkout_starts_nothing_and_says_the_same() {
    let cache = Cache::new();
    let trees = ["one", "another, elsewhere"].map(Tree::below);
    for tree in &trees {
        tree.write("src/a.c", "#include one.h\n@warn beware\na\n");
    }
    let first = cache.run(&trees[0]);
    assert_eq!((first.started.len(), restored(&first)), (4, 0));
    let second = cache.run(&trees[1]);
    assert_eq!((second.started.len(), restored(&second)), (0, 4));
    assert_eq!(trees[0].app(), trees[1].app());
    let warning = second.events.iter().find_map(|event| match event {
        Event::StepRestored { label, output, .. } if label == "a.c" => Some(String::from_utf8(output.clone()).unwrap()),
        _ => None,
    });
    assert_eq!(warning.unwrap(), format!("{}: beware\n", trees[1].path("src/a.c").display()));
    trees[1].assert_settled();
    assert_eq!(cache.get().verify().unwrap().damaged, Vec::<PathBuf>::new());
}

#[test]
fn what_was_built_before_comes_back() {
    let cache = Cache::new();
    let tree = Tree::new();
    cache.run(&tree);
    for (text, started) in [("A\n", 2), ("a\n", 0), ("A\n", 0)] {
        tree.write("src/a.c", &format!("#include one.h\n{text}"));
        assert_eq!(cache.run(&tree).started.len(), started, "{text}");
        tree.assert_settled();
    }
    forget(&tree);
    assert_eq!(cache.run(&tree).started, Vec::<String>::new());
    tree.assert_settled();
}

#[test]
fn a_failure_is_not_kept() {
    let cache = Cache::new();
    let tree = Tree::new();
    tree.write("src/a.c", "@exit 1\n");
    for _ in 0..2 {
        assert_eq!(tree.run_graph(&tree.project.graph(), Config { keep_going: true, ..cache.config() }).outcome.counts().failed, 1);
        forget(&tree);
    }
    assert_eq!(tree.log().iter().filter(|line| *line == "start a.c").count(), 2);
}

#[test]
fn another_tool_under_the_same_path_misses() {
    let cache = Cache::new();
    let tree = Tree::new();
    let build = |tool: &str| {
        let mut graph = tree.project.empty_graph();
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        program.tool = tool.into();
        graph.add(step).unwrap();
        tree.run_graph(&graph, cache.config()).started.len()
    };
    assert_eq!([build("1"), build("2"), build("1"), build("2")], [1, 1, 0, 0]);
}

#[test]
fn a_header_in_front_of_another_misses_and_comes_back() {
    let cache = Cache::new();
    let tree = Tree::new();
    cache.run(&tree);
    tree.write("src/one.h", "near\n");
    let shadowed = tree.run_graph(&tree.project.graph(), cache.config());
    assert_eq!(shadowed.ran(), ["a.c", "app", "b.c"]);
    let appeared = Reason::InputAppeared { input: "project:src/one.h".to_owned() };
    assert!(shadowed.reasons().contains(&("a.c".to_owned(), appeared)));
    tree.assert_settled();
    forget(&tree);
    assert_eq!(cache.run(&tree).started, Vec::<String>::new());
    tree.assert_settled();
    tree.remove("src/one.h");
    assert_eq!(cache.run(&tree).started, Vec::<String>::new(), "the result of before the header");
    tree.assert_settled();
}

#[test]
fn what_is_only_asked_about_is_an_input() {
    let cache = Cache::new();
    let tree = Tree::new();
    // What the recording compiler obeys, and what a real one would understand.
    tree.write("src/a.c", "@has <new.h>\n@has \"near.h\"\n#if __has_include(<new.h>) || __has_include(\"near.h\")\n");
    cache.run(&tree);
    for (file, line) in [("include/new.h", 1), ("src/near.h", 2)] {
        let states = [true, false, true];
        for (turn, there) in states.into_iter().enumerate() {
            if there {
                tree.write(file, "\n")
            } else {
                tree.remove(file)
            }
            if turn == 2 {
                forget(&tree);
            }
            let report = cache.run(&tree);
            assert_eq!(report.started.len(), if turn == 0 { 2 } else { 0 }, "{file} {turn}");
            assert_eq!(tree.app().lines().nth(line + 1), Some(if there { "true" } else { "false" }), "{}", tree.app());
            tree.assert_settled();
        }
        tree.remove(file);
        cache.run(&tree);
    }
}

/// A compile of `src/a.c` with a word and a tree that matter to some sources only.
fn scoped(tree: &Tree, word: &str, version: &str) -> Graph {
    let mut graph = tree.project.empty_graph();
    add_scoped(&mut graph, tree, word, version);
    graph
}

fn add_scoped(graph: &mut Graph, tree: &Tree, word: &str, version: &str) {
    let name = format!("torch{version}");
    let root = RootName::new(name.clone());
    let kind = RootKind::Immutable { digest: name.clone() };
    graph.bind_root(root.clone(), RootBinding { dir: tree.path(&name), kind }).unwrap();
    let mut step = tree.project.compile("a.c");
    let Action::Run(program) = &mut step.action else { unreachable!() };
    let dir = Arg::from(PathRef { root: root.clone(), path: String::new() });
    let of_root = |arg: Arg| arg.scoped(Scope::Root(root.clone()));
    // Backends share what the units of a component have in common.
    let shared: Arc<[Arg]> = [
        Arg::text(format!("-DNAME={word}")).scoped(Scope::Word("NAME".into())),
        // The value of the first argument is the beginning of the second's word.
        Arg::text(format!("-D{word}_EXPORTS=1")).scoped(Scope::Word(format!("{word}_EXPORTS").into())),
        of_root("-isystem".into()),
        of_root(dir),
    ]
    .into();
    program.args.share(&shared);
    graph.add(step).unwrap();
}

#[test]
fn scoped_arguments_count_where_they_are_used() {
    let tree = Tree::new();
    for version in ["1", "2"] {
        tree.write(&format!("torch{version}/t.h"), &format!("torch {version}\n"));
    }
    tree.write("torch2/later.h", "later\n");
    // Source, and how many compiles the four combinations of two words and two trees take.
    for (text, compiles) in [
        ("plain\n", 1),
        ("#include one.h\nplain\n", 1),
        ("NAME is used\n", 2),
        ("NAMES is not NAME_ nor MY_NAME\n", 1),
        ("#include t.h\n", 2),
        ("#include t.h\nNAME\n", 4),
        ("x_some_name_EXPORTS is the first word's\n", 2),
        ("#if __has_include(<t.h>)\n@has <t.h>\n", 2),
        ("#if __has_include(<later.h>)\n@has <later.h>\n", 2),
        ("#if __has_include(<never.h>)\n@has <never.h>\n", 1),
    ] {
        let cache = Cache::new();
        tree.write("src/a.c", text);
        let before = tree.log().len();
        for (word, version) in
            [("x_some_name", "1"), ("x_some_name", "2"), ("y_some_name", "1"), ("y_some_name", "2"), ("x_some_name", "1")]
        {
            for again in [false, true] {
                if again {
                    forget(&tree);
                }
                let graph = scoped(&tree, word, version);
                let report = tree.run_graph(&graph, cache.config());
                assert!(report.outcome.is_ok(), "{text}: {:?}", report.events);
                let step = graph.steps().next().unwrap().0.clone();
                let clean = tempfile::tempdir().unwrap();
                let outcome = kiln_graph::Executor::new(&common::lock(clean.path()), config(1)).run(&graph, &|_| {});
                let output = kiln_graph::OutputRef { step: step.clone(), name: "a.c.o".to_owned() };
                let expected = fs::read_to_string(outcome.output_path(&output)).unwrap();
                assert_eq!(tree.output(&step, "a.c.o"), expected, "{text} {word} {version}");
            }
        }
        // Two lines each, and ten clean builds.
        assert_eq!((tree.log().len() - before) / 2 - 10, compiles, "{text}");
    }
}

/// How arguments are cut into shared lists is nothing to the cache, and nothing to two steps of one run.
#[test]
fn the_cache_knows_arguments_however_they_are_shared() {
    let tree = Tree::new();
    let add = |graph: &mut Graph, cut: Option<usize>| {
        let mut step = tree.project.compile("a.c");
        let Action::Run(program) = &mut step.action else { unreachable!() };
        if let Some(cut) = cut {
            let mut own = std::mem::take(&mut program.args).into_vec();
            let shared: Arc<[Arg]> = own.drain(cut..).collect();
            program.args = own.into();
            program.args.share(&shared);
        }
        graph.add(step).unwrap();
    };
    let cache = Cache::new();
    for (cut, compiles) in [(None, 1), (Some(1), 0), (Some(0), 0), (None, 0)] {
        let mut graph = tree.project.empty_graph();
        add(&mut graph, cut);
        assert_eq!(tree.run_graph(&graph, cache.config()).started.len(), compiles, "{cut:?}");
        forget(&tree);
    }
    let mut graph = tree.project.empty_graph();
    [None, Some(1), Some(5)].into_iter().for_each(|cut| add(&mut graph, cut));
    assert_eq!(graph.len(), 3);
    let report = tree.run_graph(&graph, Config { cache: Some(Cache::new().get()), ..config(1) });
    let counts = report.outcome.counts();
    assert_eq!((report.started.len(), counts.ran, counts.cached + counts.shared), (1, 1, 2));
}

#[test]
fn one_run_compiles_once_what_differs_in_nothing_that_counts() {
    for (text, compiles, jobs) in [("plain\n", 1, 4), ("#include t.h\n", 4, 4), ("plain\n", 1, 1)] {
        let tree = Tree::new();
        tree.write("src/a.c", text);
        let mut graph = tree.project.empty_graph();
        for version in ["1", "2", "3", "4"] {
            tree.write(&format!("torch{version}/t.h"), &format!("torch {version}\n"));
            add_scoped(&mut graph, &tree, "x", version);
        }
        // Without a cache.
        let report = tree.run_graph(&graph, config(jobs));
        assert_eq!(report.started.len(), compiles, "{text} {:?}", report.events);
        assert_eq!(report.outcome.counts().shared, 4 - compiles);
        let from: Vec<&str> = report
            .outcome
            .steps()
            .iter()
            .filter_map(|step| match &step.state {
                kiln_graph::StepState::Restored(Origin::Step { step, .. }) => Some(step.as_str()),
                _ => None,
            })
            .collect();
        assert!(from.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// What is damaged is found, told, made again, and never used.
#[test]
fn damage_is_found_and_never_used() {
    let cache = Cache::new();
    let tree = Tree::empty("p");
    tree.write("src/a.c", "a\n");
    let mut graph = tree.project.empty_graph();
    let step = graph.add(tree.project.compile("a.c")).unwrap();
    tree.run_graph(&graph, cache.config());
    let good = tree.output(&step, "a.c.o");
    let originals: Vec<(PathBuf, Vec<u8>)> = cache.files().into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    let restore = || originals.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    let check = |what: &str, file: &Path, told: bool| {
        forget(&tree);
        let report = tree.run_graph(&graph, cache.config());
        assert!(report.outcome.is_ok());
        assert_eq!(tree.output(&step, "a.c.o"), good, "{what} of {}", file.display());
        assert_eq!(damaged(&report) > 0, told, "{what} of {}: {:?}", file.display(), report.events);
        let verified = cache.get().verify().unwrap();
        assert_eq!((verified.damaged, verified.incomplete), (Vec::new(), Vec::new()), "made again");
    };
    for (file, bytes) in &originals {
        // A part of them in a quick run; each byte in a whole one.
        let stride = if common::is_whole() { 1 } else { bytes.len() / 7 + 1 };
        for at in (0..bytes.len()).step_by(stride) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(file, flipped).unwrap();
            check("a flipped bit", file, true);
            restore();
        }
        for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            fs::write(file, &bytes[..len]).unwrap();
            check("a part", file, true);
            restore();
        }
        fs::remove_file(file).unwrap();
        check("the loss", file, false);
        restore();
        for (other, content) in &originals {
            if other != file && content != bytes {
                fs::write(file, content).unwrap();
                check("another's content", file, true);
                restore();
            }
        }
    }
}

#[test]
fn verify_finds_and_removes_what_is_damaged() {
    let cache = Cache::new();
    let tree = Tree::new();
    cache.run(&tree);
    let files = cache.files();
    let blob = files.iter().find(|file| file.to_str().unwrap().contains("blobs")).unwrap();
    fs::write(blob, "other").unwrap();
    let verified = cache.get().verify().unwrap();
    assert_eq!(verified.damaged, std::slice::from_ref(blob));
    assert_eq!(verified.incomplete.len(), 1, "the result that needs it");
    let again = cache.get().verify().unwrap();
    assert_eq!((again.sound, again.damaged.len(), again.incomplete.len()), (files.len() as u64 - 2, 0, 0));
}

#[test]
fn the_cache_keeps_within_its_size_and_forgets_what_was_not_used() {
    let cache = Cache::new();
    let tree = Tree::empty("p");
    let run = |limit: u64, text: &str| {
        tree.write("src/a.c", text);
        tree.run_graph(&tree.project.graph(), Config { cache: Some(ActionCache::new(cache.get().dir(), limit)), ..config(1) }).started.len()
    };
    let text = |number: usize| format!("{number} {}\n", "x".repeat(4000));
    for number in 0..12 {
        assert_eq!(run(40_000, &text(number)), 2);
        assert!(cache.get().stats().unwrap().bytes() <= 40_000, "{:?}", cache.get().stats());
    }
    assert!(cache.get().stats().unwrap().results.files > 0);
    assert_eq!(run(40_000, &text(11)), 0, "the last one is there");
    let pruned = cache.get().prune(0).unwrap();
    assert_eq!((pruned.left, cache.files()), (0, Vec::new()));
    assert_eq!(cache.get().clean().unwrap().removed.files, 0);
    // What is larger than a good part of the cache is not kept.
    run(4_000, &text(20));
    assert_eq!(cache.get().stats().unwrap().blobs.files, 0);
}

#[test]
fn an_unusable_cache_stops_nothing() {
    let tree = Tree::new();
    let file = tree.path("file");
    fs::write(&file, "").unwrap();
    let report = tree.run_graph(&tree.project.graph(), Config { cache: Some(ActionCache::new(file.join("below"), 1000)), ..config(2) });
    assert!(report.outcome.is_ok());
    let none = ActionCache::new(tree.path("nothing"), 1000);
    assert_eq!(none.stats().unwrap().bytes(), 0);
    assert_eq!(none.verify().unwrap().sound, 0);
    assert!(!tree.path("nothing").exists(), "asking makes nothing");
}

#[test]
fn a_cache_that_cannot_be_used_is_told_once_and_stops_nothing() {
    for part in ["", "manifests", "tmp", "size"] {
        let cache = Cache::new();
        let tree = Tree::new();
        let broken = cache.get().dir().join(part);
        fs::create_dir_all(broken.parent().unwrap()).unwrap();
        match part {
            "size" => fs::create_dir(&broken).unwrap(),
            _ => fs::write(broken.components().collect::<PathBuf>(), "").unwrap(),
        }
        let report = cache.run(&tree);
        assert!(report.outcome.is_ok(), "{part}");
        let told: Vec<&Event> = report.events.iter().filter(|event| matches!(event, Event::CacheUnusable { .. })).collect();
        assert_eq!(told.len(), 1, "{part}: {told:?}");
        tree.assert_settled();
    }
}
