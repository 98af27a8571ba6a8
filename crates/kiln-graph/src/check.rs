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

    for entry in &record.inputs {
        let content = by_stamp(entry, now).unwrap_or_else(|| now.content(&entry.place));
        if !content.state.matches(&entry.state) {
            let input = entry.place.to_string();
            let was_there = matches!(entry.state, State::File(_) | State::Unknown);
            return Verdict::Dirty(match content.state {
                _ if entry.state == State::Absent => Reason::InputAppeared { input },
                State::Absent if was_there => Reason::InputMissing { input },
                _ => Reason::InputChanged { input },
            });
        }
        refreshed.inputs.push(Entry::new(entry.place.clone(), &content));
    }

    for watch in &record.watches {
        if let Some(name) = now.appeared(watch) {
            let name = String::from_utf8_lossy(&name).into_owned();
            let input = if name.is_empty() { watch.dir.to_string() } else { format!("{}/{name}", watch.dir) };
            return Verdict::Dirty(Reason::InputAppeared { input: input.replace(":/", ":") });
        }
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

/// What an input is, if that can be told without reading it.
fn by_stamp(entry: &Entry, now: &impl Now) -> Option<Content> {
    match (now.stat(&entry.place)?, entry.state, entry.stamp) {
        (Stat::File(stamp), State::File(_), Some(known)) if stamp == known => {
            Some(Content { state: entry.state, stamp: Some(stamp), settled: true })
        }
        _ => None,
    }
}
