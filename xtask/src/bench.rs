//! `bench`: two commands timed against each other in one run.
//!
//! Absolute times say little on a machine that is shared or throttled. So the two run in turns (A B, then B A, and so on),
//! and what counts is the ratio within each pair.

mod cuda_cold;
mod frameworks;
mod generated;
mod memory;
mod performance;
mod plan_scale;
mod suites;
mod timing;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use self::suites::{Bench, Suite};
use self::timing::{Side, measure, shell_side};
use crate::kiln::Kiln;
use crate::process;
use crate::workspace::Workspace;

/// Options of `bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Two shell commands
    Compare {
        /// The first command
        #[arg(long)]
        a: String,
        /// The second command
        #[arg(long)]
        b: String,
        /// Run before each of the first, untimed
        #[arg(long, value_name = "COMMAND")]
        prepare_a: Option<String>,
        /// Run before each of the second, untimed
        #[arg(long, value_name = "COMMAND")]
        prepare_b: Option<String>,
        /// How many pairs
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// Kiln beside CMake and ninja, on generated projects
    Suite {
        /// Which; all where none is named
        suites: Vec<Suite>,
        /// How many pairs
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// `relu` with `torch/all.h` for CUDA, from nothing, beside CMake and ninja
    CudaCold {
        /// What it is compiled for, such as `8.0,9.0`; the default of the toolkit where none is named
        #[arg(long, value_name = "LIST")]
        capabilities: Option<String>,
        /// How many pairs
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// Plans of many units and variants
    PlanScale,
    /// One plan, in this process
    #[command(hide = true)]
    PlanHere {
        units: usize,
        variants: usize,
        #[arg(action = clap::ArgAction::Set)]
        shared: bool,
    },
    /// All suites, into `docs/performance.md`
    Performance {
        /// How many pairs
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// `kiln build` of an example: from nothing, against nothing to do
    Build {
        /// The example
        #[arg(long, default_value = "rms-norm")]
        example: String,
        /// How many pairs
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// One kernel behind torch's C++ ABI, its stable ABI and tvm-ffi: build time, size and reach
    Frameworks(frameworks::Options),
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    match &options.what {
        What::Compare { a, b, prepare_a, prepare_b, runs } => {
            measure(&shell_side(a, prepare_a.as_deref()), &shell_side(b, prepare_b.as_deref()), *runs)?.print();
        }
        What::Build { example, runs } => build(workspace, example, *runs)?,
        What::Frameworks(options) => frameworks::run(workspace, options)?,
        What::Suite { suites, runs } => {
            let bench = Bench::new(workspace)?;
            for suite in if suites.is_empty() { &Suite::ALL[..] } else { suites } {
                println!("{}", suite.title());
                suite.run(&bench, *runs)?.print();
            }
        }
        What::CudaCold { capabilities, runs } => cuda_cold::run(workspace, capabilities.as_deref(), *runs)?,
        What::PlanScale => drop(plan_scale::run(workspace)?),
        What::PlanHere { units, variants, shared } => plan_scale::here(*units, *variants, *shared)?,
        What::Performance { runs } => performance::write(workspace, *runs)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn build(workspace: &Workspace, example: &str, runs: u32) -> anyhow::Result<()> {
    let project = workspace.root.join("kernels-examples").join(example);
    if !project.join("build.toml").is_file() {
        bail!("no example `{example}`");
    }
    let kiln = Kiln::build(workspace)?;
    // In a copy, so that nobody's build is thrown away.
    let scratch = tempfile::tempdir()?;
    let copy = scratch.path().join(example);
    copy_tree(&project, &copy)?;
    let side = |name: &str, fresh: bool| {
        let (kiln, project) = (kiln.clone(), copy.clone());
        let wipe = project.clone();
        let prepare: Box<dyn Fn() -> anyhow::Result<()>> = Box::new(move || {
            for dir in [".kiln", "build"] {
                let dir = wipe.join(dir);
                if dir.exists() {
                    std::fs::remove_dir_all(dir)?;
                }
            }
            Ok(())
        });
        Side {
            name: name.to_owned(),
            prepare: fresh.then_some(prepare),
            command: Box::new(move || {
                let mut command = kiln.command();
                command.arg("build").arg(&project).args(["--backend", "cpu"]);
                if fresh {
                    command.arg("--no-cache");
                }
                command
            }),
        }
    };
    // The toolchain is fetched once, before anything is timed.
    process::aloud(&mut (side("", false).command)())?.check()?;
    measure(&side("from nothing", true), &side("nothing to do", false), runs)?.print();
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    let walk = walkdir::WalkDir::new(from).into_iter().filter_entry(|entry| {
        let name = entry.file_name();
        name != ".kiln" && name != "build" && name != "__pycache__"
    });
    for entry in walk {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
