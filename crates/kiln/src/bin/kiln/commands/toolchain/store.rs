//! `kiln toolchain verify` and `gc`: looking after the store.

use std::io::Write;

use kiln::known_projects;

use super::Context;
use crate::exit::{Exit, Failure};

pub(super) fn verify(context: &Context<'_>, repair: bool) -> Result<Exit, Failure> {
    let damaged = context.heeding_signals(|| context.provisioner.verify_all(repair))??;
    let lacking = context.heeding_signals(|| context.provisioner.lacking_names())?;
    context.printer.stdout(|out| {
        for entry in &damaged {
            writeln!(out, "{} {}: {}", if entry.repaired { "repaired" } else { "damaged" }, entry.id, entry.reason)?;
        }
        Ok(())
    });
    for what in lacking {
        context
            .printer
            .warning(&format!("the names of {what}, which is pinned, are not in the store: they are made again when they are needed"));
    }
    let left = damaged.iter().filter(|entry| !entry.repaired).count();
    if left == 0 {
        let sound = context.provisioner.stored().len();
        context.printer.status("Verified", &format!("{sound} tree{}", if sound == 1 { "" } else { "s" }));
        return Ok(Exit::Success);
    }
    let things = if left == 1 { "1 entry of the store is damaged".to_owned() } else { format!("{left} entries of the store are damaged") };
    Err(Failure::new("store", things).hint("run `kiln toolchain verify --repair`"))
}

pub(super) fn collect(context: &Context<'_>, dry_run: bool, forget_missing: bool) -> Result<Exit, Failure> {
    let unknown = |error: known_projects::UnknownNeeds| {
        let (cause, hint) = (error.source.to_string(), error.hint());
        Failure::new("store", error.to_string()).caused_by(cause).hint(hint)
    };
    // What this user and this project pin counts, whether or not a build has noted it.
    if let Some(project) = &context.project {
        known_projects::note_lock(&context.cache_dir, project, &context.project_lock);
    }
    let mut needs = known_projects::needs(&context.cache_dir, forget_missing).map_err(unknown)?;
    if forget_missing && !dry_run {
        known_projects::forget(&context.cache_dir, &needs.missing);
    }
    needs.locks.push(context.settings.user_lock()?);
    for missing in needs.missing.iter().filter(|_| !forget_missing) {
        let text = format!("the project in `{}` is not there: what it used is kept; `--forget-missing` forgets it", missing.display());
        context.printer.warning(&text);
    }
    let collected = context.provisioner.collect(&needs.texts, &needs.locks, dry_run)?;
    context.printer.stdout(|out| {
        for removal in &collected.removed {
            writeln!(out, "{:>9} {}", size(removal.bytes), removal.id)?;
        }
        Ok(())
    });
    for id in &collected.in_use {
        context.printer.status("Kept", &format!("{id}: a process uses it"));
    }
    let (verb, number) = (if dry_run { "Would free" } else { "Freed" }, collected.removed.len());
    let entries = if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") };
    context.printer.status(verb, &format!("{} in {entries}; {} kept", size(collected.freed()), collected.kept + collected.in_use.len()));
    Ok(Exit::Success)
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
