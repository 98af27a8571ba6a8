//! The files of the cache as values.

use crate::content::Digest;
use crate::fingerprint::Key;
use crate::place::Place;
use crate::record::{Cost, Reader, Writer};
use crate::trace::Watch;

/// First bytes of every manifest and every result. Changed with the formats.
const MANIFEST: &[u8] = b"kiln manifest 2\n";
const RESULT: &[u8] = b"kiln result 1\n";

/// Names the digest of a result's key.
const RESULT_KEY: &str = "kiln result key 1";

/// How many sets a manifest holds: as many states of a unit's includes as are likely to come back.
const SETS: usize = 12;

/// What a run read. Roots of slots are called by the slot's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputSet {
    /// Places that are judged by their state, ascending.
    pub(crate) places: Vec<Place>,
    /// Directories in which nothing may appear.
    pub(crate) watches: Vec<Watch>,
    /// For each slot of the step: its word, and whether its arguments count.
    pub(crate) slots: Vec<(Option<String>, bool)>,
}

/// What is known of a step whatever its inputs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Sets of inputs, the last one first.
    pub(crate) sets: Vec<InputSet>,
    /// What the last run took.
    pub(crate) cost: Cost,
}

/// A file of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) executable: bool,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultEntry {
    /// The outputs, in the order of the step's.
    pub(crate) outputs: Vec<Kept>,
    /// What the program wrote, directories replaced.
    pub(crate) log: Vec<u8>,
    pub(crate) cost: Cost,
}

impl InputSet {
    fn write(&self, out: &mut Writer) {
        out.count(self.places.len());
        self.places.iter().for_each(|place| out.place(place));
        out.count(self.watches.len());
        self.watches.iter().for_each(|watch| out.watch(watch));
        out.count(self.slots.len());
        for (word, counts) in &self.slots {
            match word {
                None => out.0.push(0),
                Some(word) => {
                    out.0.push(1);
                    out.text(word.as_bytes());
                }
            }
            out.0.push(u8::from(*counts));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut set = Self { places: Vec::new(), watches: Vec::new(), slots: Vec::new() };
        for _ in 0..reader.count()? {
            set.places.push(reader.place()?);
        }
        for _ in 0..reader.count()? {
            set.watches.push(reader.watch()?);
        }
        for _ in 0..reader.count()? {
            let word = match reader.byte()? {
                0 => None,
                1 => Some(reader.string()?),
                _ => return None,
            };
            let counts = match reader.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            set.slots.push((word, counts));
        }
        Some(set)
    }

    /// The key of the result that a step with the manifest `manifest` has when the places of this set have `states`, which no two
    /// different values write alike, and its slots that count hold `scoped`.
    pub(crate) fn result_key(&self, manifest: &Key, states: &[u8], scoped: &[Key]) -> Key {
        let mut out = Writer(manifest.0.to_vec());
        // A word that makes no difference is no part of the key.
        Self { slots: self.slots.iter().map(|(_, counts)| (None, *counts)).collect(), ..self.clone() }.write(&mut out);
        out.text(states);
        out.count(scoped.len());
        scoped.iter().for_each(|key| out.0.extend(key.0));
        Key(blake3::derive_key(RESULT_KEY, &out.0))
    }
}

impl Manifest {
    pub(crate) fn to_bytes(&self, key: &Key) -> Vec<u8> {
        let mut out = Writer(MANIFEST.to_vec());
        out.0.extend(key.0);
        out.cost(self.cost);
        out.count(self.sets.len());
        self.sets.iter().for_each(|set| set.write(&mut out));
        out.sealed()
    }

    pub(crate) fn from_bytes(bytes: &[u8], key: &Key) -> Option<Self> {
        let mut reader = Reader::open(bytes, MANIFEST)?;
        (reader.array()? == key.0).then_some(())?;
        let mut manifest = Self { cost: reader.cost()?, sets: Vec::new() };
        for _ in 0..reader.count()? {
            manifest.sets.push(InputSet::read(&mut reader)?);
        }
        reader.is_empty().then_some(manifest)
    }

    /// Puts `set` first. Returns whether anything changed.
    pub(crate) fn add(&mut self, set: &InputSet, cost: Cost) -> bool {
        if self.sets.first() == Some(set) && self.cost == cost {
            return false;
        }
        self.sets.retain(|known| known != set);
        self.sets.insert(0, set.clone());
        self.sets.truncate(SETS);
        self.cost = cost;
        true
    }
}

impl ResultEntry {
    pub(crate) fn to_bytes(&self, key: &Key) -> Vec<u8> {
        let mut out = Writer(RESULT.to_vec());
        out.0.extend(key.0);
        out.cost(self.cost);
        out.count(self.outputs.len());
        for kept in &self.outputs {
            out.text(kept.name.as_bytes());
            out.0.extend(kept.digest.0);
            out.0.extend(kept.size.to_le_bytes());
            out.0.push(u8::from(kept.executable));
        }
        out.text(&self.log);
        out.sealed()
    }

    pub(crate) fn from_bytes(bytes: &[u8], key: &Key) -> Option<Self> {
        let mut reader = Reader::open(bytes, RESULT)?;
        (reader.array()? == key.0).then_some(())?;
        let cost = reader.cost()?;
        let mut outputs = Vec::new();
        for _ in 0..reader.count()? {
            let (name, digest) = (reader.string()?, Digest(reader.array()?));
            let (size, executable) = (u64::from_le_bytes(reader.array()?), reader.byte()?);
            outputs.push(Kept { name, digest, size, executable: executable == 1 });
        }
        let log = reader.text()?.to_vec();
        reader.is_empty().then_some(Self { outputs, log, cost })
    }
}
