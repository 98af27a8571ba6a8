//! The graph: steps joined by the files they make, equal steps once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use crate::args::List;
use crate::fingerprint;
use crate::lists::{Known, Lists};
use crate::step::{Action, Arg, Input, OutputRef, PathRef, Piece, Program, RootBinding, RootName, Scope, Step, StepId};

/// Why a step, root or target cannot enter a graph. Each one is a fault of the code that describes the step, not of a user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A root got a second, different directory or kind.
    #[error("root `{root}` is already bound to another directory or digest")]
    RootRebound {
        /// The root.
        root: RootName,
    },
    /// A root's directory is not absolute.
    #[error("root `{root}` is bound to the relative path `{}`", dir.display())]
    RelativeRoot {
        /// The root.
        root: RootName,
        /// Its directory.
        dir: PathBuf,
    },
    /// A step names a root that is not bound.
    #[error("step `{label}` names the unknown root `{root}`")]
    UnknownRoot {
        /// Label of the step.
        label: String,
        /// The root.
        root: RootName,
    },
    /// A path below a root is absolute, or has empty, `.` or `..` components.
    #[error("step `{label}` names `{path}` below root `{root}`, which is not a plain relative path")]
    BadPath {
        /// Label of the step.
        label: String,
        /// The root.
        root: RootName,
        /// The path.
        path: String,
    },
    /// A step makes nothing.
    #[error("step `{label}` has no output")]
    NoOutput {
        /// Label of the step.
        label: String,
    },
    /// The name of an output or depfile is empty, absolute, or has empty, `.` or `..` components.
    #[error("step `{label}` has an output called `{name}`, which is not a plain relative path")]
    BadOutputName {
        /// Label of the step.
        label: String,
        /// The name.
        name: String,
    },
    /// Two outputs (the depfile counts) have one name, or one would be a directory of the other.
    #[error("step `{label}` has outputs that collide at `{name}`")]
    OutputCollision {
        /// Label of the step.
        label: String,
        /// The second of the two names.
        name: String,
    },
    /// An argument mentions an own file that is neither an output nor the depfile.
    #[error("step `{label}` mentions its own file `{name}`, which it does not declare")]
    UnknownOwn {
        /// Label of the step.
        label: String,
        /// The name.
        name: String,
    },
    /// An argument of a further program has a scope.
    #[error("step `{label}` has a scope on an argument of `{program}`, which is not its first program")]
    LateScope {
        /// Label of the step.
        label: String,
        /// The program.
        program: String,
    },
    /// A step or target needs a step that is not in the graph (yet).
    #[error("`{needed_by}` needs step `{step}`, which is not in the graph")]
    UnknownStep {
        /// Label of the step, or name of the target.
        needed_by: String,
        /// The missing step.
        step: StepId,
    },
    /// A step or target needs an output that its step does not make.
    #[error("`{needed_by}` needs output `{name}`, which step `{step}` does not make")]
    UnknownOutput {
        /// Label of the step, or name of the target.
        needed_by: String,
        /// The step.
        step: StepId,
        /// The name.
        name: String,
    },
    /// The name of an environment variable is empty or has `=` or a NUL byte.
    #[error("step `{label}` sets an environment variable called `{name}`")]
    BadEnvironment {
        /// Label of the step.
        label: String,
        /// The name.
        name: String,
    },
    /// A target got a second, different list of files.
    #[error("target `{target}` is already in the graph with other files")]
    TargetRedefined {
        /// Name of the target.
        target: String,
    },
}

/// A step in its graph.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: StepId,
    pub(crate) step: Step,
    /// Nodes that make an input of this one, ascending, once each. Always smaller than the node's own index.
    pub(crate) dependencies: Vec<usize>,
}

/// A named set of files that a build wants.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) outputs: Vec<OutputRef>,
}

/// Steps joined by the files they make. The graphs of all variants are one graph; equal steps are one step.
///
/// A step can only name steps that are already in the graph, so a graph has no cycles and the order of insertion is a
/// topological one. It is also the order of everything that a graph or a run of it lists.
#[derive(Debug, Default)]
pub struct Graph {
    roots: BTreeMap<RootName, RootBinding>,
    nodes: Vec<Node>,
    index: HashMap<StepId, usize, BuildHasherDefault<DigestHasher>>,
    lists: Lists,
    targets: Vec<Target>,
}

/// Hashes what is a digest already: its letters, joined.
#[derive(Debug, Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let word = word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Graph {
    /// A graph without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where the root `name` lies. Roots are bound before the steps that name them.
    ///
    /// # Errors
    /// [`GraphError::RelativeRoot`], or [`GraphError::RootRebound`] when the root already has another binding.
    pub fn bind_root(&mut self, name: RootName, binding: RootBinding) -> Result<(), GraphError> {
        if !binding.dir.is_absolute() {
            return Err(GraphError::RelativeRoot { root: name, dir: binding.dir });
        }
        match self.roots.get(&name) {
            Some(known) if *known != binding => Err(GraphError::RootRebound { root: name }),
            Some(_) => Ok(()),
            None => {
                self.roots.insert(name, binding);
                Ok(())
            }
        }
    }

    /// Adds a step and gives its identity. A step that is already in the graph is not added again, whatever its verb,
    /// label, weight, resource class, program path and ambient environment: those of the first one stay.
    ///
    /// # Errors
    /// Every way in which a description can contradict itself or the graph, see [`GraphError`].
    pub fn add(&mut self, step: Step) -> Result<StepId, GraphError> {
        let mut lists = std::mem::take(&mut self.lists);
        let learned = lists.learn(&step, |list| self.learn(&step.label, list));
        self.lists = lists;
        learned?;
        let dependencies = self.check(&step)?;
        let id = fingerprint::step_id(&step, &self.roots, &self.lists)?;
        if let Entry::Vacant(new) = self.index.entry(id.clone()) {
            new.insert(self.nodes.len());
            self.nodes.push(Node { id: id.clone(), step, dependencies });
        }
        Ok(id)
    }

    /// Names a set of files that the build wants, so that events and outcomes can say when all of it is there.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`], [`GraphError::UnknownOutput`], or [`GraphError::TargetRedefined`].
    pub fn add_target(&mut self, name: impl Into<String>, outputs: Vec<OutputRef>) -> Result<(), GraphError> {
        let name = name.into();
        for output in &outputs {
            self.find_output(&name, output)?;
        }
        match self.targets.iter().find(|target| target.name == name) {
            Some(known) if known.outputs != outputs => Err(GraphError::TargetRedefined { target: name }),
            Some(_) => Ok(()),
            None => {
                self.targets.push(Target { name, outputs });
                Ok(())
            }
        }
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the graph has no steps.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The step `id`, if it is in the graph.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.node(id).map(|node| &node.step)
    }

    /// All steps in the order in which they were added, which is a topological order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (&StepId, &Step)> {
        self.nodes.iter().map(|node| (&node.id, &node.step))
    }

    /// All targets with their files, in the order in which they were added.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = (&str, &[OutputRef])> {
        self.targets.iter().map(|target| (target.name.as_str(), target.outputs.as_slice()))
    }

    /// All roots, sorted by name.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = (&RootName, &RootBinding)> {
        self.roots.iter()
    }

    /// The binding of a root.
    pub fn root(&self, name: &RootName) -> Option<&RootBinding> {
        self.roots.get(name)
    }

    pub(crate) fn root_bindings(&self) -> &BTreeMap<RootName, RootBinding> {
        &self.roots
    }

    /// The steps whose outputs `id` needs directly, in graph order; nothing if `id` is unknown.
    pub fn dependencies(&self, id: &StepId) -> impl Iterator<Item = &StepId> {
        self.node(id).into_iter().flat_map(|node| &node.dependencies).filter_map(|&index| self.nodes.get(index)).map(|node| &node.id)
    }

    /// For each target, in order, which steps it needs: indices in graph order.
    pub(crate) fn target_closures(&self) -> Vec<BTreeSet<usize>> {
        self.targets.iter().map(|target| self.closure(target.outputs.iter().filter_map(|output| self.position(&output.step)))).collect()
    }

    /// `from` and everything that it needs, directly or not.
    pub(crate) fn closure(&self, from: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut open: Vec<usize> = from.into_iter().collect();
        while let Some(index) = open.pop() {
            if seen.insert(index) {
                open.extend(self.nodes.get(index).into_iter().flat_map(|node| node.dependencies.iter().copied()));
            }
        }
        seen
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn position(&self, id: &StepId) -> Option<usize> {
        self.index.get(id).copied()
    }

    fn node(&self, id: &StepId) -> Option<&Node> {
        self.nodes.get(self.position(id)?)
    }

    /// Checks a description against itself and the graph; gives the nodes it needs.
    fn check(&self, step: &Step) -> Result<Vec<usize>, GraphError> {
        let label = &step.label;
        let depfile = match &step.action {
            Action::Run(program) => program.depfile.as_deref(),
            Action::Builtin(_) => None,
        };
        if step.outputs.is_empty() {
            return Err(GraphError::NoOutput { label: label.clone() });
        }
        let mut names: Vec<&str> = Vec::with_capacity(step.outputs.len() + 1);
        for name in step.outputs.iter().map(String::as_str).chain(depfile) {
            if name.is_empty() || !is_plain(name) {
                return Err(GraphError::BadOutputName { label: label.clone(), name: name.to_owned() });
            }
            names.push(name);
        }
        names.sort_unstable();
        let twice = names.windows(2).find_map(|pair| (pair.first() == pair.last()).then(|| pair.last()).flatten());
        let below = || names.iter().find(|name| parents(name).any(|parent| names.binary_search(&parent).is_ok()));
        if let Some(name) = twice.or_else(below) {
            return Err(GraphError::OutputCollision { label: label.clone(), name: (*name).to_owned() });
        }

        let mut dependencies = Vec::new();
        for input in &step.inputs {
            match input {
                Input::File(path) => self.check_path(label, path)?,
                Input::Output(output) => dependencies.push(self.find_output(label, output)?),
            }
        }
        if let Action::Run(program) = &step.action {
            self.check_path(label, &program.cwd)?;
            if let Some(name) = program.env.keys().chain(program.ambient.keys()).find(|name| !is_variable(name)) {
                return Err(GraphError::BadEnvironment { label: label.clone(), name: name.clone() });
            }
            for call in &program.then {
                if let Some(name) = call.env.keys().find(|name| !is_variable(name)) {
                    return Err(GraphError::BadEnvironment { label: label.clone(), name: name.clone() });
                }
                if call.args.iter().any(|arg| arg.scope().is_some()) {
                    return Err(GraphError::LateScope { label: label.clone(), program: call.path.display().to_string() });
                }
            }
        }
        let check = |piece: &Piece, dependencies: &mut Vec<usize>| {
            check_own(label, &names, piece)?;
            dependencies.extend(self.check_other(label, piece)?);
            Ok(())
        };
        if let Action::Run(program) = &step.action {
            for list in program.args.lists() {
                match list {
                    List::Own(args) => args.iter().flat_map(|arg| &arg.0).try_for_each(|piece| check(piece, &mut dependencies))?,
                    // Learned already: what it mentions of other steps is there.
                    List::Shared(list) => {
                        let known = self.lists.get(list).into_iter();
                        known.clone().flat_map(|known| &known.own).try_for_each(|piece| check_own(label, &names, piece))?;
                        dependencies.extend(known.flat_map(|known| &known.dependencies));
                    }
                }
            }
            other_args(program).flat_map(|arg| &arg.0).try_for_each(|piece| check(piece, &mut dependencies))?;
        }
        dependencies.sort_unstable();
        dependencies.dedup();
        Ok(dependencies)
    }

    /// What there is to know of a list of arguments that the step `label` shares with others.
    fn learn(&self, label: &str, list: &Arc<[Arg]>) -> Result<Known, GraphError> {
        let mut dependencies = BTreeSet::new();
        for piece in list.iter().flat_map(|arg| &arg.0) {
            dependencies.extend(self.check_other(label, piece)?);
        }
        Ok(Known::new(list, fingerprint::list_digest(list, label, &self.roots)?, dependencies.into_iter().collect()))
    }

    /// Checks what a piece mentions of roots and of other steps; gives the node that it needs.
    fn check_other(&self, label: &str, piece: &Piece) -> Result<Option<usize>, GraphError> {
        match piece {
            Piece::Text(_) | Piece::WorkDir | Piece::Own(_) | Piece::Scratch(_) | Piece::Scope(Scope::Word(_)) => Ok(None),
            Piece::Scope(Scope::Root(root)) => {
                self.check_path(label, &PathRef { root: root.clone(), path: String::new() })?;
                Ok(None)
            }
            Piece::Path(path) => {
                self.check_path(label, path)?;
                Ok(None)
            }
            Piece::Output(output) => self.find_output(label, output).map(Some),
            Piece::OutputDir(id) => {
                let unknown = || GraphError::UnknownStep { needed_by: label.to_owned(), step: id.clone() };
                self.position(id).ok_or_else(unknown).map(Some)
            }
        }
    }

    fn check_path(&self, label: &str, path: &PathRef) -> Result<(), GraphError> {
        if !self.roots.contains_key(&path.root) {
            return Err(GraphError::UnknownRoot { label: label.to_owned(), root: path.root.clone() });
        }
        if !path.path.is_empty() && !is_plain(&path.path) {
            return Err(GraphError::BadPath { label: label.to_owned(), root: path.root.clone(), path: path.path.clone() });
        }
        Ok(())
    }

    fn find_output(&self, needed_by: &str, output: &OutputRef) -> Result<usize, GraphError> {
        let unknown = || GraphError::UnknownStep { needed_by: needed_by.to_owned(), step: output.step.clone() };
        let index = self.position(&output.step).ok_or_else(unknown)?;
        let node = self.nodes.get(index).ok_or_else(unknown)?;
        if node.step.outputs.contains(&output.name) {
            Ok(index)
        } else {
            Err(GraphError::UnknownOutput { needed_by: needed_by.to_owned(), step: output.step.clone(), name: output.name.clone() })
        }
    }
}

/// Checks what a piece mentions of the very step `label`, which makes the files called `names`, sorted.
fn check_own(label: &str, names: &[&str], piece: &Piece) -> Result<(), GraphError> {
    match piece {
        Piece::Own(name) if names.binary_search(&name.as_str()).is_err() => {
            Err(GraphError::UnknownOwn { label: label.to_owned(), name: name.clone() })
        }
        Piece::Scratch(name) if !is_plain(name) || name.contains('/') => {
            Err(GraphError::BadOutputName { label: label.to_owned(), name: name.clone() })
        }
        Piece::Scratch(name) if names.binary_search(&name.as_str()).is_ok() => {
            Err(GraphError::OutputCollision { label: label.to_owned(), name: name.clone() })
        }
        _ => Ok(()),
    }
}

/// Every piece of a step's arguments and environment, in order; nothing for a builtin.
pub(crate) fn pieces(step: &Step) -> impl Iterator<Item = &Piece> {
    let program = match &step.action {
        Action::Run(program) => Some(program),
        Action::Builtin(_) => None,
    };
    program.into_iter().flat_map(|program| program.args.iter().chain(other_args(program))).flat_map(|arg| &arg.0)
}

/// The values of the environment, then arguments and environment of the programs that run after the first one.
fn other_args(program: &Program) -> impl Iterator<Item = &Arg> {
    program.env.values().chain(program.then.iter().flat_map(|call| call.args.iter().chain(call.env.values())))
}

/// Whether `path` is relative, with `/` between names and without empty, `.` or `..` names or NUL bytes.
fn is_plain(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// The proper parents of a plain path: `a` and `a/b` for `a/b/c`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
