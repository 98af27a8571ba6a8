//! Which step is next, and what follows from one that is done. Knows nothing of files, processes or threads.
//!
//! A step is ready when all that it needs has ended well. Of the ready ones, the one with the longest expected path to the
//! end of the graph goes first: whatever is started late then is short. Equal paths go in graph order.
//!
//! How long a step is expected to take is the first of these that is known ([`expected`]):
//!
//! | what | why |
//! |---|---|
//! | the time in its record | this very step ran here, or where its result in the cache comes from |
//! | the longest time of steps of its name, in the last run that had any (`history.rs`) | arguments were others then; the sources are the same |
//! | [`crate::Weight::cpu_ms`] | what steps of its kind take |
//!
//! All are wall times in ms. Those of a run that was suspended meanwhile count for nothing. Without a record and a history the order
//! follows from the graph alone. So it does with one job, always: there no order is faster than another, and one that stays
//! the same from run to run is easier to read.
//!
//! Steps that turn out to be up to date have their times in the paths of those before them, too: nobody knows yet. They take
//! no time when their turn comes, so that this costs nothing.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::graph::{Graph, Node};
use crate::history::History;
use crate::outcome::StepState;
use crate::record::Record;

/// What follows from a step that is done, or from a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consequence {
    /// This step will not run.
    Skipped(usize),
    /// All steps of this target are done.
    Target { target: usize, ok: bool },
}

/// The state of a graph that runs.
#[derive(Debug)]
pub(crate) struct Schedule {
    slots: Vec<Slot>,
    ready: BinaryHeap<(u64, Reverse<usize>)>,
    /// Steps that nobody has taken and that were not skipped.
    unstarted: usize,
    /// Steps that are not done.
    open: usize,
    targets: Vec<TargetSlot>,
    abandoned: bool,
}

#[derive(Debug)]
struct Slot {
    /// How many of its dependencies are not done.
    waits_for: usize,
    dependents: Vec<usize>,
    targets: Vec<usize>,
    /// Steps that were put back until this one is done.
    parked: Vec<usize>,
    /// Expected time from its start to the end of the graph, in ms.
    path: u64,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Done(StepState),
}

#[derive(Debug)]
struct TargetSlot {
    open: usize,
    ok: bool,
}

/// What a step is expected to take, in ms.
pub(crate) fn expected(node: &Node, record: Option<&Record>, history: &History) -> u64 {
    let recorded = record.map(|record| record.cost.wall_ms).filter(|ms| *ms > 0);
    recorded.or_else(|| history.duration(&node.step)).unwrap_or(node.step.weight.cpu_ms.into())
}

impl Schedule {
    /// The schedule of `graph` with nothing done, and the targets that need nothing. `expected` gives what each step will take, in ms.
    pub(crate) fn new(graph: &Graph, expected: impl Fn(usize, &Node) -> u64) -> (Self, Vec<Consequence>) {
        let nodes = graph.nodes();
        let mut slots: Vec<Slot> = nodes
            .iter()
            .map(|node| Slot {
                waits_for: node.dependencies.len(),
                dependents: Vec::new(),
                targets: Vec::new(),
                parked: Vec::new(),
                path: 0,
                phase: Phase::Waiting,
            })
            .collect();
        for (index, node) in nodes.iter().enumerate() {
            for &dependency in &node.dependencies {
                slots[dependency].dependents.push(index);
            }
        }
        for (index, node) in nodes.iter().enumerate().rev() {
            let after = slots[index].dependents.iter().map(|&dependent| slots[dependent].path).max().unwrap_or(0);
            slots[index].path = after.saturating_add(expected(index, node));
        }
        let mut targets = Vec::new();
        for (target, closure) in graph.target_closures().into_iter().enumerate() {
            targets.push(TargetSlot { open: closure.len(), ok: true });
            for index in closure {
                slots[index].targets.push(target);
            }
        }
        let ready = slots.iter().enumerate().filter(|(_, slot)| slot.waits_for == 0).map(|(index, slot)| (slot.path, Reverse(index)));
        let ready = ready.collect();
        let done = targets.iter().enumerate().filter(|(_, slot)| slot.open == 0);
        let done = done.map(|(target, _)| Consequence::Target { target, ok: true }).collect();
        (Self { unstarted: slots.len(), open: slots.len(), slots, ready, targets, abandoned: false }, done)
    }

    /// Takes the step that goes next, if one is ready.
    pub(crate) fn take(&mut self) -> Option<usize> {
        loop {
            let (_, Reverse(index)) = self.ready.pop()?;
            // What was skipped stays in the heap.
            if self.slots[index].phase == Phase::Waiting {
                self.slots[index].phase = Phase::Running;
                self.unstarted -= 1;
                return Some(index);
            }
        }
    }

    /// Gives a step back that was taken, until `other` is done.
    pub(crate) fn put_back(&mut self, index: usize, other: usize) {
        self.slots[index].phase = Phase::Waiting;
        self.unstarted += 1;
        if matches!(self.slots[other].phase, Phase::Done(_)) {
            self.ready.push((self.slots[index].path, Reverse(index)));
        } else {
            self.slots[other].parked.push(index);
        }
    }

    /// Whether a step may still become ready.
    pub(crate) fn has_unstarted(&self) -> bool {
        self.unstarted > 0
    }

    /// Whether there is nothing more to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.open == 0 || self.abandoned
    }

    /// Whoever took a step will never finish it.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// A step that was taken is done.
    pub(crate) fn finish(&mut self, index: usize, state: StepState) -> Vec<Consequence> {
        let ok = state.is_ok();
        let mut consequences = Vec::new();
        self.settle(index, state, &mut consequences);
        for parked in std::mem::take(&mut self.slots[index].parked) {
            self.ready.push((self.slots[parked].path, Reverse(parked)));
        }
        for dependent in self.slots[index].dependents.clone() {
            let slot = &mut self.slots[dependent];
            slot.waits_for -= 1;
            if ok && slot.waits_for == 0 && slot.phase == Phase::Waiting {
                self.ready.push((slot.path, Reverse(dependent)));
            }
        }
        if !ok {
            let mut doomed = BTreeSet::new();
            let mut open = self.slots[index].dependents.clone();
            while let Some(dependent) = open.pop() {
                if doomed.insert(dependent) {
                    open.extend(&self.slots[dependent].dependents);
                }
            }
            self.skip(doomed, &mut consequences);
        }
        consequences.sort_unstable();
        consequences
    }

    /// Skips everything that has not been taken.
    pub(crate) fn stop(&mut self) -> Vec<Consequence> {
        let mut consequences = Vec::new();
        self.skip(0..self.slots.len(), &mut consequences);
        consequences.sort_unstable();
        consequences
    }

    /// The states of all steps in graph order, and whether each target is whole.
    pub(crate) fn into_states(self) -> (Vec<StepState>, Vec<bool>) {
        let states = self.slots.into_iter().map(|slot| match slot.phase {
            Phase::Done(state) => state,
            Phase::Waiting | Phase::Running => StepState::Skipped,
        });
        (states.collect(), self.targets.iter().map(|target| target.ok && target.open == 0).collect())
    }

    fn skip(&mut self, indices: impl IntoIterator<Item = usize>, consequences: &mut Vec<Consequence>) {
        for index in indices {
            if self.slots[index].phase == Phase::Waiting {
                self.unstarted -= 1;
                consequences.push(Consequence::Skipped(index));
                self.settle(index, StepState::Skipped, consequences);
            }
        }
    }

    fn settle(&mut self, index: usize, state: StepState, consequences: &mut Vec<Consequence>) {
        let ok = state.is_ok();
        self.slots[index].phase = Phase::Done(state);
        self.open -= 1;
        for &target in &self.slots[index].targets {
            let slot = &mut self.targets[target];
            slot.open -= 1;
            slot.ok &= ok;
            if slot.open == 0 {
                consequences.push(Consequence::Target { target, ok: slot.ok });
            }
        }
    }
}
