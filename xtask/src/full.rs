//! `test --full`: everything that takes longer, in stages that are not run again once they have passed.
//!
//! What has passed is noted under a digest of all tracked files, so that a run that was interrupted goes on where it was,
//! and any change begins anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::build_kernels;
use crate::catalog;
use crate::floor;
use crate::kiln::Kiln;
use crate::packages;
use crate::pinned;
use crate::process;
use crate::python_tests;
use crate::setup;
use crate::seventh;
use crate::stages::{Counts, Stages};
use crate::test::{cargo, cargo_tests};
use crate::test_python::{TestPython, is_for_tvm_ffi};
use crate::workspace::{self, Workspace};

/// How many cases a property test tries here, in place of the usual few hundred.
const PROPERTY_CASES: &str = "20000";

/// How long each fuzz target runs, in seconds.
const FUZZ_TIME: u32 = 300;

/// Runs what has not passed yet.
pub(crate) fn run(workspace: &Workspace, stages: &mut Stages, restart: bool, only: Option<&str>) -> anyhow::Result<()> {
    let progress = Progress::open(workspace, restart, only)?;
    progress.stage(stages, "properties, many cases", || {
        let mut test = cargo(workspace);
        test.env("PROPTEST_CASES", PROPERTY_CASES).args(["test", "--workspace", "--locked", "--release", "--lib"]);
        for name in property_tests(workspace)? {
            test.args(["--test", &name]);
        }
        cargo_tests(&mut test)
    });
    progress.stage(stages, "engine: random edits, kills, damage", || {
        let mut test = cargo(workspace);
        cargo_tests(test.env("KILN_TEST_WHOLE", "1").args(["test", "--locked", "--release", "--package", "kiln-graph"]))
    });
    progress.stage(stages, "a seventh backend", || seventh::check(workspace));
    progress.stage(stages, "fuzzing", || fuzz(workspace));
    // The pins only: `catalog --check --full` reads every wheel whole, which tells of the registry and not of these sources.
    progress.stage(stages, "catalog", || catalog::check(workspace, false));
    progress.stage(stages, "releases that the catalog lacks", || pinned::check(workspace));
    progress.stage(stages, "a store under ten processes, many rounds", || {
        let mut test = cargo(workspace);
        test.env("KILN_TEST_STORE_ROUNDS", "20").args([
            "test",
            "--locked",
            "--package",
            "kiln-toolchain",
            "--test",
            "store",
            "ten_processes",
        ]);
        cargo_tests(&mut test)
    });
    progress.stage(stages, "lists of the floor", || floor::check(workspace));
    for release in setup::TORCH_FULL {
        progress.stage(stages, &format!("examples in torch {release}"), || examples_in(workspace, release));
    }
    progress.stage(stages, "examples in other tvm-ffi, and in JAX", || tvm_ffi_examples(workspace));
    progress.stage(stages, "floor by every compiler and linker", || {
        setup::other_compilers()?;
        setup::for_cargo_tests(workspace)?;
        let mut test = cargo(workspace);
        cargo_tests(test.env("KILN_TEST_FLOOR", "full").args(["test", "--locked", "--package", "kiln", "--test", "floor"]))
    });
    progress.stage(stages, "floor under nvcc", || {
        setup::other_compilers()?;
        setup::nvcc(workspace)?;
        cargo_tests(cargo(workspace).args(["test", "--locked", "--package", "kiln-toolchain", "--test", "nvcc"]))
    });
    progress.stage(stages, "examples by clang", || examples_by_clang(workspace));
    progress.stage(stages, "crates built from their packages", || packages::built(workspace));
    progress.stage(stages, "CUDA under torch's C++ interface", || cuda_cxx11(workspace));
    Ok(())
}

/// The test programs beside the crates' sources that have properties: the others would do the same once more, and build kernels.
fn property_tests(workspace: &Workspace) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in workspace.tracked_files()? {
        let Some((_, name)) = file.strip_suffix(".rs").and_then(|file| file.split_once("/tests/")) else { continue };
        if !name.contains('/') && std::fs::read_to_string(workspace.root.join(&file))?.contains("proptest! {") {
            names.insert(name.to_owned());
        }
    }
    if names.is_empty() {
        anyhow::bail!("no test program has a property");
    }
    Ok(names)
}

/// The programs of `fuzz/`, by name.
fn fuzz_targets(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let files = workspace.tracked_files()?;
    let names = files.iter().filter_map(|file| file.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs")).map(str::to_owned);
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        anyhow::bail!("`fuzz/` has no target");
    }
    Ok(names)
}

/// Fuzzes for a while, as many targets at once as there are processors. `cargo fuzz` wants a nightly compiler only for its
/// sanitizers; the coverage that guides libFuzzer works with any.
fn fuzz(workspace: &Workspace) -> anyhow::Result<Counts> {
    const INSTRUMENT: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
         -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
         -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 --cfg fuzzing";
    let host = host()?;
    let target_dir = workspace.target.join("fuzz");
    let mut build = cargo(workspace);
    // With a target named, build scripts are left out of the instrumentation.
    build.env("RUSTFLAGS", INSTRUMENT).args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    process::aloud(build.arg("--target-dir").arg(&target_dir))?.check()?;

    let programs = target_dir.join(host).join("release");
    let targets = std::sync::Mutex::new(fuzz_targets(workspace)?);
    let counts = std::sync::Mutex::new(Counts::default());
    let work = || -> anyhow::Result<()> {
        while let Some(target) = targets.lock().ok().and_then(|mut targets| targets.pop()) {
            let found = fuzz_one(workspace, &programs.join(&target), &target);
            println!("fuzzed `{target}`: {}", found.as_ref().map_or_else(|error| format!("{error:#}"), Clone::clone));
            let one = if found.is_ok() { Counts::ONE } else { Counts { passed: 0, failed: 1 } };
            if let Ok(mut counts) = counts.lock() {
                *counts = counts.plus(one);
            }
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread failed")))
    })?;
    counts.into_inner().map_err(|_| anyhow::anyhow!("a thread failed"))
}

/// Runs one target, and gives how many inputs it tried.
fn fuzz_one(workspace: &Workspace, program: &Path, target: &str) -> anyhow::Result<String> {
    let corpus = workspace.target.join("fuzz-corpus").join(target);
    let crashes = workspace.target.join("fuzz-crashes");
    for dir in [&corpus, &crashes] {
        std::fs::create_dir_all(dir)?;
    }
    let mut command = Command::new(program);
    command.current_dir(&workspace.root).arg(&corpus);
    // Read only: what is found stays in the first directory.
    let seeds = workspace.root.join("fuzz/seeds").join(target);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    // No input is large: whatever asks for this much was told by a damaged number.
    command.args(["-rss_limit_mb=1024", "-print_final_stats=1"]).arg(format!("-max_total_time={FUZZ_TIME}"));
    command.arg(format!("-artifact_prefix={}/{target}-", crashes.display()));
    let output = command.output().with_context(|| format!("cannot run `{}`", program.display()))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let end = |count: usize| log.lines().rev().take(count).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    if !output.status.success() {
        anyhow::bail!("{}\n{}", output.status, end(40));
    }
    let tried = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    Ok(format!("{} inputs", tried.with_context(|| format!("it says no number:\n{}", end(10)))?.trim()))
}

/// The triple that rustc compiles for.
fn host() -> anyhow::Result<String> {
    let text = process::output(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Builds, proves and tests the examples with one more torch release.
fn examples_in(workspace: &Workspace, release: &str) -> anyhow::Result<Counts> {
    let kiln = Kiln::build(workspace)?;
    let pythons = setup::torch_pythons(workspace, &[release])?;
    built_and_tested(workspace, &kiln, &pythons, &build_kernels::Options::default())
}

/// Builds and proves the examples, and runs their tests.
fn built_and_tested(
    workspace: &Workspace,
    kiln: &Kiln,
    pythons: &[TestPython],
    options: &build_kernels::Options,
) -> anyhow::Result<Counts> {
    let mut counts = build_kernels::build_and_prove(workspace, kiln, pythons, options)?;
    for python in pythons {
        counts = counts.plus(python_tests::run(workspace, python)?);
    }
    Ok(counts)
}

/// The kernels for tvm-ffi in Pythons without torch.
fn tvm_ffi_examples(workspace: &Workspace) -> anyhow::Result<Counts> {
    let kiln = Kiln::build(workspace)?;
    let pythons = setup::tvm_ffi_pythons_full(workspace)?;
    let examples =
        workspace.examples()?.iter().filter(|project| is_for_tvm_ffi(project)).map(|project| workspace::file_name(project)).collect();
    built_and_tested(workspace, &kiln, &pythons, &build_kernels::Options { examples, ..Default::default() })
}

/// The same with the other compiler, and afterwards with the usual one again.
fn examples_by_clang(workspace: &Workspace) -> anyhow::Result<Counts> {
    setup::other_compilers()?;
    let kiln = Kiln::build(workspace)?;
    let pythons = setup::torch_pythons(workspace, setup::TORCH)?;
    let options = build_kernels::Options { cxx: Some("clang++".into()), ..Default::default() };
    let counts = built_and_tested(workspace, &kiln, &pythons, &options)?;
    Ok(counts.plus(build_kernels::build_and_prove(workspace, &kiln, &pythons, &build_kernels::Options::default())?))
}

/// The variants that need minutes: units of which each capability's pass reads all of torch's headers.
fn cuda_cxx11(workspace: &Workspace) -> anyhow::Result<Counts> {
    let kiln = Kiln::build(workspace)?;
    let options = build_kernels::Options {
        examples: vec!["relu".to_owned()],
        variants: ["torch211-cxx11-cu130-x86_64-linux", "torch215-cxx11-cu132-x86_64-linux"].map(str::to_owned).to_vec(),
        ..Default::default()
    };
    build_kernels::build_and_prove(workspace, &kiln, &[], &options)
}

/// Which stages have passed for exactly these sources.
struct Progress<'a> {
    dir: PathBuf,
    /// What the names of the stages that are wanted have in them; all where there is nothing.
    only: Option<&'a str>,
}

impl<'a> Progress<'a> {
    fn open(workspace: &Workspace, restart: bool, only: Option<&'a str>) -> anyhow::Result<Self> {
        let parent = workspace.target.join("full");
        let dir = parent.join(digest_of_sources(workspace)?);
        if restart && parent.exists() {
            std::fs::remove_dir_all(&parent)?;
        }
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        Ok(Self { dir, only })
    }

    fn stage(&self, stages: &mut Stages, name: &str, body: impl FnOnce() -> anyhow::Result<Counts>) {
        if self.only.is_some_and(|only| !name.contains(only)) {
            return;
        }
        let mark = self.dir.join(name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let earlier = std::fs::read_to_string(&mark).ok().and_then(|text| text.trim().parse::<usize>().ok());
        stages.run(name, || {
            if let Some(passed) = earlier {
                println!("passed in an earlier run of these sources");
                return Ok(Counts { passed, failed: 0 });
            }
            let counts = body()?;
            if counts.failed == 0 && counts.passed > 0 {
                std::fs::write(&mark, counts.passed.to_string())?;
            }
            Ok(counts)
        });
    }
}

/// A digest of every tracked file as it is now.
fn digest_of_sources(workspace: &Workspace) -> anyhow::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for name in workspace.tracked_files()? {
        hasher.update(name.as_bytes());
        // A tracked file that was deleted is a state of its own.
        match std::fs::read(workspace.root.join(&name)) {
            Ok(bytes) => hasher.update(blake3::hash(&bytes).as_bytes()),
            Err(_) => hasher.update(b"none"),
        };
    }
    Ok(hasher.finalize().to_hex().get(..16).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_passed_is_not_run_again() {
        let dir = tempfile::tempdir().unwrap();
        let progress = Progress { dir: dir.path().to_path_buf(), only: None };
        let runs = std::cell::Cell::new(0);
        let body = |counts: Counts| {
            let mut stages = Stages::default();
            progress.stage(&mut stages, "a, b", || {
                runs.set(runs.get() + 1);
                Ok(counts)
            });
        };
        body(Counts { passed: 1, failed: 1 });
        body(Counts { passed: 2, failed: 0 });
        body(Counts { passed: 2, failed: 0 });
        assert_eq!(runs.get(), 2);
    }
}
