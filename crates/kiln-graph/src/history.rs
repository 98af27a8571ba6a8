//! How long steps took, by their names, so that the next run can start the longest chains first.
//!
//! The record of a step says what its own last run took. This file knows what a step *of that name* took, whatever its arguments were
//! then: after a flag has changed, or a release of torch was added, every step is a new one, and the old times are still the best guess.
//! Nothing but the order of steps is decided by it. So whatever is not exactly what was written is no history, and a process that
//! does not get to writing it loses no more than that.
//!
//! ```text
//! <work dir>/durations    magic, count, (name: 16 bytes, wall time in ms: 8 bytes).., digest of all before it
//! ```
//!
//! The names of the last run come first. Of names that no run had for long, the oldest go ([`MOST`]).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use crate::record::{Reader, Writer};
use crate::step::Step;
use crate::workdir::LockedWorkDir;

/// First bytes of the file. Changed with the format.
const MAGIC: &[u8] = b"kiln durations 1\n";

/// How many names are kept: more than projects have units, and less than 100 KB.
const MOST: usize = 4096;

/// Stands for verb and label. Steps that differ in anything else take about as long as one another.
type Name = [u8; 16];

/// What is known of earlier runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Names and times in ms, those of later runs first.
    order: Vec<(Name, u64)>,
    known: HashMap<Name, u64>,
}

impl History {
    /// Reads the file at `path`; nothing is known where it is not what was written.
    pub(crate) fn load(path: &Path) -> Self {
        let order = fs::read(path).ok().and_then(|bytes| from_bytes(&bytes)).unwrap_or_default();
        let known = order.iter().copied().collect();
        Self { order, known }
    }

    /// How long a step of this name took when one last ran, in ms.
    pub(crate) fn duration(&self, step: &Step) -> Option<u64> {
        self.known.get(&name(step)).copied()
    }

    /// Adds what steps took now and writes the file.
    ///
    /// # Errors
    /// When the work directory cannot be written to.
    pub(crate) fn save(mut self, took: &Took, path: &Path, work_dir: &LockedWorkDir) -> io::Result<()> {
        self.order.retain(|(name, _)| !took.0.contains_key(name));
        let order: Vec<(Name, u64)> = took.0.iter().map(|(name, ms)| (*name, *ms)).chain(self.order).take(MOST).collect();
        let mut out = Writer(MAGIC.to_vec());
        out.count(order.len());
        for (name, ms) in order {
            out.0.extend(name);
            out.0.extend(ms.to_le_bytes());
        }
        work_dir.write_atomically(path, &out.sealed())
    }
}

/// What the steps of a run took, by name.
#[derive(Debug, Default)]
pub(crate) struct Took(BTreeMap<Name, u64>);

impl Took {
    /// Notes what a step took, in ms. Of several with one name the longest counts, so that it does not matter which one ends last.
    pub(crate) fn note(&mut self, step: &Step, ms: u64) {
        let longest = self.0.entry(name(step)).or_default();
        *longest = ms.max(*longest);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn name(step: &Step) -> Name {
    let mut hasher = blake3::Hasher::new();
    hasher.update(step.verb.as_bytes()).update(b"\0").update(step.label.as_bytes());
    let mut name = Name::default();
    hasher.finalize_xof().fill(&mut name);
    name
}

fn from_bytes(bytes: &[u8]) -> Option<Vec<(Name, u64)>> {
    let mut reader = Reader::open(bytes, MAGIC)?;
    let mut order = Vec::new();
    for _ in 0..reader.count()? {
        order.push((reader.array()?, u64::from_le_bytes(reader.array()?)));
    }
    reader.is_empty().then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::step::{Action, ResourceClass, Weight};
    use crate::workdir::WorkDir;
    use crate::write_file;

    fn step(label: &str) -> Step {
        Step {
            verb: "Compiling",
            label: label.to_owned(),
            action: Action::Builtin(write_file(label, *b"")),
            inputs: Vec::new(),
            outputs: vec!["out".to_owned()],
            weight: Weight { cpu_ms: 1, memory_mib: 1 },
            resource: ResourceClass::Cpu,
        }
    }

    fn took(times: &[(&str, u64)]) -> Took {
        let mut took = Took::default();
        times.iter().for_each(|(label, ms)| took.note(&step(label), *ms));
        took
    }

    #[test]
    fn what_was_written_is_known_and_damage_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = WorkDir::open(dir.path()).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
        let path = dir.path().join("durations");
        assert_eq!(History::load(&path), History::default());
        History::load(&path).save(&took(&[("a", 5), ("b", 7), ("a", 3)]), &path, &work_dir).unwrap();
        History::load(&path).save(&took(&[("b", 1)]), &path, &work_dir).unwrap();
        let known = |label: &str| History::load(&path).duration(&step(label));
        assert_eq!((known("a"), known("b"), known("c")), (Some(5), Some(1), None));

        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert_eq!(History::load(&path), History::default(), "byte {at}");
            fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(History::load(&path), History::default(), "cut at {at}");
        }
    }

    #[test]
    fn what_was_not_seen_for_long_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let work_dir = WorkDir::open(dir.path()).unwrap().lock(None, &Interrupt::new(), &mut |_| {}).unwrap();
        let path = dir.path().join("durations");
        let many: Vec<String> = (0..MOST).map(|number| number.to_string()).collect();
        History::default().save(&took(&[("old", 1)]), &path, &work_dir).unwrap();
        let many: Vec<(&str, u64)> = many.iter().map(|label| (label.as_str(), 2)).collect();
        History::load(&path).save(&took(&many), &path, &work_dir).unwrap();
        let history = History::load(&path);
        assert_eq!((history.duration(&step("old")), history.duration(&step("0")), history.order.len()), (None, Some(2), MOST));
    }
}
