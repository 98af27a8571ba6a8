//! The floor: what a file may need of the system's libraries.
//!
//! Two layers. The first reads versions, as other checkers do; the second compares each (name, version, file) with what the
//! baseline has. A name is reported once, by the first layer that refuses it.

use std::collections::BTreeSet;

use kiln_format::Level;
use kiln_object::baseline::Baseline;
use kiln_object::elf::Import;

use super::{Check, processor, shown};
use crate::expectation::Profile;
use crate::libraries;
use crate::policy::{Policy, Verdict};
use crate::report::FailureKind;
use crate::rule::Rule;
use crate::systems::baselines;

/// For a name that old systems have in other versions.
const OTHER_VERSION: &str =
    "link with the floor of Kiln, which takes the version that old systems have; a `.symver` has to name one of those";
const FIX: &str = "link with the floor of Kiln, which offers only what old systems have; a source that calls it by name needs another way";

pub(super) fn check(check: &mut Check<'_, '_>) {
    let Some(policy) = check.expected.floor else { return };
    let machine = check.dynamic.machine;
    let Some(processor) = processor(machine).filter(|name| policy.knows(name)) else {
        let cause = format!("{} says nothing about {machine}", policy.name);
        check.report.fail(FailureKind::UnsupportedMachine, check.file, cause);
        return;
    };
    let refused = versions(check, policy, processor);
    match baselines(policy, machine) {
        // A policy younger than all lists has the first layer only.
        Ok(lists) if lists.is_empty() => {}
        Ok(lists) => entries(check, policy, &lists, &refused),
        Err(cause) => check.report.fail(FailureKind::UnsupportedMachine, check.file, cause.to_string()),
    }
}

/// The first layer. Gives the versions that it refuses.
fn versions(check: &mut Check<'_, '_>, policy: &Policy, processor: &str) -> BTreeSet<(String, String)> {
    let mut refused = BTreeSet::new();
    for (library, version) in &check.dynamic.needed_versions {
        if policy.verdict(processor, version) == Verdict::Refused {
            refused.insert((library.clone(), version.clone()));
        }
    }
    let mut told = BTreeSet::new();
    let dynamic = check.dynamic;
    for import in &dynamic.imports {
        let (Some(version), Some(library)) = (&import.version, &import.library) else { continue };
        if policy.forbids(library, &import.name) {
            let detail = format!("{} of {library} is not on every system that {} stands for", shown(&import.name), policy.name);
            check.import(Rule::ForbiddenSymbol, import, detail, "do without it: it is internal to the library");
        }
        let pair = (library.clone(), version.clone());
        if refused.contains(&pair) {
            let detail = too_new(policy, processor, &format!("{} needs {version} of {library}", shown(&import.name)), version);
            check.import(Rule::FloorVersion, import, detail, FIX);
            told.insert(pair);
        }
    }
    for (library, version) in refused.difference(&told) {
        let detail = too_new(policy, processor, &format!("the file demands {version} of {library}"), version);
        let evidence = format!("version need {version} of {library}, which no symbol uses");
        check.file(Rule::FloorVersion, Level::Error, detail, evidence, FIX);
    }
    refused
}

fn too_new(policy: &Policy, processor: &str, what: &str, version: &str) -> String {
    match policy.highest(processor, version) {
        Some(highest) => format!("{what}, which {} does not have (it ends at {highest})", policy.name),
        None => format!("{what}, which {} does not have", policy.name),
    }
}

/// The second layer, for what the first lets pass: one of the lists must have each name.
fn entries(check: &mut Check<'_, '_>, policy: &Policy, lists: &[&Baseline], refused: &BTreeSet<(String, String)>) {
    let dynamic = check.dynamic;
    let has_node = |library: &str, node: &String| {
        let mut known = lists.iter().filter_map(|list| list.nodes(library)).peekable();
        known.peek().is_some().then(|| known.any(|nodes| nodes.contains(node)))
    };
    let mut told = BTreeSet::new();
    for import in &dynamic.imports {
        let (Some(version), Some(library)) = (&import.version, &import.library) else { continue };
        let pair = (library.clone(), version.clone());
        if refused.contains(&pair) {
            continue;
        }
        if lists.iter().any(|list| list.nodes(library).is_some()) {
            if !lists.iter().any(|list| list.has(library, &import.name, version)) {
                told.insert(pair);
                unknown_entry(check, policy, lists, import, version, library);
            }
            continue;
        }
        if check.expected.profile == Profile::Extension && !has_elsewhere(check, import, version, library) {
            told.insert(pair);
        }
    }
    for (library, version) in &dynamic.needed_versions {
        let pair = (library.clone(), version.clone());
        let missing = has_node(library, version) == Some(false);
        if missing && !refused.contains(&pair) && !told.contains(&pair) {
            let detail = format!("the file demands {version} of {library}, which does not have it in {}", policy.name);
            let evidence = format!("version need {version} of {library}, which no symbol uses");
            check.file(Rule::FloorFile, Level::Error, detail, evidence, FIX);
        }
    }
}

/// A name of a baseline library that the baseline does not have so.
fn unknown_entry(check: &mut Check<'_, '_>, policy: &Policy, lists: &[&Baseline], import: &Import, version: &str, library: &str) {
    let name = shown(&import.name);
    let known = lists.first().map(|list| list.named(&import.name)).unwrap_or_default();
    if let Some(right) = known.iter().find(|entry| entry.version == version) {
        let detail = format!("{name} in {version} is asked of {library}, and {} has it in {}", policy.name, right.library);
        check.import(
            Rule::FloorFile,
            import,
            detail,
            "link with the floor of Kiln: newer systems have moved the name into another library",
        );
        return;
    }
    let has = known.iter().map(|entry| format!("{} of {}", entry.version, entry.library)).collect::<Vec<_>>();
    let detail = if has.is_empty() {
        format!("{name} is not in {library} of {}", policy.name)
    } else {
        format!("{name} is asked of {library} in {version}, and {} has it in {}", policy.name, has.join(", "))
    };
    check.import(Rule::FloorSymbol, import, detail, if has.is_empty() { FIX } else { OTHER_VERSION });
}

/// Whether a library outside the baseline has a versioned name, as far as is known.
fn has_elsewhere(check: &mut Check<'_, '_>, import: &Import, version: &str, library: &str) -> bool {
    if let Some(has) = libraries::has_node(library, version) {
        if !has {
            let detail = format!("{} needs {version} of {library}, which the library that users have does not have", shown(&import.name));
            check.import(Rule::FloorVersion, import, detail, "link with the library that torch ships or depends on");
        }
        return has;
    }
    // A library that may not be needed is refused by its own rule.
    if libraries::may_need(library, check.expected).is_err() || check.expected.allowed_libraries.contains(library) {
        return true;
    }
    match (check.expected.known_names)(library, &import.name) {
        Some(true) => true,
        Some(false) => {
            let detail = format!("{} is not exported by {library}", shown(&import.name));
            check.import(Rule::FloorSymbol, import, detail, "build against the torch that the variant names");
            false
        }
        None => {
            let cause = format!("it is not known what {library} exports: `{}@{version}` cannot be judged", import.name);
            check.report.fail(FailureKind::UnknownExports, check.file, cause);
            false
        }
    }
}
