//! `kiln toolchain list`.

use std::io::{self, Write};
use std::path::PathBuf;

use kiln_toolchain::{StoreEntry, StoredTree, TvmFfiRelease};

use super::Context;
use crate::args::ReportFormat;
use crate::exit::{Exit, Failure};
use crate::json::path;

pub(super) fn run(context: &Context<'_>, verbose: bool, format: ReportFormat) -> Result<Exit, Failure> {
    let mut entries = context.provisioner.list();
    entries.retain(|entry| entry.release.platform == context.platform);
    let tvm_ffi = tvm_ffi(context)?;
    let stored = if verbose { context.provisioner.stored() } else { Vec::new() };
    context.printer.stdout(|out| match format {
        ReportFormat::Json => {
            let releases: Vec<_> = entries.iter().map(json).chain(tvm_ffi.iter().map(json_tvm_ffi)).collect();
            let all = if verbose {
                serde_json::json!({ "releases": releases, "store": stored.iter().map(json_tree).collect::<Vec<_>>() })
            } else {
                releases.into()
            };
            writeln!(out, "{}", serde_json::to_string_pretty(&all).map_err(io::Error::other)?)
        }
        ReportFormat::Human => {
            for entry in &entries {
                human(out, entry, verbose)?;
            }
            for entry in &tvm_ffi {
                human_tvm_ffi(out, entry, verbose)?;
            }
            stored.iter().try_for_each(|tree| human_tree(out, tree))
        }
    });
    Ok(Exit::Success)
}

/// The releases of tvm-ffi for this platform, each with its place in the store.
fn tvm_ffi<'c>(context: &Context<'c>) -> Result<Vec<(&'c TvmFfiRelease, Option<PathBuf>)>, Failure> {
    let here = context.provisioner.catalog().tvm_ffi_releases().iter().filter(|release| release.platform == context.platform);
    here.map(|release| Ok((release, context.provisioner.path_of_tvm_ffi(&release.version, &context.platform)?))).collect()
}

fn json_tvm_ffi((release, dir): &(&TvmFfiRelease, Option<PathBuf>)) -> serde_json::Value {
    serde_json::json!({
        "name": "tvm-ffi", "version": release.version.to_string(), "platform": release.platform, "wheel": release.wheel.file,
        "sha256": release.wheel.sha256, "record_sha256": release.wheel.record_sha256, "license": release.license,
        "path": dir.as_deref().map(path),
    })
}

fn human_tvm_ffi(out: &mut dyn Write, (release, dir): &(&TvmFfiRelease, Option<PathBuf>), verbose: bool) -> io::Result<()> {
    writeln!(out, "tvm-ffi=={} {:<32} {}", release.version, release.platform, place(dir.as_ref()))?;
    if verbose {
        writeln!(out, "    license: {}", release.license)?;
    }
    Ok(())
}

fn place(dir: Option<&PathBuf>) -> String {
    dir.map_or("not fetched".to_owned(), |dir| dir.display().to_string())
}

fn json(entry: &StoreEntry) -> serde_json::Value {
    let release = &entry.release;
    serde_json::json!({
        "name": "torch", "version": release.version.to_string(), "local": release.local(), "platform": release.platform, "wheel": release.wheel.file,
        "sha256": release.wheel.sha256, "record_sha256": release.wheel.record_sha256,
        "cuda": release.cuda.as_ref().map(ToString::to_string), "cxx": release.cxx_level.as_str(), "license": release.license,
        "locked": release.locked, "path": entry.dir.as_deref().map(path),
    })
}

fn json_tree(tree: &StoredTree) -> serde_json::Value {
    let terms: Vec<_> = tree
        .terms
        .iter()
        .map(
            |terms| serde_json::json!({"project": terms.project, "version": terms.version, "license": terms.license, "files": terms.files}),
        )
        .collect();
    serde_json::json!({
        "id": tree.id, "path": path(&tree.dir), "wheels": tree.wheels, "redistributable": tree.redistributable, "terms": terms,
    })
}

fn human(out: &mut dyn Write, entry: &StoreEntry, verbose: bool) -> io::Result<()> {
    let release = &entry.release;
    let cuda = release.cuda.as_ref().map_or("cpu".to_owned(), |cuda| format!("CUDA {cuda}"));
    let place = place(entry.dir.as_ref());
    let (version, platform, cxx) = (release.shown(), &release.platform, release.cxx_level.as_str());
    let pinned = if release.locked { " (pinned)" } else { "" };
    writeln!(out, "torch=={version} {platform:<14} {cuda:<10} {cxx:<8} {place}{pinned}")?;
    if verbose {
        writeln!(out, "    license: {}", release.license)?;
    }
    Ok(())
}

fn human_tree(out: &mut dyn Write, tree: &StoredTree) -> io::Result<()> {
    let use_of = if tree.redistributable { "" } else { " (used in place, never handed on)" };
    writeln!(out, "{}{use_of}", tree.id)?;
    for terms in &tree.terms {
        let license = terms.license.as_deref().unwrap_or("states no license");
        writeln!(out, "    {} {}: {license}", terms.project, terms.version)?;
        let texts = tree.dir.parent().unwrap_or(&tree.dir).join("terms");
        for file in &terms.files {
            writeln!(out, "        {}", texts.join(file).display())?;
        }
    }
    Ok(())
}
