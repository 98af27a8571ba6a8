//! What the integration tests share: a project in a temporary directory, and runs of it that say what happened.

#![allow(dead_code, reason = "not every test uses everything")]

pub(crate) mod project;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use kiln_graph::{
    ActionCache, Arg, Config, Counts, DEFAULT_CACHE_LIMIT, Event, Executor, Graph, Interrupt, LockedWorkDir, Outcome, OutputRef, Program,
    Reason, StepId, WorkDir,
};
use project::Project;

/// A project in a directory that goes when the test ends.
pub(crate) struct Tree {
    pub(crate) project: Project,
    pub(crate) temp: tempfile::TempDir,
}

/// What a run did.
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
    /// Names of the files that the recording compiler was started for, in order.
    pub(crate) started: Vec<String>,
}

impl Report {
    pub(crate) fn counts(&self) -> (usize, usize, usize, usize) {
        let Counts { ran, up_to_date, failed, skipped, .. } = self.outcome.counts();
        (ran, up_to_date, failed, skipped)
    }

    /// What ran, by label, and why.
    pub(crate) fn reasons(&self) -> Vec<(String, Reason)> {
        let reason = |event: &Event| match event {
            Event::StepStarted { label, reason, .. } => Some((label.clone(), reason.clone())),
            _ => None,
        };
        let mut reasons: Vec<_> = self.events.iter().filter_map(reason).collect();
        reasons.sort_by(|a, b| a.0.cmp(&b.0));
        reasons
    }

    /// What ran, by label, sorted.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.reasons().into_iter().map(|(label, _)| label).collect()
    }
}

impl Tree {
    /// Three sources, of which two use one header and one another.
    pub(crate) fn new() -> Self {
        Self::below("project")
    }

    /// The same in a directory called `name`.
    pub(crate) fn below(name: &str) -> Self {
        let tree = Self::empty(name);
        tree.write("include/one.h", "one\n");
        tree.write("include/two.h", "#include deep.h\n");
        tree.write("include/deep.h", "deep\n");
        tree.write("src/a.c", "#include one.h\na\n");
        tree.write("src/b.c", "#include one.h\n#include two.h\nb\n");
        tree.write("src/c.c", "#include two.h\nc\n");
        tree
    }

    /// A project without files.
    pub(crate) fn empty(name: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        // The system's temporary directory may be a link; the tests want one name only.
        let dir = fs::canonicalize(temp.path()).unwrap().join(name);
        fs::create_dir_all(dir.join("src")).unwrap();
        fs::create_dir_all(dir.join("include")).unwrap();
        Self { project: Project { dir, helper: helper() }, temp }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.project.dir.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn lock(&self) -> LockedWorkDir {
        lock(&self.project.work_dir())
    }

    /// Runs the project's graph.
    pub(crate) fn run(&self) -> Report {
        self.run_graph(&self.project.graph(), config(2))
    }

    pub(crate) fn run_graph(&self, graph: &Graph, config: Config) -> Report {
        let before = self.starts().len();
        let events = Mutex::new(Vec::new());
        let outcome = Executor::new(&self.lock(), config).run(graph, &|event| events.lock().unwrap().push(event.clone()));
        Report { outcome, events: events.into_inner().unwrap(), started: self.starts().split_off(before) }
    }

    /// All lines of the compiler's log.
    pub(crate) fn log(&self) -> Vec<String> {
        fs::read_to_string(self.project.log()).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn starts(&self) -> Vec<String> {
        self.log().iter().filter_map(|line| line.strip_prefix("start ").map(str::to_owned)).collect()
    }

    /// The text of an output.
    pub(crate) fn output(&self, step: &StepId, name: &str) -> String {
        fs::read_to_string(self.output_path(step, name)).unwrap()
    }

    pub(crate) fn output_path(&self, step: &StepId, name: &str) -> PathBuf {
        self.project.work_dir().join("out").join(step.as_str()).join(name)
    }

    /// What the project's graph should link to, made from nothing elsewhere.
    pub(crate) fn clean_app(&self) -> String {
        let clean = tempfile::tempdir().unwrap();
        let graph = self.project.graph();
        let locked = lock(clean.path());
        let outcome = Executor::new(&locked, config(2)).run(&graph, &|_| {});
        assert!(outcome.is_ok(), "{:?}", outcome.steps());
        fs::read_to_string(outcome.output_path(&app(&graph))).unwrap()
    }

    /// What the project's graph was linked to.
    pub(crate) fn app(&self) -> String {
        self.app_in(&self.project.work_dir())
    }

    /// The same in another work directory.
    pub(crate) fn app_in(&self, work_dir: &Path) -> String {
        let app = app(&self.project.graph());
        fs::read_to_string(work_dir.join("out").join(app.step.as_str()).join(&app.name)).unwrap()
    }

    /// A cache beside the project, in which whatever is kept must be what was written.
    pub(crate) fn cache(&self) -> ActionCache {
        ActionCache::new(self.path("cache"), DEFAULT_CACHE_LIMIT)
    }

    #[track_caller]
    pub(crate) fn assert_sound_cache(&self) {
        let verified = self.cache().verify().unwrap();
        assert!(verified.damaged.is_empty() && verified.incomplete.is_empty(), "{verified:?}");
    }

    /// A build by another process, with the cache.
    pub(crate) fn drive(&self, work_dir: &Path, jobs: usize) -> Command {
        let mut command = Command::new(&self.project.helper);
        command.arg("drive").arg(&self.project.dir).arg(jobs.to_string()).arg(work_dir).arg(self.path("cache"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Where coverage is measured, a process that is killed as it ends leaves half a profile, which no tool reads.
        command.env("LLVM_PROFILE_FILE", self.project.dir.join("killed.profraw"));
        command
    }

    /// Asserts that another run has nothing to do and that the result is that of a clean build.
    #[track_caller]
    pub(crate) fn assert_settled(&self) {
        let again = self.run();
        assert_eq!(again.reasons(), []);
        assert_eq!(again.started, Vec::<String>::new());
        assert_eq!(self.app(), self.clean_app());
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new());
    }

    /// What lies in `tmp/`.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.project.work_dir().join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Changes the arguments of a program.
pub(crate) fn args(program: &mut Program, change: impl FnOnce(&mut Vec<Arg>)) {
    let mut args = std::mem::take(&mut program.args).into_vec();
    change(&mut args);
    program.args = args.into();
}

pub(crate) fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_kiln-graph-test-helper"))
}

pub(crate) fn config(jobs: usize) -> Config {
    Config { jobs: jobs.try_into().unwrap(), ..Config::default() }
}

pub(crate) fn lock(dir: &Path) -> LockedWorkDir {
    WorkDir::open(dir).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap()
}

/// The file of the target `app`.
pub(crate) fn app(graph: &Graph) -> OutputRef {
    graph.targets().find(|(name, _)| *name == "app").unwrap().1[0].clone()
}

/// Whether tests that take long are to do all of it: a part in `cargo xtask test`, all in `cargo xtask test --full`.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("KILN_TEST_WHOLE").is_some()
}

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(u64);

impl Numbers {
    /// The numbers of `KILN_TEST_SEED`, which is printed so that a failure can be repeated.
    #[allow(clippy::print_stdout, reason = "the output of a test that fails")]
    pub(crate) fn of_test() -> Self {
        let seed = std::env::var("KILN_TEST_SEED").map_or(20_260_101, |seed| seed.parse().unwrap());
        println!("seed {seed} (KILN_TEST_SEED)");
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
