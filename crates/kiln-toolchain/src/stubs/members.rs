//! What a link takes out of static libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kiln_graph::BuiltinError;
use kiln_object::archive;
use kiln_object::elf::{self, Relocatable};

use super::LinkNames;

/// Who wants what a member wants, in messages.
pub(super) const LABEL: &str = "a static library";

/// The members of `archives` that a link of `objects` takes: those that define a name which nothing else provides, and what they need of
/// the same libraries.
///
/// # Errors
/// When a library or one of these members cannot be read.
pub(super) fn wanted(names: &LinkNames, objects: &[(&str, Relocatable)], archives: &[PathBuf]) -> Result<Vec<Relocatable>, BuiltinError> {
    let failed = |path: &PathBuf, cause: String| BuiltinError::new("object", format!("cannot read `{}`: {cause}", path.display()));
    let mut taken: Vec<(&str, Relocatable)> = objects.to_vec();
    for path in archives {
        let data = std::fs::read(path).map_err(|cause| failed(path, cause.to_string()))?;
        let members = archive::members(&data).map_err(|cause| failed(path, cause.to_string()))?;
        let index = archive::symbol_index(&data).map_err(|cause| failed(path, cause.to_string()))?;
        let index: BTreeMap<&str, &str> = index.iter().map(|entry| (entry.name, entry.member)).collect();
        let mut known = BTreeSet::new();
        loop {
            let open = names.resolve(&taken).map_err(|cause| BuiltinError::new("host-compiler", cause.to_string()))?.unresolved;
            let defining = open.iter().filter_map(|unresolved| index.get(unresolved.name.as_str()).copied());
            let new: Vec<&str> = defining.filter(|member| known.insert(*member)).collect();
            if new.is_empty() {
                break;
            }
            for member in members.iter().filter(|member| new.contains(&member.name)) {
                let object = elf::relocatable(member.data).map_err(|cause| failed(path, format!("`{}`: {cause}", member.name)))?;
                taken.push((LABEL, object));
            }
        }
    }
    Ok(taken.into_iter().skip(objects.len()).map(|(_, object)| object).collect())
}
