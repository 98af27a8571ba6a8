//! The same with a real compiler, whose depfiles nobody here wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::project::{path, step};
use common::{Report, Tree, config};
use kiln_graph::{Action, Arg, Graph, OutputRef, Piece, Reason, StepId, write_file};

/// The system's C compiler. Tests need it as the build does.
fn gcc() -> PathBuf {
    ["/usr/bin", "/usr/local/bin", "/bin", "/opt/homebrew/bin"]
        .iter()
        .flat_map(|dir| ["gcc", "cc"].map(|name| PathBuf::from(dir).join(name)))
        .find(|path| path.exists())
        .expect("a C compiler")
}

/// Compiles `src/<source>` with gcc, `include` and the directories in `more` on the path.
fn compile(tree: &Tree, graph: &mut Graph, source: &str, more: &[StepId]) -> OutputRef {
    let object = format!("{source}.o");
    let own = |name: &str| Arg::default().with(Piece::Own(name.to_owned()));
    let mut args = vec!["-c".into(), Arg::from(path(&format!("src/{source}"))), "-o".into(), own(&object)];
    args.extend(["-MD".into(), "-MP".into(), "-MF".into(), own("deps.d"), "-MT".into(), "x".into()]);
    args.push(Arg::text("-I").with(Piece::Path(path("include"))));
    args.extend(more.iter().map(|id| Arg::text("-I").with(Piece::OutputDir(id.clone()))));
    args.push(Arg::text("-ffile-prefix-map=").with(Piece::Path(path(""))).and("=/project"));
    let mut program = tree.project.program(args);
    program.path = gcc().into();
    Arc::make_mut(&mut program.ambient).insert("PATH".to_owned(), "/usr/bin:/bin".into());
    program.depfile = Some("deps.d".to_owned());
    OutputRef { step: graph.add(step("Compiling", source, Action::Run(program), Vec::new(), &object)).unwrap(), name: object }
}

fn build(tree: &Tree, sources: &[&str]) -> Report {
    let mut graph = tree.project.empty_graph();
    for source in sources {
        compile(tree, &mut graph, source, &[]);
    }
    let report = tree.run_graph(&graph, config(2));
    assert!(report.outcome.is_ok(), "{:#?}", report.events);
    report
}

#[test]
fn headers_with_odd_names_are_found_in_the_depfile() {
    let headers =
        ["plain.h", "with space.h", "$dollar.h", "#hash.h", "colon:.h", "grüße 漢字.h", "two  spaces $$ ##.h", "back\\slash.h", "tab\t.h"];
    let tree = Tree::below("a project with $ and # – and ü");
    let sources: Vec<String> = (0..headers.len()).map(|number| format!("unit {number} $#.c")).collect();
    for (source, header) in sources.iter().zip(headers) {
        tree.write(&format!("include/{header}"), "#define VALUE 1\n");
        tree.write(&format!("src/{source}"), &format!("#include <stddef.h>\n#include \"{header}\"\nint f(void) {{ return VALUE; }}\n"));
    }
    let names: Vec<&str> = sources.iter().map(String::as_str).collect();
    build(&tree, &names);
    assert_eq!(build(&tree, &names).ran(), Vec::<String>::new());
    for (source, header) in sources.iter().zip(headers) {
        tree.write(&format!("include/{header}"), "#define VALUE 2\n");
        let edited = build(&tree, &names);
        assert_eq!(edited.reasons(), [(source.clone(), Reason::InputChanged { input: format!("project:include/{header}") })]);
    }
    assert_eq!(build(&tree, &names).ran(), Vec::<String>::new());
}

#[test]
fn comments_touches_and_generated_headers() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "#include \"gen/value.h\"\nint a(void) { return VALUE; }\n");
    tree.write("src/b.c", "int b(void) { return 2; }\n");
    let run = |value: u32| {
        let mut graph = tree.project.empty_graph();
        let text = format!("#define VALUE {value}\n").into_bytes();
        let write = Action::Builtin(write_file("gen/value.h", text));
        let header = graph.add(step("Generating", "value.h", write, Vec::new(), "gen/value.h")).unwrap();
        let objects = [compile(&tree, &mut graph, "a.c", &[header]), compile(&tree, &mut graph, "b.c", &[])];
        let mut args = vec!["-shared".into(), "-o".into(), Arg::default().with(Piece::Own("lib.so".to_owned()))];
        args.extend(objects.map(Arg::from));
        let mut link = tree.project.program(args);
        link.path = gcc().into();
        Arc::make_mut(&mut link.ambient).insert("PATH".to_owned(), "/usr/bin:/bin".into());
        graph.add(step("Linking", "lib.so", Action::Run(link), Vec::new(), "lib.so")).unwrap();
        let report = tree.run_graph(&graph, config(2));
        assert!(report.outcome.is_ok(), "{:#?}", report.events);
        report.ran()
    };
    assert_eq!(run(1), ["a.c", "b.c", "lib.so", "value.h"]);
    assert_eq!(run(1), Vec::<String>::new());
    tree.write("src/b.c", "// a comment\nint b(void) { return 2; }\n");
    assert_eq!(run(1), ["b.c"], "a comment changes no object without debug information");
    tree.write("src/b.c", "int b(void) { return 3; }\n");
    assert_eq!(run(1), ["b.c", "lib.so"]);
    assert_eq!(run(2), ["a.c", "lib.so", "value.h"], "other content is another generated file, and so another compile");
    assert_eq!(run(1), Vec::<String>::new());
}

#[test]
fn equal_objects_in_two_checkouts() {
    let bytes = ["one", "zwei mit Ümläuten"].map(|name| {
        let tree = Tree::empty(name);
        tree.write("include/h.h", "static const char *where = __FILE__;\n");
        tree.write("src/a.c", "#include \"h.h\"\nconst char *f(void) { return where; }\n");
        let report = build(&tree, &["a.c"]);
        let step = report.outcome.steps()[0].step.clone();
        (step.clone(), std::fs::read(tree.output_path(&step, "a.c.o")).unwrap())
    });
    assert_eq!(bytes[0], bytes[1]);
}

#[test]
fn a_compile_error_is_passed_through() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "#error no luck\n");
    let mut graph = tree.project.empty_graph();
    compile(&tree, &mut graph, "a.c", &[]);
    let report = tree.run_graph(&graph, config(1));
    let output = report.events.iter().find_map(|event| match event {
        kiln_graph::Event::StepFailed { output, .. } => Some(String::from_utf8(output.clone()).unwrap()),
        _ => None,
    });
    assert!(output.unwrap().contains("#error no luck"));
    assert_eq!(tree.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn what_no_depfile_lists_is_an_input_all_the_same() {
    let tree = Tree::empty("project");
    tree.write("include/here.h", "#define HERE 1\n");
    tree.write("src/a.c", "#if __has_include(<later.h>)\nint later;\n#endif\n#include <here.h>\nint a = HERE;\n");
    tree.write("src/b.c", "asm(\".incbin \\\"data.bin\\\"\");\n");
    tree.write("src/c.c", "#include <stddef.h>\nsize_t c;\n");
    tree.write("data.bin", "one");
    let sources = ["a.c", "b.c", "c.c"];
    let built = |tree: &Tree| build(tree, &sources).reasons();
    built(&tree);
    assert_eq!(built(&tree), []);
    let appeared = |label: &str, input: &str| (label.to_owned(), Reason::InputAppeared { input: input.to_owned() });
    tree.write("include/later.h", "\n");
    assert_eq!(built(&tree), [appeared("a.c", "project:include/later.h")]);
    tree.remove("include/later.h");
    assert_eq!(built(&tree), [("a.c".to_owned(), Reason::InputMissing { input: "project:include/later.h".to_owned() })]);
    tree.write("data.bin", "two");
    assert_eq!(built(&tree), [("b.c".to_owned(), Reason::InputChanged { input: "project:data.bin".to_owned() })]);
    // In front of the system's own.
    tree.write("include/stddef.h", "typedef int size_t;\n");
    assert_eq!(built(&tree), [appeared("c.c", "project:include/stddef.h")]);
    // Beside nobody who asks for it.
    tree.write("include/unrelated.h", "\n");
    tree.write("src/here.h", "#define HERE 2\n");
    assert_eq!(built(&tree), [], "brackets do not look beside the file");
}

#[test]
fn a_file_that_nobody_can_name_makes_a_step_run_each_time() {
    let tree = Tree::empty("project");
    tree.write("src/a.c", "#define FILE \"data.bin\"\nasm(\".incbin \\\"\" FILE \"\\\"\");\n");
    tree.write("data.bin", "one");
    for _ in 0..2 {
        assert_eq!(build(&tree, &["a.c"]).ran(), ["a.c"]);
    }
}
