//! `bench frameworks`: one kernel behind torch's C++ ABI, its stable ABI and tvm-ffi; what each costs to build, how large it is, and how
//! many variants it takes to reach everybody. The manual's page has the table.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::timing::Spread;
use crate::kiln::Kiln;
use crate::process;
use crate::workspace::Workspace;

/// Options of `bench frameworks`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often each is built from nothing
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Put the table into `docs/frameworks.md`
    #[arg(long)]
    write: bool,
}

/// The page, and the lines between which the table stands.
const PAGE: &str = "docs/frameworks.md";
const BEGIN: &str = "<!-- written by `cargo xtask bench frameworks --write` -->";
const END: &str = "<!-- end -->";

/// The sources, below `xtask/frameworks`.
const KERNEL: [&str; 2] = ["kernel.cpp", "kernel.h"];

/// One way to offer the kernel.
struct Way {
    name: &'static str,
    /// The binding among the sources.
    binding: &'static str,
    /// The table in `build.toml` that says so, with further keys.
    table: &'static str,
    keys: &'static str,
    /// The directory of the Python package.
    package: &'static str,
    /// Who loads one variant, where the processor and the system are the right ones.
    reach: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        name: "torch's C++ ABI",
        binding: "torch.cpp",
        table: "torch",
        keys: "",
        package: "torch-ext",
        reach: "one minor version of torch",
    },
    Way {
        name: "torch's stable ABI",
        binding: "stable.cpp",
        table: "torch",
        keys: "stable-abi = \"2.11\"\n",
        package: "torch-ext",
        reach: "every torch from 2.11 on",
    },
    Way {
        name: "tvm-ffi",
        binding: "tvm_ffi.cpp",
        table: "tvm-ffi",
        keys: "",
        package: "tvm-ffi-ext",
        reach: "every tvm-ffi 0.1 from 0.1.9 on; with any torch, JAX or NumPy, or from C++",
    },
];

impl Way {
    /// Writes the project of this way, which also says that it has CUDA kernels where `cuda` is true: to count variants.
    fn write(&self, workspace: &Workspace, dir: &Path, cuda: bool) -> anyhow::Result<()> {
        let put = |name: &str, content: &str| {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
            std::fs::write(&path, content).with_context(|| format!("cannot write `{}`", path.display()))
        };
        for name in KERNEL.iter().copied().chain([self.binding]) {
            put(name, &std::fs::read_to_string(workspace.root.join("xtask/frameworks").join(name))?)?;
        }
        put(&format!("{}/silu/__init__.py", self.package), "from ._ops import ops\n")?;
        let component =
            |backend: &str| format!("\n[kernel.{backend}]\nbackend = \"{backend}\"\ndepends = []\nsrc = [\"kernel.cpp\", \"kernel.h\"]\n");
        let (backends, more) = if cuda { ("[\"cpu\", \"cuda\"]", component("cuda")) } else { ("[\"cpu\"]", String::new()) };
        put(
            "build.toml",
            &format!(
                "[general]\nname = \"silu\"\nversion = 1\nedition = 5\nlicense = \"Apache-2.0\"\nbackends = {backends}\n\n\
                 [{}]\nsrc = [\"{}\"]\n{}{}{more}",
                self.table,
                self.binding,
                self.keys,
                component("cpu")
            ),
        )
    }
}

/// What was measured of one way.
struct Measured {
    times: Vec<f64>,
    size: u64,
    cpu_variants: usize,
    cuda_variants: usize,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<()> {
    let kiln = Kiln::build(workspace)?;
    let scratch = tempfile::tempdir()?;
    let mut all = Vec::new();
    for way in &WAYS {
        let dir = scratch.path().join(way.binding);
        way.write(workspace, &dir.join("both"), true)?;
        let variants = kiln.variants(&dir.join("both"))?;
        let of = |backend: &str| variants.iter().filter(|variant| variant.backend == backend && variant.default).count();
        way.write(workspace, &dir.join("cpu"), false)?;
        // Headers are fetched, and the floor is made, before anything is timed.
        build(&kiln, &dir.join("cpu"))?;
        all.push(Measured { times: Vec::new(), size: size(&dir.join("cpu"))?, cpu_variants: of("cpu"), cuda_variants: of("cuda") });
    }
    for round in 0..options.runs as usize {
        // In turns, each time beginning with another one: a slow minute of the machine is everybody's.
        for place in 0..WAYS.len() {
            let index = (round + place) % WAYS.len();
            let (Some(way), Some(measured)) = (WAYS.get(index), all.get_mut(index)) else { continue };
            measured.times.push(build(&kiln, &scratch.path().join(way.binding).join("cpu"))?.as_secs_f64());
        }
    }
    let table = table(&all)?;
    println!("\n{table}");
    if options.write {
        write(&workspace.root.join(PAGE), &table)?;
    }
    Ok(())
}

/// Builds a project from nothing, one step at a time, and gives how long it took.
fn build(kiln: &Kiln, project: &Path) -> anyhow::Result<Duration> {
    for made in [".kiln", "build"] {
        let dir = project.join(made);
        if dir.exists() {
            std::fs::remove_dir_all(dir)?;
        }
    }
    let mut command = kiln.command();
    command.arg("build").arg(project).args(["--no-cache", "--jobs", "1"]);
    let started = Instant::now();
    process::output(&mut command)?;
    Ok(started.elapsed())
}

/// The size of the extension, in bytes.
fn size(project: &Path) -> anyhow::Result<u64> {
    let is_extension = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
    let files = walkdir::WalkDir::new(project.join("build")).into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
    let extensions: Vec<PathBuf> = files.filter(is_extension).collect();
    let [extension] = extensions.as_slice() else { bail!("{} extensions in `{}`", extensions.len(), project.display()) };
    Ok(extension.metadata()?.len())
}

/// The head of the table.
const HEAD: &str = "| | build, one step at a time | of that time | extension | variants for the processor | variants for CUDA | one variant serves |\n\
                    |---|---|---|---|---|---|---|\n";

/// The table: times as shares of the slowest way, for the machine is nobody else's.
fn table(all: &[Measured]) -> anyhow::Result<String> {
    let first = all.first().context("nothing was measured")?;
    let mut text = String::from(HEAD);
    for (way, measured) in WAYS.iter().zip(all) {
        let seconds = Spread::of(measured.times.clone()).context("no runs")?.median;
        // Within each round, so that what slows one slows the other.
        let shares = measured.times.iter().zip(&first.times).map(|(time, first)| time / first).collect();
        let share = Spread::of(shares).context("no runs")?.median;
        text += &format!(
            "| {} | {seconds:.1} s | {:.0} % | {} kB | {} | {} | {} |\n",
            way.name,
            share * 100.0,
            measured.size.div_ceil(1000),
            measured.cpu_variants,
            measured.cuda_variants,
            way.reach
        );
    }
    Ok(text)
}

/// Replaces the table of the page.
fn write(page: &Path, table: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("cannot read `{}`", page.display()))?;
    let text = replaced(&text, table).with_context(|| format!("`{}` has no place for the table", page.display()))?;
    Ok(std::fs::write(page, text)?)
}

fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&page, "| x |\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\n\n| x |\n\n{END}\nb\n"));
        assert_eq!(replaced(&new, "| x |\n").unwrap(), new);
        assert_eq!(replaced("a", ""), None);
    }

    #[test]
    fn the_page_has_a_place_for_it() {
        let page = include_str!("../../../docs/frameworks.md");
        let (_, rest) = page.split_once(BEGIN).unwrap();
        let (table, _) = rest.split_once(END).unwrap();
        assert_eq!(replaced(page, &format!("{}\n", table.trim())).unwrap(), page);
        let rows = table.trim().strip_prefix(HEAD).expect("another head: `cargo xtask bench frameworks --write`");
        let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
        assert_eq!(rows.len(), WAYS.len());
        for (row, way) in rows.iter().zip(&WAYS) {
            let [name, seconds, share, size, cpu, cuda, reach] = row.as_slice() else { panic!("{row:?}") };
            assert_eq!((*name, *reach), (way.name, way.reach));
            for (cell, unit) in [(seconds, " s"), (share, " %"), (size, " kB"), (cpu, ""), (cuda, "")] {
                assert!(cell.strip_suffix(unit).is_some_and(|number| number.parse::<f64>().is_ok_and(|number| number > 0.0)), "{row:?}");
            }
        }
    }

    #[test]
    fn shares_are_of_the_first() {
        let of = |times: &[f64]| Measured { times: times.to_vec(), size: 1500, cpu_variants: 3, cuda_variants: 8 };
        let text = table(&[of(&[10.0, 20.0]), of(&[1.0, 2.0]), of(&[2.0, 4.0])]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("| torch's C++ ABI | 15.0 s | 100 % | 2 kB | 3 | 8 |"), "{}", lines[2]);
        assert!(lines[3].contains("| 1.5 s | 10 % |") && lines[4].contains("| 3.0 s | 20 % |"), "{text}");
    }
}
