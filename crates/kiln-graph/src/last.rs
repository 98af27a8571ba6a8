//! What a step was like when it last ran, kept by its name only to say what is different now. Nothing is decided by it.
//!
//! A step whose arguments are others is another step, with no record of its own. Why it runs may lie elsewhere all the same: an edit
//! changes both a header and the name of the ops, which is in arguments that make no difference to most units. So the record of the
//! step that last had the name is looked at first, and arguments are named that made a difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::check::Changes;
use crate::event::Reason;
use crate::fingerprint::slots;
use crate::graph::Node;
use crate::place::Place;
use crate::plan::{PlanAction, action, arg};
use crate::record::{Reader, Record, Writer};
use crate::run::Run;
use crate::step::{Action, Arg, OutputRef, StepId};

/// First bytes of the file. Changed with the format.
const MAGIC: &[u8] = b"kiln last 1\n";

/// Whether an argument makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matters {
    /// It has no scope: always.
    Always,
    /// It has a scope, and what was read shows that it does.
    Here,
    /// It has a scope, and nothing that was read looks at it.
    Nowhere,
}

/// An argument or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    matters: Matters,
}

/// What a step is like.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Last {
    id: String,
    tool: String,
    /// The steps that it waits for, and what they are called.
    needs: Vec<(String, String)>,
    words: Vec<Word>,
}

impl Run<'_> {
    /// A better reason than that there is no record, if one is known.
    pub(crate) fn why_new(&self, index: usize, node: &Node) -> Reason {
        let last = fs::read(self.last_path(index, node)).ok().and_then(|bytes| Last::from_bytes(&bytes));
        let Some(last) = last else { return Reason::NoRecord };
        let now = self.described(node, &[]);
        if last.tool != now.tool {
            return Reason::ToolChanged;
        }
        let (added, removed) = differences(&last, &now);
        let mut changes = self.changed_since(&last, &now);
        let texts = |words: &[Word], all: bool| -> Vec<String> {
            words.iter().filter(|word| all || word.matters != Matters::Nowhere).map(|word| word.text.clone()).collect()
        };
        let arguments = |all: bool| Reason::ArgumentsChanged { added: texts(&added, all), removed: texts(&removed, all) };
        if added.iter().chain(&removed).any(|word| word.matters != Matters::Nowhere) {
            changes.add(arguments(false));
        }
        changes.into_reason().unwrap_or_else(|| match (added.is_empty() && removed.is_empty(), last.needs == now.needs) {
            (false, _) => arguments(true),
            (true, false) => Reason::NeedsChanged,
            (true, true) => Reason::NoRecord,
        })
    }

    /// Inputs that differ from what the step read that last had this name.
    fn changed_since(&self, last: &Last, now: &Last) -> Changes {
        let id = StepId(last.id.as_str().into());
        let Some(record) = Record::load(&self.work_dir.record_path(&id), &id) else { return Changes::default() };
        let successor = |step: &StepId| {
            let (_, name) = last.needs.iter().find(|(id, _)| *id == step.as_str())?;
            now.needs.iter().find(|(_, now)| now == name).map(|(id, _)| StepId(id.as_str().into()))
        };
        Changes::since(&record, self, |place| match place {
            Place::Output(output) => {
                let step = if self.graph.position(&output.step).is_some() { output.step.clone() } else { successor(&output.step)? };
                let output = OutputRef { step, name: output.name.clone() };
                self.product(&output).map(|_| Place::Output(output))
            }
            Place::Root { root, .. } => self.graph.root(root).map(|_| place.clone()),
            Place::Absolute(_) => Some(place.clone()),
        })
    }

    /// Keeps what the step is like now. `counts` says for each of its slots whether its arguments made a difference.
    pub(crate) fn keep_last(&self, index: usize, node: &Node, counts: &[bool]) {
        let path = self.last_path(index, node);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = made.and_then(|()| self.work_dir.write_atomically(&path, &self.described(node, counts).to_bytes())) {
            tracing::debug!("cannot keep the description of `{}`: {error}", node.step.label);
        }
    }

    /// Steps of one name are told apart by the targets that need them. The only step of its kind in a target is known by that: the link of
    /// an extension that is named after its sources is the same one under another name.
    fn last_path(&self, index: usize, node: &Node) -> PathBuf {
        let (target, closure) = self.first_target_and_closure(index).unzip();
        let alike = |at: &&usize| self.graph.nodes().get(**at).is_some_and(|other| other.step.verb == node.step.verb);
        let is_alone = closure.is_some_and(|closure| closure.iter().filter(alike).nth(1).is_none());
        let label = if is_alone { "" } else { &node.step.label };
        let name = format!("{}\0{label}\0{}", node.step.verb, target.unwrap_or_default());
        self.work_dir.path().join("last").join(&blake3::hash(name.as_bytes()).to_hex()[..32])
    }

    /// The first target that needs a step.
    pub(crate) fn first_target(&self, index: usize) -> &str {
        self.first_target_and_closure(index).map(|(name, _)| name).unwrap_or_default()
    }

    /// The first target that needs a step, and all steps that it needs.
    fn first_target_and_closure(&self, index: usize) -> Option<(&str, &BTreeSet<usize>)> {
        let needed = self.closures.get_or_init(|| self.graph.target_closures());
        let mut needed = self.graph.targets().zip(needed).filter(|(_, closure)| closure.contains(&index));
        needed.next().map(|((name, _), closure)| (name, closure))
    }

    /// What the user calls a step: its label.
    pub(crate) fn step_name(&self, id: &StepId) -> String {
        self.graph.step(id).map_or_else(|| "another step".to_owned(), |step| step.label.clone())
    }

    fn described(&self, node: &Node, counts: &[bool]) -> Last {
        let named = |id: &StepId| self.step_name(id);
        let words = |texts: Vec<String>, from: usize| {
            texts.into_iter().skip(from).map(|text| Word { text, matters: Matters::Always }).collect::<Vec<_>>()
        };
        let (tool, words) = match (action(&node.step.action, &named), &node.step.action) {
            (PlanAction::Run { tool, env, then, .. }, Action::Run(program)) => {
                let slots = slots(&node.step);
                let matters = |word: &Arg| match word.scope().and_then(|scope| slots.iter().position(|slot| slot == scope)) {
                    None => Matters::Always,
                    Some(slot) if counts.get(slot) == Some(&false) => Matters::Nowhere,
                    Some(_) => Matters::Here,
                };
                let args = program.args.iter().map(|word| Word { text: arg(word, &named), matters: matters(word) });
                let calls = then.into_iter().flat_map(|argv| words(argv, 1));
                (tool, args.chain(words(env, 0)).chain(calls).collect())
            }
            (PlanAction::Run { tool, .. }, Action::Builtin(_)) => (tool, Vec::new()),
            (PlanAction::Builtin { name, version }, _) => (format!("{name} {version}"), Vec::new()),
        };
        let needs = self.graph.dependencies(&node.id).map(|id| {
            let verb = self.graph.step(id).map(|step| step.verb).unwrap_or_default();
            (id.to_string(), format!("{verb} {}", self.step_name(id)))
        });
        Last { id: node.id.to_string(), tool, needs: needs.collect(), words }
    }
}

/// Which words are new, and which are gone. A new one with a scope makes a difference where those did that are gone.
fn differences(last: &Last, now: &Last) -> (Vec<Word>, Vec<Word>) {
    let mut removed = last.words.clone();
    let mut added = Vec::new();
    for word in &now.words {
        match removed.iter().position(|known| known.text == word.text) {
            Some(at) => drop(removed.remove(at)),
            None => added.push(word.clone()),
        }
    }
    let any = |matters: Matters| removed.iter().any(|word| word.matters == matters);
    if any(Matters::Nowhere) && !any(Matters::Here) {
        added.iter_mut().filter(|word| word.matters == Matters::Here).for_each(|word| word.matters = Matters::Nowhere);
    }
    (added, removed)
}

impl Last {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.text(self.id.as_bytes());
        out.text(self.tool.as_bytes());
        out.count(self.needs.len());
        for (id, name) in &self.needs {
            out.text(id.as_bytes());
            out.text(name.as_bytes());
        }
        out.count(self.words.len());
        for word in &self.words {
            out.text(word.text.as_bytes());
            out.0.push(match word.matters {
                Matters::Always => 0,
                Matters::Here => 1,
                Matters::Nowhere => 2,
            });
        }
        out.sealed()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::open(bytes, MAGIC)?;
        let mut last = Self { id: reader.string()?, tool: reader.string()?, needs: Vec::new(), words: Vec::new() };
        for _ in 0..reader.count()? {
            last.needs.push((reader.string()?, reader.string()?));
        }
        for _ in 0..reader.count()? {
            let text = reader.string()?;
            let matters = match reader.byte()? {
                0 => Matters::Always,
                1 => Matters::Here,
                2 => Matters::Nowhere,
                _ => return None,
            };
            last.words.push(Word { text, matters });
        }
        reader.is_empty().then_some(last)
    }
}
