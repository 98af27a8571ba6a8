//! `build-kernels`: every example for this machine, and for each variant how far it is proven.
//!
//! `kiln build` proves that a variant was planned, compiled and linked, and says so in its build record. Whether it loads
//! and runs is shown here, by the unchanged `kernels` package with a real torch of each release that the variant is for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::kiln::{Kiln, Variant};
use crate::process;
use crate::python_tests;
use crate::setup::{self, TorchPython};
use crate::stages::Counts;
use crate::workspace::{self, Workspace};

/// Options of `build-kernels`.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Only this example; may be repeated
    #[arg(long = "example", value_name = "NAME")]
    pub(crate) examples: Vec<String>,
    /// Only this variant, by name; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// Host C++ compiler
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cxx: Option<PathBuf>,
}

/// How far a variant is proven, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Nothing,
    Planned,
    Compiled,
    Linked,
    Loaded,
    Ran,
}

const COLUMNS: [(Stage, &str); 5] =
    [(Stage::Planned, "planned"), (Stage::Compiled, "compiled"), (Stage::Linked, "linked"), (Stage::Loaded, "loaded"), (Stage::Ran, "ran")];

impl Stage {
    fn parse(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|(_, column)| *column == name).map(|(stage, _)| *stage)
    }
}

/// One line of the table.
struct Row {
    example: String,
    variant: String,
    reached: Stage,
    wanted: Stage,
    noarch: bool,
    note: String,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let kiln = Kiln::build(workspace)?;
    let pythons = setup::torch_pythons(workspace, &releases(workspace, &kiln, options)?)?;
    let counts = build_and_prove(workspace, &kiln, &pythons, options)?;
    println!("{} variants as they should be, {} not, in {}", counts.passed, counts.failed, process::duration(started.elapsed()));
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The torch releases that can load what is to be built.
fn releases(workspace: &Workspace, kiln: &Kiln, options: &Options) -> anyhow::Result<Vec<&'static str>> {
    let mut wanted = Vec::new();
    if options.variants.is_empty() {
        return Ok(setup::TORCH.to_vec());
    }
    for project in workspace.examples()? {
        for variant in kiln.variants(&project)?.iter().filter(|variant| options.variants.contains(&variant.name)) {
            let takes =
                |release: &str| variant.framework != "torch" || variant.torch.as_deref().is_some_and(|torch| release.starts_with(torch));
            wanted.extend(setup::TORCH.iter().chain(setup::TORCH_FULL).copied().filter(|release| takes(release)));
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted)
}

/// Builds the examples, proves each variant, prints the table. Counts variants.
pub(crate) fn build_and_prove(workspace: &Workspace, kiln: &Kiln, pythons: &[TorchPython], options: &Options) -> anyhow::Result<Counts> {
    let mut rows = Vec::new();
    for project in workspace.examples()? {
        let example = workspace::file_name(&project);
        if options.examples.is_empty() || options.examples.contains(&example) {
            rows.extend(one_example(workspace, kiln, pythons, &project, options)?);
        }
    }
    if rows.is_empty() {
        bail!("no example has such a variant");
    }
    print_table(&rows);
    let failed = rows.iter().filter(|row| row.reached < row.wanted).count();
    Ok(Counts { passed: rows.len() - failed, failed })
}

fn one_example(workspace: &Workspace, kiln: &Kiln, pythons: &[TorchPython], project: &Path, options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut chosen = Vec::new();
    for variant in kiln.variants(project)? {
        let wanted = match options.variants.as_slice() {
            [] => belongs_here(&variant, pythons),
            names => names.contains(&variant.name),
        };
        if wanted {
            chosen.push(variant);
        }
    }
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let mut build = kiln.command();
    build.arg("build").arg(project).arg("--keep-going");
    for variant in &chosen {
        build.args(["--variant", &variant.name]);
    }
    if let Some(cxx) = &options.cxx {
        build.arg("--cxx").arg(cxx);
    }
    // A failure shows in the record: the table tells which variant it was.
    let built = process::aloud(&mut build)?;
    let record = if built.success { record(project)? } else { record(project).unwrap_or_default() };
    let mut rows = Vec::new();
    for variant in &chosen {
        let mut reached = record.get(&variant.name).copied().unwrap_or(Stage::Planned);
        let mut note = String::new();
        if reached >= Stage::Linked {
            (reached, note) = prove(workspace, pythons, project, variant, reached)?;
        } else if !built.success {
            note.clone_from(&built.status);
        }
        let example = workspace::file_name(project);
        rows.push(Row { example, variant: variant.name.clone(), reached, wanted: provable(variant), noarch: variant.is_noarch(), note });
    }
    Ok(rows)
}

/// Whether this machine builds `variant` by default: what a plain `kiln build` takes, what needs no compiler, and one CPU
/// variant for each torch release that is here to load it.
fn belongs_here(variant: &Variant, pythons: &[TorchPython]) -> bool {
    let loadable = || pythons.iter().any(|python| variant.torch.as_deref().is_some_and(|torch| same_series(torch, python)));
    variant.preferred || variant.is_noarch() || (variant.backend == "cpu" && loadable())
}

fn same_series(torch: &str, python: &TorchPython) -> bool {
    torch == python.series() || torch.strip_prefix(python.series()).is_some_and(|rest| rest.starts_with('.'))
}

/// The stage that a machine without any accelerator can show. torch's CUDA builds select `torch-cuda` without a GPU too.
fn provable(variant: &Variant) -> Stage {
    if variant.backend == "cpu" || (variant.is_noarch() && variant.backend == "cuda") { Stage::Ran } else { Stage::Linked }
}

/// What the build record says of each variant.
fn record(project: &Path) -> anyhow::Result<BTreeMap<String, Stage>> {
    let path = project.join("build/kiln-build.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let record: Value = serde_json::from_str(&text).with_context(|| format!("`{}` is no JSON", path.display()))?;
    let variants = record["variants"].as_object().with_context(|| format!("`{}` has no `variants`", path.display()))?;
    let mut stages = BTreeMap::new();
    for (name, variant) in variants {
        let stage = variant["proven"]["stage"].as_str().and_then(Stage::parse);
        stages.insert(name.clone(), stage.with_context(|| format!("`{}`: `{name}` has no stage", path.display()))?);
    }
    Ok(stages)
}

/// Loads and runs `variant` in every torch that should take it. The least that any of them reaches counts.
fn prove(
    workspace: &Workspace,
    pythons: &[TorchPython],
    project: &Path,
    variant: &Variant,
    built: Stage,
) -> anyhow::Result<(Stage, String)> {
    let takers: Vec<&TorchPython> = match variant.framework.as_str() {
        _ if provable(variant) < Stage::Loaded => Vec::new(),
        "torch" => pythons.iter().filter(|python| variant.torch.as_deref().is_some_and(|torch| same_series(torch, python))).collect(),
        _ => pythons.iter().collect(),
    };
    if takers.is_empty() {
        return Ok((built, if provable(variant) < Stage::Loaded { "no such device here" } else { "no such torch here" }.to_owned()));
    }
    let mut least = Stage::Ran;
    let mut notes = Vec::new();
    let script: PathBuf = workspace.root.join("xtask/python/prove.py");
    for python in takers {
        let mut command = Command::new(&python.python);
        command.arg(&script).arg(project).args([&variant.name, &variant.backend]);
        python_tests::isolate(&mut command, workspace, python)?;
        let result = command.output().with_context(|| format!("cannot run `{}`", python.python.display()))?;
        let last = String::from_utf8_lossy(&result.stdout).lines().filter_map(Stage::parse).max().unwrap_or(built);
        let reached = if result.status.success() { last } else { last.min(Stage::Loaded) };
        if result.status.success() && reached == Stage::Ran {
            notes.push(format!("torch {}", python.torch));
        } else {
            println!("{} in torch {}:\n{}", variant.name, python.torch, String::from_utf8_lossy(&result.stderr).trim_end());
            notes.push(format!("not in torch {}", python.torch));
        }
        least = least.min(reached);
    }
    Ok((least, notes.join(", ")))
}

fn print_table(rows: &[Row]) {
    let wide = |text: &dyn Fn(&Row) -> usize, title: usize| rows.iter().map(text).max().unwrap_or(0).max(title);
    let (first, second) = (wide(&|row| row.example.len(), 7), wide(&|row| row.variant.len(), 7));
    print!("\n{:first$}  {:second$}", "example", "variant");
    for (_, column) in COLUMNS {
        print!("  {column}");
    }
    println!();
    for row in rows {
        print!("{:first$}  {:second$}", row.example, row.variant);
        for (stage, column) in COLUMNS {
            let cell = match (row.reached >= stage, row.wanted >= stage) {
                // Python alone is neither compiled nor linked: it is assembled.
                (true, _) if row.noarch && matches!(stage, Stage::Compiled | Stage::Linked) => "-",
                (true, _) => "yes",
                (false, true) => "NO",
                (false, false) => "-",
            };
            print!("  {cell:width$}", width = column.len());
        }
        println!("  {}", row.note);
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(torch: &str) -> TorchPython {
        TorchPython { torch: torch.to_owned(), python: PathBuf::new() }
    }

    #[test]
    fn a_series_is_not_a_prefix() {
        assert!(same_series("2.13.0", &python("2.13.0")));
        assert!(same_series("2.13", &python("2.13.0")));
        assert!(!same_series("2.130.0", &python("2.13.0")));
        assert!(!same_series("2.1.0", &python("2.13.0")));
    }

    #[test]
    fn stages_are_in_order() {
        assert!(COLUMNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(Stage::parse("linked"), Some(Stage::Linked));
        assert_eq!(Stage::parse("nothing"), None);
    }
}
