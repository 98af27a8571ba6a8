//! Which parts of the host's `libstdc++.a` may be copied into an extension that also uses the shared library.
//!
//! A copy is sound as long as no state comes in two. A member that keeps state and defines a name that the shared library has too would
//! bring a second copy of that library's state; a member that keeps state of its own, which the shared library knows nothing of,
//! brings the only one.

use std::collections::BTreeSet;

use kiln_object::Error;
use kiln_object::archive::{self, NewMember};
use kiln_object::elf::{self, Binding, Definition, Storage, SymbolKind};

/// Members that are the runtime's own state, whatever they look like: exception handling, the standard streams, the locales.
const STATE: &[&str] = &[
    "eh_alloc.o",
    "eh_globals.o",
    "eh_terminate.o",
    "eh_term_handler.o",
    "eh_unex_handler.o",
    "ios_init.o",
    "ios_base_init.o",
    "globals_io.o",
    "locale.o",
    "locale_init.o",
];
/// Members whose state may come in two: whether the system has an operation, found out once.
const HARMLESS: &[&str] = &["futex.o"];
/// Names of the compiler's own that every object brings: references to the personality routine.
const IGNORED: &str = "DW.ref.";

/// A member that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its file name.
    pub member: String,
    /// The first name of its state; none for one that is left out by name.
    pub state: Option<String>,
}

/// What is left of a `libstdc++.a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonshared {
    /// The static library, every definition in it hidden.
    pub archive: Vec<u8>,
    /// How many members it has.
    pub members: usize,
    /// What was left out, in file order.
    pub rejected: Vec<Rejected>,
}

/// Takes from a `libstdc++.a` what may be copied beside a shared library that exports the names of `shared`.
///
/// Definitions of `shimmed` names become weak: a shim is taken before them, and both may be linked.
///
/// # Errors
/// When `archive` is damaged or holds something other than 64-bit objects.
pub fn nonshared(archive: &[u8], shared: &BTreeSet<&str>, shimmed: &BTreeSet<&str>) -> Result<Nonshared, Error> {
    let mut rejected = Vec::new();
    let mut members = Vec::new();
    for member in archive::members(archive)? {
        let definitions = elf::definitions(member.data)?;
        if STATE.contains(&member.name) {
            rejected.push(Rejected { member: member.name.to_owned(), state: None });
            continue;
        }
        let seen = || definitions.iter().filter(|definition| definition.binding != Binding::Local);
        let doubled = seen().any(|definition| shared.contains(definition.name.as_str()));
        if let (Some(state), true, false) = (state(&definitions), doubled, HARMLESS.contains(&member.name)) {
            rejected.push(Rejected { member: member.name.to_owned(), state: Some(state.to_owned()) });
            continue;
        }
        let mut data = member.data.to_vec();
        elf::hide(&mut data, |name| shimmed.contains(name))?;
        let defines = seen().map(|definition| definition.name.clone()).filter(|name| !name.starts_with(IGNORED)).collect();
        members.push(NewMember { name: member.name.to_owned(), data, defines });
    }
    Ok(Nonshared { archive: archive::write(&members)?, members: members.len(), rejected })
}

/// The first name of an object's state.
fn state(definitions: &[Definition]) -> Option<&str> {
    let is_data = |kind: SymbolKind| matches!(kind, SymbolKind::Object | SymbolKind::Tls);
    let mut state = definitions.iter().filter(|definition| {
        definition.storage == Storage::Writable && is_data(definition.kind) && definition.size > 0 && !definition.name.starts_with(IGNORED)
    });
    state.next().map(|definition| definition.name.as_str())
}
