//! What a graph would do, as data that can be printed: the same on every machine and in every checkout, but for the programs' paths.

use std::path::Path;

use crate::graph::{Graph, pieces};
use crate::step::{Action, Arg, Input, OutputRef, PathRef, Piece, StepId};

/// A graph as data. Steps are in topological order, which is the order in which they were added.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Plan {
    /// Every step.
    pub steps: Vec<PlanStep>,
    /// Every target.
    pub targets: Vec<PlanTarget>,
}

/// One step of a [`Plan`]. Paths are written `{root}/path`, other steps' outputs `{step id}/name`, own ones `{out}/name`,
/// the work directory `{work}`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PlanStep {
    /// The identity of the step.
    pub id: String,
    /// Its verb.
    pub verb: &'static str,
    /// Its label.
    pub label: String,
    /// What it does.
    pub action: PlanAction,
    /// Files it reads for sure: declared inputs, mentioned files and directories, other steps' outputs. Each once, in order of mention.
    pub inputs: Vec<String>,
    /// Names of the files it makes.
    pub outputs: Vec<String>,
    /// Steps that it waits for, in graph order.
    pub needs: Vec<String>,
    /// Targets that need it, in graph order.
    pub targets: Vec<String>,
}

/// What a step of a [`Plan`] does.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum PlanAction {
    /// Runs a program.
    Run {
        /// The program file on this machine.
        program: String,
        /// Identity of the program.
        tool: String,
        /// Arguments, the program's file name first, behind that of its launcher where it has one.
        argv: Vec<String>,
        /// Working directory.
        cwd: String,
        /// Environment that is part of the step's identity, as `NAME=value`, sorted.
        env: Vec<String>,
        /// Programs that run after it, in the directory of the outputs: arguments, each program's file name first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        then: Vec<Vec<String>>,
    },
    /// Calls a function of Kiln's own.
    Builtin {
        /// Its name.
        name: &'static str,
        /// Its version.
        version: u32,
    },
}

/// One target of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PlanTarget {
    /// Name of the target.
    pub name: String,
    /// The files it wants, as `{step id}/name`.
    pub outputs: Vec<String>,
    /// How many steps it needs.
    pub steps: usize,
}

impl Graph {
    /// What the graph would do if nothing were up to date. Reads no file.
    pub fn plan(&self) -> Plan {
        let closures = self.target_closures();
        let mut needed_by: Vec<Vec<String>> = vec![Vec::new(); self.len()];
        let mut targets = Vec::new();
        for ((name, outputs), closure) in self.targets().zip(&closures) {
            for &index in closure {
                if let Some(names) = needed_by.get_mut(index) {
                    names.push(name.to_owned());
                }
            }
            targets.push(PlanTarget { name: name.to_owned(), outputs: outputs.iter().map(output).collect(), steps: closure.len() });
        }
        let steps = self
            .nodes()
            .iter()
            .zip(needed_by)
            .map(|(node, targets)| PlanStep {
                id: node.id.to_string(),
                verb: node.step.verb,
                label: node.step.label.clone(),
                action: action(&node.step.action, &StepId::to_string),
                inputs: inputs(&node.step),
                outputs: node.step.outputs.clone(),
                needs: self.dependencies(&node.id).map(StepId::to_string).collect(),
                targets,
            })
            .collect();
        Plan { steps, targets }
    }
}

/// What a step does. `named` names other steps.
pub(crate) fn action(action: &Action, named: &dyn Fn(&StepId) -> String) -> PlanAction {
    match action {
        Action::Run(program) => PlanAction::Run {
            program: program.path.display().to_string(),
            tool: program.tool.to_string(),
            argv: program.launcher.iter().map(|path| name(path)).chain(argv(&program.path, program.args.iter(), named)).collect(),
            cwd: path(&program.cwd),
            env: program.env.iter().map(|(name, value)| format!("{name}={}", arg(value, named))).collect(),
            then: program.then.iter().map(|call| argv(&call.path, call.args.iter(), named)).collect(),
        },
        Action::Builtin(builtin) => PlanAction::Builtin { name: builtin.name, version: builtin.version },
    }
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

fn argv<'a>(program: &Path, args: impl Iterator<Item = &'a Arg>, named: &dyn Fn(&StepId) -> String) -> Vec<String> {
    std::iter::once(name(program)).chain(args.map(|word| arg(word, named))).collect()
}

fn inputs(step: &crate::step::Step) -> Vec<String> {
    let declared = step.inputs.iter().map(|input| match input {
        Input::File(file) => path(file),
        Input::Output(file) => output(file),
    });
    let mentioned = pieces(step).filter_map(|piece| match piece {
        Piece::Path(file) => Some(path(file)),
        Piece::Output(file) => Some(output(file)),
        Piece::OutputDir(id) => Some(format!("{{{id}}}")),
        Piece::Text(_) | Piece::Own(_) | Piece::Scratch(_) | Piece::WorkDir | Piece::Scope(_) => None,
    });
    let mut seen = std::collections::BTreeSet::new();
    declared.chain(mentioned).filter(|name| seen.insert(name.clone())).collect()
}

/// An argument as text. `named` names other steps.
pub(crate) fn arg(arg: &Arg, named: &dyn Fn(&StepId) -> String) -> String {
    arg.0.iter().fold(String::new(), |text, piece| {
        text + &match piece {
            Piece::Text(text) => text.clone(),
            Piece::Path(file) => path(file),
            Piece::Own(name) | Piece::Scratch(name) => format!("{{out}}/{name}"),
            Piece::Output(file) => format!("{{{}}}/{}", named(&file.step), file.name),
            Piece::OutputDir(id) => format!("{{{}}}", named(id)),
            Piece::WorkDir => "{work}".to_owned(),
            Piece::Scope(_) => String::new(),
        }
    })
}

fn path(path: &PathRef) -> String {
    if path.path.is_empty() { format!("{{{}}}", path.root) } else { format!("{{{}}}/{}", path.root, path.path) }
}

fn output(output: &OutputRef) -> String {
    format!("{{{}}}/{}", output.step, output.name)
}
