//! Brings one step up to date: checks it, runs it, and records what it read and made.
//!
//! What is on disk is judged by what is there, never by how it came there. So a process may be killed at any moment and
//! the next one needs no journal:
//!
//! | killed | leaves | next time |
//! |---|---|---|
//! | while the program runs, or before it | `tmp/<unique>/`, perhaps a program that runs on in it | `tmp/` is emptied; the record, if any, is of an older state: the step runs unless the inputs are back to it |
//! | while outputs are hashed or tidied in `tmp/<unique>/o` | the same | the same |
//! | after the outputs were exchanged, before the record | new outputs, an old record or none | the outputs are not those of the record: the step runs. If they are (same bytes) and the inputs too, nothing was lost |
//! | between the two renames, where there is no exchange | no outputs, an old record | output missing: the step runs |
//! | while the record is written | a file in `tmp/` | as before the record |
//! | after the record was renamed | a complete step; its old outputs in `tmp/` | up to date |
//! | while a record is refreshed | the old or the new one | both are true |
//! | while old steps are pruned | outputs without a record, or a part of them | no record, if the step ever comes back |
//! | while the lock file is written | a lock file without a number | nobody holds the lock |
//!
//! A failed step leaves its old outputs and record as they are: they are still what the record says.
//!
//! An input that changes *while* the step runs is recorded as unknown, which no content equals, and so the step runs again
//! next time. For files that were known before (declared, mentioned, or read by the last run) that is any change of their
//! stamp between a hash taken before the start and the end. For a file that shows up in the depfile only, it is a ctime that
//! is not before the start by the file system's own clock. If that clock is not that of the file (a network file
//! system), this errs at most once: the next run knows the file beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::check::{Now, Verdict, judge};
use crate::content::{Content, Files, Stat, State, stat};
use crate::depfile;
use crate::event::{Failure, Reason};
use crate::graph::{Graph, Node, pieces};
use crate::interrupt::Interrupt;
use crate::place::{Found, Place, Places};
use crate::process::Groups;
use crate::record::{Entry, Made, Record};
use crate::room::Room;
use crate::step::{Action, Arg, BuiltinContext, BuiltinError, Input, OutputRef, PathRef, Piece, Program, RootKind, RootName, StepId};
use crate::workdir::LockedWorkDir;

/// What all steps of a run share.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) work_dir: &'a LockedWorkDir,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) places: Places<'a>,
    pub(crate) files: Files,
    pub(crate) groups: Groups,
    /// What each step that is done made, in the order of its outputs.
    products: Vec<OnceLock<Vec<Content>>>,
    ticked: OnceLock<()>,
}

/// How a step that had to run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: Result<(), Failure>,
    pub(crate) command: Option<Vec<String>>,
    /// What the program wrote.
    pub(crate) output: Vec<u8>,
    /// How long the program or builtin ran.
    pub(crate) duration: Duration,
}

impl<'a> Run<'a> {
    pub(crate) fn new(graph: &'a Graph, work_dir: &'a LockedWorkDir, interrupt: &'a Interrupt) -> Self {
        Self {
            graph,
            work_dir,
            interrupt,
            places: Places::new(graph, work_dir),
            files: Files::default(),
            groups: Groups::default(),
            products: graph.nodes().iter().map(|_| OnceLock::new()).collect(),
            ticked: OnceLock::new(),
        }
    }

    /// Loads a step's record and looks at its inputs, so that a later check finds them looked at.
    pub(crate) fn prepare(&self, node: &Node) -> Option<Record> {
        let record = Record::load(&self.work_dir.record_path(&node.id), &node.id)?;
        for entry in &record.inputs {
            self.stat(&entry.place);
        }
        Some(record)
    }

    /// Brings the step at `index` up to date; everything that it needs is. `None` if it did not have to run; otherwise
    /// `starts` was called first.
    pub(crate) fn settle(&self, index: usize, record: Option<&Record>, starts: &dyn Fn(Reason, Option<Vec<String>>)) -> Option<Ran> {
        let node = &self.graph.nodes()[index];
        match judge(&node.id, &node.step, record, self) {
            Verdict::UpToDate { product, refreshed } => {
                if let Some(record) = refreshed
                    && let Err(error) = self.save(&node.id, &record)
                {
                    tracing::debug!("cannot refresh the record of `{}`: {error}", node.id);
                }
                let _ = self.products[index].set(product);
                None
            }
            Verdict::Dirty(reason) => {
                let command = self.command_text(node);
                starts(reason, command.clone());
                let mut ran = Ran { result: Ok(()), command, output: Vec::new(), duration: Duration::ZERO };
                ran.result = self.execute(index, record, &mut ran);
                Some(ran)
            }
        }
    }

    fn execute(&self, index: usize, record: Option<&Record>, ran: &mut Ran) -> Result<(), Failure> {
        let node = &self.graph.nodes()[index];
        let before = self.snapshot(node, record);
        let depfile = match &node.step.action {
            Action::Run(program) => program.depfile.as_deref(),
            Action::Builtin(_) => None,
        };
        let files = node.step.outputs.iter().map(String::as_str).chain(depfile);
        let room = Room::new(self.work_dir, &node.id, files).map_err(io("make a directory in", &self.work_dir.tmp_dir()))?;
        let clock = io("write to", &self.work_dir.tmp_dir());
        if depfile.is_some() && self.ticked.set(()).is_ok() {
            room.wait_for_tick().map_err(&clock)?;
        }
        let since = room.time().map_err(&clock)?;

        let start = Instant::now();
        let result = match &node.step.action {
            Action::Run(program) => self.run_program(program, &room),
            Action::Builtin(builtin) => {
                let inputs: Vec<PathBuf> = node.step.inputs.iter().map(|input| self.input_path(input)).collect();
                let context = BuiltinContext { inputs: &inputs, out_dir: &room.out_dir() };
                match catch_unwind(AssertUnwindSafe(|| (builtin.run)(&context))) {
                    Ok(result) => result.map_err(|BuiltinError { code, message, hint }| Failure::Builtin { code, message, hint }),
                    Err(panic) => Err(Failure::Panic { message: panic_text(panic.as_ref()).to_owned() }),
                }
            }
        };
        ran.duration = start.elapsed();
        ran.output = room.read_log().map_err(io("read the log in", &self.work_dir.tmp_dir()))?;
        if let (Err(_), Action::Run(_)) = (&result, &node.step.action) {
            // The command that is shown writes there: without the directory it would fail in another way when it is run by hand.
            let _shown_only = fs::create_dir_all(self.work_dir.step_dir(&node.id));
        }
        result?;

        let discovered = match depfile {
            None => BTreeSet::new(),
            Some(name) => self.discovered(node, name, &room)?,
        };
        let (product, outputs) = self.collect(node, &room)?;
        let shadows = Self::shadows(node, &discovered);
        let mut inputs = self.inputs(node, before, discovered, since);
        inputs.extend(self.absent(shadows, since));
        let record = Record { inputs, outputs };
        room.publish(self.work_dir, &node.id).map_err(io("replace", &self.work_dir.step_dir(&node.id)))?;
        self.save(&node.id, &record).map_err(io("write", &self.work_dir.record_path(&node.id)))?;
        let _ = self.products[index].set(product);
        Ok(())
    }

    /// The content of every file that the step is known to read.
    fn snapshot(&self, node: &Node, record: Option<&Record>) -> BTreeMap<Place, Content> {
        let recorded = record.into_iter().flat_map(|record| record.inputs.iter().map(|entry| entry.place.clone()));
        self.declared(node)
            .into_iter()
            .chain(recorded)
            .map(|place| {
                let content = match &place {
                    Place::Output(output) => self.product(output),
                    _ => self.places.path(&place).map(|path| self.files.fresh(&path)),
                };
                (place, content.unwrap_or(Content::UNKNOWN))
            })
            .collect()
    }

    /// The files that the description names, but for those that an immutable root's digest stands for.
    fn declared(&self, node: &Node) -> BTreeSet<Place> {
        let mut places = BTreeSet::new();
        let add_path = |places: &mut BTreeSet<Place>, path: &PathRef| {
            if !self.is_immutable(&path.root) {
                places.insert(Place::from(path));
            }
        };
        for input in &node.step.inputs {
            match input {
                Input::File(path) => add_path(&mut places, path),
                Input::Output(output) => {
                    places.insert(Place::Output(output.clone()));
                }
            }
        }
        for piece in pieces(&node.step) {
            match piece {
                Piece::Path(path) => add_path(&mut places, path),
                Piece::Output(output) => {
                    places.insert(Place::Output(output.clone()));
                }
                Piece::OutputDir(id) => {
                    let names = self.graph.step(id).map(|step| step.outputs.as_slice()).unwrap_or_default();
                    places.extend(names.iter().map(|name| Place::Output(OutputRef { step: id.clone(), name: name.clone() })));
                }
                Piece::Text(_) | Piece::Own(_) | Piece::WorkDir => {}
            }
        }
        places
    }

    /// The files of the depfile, but for those that an immutable root's digest stands for.
    fn discovered(&self, node: &Node, depfile: &str, room: &Room) -> Result<BTreeSet<Place>, Failure> {
        let Action::Run(program) = &node.step.action else { return Ok(BTreeSet::new()) };
        let missing = || Failure::MissingOutput { output: depfile.to_owned() };
        let text = fs::read(room.out_dir().join(depfile)).map_err(|_| missing())?;
        let names = depfile::prerequisites(&text).ok_or_else(missing)?;
        let cwd = self.places.resolve(&program.cwd);
        let mut places = BTreeSet::new();
        for name in names {
            match self.places.find(&cwd, &name) {
                Found::File(place) => {
                    places.insert(place);
                }
                Found::Immutable { root, path } => {
                    if !mentions(node, program, &root) {
                        places.insert(Place::Root { root, path });
                    }
                }
                Found::Output { step, name } => {
                    let output = OutputRef { step, name };
                    if !self.may_read(node, &output) {
                        return Err(Failure::UndeclaredInput { input: Place::Output(output).to_string() });
                    }
                    places.insert(Place::Output(output));
                }
                Found::Temporary => {}
            }
        }
        Ok(places)
    }

    /// Places where a file would be read in place of one that was: in a directory that a program searches earlier (`-I` before `-I`), or
    /// beside a file that was read, where an include in quotes looks first.
    fn shadows(node: &Node, read: &BTreeSet<Place>) -> BTreeSet<Place> {
        let Action::Run(program) = &node.step.action else { return BTreeSet::new() };
        let searched: Vec<Place> = program
            .args
            .iter()
            .filter_map(|arg| match arg.0.as_slice() {
                [Piece::Text(flag), Piece::Path(dir)] if flag == "-I" => Some(Place::from(dir)),
                [Piece::Text(flag), Piece::OutputDir(step)] if flag == "-I" => {
                    Some(Place::Output(OutputRef { step: step.clone(), name: String::new() }))
                }
                _ => None,
            })
            .collect();
        let beside: BTreeSet<Place> = read.iter().filter_map(parent).collect();
        let mut shadows = BTreeSet::new();
        for place in read {
            for (index, dir) in searched.iter().enumerate() {
                let Some(name) = name_below(dir, place) else { continue };
                let earlier = searched.iter().take(index).chain(&beside);
                shadows.extend(earlier.filter_map(|dir| file_in(dir, name)).filter(|shadow| !read.contains(shadow)));
            }
        }
        shadows
    }

    /// Inputs that are no files, which is what a program saw of them. One that is a file was not asked for, unless it is new.
    fn absent(&self, places: BTreeSet<Place>, since: i64) -> Vec<Entry> {
        let entry = |place: Place| {
            let content = match stat(&self.places.path(&place)?) {
                Stat::File(stamp) if stamp.ctime < since => return None,
                Stat::File(_) => Content::UNKNOWN,
                Stat::Absent | Stat::NotAFile | Stat::Unreadable => self.content(&place),
            };
            Some(Entry::new(place, &content))
        };
        let mut known = BTreeMap::new();
        let missing: BTreeSet<Place> = places.into_iter().map(|place| self.first_missing(place, &mut known)).collect();
        missing.into_iter().filter_map(entry).collect()
    }

    /// The first directory above a file that is not there, which stands for all files below it; else the file.
    fn first_missing(&self, file: Place, known: &mut BTreeMap<Place, bool>) -> Place {
        let Place::Root { root, path } = &file else { return file };
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let dir = Place::Root { root: root.clone(), path: path[..end].to_vec() };
            let there = || self.places.path(&dir).is_none_or(|path| path.exists());
            if !*known.entry(dir.clone()).or_insert_with(there) {
                return dir;
            }
        }
        file
    }

    /// Whether `output` is sure to be there, and to stay as it is, while the step runs.
    fn may_read(&self, node: &Node, output: &OutputRef) -> bool {
        let Some(index) = self.graph.position(&output.step) else { return false };
        self.graph.nodes()[index].step.outputs.contains(&output.name)
            && (node.dependencies.contains(&index) || self.graph.closure(node.dependencies.iter().copied()).contains(&index))
    }

    /// What was made, and nothing else: files that the step does not declare are removed.
    fn collect(&self, node: &Node, room: &Room) -> Result<(Vec<Content>, Vec<Made>), Failure> {
        room.keep_only(&node.step.outputs).map_err(io("tidy", &self.work_dir.tmp_dir()))?;
        let mut product = Vec::new();
        let mut outputs = Vec::new();
        for name in &node.step.outputs {
            let path = room.out_dir().join(name);
            let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
            let content = if is_file { crate::content::read(&path) } else { Content::UNKNOWN };
            let State::File(digest) = content.state else { return Err(Failure::MissingOutput { output: name.clone() }) };
            outputs.push(Made { name: name.clone(), digest, stamp: content.settled_stamp() });
            product.push(content);
        }
        Ok((product, outputs))
    }

    /// What was read, as far as it is sure to be what the program saw.
    fn inputs(&self, node: &Node, before: BTreeMap<Place, Content>, discovered: BTreeSet<Place>, since: i64) -> Vec<Entry> {
        let mut places = self.declared(node);
        places.extend(discovered);
        let entry = |place: Place| {
            let path = self.places.path(&place);
            let known = before.get(&place).copied().or_else(|| match &place {
                Place::Output(output) => self.product(output),
                _ => None,
            });
            let content = match (known, path) {
                (_, None) => Content::UNKNOWN,
                (Some(content), Some(path)) => {
                    if content.is_untouched(&path) {
                        content
                    } else {
                        Content::UNKNOWN
                    }
                }
                (None, Some(path)) => {
                    let content = self.files.fresh(&path);
                    let changed = content.stamp.is_some_and(|stamp| stamp.ctime >= since);
                    // A file that was read is no longer there: who knows what it was.
                    if changed || content.state == State::Absent { Content::UNKNOWN } else { content }
                }
            };
            Entry::new(place, &content)
        };
        places.into_iter().map(entry).collect()
    }

    fn run_program(&self, program: &Program, room: &Room) -> Result<(), Failure> {
        let log = io("write to the log in", &self.work_dir.tmp_dir());
        let mut command = Command::new(&program.path);
        command.args(program.args.iter().map(|arg| self.arg(arg, &room.out_dir())));
        command.env_clear().env("TMPDIR", room.tmp_dir());
        command.envs(&program.ambient);
        command.envs(program.env.iter().map(|(name, value)| (name, self.arg(value, &room.out_dir()))));
        let cwd = self.places.resolve(&program.cwd);
        command.current_dir(&cwd).process_group(0);
        command.stdin(Stdio::null()).stdout(room.log().map_err(&log)?).stderr(room.log().map_err(&log)?);
        if self.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        let ended = self.groups.run(&mut command).map_err(|error| {
            let message = if cwd.is_dir() {
                format!("cannot run `{}`: {error}", program.path.display())
            } else {
                format!("cannot run `{}` in `{}`, which is not a directory", program.path.display(), cwd.display())
            };
            Failure::Spawn { message }
        })?;
        match (ended.status.code(), ended.status.signal()) {
            (Some(0), _) => Ok(()),
            _ if ended.interrupted => Err(Failure::Interrupted),
            (Some(code), _) => Err(Failure::Exit { code }),
            (None, signal) => Err(Failure::Signal { signal: signal.unwrap_or_default() }),
        }
    }

    /// The command for the user. Own files are named where they will be kept.
    fn command_text(&self, node: &Node) -> Option<Vec<String>> {
        let Action::Run(program) = &node.step.action else { return None };
        let own = self.work_dir.step_dir(&node.id);
        let args = program.args.iter().map(|arg| self.arg(arg, &own).to_string_lossy().into_owned());
        Some(std::iter::once(program.path.display().to_string()).chain(args).collect())
    }

    fn arg(&self, arg: &Arg, own: &Path) -> OsString {
        let mut text = OsString::new();
        for piece in &arg.0 {
            match piece {
                Piece::Text(piece) => text.push(piece),
                Piece::Path(path) => text.push(self.places.resolve(path)),
                Piece::Own(name) => text.push(own.join(name)),
                Piece::Output(output) => text.push(self.work_dir.output_path(output)),
                Piece::OutputDir(id) => text.push(self.work_dir.step_dir(id)),
                Piece::WorkDir => text.push(self.work_dir.path()),
            }
        }
        text
    }

    fn input_path(&self, input: &Input) -> PathBuf {
        match input {
            Input::File(path) => self.places.resolve(path),
            Input::Output(output) => self.work_dir.output_path(output),
        }
    }

    fn is_immutable(&self, root: &RootName) -> bool {
        self.graph.root(root).is_some_and(|binding| matches!(binding.kind, RootKind::Immutable { .. }))
    }

    fn product(&self, output: &OutputRef) -> Option<Content> {
        let index = self.graph.position(&output.step)?;
        let at = self.graph.nodes().get(index)?.step.outputs.iter().position(|name| *name == output.name)?;
        self.products.get(index)?.get()?.get(at).copied()
    }

    fn save(&self, id: &StepId, record: &Record) -> io::Result<()> {
        self.work_dir.write_atomically(&self.work_dir.record_path(id), &record.to_bytes(id))
    }
}

impl Now for Run<'_> {
    fn content(&self, place: &Place) -> Content {
        match place {
            Place::Output(output) => self.product(output),
            _ => self.places.path(place).map(|path| self.files.content(&path)),
        }
        .unwrap_or(Content::UNKNOWN)
    }

    fn stat(&self, place: &Place) -> Option<Stat> {
        match place {
            Place::Output(_) => None,
            _ => self.places.path(place).map(|path| self.files.stat(&path)),
        }
    }

    fn output_path(&self, output: &OutputRef) -> PathBuf {
        self.work_dir.output_path(output)
    }
}

/// The directory of a file below a root.
fn parent(file: &Place) -> Option<Place> {
    let Place::Root { root, path } = file else { return None };
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    Some(Place::Root { root: root.clone(), path: path[..end].to_vec() })
}

/// What is left of a file's path below a directory.
fn name_below<'a>(dir: &Place, file: &'a Place) -> Option<&'a [u8]> {
    match (dir, file) {
        (Place::Root { root, path: dir }, Place::Root { root: of, path }) if root == of => match dir.as_slice() {
            [] => Some(path),
            dir => path.strip_prefix(dir)?.strip_prefix(b"/"),
        },
        (Place::Output(dir), Place::Output(output)) if dir.step == output.step => Some(output.name.as_bytes()),
        _ => None,
    }
}

/// A file in a directory below a root.
fn file_in(dir: &Place, name: &[u8]) -> Option<Place> {
    let Place::Root { root, path } = dir else { return None };
    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
    Some(Place::Root { root: root.clone(), path: [path, slash, name].concat() })
}

/// Whether a step's identity holds the digest of `root`.
fn mentions(node: &Node, program: &Program, root: &RootName) -> bool {
    let declared = node.step.inputs.iter().filter_map(|input| match input {
        Input::File(path) => Some(path),
        Input::Output(_) => None,
    });
    let mentioned = pieces(&node.step).filter_map(|piece| match piece {
        Piece::Path(path) => Some(path),
        _ => None,
    });
    declared.chain(mentioned).chain([&program.cwd]).any(|path| path.root == *root)
}

fn io(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |error| Failure::Io { message: format!("cannot {what} `{}`: {error}", path.display()) }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for an unknown reason")
}
