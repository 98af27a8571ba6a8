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

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::check::{Now, Verdict, judge};
use crate::command::Used;
use crate::content::{Content, Files, Stat, State};
use crate::event::{Failure, Origin, Reason};
use crate::executor::Config;
use crate::graph::{Graph, Node, pieces};
use crate::history::Took;
use crate::inputs::Discovered;
use crate::interrupt::Interrupt;
use crate::memory::{Gate, was_killed};
use crate::place::{Place, Places};
use crate::record::{Cost, Entry, Made, Record};
use crate::reuse::{Cacheable, Look, Reuse};
use crate::room::Room;
use crate::step::{Action, BuiltinContext, BuiltinError, OutputRef, PathRef, Piece, ResourceClass, RootName, Scope, StepId};
use crate::tokens::{JobServer, Token};
use crate::trace::{Scans, Watch};
use crate::workdir::LockedWorkDir;

/// What all steps of a run share.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) work_dir: &'a LockedWorkDir,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) places: Places<'a>,
    pub(crate) files: Files,
    /// What each step that is done made, in the order of its outputs.
    pub(crate) products: Vec<OnceLock<Vec<Content>>>,
    ticked: OnceLock<()>,
    pub(crate) scans: Scans,
    pub(crate) reuse: Reuse,
    memory: Gate,
    job_server: Option<&'a JobServer>,
    took: Mutex<Took>,
    /// For each target, which steps it needs; made when first asked for.
    pub(crate) closures: OnceLock<Vec<BTreeSet<usize>>>,
}

/// Takes what happens while a step is brought up to date.
pub(crate) struct Tell<'a> {
    /// It is about to run, for this reason, by this command.
    pub(crate) starts: &'a dyn Fn(Reason, Option<Vec<String>>),
    /// It was killed and runs once more.
    pub(crate) retries: &'a dyn Fn(),
}

/// What became of a step that was taken.
#[derive(Debug)]
pub(crate) enum Settled {
    UpToDate,
    Restored {
        reason: Reason,
        origin: Origin,
        output: Vec<u8>,
    },
    Ran(Ran),
    /// The step at this index has to be done first.
    Waits(usize),
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
    /// Processor time of its programs.
    pub(crate) cpu: Duration,
    /// For each slot of the step, whether its arguments made a difference; empty where that was not looked at.
    pub(crate) counts: Vec<bool>,
}

impl Ran {
    /// Whether the program was killed, and not by us: the system does so when memory runs out.
    fn was_killed(&self) -> bool {
        match self.result {
            Err(Failure::Signal { signal }) => was_killed(Some(signal), None, &self.output),
            Err(Failure::Exit { code }) => was_killed(None, Some(code), &self.output),
            _ => false,
        }
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(graph: &'a Graph, work_dir: &'a LockedWorkDir, config: &'a Config) -> Self {
        let words = graph.nodes().iter().flat_map(|node| pieces(&node.step)).filter_map(|piece| match piece {
            Piece::Scope(Scope::Word(word)) => Some(word),
            _ => None,
        });
        let words: BTreeSet<Arc<str>> = words.cloned().collect();
        Self {
            scans: Scans::new(words.into_iter().collect()),
            reuse: Reuse::new(config.cache.clone()),
            memory: Gate::new(config.memory_mib),
            took: Mutex::default(),
            closures: OnceLock::new(),
            graph,
            work_dir,
            interrupt: &config.interrupt,
            job_server: config.job_server.as_ref(),
            places: Places::new(graph, work_dir),
            files: Files::default(),
            products: graph.nodes().iter().map(|_| OnceLock::new()).collect(),
            ticked: OnceLock::new(),
        }
    }

    /// What steps have taken so far, by name; those of the next call begin anew.
    pub(crate) fn took(&self) -> Took {
        std::mem::take(&mut *self.lock_took())
    }

    fn lock_took(&self) -> MutexGuard<'_, Took> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a step took, if it is known.
    pub(crate) fn note_cost(&self, node: &Node, cost: Cost) {
        if cost.wall_ms > 0 {
            self.lock_took().note(&node.step, cost.wall_ms);
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

    /// Brings the step at `index` up to date; everything that it needs is. `tell` is told before a program or builtin runs.
    pub(crate) fn settle(&self, index: usize, record: Option<&Record>, tell: &Tell<'_>) -> Settled {
        let node = &self.graph.nodes()[index];
        let reason = match judge(&node.id, &node.step, record, self) {
            Verdict::UpToDate { product, refreshed } => {
                if let Some(record) = refreshed
                    && let Err(error) = self.save(&node.id, &record)
                {
                    tracing::debug!("cannot refresh the record of `{}`: {error}", node.id);
                }
                let _ = self.products[index].set(product);
                return Settled::UpToDate;
            }
            Verdict::Dirty(Reason::NoRecord) => self.why_new(index, node),
            Verdict::Dirty(reason) => reason,
        };
        let cacheable = self.cacheable(node);
        if let Some(step) = &cacheable {
            match self.look(index, step) {
                Look::WaitFor(other) => return Settled::Waits(other),
                Look::Nothing => {}
                Look::Found(found) => match self.restore(index, &found) {
                    Ok(Some(output)) => {
                        self.keep_last(index, node, &found.counts());
                        return Settled::Restored { reason, origin: found.origin, output };
                    }
                    Ok(None) => {}
                    // A full disk, say: the step itself will say it better.
                    Err(error) => tracing::debug!("cannot restore `{}`: {error}", node.id),
                },
            }
        }
        let command = self.command_text(node);
        let mut ran = Ran {
            result: Err(Failure::Interrupted),
            command: command.clone(),
            output: Vec::new(),
            duration: Duration::ZERO,
            cpu: Duration::ZERO,
            counts: Vec::new(),
        };
        let permit = self.memory.enter(self.expected_mib(node, record, cacheable.as_ref()), self.interrupt);
        if let Some(permit) = permit.and_then(|permit| Some((permit, self.token(node)?))) {
            (tell.starts)(reason, command);
            ran.result = self.execute(index, record, cacheable.as_ref(), &mut ran);
            drop(permit);
            if ran.was_killed()
                && let Some(_alone) = self.memory.alone(self.interrupt)
                && let Some(_token) = self.token(node)
            {
                (tell.retries)();
                ran.result = self.execute(index, record, cacheable.as_ref(), &mut ran);
            }
        } else {
            (tell.starts)(reason, command);
        }
        if let Some(step) = &cacheable {
            self.ran(step);
        }
        if ran.result.is_ok() {
            self.keep_last(index, node, &ran.counts);
        }
        Settled::Ran(ran)
    }

    /// Waits until make lets a step run; nothing if the run is interrupted meanwhile.
    #[expect(clippy::option_option, reason = "the outer option is the interrupt, the inner one is that no token is needed")]
    fn token(&self, node: &Node) -> Option<Option<Token<'_>>> {
        match self.job_server {
            Some(server) if node.step.resource != ResourceClass::Light => server.acquire(self.interrupt).map(Some),
            _ => Some(None),
        }
    }

    /// How much memory a run of the step is expected to take, in MiB: what its last run took, else what its description says.
    fn expected_mib(&self, node: &Node, record: Option<&Record>, cacheable: Option<&Cacheable>) -> u64 {
        let known = |cost: Cost| (cost.peak_kib > 0).then_some(cost.peak_kib.div_ceil(1024));
        let recorded = record.and_then(|record| known(record.cost));
        let kept = || cacheable.and_then(|step| known(self.last_cost(step)?));
        recorded.or_else(kept).unwrap_or(node.step.weight.memory_mib.into())
    }

    fn execute(&self, index: usize, record: Option<&Record>, cacheable: Option<&Cacheable>, ran: &mut Ran) -> Result<(), Failure> {
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
        let mut used = Used::default();
        let result = match &node.step.action {
            Action::Run(program) => self.run_program(program, &room, &mut used),
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
        ran.cpu = used.cpu;
        ran.output = room.read_log().map_err(io("read the log in", &self.work_dir.tmp_dir()))?;
        if let (Err(_), Action::Run(_)) = (&result, &node.step.action) {
            // The command that is shown writes there: without the directory it would fail in another way when it is run by hand.
            let _shown_only = fs::create_dir_all(self.work_dir.step_dir(&node.id));
        }
        result?;

        let discovered = match depfile {
            None => Discovered::default(),
            Some(name) => self.discovered(node, name, &room)?,
        };
        let (product, outputs) = self.collect(node, &room)?;
        let asked = self.asked(node, &discovered.read);
        let judged = discovered.judged.into_iter().chain(asked.present).collect();
        let mut inputs = self.inputs(node, before, judged, since);
        inputs.extend(self.absent(asked.missing, since));
        inputs.sort_by(|a, b| a.place.cmp(&b.place));
        inputs.dedup_by(|a, b| a.place == b.place);
        if asked.opaque {
            // Nobody knows what it read, so nobody knows that it need not run again.
            inputs.push(Entry::new(Place::from(&program_cwd(node)), &Content::UNKNOWN));
        }
        let wall_ms = u64::try_from(ran.duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        let cost = Cost { wall_ms: if used.suspended { 0 } else { wall_ms }, peak_kib: used.peak_kib };
        self.note_cost(node, cost);
        let record = Record { inputs, watches: self.own_watches(asked.watches.iter().cloned()), cost, outputs };
        room.publish(self.work_dir, &node.id).map_err(io("replace", &self.work_dir.step_dir(&node.id)))?;
        self.save(&node.id, &record).map_err(io("write", &self.work_dir.record_path(&node.id)))?;
        let _ = self.products[index].set(product);
        if let Some(step) = cacheable {
            let read: Vec<Place> = discovered.read.into_iter().map(|file| file.place).collect();
            let counts = self.counts(node, step, &read, &asked.words, asked.in_riddles);
            self.keep(index, step, &record, &asked.watches, &counts, &ran.output);
            ran.counts = counts;
        }
        Ok(())
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

    pub(crate) fn product(&self, output: &OutputRef) -> Option<Content> {
        let index = self.graph.position(&output.step)?;
        let at = self.graph.nodes().get(index)?.step.outputs.iter().position(|name| *name == output.name)?;
        self.products.get(index)?.get()?.get(at).copied()
    }

    pub(crate) fn save(&self, id: &StepId, record: &Record) -> io::Result<()> {
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

    fn appeared(&self, watch: &Watch) -> Option<Vec<u8>> {
        let listing = self.files.listing(&self.places.path(&watch.dir)?);
        watch.broken_by(&listing)
    }

    fn output_path(&self, output: &OutputRef) -> PathBuf {
        self.work_dir.output_path(output)
    }

    fn name(&self, place: &Place) -> String {
        match place {
            Place::Output(output) => format!("{{{}}}/{}", self.step_name(&output.step), output.name),
            _ => place.to_string(),
        }
    }
}

/// The directory that a step's program runs in.
fn program_cwd(node: &Node) -> PathRef {
    match &node.step.action {
        Action::Run(program) => program.cwd.clone(),
        Action::Builtin(_) => PathRef { root: RootName::new(""), path: String::new() },
    }
}

/// The failure of something that was to be done in the work directory.
pub(crate) fn io(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |error| Failure::Io { message: format!("cannot {what} `{}`: {error}", path.display()) }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for an unknown reason")
}
