//! What a step reads: by its description, by its depfile, and by what its program looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::check::Now;
use crate::content::{Content, Stat, State, stat};
use crate::depfile;
use crate::event::Failure;
use crate::graph::{Node, pieces};
use crate::place::{Found, Place};
use crate::record::{Entry, Record};
use crate::room::Room;
use crate::run::Run;
use crate::search::searched;
use crate::step::{Action, Input, OutputRef, PathRef, Piece, Program, RootKind, RootName, Scope};
use crate::trace::{Asked, ReadFile, asked};

impl Run<'_> {
    /// The content of every file that the step is known to read.
    pub(crate) fn snapshot(&self, node: &Node, record: Option<&Record>) -> BTreeMap<Place, Content> {
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
    pub(crate) fn declared(&self, node: &Node) -> BTreeSet<Place> {
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
                Piece::Text(_) | Piece::Own(_) | Piece::Scratch(_) | Piece::WorkDir | Piece::Scope(_) => {}
            }
        }
        places
    }

    /// The files of the depfile, and beside them those whose content nobody compares, because an immutable root's digest stands for
    /// them.
    pub(crate) fn discovered(&self, node: &Node, depfile: &str, room: &Room) -> Result<Discovered, Failure> {
        let Action::Run(program) = &node.step.action else { return Ok(Discovered::default()) };
        let missing = || Failure::MissingOutput { output: depfile.to_owned() };
        let text = fs::read(room.out_dir().join(depfile)).map_err(|_| missing())?;
        let names = depfile::prerequisites(&text).ok_or_else(missing)?;
        let cwd = self.places.resolve(&program.cwd);
        let mut discovered = Discovered::default();
        for name in names {
            match self.places.find(&cwd, &name) {
                Found::File(place) => {
                    discovered.judged.insert(place.clone());
                    discovered.read.push(ReadFile { place, immutable: false });
                }
                Found::Immutable { root, path } => {
                    let place = Place::Root { root: root.clone(), path };
                    if !mentions(node, program, &root) {
                        discovered.judged.insert(place.clone());
                    }
                    discovered.read.push(ReadFile { place, immutable: true });
                }
                Found::Output { step, name } => {
                    let output = OutputRef { step, name };
                    if !self.may_read(node, &output) {
                        return Err(Failure::UndeclaredInput { input: self.name(&Place::Output(output)) });
                    }
                    discovered.judged.insert(Place::Output(output.clone()));
                    discovered.read.push(ReadFile { place: Place::Output(output), immutable: false });
                }
                Found::Temporary => {}
            }
        }
        Ok(discovered)
    }

    /// What the step's program looked for, by the texts that it read.
    pub(crate) fn asked(&self, node: &Node, read: &[ReadFile]) -> Asked {
        let Action::Run(program) = &node.step.action else { return Asked::default() };
        let cwd = self.places.resolve(&program.cwd);
        let mentioned = self.declared(node);
        // What a tree that never changes lacks, it lacks for ever; but an equal step may have another tree there.
        let scoped = |root: &RootName| pieces(&node.step).any(|piece| matches!(piece, Piece::Scope(Scope::Root(scope)) if scope == root));
        let may_change = |dir: &Place| match dir {
            Place::Root { root, .. } => !self.is_immutable(root) || scoped(root),
            Place::Absolute(_) => true,
            Place::Output(_) => false,
        };
        let searched = searched(program, &self.places, &cwd);
        asked(read, &mentioned, &searched, &Place::from(&program.cwd), &self.places, &self.scans, &may_change)
    }

    /// Inputs that are no files, which is what a program saw of them. One that is a file was not asked for, unless it is new.
    pub(crate) fn absent(&self, places: BTreeSet<Place>, since: i64) -> Vec<Entry> {
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

    /// What was read, as far as it is sure to be what the program saw.
    pub(crate) fn inputs(&self, node: &Node, before: BTreeMap<Place, Content>, discovered: BTreeSet<Place>, since: i64) -> Vec<Entry> {
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

    pub(crate) fn is_immutable(&self, root: &RootName) -> bool {
        self.graph.root(root).is_some_and(|binding| matches!(binding.kind, RootKind::Immutable { .. }))
    }
}

/// The files of a depfile.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    /// Those that are judged by their content.
    pub(crate) judged: BTreeSet<Place>,
    /// All of them, in order.
    pub(crate) read: Vec<ReadFile>,
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
