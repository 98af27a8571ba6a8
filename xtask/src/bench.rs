//! `bench`: two commands timed against each other in one run.
//!
//! Absolute times say little on a machine that is shared or throttled. So the two run in turns (A B, then B A, and so on),
//! and what counts is the ratio within each pair.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

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
    /// `kiln build` of an example: from nothing, against nothing to do
    Build {
        /// The example
        #[arg(long, default_value = "rms-norm")]
        example: String,
        /// How many pairs
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        runs: u32,
    },
}

/// One side of a comparison.
struct Side {
    name: String,
    prepare: Option<Box<dyn Fn() -> anyhow::Result<()>>>,
    command: Box<dyn Fn() -> Command>,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    match &options.what {
        What::Compare { a, b, prepare_a, prepare_b, runs } => {
            compare(&shell_side(a, prepare_a.as_deref()), &shell_side(b, prepare_b.as_deref()), *runs)
        }
        What::Build { example, runs } => build(workspace, example, *runs),
    }?;
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
    compare(&side("from nothing", true), &side("nothing to do", false), runs)
}

fn shell_side(command: &str, prepare: Option<&str>) -> Side {
    let shell = |text: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]);
        shell
    };
    let text = command.to_owned();
    let prepare = prepare.map(|text| {
        let text = text.to_owned();
        let run: Box<dyn Fn() -> anyhow::Result<()>> = Box::new(move || process::output(&mut shell(&text)).map(drop));
        run
    });
    Side { name: command.to_owned(), prepare, command: Box::new(move || shell(&text)) }
}

fn compare(a: &Side, b: &Side, runs: u32) -> anyhow::Result<()> {
    // One of each for warm caches.
    time(a)?;
    time(b)?;
    let mut pairs = Vec::new();
    for round in 0..runs {
        let pair = if round % 2 == 0 {
            let first = time(a)?;
            (first, time(b)?)
        } else {
            let second = time(b)?;
            (time(a)?, second)
        };
        pairs.push((pair.0.as_secs_f64(), pair.1.as_secs_f64()));
    }
    let (of_a, of_b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    for (side, times) in [(a, of_a), (b, of_b)] {
        let spread = Spread::of(times).context("no runs")?;
        println!("{:>10.4} s median  {:>10.4} .. {:<10.4}  {}", spread.median, spread.low, spread.high, side.name);
    }
    let ratio = Spread::of(pairs.iter().map(|pair| pair.1 / pair.0).collect()).context("no runs")?;
    println!("{:>10.4}   b / a   {:>10.4} .. {:<10.4}  {runs} pairs", ratio.median, ratio.low, ratio.high);
    Ok(())
}

fn time(side: &Side) -> anyhow::Result<Duration> {
    if let Some(prepare) = &side.prepare {
        prepare()?;
    }
    let mut command = (side.command)();
    let started = Instant::now();
    let result = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", side.name))?;
    let elapsed = started.elapsed();
    if !result.status.success() {
        bail!("`{}` failed ({}):\n{}", side.name, result.status, String::from_utf8_lossy(&result.stderr).trim_end());
    }
    Ok(elapsed)
}

/// The middle and the quartiles of some numbers.
#[derive(Debug, PartialEq)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |quarter: usize| {
            // Between the two nearest, by distance.
            let (below, part) = (quarter * last / 4, (quarter * last) % 4);
            let (low, high) = (numbers.get(below)?, numbers.get((below + 1).min(last))?);
            #[expect(clippy::cast_precision_loss, reason = "at most 3")]
            Some(low + (high - low) * part as f64 / 4.0)
        };
        Some(Self { median: at(2)?, low: at(1)?, high: at(3)? })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(Spread::of(vec![3.0]), Some(Spread { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0, 5.0]), Some(Spread { median: 3.0, low: 2.0, high: 4.0 }));
        assert_eq!(Spread::of(vec![1.0, 2.0]), Some(Spread { median: 1.5, low: 1.25, high: 1.75 }));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
