//! Whatever happens to a project between two builds, the second gives what a build from nothing gives.
//!
//! `cargo xtask test` takes a part of the steps, `test --full` all of them; `KILN_TEST_SEED` begins elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::project::path;
use common::{Numbers, Tree, config};
use kiln_graph::{Action, ActionCache, Arg, Config, DEFAULT_CACHE_LIMIT, Executor, Graph, OutputRef, Piece, Scope};

/// What a project is, beside its files.
#[derive(Clone, Debug, Default)]
struct Options {
    tag: u64,
    tool: u64,
    word: u64,
    second_dir: bool,
}

/// Who compiles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Recorder,
    /// The real one, which takes these sources for C++.
    Gxx,
}

const NAMES: [&str; 4] = ["one.h", "two.h", "deep.h", "sub/three.h"];
const DIRS: [&str; 3] = ["include", "more", "src"];

/// The graph of all sources of a project.
fn graph(tree: &Tree, options: &Options, by: By) -> Graph {
    let mut graph = tree.project.empty_graph();
    let mut sources: Vec<String> = fs::read_dir(tree.path("src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".c"))
        .collect();
    sources.sort();
    for source in sources {
        let mut step = tree.project.compile(&source);
        let Action::Run(program) = &mut step.action else { unreachable!() };
        let own = |name: String| Arg::default().with(Piece::Own(name));
        let word = Arg::text(format!("-DWORD={}", options.word)).scoped(Scope::Word("WORD".into()));
        let mut dirs: Vec<Arg> = vec!["-I".into(), path("include").into()];
        if options.second_dir {
            dirs.splice(0..0, ["-I".into(), Arg::from(path("more"))]);
        }
        let source_arg = Arg::from(path(&format!("src/{source}")));
        let (out, dep) = (own(format!("{source}.o")), own(format!("{source}.d")));
        program.tool = format!("tool {}", options.tool).into();
        program.args = match by {
            By::Recorder => {
                let tag = [Arg::from("--tag"), Arg::text(options.tag.to_string())];
                let start = ["compile".into(), "--out".into(), out, "--dep".into(), dep];
                start.into_iter().chain(tag).chain(dirs).chain([word, source_arg]).collect()
            }
            By::Gxx => {
                program.path = Path::new("/usr/bin/g++").into();
                Arc::make_mut(&mut program.ambient).insert("PATH".to_owned(), "/usr/bin:/bin".into());
                let start = ["-c".into(), "-o".into(), out, "-MD".into(), "-MF".into(), dep];
                let map = Arg::text("-ffile-prefix-map=").with(Piece::Path(path(""))).and("=.");
                let tag = Arg::text(format!("-DTAG={}", options.tag));
                start.into_iter().chain([map, tag, word]).chain(dirs).chain([source_arg]).collect()
            }
        };
        graph.add(step).unwrap();
    }
    graph
}

/// The outputs of all steps, or nothing if one failed.
fn outputs(graph: &Graph, outcome: &kiln_graph::Outcome) -> Option<BTreeMap<String, Vec<u8>>> {
    if !outcome.is_ok() {
        return None;
    }
    let read = |(id, step): (&kiln_graph::StepId, &kiln_graph::Step)| {
        let output = OutputRef { step: id.clone(), name: step.outputs[0].clone() };
        (step.label.clone(), fs::read(outcome.output_path(&output)).unwrap())
    };
    Some(graph.steps().map(read).collect())
}

/// A text of a source or header.
fn text(numbers: &mut Numbers, by: By, file: &str) -> String {
    let mut text = String::new();
    for _ in 0..numbers.below(3) {
        let name = NAMES[numbers.below(4) as usize];
        // A header that includes itself would never end.
        let include = !file.ends_with(".h")
            || (file.ends_with("one.h") && name != "one.h" && name != "two.h")
            || (file.ends_with("two.h") && name == "deep.h");
        match (by, include, numbers.below(2)) {
            (_, false, _) => {}
            (By::Recorder, _, _) => text += &format!("#include {name}\n"),
            (By::Gxx, _, 0) => text += &format!("#include <{name}>\n"),
            (By::Gxx, _, _) => text += &format!("#include \"{name}\"\n"),
        }
    }
    let number = numbers.below(5);
    let stem: String = file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match (by, numbers.below(4)) {
        (By::Recorder, 0) => text += "WORD is seen\n",
        (By::Recorder, 1) => text += "#if __has_include(<deep.h>)\n@has <deep.h>\n",
        (By::Recorder, 2) => text += "#if __has_include(\"sub/three.h\")\n@has \"sub/three.h\"\n",
        (By::Recorder, _) => text += &format!("{number}\n"),
        (By::Gxx, 0) => text += &format!("static int w_{stem} __attribute__((used)) = WORD;\n"),
        (By::Gxx, 1) => text += &format!("#if __has_include(<deep.h>)\nstatic int h_{stem} __attribute__((used)) = {number};\n#endif\n"),
        (By::Gxx, 2) => text += &format!("#if __has_include(\"sub/three.h\")\nstatic int q_{stem} __attribute__((used)) = TAG;\n#endif\n"),
        (By::Gxx, _) => text += &format!("static int n_{stem} __attribute__((used)) = {number};\n"),
    }
    if by == By::Gxx && file.ends_with(".h") {
        text = format!("#ifndef G_{stem}\n#define G_{stem}\n{text}#endif\n");
    }
    text
}

/// What may happen to a project, once.
fn change(tree: &Tree, options: &mut Options, numbers: &mut Numbers, by: By, old: &mut Vec<(String, Option<String>)>) -> String {
    let header = format!("{}/{}", DIRS[numbers.below(3) as usize], NAMES[numbers.below(4) as usize]);
    let source = format!("src/{}.c", ["a", "b", "c"][numbers.below(3) as usize]);
    let file = if numbers.below(2) == 0 { header } else { source };
    let was = fs::read_to_string(tree.path(&file)).ok();
    let before = old[numbers.below(old.len() as u64) as usize].clone();
    let mut put = |file: &str, new: Option<&str>| {
        old.push((file.to_owned(), fs::read_to_string(tree.path(file)).ok()));
        match new {
            Some(text) => tree.write(file, text),
            None => drop(fs::remove_file(tree.path(file))),
        }
    };
    match numbers.below(10) {
        0..=3 => {
            let text = text(numbers, by, &file);
            put(&file, Some(&text));
            format!("write {file}: {text:?}")
        }
        4 => {
            // Never the last source: a graph without steps shows nothing.
            if file != "src/a.c" {
                put(&file, None);
            }
            format!("delete {file}")
        }
        5 => {
            let (file, text) = before;
            if file != "src/a.c" || text.is_some() {
                put(&file, text.as_deref());
            }
            format!("revert {file} to {text:?}")
        }
        6 => {
            // The same name in another directory: a rename, or a header in front of another.
            let to = format!("{}/{}", DIRS[numbers.below(3) as usize], NAMES[numbers.below(4) as usize]);
            if let (Some(text), true) = (&was, file.ends_with(".h") && file.ends_with(to.rsplit('/').next().unwrap())) {
                let text = text.clone();
                put(&file, None);
                put(&to, Some(&text));
            }
            format!("move {file} to {to}")
        }
        7 => {
            options.tag = numbers.below(3);
            options.word = numbers.below(3);
            format!("flags {options:?}")
        }
        8 => {
            options.tool = numbers.below(2);
            format!("tool {options:?}")
        }
        _ => {
            options.second_dir = !options.second_dir;
            format!("directories {options:?}")
        }
    }
}

#[allow(clippy::print_stdout, reason = "the output of a test")]
fn many_steps(by: By, steps: usize) {
    let mut numbers = Numbers::of_test();
    let cache = tempfile::tempdir().unwrap();
    let cached =
        || Config { cache: Some(ActionCache::new(cache.path().join("actions"), DEFAULT_CACHE_LIMIT)), keep_going: true, ..config(2) };
    let tree = Tree::empty("project");
    for file in ["src/a.c", "src/b.c", "include/one.h", "include/two.h", "include/deep.h", "include/sub/three.h"] {
        let text = text(&mut numbers, by, file);
        tree.write(file, &text);
    }
    fs::create_dir_all(tree.path("more")).unwrap();
    let mut options = Options::default();
    let mut old = vec![("include/one.h".to_owned(), Some(String::new()))];
    let mut story = Vec::new();
    let (mut good, mut ran, mut reused) = (0, 0, 0);
    for number in 0..steps {
        story.push(change(&tree, &mut options, &mut numbers, by, &mut old));
        if numbers.below(8) == 0 {
            fs::remove_dir_all(tree.project.work_dir()).unwrap_or_default();
            story.push("forget".to_owned());
        }
        let graph = graph(&tree, &options, by);
        let report = tree.run_graph(&graph, cached());
        let clean = tempfile::tempdir().unwrap();
        let locked = common::lock(clean.path());
        let outcome = Executor::new(&locked, Config { keep_going: true, ..config(2) }).run(&graph, &|_| {});
        let (here, there) = (outputs(&graph, &report.outcome), outputs(&graph, &outcome));
        if here != there {
            let show = |outputs: &Option<BTreeMap<String, Vec<u8>>>| {
                outputs.as_ref().map(|all| {
                    all.iter().map(|(name, bytes)| (name.clone(), String::from_utf8_lossy(bytes).into_owned())).collect::<Vec<_>>()
                })
            };
            let last = &story[story.len().saturating_sub(12)..];
            panic!("step {number}: {last:#?}\nincremental {:#?}\nclean {:#?}\n{:#?}", show(&here), show(&there), report.events);
        }
        let counts = report.outcome.counts();
        good += usize::from(here.is_some());
        ran += counts.ran;
        reused += counts.cached + counts.shared;
    }
    println!("{steps} steps: {good} built, {ran} compiles, {reused} from the cache");
    // Neither always broken nor always from nothing.
    assert!(good > steps / 5, "{good} of {steps} could be built");
    assert!(reused > steps / 20 && ran > steps / 20, "{ran} ran, {reused} were reused");
    assert!(ActionCache::new(cache.path().join("actions"), 1).verify().unwrap().damaged.is_empty());
}

#[test]
fn the_recorder_never_sees_a_difference() {
    many_steps(By::Recorder, if common::is_whole() { 2000 } else { 80 });
}

#[test]
fn gxx_never_sees_a_difference() {
    many_steps(By::Gxx, if common::is_whole() { 50 } else { 15 });
}
