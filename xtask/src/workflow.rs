//! A GitHub workflow as far as it can be run here: jobs, their rows and their shell steps.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use crate::expression;

/// A workflow file.
pub(crate) struct Workflow {
    /// Environment of every job.
    pub(crate) env: Map<String, Value>,
    /// Jobs in file order.
    pub(crate) jobs: Vec<Job>,
}

/// One job.
pub(crate) struct Job {
    /// Its key.
    pub(crate) id: String,
    /// The jobs that it waits for.
    pub(crate) needs: Vec<String>,
    /// `runs-on`, unexpanded.
    pub(crate) runs_on: String,
    /// `strategy.matrix`, unexpanded.
    matrix: Option<Value>,
    /// Its environment.
    pub(crate) env: Map<String, Value>,
    /// Its outputs, unexpanded.
    pub(crate) outputs: Map<String, Value>,
    /// Its steps.
    pub(crate) steps: Vec<Step>,
}

/// One step.
pub(crate) struct Step {
    /// Its id, which its outputs are found by.
    pub(crate) id: Option<String>,
    /// What it does.
    pub(crate) action: Action,
    /// Its environment.
    pub(crate) env: Map<String, Value>,
}

/// What a step does.
pub(crate) enum Action {
    /// A script for bash.
    Run(String),
    /// An action of somebody's, which only GitHub can run.
    Uses(String),
}

impl Workflow {
    /// Reads a file. Keys that change what runs and are not known here are errors.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::parse(&text).with_context(|| format!("`{}`", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let documents = YamlLoader::load_from_str(text)?;
        let document = documents.first().context("the file is empty").and_then(json_of)?;
        let top = document.as_object().context("not a mapping")?;
        only(top, &["name", "on", "permissions", "concurrency", "env", "jobs"])?;
        let jobs = top.get("jobs").and_then(Value::as_object).context("no `jobs`")?;
        let jobs = jobs.iter().map(|(id, body)| job(id, body).with_context(|| format!("job `{id}`"))).collect::<Result<_, _>>()?;
        Ok(Self { env: map(top, "env")?, jobs })
    }
}

impl Job {
    /// The values of `matrix` for each time that the job runs: one empty row when it has no matrix.
    pub(crate) fn rows(&self, context: &Value) -> anyhow::Result<Vec<Value>> {
        let Some(matrix) = &self.matrix else { return Ok(vec![json!({})]) };
        let matrix = match matrix {
            Value::String(text) => expression::evaluate(text, context)?,
            other => other.clone(),
        };
        let matrix = matrix.as_object().context("`matrix` is not a mapping")?;
        if matrix.len() != 1 {
            bail!("only a `matrix` of one `include` list is understood here");
        }
        Ok(matrix.get("include").and_then(Value::as_array).context("`matrix` has no `include` list")?.clone())
    }
}

fn job(id: &str, body: &Value) -> anyhow::Result<Job> {
    let body = body.as_object().context("not a mapping")?;
    only(body, &["name", "needs", "runs-on", "strategy", "env", "outputs", "steps", "timeout-minutes", "permissions"])?;
    let matrix = match body.get("strategy") {
        None => None,
        Some(strategy) => {
            let strategy = strategy.as_object().context("`strategy` is not a mapping")?;
            only(strategy, &["matrix", "fail-fast", "max-parallel"])?;
            strategy.get("matrix").cloned()
        }
    };
    let needs = match body.get("needs") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(many) => strings(many).context("`needs` is no list of names")?,
    };
    let steps = body.get("steps").and_then(Value::as_array).context("no `steps`")?;
    Ok(Job {
        id: id.to_owned(),
        needs,
        runs_on: body.get("runs-on").and_then(Value::as_str).context("no `runs-on`")?.to_owned(),
        matrix,
        env: map(body, "env")?,
        outputs: map(body, "outputs")?,
        steps: steps
            .iter()
            .enumerate()
            .map(|(index, one)| step(one).with_context(|| format!("step {}", index + 1)))
            .collect::<Result<_, _>>()?,
    })
}

fn step(body: &Value) -> anyhow::Result<Step> {
    let body = body.as_object().context("not a mapping")?;
    only(body, &["id", "name", "uses", "with", "run", "env"])?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    let action = match (text("run"), text("uses")) {
        (Some(script), None) => Action::Run(script),
        (None, Some(name)) => Action::Uses(name),
        _ => bail!("needs either `run` or `uses`"),
    };
    Ok(Step { id: text("id"), action, env: map(body, "env")? })
}

/// The same value as JSON. Keys keep their order.
fn json_of(yaml: &Yaml) -> anyhow::Result<Value> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Boolean(value) => json!(value),
        Yaml::Integer(value) => json!(value),
        Yaml::Real(text) | Yaml::String(text) => json!(text),
        Yaml::Array(items) => Value::Array(items.iter().map(json_of).collect::<Result<_, _>>()?),
        Yaml::Hash(entries) => {
            let pairs = entries.iter().map(|(key, value)| Ok((key.as_str().context("a key is no text")?.to_owned(), json_of(value)?)));
            Value::Object(pairs.collect::<anyhow::Result<_>>()?)
        }
        Yaml::Alias(_) | Yaml::BadValue => bail!("a value that is not understood here"),
    })
}

fn only(map: &Map<String, Value>, known: &[&str]) -> anyhow::Result<()> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => bail!("`{key}` is not understood here"),
        None => Ok(()),
    }
}

fn map(parent: &Map<String, Value>, key: &str) -> anyhow::Result<Map<String, Value>> {
    match parent.get(key) {
        None => Ok(Map::new()),
        Some(value) => Ok(value.as_object().with_context(|| format!("`{key}` is not a mapping"))?.clone()),
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "\
on: push
env:
  A: '1'
jobs:
  plan:
    runs-on: ubuntu-24.04
    outputs:
      rows: ${{ steps.rows.outputs.rows }}
    steps:
      - uses: a/b@v1
      - id: rows
        run: echo
  build:
    needs: plan
    strategy:
      fail-fast: false
      matrix: ${{ fromJSON(needs.plan.outputs.rows) }}
    runs-on: ${{ matrix.os }}
    steps:
      - run: |
          one
          two
";

    #[test]
    fn jobs_rows_and_steps() {
        let workflow = Workflow::parse(EXAMPLE).unwrap();
        assert_eq!(workflow.env["A"], "1");
        let [plan, build] = workflow.jobs.as_slice() else { panic!("two jobs") };
        assert!(matches!(&plan.steps[0].action, Action::Uses(name) if name == "a/b@v1"));
        assert_eq!(plan.rows(&json!({})).unwrap(), [json!({})]);
        assert_eq!(build.needs, ["plan"]);
        assert!(matches!(&build.steps[0].action, Action::Run(script) if script == "one\ntwo\n"));
        let context = json!({"needs": {"plan": {"outputs": {"rows": "{\"include\": [{\"os\": \"x\"}, {\"os\": \"y\"}]}"}}}});
        assert_eq!(build.rows(&context).unwrap(), [json!({"os": "x"}), json!({"os": "y"})]);
    }

    /// The commands of a script that are ours, each as words behind `kiln` or `xtask`.
    fn commands<'s>(script: &'s str, start: &str) -> Vec<Vec<&'s str>> {
        let behind = |line: &'s str| line.split_once(start).map(|(_, rest)| rest.trim_end_matches(')'));
        script.lines().filter_map(behind).map(|rest| rest.split_whitespace().map(|word| word.trim_matches('"')).collect()).collect()
    }

    #[test]
    fn every_workflow_names_commands_that_there_are() {
        use clap::Parser as _;

        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manual = std::fs::read_to_string(root.join("docs/cli.md")).unwrap();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(root.join(".github/workflows")).unwrap() {
            let path = entry.unwrap().path();
            let workflow = Workflow::read(&path).unwrap();
            let mut found = 0;
            for step in workflow.jobs.iter().flat_map(|job| &job.steps) {
                let Action::Run(script) = &step.action else { continue };
                let row = json!({"matrix": {"example": "relu", "variant": "torch-cpu"}});
                let script = &expression::expand(script, &row).unwrap();
                for words in commands(script, "cargo xtask ") {
                    let parsed = crate::Arguments::try_parse_from(["xtask"].into_iter().chain(words.iter().copied()));
                    assert!(parsed.is_ok(), "{}: `cargo xtask {}`", path.display(), words.join(" "));
                    found += 1;
                }
                for words in commands(script, "--package kiln -- ") {
                    let section = manual.split(&format!("## `kiln {}`", words[0])).nth(1).and_then(|rest| rest.split("\n## `").next());
                    let section = section.unwrap_or_else(|| panic!("{}: there is no `kiln {}`", path.display(), words[0]));
                    for option in words.iter().filter(|word| word.starts_with("--")) {
                        assert!(section.contains(*option), "{}: `kiln {}` has no `{option}`", path.display(), words[0]);
                    }
                    found += 1;
                }
            }
            assert!(found > 0, "{} runs nothing of ours", path.display());
            names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
        names.sort();
        assert_eq!(names, ["ci", "cuda", "metal", "npu", "rocm", "xpu"]);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (good, bad) in [("    needs: plan", "    if: false"), ("fail-fast: false", "x: 1"), ("- run: |", "- shell: sh\n        run: |")]
        {
            assert!(Workflow::parse(&EXAMPLE.replace(good, bad)).is_err(), "{bad}");
        }
    }
}
