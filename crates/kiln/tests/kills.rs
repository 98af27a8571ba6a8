//! A build that is killed at any moment leaves whole variants, and the next one gives the bytes of an undisturbed build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test ends at its first failure")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kiln::hash::{Rehashed, rehash};
use support::project::{ProjectBuilder, commit_all, kept, write};
use support::{Sandbox, index, message, tree};

/// How often each kind of event is hit.
const HITS: usize = 3;
/// How many moments are chosen by time, between events.
const MOMENTS: usize = 24;

/// Small numbers in an order that a seed decides.
struct Random(u64);

impl Random {
    /// The seed of this run: a new one each time unless `KILN_TEST_SEED` gives it.
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = std::env::var("KILN_TEST_SEED").map_or(now.subsec_nanos().into(), |text| text.parse().expect("a number"));
        println!("KILN_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`. (SplitMix64.)
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// What the sources are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    A,
    B,
    /// One unit does not compile.
    Broken,
}

/// A project in a dirty tree, so that the ops id stays the same when the sources change, and two builds with equal ids differ.
fn project(dir: &Path) -> PathBuf {
    let dir = ProjectBuilder::new()
        .file("same.cpp", "int tiny_same() { return 1; }\n")
        .file("changes.cpp", "")
        .file("data.py", "")
        .kernel("same", &[], &["same.cpp"], "")
        .kernel("changes", &[], &["changes.cpp"], "")
        .write(dir);
    commit_all(&dir);
    dir
}

fn set(dir: &Path, state: State) {
    let unit = match state {
        State::A => "int tiny_changes() { return 100; }\n",
        State::B => "int tiny_changes() { return 20000; }\nint tiny_more() { return 3; }\n",
        State::Broken => "int tiny_changes() { return nothing; }\n",
    };
    write(dir, "changes.cpp", &format!("{unit}{}", kept("tiny_changes()")));
    write(dir, "torch-ext/tiny/state.py", &format!("STATE = \"{state:?}\"\n"));
}

/// The arguments of all builds. One job, so that the order of events is always the same.
const BUILD: [&str; 3] = ["build", "--message-format", "json"];

/// Where steps may take their outputs from, as an option of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    /// The user's cache, which the undisturbed builds have filled.
    Filled,
    /// Nowhere: every step runs.
    None,
}

impl Cache {
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Filled => &["-j1"],
            Self::None => &["-j1", "--no-cache"],
        }
    }
}

/// When a build is killed: after the event of this number, and after as much time more.
#[derive(Clone, Copy, Debug)]
struct Point {
    event: usize,
    delay: Duration,
}

/// Starts a build and kills it at `point`. Gives the last event that it told before.
fn kill_at(sandbox: &Sandbox, dir: &Path, cache: Cache, point: Point) -> Option<String> {
    let mut child = sandbox.kiln(dir, &BUILD).args(cache.args()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let last = lines.nth(point.event).map(|line| reason(&line.unwrap()));
    if point.delay > Duration::ZERO {
        std::thread::sleep(point.delay);
    }
    kill(&mut child);
    child.wait().unwrap();
    last
}

/// SIGKILL; the process may have ended by itself.
fn kill(child: &mut Child) {
    let _ended = child.kill();
}

fn reason(line: &str) -> String {
    message(line)["reason"].as_str().unwrap().to_owned()
}

/// The only variant.
const VARIANT: &str = "build/torch215-cxx11-cpu-x86_64-linux";

/// What an undisturbed build of each state gives, as made in a directory of its own.
fn clean_builds(sandbox: &Sandbox) -> BTreeMap<State, PathBuf> {
    [State::A, State::B]
        .map(|state| {
            let dir = project(&sandbox.path(format!("clean {state:?}")));
            set(&dir, state);
            sandbox.build(&dir, &["-j1"]);
            (state, dir)
        })
        .into()
}

/// Which of the two states the variant in `dir` is; it must be one of them, whole, and its own digest must hold.
fn state_of(dir: &Path, clean: &BTreeMap<State, PathBuf>) -> Option<State> {
    let variant = dir.join(VARIANT);
    if !variant.exists() {
        return None;
    }
    let found = tree::files(&variant);
    let state = clean.iter().find(|(_, clean)| tree::files(&clean.join(VARIANT)) == found).map(|(state, _)| *state);
    assert!(state.is_some(), "neither the old nor the new variant: {:?}", found.keys());
    assert_eq!(rehash(&variant, false).unwrap(), Rehashed::Unchanged, "the digest does not hold");
    state
}

/// What the kills did: how often each kind of event was the last one heard, and what was left.
#[derive(Default)]
struct Tally {
    kinds: BTreeMap<String, usize>,
    kills: usize,
    old: usize,
    new: usize,
}

/// The sandbox, the project that is killed, and what it must become.
struct Field {
    sandbox: Sandbox,
    dir: PathBuf,
    clean: BTreeMap<State, PathBuf>,
    cache: Cache,
    tally: Tally,
}

impl Field {
    /// Kills the build from `from` (nothing built if none) to `to` at `point`; checks what is left, and that the next build heals it.
    fn survive(&mut self, from: Option<State>, to: State, point: Point) {
        set(&self.dir, to);
        if let Some(last) = kill_at(&self.sandbox, &self.dir, self.cache, point) {
            *self.tally.kinds.entry(last).or_default() += 1;
        }
        self.tally.kills += 1;
        let now = state_of(&self.dir, &self.clean);
        assert!(now == from || (now == Some(to) && to != State::Broken), "{now:?} after a kill at {point:?} from {from:?} to {to:?}");
        *(if now == from { &mut self.tally.old } else { &mut self.tally.new }) += 1;

        let heal = if to == State::Broken { State::B } else { to };
        set(&self.dir, heal);
        let run = self.sandbox.build(&self.dir, self.cache.args());
        assert_eq!(run.reason("variant-finished").len(), 1);
        tree::assert_equal(&self.clean[&heal].join("build"), &self.dir.join("build"));
        assert_eq!(fs::read_dir(self.dir.join(".kiln/tmp")).unwrap().count(), 0, "temporary files after a kill at {point:?}");
    }

    /// What an undisturbed build to `state` tells: each event's reason, and how long it was the last one.
    fn rehearse(&self, state: State) -> Vec<(String, Duration)> {
        set(&self.dir, state);
        let mut child =
            self.sandbox.kiln(&self.dir, &BUILD).args(self.cache.args()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told: Vec<_> = lines.map(|line| (reason(&line.unwrap()), Instant::now())).collect();
        child.wait().unwrap();
        let ends = told.iter().skip(1).map(|(_, time)| *time).chain([Instant::now()]);
        told.iter().zip(ends).map(|((reason, time), end)| (reason.clone(), end - *time)).collect()
    }
}

/// The kinds of event of builds in which every step runs.
const KINDS: [&str; 13] = [
    "build-finished",
    "compiler-message",
    "error",
    "graph-finished",
    "graph-started",
    "step-failed",
    "step-finished",
    "step-skipped",
    "step-started",
    "step-up-to-date",
    "target-finished",
    "variant-failed",
    "variant-finished",
];

#[test]
fn a_killed_build_loses_nothing() {
    loses_nothing(Cache::None, BTreeSet::from(KINDS));
}

#[test]
fn a_killed_build_from_the_cache_loses_nothing() {
    loses_nothing(Cache::Filled, KINDS.into_iter().chain(["step-restored"]).collect());
}

/// Kills builds, at least 60, with each of the `expected` kinds of event hit [`HITS`] times.
fn loses_nothing(cache: Cache, expected: BTreeSet<&str>) {
    let mut random = Random::new();
    let sandbox = Sandbox::new();
    let clean = clean_builds(&sandbox);
    let dir = project(&sandbox.path("project"));
    let mut field = Field { sandbox, dir, clean, cache, tally: Tally::default() };

    // From nothing; from one state to the other; from a good state to one that does not compile.
    let rehearsed = [State::A, State::B, State::Broken].map(|state| field.rehearse(state));
    let [first, edit, broken] = &rehearsed;
    set(&field.dir, State::B);
    field.sandbox.build(&field.dir, cache.args());

    let kinds: BTreeSet<&str> = rehearsed.iter().flatten().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(kinds, expected);

    // Each kind three times, in the builds that have it.
    let places = |events: &[(String, Duration)], kind: &str| (0..events.len()).filter(|at| events[*at].0 == kind).collect::<Vec<_>>();
    let mut points = Vec::new();
    for kind in &kinds {
        let holding: Vec<_> = [edit, broken, first].into_iter().filter(|events| !places(events, kind).is_empty()).collect();
        for hit in 0..HITS {
            let events = holding[hit % holding.len()];
            let places = places(events, kind);
            points.push((events, Point { event: places[random.below(places.len())], delay: Duration::ZERO }));
        }
    }
    // Then between events, and most of all while the variant is put in place.
    for moment in 0..MOMENTS {
        let event = if moment % 2 == 0 { places(edit, "graph-finished")[0] } else { random.below(edit.len()) };
        let delay = edit[event].1 * u32::try_from(random.below(1000)).unwrap() / 1000;
        points.push((edit, Point { event, delay }));
    }

    for (events, point) in points {
        if std::ptr::eq(events, first) {
            for name in ["build", ".kiln"] {
                fs::remove_dir_all(field.dir.join(name)).unwrap();
            }
            field.survive(None, if random.below(2) == 0 { State::A } else { State::B }, point);
        } else {
            let from = state_of(&field.dir, &field.clean).unwrap();
            let other = if from == State::A { State::B } else { State::A };
            field.survive(Some(from), if std::ptr::eq(events, broken) { State::Broken } else { other }, point);
        }
    }
    if cache == Cache::Filled {
        let verified = field.sandbox.run(&field.dir, &["cache", "verify"]);
        assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    }
    let Tally { kinds, kills, old, new } = &field.tally;
    println!("{kills} kills, {old} left the old variant, {new} the new one: {kinds:?}");
    assert!(*kills >= 60 && kinds.values().all(|hits| *hits >= HITS) && *old > 0 && *new > 0);
}

#[test]
fn a_killed_fetch_loses_nothing() {
    let mut random = Random::new();
    let mirror = index::mirror();
    let (usual, empty) = (Sandbox::new(), Sandbox::without_torch());
    let clean = project(&usual.path("project"));
    set(&clean, State::A);
    usual.build(&clean, &["-j1"]);
    let dir = project(&empty.path("project"));
    set(&dir, State::A);
    let trees = empty.cache().join("toolchains-v1/trees");

    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..HITS {
        // Each kill finds what the one before has left.
        for kind in ["fetch-started", "fetch-bytes", "fetch-finished"] {
            let mut command = empty.kiln(&dir, &BUILD);
            command.arg("-j1").env("KILN_INDEX_URL", mirror.index()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| reason(&line.unwrap()));
            // Any of the first reports of bytes; the other two come once.
            let skipped = if kind == "fetch-bytes" { random.below(20) } else { 0 };
            let last = lines.by_ref().filter(|reason| reason == kind).nth(skipped);
            kill(&mut child);
            child.wait().unwrap();
            *tally.entry(last.unwrap_or_else(|| panic!("no `{kind}` in round {round}"))).or_default() += 1;
            let whole = fs::read_dir(&trees).map_or(0, |entries| entries.count());
            assert_eq!(whole, usize::from(kind == "fetch-finished"), "after `{kind}`");
        }
        assert_eq!(fs::read_dir(empty.cache().join("toolchains-v1/work")).unwrap().count(), 0, "leftovers of the kills before");
        // What was fetched last is whole: it builds without the network, and the result is that of undisturbed headers.
        empty.build(&dir, &["-j1", "--offline"]);
        tree::assert_equal(&clean.join("build"), &dir.join("build"));
        let left: Vec<_> =
            ["toolchains-v1/trees", ".kiln", "build"].iter().map(|name| [empty.cache().join(name), dir.join(name)]).collect();
        for place in left.iter().flatten().filter(|place| place.exists()) {
            fs::remove_dir_all(place).unwrap();
        }
    }
    println!("{tally:?}");
    assert_eq!(tally.values().sum::<usize>(), 3 * HITS);
}
