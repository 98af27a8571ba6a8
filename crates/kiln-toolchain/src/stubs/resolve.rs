//! Where each name comes from.

use std::collections::{BTreeMap, BTreeSet};

use kiln_object::demangle::entity;
use kiln_object::elf::{Binding, Relocatable, SymbolKind, Undefined, Visibility};

use super::LinkNames;
use super::linker::{is_made_by_linker, may_stay_undefined};
use super::message::{Reason, Unresolved};
use crate::host::RuntimeError;
use crate::names::{added_to_stable_abi, is_of_python, is_of_runtime};

/// A name that a library has to provide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// The name, mangled.
    pub name: String,
    /// What it names, as far as the objects say: thread-local data must be marked as such.
    pub kind: SymbolKind,
}

/// Where the names of an extension come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// What is wanted of each of [`LinkNames::linked`], in their order; names ascending.
    pub wanted: Vec<Vec<Wanted>>,
    /// Names that Python provides, ascending.
    pub python: Vec<String>,
    /// Names that nothing provides, in the order in which the objects want them.
    pub unresolved: Vec<Unresolved>,
}

/// All that is known of one undefined name.
struct Use<'o> {
    name: &'o str,
    kind: SymbolKind,
    /// Weak in every object that has it.
    weak: bool,
    hidden: bool,
    wanted_by: Vec<&'o str>,
}

/// The provider of a name.
enum Source {
    /// The extension, the linker or the host's runtime: no stub has to offer it.
    Settled,
    /// This one of [`LinkNames::linked`].
    Library(usize),
    Python,
}

impl LinkNames {
    /// Finds the provider of every name that `objects`, given with their labels, use and do not define.
    ///
    /// Asked in this order: the extension itself, the linker, the host's runtime, the libraries in link order, Python. So
    /// nothing that the C++ runtime has is ever taken from a library that also exports it.
    ///
    /// # Errors
    /// When the host's runtime cannot be read.
    pub fn resolve<'r>(&'r self, objects: &[(&str, Relocatable)]) -> Result<Resolution, &'r RuntimeError> {
        let runtime = self.runtime.get()?;
        let own: BTreeSet<&str> = objects
            .iter()
            .flat_map(|(_, object)| &object.defined)
            .filter(|symbol| symbol.binding != Binding::Local)
            .map(|symbol| symbol.name.as_str())
            .collect();
        let mut resolution = Resolution { wanted: vec![Vec::new(); self.linked.len()], ..Resolution::default() };
        for used in uses(objects) {
            let source = if own.contains(used.name) || is_made_by_linker(used.name) || runtime.contains(used.name) {
                Ok(Source::Settled)
            } else if let Some((base, version)) = used.name.split_once('@') {
                // Only the host's libraries have versions.
                let (version, has) = (version.trim_start_matches('@').to_owned(), runtime.versions_of(base));
                Err(Reason::Version { version, has, floor: self.runtime.level() })
            } else {
                self.beyond_the_host(&used)
            };
            match source {
                Ok(Source::Settled) => {}
                Ok(Source::Library(index)) => {
                    if let Some(list) = resolution.wanted.get_mut(index) {
                        list.push(Wanted { name: used.name.to_owned(), kind: used.kind });
                    }
                }
                Ok(Source::Python) => resolution.python.push(used.name.to_owned()),
                Err(reason) => {
                    let wanted_by = used.wanted_by.into_iter().map(str::to_owned).collect();
                    resolution.unresolved.push(Unresolved { name: used.name.to_owned(), wanted_by, reason });
                }
            }
        }
        resolution.wanted.iter_mut().for_each(|list| list.sort());
        resolution.python.sort();
        Ok(resolution)
    }

    /// The provider of a name that neither the extension nor the host has.
    fn beyond_the_host(&self, used: &Use<'_>) -> Result<Source, Reason> {
        let name = used.name;
        let known_weak = used.weak && may_stay_undefined(name);
        if used.hidden {
            return if known_weak { Ok(Source::Settled) } else { Err(Reason::Hidden) };
        }
        if let Some(index) = self.linked.iter().position(|library| library.offers(name)) {
            return Ok(Source::Library(index));
        }
        if is_of_python(name) {
            return match (added_to_stable_abi(name), self.python) {
                (_, None) => Err(Reason::NoPython),
                (Some(added), Some(floor)) if added <= floor => Ok(Source::Python),
                (Some(added), Some(floor)) => Err(Reason::NewerPython { added, floor }),
                (None, Some(_)) => Err(Reason::NotLimitedApi),
            };
        }
        if known_weak {
            return Ok(Source::Settled);
        }
        if let Some(reason) = self.runtime.kept_out(name) {
            return Err(reason);
        }
        if is_of_runtime(name) {
            return Err(Reason::NotInRuntime);
        }
        let unlinked = self.unlinked.iter().find(|library| library.offers(name));
        Err(match unlinked {
            Some(library) => Reason::NotLinked { provider: self.provider.clone(), library: library.soname.clone() },
            None if is_of_driver(name) => Reason::Driver,
            None => Reason::NotExported { theirs: is_of_torch(name), provider: self.provider.clone(), libraries: self.outputs() },
        })
    }
}

/// Whether a name can only be torch's: its namespaces and the prefixes of its C interface.
fn is_of_torch(name: &str) -> bool {
    const NAMESPACES: &[&str] = &["c10::", "at::", "torch::", "caffe2::"];
    let entity = entity(name);
    ["aoti_torch_", "torch_"].iter().any(|prefix| name.starts_with(prefix))
        || entity.is_some_and(|entity| NAMESPACES.iter().any(|space| entity.starts_with(space)))
}

/// Whether a name has the form of CUDA's driver interface: `cuLaunchKernel`.
fn is_of_driver(name: &str) -> bool {
    name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()))
}

/// The undefined names of all objects, each once, in the order in which they first come.
fn uses<'o>(objects: &'o [(&'o str, Relocatable)]) -> Vec<Use<'o>> {
    let mut uses: Vec<Use<'o>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (label, object) in objects {
        for symbol in &object.undefined {
            let place = *places.entry(&symbol.name).or_insert(uses.len());
            match uses.get_mut(place) {
                Some(known) => known.add(symbol, label),
                None => uses.push(Use {
                    name: &symbol.name,
                    kind: symbol.kind,
                    weak: symbol.weak,
                    hidden: symbol.visibility == Visibility::Hidden,
                    wanted_by: vec![label],
                }),
            }
        }
    }
    uses
}

impl<'o> Use<'o> {
    fn add(&mut self, symbol: &Undefined, label: &'o str) {
        self.weak &= symbol.weak;
        self.hidden |= symbol.visibility == Visibility::Hidden;
        if self.kind == SymbolKind::Untyped {
            self.kind = symbol.kind;
        }
        if self.wanted_by.last() != Some(&label) {
            self.wanted_by.push(label);
        }
    }
}
