//! `build-kernels`: every example for this machine, and for each variant how far it is proven.
//!
//! `kiln build` proves that a variant was planned, compiled and linked, and says so in its build record. Whether it loads
//! and runs is shown here, by the unchanged `kernels` package in each Python that the variant is for, and by `kiln call`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::calls;
use crate::kiln::{Kiln, Variant};
use crate::process;
use crate::proof::{self, Proof, Proofs};
use crate::prove::{self, Case};
use crate::setup;
use crate::setup::sycl::sycl;
use crate::stages::Counts;
use crate::test_python::{TestPython, is_for_torch};
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
    /// Write what was seen to `docs/proof.json`, instead of comparing it with that
    #[arg(long)]
    pub(crate) update: bool,
}

/// How far a variant is proven, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Nothing,
    Planned,
    Compiled,
    Linked,
    Loaded,
    Ran,
}

/// What the catalog calls the machines that Metal is on.
const MACOS: &str = "aarch64-darwin";

const COLUMNS: [(Stage, &str); 5] =
    [(Stage::Planned, "planned"), (Stage::Compiled, "compiled"), (Stage::Linked, "linked"), (Stage::Loaded, "loaded"), (Stage::Ran, "ran")];

/// What the table says to somebody who sees it for the first time.
const LEGEND: &str = "\
    planned: the matrix has this variant       compiled, linked: `kiln build` did so, and its checks passed
    loaded: the unchanged `kernels` package imported it    ran: its example gave the right numbers
    by: the tools that made it    at the end of a line: the torch or tvm-ffi releases in which that was seen
    yes: seen now      NO: should have been seen here and was not
    -: not to be had here (no such device, or no such torch), or nothing to do (Python is not compiled)";

impl Stage {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        COLUMNS.iter().find(|(stage, _)| *stage == self).map_or("nothing", |(_, name)| name)
    }

    /// The stage of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|(_, column)| *column == name).map(|(stage, _)| *stage)
    }
}

/// One line of the table.
struct Row {
    case: Case,
    variant: Variant,
    reached: Stage,
    note: String,
    /// The tools that made it.
    by: String,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let kiln = Kiln::build(workspace)?;
    let pythons = pythons(workspace, &kiln, options)?;
    let counts = build_and_prove(workspace, &kiln, &pythons, options)?;
    println!("{} variants as they should be, {} not, in {}", counts.passed, counts.failed, process::duration(started.elapsed()));
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The Pythons that can load what is to be built.
fn pythons(workspace: &Workspace, kiln: &Kiln, options: &Options) -> anyhow::Result<Vec<TestPython>> {
    if options.variants.is_empty() {
        let mut all = setup::torch_pythons(workspace, setup::TORCH)?;
        all.extend(setup::tvm_ffi_pythons(workspace)?);
        return Ok(all);
    }
    let (mut torch, mut tvm_ffi) = (Vec::new(), false);
    for project in workspace.examples()? {
        for variant in kiln.variants(&project)?.iter().filter(|variant| options.variants.contains(&variant.name)) {
            tvm_ffi |= variant.framework == "tvm-ffi";
            let takes = |release: &&str| match variant.framework.as_str() {
                "torch" => is_for_torch(variant, release),
                framework => framework != "tvm-ffi",
            };
            torch.extend(setup::TORCH.iter().chain(setup::TORCH_FULL).copied().filter(takes));
        }
    }
    torch.sort_unstable();
    torch.dedup();
    let mut all = setup::torch_pythons(workspace, &torch)?;
    if tvm_ffi {
        all.extend(setup::tvm_ffi_pythons(workspace)?);
    }
    Ok(all)
}

/// Builds the examples, proves each variant, prints the table. Counts variants.
pub(crate) fn build_and_prove(workspace: &Workspace, kiln: &Kiln, pythons: &[TestPython], options: &Options) -> anyhow::Result<Counts> {
    let mut rows = Vec::new();
    for project in workspace.examples()? {
        if options.examples.is_empty() || options.examples.contains(&workspace::file_name(&project)) {
            rows.extend(build(workspace, kiln, pythons, &project, options)?);
            if options.variants.is_empty() {
                rows.extend(plan_for_macos(kiln, &project)?);
            }
        }
    }
    if rows.is_empty() {
        bail!("no example has such a variant");
    }
    prove_all(workspace, kiln, pythons, &mut rows)?;
    print_table(&rows);
    let failed = rows.iter().filter(|row| row.reached < provable(&row.variant)).count();
    compare(workspace, &rows, options)?;
    Ok(Counts { passed: rows.len() - failed, failed })
}

/// Holds what was seen to `docs/proof.json`, or writes it there.
fn compare(workspace: &Workspace, rows: &[Row], options: &Options) -> anyhow::Result<()> {
    let of = |row: &Row| {
        let key = (workspace::file_name(&row.case.project), row.variant.name.clone());
        // Python alone is assembled: nothing of it was compiled or linked.
        let stage = if row.variant.is_noarch() && row.reached < Stage::Loaded { row.reached.min(Stage::Planned) } else { row.reached };
        (key, Proof { stage, by: row.by.clone() })
    };
    let seen: Proofs = rows.iter().map(of).collect();
    let all = options.examples.is_empty() && options.variants.is_empty();
    if options.update {
        return proof::update(workspace, &seen, all);
    }
    // Another compiler than the usual one proves something else.
    if options.cxx.is_some() || !options.variants.is_empty() {
        return Ok(());
    }
    let known = proof::read(workspace)?;
    for other in proof::otherwise(&known, &seen) {
        println!("{other}");
    }
    let differences = proof::differences(&known, &seen, all);
    if differences.is_empty() {
        return Ok(());
    }
    for difference in &differences {
        println!("{difference}");
    }
    bail!("docs/proof.json is not what was seen: after a look, `cargo xtask build-kernels --update` and `cargo xtask docs` write it")
}

/// Builds the variants of an example that belong here, and gives for each how far `kiln` got.
fn build(workspace: &Workspace, kiln: &Kiln, pythons: &[TestPython], project: &Path, options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut variants = kiln.variants(project)?;
    variants.retain(|variant| match options.variants.as_slice() {
        [] => belongs_here(variant, pythons),
        names => names.contains(&variant.name),
    });
    if variants.is_empty() {
        return Ok(Vec::new());
    }
    let compiles_for =
        |backend: &str, variants: &[Variant]| variants.iter().any(|variant| variant.backend == backend && !variant.is_noarch());
    if compiles_for("rocm", &variants) {
        setup::amd_compiler()?;
    }
    let shim = compiles_for("xpu", &variants).then(|| sycl(workspace)).transpose()?;
    let run = |variants: &[Variant]| {
        let mut build = kiln.command();
        build.arg("build").arg(project).arg("--keep-going");
        for variant in variants {
            build.args(["--variant", &variant.name]);
        }
        if let Some(shim) = &shim {
            shim.compile(&mut build);
        }
        if compiles_for("rocm", variants) {
            // That of the distribution stands in for every release.
            build.args(["--rocm-from", "/usr"]);
        }
        if let Some(cxx) = &options.cxx {
            build.arg("--cxx").arg(cxx);
        }
        process::aloud(&mut build)
    };
    let all = run(&variants)?.success;
    let mut rows = Vec::new();
    for variant in variants {
        // After a failure each is asked for by itself: the record would still tell of an earlier build.
        let failure = if all { None } else { Some(run(std::slice::from_ref(&variant))?).filter(|one| !one.success) };
        let (reached, note, by) = match failure {
            Some(_) => (Stage::Planned, "its build failed".to_owned(), String::new()),
            None => {
                let record = recorded(project, &variant.name)?;
                let by = proof::tools(&record, &variant.backend);
                (stage_of(&record).with_context(|| format!("the record has no stage for `{}`", variant.name))?, String::new(), by)
            }
        };
        let runs = provable(&variant) == Stage::Ran;
        let case = Case { project: project.to_owned(), variant: variant.name.clone(), backend: variant.backend.clone(), runs };
        rows.push(Row { case, variant, reached, note, by });
    }
    Ok(rows)
}

/// The variants for Metal of an example, which are planned on every machine: nothing but Apple's tools makes a library of shaders.
fn plan_for_macos(kiln: &Kiln, project: &Path) -> anyhow::Result<Vec<Row>> {
    let mut variants = kiln.variants_for(MACOS, project)?;
    variants.retain(|variant| variant.backend == "metal" && variant.preferred && !variant.is_noarch());
    let plan = |variant: Variant| {
        let mut plan = kiln.command();
        plan.args(["build", "--plan", "--target", MACOS, "--variant", &variant.name]).arg(project);
        process::output(&mut plan).with_context(|| format!("the plan of `{}` failed", variant.name))?;
        let case = Case { project: project.to_owned(), variant: variant.name.clone(), backend: variant.backend.clone(), runs: false };
        let note = "command lines only: Apple's tools are not here".to_owned();
        Ok(Row { case, variant, reached: Stage::Planned, note, by: proof::COMMAND_LINES.to_owned() })
    };
    variants.into_iter().map(plan).collect()
}

/// Loads and runs each variant in every Python that should take it, and those of tvm-ffi through `kiln call`. The least that any of them
/// reaches counts.
fn prove_all(workspace: &Workspace, kiln: &Kiln, pythons: &[TestPython], rows: &mut [Row]) -> anyhow::Result<()> {
    let wants = |python: &TestPython, row: &Row| {
        row.reached >= Stage::Linked && provable(&row.variant) >= Stage::Loaded && python.takes(&row.variant)
    };
    let results: Vec<anyhow::Result<Vec<Stage>>> = std::thread::scope(|scope| {
        let rows = &*rows;
        let start = |python| {
            let cases: Vec<&Case> = rows.iter().filter(|row| wants(python, row)).map(|row| &row.case).collect();
            scope.spawn(move || prove::in_python(workspace, python, &cases))
        };
        let running: Vec<_> = pythons.iter().map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread failed"))).collect()
    });
    let mut seen = vec![Vec::<(String, Stage)>::new(); rows.len()];
    for (python, stages) in pythons.iter().zip(results) {
        let proven = rows.iter().enumerate().filter(|(_, row)| wants(python, row)).map(|(index, _)| index);
        for (index, stage) in proven.zip(stages?) {
            if let Some(seen) = seen.get_mut(index) {
                seen.push((python.name.clone(), stage));
            }
        }
    }
    for (row, seen) in rows.iter().zip(&mut seen) {
        if row.variant.framework == "tvm-ffi" && row.reached >= Stage::Linked && provable(&row.variant) >= Stage::Loaded {
            seen.extend(calls::prove(workspace, kiln, &row.case)?);
        }
    }
    for (row, seen) in rows.iter_mut().zip(seen) {
        if let Some(least) = seen.iter().map(|(_, stage)| *stage).min() {
            row.reached = least;
            let say = |(name, stage): &(String, Stage)| if *stage >= provable(&row.variant) { name.clone() } else { format!("not {name}") };
            row.note = seen.iter().map(say).collect::<Vec<_>>().join("; ");
        } else if row.reached >= Stage::Linked {
            row.note = if provable(&row.variant) < Stage::Loaded { "no such device here" } else { "no such Python here" }.to_owned();
        }
    }
    Ok(())
}

/// Whether this machine builds `variant` by default: what a plain `kiln build` takes, what needs no compiler, and those for the CPU
/// that a torch release which is here can load. For AMD devices it is what a distribution's compiler makes, for XPU what `sycl-shim` does. No wheel has a compiler for
/// CUDA 12, and CUDA and HIP under torch's C++ interface take minutes: `test --full` has CUDA, the tests of `kiln` have HIP.
fn belongs_here(variant: &Variant, pythons: &[TestPython]) -> bool {
    let has_quick_headers = || matches!(variant.framework.as_str(), "torch-stable-abi" | "tvm-ffi");
    let has_compiler = || variant.compute.as_deref().is_some_and(|cuda| !cuda.starts_with("12."));
    let is_built = match variant.backend.as_str() {
        "cpu" => pythons.iter().any(|python| python.takes(variant)),
        // What stands in for its compiler is of that release.
        "xpu" => variant.compute.as_deref().is_some_and(|release| release.starts_with("2025.")),
        "cuda" => variant.preferred && has_quick_headers() && has_compiler(),
        "rocm" => variant.preferred && has_quick_headers(),
        // No wheel and no distribution has its compiler.
        "cann" => false,
        _ => variant.preferred,
    };
    is_built || variant.is_noarch()
}

/// The stage that a machine without any accelerator can show. torch's CUDA builds select `torch-cuda` without a GPU too, and `kiln call`
/// brings CUDA's runtime library, which the catalog has of CUDA 13.
fn provable(variant: &Variant) -> Stage {
    let has_runtime = variant.compute.as_deref().is_some_and(|cuda| cuda.starts_with("13."));
    match (variant.backend.as_str(), variant.framework.as_str()) {
        // SYCL has the processor for a device.
        ("cpu", _) | ("cuda", "torch-noarch") | ("xpu", "tvm-ffi") => Stage::Ran,
        ("cuda", "tvm-ffi") if has_runtime => Stage::Loaded,
        // Debian's run time is here, under the name that the extension asks for.
        ("rocm", "tvm-ffi") => Stage::Loaded,
        // No index has the libraries of torch's own build.
        ("rocm", "torch") => Stage::Compiled,
        ("metal", framework) if framework != "torch-noarch" => Stage::Planned,
        _ => Stage::Linked,
    }
}

/// What the build record says of a variant.
fn recorded(project: &Path, variant: &str) -> anyhow::Result<Value> {
    let path = project.join("build/kiln-build.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let record: Value = serde_json::from_str(&text).with_context(|| format!("`{}` is no JSON", path.display()))?;
    Ok(record["variants"][variant].clone())
}

/// How far the build record says that a variant got.
fn stage_of(record: &Value) -> Option<Stage> {
    record["proven"]["stage"].as_str().and_then(Stage::parse)
}

fn print_table(rows: &[Row]) {
    let wide = |text: &dyn Fn(&Row) -> usize, title: usize| rows.iter().map(text).max().unwrap_or(0).max(title);
    let example = |row: &Row| workspace::file_name(&row.case.project);
    let (first, second) = (wide(&|row| example(row).len(), 7), wide(&|row| row.variant.name.len(), 7));
    let third = wide(&|row| row.by.len(), 2);
    print!("\n{:first$}  {:second$}", "example", "variant");
    for (_, column) in COLUMNS {
        print!("  {column}");
    }
    println!("  by");
    for row in rows {
        print!("{:first$}  {:second$}", example(row), row.variant.name);
        for (stage, column) in COLUMNS {
            let cell = match (row.reached >= stage, provable(&row.variant) >= stage) {
                // Python alone is neither compiled nor linked: it is assembled.
                (true, _) if row.variant.is_noarch() && matches!(stage, Stage::Compiled | Stage::Linked) => "-",
                (true, _) => "yes",
                (false, true) => "NO",
                (false, false) => "-",
            };
            print!("  {cell:width$}", width = column.len());
        }
        println!("  {:third$}  {}", row.by, row.note);
    }
    println!("\n{LEGEND}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_in_order() {
        assert!(COLUMNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(Stage::parse("linked"), Some(Stage::Linked));
        assert_eq!(Stage::parse("nothing"), None);
    }
}
