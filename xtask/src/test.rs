//! `test`: everything that CI checks, stage by stage, with one count at the end.

use std::process::{Command, ExitCode};

use anyhow::bail;
use clap::ValueEnum as _;

use crate::build_kernels;
use crate::codegen;
use crate::coverage;
use crate::docs;
use crate::full;
use crate::hygiene;
use crate::kiln::Kiln;
use crate::packages;
use crate::process;
use crate::python_tests;
use crate::readme;
use crate::reuse;
use crate::setup;
use crate::stages::{Counts, Stages, TestsFailed, cargo_test_counts};
use crate::workspace::{self, Workspace};

/// Options of `test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Everything else too: longer and resumable
    #[arg(long)]
    full: bool,
    /// Only these groups of stages; may be repeated
    #[arg(long = "stage", value_enum, value_name = "NAME", conflicts_with = "full")]
    groups: Vec<Group>,
    /// With --full: only its own stages whose names have this text in them
    #[arg(long, requires = "full", value_name = "TEXT")]
    only: Option<String>,
    /// With --full: forget which stages have passed already
    #[arg(long, requires = "full")]
    restart: bool,
}

/// Groups of stages that can be run by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// Formatting
    Fmt,
    /// Lints
    Clippy,
    /// Rules that no compiler checks
    Hygiene,
    /// The tests of all crates
    Test,
    /// Documentation
    Docs,
    /// The bindings of `kiln-ffi`, against the headers that they are of
    Bindings,
    /// Licences, bans and sources of dependencies
    Deny,
    /// The share of lines that tests run
    Coverage,
    /// The examples, in each torch
    Kernels,
    /// The crates as packages, and a Rust program with kernels in it
    Reuse,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let mut stages = Stages::default();
    let groups = if options.groups.is_empty() { Group::value_variants() } else { options.groups.as_slice() };
    let groups = if options.only.is_some() { &[] } else { groups };
    for group in groups {
        let is_measured = groups.contains(&Group::Coverage);
        quick(workspace, &mut stages, *group, is_measured);
    }
    if options.full {
        full::run(workspace, &mut stages, options.restart, options.only.as_deref())?;
    }
    Ok(stages.finish())
}

/// The stages of a group. The tests of the crates whose coverage is measured are run once: by that stage, where it `is_measured`.
fn quick(workspace: &Workspace, stages: &mut Stages, group: Group, is_measured: bool) {
    match group {
        Group::Fmt => stages.run("fmt", || one(cargo(workspace).args(["fmt", "--all", "--check"]))),
        Group::Clippy => stages.run("clippy", || {
            one(cargo(workspace).args(["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]))
        }),
        Group::Hygiene => stages.run("hygiene", || hygiene::check(workspace)),
        Group::Test => stages.run("test", || {
            setup::for_cargo_tests(workspace)?;
            let elsewhere: &[&str] = if is_measured { &coverage::CRATES } else { &[] };
            let excluded = elsewhere.iter().flat_map(|name| ["--exclude", name]);
            cargo_tests(cargo(workspace).args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(excluded))
        }),
        Group::Docs => stages
            .run("docs", || one(cargo(workspace).env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--locked"]))),
        Group::Bindings => stages.run("bindings", || codegen::check(workspace)),
        Group::Deny => stages.run("deny", || deny(workspace)),
        Group::Coverage => stages.run("coverage", || {
            setup::for_cargo_tests(workspace)?;
            let documented = coverage::CRATES.iter().flat_map(|name| ["--package", name]);
            let examples = cargo_tests(cargo(workspace).args(["test", "--doc", "--locked", "--no-fail-fast"]).args(documented))?;
            Ok(coverage::check(workspace)?.plus(examples))
        }),
        Group::Kernels => kernels(workspace, stages),
        Group::Reuse => {
            stages.run("contents of packages", || packages::listed(workspace))
                & stages.run("a Rust program with kernels", || reuse::check(workspace))
        }
    };
}

/// The examples: built, proven, and their own tests in each torch.
fn kernels(workspace: &Workspace, stages: &mut Stages) -> bool {
    let mut kiln = None;
    let mut pythons = Vec::new();
    stages.run("kiln", || {
        kiln = Some(Kiln::build(workspace)?);
        Ok(Counts::ONE)
    });
    stages.run("setup", || {
        pythons = setup::torch_pythons(workspace, setup::TORCH)?;
        pythons.extend(setup::tvm_ffi_pythons(workspace)?);
        Ok(Counts::ONE)
    });
    let Some(kiln) = kiln else {
        return stages.blocked("kernels", "`kiln`");
    };
    stages.run("first kernel of the readme", || readme::check(workspace, &kiln, &pythons));
    stages.run("generated docs", || docs::check(workspace, &kiln));
    let built = stages.run("kernels", || build_kernels::build_and_prove(workspace, &kiln, &pythons, &build_kernels::Options::default()));
    let mut passed = built;
    // What finds a runtime without its device only loads.
    for python in pythons.iter().filter(|python| python.cuda_runtime.is_none()) {
        let name = format!("examples in {}", python.name);
        passed &= if built { stages.run(&name, || python_tests::run(workspace, python)) } else { stages.blocked(&name, "`kernels`") };
    }
    passed
}

/// Cargo in the workspace's root.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = workspace::cargo();
    command.current_dir(&workspace.root);
    command
}

/// A command that counts as one check.
pub(crate) fn one(command: &mut Command) -> anyhow::Result<Counts> {
    process::aloud(command)?.check()?;
    Ok(Counts::ONE)
}

/// A run of cargo's tests.
pub(crate) fn cargo_tests(command: &mut Command) -> anyhow::Result<Counts> {
    let finished = process::aloud(command)?;
    let counts = cargo_test_counts(&finished.output);
    if counts.failed > 0 {
        bail!(TestsFailed { counts, evidence: finished.evidence() });
    }
    finished.check()?;
    Ok(counts)
}

fn deny(workspace: &Workspace) -> anyhow::Result<Counts> {
    let program = setup::cargo_deny(workspace)?;
    // It looks at what other systems would need as well, which no build here has fetched.
    process::aloud(cargo(workspace).args(["fetch", "--locked"]))?.check()?;
    // Nothing else in this run would notice that the lock of that workspace is behind.
    process::aloud(cargo(workspace).args(["fetch", "--locked", "--manifest-path", "fuzz/Cargo.toml"]))?.check()?;
    // The advisories are in a repository of their own, which not every machine reaches.
    one(Command::new(program).current_dir(&workspace.root).args(["--offline", "--workspace", "check", "bans", "licenses", "sources"]))
}
