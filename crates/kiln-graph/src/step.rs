//! What a step is: a program run or a builtin, described without any location.
//!
//! A step names files relative to a [`RootName`]; directories are bound to roots only when a graph runs. So the
//! identity of a step ([`StepId`]) is the same in every checkout, and equal steps of several variants are one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::Args;

/// The name of a directory that is bound to a place only when a graph runs, such as `project` or `torch-2.13.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootName(Arc<str>);

impl RootName {
    /// A root called `name`.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RootName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the files below a root enter a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// Files may change at any time: each one that a step reads is fingerprinted by content.
    Mutable,
    /// The whole tree never changes under its digest, which stands for every file in it (a provisioned header tree).
    Immutable {
        /// Digest of the tree, as lower-case hexadecimal text.
        digest: String,
    },
}

/// Where a root lies on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootBinding {
    /// The directory, absolute.
    pub dir: PathBuf,
    /// How files below it enter a fingerprint.
    pub kind: RootKind,
}

impl RootBinding {
    /// Where the file or directory is that lies at `path` below the root.
    pub fn file(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }
}

/// A file or directory below a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathRef {
    /// The root that `path` is relative to.
    pub root: RootName,
    /// Relative path with `/` separators and without `.` or `..` components; empty for the root itself.
    pub path: String,
}

/// The identity of a step: a digest of everything in its description, never of a location or of file contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub(crate) Arc<str>);

impl StepId {
    /// The identity as 32 lower-case hexadecimal digits; also the name of the step's output directory.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One output file of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputRef {
    /// The step that makes the file.
    pub step: StepId,
    /// One of the step's [`Step::outputs`].
    pub name: String,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// The absolute path of a file or directory below a root.
    Path(PathRef),
    /// The absolute path of an output (or the depfile) of this very step, by name.
    Own(String),
    /// The absolute path of a file beside the outputs of this very step that is no output: it is gone when the step is done.
    Scratch(String),
    /// The absolute path of another step's output file; also an input of this step.
    Output(OutputRef),
    /// The absolute path of another step's output directory (for `-I`); every output of that step is an input.
    OutputDir(StepId),
    /// The absolute path of the work directory, below which all outputs are made and kept, for prefix maps.
    WorkDir,
    /// No text: the whole argument counts for the cache only where the scope does.
    Scope(Scope),
}

/// When an argument can make a difference. A step whose inputs show that it makes none has the result of an equal step
/// with another value of it, or of one run long ago. Every argument that carries a scope must be without effect outside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Only where a file that the step reads, or another argument, has this identifier (`-DNAME=value`).
    Word(Arc<str>),
    /// Only where the step reads a file below this root, or asks whether one is there (`-isystem {root}/include`).
    Root(RootName),
}

/// One argument of a program: pieces that are joined without a separator when the step runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arg(pub Vec<Piece>);

impl Arg {
    /// An argument of literal text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Piece::Text(text.into())])
    }

    /// This argument followed by one more piece.
    #[must_use]
    pub fn with(mut self, piece: Piece) -> Self {
        self.0.push(piece);
        self
    }

    /// This argument, which counts for the cache only where `scope` does.
    #[must_use]
    pub fn scoped(self, scope: Scope) -> Self {
        self.with(Piece::Scope(scope))
    }

    /// The scope of the argument; none for one that always counts.
    pub fn scope(&self) -> Option<&Scope> {
        self.0.iter().find_map(|piece| match piece {
            Piece::Scope(scope) => Some(scope),
            _ => None,
        })
    }

    /// This argument followed by literal text.
    #[must_use]
    pub fn and(self, text: impl Into<String>) -> Self {
        self.with(Piece::Text(text.into()))
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Arg {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<PathRef> for Arg {
    fn from(path: PathRef) -> Self {
        Self(vec![Piece::Path(path)])
    }
}

impl From<OutputRef> for Arg {
    fn from(output: OutputRef) -> Self {
        Self(vec![Piece::Output(output)])
    }
}

/// A declared input of a step, beside what its arguments mention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file below a root.
    File(PathRef),
    /// A file that another step makes.
    Output(OutputRef),
}

/// The program that a step runs: no shell, no inherited environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program file, absolute. Its path is no part of the step's identity; [`Program::tool`] is.
    pub path: Arc<Path>,
    /// A program that is started in its place, with `path` and the arguments as arguments. Its path is no part of the identity either.
    pub launcher: Option<Arc<Path>>,
    /// Identity of the program: a digest that changes when the tool does, when its launcher does, and when what it looks at of the
    /// machine does, where arguments make it look.
    pub tool: Arc<str>,
    /// Arguments, without the program itself.
    pub args: Args,
    /// Working directory.
    pub cwd: PathRef,
    /// The whole environment of the process. Part of the identity.
    pub env: Arc<BTreeMap<String, Arg>>,
    /// Environment that the process needs to work but that must not decide its result (`PATH`): not part of the
    /// identity. [`Program::env`] wins. `TMPDIR` is a fresh directory that goes with the run unless either of them has it.
    pub ambient: Arc<BTreeMap<String, PathBuf>>,
    /// Name of the depfile (Make syntax) that the program writes beside its outputs, mentioned as [`Piece::Own`].
    pub depfile: Option<String>,
    /// Programs that run after it, one after the other, each if the one before ended well. They read what the first one read, by its
    /// depfile, and what was made before them.
    pub then: Vec<Call>,
}

/// A further program of a step. It runs in the directory of the step's outputs, where it may call them by their names alone: what it
/// embeds of such a name is the same wherever the directory is.
#[derive(Clone, Debug)]
pub struct Call {
    /// The program file, absolute. As [`Program::path`].
    pub path: PathBuf,
    /// Identity of the program. As [`Program::tool`].
    pub tool: String,
    /// Arguments, without the program itself. None of them may have a scope.
    pub args: Vec<Arg>,
    /// What it has in its environment beside that of the first program.
    pub env: BTreeMap<String, Arg>,
}

/// What a builtin reads and writes.
#[derive(Debug)]
pub struct BuiltinContext<'a> {
    /// The declared inputs, in the order of [`Step::inputs`], as paths on this machine.
    pub inputs: &'a [PathBuf],
    /// The directory to write every one of [`Step::outputs`] to.
    pub out_dir: &'a std::path::Path,
}

impl BuiltinContext<'_> {
    /// Writes an output.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn write(&self, output: &str, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        std::fs::write(self.out_dir.join(output), bytes)
    }

    /// Makes an output of the file at `input`.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn copy(&self, input: &std::path::Path, output: &str) -> std::io::Result<()> {
        std::fs::copy(input, self.out_dir.join(output)).map(|_| ())
    }
}

/// Why a builtin failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinError {
    /// A stable, kebab-case name of the kind of failure, for programs and manuals.
    pub code: &'static str,
    /// Text for the user, lower case, without a full stop at the end; may have several lines.
    pub message: String,
    /// What the user can do about it; may have several lines.
    pub hint: Option<String>,
}

impl BuiltinError {
    /// An error without a hint.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }
}

/// The function of a builtin.
pub type BuiltinFn = dyn Fn(&BuiltinContext<'_>) -> Result<(), BuiltinError> + Send + Sync;

/// A pure function with a key. Its result may depend on nothing but `name`, `version`, `key` and the inputs.
#[derive(Clone)]
pub struct Builtin {
    /// What the function is called, such as `write-file` or `link-stubs`.
    pub name: &'static str,
    /// Raised whenever the function's results change.
    pub version: u32,
    /// Everything else that decides the result.
    pub key: String,
    /// The function.
    pub run: Arc<BuiltinFn>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").field("name", &self.name).field("version", &self.version).field("key", &self.key).finish()
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a program.
    Run(Program),
    /// Calls a pure function of Kiln's own.
    Builtin(Builtin),
}

/// What a step competes for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceClass {
    /// Processor time (compilers).
    #[default]
    Cpu,
    /// Memory more than processor time (linkers).
    Link,
    /// Cheap work in this process, which needs no job of a make that Kiln runs under.
    Light,
}

/// What a step is expected to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Expected processor time in ms.
    pub cpu_ms: u32,
    /// Expected peak memory in MiB.
    pub memory_mib: u32,
}

/// One unit of work. Pure description.
#[derive(Clone, Debug)]
pub struct Step {
    /// What the user sees being done: `Compiling`, `Linking`, `Generating`.
    pub verb: &'static str,
    /// What it is done to, such as `cpu/relu.cpp`.
    pub label: String,
    /// The work.
    pub action: Action,
    /// Inputs beside those that the arguments mention.
    pub inputs: Vec<Input>,
    /// Names of the files it makes in its own output directory. Relative, `/`-separated.
    pub outputs: Vec<String>,
    /// Expected cost.
    pub weight: Weight,
    /// What it competes for.
    pub resource: ResourceClass,
}
