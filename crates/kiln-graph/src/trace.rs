//! What a compiler looked for beside what it found: what has to stay away, or as it is, for its result to stay true.
//!
//! | the text of a file that was read says | what is noted |
//! |---|---|
//! | `#include` of a name that was found | nothing of that name may appear in a directory that is searched earlier |
//! | `#include` of a name that was not found | nothing: a condition left the line out, and conditions depend on what was read |
//! | `__has_include` of a name | the file, where there is one; that none appears, where there is none |
//! | `.incbin`, `#embed` | the file, and that none appears where it is looked for earlier |
//! | `__has_include` of a macro | the names in every directory that is searched |
//! | `.incbin` of a macro | that the step has inputs that nobody knows: it runs each time and is kept in no cache |
//! | nothing that explains a file of the depfile (an `#include` of a macro) | every end of its path is taken for a name that was asked for |
//!
//! That nothing appears is noted by a directory's first missing name: one listing of a directory then answers for thousands of
//! headers, and what else appears in it costs nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::content::{Digest, Stamp, Stat, stat};
use crate::place::{Found, Place, Places};
use crate::scan::{Ask, How, Scan, scan};
use crate::search::Searched;
use crate::step::OutputRef;

/// Names that must not appear in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    /// The directory, which may be missing.
    pub(crate) dir: Place,
    /// Digests of the names, ascending.
    pub(crate) names: Vec<u64>,
    /// Digest of all names in the directory, where any other one counts.
    pub(crate) listing: Option<Digest>,
}

/// The names in a directory with their digests, by name; nothing for what is no directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing(Vec<(Vec<u8>, u64)>);

impl Listing {
    pub(crate) fn read(dir: &Path) -> Self {
        let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name().as_bytes().to_vec());
        let mut names: Vec<(Vec<u8>, u64)> = names.map(|name| (name.clone(), name_digest(&name))).collect();
        names.sort_unstable();
        Self(names)
    }

    fn has(&self, name: &[u8]) -> bool {
        self.0.binary_search_by(|(known, _)| known.as_slice().cmp(name)).is_ok()
    }

    fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for (name, _) in &self.0 {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

impl Watch {
    /// What has appeared in the directory, if anything has: a name, or nothing where the listing as a whole differs.
    pub(crate) fn broken_by(&self, now: &Listing) -> Option<Vec<u8>> {
        if let Some(listing) = self.listing
            && listing != now.digest()
        {
            return Some(Vec::new());
        }
        now.0.iter().find(|(_, digest)| self.names.binary_search(digest).is_ok()).map(|(name, _)| name.clone())
    }
}

fn name_digest(name: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(name).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// A file that a program read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFile {
    pub(crate) place: Place,
    /// Whether it lies below an immutable root.
    pub(crate) immutable: bool,
}

/// Texts that were scanned, each once for all steps.
#[derive(Debug)]
pub(crate) struct Scans {
    words: Vec<Arc<str>>,
    known: Mutex<HashMap<PathBuf, (Stamp, Arc<Scan>)>>,
}

impl Scans {
    pub(crate) fn new(words: Vec<Arc<str>>) -> Self {
        Self { words, known: Mutex::default() }
    }

    /// What the file at `path` says now; nothing if it cannot be read.
    pub(crate) fn get(&self, path: &Path) -> Option<Arc<Scan>> {
        let Stat::File(stamp) = stat(path) else { return None };
        if let Some((known, scan)) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path)
            && *known == stamp
        {
            return Some(Arc::clone(scan));
        }
        let scan = Arc::new(scan(&fs::read(path).ok()?, &self.words));
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), (stamp, Arc::clone(&scan)));
        Some(scan)
    }

    /// Which of the words that were looked for `word` is.
    pub(crate) fn word(&self, word: &str) -> Option<usize> {
        self.words.iter().position(|known| **known == *word)
    }
}

/// What was looked for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Where nothing was found.
    pub(crate) missing: BTreeSet<Place>,
    /// What was asked about and is there, or may be, and that no depfile lists.
    pub(crate) present: BTreeSet<Place>,
    /// Directories in which names must not appear.
    pub(crate) watches: Vec<Watch>,
    /// Which of the words of [`Scans`] occur in a file that was read.
    pub(crate) words: Vec<bool>,
    /// Whether a name was asked for that only the compiler knows.
    pub(crate) in_riddles: bool,
    /// Whether files were read that only the compiler knows.
    pub(crate) opaque: bool,
}

/// What the program looked for that read `read`.
///
/// `mentioned` are files that its arguments name, so that nothing has to explain them; `may_change` says of a directory that is
/// searched whether it may differ next time, or for an equal step.
pub(crate) fn asked(
    read: &[ReadFile],
    mentioned: &BTreeSet<Place>,
    searched: &[Searched],
    cwd: &Place,
    places: &Places<'_>,
    scans: &Scans,
    may_change: &dyn Fn(&Place) -> bool,
) -> Asked {
    let mut ends: HashMap<&[u8], Vec<&Place>> = HashMap::new();
    for file in read {
        ends.entry(last(bytes(&file.place))).or_default().push(&file.place);
    }
    let mut tracer = Tracer {
        read: read.iter().map(|file| &file.place).collect(),
        ends,
        searched,
        cwd,
        places,
        may_change,
        explained: HashSet::new(),
        listings: HashMap::new(),
        watched: BTreeMap::new(),
        out: Asked { words: vec![false; scans.words.len()], ..Asked::default() },
    };
    let mut done = HashSet::new();
    for file in read {
        let Some(scan) = places.path(&file.place).and_then(|path| scans.get(&path)) else { continue };
        for (word, found) in tracer.out.words.iter_mut().zip(&scan.words) {
            *word |= found;
        }
        // Of the system's own files and of trees that never change nobody expects riddles about a project.
        let own = !file.immutable && !matches!(file.place, Place::Absolute(_));
        tracer.out.in_riddles |= own && scan.asks_in_riddles;
        tracer.out.opaque |= own && scan.reads_in_riddles;
        let dir = parent(&file.place);
        for ask in &scan.asks {
            // An include in brackets means the same wherever it stands.
            let known = match ask.how {
                How::Angled | How::ProbeAngled => done.insert((None, ask.clone())),
                _ => done.insert((dir.clone(), ask.clone())),
            };
            if known && (own || ask.how != How::Bytes) {
                tracer.ask(file, dir.as_ref(), ask);
            }
        }
    }
    for file in read.iter().filter(|file| !mentioned.contains(&file.place)) {
        tracer.unexplained(&file.place, read);
    }
    tracer.finish()
}

struct Tracer<'a> {
    read: HashSet<&'a Place>,
    /// What was read, by the last name of its path.
    ends: HashMap<&'a [u8], Vec<&'a Place>>,
    searched: &'a [Searched],
    cwd: &'a Place,
    places: &'a Places<'a>,
    may_change: &'a dyn Fn(&Place) -> bool,
    explained: HashSet<Place>,
    listings: HashMap<Place, Listing>,
    watched: BTreeMap<Place, BTreeSet<u64>>,
    out: Asked,
}

impl Tracer<'_> {
    fn ask(&mut self, file: &ReadFile, dir: Option<&Place>, ask: &Ask) {
        let name = ask.name.as_slice();
        let beside = dir.filter(|_| !file.immutable && !matches!(file.place, Place::Absolute(_)));
        match ask.how {
            How::Quoted | How::Angled => {
                let found = self.ends.get(last(name)).is_some_and(|ends| ends.iter().any(|place| ends_with(bytes(place), name)));
                if !found {
                    return;
                }
                let quoted = ask.how == How::Quoted;
                if quoted && let Some(place) = dir.and_then(|dir| self.join(dir, name)) {
                    if self.read.contains(&place) {
                        self.explained.insert(place);
                        return;
                    }
                    if let Some(dir) = beside {
                        self.must_not_appear(&dir.clone(), name);
                    }
                }
                self.search(name, quoted);
            }
            How::ProbeQuoted => self.first_of(beside.cloned(), name, true),
            How::ProbeAngled => self.first_of(None, name, false),
            How::Bytes => {
                let cwd = self.cwd.clone();
                if !self.is_there(&cwd, name) {
                    self.first_of(beside.cloned(), name, true);
                }
            }
        }
    }

    /// Follows the search for a header that was found.
    fn search(&mut self, name: &[u8], quoted: bool) {
        for searched in self.searched.iter().filter(|searched| quoted || !searched.quoted_only) {
            let Some(place) = self.join(&searched.dir, name) else { continue };
            if self.read.contains(&place) {
                self.explained.insert(place);
                return;
            }
            self.must_not_appear(&searched.dir, name);
        }
        // In one of the compiler's own directories.
        let found = self.ends.get(last(name)).into_iter().flatten().filter(|place| ends_with(bytes(place), name));
        self.explained.extend(found.map(|place| (*place).clone()));
    }

    /// Follows the search for a file of which nobody says whether it was found.
    fn first_of(&mut self, beside: Option<Place>, name: &[u8], quoted: bool) {
        let searched = self.searched.iter().filter(|searched| quoted || !searched.quoted_only).map(|searched| searched.dir.clone());
        let dirs: Vec<Place> = beside.into_iter().chain(searched).collect();
        let _found = dirs.iter().any(|dir| self.is_there(dir, name));
    }

    /// Whether `dir` has `name`; notes the answer.
    fn is_there(&mut self, dir: &Place, name: &[u8]) -> bool {
        let Some(place) = self.join(dir, name) else { return false };
        let there = self.read.contains(&place) || self.places.path(&place).is_some_and(|path| path.exists());
        if there {
            self.out.present.insert(place);
        } else {
            self.must_not_appear(dir, name);
        }
        there
    }

    /// Notes that a file called `name` must not appear in `dir`.
    fn must_not_appear(&mut self, dir: &Place, name: &[u8]) {
        if !(self.may_change)(dir) {
            return;
        }
        let plain = name.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
        let first = name.split(|byte| *byte == b'/').next().unwrap_or_default();
        if plain && !self.listing(dir).has(first) {
            self.watched.entry(dir.clone()).or_default().insert(name_digest(first));
        } else if let Some(place) = self.join(dir, name) {
            self.out.missing.insert(place);
        }
    }

    /// A file that no text asked for by its name.
    fn unexplained(&mut self, place: &Place, read: &[ReadFile]) {
        if self.explained.contains(place) {
            return;
        }
        let searched = self.searched;
        let mut below =
            searched.iter().enumerate().filter_map(|(index, searched)| Some((index, name_below(&searched.dir, place)?))).peekable();
        if below.peek().is_some() {
            let beside: BTreeSet<Place> = read.iter().filter(|file| !file.immutable).filter_map(|file| parent(&file.place)).collect();
            for (index, name) in below {
                for dir in searched.iter().take(index).map(|searched| &searched.dir).chain(&beside) {
                    if self.join(dir, name).is_some_and(|place| !self.read.contains(&place)) {
                        self.must_not_appear(dir, name);
                    }
                }
            }
        } else if let Place::Absolute(path) = place {
            for (at, _) in path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').take(3) {
                let name = path.get(at + 1..).unwrap_or_default();
                for searched in searched {
                    self.must_not_appear(&searched.dir, name);
                }
            }
        }
    }

    fn listing(&mut self, dir: &Place) -> &Listing {
        let places = self.places;
        self.listings.entry(dir.clone()).or_insert_with(|| places.path(dir).map(|path| Listing::read(&path)).unwrap_or_default())
    }

    /// What a program finds that looks for `name` in `dir`.
    fn join(&self, dir: &Place, name: &[u8]) -> Option<Place> {
        if name.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
            return match self.places.find(&self.places.path(dir)?, name) {
                Found::File(place) => Some(place),
                Found::Immutable { root, path } => Some(Place::Root { root, path }),
                Found::Output { step, name } => Some(Place::Output(OutputRef { step, name })),
                Found::Temporary => None,
            };
        }
        let below = |dir: &[u8]| if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() };
        Some(match dir {
            Place::Root { root, path } => Place::Root { root: root.clone(), path: below(path) },
            Place::Absolute(path) => Place::Absolute(below(path)),
            Place::Output(output) => {
                Place::Output(OutputRef { step: output.step.clone(), name: String::from_utf8(below(output.name.as_bytes())).ok()? })
            }
        })
    }

    fn finish(mut self) -> Asked {
        if self.out.in_riddles {
            let searched = self.searched;
            for dir in searched.iter().map(|searched| &searched.dir).filter(|dir| (self.may_change)(dir)) {
                self.watched.entry(dir.clone()).or_default();
            }
        }
        let watched = std::mem::take(&mut self.watched);
        let watches = watched.into_iter().map(|(dir, names)| {
            let listing = self.out.in_riddles.then(|| self.listing(&dir).digest());
            Watch { dir, names: names.into_iter().collect(), listing }
        });
        let watches = watches.collect();
        Asked { watches, ..self.out }
    }
}

/// The path of a place, whatever it is relative to.
fn bytes(place: &Place) -> &[u8] {
    match place {
        Place::Root { path, .. } | Place::Absolute(path) => path,
        Place::Output(output) => output.name.as_bytes(),
    }
}

/// The last name of a path.
fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Whether a path ends with `name`, without the dots at its start, as a whole.
fn ends_with(path: &[u8], mut name: &[u8]) -> bool {
    while let Some(rest) = name.strip_prefix(b"./").or_else(|| name.strip_prefix(b"../")) {
        name = rest;
    }
    // What climbs in between is not compared: the last name has to do.
    if name.windows(4).any(|part| part == b"/../") {
        return true;
    }
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

/// The directory of a file below a root.
fn parent(file: &Place) -> Option<Place> {
    let Place::Root { root, path } = file else { return None };
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    Some(Place::Root { root: root.clone(), path: path.get(..end).unwrap_or_default().to_vec() })
}

/// What is left of a file's path below a directory.
fn name_below<'a>(dir: &Place, file: &'a Place) -> Option<&'a [u8]> {
    let below = |dir: &[u8], path: &'a [u8]| match dir {
        [] => Some(path),
        dir => path.strip_prefix(dir)?.strip_prefix(b"/"),
    };
    match (dir, file) {
        (Place::Root { root, path: dir }, Place::Root { root: of, path }) if root == of => below(dir, path),
        (Place::Absolute(dir), Place::Absolute(path)) => below(dir, path),
        (Place::Output(dir), Place::Output(output)) if dir.step == output.step => below(dir.name.as_bytes(), output.name.as_bytes()),
        _ => None,
    }
}
