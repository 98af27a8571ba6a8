//! Takes results from where they are: from a step of the same run that reads the same, or from the cache.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cache::{ActionCache, Damage, InputSet, Kept, Manifest, ResultEntry};
use crate::check::Now;
use crate::content::State;
use crate::event::{Event, Origin};
use crate::fingerprint::{Key, action_key, made_by, scoped_digest, slots};
use crate::graph::Node;
use crate::place::Place;
use crate::record::{Cost, Entry, Made, Record};
use crate::room::Room;
use crate::run::Run;
use crate::scan::mentions;
use crate::step::{Action, Arg, OutputRef, Piece, Program, RootName, Scope, StepId};
use crate::trace::Watch;

/// A builtin that is expected to take less than this, in ms, is not worth a look into the cache.
const WORTH_KEEPING: u32 = 10;

/// What the steps of a run share of this.
#[derive(Debug, Default)]
pub(crate) struct Reuse {
    cache: Option<ActionCache>,
    /// What steps of this run read and made, by the keys of their manifests.
    memo: Mutex<HashMap<Key, Vec<Memo>>>,
    groups: Mutex<HashMap<Key, Group>>,
    written: AtomicU64,
    damaged: Mutex<Vec<PathBuf>>,
    /// Why the cache cannot be used, as far as it was not told.
    unusable: OnceLock<String>,
    told: AtomicBool,
}

#[derive(Clone, Debug)]
struct Memo {
    set: Arc<InputSet>,
    result: Key,
    index: usize,
}

/// Steps that differ in scoped arguments only.
#[derive(Clone, Copy, Debug)]
enum Group {
    /// This one finds out what counts; the others wait.
    First(usize),
    Known,
}

/// A step as the cache sees it.
#[derive(Debug)]
pub(crate) struct Cacheable {
    key: Key,
    slots: Vec<Scope>,
    /// The steps whose files it reads, by number.
    made_by: Vec<StepId>,
}

/// A result that fits.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) origin: Origin,
    from: Source,
    set: Arc<InputSet>,
    result: Key,
    inputs: Vec<Entry>,
}

#[derive(Debug)]
enum Source {
    Step(usize),
    Cache(ResultEntry),
}

/// What [`Run::look`] gives.
#[derive(Debug)]
pub(crate) enum Look {
    Found(Box<Found>),
    /// The step has to run.
    Nothing,
    /// The step at this index is finding out whether this one has to.
    WaitFor(usize),
}

impl Found {
    /// For each slot of the step, whether its arguments count.
    pub(crate) fn counts(&self) -> Vec<bool> {
        self.set.slots.iter().map(|(_, counts)| *counts).collect()
    }
}

impl Reuse {
    pub(crate) fn new(cache: Option<ActionCache>) -> Self {
        Self { cache, ..Self::default() }
    }

    /// Files of the cache that were found damaged since the last call.
    pub(crate) fn take_damaged(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *lock(&self.damaged))
    }

    /// Ends a run: lets the cache count what was added.
    pub(crate) fn finish(&self) {
        let written = self.written.load(Ordering::SeqCst);
        if let (Some(cache), 1..) = (&self.cache, written)
            && let Err(error) = cache.account(written)
        {
            self.failed("be kept within its size", &error);
        }
    }

    /// That the cache cannot be used, the first time that this is asked after it was found.
    pub(crate) fn take_unusable(&self) -> Option<Event> {
        let (cache, message) = self.cache.as_ref().zip(self.unusable.get())?;
        let told = self.told.swap(true, Ordering::SeqCst);
        (!told).then(|| Event::CacheUnusable { directory: cache.dir().to_owned(), message: message.clone() })
    }

    fn failed(&self, what: &str, error: &io::Error) {
        tracing::debug!("the cache cannot {what}: {error}");
        let _known = self.unusable.set(format!("cannot {what}: {error}"));
    }

    /// The value of a look into the cache. What cannot be used is no reason to stop.
    fn known<T>(&self, looked: Result<T, Damage>) -> Option<T> {
        match looked {
            Ok(found) => return Some(found),
            Err(Damage::Missing) => {}
            Err(Damage::Damaged(path)) => lock(&self.damaged).push(path),
            Err(Damage::Io(error)) => self.failed("be read", &error),
        }
        None
    }
}

impl Run<'_> {
    /// The step as the cache sees it; nothing for one that is not worth it.
    pub(crate) fn cacheable(&self, node: &Node) -> Option<Cacheable> {
        match &node.step.action {
            Action::Builtin(_) if node.step.weight.cpu_ms < WORTH_KEEPING => return None,
            Action::Builtin(_) | Action::Run(_) => {}
        }
        let slots = slots(&node.step);
        if self.reuse.cache.is_none() && slots.is_empty() {
            return None;
        }
        let made_by = made_by(&node.step);
        let key = action_key(&node.step, &slots, &made_by, self.graph.root_bindings()).ok()?;
        Some(Cacheable { key, slots, made_by })
    }

    /// What the last run of the step took, if the cache knows.
    pub(crate) fn last_cost(&self, step: &Cacheable) -> Option<Cost> {
        Some(self.manifest(step)?.cost)
    }

    fn manifest(&self, step: &Cacheable) -> Option<Manifest> {
        self.reuse.cache.as_ref().and_then(|cache| self.reuse.known(cache.manifest(&step.key)))
    }

    /// Looks for a result of the step at `index`, whose inputs have settled.
    pub(crate) fn look(&self, index: usize, step: &Cacheable) -> Look {
        let node = &self.graph.nodes()[index];
        if let Some(found) = self.look_in_run(node, step) {
            return Look::Found(Box::new(found));
        }
        let manifest = self.manifest(step).unwrap_or_default();
        if let Some(found) = self.look_in_cache(node, step, &manifest) {
            return Look::Found(Box::new(found));
        }
        if step.slots.is_empty() {
            return Look::Nothing;
        }
        let mut groups = lock(&self.reuse.groups);
        match groups.get(&step.key) {
            Some(Group::First(first)) if *first != index => return Look::WaitFor(*first),
            Some(_) => return Look::Nothing,
            None => {}
        }
        // What is known to make a difference, or looks as if it did, is no reason to wait.
        let counts = manifest.sets.iter().any(|set| set.slots.iter().any(|(_, counts)| *counts)) || self.looks_scoped(node, step);
        groups.insert(step.key, if counts { Group::Known } else { Group::First(index) });
        Look::Nothing
    }

    /// The step has run, whatever came of it: those that wait for it need not any longer.
    pub(crate) fn ran(&self, step: &Cacheable) {
        lock(&self.reuse.groups).insert(step.key, Group::Known);
    }

    fn look_in_run(&self, node: &Node, step: &Cacheable) -> Option<Found> {
        let memos = lock(&self.reuse.memo).get(&step.key).cloned().unwrap_or_default();
        memos.into_iter().find_map(|memo| {
            let (inputs, result) = self.result_key(node, step, &memo.set)?;
            if result != memo.result {
                return None;
            }
            let other = self.graph.nodes().get(memo.index)?;
            let target = self.first_target(memo.index).to_owned();
            let origin = Origin::Step { step: other.id.clone(), label: other.step.label.clone(), target };
            Some(Found { origin, from: Source::Step(memo.index), set: memo.set, result, inputs })
        })
    }

    fn look_in_cache(&self, node: &Node, step: &Cacheable, manifest: &Manifest) -> Option<Found> {
        let cache = self.reuse.cache.as_ref()?;
        manifest.sets.iter().find_map(|set| {
            let (inputs, result) = self.result_key(node, step, set)?;
            let entry = self.reuse.known(cache.result(&result))?;
            Some(Found { origin: Origin::Cache, from: Source::Cache(entry), set: Arc::new(set.clone()), result, inputs })
        })
    }

    /// What the places of a set hold, and the key of the result that goes with it; nothing where the set is not that of a run of this
    /// step now.
    fn result_key(&self, node: &Node, step: &Cacheable, set: &InputSet) -> Option<(Vec<Entry>, Key)> {
        if set.slots.len() != step.slots.len() || !set.watches.iter().all(|watch| self.holds(watch, step)) {
            return None;
        }
        let places: Option<Vec<Place>> = set.places.iter().map(|place| concrete(place, step)).collect();
        let places = places?;
        let counting: Vec<&Scope> = step.slots.iter().zip(&set.slots).filter(|(_, (_, counts))| *counts).map(|(slot, _)| slot).collect();
        let mut scoped = Vec::new();
        for (slot, (word, counts)) in step.slots.iter().zip(&set.slots) {
            if let Scope::Word(now) = slot
                && word.as_deref() != Some(&**now)
                && (*counts || self.is_mentioned(node, now, &places, &counting))
            {
                return None;
            }
            if *counts {
                scoped.push(scoped_digest(&node.step, slot, self.graph.root_bindings()).ok()?);
            }
        }
        let mut states = Vec::with_capacity(places.len() * 33);
        let mut inputs = Vec::with_capacity(places.len());
        for place in places {
            let content = self.content(&place);
            write_state(&content.state, &mut states)?;
            inputs.push(Entry::new(place, &content));
        }
        let key = set.result_key(&step.key, &states, &scoped);
        Some((inputs, key))
    }

    fn holds(&self, watch: &Watch, step: &Cacheable) -> bool {
        let path = concrete(&watch.dir, step).and_then(|dir| self.places.path(&dir));
        path.is_some_and(|path| watch.broken_by(&self.files.listing(&path)).is_none())
    }

    fn is_mentioned(&self, node: &Node, word: &str, places: &[Place], counting: &[&Scope]) -> bool {
        let Action::Run(program) = &node.step.action else { return false };
        in_arguments(program, word, counting)
            || places.iter().any(|place| {
                let text = self.places.path(place).filter(|path| path.is_file()).map(fs::read);
                match text {
                    None => false,
                    Some(Ok(text)) => mentions(&text, word.as_bytes()),
                    Some(Err(_)) => true,
                }
            })
    }

    /// Puts a result into the work directory. What was found in the cache may turn out to be damaged: nothing then.
    ///
    /// # Errors
    /// When the work directory cannot be written to.
    pub(crate) fn restore(&self, index: usize, found: &Found) -> io::Result<Option<Vec<u8>>> {
        let node = &self.graph.nodes()[index];
        let names = node.step.outputs.iter().map(String::as_str);
        let room = Room::new(self.work_dir, &node.id, names)?;
        let (kept, log, cost) = match &found.from {
            Source::Cache(entry) => (entry.outputs.clone(), self.with_directories(&entry.log), entry.cost),
            Source::Step(from) => match self.kept(*from) {
                Some(kept) => (kept, Vec::new(), Cost::default()),
                None => return Ok(None),
            },
        };
        if !kept.iter().map(|kept| &kept.name).eq(&node.step.outputs) {
            return Ok(None);
        }
        let (mut product, mut outputs) = (Vec::new(), Vec::new());
        for kept in &kept {
            let to = room.out_dir().join(&kept.name);
            match (&found.from, &self.reuse.cache) {
                (Source::Cache(_), Some(cache)) => {
                    if self.reuse.known(cache.copy_out(kept, &to)).is_none() {
                        return Ok(None);
                    }
                }
                (Source::Cache(_), None) => return Ok(None),
                (Source::Step(from), _) => {
                    fs::copy(self.work_dir.step_dir(&self.graph.nodes()[*from].id).join(&kept.name), &to)?;
                }
            }
            let content = crate::content::read(&to);
            if content.state != State::File(kept.digest) {
                return Ok(None);
            }
            outputs.push(Made { name: kept.name.clone(), digest: kept.digest, stamp: content.settled_stamp() });
            product.push(content);
        }
        let step = self.cacheable(node);
        let concrete = |dir: &Place| step.as_ref().map_or_else(|| Some(dir.clone()), |step| concrete(dir, step));
        let watches = found.set.watches.iter().filter_map(|watch| Some(Watch { dir: concrete(&watch.dir)?, ..watch.clone() }));
        let record = Record { inputs: found.inputs.clone(), watches: self.own_watches(watches), cost, outputs };
        room.publish(self.work_dir, &node.id)?;
        self.save(&node.id, &record)?;
        self.note_cost(node, cost);
        let _ = self.products[index].set(product);
        self.note(index, &found.set, found.result);
        Ok(Some(log))
    }

    /// The watches that a record needs: what an immutable tree lacks, it lacks for ever.
    pub(crate) fn own_watches(&self, watches: impl Iterator<Item = Watch>) -> Vec<Watch> {
        watches.filter(|watch| !matches!(&watch.dir, Place::Root { root, .. } if self.is_immutable(root))).collect()
    }

    /// The outputs of a step that is done, as something that is kept.
    fn kept(&self, index: usize) -> Option<Vec<Kept>> {
        let node = self.graph.nodes().get(index)?;
        let contents = self.products.get(index)?.get()?;
        let dir = self.work_dir.step_dir(&node.id);
        node.step
            .outputs
            .iter()
            .zip(contents)
            .map(|(name, content)| {
                let State::File(digest) = content.state else { return None };
                let known = fs::metadata(dir.join(name)).ok()?;
                Some(Kept { name: name.clone(), digest, size: known.len(), executable: known.permissions().mode() & 0o100 != 0 })
            })
            .collect()
    }

    fn note(&self, index: usize, set: &Arc<InputSet>, result: Key) {
        if let Some(step) = self.graph.nodes().get(index).and_then(|node| self.cacheable(node))
            && !step.slots.is_empty()
        {
            lock(&self.reuse.memo).entry(step.key).or_default().push(Memo { set: Arc::clone(set), result, index });
        }
    }

    /// Keeps the result of a step that ran, for the steps of this run and for those of others.
    ///
    /// `counts` says for each slot whether its arguments count.
    pub(crate) fn keep(&self, index: usize, step: &Cacheable, record: &Record, watches: &[Watch], counts: &[bool], log: &[u8]) {
        let node = &self.graph.nodes()[index];
        let mut states = Vec::new();
        if record.inputs.iter().any(|entry| write_state(&entry.state, &mut states).is_none()) {
            return;
        }
        let scoped: Option<Vec<Key>> = step
            .slots
            .iter()
            .zip(counts)
            .filter(|(_, counts)| **counts)
            .map(|(slot, _)| scoped_digest(&node.step, slot, self.graph.root_bindings()).ok())
            .collect();
        let Some(scoped) = scoped else { return };
        let word = |scope: &Scope| match scope {
            Scope::Word(word) => Some(word.to_string()),
            Scope::Root(_) => None,
        };
        let set = Arc::new(InputSet {
            places: record.inputs.iter().map(|entry| abstracted(&entry.place, step)).collect(),
            watches: watches.iter().map(|watch| Watch { dir: abstracted(&watch.dir, step), ..watch.clone() }).collect(),
            slots: step.slots.iter().zip(counts).map(|(slot, counts)| (word(slot), *counts)).collect(),
        });
        let key = set.result_key(&step.key, &states, &scoped);
        self.note(index, &set, key);
        if let Some(cache) = &self.reuse.cache {
            match self.keep_in(cache, index, step, &set, &key, record.cost, log) {
                Ok(written) => {
                    self.reuse.written.fetch_add(written, Ordering::SeqCst);
                }
                Err(error) => self.reuse.failed("be written to", &error),
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that a result is")]
    fn keep_in(
        &self,
        cache: &ActionCache,
        index: usize,
        step: &Cacheable,
        set: &InputSet,
        key: &Key,
        cost: Cost,
        log: &[u8],
    ) -> io::Result<u64> {
        let Some(outputs) = self.kept(index) else { return Ok(0) };
        let dir = self.work_dir.step_dir(&self.graph.nodes()[index].id);
        // What would push out most of what others made is not worth it.
        if outputs.iter().map(|kept| kept.size).sum::<u64>() > cache.limit() / 4 {
            return Ok(0);
        }
        let _writing = cache.writing()?;
        let mut written = 0;
        for kept in &outputs {
            written += cache.copy_in(kept, &dir.join(&kept.name))?;
        }
        written += cache.save_result(key, &ResultEntry { outputs, log: self.without_directories(log), cost })?;
        let mut manifest = self.manifest(step).unwrap_or_default();
        if manifest.add(set, cost) {
            written += cache.save_manifest(&step.key, &manifest)?;
        }
        Ok(written)
    }

    /// For each slot of a step that ran, whether its arguments count.
    pub(crate) fn counts(&self, node: &Node, step: &Cacheable, read: &[Place], words: &[bool], in_riddles: bool) -> Vec<bool> {
        let Action::Run(program) = &node.step.action else { return Vec::new() };
        let read_it = |scope: &Scope| match scope {
            Scope::Word(word) => self.scans.word(word).and_then(|at| words.get(at)).is_none_or(|found| *found),
            Scope::Root(root) => in_riddles || read.iter().any(|place| matches!(place, Place::Root { root: of, .. } if of == root)),
        };
        let mut counts: Vec<bool> = step.slots.iter().map(read_it).collect();
        // An argument that counts may bring in the word of another one.
        loop {
            let counting: Vec<&Scope> = step.slots.iter().zip(&counts).filter(|(_, counts)| **counts).map(|(slot, _)| slot).collect();
            let brought = step.slots.iter().zip(&counts).position(|(slot, counts)| match slot {
                Scope::Word(word) => !counts && in_arguments(program, word, &counting),
                Scope::Root(_) => false,
            });
            match brought.and_then(|at| counts.get_mut(at)) {
                Some(brought) => *brought = true,
                None => return counts,
            }
        }
    }

    /// Whether the texts that the step is sure to read, as far as they lead, ask for something below a scoped root. A guess.
    fn looks_scoped(&self, node: &Node, step: &Cacheable) -> bool {
        const FILES: usize = 64;
        let Action::Run(program) = &node.step.action else { return false };
        let paths = |scoped: bool| {
            let args = program.args.iter().filter(move |arg| matches!(arg.scope(), Some(Scope::Root(_))) == scoped);
            args.flat_map(|arg| &arg.0).filter_map(|piece| match piece {
                Piece::Path(path) => Some(self.places.resolve(path)),
                Piece::Output(output) => Some(self.work_dir.output_path(output)),
                _ => None,
            })
        };
        let (trees, own): (Vec<PathBuf>, Vec<PathBuf>) = (paths(true).collect(), paths(false).collect());
        if !step.slots.iter().any(|slot| matches!(slot, Scope::Root(_))) {
            return false;
        }
        let mut open: Vec<PathBuf> = own.iter().filter(|path| path.is_file()).cloned().collect();
        let mut seen = open.clone();
        while let Some(file) = open.pop() {
            let Some(scan) = self.scans.get(&file) else { continue };
            for ask in &scan.asks {
                let name = Path::new(std::ffi::OsStr::from_bytes(&ask.name));
                let beside = file.parent().map(|dir| dir.join(name));
                match beside.into_iter().chain(own.iter().map(|dir| dir.join(name))).find(|path| path.is_file()) {
                    Some(found) if seen.len() < FILES && !seen.contains(&found) => {
                        seen.push(found.clone());
                        open.push(found);
                    }
                    Some(_) => {}
                    None if trees.iter().any(|tree| tree.join(name).is_file()) => return true,
                    None => {}
                }
            }
        }
        false
    }

    /// A log with names in place of directories that differ from checkout to checkout.
    fn without_directories(&self, log: &[u8]) -> Vec<u8> {
        self.directories().into_iter().fold(log.to_vec(), |log, (dir, mark)| replaced(&log, &dir, &mark))
    }

    /// Undoes [`Run::without_directories`], here.
    fn with_directories(&self, log: &[u8]) -> Vec<u8> {
        self.directories().into_iter().fold(log.to_vec(), |log, (dir, mark)| replaced(&log, &mark, &dir))
    }

    /// Directories and their marks, the longest first.
    fn directories(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let roots = self.graph.roots().map(|(name, binding)| (binding.dir.as_os_str().as_bytes().to_vec(), name.as_str().to_owned()));
        let work = (self.work_dir.path().as_os_str().as_bytes().to_vec(), "\u{1}work".to_owned());
        let mut dirs: Vec<(Vec<u8>, Vec<u8>)> =
            roots.chain([work]).filter(|(dir, _)| dir.len() > 1).map(|(dir, name)| (dir, format!("\0{name}\0").into_bytes())).collect();
        dirs.sort_by_key(|(dir, _)| std::cmp::Reverse(dir.len()));
        dirs
    }
}

/// Whether an argument mentions `word` that counts: one without a scope, or with one of `counting`.
fn in_arguments(program: &Program, word: &str, counting: &[&Scope]) -> bool {
    let counts = |arg: &&Arg| match arg.scope() {
        None => true,
        Some(Scope::Word(own)) if **own == *word => false,
        Some(scope) => counting.contains(&scope),
    };
    program.args.iter().filter(counts).flat_map(|arg| &arg.0).any(|piece| match piece {
        Piece::Text(text) => mentions(text.as_bytes(), word.as_bytes()),
        _ => false,
    })
}

/// A place with the number of its slot for a root that is scoped, or with a number for the step that makes it.
fn abstracted(place: &Place, step: &Cacheable) -> Place {
    if let Place::Output(output) = place
        && let Some(number) = step.made_by.iter().position(|step| *step == output.step)
    {
        return Place::Output(OutputRef { step: StepId(format!("\0{number}").into()), name: output.name.clone() });
    }
    if let Place::Root { root, path } = place
        && let Some(slot) = step.slots.iter().position(|slot| matches!(slot, Scope::Root(of) if of == root))
    {
        return Place::Root { root: RootName::new(format!("\0{slot}")), path: path.clone() };
    }
    place.clone()
}

/// Undoes [`abstracted`], for a step that may be another one.
fn concrete(place: &Place, step: &Cacheable) -> Option<Place> {
    if let Place::Output(output) = place
        && let Some(number) = output.step.as_str().strip_prefix('\0')
    {
        let step = step.made_by.get(number.parse::<usize>().ok()?)?;
        return Some(Place::Output(OutputRef { step: step.clone(), name: output.name.clone() }));
    }
    if let Place::Root { root, path } = place
        && let Some(slot) = root.as_str().strip_prefix('\0')
    {
        return match step.slots.get(slot.parse::<usize>().ok()?)? {
            Scope::Root(root) => Some(Place::Root { root: root.clone(), path: path.clone() }),
            Scope::Word(_) => None,
        };
    }
    Some(place.clone())
}

/// Writes a state so that no two are written alike; nothing for one that nobody knows.
fn write_state(state: &State, out: &mut Vec<u8>) -> Option<()> {
    match state {
        State::Absent => out.push(0),
        State::NotAFile => out.push(1),
        State::File(digest) => {
            out.push(2);
            out.extend(digest.0);
        }
        State::Unknown => return None,
    }
    Some(())
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = 0;
    for at in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(text.get(rest..at).unwrap_or_default());
        out.extend_from_slice(to);
        rest = at + from.len();
    }
    out.extend_from_slice(text.get(rest..).unwrap_or_default());
    out
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
