//! A project for tests: every `src/*.c` is compiled with `include/` on the path, and all objects are linked.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use kiln_graph::{
    Action, Arg, Graph, Input, OutputRef, PathRef, Piece, Program, ResourceClass, RootBinding, RootKind, RootName, Step, Weight,
};

/// A project and the compiler that builds it.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) dir: PathBuf,
    pub(crate) helper: PathBuf,
}

/// A path in the project.
pub(crate) fn path(path: &str) -> PathRef {
    PathRef { root: RootName::new("project"), path: path.to_owned() }
}

impl Project {
    pub(crate) fn work_dir(&self) -> PathBuf {
        self.dir.join(".kiln")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// A graph with the root `project` and nothing else.
    pub(crate) fn empty_graph(&self) -> Graph {
        let mut graph = Graph::new();
        graph.bind_root(RootName::new("project"), RootBinding { dir: self.dir.clone(), kind: RootKind::Mutable }).unwrap();
        graph
    }

    /// The graph of the whole project, with the target `app`.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = self.empty_graph();
        let mut sources: Vec<String> =
            fs::read_dir(self.dir.join("src")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        sources.retain(|name| name.ends_with(".c"));
        sources.sort();
        let objects: Vec<OutputRef> = sources
            .iter()
            .map(|source| OutputRef { step: graph.add(self.compile(source)).unwrap(), name: format!("{source}.o") })
            .collect();
        let app = OutputRef { step: graph.add(self.link(&objects)).unwrap(), name: "app".to_owned() };
        graph.add_target("app", vec![app]).unwrap();
        graph
    }

    /// Compiles `src/<source>` to `<source>.o`.
    pub(crate) fn compile(&self, source: &str) -> Step {
        let args = vec![
            "compile".into(),
            "--out".into(),
            Arg::default().with(Piece::Own(format!("{source}.o"))),
            "--dep".into(),
            Arg::default().with(Piece::Own(format!("{source}.d"))),
            "-I".into(),
            path("include").into(),
            path(&format!("src/{source}")).into(),
        ];
        let mut program = self.program(args);
        program.depfile = Some(format!("{source}.d"));
        step("Compiling", source, Action::Run(program), Vec::new(), &format!("{source}.o"))
    }

    /// Joins objects to `app`.
    pub(crate) fn link(&self, objects: &[OutputRef]) -> Step {
        let mut args = vec!["compile".into(), "--out".into(), Arg::default().with(Piece::Own("app".to_owned()))];
        args.extend(objects.iter().cloned().map(Arg::from));
        step("Linking", "app", Action::Run(self.program(args)), Vec::new(), "app")
    }

    /// A run of the recording compiler.
    pub(crate) fn program(&self, args: Vec<Arg>) -> Program {
        Program {
            path: self.helper.as_path().into(),
            launcher: None,
            tool: "recorder 1".into(),
            args: args.into(),
            cwd: path(""),
            env: Arc::default(),
            ambient: Arc::new(BTreeMap::from([("RECORD_LOG".to_owned(), self.log())])),
            depfile: None,
            then: Vec::new(),
        }
    }
}

pub(crate) fn step(verb: &'static str, label: &str, action: Action, inputs: Vec<Input>, output: &str) -> Step {
    Step {
        verb,
        label: label.to_owned(),
        action,
        inputs,
        outputs: vec![output.to_owned()],
        weight: Weight { cpu_ms: 100, memory_mib: 10 },
        resource: ResourceClass::Cpu,
    }
}
