//! A set of names as sorted fingerprints, the gaps between them Rice-coded.
//!
//! Each of `n` names is hashed (BLAKE3) to a number below `n * 2^20`; the numbers are sorted and the differences kept.
//! A name that is not in the set hits one of the `n` numbers with a chance of 2^-20, about one in a million.
//! The code of a difference `d` is `d >> 20` one bits, a zero bit, and the low 20 bits of `d`; since differences are
//! 2^20 on average, a name costs about 21.6 bits.

use std::sync::OnceLock;

use super::file::NamesError;

/// Bits of a difference that are kept as they are; also the spread of the fingerprints.
const BITS: u32 = 20;

/// A set of names that knows only their fingerprints.
#[derive(Clone, Debug)]
pub struct CodedSet {
    /// How many names went in. Larger than the number of fingerprints when two names have one in common.
    names: u32,
    /// Ascending, without duplicates. Those of `coded` once somebody asks for one.
    fingerprints: OnceLock<Vec<u64>>,
    /// A set that is known to be whole, still encoded; empty for one whose fingerprints are there.
    coded: &'static [u8],
    /// Of the encoded set: kept, since encoding takes longer than everything else that is done with a set.
    digest: blake3::Hash,
}

/// Equal sets are encoded alike.
impl PartialEq for CodedSet {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for CodedSet {}

impl Default for CodedSet {
    /// The empty set.
    fn default() -> Self {
        Self::from_parts(0, Vec::new())
    }
}

impl CodedSet {
    /// The set of these names. Doubled names count once.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        // A library has far fewer names; beyond, the set would only be less sharp.
        let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let mut fingerprints: Vec<u64> = names.into_iter().map(|name| fingerprint(name, count)).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        Self::from_parts(count, fingerprints)
    }

    fn from_parts(names: u32, fingerprints: Vec<u64>) -> Self {
        let mut set = Self { names, fingerprints: fingerprints.into(), coded: &[], digest: blake3::Hash::from_bytes([0; 32]) };
        set.digest = blake3::hash(&set.encode());
        set
    }

    /// Digest of the encoded set.
    pub(super) fn digest(&self) -> blake3::Hash {
        self.digest
    }

    /// Whether `name` is in the set; wrongly true for one name in about a million.
    pub fn contains(&self, name: &str) -> bool {
        self.fingerprints().binary_search(&fingerprint(name, self.names)).is_ok()
    }

    fn fingerprints(&self) -> &[u64] {
        // Of a set that is not whole, nothing: then a link says what it misses.
        self.fingerprints.get_or_init(|| read(self.coded).map(|(_, fingerprints)| fingerprints).unwrap_or_default())
    }

    /// How many names went in.
    pub fn len(&self) -> usize {
        self.names as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.names == 0
    }

    /// The set as bytes: both counts (32 bits, little-endian), then the bits, filled up with zeros.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bits = BitWriter::default();
        let mut previous = 0;
        for fingerprint in self.fingerprints() {
            let difference = fingerprint - previous;
            for _ in 0..difference >> BITS {
                bits.push(1, 1);
            }
            bits.push(0, 1);
            bits.push(difference & ((1 << BITS) - 1), BITS);
            previous = *fingerprint;
        }
        let mut bytes = self.names.to_le_bytes().to_vec();
        bytes.extend((self.fingerprints().len() as u32).to_le_bytes());
        bytes.extend(bits.bytes);
        bytes
    }

    /// Reads what [`CodedSet::encode`] wrote; all of `bytes` must belong to it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NamesError> {
        let (names, fingerprints) = read(bytes)?;
        Ok(Self { names, fingerprints: fingerprints.into(), coded: &[], digest: blake3::hash(bytes) })
    }

    /// The set that [`CodedSet::decode`] reads from bytes which are known to be whole. It is read when somebody asks for a name: a build
    /// with nothing to do needs its digest only.
    #[cfg(feature = "wheels")]
    pub(super) fn of_whole(coded: &'static [u8]) -> Result<Self, NamesError> {
        let names = coded.first_chunk().ok_or(NamesError("it is cut short"))?;
        Ok(Self { names: u32::from_le_bytes(*names), fingerprints: OnceLock::new(), coded, digest: blake3::hash(coded) })
    }
}

/// How many names went into an encoded set, and its fingerprints.
fn read(bytes: &[u8]) -> Result<(u32, Vec<u64>), NamesError> {
    let cut = || NamesError("it is cut short");
    let (names, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    let (count, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (names, count) = (u32::from_le_bytes(*names), u32::from_le_bytes(*count));
    let mut bits = BitReader { bytes: rest, position: 0 };
    // The count is not trusted with memory: every fingerprint has more than two bytes.
    let mut fingerprints = Vec::with_capacity((count as usize).min(rest.len() / 2));
    let mut previous: u64 = 0;
    for index in 0..count {
        // Without overflow: there are fewer than 2^44 bits.
        let difference = (bits.ones().ok_or_else(cut)? << BITS) | bits.take(BITS).ok_or_else(cut)?;
        if difference == 0 && index > 0 {
            return Err(NamesError("it holds one number twice"));
        }
        previous = previous.checked_add(difference).ok_or(NamesError("it holds too large a number"))?;
        fingerprints.push(previous);
    }
    if previous >= u64::from(names.max(1)) << BITS {
        return Err(NamesError("it holds too large a number"));
    }
    if bits.position.div_ceil(8) != rest.len() {
        return Err(NamesError("it is longer than it says"));
    }
    Ok((names, fingerprints))
}

/// The fingerprint of a name in a set of `count` names: the first 64 bits of its hash, scaled to `count * 2^20`.
fn fingerprint(name: &str, count: u32) -> u64 {
    let hash = blake3::hash(name.as_bytes());
    let (first, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
    let range = u128::from(count) << BITS;
    ((u128::from(u64::from_le_bytes(*first)) * range) >> 64) as u64
}

/// Writes bits, the lowest of a byte first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    used: u32,
}

impl BitWriter {
    /// Appends the low `count` bits of `value`, the lowest first.
    fn push(&mut self, value: u64, count: u32) {
        for index in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> index & 1) as u8) << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }
}

/// Reads what a [`BitWriter`] wrote, a word at a time: a release has millions of bits, and every build reads some releases.
struct BitReader<'b> {
    bytes: &'b [u8],
    position: usize,
}

impl BitReader<'_> {
    /// The bits from the current position on, the next one as the lowest, and how many of them there are: at least 57 unless
    /// the end is nearer.
    fn window(&self) -> (u64, usize) {
        let rest = self.bytes.get(self.position / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        let skip = self.position % 8;
        (word >> skip, (rest.len().min(8) * 8).saturating_sub(skip))
    }

    /// The next `count` bits (at most 57), the first as the lowest; none when they are not all there.
    fn take(&mut self, count: u32) -> Option<u64> {
        let (word, there) = self.window();
        if there < count as usize {
            return None;
        }
        self.position += count as usize;
        Some(word & ((1 << count) - 1))
    }

    /// How many one bits there are before the next zero bit, which is taken too; none when there is no zero bit.
    fn ones(&mut self) -> Option<u64> {
        let mut ones = 0;
        loop {
            let (word, there) = self.window();
            let run = (word.trailing_ones() as usize).min(there);
            ones += run as u64;
            self.position += run;
            if run < there {
                self.position += 1;
                return Some(ones);
            }
            if there == 0 {
                return None;
            }
        }
    }
}
