//! The record of a step: what the run that made its outputs read and wrote.
//!
//! A record is a small binary file that ends with a digest of all before it. Whatever is not exactly what was written
//! (truncated, altered, of another version, of another step) is no record, and the step runs again.

use std::fs;
use std::path::Path;

use crate::content::{Content, Digest, Stamp, State};
use crate::place::Place;
use crate::step::{OutputRef, RootName, StepId};
use crate::trace::Watch;

/// First bytes of every record. Changed with the format.
const MAGIC: &[u8] = b"kiln record 2\n";

/// What the last complete run of a step read and wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Files that it read, each once: declared and mentioned ones, those of the depfile, and those that would be read if they were there.
    pub(crate) inputs: Vec<Entry>,
    /// Directories in which nothing may appear that it would have read.
    pub(crate) watches: Vec<Watch>,
    /// What the run took.
    pub(crate) cost: Cost,
    /// Files that it made, in the order of the step's outputs.
    pub(crate) outputs: Vec<Made>,
}

/// What a run took; zero where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Wall time in ms.
    pub(crate) wall_ms: u64,
    /// Largest resident set of a process in it, in KiB.
    pub(crate) peak_kib: u64,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) state: State,
    /// Stands for the state while the file has it; never there for files that were too young, nor for other steps' outputs.
    pub(crate) stamp: Option<Stamp>,
}

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    /// As in [`Entry::stamp`].
    pub(crate) stamp: Option<Stamp>,
}

impl Entry {
    pub(crate) fn new(place: Place, content: &Content) -> Self {
        let stamp = match place {
            Place::Output(_) => None,
            _ => content.settled_stamp(),
        };
        Self { place, state: content.state, stamp }
    }
}

impl Record {
    /// Reads the record of `step`; `None` if there is none that can be trusted.
    pub(crate) fn load(path: &Path, step: &StepId) -> Option<Self> {
        Self::from_bytes(&fs::read(path).ok()?, step)
    }

    /// The record as bytes, for a step.
    pub(crate) fn to_bytes(&self, step: &StepId) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.text(step.as_str().as_bytes());
        out.count(self.inputs.len());
        for entry in &self.inputs {
            out.place(&entry.place);
            match &entry.state {
                State::Absent => out.0.push(0),
                State::NotAFile => out.0.push(1),
                State::File(digest) => {
                    out.0.push(2);
                    out.0.extend(digest.0);
                }
                State::Unknown => out.0.push(3),
            }
            out.stamp(entry.stamp.as_ref());
        }
        out.count(self.watches.len());
        for watch in &self.watches {
            out.watch(watch);
        }
        out.cost(self.cost);
        out.count(self.outputs.len());
        for made in &self.outputs {
            out.text(made.name.as_bytes());
            out.0.extend(made.digest.0);
            out.stamp(made.stamp.as_ref());
        }
        out.sealed()
    }

    /// Undoes [`Record::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8], step: &StepId) -> Option<Self> {
        let mut reader = Reader::open(bytes, MAGIC)?;
        if reader.text()? != step.as_str().as_bytes() {
            return None;
        }
        let mut inputs = Vec::new();
        for _ in 0..reader.count()? {
            let place = reader.place()?;
            let state = match reader.byte()? {
                0 => State::Absent,
                1 => State::NotAFile,
                2 => State::File(Digest(reader.array()?)),
                3 => State::Unknown,
                _ => return None,
            };
            inputs.push(Entry { place, state, stamp: reader.stamp()? });
        }
        let mut watches = Vec::new();
        for _ in 0..reader.count()? {
            watches.push(reader.watch()?);
        }
        let cost = reader.cost()?;
        let mut outputs = Vec::new();
        for _ in 0..reader.count()? {
            outputs.push(Made { name: reader.string()?, digest: Digest(reader.array()?), stamp: reader.stamp()? });
        }
        reader.0.is_empty().then_some(Self { inputs, watches, cost, outputs })
    }
}

/// Writes the files of this crate: counts and texts with their lengths, little-endian.
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn place(&mut self, place: &Place) {
        match place {
            Place::Root { root, path } => {
                self.0.push(0);
                self.text(root.as_str().as_bytes());
                self.text(path);
            }
            Place::Output(output) => {
                self.0.push(1);
                self.text(output.step.as_str().as_bytes());
                self.text(output.name.as_bytes());
            }
            Place::Absolute(path) => {
                self.0.push(2);
                self.text(path);
            }
        }
    }

    pub(crate) fn watch(&mut self, watch: &Watch) {
        self.place(&watch.dir);
        self.count(watch.names.len());
        for name in &watch.names {
            self.0.extend(name.to_le_bytes());
        }
        match watch.listing {
            None => self.0.push(0),
            Some(digest) => {
                self.0.push(1);
                self.0.extend(digest.0);
            }
        }
    }

    pub(crate) fn cost(&mut self, cost: Cost) {
        self.0.extend(cost.wall_ms.to_le_bytes());
        self.0.extend(cost.peak_kib.to_le_bytes());
    }

    /// The whole with the digest of all before it at its end.
    pub(crate) fn sealed(self) -> Vec<u8> {
        let mut bytes = self.0;
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        bytes
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.0.extend((count as u64).to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.0.extend(text);
    }

    fn stamp(&mut self, stamp: Option<&Stamp>) {
        match stamp {
            None => self.0.push(0),
            Some(stamp) => {
                self.0.push(1);
                self.0.extend(stamp.size.to_le_bytes());
                self.0.extend(stamp.mtime.to_le_bytes());
                self.0.extend(stamp.ctime.to_le_bytes());
                self.0.extend(stamp.inode.to_le_bytes());
            }
        }
    }
}

/// Reads what a [`Writer`] wrote. Every method gives nothing where the bytes are not that.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Begins to read what [`Writer::sealed`] gave, if it is whole and begins with `magic`.
    pub(crate) fn open(bytes: &'a [u8], magic: &[u8]) -> Option<Self> {
        let (body, digest) = bytes.split_last_chunk::<32>()?;
        (blake3::hash(body) == blake3::Hash::from_bytes(*digest)).then_some(())?;
        Some(Self(body.strip_prefix(magic)?))
    }

    pub(crate) fn place(&mut self) -> Option<Place> {
        Some(match self.byte()? {
            0 => Place::Root { root: RootName::new(self.string()?), path: self.text()?.to_vec() },
            1 => Place::Output(OutputRef { step: StepId(self.string()?.into()), name: self.string()? }),
            2 => Place::Absolute(self.text()?.to_vec()),
            _ => return None,
        })
    }

    pub(crate) fn watch(&mut self) -> Option<Watch> {
        let dir = self.place()?;
        let mut names = Vec::new();
        for _ in 0..self.count()? {
            names.push(u64::from_le_bytes(self.array()?));
        }
        let listing = match self.byte()? {
            0 => None,
            1 => Some(Digest(self.array()?)),
            _ => return None,
        };
        Some(Watch { dir, names, listing })
    }

    pub(crate) fn cost(&mut self) -> Option<Cost> {
        Some(Cost { wall_ms: u64::from_le_bytes(self.array()?), peak_kib: u64::from_le_bytes(self.array()?) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).ok()
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.count()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }

    pub(crate) fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.to_vec()).ok()
    }

    #[expect(clippy::option_option, reason = "the outer option is the reader's failure, the inner one is the value")]
    fn stamp(&mut self) -> Option<Option<Stamp>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(Stamp {
                size: u64::from_le_bytes(self.array()?),
                mtime: i64::from_le_bytes(self.array()?),
                ctime: i64::from_le_bytes(self.array()?),
                inode: u64::from_le_bytes(self.array()?),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step() -> StepId {
        StepId("0123456789abcdef0123456789abcdef".into())
    }

    fn stamp() -> impl Strategy<Value = Option<Stamp>> {
        prop::option::of(any::<(u64, i64, i64, u64)>().prop_map(|(size, mtime, ctime, inode)| Stamp { size, mtime, ctime, inode }))
    }

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![
            ("[a-z]{0,4}", any::<Vec<u8>>()).prop_map(|(root, path)| Place::Root { root: RootName::new(root), path }),
            ("[0-9a-f]{32}", "[a-zü/]{1,6}").prop_map(|(id, name)| Place::Output(OutputRef { step: StepId(id.into()), name })),
            any::<Vec<u8>>().prop_map(Place::Absolute),
        ]
    }

    fn state() -> impl Strategy<Value = State> {
        prop_oneof![
            Just(State::Absent),
            Just(State::NotAFile),
            Just(State::Unknown),
            any::<[u8; 32]>().prop_map(|digest| State::File(Digest(digest))),
        ]
    }

    fn record() -> impl Strategy<Value = Record> {
        let inputs =
            prop::collection::vec((place(), state(), stamp()).prop_map(|(place, state, stamp)| Entry { place, state, stamp }), 0..4);
        let outputs = prop::collection::vec(
            ("[a-z]{1,4}", any::<[u8; 32]>(), stamp()).prop_map(|(name, digest, stamp)| Made { name, digest: Digest(digest), stamp }),
            0..3,
        );
        let watches = prop::collection::vec(
            (place(), prop::collection::vec(any::<u64>(), 0..3), prop::option::of(any::<[u8; 32]>().prop_map(Digest)))
                .prop_map(|(dir, names, listing)| Watch { dir, names, listing }),
            0..3,
        );
        let cost = any::<(u64, u64)>().prop_map(|(wall_ms, peak_kib)| Cost { wall_ms, peak_kib });
        (inputs, watches, cost, outputs).prop_map(|(inputs, watches, cost, outputs)| Record { inputs, watches, cost, outputs })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(record in record()) {
            prop_assert_eq!(Record::from_bytes(&record.to_bytes(&step()), &step()), Some(record));
        }

        #[test]
        fn damage_is_no_record(record in record(), at in any::<prop::sample::Index>(), bit in 0_u32..8) {
            let bytes = record.to_bytes(&step());
            let mut flipped = bytes.clone();
            flipped[at.index(bytes.len())] ^= 1 << bit;
            prop_assert_eq!(Record::from_bytes(&flipped, &step()), None);
            prop_assert_eq!(Record::from_bytes(&bytes[..at.index(bytes.len())], &step()), None);
        }

        #[test]
        fn bytes_with_a_right_digest_are_read_without_panic(body in any::<Vec<u8>>()) {
            let mut bytes = Writer(MAGIC.to_vec());
            bytes.text(step().as_str().as_bytes());
            bytes.0.extend(body);
            let digest = blake3::hash(&bytes.0);
            bytes.0.extend(digest.as_bytes());
            let _ = Record::from_bytes(&bytes.0, &step());
        }
    }

    #[test]
    fn the_record_of_another_step_is_no_record() {
        let bytes = Record { inputs: Vec::new(), watches: Vec::new(), cost: Cost::default(), outputs: Vec::new() }.to_bytes(&step());
        assert_eq!(Record::from_bytes(&bytes, &StepId("x".into())), None);
        assert_eq!(Record::from_bytes(b"", &step()), None);
    }
}
