//! `floor`: writes the lists of what old systems offer anew from where they come from, or compares them.
//!
//! The C library's names are in the table that the PyPI package `ziglang` carries, which is made from glibc's own lists of every
//! release and processor. Those of the C++ library and the unwinder are what the libraries of this system (and of the cross compiler
//! for the other processor) have in the versions that the policy allows: newer releases only ever add names.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use kiln_abi::Policies;
use kiln_object::baseline::System;
use kiln_object::elf::{Machine, dynamic_file};
use kiln_toolchain::floor::lists;

use crate::process;
use crate::setup;
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Options of `floor`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a list differs
    #[arg(long)]
    check: bool,
}

/// The processors, each with the compiler whose libraries are read.
const MACHINES: [(Machine, &str); 2] = [(Machine::X86_64, "x86_64-linux-gnu-g++"), (Machine::AARCH64, "aarch64-linux-gnu-g++")];
/// Libraries that are not glibc's.
const OF_COMPILER: [&str; 2] = ["libstdc++.so.6", "libgcc_s.so.1"];

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let mut differing = 0;
    for list in made(workspace)? {
        let told = list.differences()?;
        if told.is_empty() {
            continue;
        }
        differing += 1;
        println!("{}: {} lines differ", list.path.display(), told.len());
        for line in &told {
            println!("  {line}");
        }
        if !options.check {
            list.write()?;
        }
    }
    println!("{differing} of {} lists {}", MACHINES.len() * System::ALL.len(), if options.check { "differ" } else { "written" });
    Ok(if options.check && differing > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares all lists with their sources. Counts lists.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for list in made(workspace)? {
        let told = list.differences()?;
        for line in told.iter().take(20) {
            println!("{}: {line}", list.path.display());
        }
        counts = counts.plus(if told.is_empty() { Counts::ONE } else { Counts { passed: 0, failed: 1 } });
    }
    Ok(counts)
}

/// A list as its sources give it.
struct Made {
    path: PathBuf,
    text: String,
}

impl Made {
    /// The lines that the embedded list lacks (`+`) or has beyond (`-`).
    fn differences(&self) -> anyhow::Result<Vec<String>> {
        let mut old = String::new();
        match std::fs::File::open(&self.path) {
            Ok(file) => GzDecoder::new(file).read_to_string(&mut old).with_context(|| format!("`{}`", self.path.display()))?,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => 0,
            Err(cause) => return Err(cause).with_context(|| format!("`{}`", self.path.display())),
        };
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), self.text.lines().collect());
        let gone = old.difference(&new).map(|line| format!("-{line}"));
        Ok(gone.chain(new.difference(&old).map(|line| format!("+{line}"))).collect())
    }

    fn write(&self) -> anyhow::Result<()> {
        // Without a time and a name inside, equal text gives equal bytes.
        let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
        gzip.write_all(self.text.as_bytes())?;
        std::fs::write(&self.path, gzip.finish()?).with_context(|| format!("cannot write `{}`", self.path.display()))
    }
}

fn made(workspace: &Workspace) -> anyhow::Result<Vec<Made>> {
    let table = setup::glibc_names(workspace)?;
    let table = std::fs::read(&table).with_context(|| format!("cannot read `{}`", table.display()))?;
    setup::cross_compilers()?;
    let policies = Policies::embedded()?;
    let mut all = Vec::new();
    for (machine, compiler) in MACHINES {
        for system in System::ALL {
            let policy = policies.get(&format!("manylinux_{}", system.number()))?;
            let allowed = |node: &str| policy.allows(&machine.to_string(), node);
            let mut entries = lists::of_abilists(&table, machine, &allowed)?;
            for soname in OF_COMPILER {
                entries.extend(lists::cut(&dynamic_file(&library(compiler, soname)?)?, &allowed));
            }
            let text = format!("{}{}", head(system, machine), lists::text(&entries));
            let path = workspace.root.join(format!("crates/kiln-object/data/baseline-{}-{machine}.txt.gz", system.number()));
            all.push(Made { path, text });
        }
    }
    Ok(all)
}

fn head(system: System, machine: Machine) -> String {
    let number = system.number();
    format!(
        "\
# What systems of manylinux_{number} offer on {machine}: one exported name a line.
# library name version default|hidden FUNC|OBJECT|TLS GLOBAL|WEAK size
# Source: {}, and the dynamic tables of libstdc++ and libgcc_s, in the version nodes that the
# policy allows. Written by `cargo xtask floor`.
",
        setup::GLIBC_NAMES
    )
}

/// Where the compiler has a library.
fn library(compiler: &str, soname: &str) -> anyhow::Result<PathBuf> {
    let text = process::output(Command::new(compiler).arg(format!("-print-file-name={soname}")))?;
    let path = Path::new(text.trim());
    if !path.is_absolute() {
        bail!("`{compiler}` has no `{soname}`");
    }
    Ok(path.to_owned())
}
