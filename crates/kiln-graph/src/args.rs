//! Arguments of a program: its own, and lists that it has in common with other steps.

use std::sync::Arc;

use crate::step::Arg;

/// The arguments of a program, in order.
///
/// Most of what the units of a kernel are compiled with is the same for all of them. A list that is [shared](Args::share) is described
/// and kept once for all the steps that have it, and each graph checks and hashes it once. It enters the identity of a step as one digest:
/// steps with equal arguments are one step if they are cut into lists alike. To the cache they are the same action either way.
#[derive(Clone, Debug, Default)]
pub struct Args(Vec<List>);

/// Some arguments in a row.
#[derive(Clone, Debug)]
pub(crate) enum List {
    /// Of one step.
    Own(Vec<Arg>),
    /// Of several.
    Shared(Arc<[Arg]>),
}

impl List {
    fn args(&self) -> &[Arg] {
        match self {
            Self::Own(args) => args,
            Self::Shared(args) => args,
        }
    }
}

impl Args {
    /// No arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// No arguments, with room for this many lists.
    pub fn with_capacity(lists: usize) -> Self {
        Self(Vec::with_capacity(lists))
    }

    /// All arguments, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arg> + Clone {
        self.0.iter().flat_map(List::args)
    }

    /// Adds an argument.
    pub fn push(&mut self, arg: Arg) {
        match self.0.last_mut() {
            Some(List::Own(args)) => args.push(arg),
            _ => self.0.push(List::Own(vec![arg])),
        }
    }

    /// Adds arguments that other steps have, too.
    pub fn share(&mut self, args: &Arc<[Arg]>) {
        if !args.is_empty() {
            self.0.push(List::Shared(Arc::clone(args)));
        }
    }

    /// All arguments as a list of their own.
    pub fn into_vec(self) -> Vec<Arg> {
        match <[List; 1]>::try_from(self.0) {
            Ok([List::Own(args)]) => args,
            Ok([List::Shared(args)]) => args.to_vec(),
            Err(lists) => Self(lists).iter().cloned().collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|list| list.args().len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The arguments, list by list.
    pub(crate) fn lists(&self) -> &[List] {
        &self.0
    }
}

impl From<Vec<Arg>> for Args {
    fn from(args: Vec<Arg>) -> Self {
        Self(vec![List::Own(args)])
    }
}

impl FromIterator<Arg> for Args {
    fn from_iter<I: IntoIterator<Item = Arg>>(args: I) -> Self {
        Self::from(args.into_iter().collect::<Vec<Arg>>())
    }
}

impl Extend<Arg> for Args {
    fn extend<I: IntoIterator<Item = Arg>>(&mut self, args: I) {
        args.into_iter().for_each(|arg| self.push(arg));
    }
}
