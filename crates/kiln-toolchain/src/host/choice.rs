//! Which program to call, by names and files alone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kiln_object::elf::Machine;
use rustix::fs::{Access, access};

use super::{HostError, HostSearch, machine};

/// C++ compilers to take when none was chosen, most wanted first. Versioned ones follow, newest first.
const USUAL: &[&str] = &["g++", "c++", "clang++"];

/// The same with a number behind.
const VERSIONED: &[&str] = &["g++-", "clang++-"];

/// Programs that take a compiler and its arguments as arguments.
const LAUNCHERS: &[&str] = &["ccache", "distcc", "sccache", "icecc", "cachepot", "buildcache"];

/// A compiler as it will be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// A program that takes the compiler as its first argument, absolute.
    pub(super) launcher: Option<PathBuf>,
    /// The compiler, absolute.
    pub(super) compiler: PathBuf,
    /// Arguments that were named with it.
    pub(super) args: Vec<String>,
}

impl Resolved {
    /// What the cache files the answer under: everything that the question consists of.
    pub(super) fn key(&self, search: &HostSearch) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(machine::foreign(search.machine).map(machine::triple).unwrap_or_default().as_bytes()).update(b"\0");
        let launcher = self.launcher.as_deref().unwrap_or(Path::new("")).as_os_str();
        // The compiler may look for its assembler and linker on PATH.
        for part in [launcher, self.compiler.as_os_str(), &search.path].into_iter().chain(self.args.iter().map(OsStr::new)) {
            let bytes = part.as_encoded_bytes();
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        HEXLOWER.encode(hasher.finalize().as_bytes())
    }
}

/// The chosen compiler, or else the first of the usual ones.
pub(super) fn resolve(search: &HostSearch) -> Result<Resolved, HostError> {
    if let Some(choice) = &search.cxx {
        return named(&choice.value, &choice.origin, search);
    }
    // `CC` is for this machine: who builds for another one names a compiler on purpose.
    if let Some(choice) = search.cc.as_ref().filter(|_| machine::foreign(search.machine).is_none()) {
        return named(&sibling(&choice.value), &choice.origin, search);
    }
    if let Some(machine) = machine::foreign(search.machine) {
        return cross(machine, search);
    }
    let usual = USUAL.iter().find_map(|name| on_path(name, &search.path));
    let compiler = usual.or_else(|| VERSIONED.iter().find_map(|prefix| versioned(prefix, &search.path)));
    match compiler {
        Some(compiler) => Ok(Resolved { launcher: None, compiler, args: Vec::new() }),
        None => Err(HostError::None {
            wanted: None,
            tried: USUAL.iter().map(|name| format!("`{name}`")).chain(["`g++-N`".to_owned(), "`clang++-N`".to_owned()]).collect(),
        }),
    }
}

/// Every compiler that could be taken where none was chosen: each file once, in the order of `PATH`, by name within a directory. A link
/// that leads to a launcher is none: what stands behind it has a file of its own.
pub(super) fn all(search: &HostSearch) -> Vec<Resolved> {
    let foreign = machine::foreign(search.machine).map(|machine| format!("{}-", machine::triple(machine)));
    let is_one = |name: &str| match &foreign {
        None => is_usual_name(name),
        // Clang compiles for every processor.
        Some(prefix) => match name.strip_prefix(prefix.as_str()) {
            Some(name) => is_usual_name(name),
            None => name.starts_with("clang++") && is_usual_name(name),
        },
    };
    let mut found = Vec::new();
    let mut files = Vec::new();
    for dir in std::env::split_paths(&search.path).filter(|dir| dir.is_absolute()) {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_one(name)).collect();
        names.sort();
        for compiler in names.iter().map(|name| dir.join(name)).filter(|path| is_program(path)) {
            let real = compiler.canonicalize().unwrap_or_else(|_| compiler.clone());
            if !is_launcher(&real) && !files.contains(&real) {
                files.push(real);
                found.push(Resolved { launcher: None, compiler, args: Vec::new() });
            }
        }
    }
    found
}

/// The first of the usual compilers for another processor.
fn cross(machine: Machine, search: &HostSearch) -> Result<Resolved, HostError> {
    let prefixed = |name: &str| format!("{}-{name}", machine::triple(machine));
    let names = ["g++", "c++"].map(prefixed);
    let gnu = names.iter().find_map(|name| on_path(name, &search.path)).or_else(|| versioned(&prefixed("g++-"), &search.path));
    if let Some(compiler) = gnu {
        return Ok(Resolved { launcher: None, compiler, args: Vec::new() });
    }
    // Clang compiles for every processor; which one, the probe adds.
    let clang = on_path("clang++", &search.path).or_else(|| versioned("clang++-", &search.path));
    match clang {
        Some(compiler) => Ok(Resolved { launcher: None, compiler, args: Vec::new() }),
        None => Err(HostError::None {
            wanted: Some(machine),
            tried: names.iter().map(String::as_str).chain(["clang++", "clang++-N"]).map(|name| format!("`{name}`")).collect(),
        }),
    }
}

/// Reads what somebody named.
fn named(value: &str, origin: &str, search: &HostSearch) -> Result<Resolved, HostError> {
    let wrong = |reason: String| HostError::Chosen { value: value.to_owned(), origin: origin.to_owned(), reason };
    let find = |name: &str| {
        let found =
            if name.contains('/') { Some(PathBuf::from(name)).filter(|path| is_program(path)) } else { on_path(name, &search.path) };
        let place = match name.contains('/') {
            true if Path::new(name).exists() => "is no program that can be run",
            true => "does not exist",
            false => "is not on PATH",
        };
        let what = if name == value { "it".to_owned() } else { format!("`{name}`") };
        found.ok_or_else(|| wrong(format!("{what} {place}")))
    };
    let value = value.trim();
    if value.is_empty() {
        return Err(wrong("the value is empty".to_owned()));
    }
    // A path may have spaces.
    if is_program(Path::new(value)) && value.contains('/') {
        let compiler = absolute(Path::new(value))?;
        links_cxx(&compiler).map_err(wrong)?;
        return Ok(Resolved { launcher: None, compiler, args: Vec::new() });
    }
    let mut words = value.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.clone().next());
    let launcher = if is_launcher(Path::new(first)) && second.is_some() { Some(absolute(&find(first)?)?) } else { None };
    let compiler = if launcher.is_some() { words.next().unwrap_or_default() } else { first };
    let compiler = absolute(&find(compiler)?)?;
    links_cxx(&compiler).map_err(wrong)?;
    Ok(Resolved { launcher, compiler, args: words.map(str::to_owned).collect() })
}

/// Refuses the C driver of a pair: it compiles C++, but what it links lacks the C++ library.
fn links_cxx(compiler: &Path) -> Result<(), String> {
    let name = compiler.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match sibling(name) {
        cxx if cxx == name => Ok(()),
        cxx => Err(format!("`{name}` links no C++ library, as `{cxx}` does")),
    }
}

/// The C++ compiler that goes with a C compiler: `gcc-12` and `g++-12`. Other names stay: they may do both.
fn sibling(cc: &str) -> String {
    let (dir, name) = cc.rsplit_once('/').map_or(("", cc), |(dir, name)| (dir, name));
    let cxx = if let Some(at) = name.rfind("clang").filter(|_| !name.contains("clang++")) {
        format!("{}clang++{}", &name[..at], &name[at + "clang".len()..])
    } else if let Some(at) = name.rfind("gcc") {
        format!("{}g++{}", &name[..at], &name[at + "gcc".len()..])
    } else if name == "cc" || name.ends_with("-cc") {
        format!("{}c++", &name[..name.len() - 2])
    } else {
        name.to_owned()
    };
    if dir.is_empty() && !cc.starts_with('/') { cxx } else { format!("{dir}/{cxx}") }
}

/// The program called `name` in the first directory of `path` that has it.
pub(crate) fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|candidate| is_program(candidate))
}

/// The program called `prefix` and a number, with the highest number that is on `path`.
fn versioned(prefix: &str, path: &OsStr) -> Option<PathBuf> {
    let mut best: Option<(u32, PathBuf)> = None;
    for dir in std::env::split_paths(path).filter(|dir| dir.is_absolute()) {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
            // In an earlier directory is better than in a later one, as with one name.
            if let Some(number) = number
                && best.as_ref().is_none_or(|(known, _)| *known < number)
                && is_program(&entry.path())
            {
                best = Some((number, entry.path()));
            }
        }
    }
    best.map(|(_, path)| path)
}

/// Whether a program of this name takes a compiler and its arguments as arguments.
pub(crate) fn is_launcher(program: &Path) -> bool {
    program.file_stem().and_then(OsStr::to_str).is_some_and(|stem| LAUNCHERS.contains(&stem))
}

/// Whether `name` is one under which a C++ compiler is looked for.
pub(crate) fn is_usual_name(name: &str) -> bool {
    let numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
    USUAL.contains(&name) || VERSIONED.iter().any(|prefix| numbered(prefix))
}

/// Whether there is a file that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn absolute(path: &Path) -> Result<PathBuf, HostError> {
    std::path::absolute(path).map_err(HostError::io("find", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_compilers_have_siblings() {
        for (cc, cxx) in [
            ("gcc", "g++"),
            ("gcc-12", "g++-12"),
            ("/usr/bin/x86_64-linux-gnu-gcc-12", "/usr/bin/x86_64-linux-gnu-g++-12"),
            ("clang-19", "clang++-19"),
            ("cc", "c++"),
            ("/opt/llvm/bin/clang", "/opt/llvm/bin/clang++"),
            ("clang++", "clang++"),
            ("/gcc", "/g++"),
            ("tcc", "tcc"),
            ("ccache gcc", "ccache g++"),
        ] {
            assert_eq!(sibling(cc), cxx);
        }
    }
}
