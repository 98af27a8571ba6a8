//! The lists of arguments that steps of a graph share, each checked and hashed once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::args::List;
use crate::fingerprint::Key;
use crate::graph::GraphError;
use crate::step::{Action, Arg, Piece, Step};

/// What is known of the lists of a graph. Roots are bound once and steps stay, so that what holds for a list holds for good.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashMap<usize, Known>);

/// What is known of a list.
#[derive(Debug)]
pub(crate) struct Known {
    /// The list itself: as long as it is here, no other one is in its place.
    _list: Arc<[Arg]>,
    /// What stands for its arguments in the identity of a step.
    pub(crate) digest: Key,
    /// The steps whose files it mentions.
    pub(crate) dependencies: Vec<usize>,
    /// What it mentions of the step that has it.
    pub(crate) own: Vec<Piece>,
}

impl Known {
    pub(crate) fn new(list: &Arc<[Arg]>, digest: Key, dependencies: Vec<usize>) -> Self {
        let pieces = list.iter().flat_map(|arg| &arg.0);
        let own = pieces.filter(|piece| matches!(piece, Piece::Own(_) | Piece::Scratch(_))).cloned().collect();
        Self { _list: Arc::clone(list), digest, dependencies, own }
    }
}

impl Lists {
    /// What is known of `list`.
    pub(crate) fn get(&self, list: &Arc<[Arg]>) -> Option<&Known> {
        self.0.get(&place(list))
    }

    /// Keeps what `learn` finds out about each shared list of `step` of which nothing is known.
    pub(crate) fn learn(&mut self, step: &Step, learn: impl Fn(&Arc<[Arg]>) -> Result<Known, GraphError>) -> Result<(), GraphError> {
        let Action::Run(program) = &step.action else { return Ok(()) };
        for list in program.args.lists() {
            if let List::Shared(list) = list
                && self.get(list).is_none()
            {
                self.0.insert(place(list), learn(list)?);
            }
        }
        Ok(())
    }
}

/// Where a list lies in memory.
fn place(list: &Arc<[Arg]>) -> usize {
    list.as_ptr().addr()
}
