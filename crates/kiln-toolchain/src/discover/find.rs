//! Looking for the toolkits of one kind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use kiln_format::Version;

use super::files;
use super::kits::{KitKind, Names, Part, Place, Table};
use super::named;
use super::packages::Need;
use super::versions;
use super::view::{View, real};
use crate::host::{is_launcher, is_program};

/// What led to a candidate. The order of the variants is the order in which places are looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// This option of the command line.
    Option(String),
    /// This variable of the environment.
    Variable(&'static str),
    /// A program of this name on `PATH`.
    Path(&'static str),
    /// It is where such things usually are.
    Place,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(name) => write!(f, "`{name}`"),
            Self::Variable(name) => f.write_str(name),
            Self::Path(program) => write!(f, "`{program}` on PATH"),
            Self::Place => f.write_str("its usual place"),
        }
    }
}

/// A part that a kit has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPart {
    /// Its name in the kit's table: `nvcc`, `cuda_runtime.h`.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// A part that a kit does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Its name in the kit's table.
    pub name: &'static str,
    /// Whether nothing can be compiled without it.
    pub must: bool,
    /// Which packages have it.
    pub need: Need,
    /// Which wheel has it, in a kit that wheels made.
    pub wheel: Option<&'static str>,
}

/// A toolkit that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which kind.
    pub kind: KitKind,
    /// Its directory, as it was named.
    pub root: PathBuf,
    /// What led to it.
    pub origin: Origin,
    /// Its release, by its own files; none when they do not say.
    pub version: Option<Version>,
    /// What it has, in the table's order.
    pub parts: Vec<FoundPart>,
    /// What it lacks, in the table's order.
    pub lacks: Vec<Lack>,
}

impl Candidate {
    /// Whether it can compile.
    pub fn is_complete(&self) -> bool {
        self.lacks.iter().all(|lack| !lack.must)
    }

    /// Where the part called `name` is.
    pub fn part(&self, name: &str) -> Option<&Path> {
        self.parts.iter().find(|part| part.name == name).map(|part| part.path.as_path())
    }

    /// Where a header is that lies in the same include directory as the part called `part`.
    pub fn header_beside(&self, part: &str, name: &str) -> Option<PathBuf> {
        Some(self.part(part)?.parent()?.join(name))
    }

    /// Where it is and of which release, for people; `release` is what it says that it is, where it does.
    pub fn described(&self, release: Option<String>) -> String {
        let (root, origin) = (self.root.display(), &self.origin);
        match release {
            Some(release) => format!("`{root}` ({origin}) is {release}"),
            None => format!("`{root}` ({origin}) does not say which release it is"),
        }
    }

    /// The directories that its headers are included from, each once: those of the headers in its table.
    pub fn include_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = Vec::new();
        for part in self.parts.iter().filter(|part| is_header(part.name)) {
            let dir = part.path.ancestors().nth(Path::new(part.name).components().count());
            dirs.extend(dir.map(Path::to_owned).filter(|dir| !dirs.contains(dir)));
        }
        dirs
    }
}

pub(super) fn is_header(name: &str) -> bool {
    [".h", ".hpp", ".cuh"].iter().any(|end| name.ends_with(end))
}

/// Something that was named and is no kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Who named it.
    pub origin: Origin,
    /// What was named.
    pub value: String,
    /// Why it is passed over, as words behind the value.
    pub reason: String,
}

/// All that was found of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// Which kind.
    pub kind: KitKind,
    /// The kits, in the order in which they count; each directory once.
    pub candidates: Vec<Candidate>,
    /// What was named and is no kit.
    pub passed: Vec<Passed>,
    /// Every place that was looked at, for people.
    pub looked: Vec<String>,
    /// The system that such kits exist on, when this one is another.
    pub only_on: Option<&'static str>,
}

impl Findings {
    /// The kit that is taken when nothing more is asked of one: the first that is complete.
    pub fn taken(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.is_complete())
    }
}

/// What this machine has of one kind in `environment` and its usual places, kits that lack something included; only what is in the
/// directory that `named` tells, or around the compiler that it tells, if there is one, by the option's name.
pub fn of_this_machine(kind: KitKind, environment: &BTreeMap<String, String>, named: Option<(&str, &Path)>) -> Vec<Candidate> {
    let view = View { root: Path::new("/"), environment, os: std::env::consts::OS, cpu: std::env::consts::ARCH };
    let mut found = find(kind, &view, named).candidates;
    if let Some((_, dir)) = named {
        found.retain(|kit| kit.root == dir || (dir.is_file() && matches!(kit.origin, Origin::Option(_))));
    }
    found
}

/// Looks for the kits of one kind. `named` is what the command line says: the option's name and its value.
pub fn find(kind: KitKind, view: &View<'_>, named: Option<(&str, &Path)>) -> Findings {
    let table = kind.table();
    let mut search = Search {
        view,
        table,
        seen: Vec::new(),
        found: Findings { kind, candidates: Vec::new(), passed: Vec::new(), looked: Vec::new(), only_on: None },
    };
    if table.only_on.is_some_and(|os| os != view.os) {
        search.found.only_on = table.only_on;
        return search.found;
    }
    if let Some((option, dir)) = named {
        let origin = Origin::Option(option.to_owned());
        match dir.is_file() && named::stands_for(kind, dir) {
            true => search.compiler(origin, dir),
            false => search.directory(origin, &dir.display().to_string(), dir.to_owned()),
        }
    }
    for (variable, names) in table.variables {
        search.looked(variable);
        if let Some(value) = view.variable(variable) {
            search.variable(variable, *names, value);
        }
    }
    if !table.program.is_empty() {
        search.looked(&format!("`{}` on PATH", table.program));
        if let Some(program) = search.on_path(table.program) {
            search.program(Origin::Path(table.program), &program);
        }
    }
    for place in table.places {
        search.place(*place);
    }
    search.found
}

struct Search<'a> {
    view: &'a View<'a>,
    table: &'static Table,
    /// Directories that are known already, links resolved.
    seen: Vec<OsString>,
    found: Findings,
}

impl Search<'_> {
    fn looked(&mut self, what: &str) {
        if !self.found.looked.iter().any(|known| known == what) {
            self.found.looked.push(what.to_owned());
        }
    }

    fn pass(&mut self, origin: Origin, value: &str, reason: impl Into<String>) {
        self.found.passed.push(Passed { origin, value: value.to_owned(), reason: reason.into() });
    }

    fn variable(&mut self, variable: &'static str, names: Names, value: &str) {
        let origin = Origin::Variable(variable);
        match names {
            Names::Program => match self.named_program(value) {
                Ok(program) => self.program(origin, &program),
                Err(reason) => self.pass(origin, value, reason),
            },
            Names::Root => self.directory(origin, value, PathBuf::from(value)),
            Names::Below(below) => {
                // The one with most of a kit: `HIP_PATH` may name the root or a directory in it.
                let roots = below.iter().filter_map(|name| files::first(Path::new(value), &[name], self.view.cpu));
                let plain =
                    |root: PathBuf| if root.ends_with("..") { root.canonicalize().unwrap_or(root) } else { root.components().collect() };
                let best = roots.map(plain).map(|root| (self.parts(&root).1.len(), root)).min_by_key(|(lacks, _)| *lacks);
                self.directory(origin, value, best.map_or_else(|| PathBuf::from(value), |(_, root)| root));
            }
            Names::Perhaps(below) => {
                let value = Path::new(value);
                for (name, mark) in below {
                    let root = if *name == "." { Some(value.to_owned()) } else { files::first(value, &[name], self.view.cpu) };
                    if let Some(root) = root.filter(|root| root.is_absolute() && root.join(mark).exists()) {
                        self.candidate(origin.clone(), root);
                    }
                }
            }
        }
    }

    /// The program that a variable names: a path, or a name on `PATH`.
    fn named_program(&self, value: &str) -> Result<PathBuf, String> {
        let path = Path::new(value);
        if value.contains('/') {
            if !path.is_absolute() {
                return Err("is no absolute path".to_owned());
            }
            return if is_program(path) { Ok(path.to_owned()) } else { Err("is no program".to_owned()) };
        }
        self.on_path(value).ok_or_else(|| "is not on PATH".to_owned())
    }

    /// The first program of this name on `PATH` that is no compiler launcher under another name.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let programs = self.view.path_dirs().into_iter().map(|dir| dir.join(name)).filter(|program| is_program(program));
        programs.into_iter().find(|program| !program.canonicalize().is_ok_and(|real| is_launcher(&real)))
    }

    /// A program in the `bin` of a kit. Links are followed when that leads to more of it.
    fn program(&mut self, origin: Origin, program: &Path) {
        let above = |program: &Path| program.parent().and_then(Path::parent).map(Path::to_owned);
        let roots = [above(program), program.canonicalize().ok().and_then(|real| above(&real))];
        let best = roots.into_iter().flatten().map(|root| (self.parts(&root).1.len(), root)).min_by_key(|(lacks, _)| *lacks);
        if let Some((_, root)) = best {
            self.candidate(origin, root);
        }
    }

    /// The kit that a compiler is a part of, used with this compiler.
    fn compiler(&mut self, origin: Origin, program: &Path) {
        let lacking = |root: &PathBuf| self.parts(root).1.iter().filter(|lack| lack.must).count();
        let Some(root) = named::homes(program).into_iter().min_by_key(lacking) else { return };
        let value = program.display().to_string();
        if !self.candidate(origin.clone(), root) {
            self.pass(origin, &value, format!("is no part of a {}", self.found.kind));
        } else if let Some(kit) = self.found.candidates.last_mut() {
            named::take(kit, program);
        }
    }

    /// A directory that somebody named: worth a word when it is nothing.
    fn directory(&mut self, origin: Origin, value: &str, root: PathBuf) {
        let shown = format!("{value} of {origin}");
        if !root.is_absolute() {
            self.pass(origin, value, "is no absolute path");
        } else if !root.is_dir() {
            self.pass(origin, value, if root.exists() { "is no directory" } else { "does not exist" });
        } else if !self.candidate(origin.clone(), root) {
            self.pass(origin, value, format!("has nothing of {}", self.found.kind));
        }
        self.looked(&shown);
    }

    fn place(&mut self, place: Place) {
        let roots = match place {
            Place::At(path) => {
                self.looked(path);
                vec![self.view.place(path)]
            }
            Place::Versions(dir, prefix) => {
                self.looked(&format!("{dir}/{prefix}X.Y"));
                files::versioned(&self.view.place(dir), prefix)
            }
            Place::Home(path) => {
                self.looked(&format!("~/{path}"));
                self.view.variable("HOME").map(|home| Path::new(home).join(path)).into_iter().collect()
            }
            Place::Shared(dir, mark) => {
                self.looked(dir);
                let dir = self.view.place(dir);
                if dir.join(mark).exists() { vec![dir] } else { Vec::new() }
            }
        };
        for root in roots.into_iter().filter(|root| root.is_dir()) {
            self.candidate(Origin::Place, root);
        }
    }

    /// Adds the kit at `root`, unless it is known. False when there is nothing of one.
    fn candidate(&mut self, origin: Origin, root: PathBuf) -> bool {
        let (parts, lacks) = self.parts(&root);
        if parts.is_empty() {
            return false;
        }
        let key = real(&root);
        if !self.seen.contains(&key) {
            self.seen.push(key);
            let kind = self.found.kind;
            let version = versions::version(kind, &root, &parts);
            self.found.candidates.push(Candidate { kind, root, origin, version, parts, lacks });
        }
        true
    }

    fn parts(&self, root: &Path) -> (Vec<FoundPart>, Vec<Lack>) {
        let (mut found, mut lacks) = (Vec::new(), Vec::new());
        let of_wheels = root.components().any(|part| part.as_os_str() == "site-packages");
        let wheel = |name: &str| self.table.wheels.iter().find(|(part, _)| of_wheels && *part == name).map(|(_, wheel)| *wheel);
        for Part { name, places, must, need } in self.table.parts {
            match files::first(root, places, self.view.cpu) {
                Some(path) => found.push(FoundPart { name, path }),
                None => lacks.push(Lack { name, must: *must, need: *need, wheel: wheel(name) }),
            }
        }
        (found, lacks)
    }
}
