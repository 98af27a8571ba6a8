//! What the system libraries of the oldest supported Linux distributions export: the floor of portable extensions, as data.
//!
//! There are lists of two [`System`]s. An entry is a name, its version **and** the file that has it: newer systems merged the small
//! libraries into libc, so that a name with an old version may still come from the wrong file. What may be used of it is for others
//! to say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

use crate::Error;
use crate::elf::{Machine, SymbolKind};

/// A generation of Linux systems: its C library, and the C++ library and the unwinder that the manylinux policy of the same number
/// allows beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// glibc 2.28, GLIBCXX_3.4.24.
    Glibc2_28,
    /// glibc 2.34, GLIBCXX_3.4.29. The small libraries are empty, but for the version nodes that older files ask for.
    Glibc2_34,
}

impl System {
    /// Every system that there are lists of, the oldest first.
    pub const ALL: [Self; 2] = [Self::Glibc2_28, Self::Glibc2_34];

    /// The number in its name, as `2_28`.
    pub const fn number(self) -> &'static str {
        match self {
            Self::Glibc2_28 => "2_28",
            Self::Glibc2_34 => "2_34",
        }
    }
}

/// The lists as they are embedded.
const EMBEDDED: [(System, Machine, &[u8]); 4] = [
    (System::Glibc2_28, Machine::X86_64, include_bytes!("../data/baseline-2_28-x86_64.txt.gz")),
    (System::Glibc2_28, Machine::AARCH64, include_bytes!("../data/baseline-2_28-aarch64.txt.gz")),
    (System::Glibc2_34, Machine::X86_64, include_bytes!("../data/baseline-2_34-x86_64.txt.gz")),
    (System::Glibc2_34, Machine::AARCH64, include_bytes!("../data/baseline-2_34-aarch64.txt.gz")),
];

/// Version nodes of every system without a name, on both processors: they exist in the library, and the lists have no line for them.
const EMPTY_NODES: &[(&str, &str)] =
    &[("libstdc++.so.6", "GLIBCXX_3.4.3"), ("libstdc++.so.6", "GLIBCXX_3.4.12"), ("libstdc++.so.6", "GLIBCXX_3.4.24")];

/// A name that a library of the baseline exports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, mangled.
    pub name: String,
    /// SONAME of the library that has it.
    pub library: String,
    /// Its version node.
    pub version: String,
    /// Whether a link that does not ask for a version gets this one (`@@`).
    pub default: bool,
    /// What it names: a function, data or thread-local data.
    pub kind: SymbolKind,
    /// Whether it is weak.
    pub weak: bool,
    /// Size of data in bytes; 0 for functions.
    pub size: u64,
}

/// The lists of one processor.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Sorted by name, then library, then version.
    entries: Vec<Entry>,
    nodes: BTreeMap<String, BTreeSet<String>>,
}

impl Baseline {
    /// The embedded lists of `system` for `machine`.
    ///
    /// # Errors
    /// For a machine without lists.
    pub fn of(system: System, machine: Machine) -> Result<&'static Self, Error> {
        // Each is decoded when it is first asked for.
        static DECODED: [OnceLock<Result<Baseline, String>>; EMBEDDED.len()] = [const { OnceLock::new() }; EMBEDDED.len()];
        let lists = EMBEDDED.iter().zip(&DECODED).find(|((of, for_machine, _), _)| (*of, *for_machine) == (system, machine));
        let Some(((_, _, bytes), decoded)) = lists else {
            return Err(Error::Unsupported { what: format!("the baseline of {machine}") });
        };
        let decoded = decoded.get_or_init(|| Self::decode(bytes).map_err(|error| error.to_string()));
        decoded.as_ref().map_err(|cause| Error::Damaged { what: WHAT, cause: cause.clone() })
    }

    /// The embedded lists as they are, to tell by a digest whether they are the same; none for a machine without lists.
    pub fn embedded(system: System, machine: Machine) -> Option<&'static [u8]> {
        EMBEDDED.iter().find(|(of, for_machine, _)| (*of, *for_machine) == (system, machine)).map(|(_, _, bytes)| *bytes)
    }

    /// Reads a list as it is embedded: text, compressed with gzip. Lines that begin with `#` say where it comes from.
    ///
    /// # Errors
    /// When the bytes are damaged or a line is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut text = String::new();
        // No list is near this size; a damaged one must not unpack without end.
        GzDecoder::new(bytes).take(16 << 20).read_to_string(&mut text).map_err(|cause| damaged(cause.to_string()))?;
        Self::parse(&text)
    }

    /// Reads a list: `library name version default|hidden FUNC|OBJECT|TLS GLOBAL|WEAK size` a line.
    ///
    /// # Errors
    /// When a line is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut entries = Vec::new();
        let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (library, node) in EMPTY_NODES {
            nodes.entry((*library).to_owned()).or_default().insert((*node).to_owned());
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let entry = parse_line(line).ok_or_else(|| damaged(format!("`{line}` is no entry")))?;
            if !nodes.get(&entry.library).is_some_and(|known| known.contains(&entry.version)) {
                nodes.entry(entry.library.clone()).or_default().insert(entry.version.clone());
            }
            entries.push(entry);
        }
        entries.sort_unstable();
        Ok(Self { entries, nodes })
    }

    /// All entries, sorted by name, then library, then version.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries of one name: in several versions, or in several libraries.
    pub fn named(&self, name: &str) -> &[Entry] {
        let start = self.entries.partition_point(|entry| entry.name.as_str() < name);
        let rest = self.entries.get(start..).unwrap_or_default();
        let count = rest.partition_point(|entry| entry.name == name);
        rest.get(..count).unwrap_or_default()
    }

    /// Whether `library` exports `name` in `version`.
    pub fn has(&self, library: &str, name: &str, version: &str) -> bool {
        self.named(name).iter().any(|entry| entry.library == library && entry.version == version)
    }

    /// SONAMEs of the libraries, ascending.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The version nodes of a library, in ascending order of their text, those without a name included; none for an unknown library.
    pub fn nodes(&self, library: &str) -> Option<&BTreeSet<String>> {
        self.nodes.get(library)
    }
}

const WHAT: &str = "baseline list";

fn damaged(cause: String) -> Error {
    Error::Damaged { what: WHAT, cause }
}

fn parse_line(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let (library, name, version) = (words.next()?, words.next()?, words.next()?);
    let default = match words.next()? {
        "default" => true,
        "hidden" => false,
        _ => return None,
    };
    let kind = match words.next()? {
        "FUNC" => SymbolKind::Function,
        "OBJECT" => SymbolKind::Object,
        "TLS" => SymbolKind::Tls,
        _ => return None,
    };
    let weak = match words.next()? {
        "GLOBAL" => false,
        "WEAK" => true,
        _ => return None,
    };
    let size = words.next()?.parse().ok()?;
    let entry = Entry { name: name.to_owned(), library: library.to_owned(), version: version.to_owned(), default, kind, weak, size };
    words.next().is_none().then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_whole() {
        for (system, machine, entries, loader) in [
            (System::Glibc2_28, Machine::X86_64, 9186, "ld-linux-x86-64.so.2"),
            (System::Glibc2_28, Machine::AARCH64, 9056, "ld-linux-aarch64.so.1"),
            (System::Glibc2_34, Machine::X86_64, 10011, "ld-linux-x86-64.so.2"),
            (System::Glibc2_34, Machine::AARCH64, 9887, "ld-linux-aarch64.so.1"),
        ] {
            let baseline = Baseline::of(system, machine).unwrap();
            assert_eq!(baseline.entries().len(), entries);
            let mut libraries: Vec<&str> = baseline.libraries().collect();
            assert!(libraries.contains(&loader), "{libraries:?}");
            libraries.retain(|library| !library.starts_with("ld-linux"));
            assert_eq!(
                libraries,
                [
                    "libc.so.6",
                    "libdl.so.2",
                    "libgcc_s.so.1",
                    "libm.so.6",
                    "libpthread.so.0",
                    "libresolv.so.2",
                    "librt.so.1",
                    "libstdc++.so.6",
                    "libutil.so.1"
                ]
            );
        }
        assert!(Baseline::of(System::Glibc2_28, Machine(3)).is_err());
        assert_eq!(Baseline::embedded(System::Glibc2_34, Machine(3)), None);
    }

    /// A newer system has what an older one had, where it had it, but for what glibc took out of its headers long ago.
    #[test]
    fn systems_only_add_names() {
        for machine in [Machine::X86_64, Machine::AARCH64] {
            let [old, new] = System::ALL.map(|system| Baseline::of(system, machine).unwrap());
            let gone: Vec<&Entry> = old.entries().iter().filter(|entry| !new.has(&entry.library, &entry.name, &entry.version)).collect();
            assert!(gone.is_empty(), "{gone:?}");
        }
    }

    /// Newer systems have these in libc, some of them with the same version.
    #[test]
    fn entries_are_of_a_file() {
        let baseline = Baseline::of(System::Glibc2_28, Machine::X86_64).unwrap();
        assert!(baseline.has("libpthread.so.0", "pthread_create", "GLIBC_2.2.5"));
        assert!(!baseline.has("libc.so.6", "pthread_create", "GLIBC_2.2.5"));
        assert!(!baseline.has("libc.so.6", "pthread_create", "GLIBC_2.34"));
        assert!(baseline.has("libdl.so.2", "dlsym", "GLIBC_2.2.5") && !baseline.has("libc.so.6", "dlsym", "GLIBC_2.2.5"));
        let pow: Vec<&str> = baseline.named("pow").iter().map(|entry| entry.version.as_str()).collect();
        assert_eq!(pow, ["GLIBC_2.2.5"]);
        assert_eq!(baseline.named("no_such_name"), []);
        assert!(
            baseline.nodes("libstdc++.so.6").is_some_and(|nodes| nodes.contains("GLIBCXX_3.4.24") && !nodes.contains("GLIBCXX_3.4.25"))
        );
        assert_eq!(baseline.nodes("libz.so.1"), None);
    }

    #[test]
    fn damaged_lists_are_refused() {
        assert!(Baseline::decode(b"nothing").is_err());
        assert!(Baseline::decode(EMBEDDED[0].2.get(..1000).unwrap()).is_err());
        for line in [
            "libc.so.6 a GLIBC_2.2.5 default FUNC GLOBAL",
            "l a v maybe FUNC GLOBAL 0",
            "l a v default FUNC GLOBAL 0 0",
            "l a v default FUNC GLOBAL x",
        ] {
            assert!(Baseline::parse(line).is_err(), "{line}");
        }
        let one = Baseline::parse("# head\nl a v hidden TLS WEAK 8\n").unwrap();
        assert_eq!(
            one.named("a").first().map(|entry| (entry.default, entry.kind, entry.weak, entry.size)),
            Some((false, SymbolKind::Tls, true, 8))
        );
    }
}
