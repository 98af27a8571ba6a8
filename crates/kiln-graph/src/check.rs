//! Decides whether a step's outputs are what a run would make.

use crate::content::{Content, Stat, State, stat};
use crate::event::Reason;
use crate::place::Place;
use crate::record::{Entry, Made, Record};
use crate::step::{OutputRef, Step, StepId};
use crate::trace::Watch;

/// What a check needs to know of the run it is part of.
pub(crate) trait Now {
    /// What is at `place`; an output of another step has settled in this run.
    fn content(&self, place: &Place) -> Content;
    /// The same without its content; `None` for other steps' outputs.
    fn stat(&self, place: &Place) -> Option<Stat>;
    /// What has appeared in a directory that is watched.
    fn appeared(&self, watch: &Watch) -> Option<Vec<u8>>;
    /// What the user calls a place.
    fn name(&self, place: &Place) -> String;
    /// Where an output is.
    fn output_path(&self, output: &OutputRef) -> std::path::PathBuf;
}

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The outputs are good.
    UpToDate {
        /// What they are, in the order of the step's outputs.
        product: Vec<Content>,
        /// The record with stamps as they are now, if they differ from those of the old one: files were touched, or have
        /// become old enough to be known by their stamps.
        refreshed: Option<Record>,
    },
    /// The step has to run.
    Dirty(Reason),
}

/// Judges a step by the record of its last run.
pub(crate) fn judge(id: &StepId, step: &Step, record: Option<&Record>, now: &impl Now) -> Verdict {
    let known = record.filter(|record| record.outputs.iter().map(|made| &made.name).eq(&step.outputs));
    let Some(record) = known else { return Verdict::Dirty(Reason::NoRecord) };
    let mut refreshed = Record {
        inputs: Vec::with_capacity(record.inputs.len()),
        watches: record.watches.clone(),
        cost: record.cost,
        outputs: Vec::with_capacity(record.outputs.len()),
    };

    let mut changes = Changes::default();
    for entry in &record.inputs {
        let content = current(entry, now);
        changes.input(entry, &content, now);
        refreshed.inputs.push(Entry::new(entry.place.clone(), &content));
    }
    changes.appeared(&record.watches, now);
    if let Some(reason) = changes.into_reason() {
        return Verdict::Dirty(reason);
    }

    let mut product = Vec::with_capacity(record.outputs.len());
    for made in &record.outputs {
        let output = made.name.clone();
        let path = now.output_path(&OutputRef { step: id.clone(), name: output.clone() });
        let content = match (stat(&path), made.stamp) {
            (Stat::Absent, _) => return Verdict::Dirty(Reason::OutputMissing { output }),
            (Stat::File(stamp), Some(known)) if stamp == known => {
                Content { state: State::File(made.digest), stamp: Some(stamp), settled: true }
            }
            _ => crate::content::read(&path),
        };
        if !content.state.matches(&State::File(made.digest)) {
            return Verdict::Dirty(Reason::OutputAltered { output });
        }
        refreshed.outputs.push(Made { name: output, digest: made.digest, stamp: content.settled_stamp() });
        product.push(content);
    }
    let refreshed = (refreshed != *record).then_some(refreshed);
    Verdict::UpToDate { product, refreshed }
}

/// How many inputs that changed are named.
const NAMED: usize = 4;

/// What differs from what a run read, and is not read for that.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    reasons: Vec<Reason>,
    more: usize,
}

impl Changes {
    /// What differs from what `record` says. `place_now` says what is read now in place of what was read then, if anything is.
    pub(crate) fn since(record: &Record, now: &impl Now, place_now: impl Fn(&Place) -> Option<Place>) -> Self {
        let mut changes = Self::default();
        for entry in &record.inputs {
            let Some(place) = place_now(&entry.place) else { continue };
            let entry = Entry { place, ..entry.clone() };
            let content = current(&entry, now);
            changes.input(&entry, &content, now);
        }
        changes.appeared(&record.watches, now);
        changes
    }

    /// Adds something else that differs.
    pub(crate) fn add(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    /// The one reason, or all of them as one; nothing where nothing differs.
    pub(crate) fn into_reason(mut self) -> Option<Reason> {
        match (self.reasons.len(), self.more) {
            (0 | 1, 0) => self.reasons.pop(),
            (_, more) => Some(Reason::Several { reasons: self.reasons, more }),
        }
    }

    fn input(&mut self, entry: &Entry, content: &Content, now: &impl Now) {
        if content.state.matches(&entry.state) {
            return;
        }
        let input = now.name(&entry.place);
        self.name(match (entry.state, content.state) {
            (State::Absent, _) => Reason::InputAppeared { input },
            (_, State::Absent) => Reason::InputMissing { input },
            (State::Unknown, _) => Reason::InputUnknown { input },
            _ => Reason::InputChanged { input },
        });
    }

    fn appeared(&mut self, watches: &[Watch], now: &impl Now) {
        for watch in watches {
            if let Some(name) = now.appeared(watch) {
                let (dir, name) = (now.name(&watch.dir), String::from_utf8_lossy(&name).into_owned());
                let input = if name.is_empty() { dir } else { format!("{dir}/{name}") };
                self.name(Reason::InputAppeared { input: input.replace(":/", ":") });
            }
        }
    }

    fn name(&mut self, reason: Reason) {
        if self.reasons.contains(&reason) {
            return;
        }
        if self.reasons.len() < NAMED { self.reasons.push(reason) } else { self.more += 1 }
    }
}

/// What an input is now.
fn current(entry: &Entry, now: &impl Now) -> Content {
    by_stamp(entry, now).unwrap_or_else(|| now.content(&entry.place))
}

/// What an input is, if that can be told without reading it.
fn by_stamp(entry: &Entry, now: &impl Now) -> Option<Content> {
    match (now.stat(&entry.place)?, entry.state, entry.stamp) {
        (Stat::File(stamp), State::File(_), Some(known)) if stamp == known => {
            Some(Content { state: entry.state, stamp: Some(stamp), settled: true })
        }
        _ => None,
    }
}
