//! The identity of a step: what enters it, what does not, and why.
//!
//! Two questions are kept apart. *Which step is it?* is answered by the [`StepId`], made here from the description alone.
//! *Are its outputs still good?* is answered by the step's record in the work directory, which holds the content of every
//! file that the last run read and wrote. A change of the first kind makes another step with an output directory of its
//! own; a change of the second kind runs the same step again.
//!
//! | what | step id | record | why |
//! |---|---|---|---|
//! | arguments, in order, piece by piece; those that steps share by the digest of their list | yes | | they decide the result; a piece that names a file enters by its name, see below |
//! | working directory | as `root/path` | | relative arguments and depfiles depend on it |
//! | programs that run after the first one: identity, arguments, `env` | yes | | each has a part in the result |
//! | `env` | yes | | it may decide the result: the program sees nothing else |
//! | `ambient` environment (`PATH`, `TMPDIR`) | no | no | it differs from machine to machine and must not decide the result |
//! | scope of an argument | yes | | the cache asks when it matters; a step is what its description says |
//! | names that must not appear where the program looked in vain | no | yes | a new header in front of another, `__has_include` |
//! | `tool` identity of the program | yes | | another compiler makes other objects; a replaced one under the same path has another identity |
//! | content of a launcher in front of it | in `tool` | | what comes through it is believed only by those who use it |
//! | processor of the machine | in `tool`, where arguments say `native` | | `-march=native`, `-mtune=native` and `-mcpu=native` make other code on another one; all others do not look at it. It counts by what the kernel says of it (maker, family, model, stepping, cache size, features), which is what compilers go by |
//! | path of the program or of its launcher | no | no | equal tools in different places are the same tool |
//! | name, version and key of a builtin | yes | | they stand for its code and its parameters |
//! | outputs and depfile, by name | yes | | |
//! | content of the outputs | no | yes | a missing or altered output is made again |
//! | inputs, declared or mentioned, by `root/path` or `step id/name` | yes | | the same step reads the same places |
//! | content of files below mutable roots, declared, mentioned or found in the depfile | no | yes | an edit runs the step again, in the same directory |
//! | kind of what a mentioned path is (file, directory, nothing) | no | yes | an include directory may appear |
//! | content of other steps' outputs | no | yes | early cut-off: a step that ran again and made equal files wakes nobody |
//! | files below an immutable root that the step mentions | by the root's digest | no | one digest stands for thousands of headers |
//! | files below an immutable root that it does not mention | no | yes | nothing else would stand for them |
//! | files outside all roots (system headers), found in the depfile | no | yes, by absolute path | an upgrade of the system is noticed |
//! | directory that a root is bound to | no | no | the same checkout elsewhere is up to date; arguments must map paths so that it makes equal bytes |
//! | verb, label, weight, resource class | no | no | how a step is shown and scheduled |
//! | path of the step's own output directory | no | no | it is a fresh temporary one in each run |
//!
//! A list of arguments that steps share is hashed once and enters the id of each of them as that digest: a plan of 100,000 steps would
//! else spend most of its time hashing the same flags again. How arguments are cut into lists is part of a step's id, therefore, and code
//! that cuts them otherwise makes other steps of the same commands. The keys of the cache are made of the arguments one by one, so that
//! it knows the results of either; equal steps of a plan are equal because one piece of code describes them.
//!
//! The serialisation is unambiguous: every text is preceded by its length, every list by its count, every alternative by a
//! tag byte. No value of one field can be read as another's. `FORMAT` is raised when the serialisation changes meaning.
//!
//! Known limits:
//! - A header that appears in one of the compiler's own directories before the one that was used is not noticed; in all others it is, see
//!   `trace.rs`.
//! - A program that reads a file and does not say so, in arguments or depfile, has an input that nobody knows.
//! - A program that embeds the path of its own output makes different bytes in each run.
//! - A launcher that is a script counts by its own text, not by that of what it calls.
//! - A feature of the processor that the kernel has no name for is not seen.
//! - The digest is cut to 128 bits: enough against accidents, and nobody gains by forging a step of his own.

use std::collections::BTreeMap;

use crate::args::{Args, List};
use crate::graph::{GraphError, pieces};
use crate::lists::Lists;
use crate::step::{Action, Arg, Input, OutputRef, PathRef, Piece, RootBinding, RootKind, RootName, Scope, Step, StepId};

/// Names this serialisation; part of every digest.
const FORMAT: &str = "kiln step 4";

/// Hexadecimal digits of a [`StepId`].
const DIGITS: usize = 32;

/// Names the serialisation of an action, which is a step without its scoped arguments.
const ACTION: &str = "kiln action 2";

/// The identity of `step`, whose roots are bound by `roots`.
///
/// # Errors
/// [`GraphError::UnknownRoot`].
pub(crate) fn step_id(step: &Step, roots: &BTreeMap<RootName, RootBinding>, lists: &Lists) -> Result<StepId, GraphError> {
    let mut canon = Canon::new(&step.label, roots);
    canon.step(step, Some(lists))?;
    let hex = canon.hash(FORMAT).to_hex();
    Ok(StepId(hex.get(..DIGITS).unwrap_or(&hex).into()))
}

/// What stands for arguments that the step `label` shares with others, in the identity of each.
///
/// # Errors
/// [`GraphError::UnknownRoot`].
pub(crate) fn list_digest(args: &[Arg], label: &str, roots: &BTreeMap<RootName, RootBinding>) -> Result<Key, GraphError> {
    let mut canon = Canon::new(label, roots);
    canon.args(args.iter(), args.len())?;
    Ok(Key(*canon.hash(FORMAT).as_bytes()))
}

/// The scopes of a step's arguments, each once, in order of mention: the step's slots.
pub(crate) fn slots(step: &Step) -> Vec<Scope> {
    let mut slots = Vec::new();
    if let Action::Run(program) = &step.action {
        for scope in program.args.iter().filter_map(Arg::scope) {
            if !slots.contains(scope) {
                slots.push(scope.clone());
            }
        }
    }
    slots
}

/// The steps whose files a step reads one by one, each once, in order of mention. Which steps they are makes no difference: what is
/// in the files does. Not so for a step whose directory is named, since programs write down what they find in a directory by its path.
pub(crate) fn made_by(step: &Step) -> Vec<StepId> {
    let by_directory: Vec<&StepId> =
        pieces(step).filter_map(|piece| if let Piece::OutputDir(id) = piece { Some(id) } else { None }).collect();
    let mentioned = pieces(step).filter_map(|piece| if let Piece::Output(output) = piece { Some(&output.step) } else { None });
    let declared = step.inputs.iter().filter_map(|input| if let Input::Output(output) = input { Some(&output.step) } else { None });
    let mut steps: Vec<StepId> = Vec::new();
    for id in mentioned.chain(declared) {
        if !steps.contains(id) && !by_directory.contains(&id) {
            steps.push(id.clone());
        }
    }
    steps
}

/// The key of a step's manifest: the step with its slots in place of what they hold, and numbers in place of the steps `made_by`.
///
/// # Errors
/// [`GraphError::UnknownRoot`].
pub(crate) fn action_key(
    step: &Step,
    slots: &[Scope],
    made_by: &[StepId],
    roots: &BTreeMap<RootName, RootBinding>,
) -> Result<Key, GraphError> {
    let mut canon = Canon { slots: Some(slots), made_by, ..Canon::new(&step.label, roots) };
    canon.step(step, None)?;
    Ok(Key(*canon.hash(ACTION).as_bytes()))
}

/// The digest of all that the arguments of `scope` say.
///
/// # Errors
/// [`GraphError::UnknownRoot`].
pub(crate) fn scoped_digest(step: &Step, scope: &Scope, roots: &BTreeMap<RootName, RootBinding>) -> Result<Key, GraphError> {
    let mut canon = Canon::new(&step.label, roots);
    if let Action::Run(program) = &step.action {
        for arg in program.args.iter().filter(|arg| arg.scope() == Some(scope)) {
            canon.arg(arg)?;
        }
    }
    Ok(Key(*canon.hash(FORMAT).as_bytes()))
}

/// A digest by which the cache finds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Room for most descriptions.
const USUAL_LENGTH: usize = 4096;

/// Writes descriptions, unambiguously.
struct Canon<'a> {
    /// What was written: hashed at once, since a hasher that is fed word by word takes several times as long.
    bytes: Vec<u8>,
    roots: &'a BTreeMap<RootName, RootBinding>,
    label: &'a str,
    /// Stand for the arguments that have a scope; none where these are written out.
    slots: Option<&'a [Scope]>,
    /// Steps whose numbers stand for them.
    made_by: &'a [StepId],
}

impl<'a> Canon<'a> {
    fn new(label: &'a str, roots: &'a BTreeMap<RootName, RootBinding>) -> Self {
        Self { bytes: Vec::with_capacity(USUAL_LENGTH), roots, label, slots: None, made_by: &[] }
    }

    /// The hash of what was written, in the named serialisation.
    fn hash(&self, serialisation: &str) -> blake3::Hash {
        blake3::Hash::from_bytes(blake3::derive_key(serialisation, &self.bytes))
    }

    /// Writes a step. Of shared lists their digests, where `lists` are given, and else all arguments, however they are shared.
    fn step(&mut self, step: &Step, lists: Option<&Lists>) -> Result<(), GraphError> {
        match &step.action {
            Action::Run(program) => {
                self.tag(0);
                self.text(&program.tool);
                match lists {
                    Some(lists) => self.lists(&program.args, lists)?,
                    None => self.args(program.args.iter(), program.args.len())?,
                }
                self.path(&program.cwd)?;
                self.environment(&program.env)?;
                match &program.depfile {
                    None => self.tag(0),
                    Some(name) => {
                        self.tag(1);
                        self.text(name);
                    }
                }
                self.count(program.then.len());
                for call in &program.then {
                    self.text(&call.tool);
                    self.args(call.args.iter(), call.args.len())?;
                    self.environment(&call.env)?;
                }
            }
            Action::Builtin(builtin) => {
                self.tag(1);
                self.text(builtin.name);
                self.bytes.extend(builtin.version.to_le_bytes());
                self.text(&builtin.key);
            }
        }
        self.count(step.inputs.len());
        for input in &step.inputs {
            match input {
                Input::File(path) => {
                    self.tag(0);
                    self.path(path)?;
                }
                Input::Output(output) => {
                    self.tag(1);
                    self.output(output);
                }
            }
        }
        self.count(step.outputs.len());
        for name in &step.outputs {
            self.text(name);
        }
        Ok(())
    }

    fn args<'b>(&mut self, mut args: impl Iterator<Item = &'b Arg>, count: usize) -> Result<(), GraphError> {
        self.count(count);
        args.try_for_each(|arg| self.arg(arg))
    }

    fn lists(&mut self, args: &Args, lists: &Lists) -> Result<(), GraphError> {
        self.count(args.lists().len());
        for list in args.lists() {
            match list {
                List::Own(args) => {
                    self.tag(0);
                    self.args(args.iter(), args.len())?;
                }
                List::Shared(list) => {
                    self.tag(1);
                    let digest = match lists.get(list) {
                        Some(known) => known.digest,
                        None => list_digest(list, self.label, self.roots)?,
                    };
                    self.bytes.extend(digest.0);
                }
            }
        }
        Ok(())
    }

    fn environment(&mut self, env: &BTreeMap<String, Arg>) -> Result<(), GraphError> {
        self.count(env.len());
        for (name, value) in env {
            self.text(name);
            self.arg(value)?;
        }
        Ok(())
    }

    fn arg(&mut self, arg: &Arg) -> Result<(), GraphError> {
        if let (Some(slots), Some(scope)) = (self.slots, arg.scope()) {
            self.tag(9);
            self.count(slots.iter().position(|slot| slot == scope).unwrap_or(slots.len()));
            self.tag(match scope {
                Scope::Word(_) => 0,
                Scope::Root(_) => 1,
            });
            return Ok(());
        }
        self.count(arg.0.len());
        for piece in &arg.0 {
            match piece {
                Piece::Text(text) => {
                    self.tag(0);
                    self.text(text);
                }
                Piece::Path(path) => {
                    self.tag(1);
                    self.path(path)?;
                }
                Piece::Own(name) => {
                    self.tag(2);
                    self.text(name);
                }
                Piece::Output(output) => {
                    self.tag(3);
                    self.output(output);
                }
                Piece::OutputDir(id) => {
                    self.tag(4);
                    self.text(id.as_str());
                }
                Piece::WorkDir => self.tag(5),
                Piece::Scope(Scope::Word(word)) => {
                    self.tag(6);
                    self.text(word);
                }
                Piece::Scope(Scope::Root(root)) => {
                    self.tag(7);
                    self.text(root.as_str());
                }
                Piece::Scratch(name) => {
                    self.tag(8);
                    self.text(name);
                }
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &PathRef) -> Result<(), GraphError> {
        let binding =
            self.roots.get(&path.root).ok_or_else(|| GraphError::UnknownRoot { label: self.label.to_owned(), root: path.root.clone() })?;
        self.text(path.root.as_str());
        match &binding.kind {
            RootKind::Mutable => self.tag(0),
            RootKind::Immutable { digest } => {
                self.tag(1);
                self.text(digest);
            }
        }
        self.text(&path.path);
        Ok(())
    }

    fn output(&mut self, output: &OutputRef) {
        match self.made_by.iter().position(|step| *step == output.step) {
            Some(number) => {
                self.tag(1);
                self.count(number);
            }
            None => {
                self.tag(0);
                self.text(output.step.as_str());
            }
        }
        self.text(&output.name);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.bytes.extend((count as u64).to_le_bytes());
    }

    fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }
}
