//! `catalog`: makes the pins of torch wheels and the names that their libraries offer anew, or checks them.
//!
//! Each wheel is downloaded whole by pip, which compares it with the digest that the index gives, and thrown away again.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use kiln_toolchain::make_catalog::{self, MadeRelease};

use crate::process;
use crate::setup;
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Options of `catalog`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when something would change
    #[arg(long)]
    check: bool,
    /// Also take in this release, such as 2.16.0; may be repeated
    #[arg(long = "add", value_name = "VERSION")]
    added: Vec<String>,
}

/// Files of the catalog, relative to the root.
const CATALOG: &str = "crates/kiln-toolchain/catalog";

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let dir = workspace.root.join(CATALOG);
    let mut releases = known_releases(&dir)?;
    releases.extend(options.added.iter().cloned());
    let changed = differences(&dir, &make(workspace, &releases)?)?;
    for (name, content) in &changed {
        if options.check {
            println!("`{CATALOG}/{name}` is not what its wheel gives");
        } else {
            std::fs::write(dir.join(name), content)?;
            println!("wrote `{CATALOG}/{name}`");
        }
    }
    println!("{} releases, {} files differ", releases.len(), changed.len());
    Ok(if options.check && !changed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares the catalog with the wheels. Counts releases.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let dir = workspace.root.join(CATALOG);
    let releases = known_releases(&dir)?;
    let changed = differences(&dir, &make(workspace, &releases)?)?;
    for (name, _) in &changed {
        println!("`{CATALOG}/{name}` is not what its wheel gives");
    }
    Ok(Counts { passed: releases.len(), failed: changed.len() })
}

/// The releases that the catalog has, in its order.
fn known_releases(dir: &Path) -> anyhow::Result<Vec<String>> {
    let path = dir.join("torch.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let releases: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"')).map(str::to_owned).collect();
    if releases.is_empty() {
        bail!("`{}` names no release", path.display());
    }
    Ok(releases)
}

fn make(workspace: &Workspace, releases: &[String]) -> anyhow::Result<Vec<MadeRelease>> {
    let pip = setup::base_python(workspace)?;
    releases.iter().map(|release| one(&pip, release).with_context(|| format!("torch {release}"))).collect()
}

/// Downloads and reads one wheel. Which Python it is for does not matter: the headers and libraries are the same.
fn one(python: &Path, release: &str) -> anyhow::Result<MadeRelease> {
    println!("reading torch {release}");
    let scratch = tempfile::tempdir()?;
    let mut download = Command::new(python);
    download.args(["-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--no-cache-dir"]);
    download.args(["--only-binary=:all:", "--implementation=cp", "--python-version=3.11", "--abi=cp311"]);
    download.args(["--platform=manylinux_2_28_x86_64", "--dest"]).arg(scratch.path()).arg(format!("torch=={release}"));
    process::output(&mut download)?;
    let wheel = std::fs::read_dir(scratch.path())?.next().context("pip downloaded nothing")??.path();
    Ok(make_catalog::make_release(&wheel, scratch.path())?)
}

/// The files that are not as they should be, with what they should hold.
fn differences(dir: &Path, made: &[MadeRelease]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let names = made.iter().map(|release| (format!("names/{}", release.release.names), release.names_file.clone()));
    let all = std::iter::once((
        "torch.toml".to_owned(),
        make_catalog::render_torch(&made.iter().map(|made| made.release.clone()).collect::<Vec<_>>()).into_bytes(),
    ))
    .chain(names);
    Ok(all.filter(|(name, content)| std::fs::read(dir.join(name)).ok().as_ref() != Some(content)).collect())
}
