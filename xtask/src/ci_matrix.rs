//! `ci-matrix`: runs here each row that the GitHub workflow would run.
//!
//! Shell steps run for real, outputs and matrices included. What only GitHub can do (its actions, other systems) is listed
//! as left out.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};

use crate::expression::expand;
use crate::kiln::Kiln;
use crate::process;
use crate::stages::{Counts, Stages};
use crate::workflow::{Action, Job, Step, Workflow};
use crate::workspace::{self, Workspace};

/// Options of `ci-matrix`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this job and those that it needs; may be repeated
    #[arg(long = "job", value_name = "NAME")]
    jobs: Vec<String>,
    /// Say what would run, and run only what the rows are made from
    #[arg(long)]
    list: bool,
    /// Print the rows of the kernel job, those of `kiln matrix` for each example, as the workflow takes them
    #[arg(long, conflicts_with_all = ["jobs", "list"])]
    github: bool,
    /// With --github: those of this backend alone, for a machine that has its compilers
    #[arg(long, requires = "github", value_name = "NAME")]
    backend: Option<String>,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    if options.github {
        println!("{}", kernel_rows(workspace, options.backend.as_deref())?);
        return Ok(ExitCode::SUCCESS);
    }
    let workflow = Workflow::read(&workspace.root.join(".github/workflows/ci.yml"))?;
    let chosen = chosen(&workflow, &options.jobs)?;
    let mut stages = Stages::default();
    let mut outputs: BTreeMap<&str, Option<Value>> = BTreeMap::new();
    for job in &workflow.jobs {
        if !chosen.contains(&job.id.as_str()) {
            continue;
        }
        let mut needs = Map::new();
        let mut missing = None;
        for name in &job.needs {
            match outputs.get(name.as_str()) {
                Some(Some(values)) => drop(needs.insert(name.clone(), json!({"outputs": values}))),
                _ => missing = Some(name),
            }
        }
        if let Some(name) = missing {
            stages.blocked(&job.id, &format!("`{name}`"));
            continue;
        }
        // A job that others take outputs from must run, or nothing could be listed.
        let listing = options.list && job.outputs.is_empty();
        let result = one_job(workspace, &workflow, job, &needs, listing, &mut stages);
        outputs.insert(&job.id, result);
    }
    if options.list {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(stages.finish())
}

/// The jobs that were asked for and what they need, or all.
fn chosen<'a>(workflow: &'a Workflow, asked: &'a [String]) -> anyhow::Result<Vec<&'a str>> {
    let mut chosen: Vec<&str> = if asked.is_empty() { workflow.jobs.iter().map(|job| job.id.as_str()).collect() } else { Vec::new() };
    let mut open: Vec<&str> = asked.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        let job = workflow.jobs.iter().find(|job| job.id == name).with_context(|| format!("the workflow has no job `{name}`"))?;
        if !chosen.contains(&name) {
            chosen.push(name);
            open.extend(job.needs.iter().map(String::as_str));
        }
    }
    Ok(chosen)
}

/// Runs every row of a job. Gives its outputs when all went well.
fn one_job(
    workspace: &Workspace,
    workflow: &Workflow,
    job: &Job,
    needs: &Map<String, Value>,
    listing: bool,
    stages: &mut Stages,
) -> Option<Value> {
    let rows = match job.rows(&json!({"needs": needs})) {
        Ok(rows) => rows,
        Err(error) => {
            stages.run(&job.id, || Err(error));
            return None;
        }
    };
    let mut outputs = Some(json!({}));
    for row in &rows {
        let label = label(&job.id, row);
        let context = json!({"needs": needs, "matrix": row});
        let mut values = Value::Null;
        let passed = stages.run(&label, || {
            let machine = expand(&job.runs_on, &context)?;
            if !runs_here(&machine) {
                println!("left to GitHub: it runs on `{machine}`");
                return Ok(Counts::ONE);
            }
            values = one_row(workspace, workflow, job, context, listing)?;
            Ok(Counts::ONE)
        });
        outputs = outputs.filter(|_| passed).map(|_| values);
    }
    outputs
}

fn one_row(workspace: &Workspace, workflow: &Workflow, job: &Job, mut context: Value, listing: bool) -> anyhow::Result<Value> {
    let mut done = Map::new();
    for step in &job.steps {
        let script = match &step.action {
            Action::Uses(name) => {
                println!("left to GitHub: `{name}`");
                continue;
            }
            Action::Run(script) => expand(script, &context)?,
        };
        if listing {
            println!("would run:\n{}", script.trim_end());
            continue;
        }
        let outputs = one_step(workspace, [&workflow.env, &job.env, &step.env], step, &script, &context)?;
        if let Some(id) = &step.id {
            done.insert(id.clone(), json!({"outputs": outputs}));
            context["steps"] = Value::Object(done.clone());
        }
    }
    let mut outputs = Map::new();
    for (name, value) in &job.outputs {
        let text = value.as_str().with_context(|| format!("output `{name}` is no text"))?;
        outputs.insert(name.clone(), Value::String(expand(text, &context)?));
    }
    Ok(Value::Object(outputs))
}

/// Runs a script as GitHub does and gives what it wrote to its output file.
fn one_step(
    workspace: &Workspace,
    environments: [&Map<String, Value>; 3],
    step: &Step,
    script: &str,
    context: &Value,
) -> anyhow::Result<Map<String, Value>> {
    let scratch = tempfile::tempdir()?;
    let (file, output) = (scratch.path().join("script.sh"), scratch.path().join("output"));
    std::fs::write(&file, script)?;
    std::fs::write(&output, "")?;
    let mut command = Command::new("bash");
    workspace::forget_us(&mut command);
    command.current_dir(&workspace.root).arg("-e").arg(&file).env("GITHUB_OUTPUT", &output).env("CI", "true");
    for (name, value) in environments.into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.env(name, expand(&text, context)?);
    }
    println!("{}", script.trim_end());
    process::aloud(&mut command)?.check().with_context(|| match &step.id {
        Some(id) => format!("step `{id}`"),
        None => format!("`{}`", script.lines().next().unwrap_or_default()),
    })?;
    let mut values = Map::new();
    for line in std::fs::read_to_string(&output)?.lines() {
        let (name, value) = line.split_once('=').with_context(|| format!("odd output line `{line}`"))?;
        values.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    Ok(values)
}

/// Whether a hosted machine of this label is like this one.
fn runs_here(machine: &str) -> bool {
    let arm = machine.contains("arm");
    machine.starts_with("ubuntu") && cfg!(target_os = "linux") && arm == cfg!(target_arch = "aarch64")
}

fn label(job: &str, row: &Value) -> String {
    let values: Vec<&str> = ["example", "variant"].iter().filter_map(|key| row[*key].as_str()).collect();
    [&[job], values.as_slice()].concat().join(" ")
}

/// One GitHub matrix with the rows of all examples, each with the example's name; with those of `backend` alone, if one is named.
fn kernel_rows(workspace: &Workspace, backend: Option<&str>) -> anyhow::Result<Value> {
    // Standard output is for the rows alone.
    let kiln = Kiln::build_quietly(workspace)?;
    let mut include = Vec::new();
    for project in workspace.examples()? {
        for mut row in kiln.matrix(&project)? {
            // No wheel has the compiler of CUDA 12, and the runners have none either. What stands in for that of oneAPI is of 2025.
            let has_none = |variant: &str| variant.contains("-cu12") || (variant.contains("-xpu") && !variant.contains("-xpu2025"));
            let is_left_out = match backend {
                Some(backend) => row["backend"] != backend,
                None => row["variant"].as_str().is_some_and(has_none),
            };
            if is_left_out {
                continue;
            }
            row.as_object_mut()
                .context("`kiln matrix` gave a row that is no mapping")?
                .insert("example".to_owned(), json!(workspace::file_name(&project)));
            include.push(row);
        }
    }
    if include.is_empty() {
        bail!("`kiln matrix` gave no row");
    }
    Ok(json!({"include": include}))
}
