//! What a component is compiled for.
//!
//! The rules and the default lists are those of the peer, but that a plain entry beside a suffixed one stays. The names are CUDA's own: a capability such as `9.0a` gives a cubin for `sm_90a`,
//! with `+PTX` also PTX for `compute_90a`.

use std::collections::BTreeSet;
use std::str::FromStr;

use kiln_backend::{BackendError, CudaCapability, CudaSuffix, MajorMinor};

/// What `--arch` takes for the devices of this machine.
pub const NATIVE: &str = "native";

/// A capability without suffix or PTX.
type Number = (u32, u32);

/// Default lists by the first release that has them, newest first; the last entry of each gets PTX.
const DEFAULTS: [(MajorMinor, &[Number]); 3] = [
    (MajorMinor::new(13, 0), &[(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (11, 0), (12, 0), (12, 1)]),
    (MajorMinor::new(12, 8), &[(7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 1), (12, 0)]),
    (MajorMinor::new(0, 0), &[(7, 0), (7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0)]),
];
/// A capability, and the releases whose nvcc has code for it.
struct Code {
    number: Number,
    /// The first; none before CUDA 11.8 is known.
    from: MajorMinor,
    /// The first that has none any more.
    until: Option<MajorMinor>,
}

/// What the known releases compile for, in numeric order.
///
/// Source: `nvcc --list-gpu-code`, and the names that `ptxas --help` allows for `--gpu-name` in the `nvidia-cuda-nvcc` wheels of 11.8.89,
/// 12.0.76, 12.8.93, 12.9.86, 13.0.88 and 13.5.37.
const CODES: [Code; 24] = [
    Code { number: (3, 5), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(12, 0)) },
    Code { number: (3, 7), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(12, 0)) },
    Code { number: (5, 0), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (5, 2), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (5, 3), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (6, 0), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (6, 1), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (6, 2), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (7, 0), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (7, 2), from: MajorMinor::new(11, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (7, 5), from: MajorMinor::new(11, 8), until: None },
    Code { number: (8, 0), from: MajorMinor::new(11, 8), until: None },
    Code { number: (8, 6), from: MajorMinor::new(11, 8), until: None },
    Code { number: (8, 7), from: MajorMinor::new(11, 8), until: None },
    Code { number: (8, 8), from: MajorMinor::new(13, 0), until: None },
    Code { number: (8, 9), from: MajorMinor::new(11, 8), until: None },
    Code { number: (9, 0), from: MajorMinor::new(11, 8), until: None },
    Code { number: (10, 0), from: MajorMinor::new(12, 8), until: None },
    Code { number: (10, 1), from: MajorMinor::new(12, 8), until: Some(MajorMinor::new(13, 0)) },
    Code { number: (10, 3), from: MajorMinor::new(12, 9), until: None },
    Code { number: (10, 7), from: MajorMinor::new(13, 5), until: None },
    Code { number: (11, 0), from: MajorMinor::new(13, 0), until: None },
    Code { number: (12, 0), from: MajorMinor::new(12, 8), until: None },
    Code { number: (12, 1), from: MajorMinor::new(12, 9), until: None },
];
/// The oldest release that is known.
const OLDEST: MajorMinor = MajorMinor::new(11, 8);
/// The first release with code for families (suffix `f`).
const FAMILIES: MajorMinor = MajorMinor::new(12, 9);

/// What a toolkit release can compile for, and what it does compile for when nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Support {
    release: MajorMinor,
    codes: Vec<Number>,
    defaults: Vec<Number>,
}

/// What `--arch` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchRequest(Vec<CudaCapability>);

/// Why a text is no `--arch` list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`--arch` has `{entry}`, which is no capability: `9.0`, `9.0a`, `12.0+PTX` and `native` are taken")]
pub struct ArchRequestError {
    /// The entry.
    pub entry: String,
}

impl ArchRequest {
    /// Of entries, each of which is one capability.
    ///
    /// # Errors
    /// The first entry that is none, as it was given.
    pub(crate) fn of_entries<'t>(entries: impl IntoIterator<Item = &'t str>) -> Result<Self, &'t str> {
        let parse = |entry: &'t str| entry.trim().parse().map_err(|_| entry);
        Ok(Self(merged(entries.into_iter().map(parse).collect::<Result<_, _>>()?)))
    }
}

impl FromStr for ArchRequest {
    type Err = ArchRequestError;

    fn from_str(text: &str) -> Result<Self, ArchRequestError> {
        Self::of_entries(text.split(',')).map_err(|entry| ArchRequestError { entry: entry.trim().to_owned() })
    }
}

/// What a component is compiled for, in metadata order, and what differs from what it asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) capabilities: Vec<CudaCapability>,
    pub(crate) notes: Vec<String>,
}

impl Support {
    /// Of a release. One that is newer than all known ones is taken for the newest.
    pub(crate) fn of(release: MajorMinor) -> Self {
        // One that is older than all known ones is taken for the oldest.
        let known = release.max(OLDEST);
        let has = |code: &&Code| code.from <= known && code.until.is_none_or(|until| known < until);
        let codes = CODES.iter().filter(has).map(|code| code.number).collect();
        let defaults = DEFAULTS.iter().find(|(from, _)| release >= *from).map(|(_, numbers)| numbers.to_vec()).unwrap_or_default();
        Self { release, codes, defaults }
    }

    /// What a component is compiled for that lists `listed`, or nothing, when `--arch` asks for `request`, or is not there.
    ///
    /// # Errors
    /// [`BackendError::Architectures`] when nothing is left, or the toolkit has no code for something.
    pub(crate) fn choose(&self, listed: Option<&[CudaCapability]>, request: Option<&ArchRequest>) -> Result<Choice, BackendError> {
        // What a component's list has no code for narrows nothing, whether this toolkit knows it or another one.
        let refused = |asked: &&CudaCapability| {
            let means = |listed| is_known_capability(asked) && intersection(listed, &[number(asked)]).is_empty();
            !self.compiles(asked) && !listed.is_some_and(means)
        };
        if let Some(impossible) = request.iter().flat_map(|request| &request.0).find(refused) {
            return Err(self.impossible(impossible));
        }
        match (listed, request) {
            (None, None) => Ok(Choice { capabilities: self.default_list(), notes: Vec::new() }),
            (None, Some(request)) => Ok(Choice { capabilities: request.0.clone(), notes: Vec::new() }),
            (Some(listed), None) => self.guarded(listed, &self.defaults),
            (Some(listed), Some(request)) => {
                let mut numbers: Vec<Number> = request.0.iter().filter(|asked| self.compiles(asked)).map(number).collect();
                numbers.dedup();
                let kept = intersection(listed, &numbers);
                if kept.is_empty() {
                    let mut choice = self.guarded(listed, &self.defaults)?;
                    let asked = texts(&request.0);
                    choice
                        .notes
                        .push(format!("`--arch` narrows nothing here: the capabilities {} have no code for {asked}", texts(listed)));
                    return Ok(choice);
                }
                self.guarded(listed, &numbers)
            }
        }
    }

    /// The whole list, the last with PTX.
    fn default_list(&self) -> Vec<CudaCapability> {
        let last = self.defaults.last().copied();
        self.defaults
            .iter()
            .map(|&(major, minor)| CudaCapability { major, minor, suffix: None, ptx: Some((major, minor)) == last })
            .collect()
    }

    /// Whether nvcc takes it.
    fn compiles(&self, capability: &CudaCapability) -> bool {
        let has_families = capability.suffix != Some(CudaSuffix::Family) || self.release >= FAMILIES;
        has_families && has_suffix(capability) && self.codes.contains(&number(capability))
    }

    /// The loose intersection of `listed` with `targets`, every entry of which the toolkit can make.
    fn guarded(&self, listed: &[CudaCapability], targets: &[Number]) -> Result<Choice, BackendError> {
        let kept = intersection(listed, targets);
        let listed = merged(listed.to_vec());
        if kept.is_empty() {
            return Err(self.empty(&listed));
        }
        let mut notes = Vec::new();
        let left_out: Vec<CudaCapability> = listed.iter().filter(|entry| !kept.contains(entry)).cloned().collect();
        if !left_out.is_empty() {
            notes.push(format!(
                "CUDA {} leaves out {}: no device of its list {} needs it",
                self.release,
                texts(&left_out),
                numbers(targets)
            ));
        }
        let mut capabilities = Vec::new();
        for entry in kept {
            if self.compiles(&entry) {
                capabilities.push(entry);
                continue;
            }
            let above = targets.iter().find(|target| **target > number(&entry) && (entry.ptx || target.0 == entry.major));
            let Some(&(major, minor)) = above.filter(|_| entry.suffix.is_none()) else { return Err(self.impossible(&entry)) };
            let replacement = CudaCapability { major, minor, ..entry.clone() };
            notes.push(format!("CUDA {} has no code for `{entry}`: `{replacement}` stands for it", self.release));
            capabilities.push(replacement);
        }
        Ok(Choice { capabilities: merged(capabilities), notes })
    }

    fn empty(&self, listed: &[CudaCapability]) -> BackendError {
        let message = format!(
            "empty set of capabilities: none of {} is for a device of CUDA {}, whose list is {}",
            texts(listed),
            self.release,
            numbers(&self.defaults)
        );
        let known: Vec<CudaCapability> = listed.iter().filter(|entry| self.compiles(entry)).cloned().collect();
        let hint = match known.as_slice() {
            [] => listed.iter().find_map(toolkits_with),
            known => Some(format!(
                "nvcc {} can compile for {}, but its default list has no such device: `--arch` takes them",
                self.release,
                texts(known)
            )),
        };
        BackendError::Architectures { message, hint: hint.or_else(|| Some("correct `cuda-capabilities`".to_owned())) }
    }

    fn impossible(&self, entry: &CudaCapability) -> BackendError {
        let message = format!("CUDA {} has no code for `{entry}`: it can compile for {}", self.release, numbers(&self.codes));
        BackendError::Architectures { message, hint: toolkits_with(entry) }
    }
}

/// Which known toolkits can compile for `entry`, as a hint; none when none can.
fn toolkits_with(entry: &CudaCapability) -> Option<String> {
    // Between these, and after the last, nothing changes.
    let releases: BTreeSet<MajorMinor> = CODES.iter().flat_map(|code| [Some(code.from), code.until]).flatten().collect();
    let mut able = releases.iter().filter(|release| Support::of(**release).compiles(entry));
    let oldest = able.next()?;
    let newest = able.next_back().unwrap_or(oldest);
    Some(match releases.iter().find(|release| *release > newest) {
        Some(until) => format!("`{entry}` needs a CUDA toolkit from {oldest} on that is older than {until}: choose one with `--cuda`"),
        None => format!("`{entry}` needs CUDA {oldest} or newer: choose one with `--cuda`"),
    })
}

/// Whether devices of the capability have variants of such a name, which no toolkit lists: `a` from 9.0 on, `f` from 10.0 on.
fn has_suffix(capability: &CudaCapability) -> bool {
    match capability.suffix {
        None => true,
        Some(CudaSuffix::Arch) => capability.major >= 9,
        Some(CudaSuffix::Family) => capability.major >= 10,
    }
}

/// Major and minor numbers of all capabilities that some known toolkit compiles for, in order.
pub fn known_capabilities() -> impl Iterator<Item = (u32, u32)> {
    CODES.iter().map(|code| code.number)
}

/// Whether some known toolkit compiles for a capability.
pub fn is_known_capability(capability: &CudaCapability) -> bool {
    has_suffix(capability) && known_capabilities().any(|known| known == number(capability))
}

/// Entries with equal number and suffix become one, with PTX if any had it. Sorted.
fn merged(mut list: Vec<CudaCapability>) -> Vec<CudaCapability> {
    list.sort();
    list.dedup_by(|next, kept| {
        let same = number(next) == number(kept) && next.suffix == kept.suffix;
        kept.ptx |= same && next.ptx;
        same
    });
    list
}

/// The loose intersection: suffixed entries whose number is a target, and for each target the greatest plain entry that is not
/// above it and of its major, or has PTX.
fn intersection(listed: &[CudaCapability], targets: &[Number]) -> Vec<CudaCapability> {
    let listed = merged(listed.to_vec());
    let (plain, suffixed): (Vec<_>, Vec<_>) = listed.into_iter().partition(|entry| entry.suffix.is_none());
    let mut kept: Vec<CudaCapability> = suffixed.into_iter().filter(|entry| targets.contains(&number(entry))).collect();
    for target in targets {
        let best = plain.iter().rev().find(|entry| number(entry) <= *target && (entry.major == target.0 || entry.ptx));
        kept.extend(best.cloned());
    }
    merged(kept)
}

/// Capabilities of several components as metadata list them.
pub(crate) fn union(lists: impl IntoIterator<Item = CudaCapability>) -> Vec<CudaCapability> {
    merged(lists.into_iter().collect())
}

fn number(capability: &CudaCapability) -> Number {
    (capability.major, capability.minor)
}

fn texts(list: &[CudaCapability]) -> String {
    list.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(", ")
}

fn numbers(list: &[Number]) -> String {
    list.iter().map(|(major, minor)| format!("{major}.{minor}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
