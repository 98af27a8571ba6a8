//! What a component is compiled for.
//!
//! The rules and the list are those of the peer: `rocm-archs` are intersected with it exactly. `--arch` alone asks for more, as AMD's
//! own names do: generic targets (`gfx11-generic`) and targets with settings (`gfx942:sramecc+:xnack-`).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use kiln_backend::BackendError;

/// What is compiled for when nothing is said, and all that may be said in `rocm-archs`.
const DEFAULTS: [&str; 10] = ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"];

/// Processors that not every compiler knows, by the first release of Clang that does. Source: the lists of `clang -mcpu=help` of LLVM 15 and
/// 19, and LLVM's release notes.
const SINCE: [(&str, u64); 19] = [
    ("gfx90a", 12),
    ("gfx940", 15),
    ("gfx941", 17),
    ("gfx942", 17),
    ("gfx950", 20),
    ("gfx1100", 15),
    ("gfx1101", 15),
    ("gfx1102", 15),
    ("gfx1103", 15),
    ("gfx1150", 17),
    ("gfx1151", 17),
    ("gfx1152", 19),
    ("gfx1153", 20),
    ("gfx1200", 18),
    ("gfx1201", 18),
    ("gfx1250", 21),
    ("gfx9-4-generic", 20),
    ("gfx1251", 22),
    ("gfx12-generic", 19),
];
/// The first release of Clang with generic targets.
const GENERIC: u64 = 19;
/// The ends of generic targets.
const GENERIC_END: &str = "-generic";

/// What device code is for: a processor or a family of them, with settings or without.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `gfx942`, `gfx11-generic`.
    processor: String,
    /// `sramecc+`, `xnack-`, ascending.
    settings: Vec<String>,
}

impl Target {
    /// The processor, without settings.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Whether it stands for a family of processors.
    pub fn is_generic(&self) -> bool {
        self.processor.ends_with(GENERIC_END)
    }

    /// Major, minor and stepping: the last two digits of a processor are minor and stepping, both hexadecimal, the rest is the major.
    /// Of a family, the first numbers.
    pub(crate) fn numbers(&self) -> (u32, u32, u32) {
        let digits = self.processor.strip_prefix("gfx").unwrap_or_default();
        if let Some(family) = digits.strip_suffix(GENERIC_END) {
            let (major, minor) = family.split_once('-').unwrap_or((family, "0"));
            return (major.parse().unwrap_or_default(), minor.parse().unwrap_or_default(), 0);
        }
        let hexadecimal = |digit: &str| u32::from_str_radix(digit, 16).unwrap_or_default();
        let (rest, stepping) = digits.split_at(digits.len().saturating_sub(1));
        let (major, minor) = rest.split_at(rest.len().saturating_sub(1));
        (major.parse().unwrap_or_default(), hexadecimal(minor), hexadecimal(stepping))
    }

    /// Whether Clang of this release compiles for it, as far as is known.
    fn is_known_to(&self, clang: u64) -> bool {
        let since = SINCE.iter().find(|(name, _)| *name == self.processor).map(|(_, since)| *since);
        clang >= since.unwrap_or(if self.is_generic() { GENERIC } else { 0 })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        self.settings.iter().try_for_each(|setting| write!(f, ":{setting}"))
    }
}

impl Ord for Target {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |target: &Self| (target.numbers(), !target.is_generic());
        key(self).cmp(&key(other)).then_with(|| self.to_string().cmp(&other.to_string()))
    }
}

impl PartialOrd for Target {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a text has the form of AMD's names, right or wrong.
pub fn is_target(text: &str) -> bool {
    text.trim().starts_with("gfx")
}

impl FromStr for Target {
    type Err = ArchRequestError;

    fn from_str(text: &str) -> Result<Self, ArchRequestError> {
        let wrong = || ArchRequestError { entry: text.to_owned() };
        let mut parts = text.split(':');
        let processor = parts.next().filter(|name| is_processor(name)).ok_or_else(wrong)?;
        let mut settings: Vec<String> = Vec::new();
        for setting in parts {
            let name = setting.strip_suffix(['+', '-']).filter(|name| ["sramecc", "xnack"].contains(name)).ok_or_else(wrong)?;
            if settings.iter().any(|known| known.starts_with(name)) {
                return Err(wrong());
            }
            settings.push(setting.to_owned());
        }
        settings.sort_unstable();
        Ok(Self { processor: processor.to_owned(), settings })
    }
}

fn is_processor(name: &str) -> bool {
    let Some(digits) = name.strip_prefix("gfx") else { return false };
    match digits.strip_suffix(GENERIC_END) {
        Some(family) => !family.is_empty() && family.split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())),
        None => (3..=5).contains(&digits.len()) && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
    }
}

/// What `--arch` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchRequest(Vec<Target>);

/// Why a text is no `--arch` list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`--arch` has `{entry}`, which is no AMD architecture: `gfx942`, `gfx942:xnack+` and `gfx11-generic` are taken")]
pub struct ArchRequestError {
    /// The entry.
    pub entry: String,
}

impl ArchRequest {
    /// Of entries that stand by themselves.
    ///
    /// # Errors
    /// The first entry that is none.
    pub fn of_entries<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<Self, ArchRequestError> {
        Ok(Self(sorted(entries.into_iter().map(str::parse).collect::<Result<_, _>>()?)))
    }
}

impl FromStr for ArchRequest {
    type Err = ArchRequestError;

    fn from_str(text: &str) -> Result<Self, ArchRequestError> {
        Self::of_entries(text.split(',').map(str::trim))
    }
}

/// What a component is compiled for, in metadata order, and what differs from what it asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) targets: Vec<Target>,
    pub(crate) notes: Vec<String>,
}

/// What a component is compiled for that lists `listed`, or nothing, by Clang of a release, when `--arch` asks for `request`.
///
/// # Errors
/// [`BackendError::Architectures`] when nothing is left, or the compiler has no code for something that was asked for.
pub(crate) fn choose(listed: Option<&[String]>, request: Option<&ArchRequest>, clang: u64) -> Result<Choice, BackendError> {
    let mut notes = Vec::new();
    let targets = match (listed, request) {
        (None, None) => {
            let (known, unknown): (Vec<Target>, Vec<Target>) = defaults().into_iter().partition(|target| target.is_known_to(clang));
            if !unknown.is_empty() {
                notes.push(format!("Clang {clang} leaves out {}: it does not know them", texts(&unknown)));
            }
            return if known.is_empty() { Err(unknown_to(&unknown, clang)) } else { Ok(Choice { targets: known, notes }) };
        }
        (None, Some(request)) => request.0.clone(),
        (Some(listed), request) => {
            let kept = intersection(listed, &mut notes)?;
            match request {
                None => kept,
                Some(request) => {
                    let narrowed: Vec<Target> =
                        request.0.iter().filter(|asked| kept.iter().any(|kept| asked.processor == kept.processor)).cloned().collect();
                    if narrowed.is_empty() {
                        notes.push(format!("`--arch` narrows nothing here: `rocm-archs` has none of {}", texts(&request.0)));
                        kept
                    } else {
                        narrowed
                    }
                }
            }
        }
    };
    let unknown: Vec<Target> = targets.iter().filter(|target| !target.is_known_to(clang)).cloned().collect();
    if unknown.is_empty() { Ok(Choice { targets, notes }) } else { Err(unknown_to(&unknown, clang)) }
}

/// The targets of several components, each once, in metadata order.
pub(crate) fn union(targets: impl IntoIterator<Item = Target>) -> Vec<Target> {
    sorted(targets.into_iter().collect())
}

/// What of `listed` is in the list.
fn intersection(listed: &[String], notes: &mut Vec<String>) -> Result<Vec<Target>, BackendError> {
    let listed = sorted(listed.iter().filter_map(|entry| entry.parse().ok()).collect());
    let all = defaults();
    let (kept, left_out): (Vec<Target>, Vec<Target>) = listed.iter().cloned().partition(|entry| all.contains(entry));
    if kept.is_empty() {
        return Err(BackendError::Architectures {
            message: format!(
                "empty set of architectures: `rocm-archs` lists {}, and what kernels are built for is {}",
                texts(&listed),
                texts(&all)
            ),
            hint: Some("list one of those, or leave `rocm-archs` out; `--arch` compiles for any other during development".to_owned()),
        });
    }
    if !left_out.is_empty() {
        notes.push(format!("{} is not in the list that kernels are built for, and left out", texts(&left_out)));
    }
    Ok(kept)
}

fn unknown_to(targets: &[Target], clang: u64) -> BackendError {
    BackendError::Architectures {
        message: format!("Clang {clang} does not compile for {}", texts(targets)),
        hint: Some("take a newer ROCm with `--rocm-from DIR`, or leave them out".to_owned()),
    }
}

fn defaults() -> Vec<Target> {
    DEFAULTS.iter().filter_map(|name| name.parse().ok()).collect()
}

fn sorted(mut targets: Vec<Target>) -> Vec<Target> {
    targets.sort();
    targets.dedup();
    targets
}

fn texts(targets: &[Target]) -> String {
    targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(listed: Option<&str>, request: Option<&str>, clang: u64) -> Result<(String, Vec<String>), String> {
        let listed: Option<Vec<String>> = listed.map(|text| text.split(' ').map(str::to_owned).collect());
        let request = request.map(|text| text.parse().unwrap());
        choose(listed.as_deref(), request.as_ref(), clang)
            .map(|choice| (texts(&choice.targets), choice.notes))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_intersection_is_exact_and_in_numeric_order() {
        let of = |listed: &str| chosen(Some(listed), None, 21).unwrap().0;
        assert_eq!(of("gfx1100 gfx942 gfx90a gfx1030 gfx906"), "gfx906 gfx90a gfx942 gfx1030 gfx1100");
        assert_eq!(of("gfx1151 gfx942 gfx942"), "gfx942", "no other takes its place");
        let (_, notes) = chosen(Some("gfx1151 gfx942"), None, 21).unwrap();
        assert_eq!(notes, ["gfx1151 is not in the list that kernels are built for, and left out"]);
        let empty = chosen(Some("gfx1151"), None, 21).unwrap_err();
        assert!(empty.starts_with("empty set of architectures: `rocm-archs` lists gfx1151, and"), "{empty}");
        assert_eq!(chosen(None, None, 21).unwrap().0, DEFAULTS.join(" "));
    }

    #[test]
    fn what_the_compiler_does_not_know_is_told() {
        let (targets, notes) = chosen(None, None, 19).unwrap();
        assert_eq!(targets, "gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1200 gfx1201");
        assert_eq!(notes, ["Clang 19 leaves out gfx950: it does not know them"]);
        assert_eq!(chosen(Some("gfx90a gfx942"), None, 15).unwrap_err(), "Clang 15 does not compile for gfx942");
        assert_eq!(chosen(None, Some("gfx11-generic"), 18).unwrap_err(), "Clang 18 does not compile for gfx11-generic");
    }

    #[test]
    fn development_may_ask_for_any_target() {
        let of = |request: &str| chosen(None, Some(request), 21).unwrap().0;
        assert_eq!(of("gfx1151, gfx942:xnack+,gfx11-generic,gfx9-generic"), "gfx9-generic gfx942:xnack+ gfx11-generic gfx1151");
        assert_eq!(of("gfx942:xnack-:sramecc+"), "gfx942:sramecc+:xnack-");
        assert_eq!(chosen(Some("gfx90a gfx942"), Some("gfx942:xnack+"), 21).unwrap().0, "gfx942:xnack+");
        let (kept, notes) = chosen(Some("gfx90a"), Some("gfx1100"), 21).unwrap();
        assert_eq!(
            (kept.as_str(), notes.as_slice()),
            ("gfx90a", ["`--arch` narrows nothing here: `rocm-archs` has none of gfx1100".to_owned()].as_slice())
        );
        for wrong in ["gfx", "gfx9", "gfx-generic", "gfx942:wave+", "gfx942:xnack", "gfx942:xnack+:xnack-", "sm_90", "9.0"] {
            let error = wrong.parse::<ArchRequest>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`--arch` has `{wrong}`, which is no AMD architecture")), "{error}");
        }
    }
}
