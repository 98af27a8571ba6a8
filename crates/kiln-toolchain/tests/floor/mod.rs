//! A floor of the test's own, and extensions that are linked with it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test, and every test program uses a part of them"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use kiln_graph::{Arg, Config, Executor, Interrupt, Piece, WorkDir};
use kiln_object::baseline::Baseline;
use kiln_object::elf::{self, Dynamic, Machine};
use kiln_toolchain::floor::{Floor, FloorLevel, lacking};
use kiln_toolchain::host::{HostCompiler, HostSearch, find};

pub(crate) const LEVEL: FloorLevel = FloorLevel::Manylinux2_28;

pub(crate) static HOST: LazyLock<HostCompiler> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    find(&search(), &dir.path().join("compilers.json")).unwrap().compiler
});

pub(crate) fn search() -> HostSearch {
    HostSearch { path: OsString::from("/usr/local/bin:/usr/bin:/bin"), ..HostSearch::default() }
}

pub(crate) fn machine() -> Machine {
    if cfg!(target_arch = "aarch64") { Machine::AARCH64 } else { Machine::X86_64 }
}

pub(crate) fn ambient() -> BTreeMap<String, PathBuf> {
    BTreeMap::from([("PATH".to_owned(), PathBuf::from("/usr/local/bin:/usr/bin:/bin"))])
}

/// A floor in a store of its own.
pub(crate) struct Made {
    pub(crate) floor: Floor,
    pub(crate) store: Store,
}

/// The directory of a floor.
pub(crate) enum Store {
    /// Of one test.
    OfTest(tempfile::TempDir),
    /// For as long as the process lives: what it keeps to its end it does not remove, so the next one does.
    OfAll(PathBuf),
}

impl Store {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::OfTest(dir) => dir.path(),
            Self::OfAll(dir) => dir,
        }
    }
}

pub(crate) static MADE: LazyLock<Made> = LazyLock::new(|| make_for_all(LEVEL));

/// A floor of one test, with a blank in its way.
pub(crate) fn make(host: &HostCompiler, level: FloorLevel) -> Made {
    make_in(Store::OfTest(tempfile::Builder::new().prefix("floor store ").tempdir().unwrap()), host, level)
}

/// A floor of all tests of this program.
pub(crate) fn make_for_all(level: FloorLevel) -> Made {
    let name = format!("floor store {level} of {}", env!("CARGO_CRATE_NAME"));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _none_before = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).unwrap();
    make_in(Store::OfAll(dir), &HOST, level)
}

fn make_in(store: Store, host: &HostCompiler, level: FloorLevel) -> Made {
    let floor = Floor::new(host, machine(), level, &ambient(), store.path()).unwrap();
    assert!(!floor.is_there());
    let TryRun { failed, steps, .. } = run(&floor);
    assert_eq!(failed, "");
    assert_eq!(steps, lacking(level, machine()).unwrap().len() + 2);
    assert!(floor.is_there());
    Made { floor, store }
}

pub(crate) struct TryRun {
    pub(crate) failed: String,
    pub(crate) steps: usize,
}

pub(crate) fn run(floor: &Floor) -> TryRun {
    let work_dir = WorkDir::open(floor.work_dir()).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
    let failed = std::sync::Mutex::new(String::new());
    let outcome = Executor::new(&work_dir, Config::default()).run(floor.graph(), &|event| {
        if let kiln_graph::Event::StepFailed { label, failure, output, .. } = event {
            *failed.lock().unwrap() += &format!("{label}: {failure:?}\n{}", String::from_utf8_lossy(output));
        }
    });
    if outcome.is_ok() {
        floor.keep(&|output| outcome.output_path(output)).unwrap();
    }
    TryRun { failed: failed.into_inner().unwrap(), steps: outcome.counts().ran }
}

/// The arguments of a link as a program gets them.
pub(crate) fn link_args(floor: &Floor) -> (Vec<String>, Vec<String>) {
    let text = |arg: &Arg| {
        let pieces = arg.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Path(_) => floor.dir().display().to_string(),
            other => panic!("{other:?}"),
        });
        pieces.collect::<String>()
    };
    let link = floor.link();
    (link.before.iter().map(text).collect(), link.after.iter().map(text).collect())
}

pub(crate) fn gxx(dir: &Path, args: &[&str]) -> Output {
    let output = Command::new("g++").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles `source` and links it with the floor.
pub(crate) fn extension(floor: &Floor, dir: &Path, source: &Path, compile: &[&str]) -> Dynamic {
    let source = source.to_str().unwrap();
    gxx(dir, &[&["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-c", "-o", "x.o", source], compile].concat());
    linked(floor, dir, &[])
}

/// Links `x.o` with the floor; what the linker says must be nothing. `libraries` stand where those of a framework do.
pub(crate) fn linked(floor: &Floor, dir: &Path, libraries: &[&str]) -> Dynamic {
    let (before, after) = link_args(floor);
    std::fs::write(dir.join("exports.map"), "{ global: check; local: *; };\n").unwrap();
    let mut args = vec!["-shared", "-o", "x.so", "x.o", "-Wl,--version-script=exports.map", "-Wl,--as-needed"];
    args.extend(before.iter().map(String::as_str));
    args.extend(libraries);
    args.extend(after.iter().map(String::as_str));
    let said = gxx(dir, &args);
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    elf::dynamic_file(&dir.join("x.so")).unwrap()
}

/// What the loader of the floor's system would miss: names by version and file, and names that nothing provides.
pub(crate) fn beyond(level: FloorLevel, library: &Dynamic) -> Vec<String> {
    let baseline = Baseline::of(level.system(), machine()).unwrap();
    let mut bad: Vec<String> = Vec::new();
    for import in &library.imports {
        let found = match (&import.version, &import.library) {
            (Some(_), Some(library)) if library == "libgomp.so.1" => true,
            (Some(version), Some(library)) => baseline.has(library, &import.name, version),
            _ => import.weak && matches!(&*import.name, "__gmon_start__" | "_ITM_registerTMCloneTable" | "_ITM_deregisterTMCloneTable"),
        };
        if !found {
            bad.push(format!("{}@{:?} of {:?}", import.name, import.version, import.library));
        }
    }
    for (file, version) in &library.needed_versions {
        if file != "libgomp.so.1" && !baseline.nodes(file).is_some_and(|nodes| nodes.contains(version)) {
            bad.push(format!("{version} of {file}"));
        }
    }
    bad
}

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/floor").join(name)
}

/// Runs `check` of the library in `dir`; its faults are printed. What it needs may lie in `libraries`.
pub(crate) fn run_check(dir: &Path, libraries: &Path) {
    gxx(dir, &["-x", "c", "-o", "run", data("run.c").to_str().unwrap(), "-ldl"]);
    let work = dir.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let output = Command::new(dir.join("run")).env("LD_LIBRARY_PATH", libraries).arg(dir.join("x.so")).arg(&work).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
