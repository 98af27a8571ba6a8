//! The stub libraries of a floor.

use std::collections::{BTreeMap, BTreeSet};

use kiln_object::Error;
use kiln_object::baseline::{Baseline, Entry};
use kiln_object::elf::{Machine, SymbolKind};
use kiln_object::stub::{Stub, Symbol, SymbolVersion};

use super::FloorLevel;
use crate::names::versioned;

/// Names of the OpenMP runtime. Framework and extension share one, which the framework brings.
pub(super) const GOMP: &str = include_str!("../../floor/libgomp.txt");
/// Its SONAME.
pub(super) const LIBGOMP: &str = "libgomp.so.1";

/// What the system's part of a floor is made from: changes with the lists.
pub(super) fn identity(level: FloorLevel, machine: Machine) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(level.as_str().as_bytes()).update(&[0]).update(machine.to_string().as_bytes()).update(&[0]);
    hasher.update(GOMP.as_bytes()).update(Baseline::embedded(level.system(), machine)?);
    Some(hasher.finalize().to_hex().to_string())
}

/// SONAMEs of the libraries for `machine`, ascending.
pub(super) fn sonames(machine: Machine) -> Vec<&'static str> {
    let loader = if machine == Machine::AARCH64 { "ld-linux-aarch64.so.1" } else { "ld-linux-x86-64.so.2" };
    let mut sonames = vec![
        loader,
        "libc.so.6",
        "libdl.so.2",
        "libgcc_s.so.1",
        LIBGOMP,
        "libm.so.6",
        "libpthread.so.0",
        "libresolv.so.2",
        "librt.so.1",
        "libstdc++.so.6",
        "libutil.so.1",
    ];
    sonames.sort_unstable();
    sonames
}

/// The stubs of all libraries, by SONAME ascending.
pub(super) fn stubs(level: FloorLevel, machine: Machine) -> Result<Vec<Stub>, Error> {
    let baseline = Baseline::of(level.system(), machine)?;
    let mut by_library: BTreeMap<&str, Vec<Symbol>> = BTreeMap::new();
    for entry in baseline.entries() {
        by_library.entry(&entry.library).or_default().push(symbol(entry));
    }
    let mut stubs: Vec<Stub> = by_library
        .into_iter()
        .map(|(soname, symbols)| {
            let versions = baseline.nodes(soname).into_iter().flatten().cloned().collect();
            Stub { versions, ..Stub::new(soname, machine, symbols) }
        })
        .collect();
    stubs.push(Stub::new(LIBGOMP, machine, gomp()));
    stubs.sort_by(|one, other| one.soname.cmp(&other.soname));
    Ok(stubs)
}

/// Every name of the libraries that a plain link gets, and each name with each of its versions, as a `.symver` writes them.
pub(super) fn names(level: FloorLevel, machine: Machine) -> Result<BTreeSet<String>, Error> {
    let symbols = Baseline::of(level.system(), machine)?.entries().iter().map(symbol).chain(gomp());
    Ok(symbols.flat_map(named).collect())
}

/// How references may name a symbol.
fn named(symbol: Symbol) -> impl Iterator<Item = String> {
    let with_version = symbol.version.as_ref().map(|version| versioned(&symbol.name, &version.node));
    let is_plain = symbol.version.is_none_or(|version| version.default);
    is_plain.then_some(symbol.name).into_iter().chain(with_version)
}

fn symbol(entry: &Entry) -> Symbol {
    Symbol {
        name: entry.name.clone(),
        version: Some(SymbolVersion { node: entry.version.clone(), default: entry.default }),
        kind: entry.kind,
        weak: entry.weak,
        size: entry.size,
    }
}

/// The names of the OpenMP runtime; the newest version of each is the one that a plain link gets.
fn gomp() -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    for line in GOMP.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let node = words.next().unwrap_or_default();
        for name in words {
            // Nodes stand in ascending order.
            for older in symbols.iter_mut().filter(|symbol| symbol.name == name) {
                if let Some(version) = &mut older.version {
                    version.default = false;
                }
            }
            let version = Some(SymbolVersion { node: node.to_owned(), default: true });
            symbols.push(Symbol { version, ..Symbol::plain(name, SymbolKind::Function) });
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_those_that_the_scripts_name() {
        for machine in [Machine::X86_64, Machine::AARCH64] {
            let stubs = stubs(FloorLevel::Manylinux2_28, machine).unwrap();
            assert_eq!(stubs.iter().map(|stub| stub.soname.as_str()).collect::<Vec<_>>(), sonames(machine));
            for stub in &stubs {
                assert_eq!(stub.write().unwrap(), stub.write().unwrap());
            }
        }
        assert!(stubs(FloorLevel::Manylinux2_28, Machine(8)).is_err());
        assert_eq!(identity(FloorLevel::Manylinux2_28, Machine(8)), None);
    }

    /// A link that asks for no version would get none of two, or the wrong one.
    #[test]
    fn every_name_has_one_default_in_a_library() {
        for machine in [Machine::X86_64, Machine::AARCH64] {
            for stub in stubs(FloorLevel::Manylinux2_28, machine).unwrap() {
                let mut defaults: BTreeMap<&str, usize> = BTreeMap::new();
                for symbol in &stub.symbols {
                    *defaults.entry(&symbol.name).or_default() +=
                        usize::from(symbol.version.as_ref().is_some_and(|version| version.default));
                }
                let odd: Vec<_> = defaults.iter().filter(|(_, count)| **count != 1).collect();
                assert!(odd.is_empty(), "{}: {odd:?}", stub.soname);
            }
        }
    }

    #[test]
    fn nodes_without_names_are_there() {
        let stubs = stubs(FloorLevel::Manylinux2_28, Machine::X86_64).unwrap();
        let cxx = stubs.iter().find(|stub| stub.soname == "libstdc++.so.6").unwrap();
        assert!(cxx.versions.iter().any(|node| node == "GLIBCXX_3.4.24"));
        let gomp = stubs.iter().find(|stub| stub.soname == LIBGOMP).unwrap();
        assert_eq!(gomp.symbols.len(), 245);
    }
}
