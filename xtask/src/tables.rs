//! `tables`: writes the tables of the checks anew from where they come from, or says whether they still are what that gives.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use crate::process;
use crate::setup;
use crate::workspace::Workspace;

/// Options of `tables`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a table differs
    #[arg(long)]
    check: bool,
}

/// Headers with the C functions of torch's stable ABI: files and directories below `torch/include/torch/csrc`.
const SHIM_HEADERS: &[&str] = &["stable/c/shim.h", "inductor/aoti_torch/c", "inductor/aoti_torch/generated"];

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let newest = setup::TORCH.last().context("no torch release")?;
    let torch = setup::torch_pythons(workspace, &[newest])?;
    let torch = torch.first().and_then(|torch| torch.python.parent()?.parent()).context("no torch environment")?;
    let include = setup::packages(torch)?.join("torch/include/torch/csrc");
    let oracles = setup::oracles(workspace)?;
    let policy = setup::packages(&oracles)?.join("auditwheel/policy/manylinux-policy.json");

    let crates = workspace.root.join("crates");
    let tables = [
        ("kiln-abi/data/torch-shims.txt", shims(&include)?),
        ("kiln-abi/data/manylinux.txt", manylinux(&policy)?),
        ("kiln-object/data/python-limited-api.txt", python(&oracles)?),
    ];
    let mut differing = Vec::new();
    for (name, text) in &tables {
        let path = crates.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        differing.push(*name);
        if !options.check {
            std::fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
            println!("wrote {name}");
        }
    }
    if options.check && !differing.is_empty() {
        bail!("{} differ from what `cargo xtask tables` writes", differing.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn shims(include: &Path) -> anyhow::Result<String> {
    let mut functions = Vec::new();
    for place in SHIM_HEADERS {
        for entry in walkdir::WalkDir::new(include.join(place)).sort_by_file_name() {
            let entry = entry?;
            if entry.file_type().is_file() {
                let text = std::fs::read_to_string(entry.path())?;
                let found = kiln_abi::shims::declarations(&text).map_err(|cause| anyhow!("{}: {cause}", entry.path().display()))?;
                functions.extend(found);
            }
        }
    }
    if functions.is_empty() {
        bail!("no function is declared below `{}`", include.display());
    }
    Ok(kiln_abi::shims::render(functions))
}

fn manylinux(policy: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(policy).with_context(|| format!("cannot read `{}`", policy.display()))?;
    let policies: Value = serde_json::from_str(&text)?;
    let mut out = "\
# The manylinux policies. Each has its aliases, its priority (greater for older systems), the libraries that every such
# system has, the versions that may be needed by processor and prefix, and the names of a library that may not be imported.
# Source: the PyPI package auditwheel 6.8.2 (MIT), manylinux-policy.json. Written by `cargo xtask tables`.
"
    .to_owned();
    let words = |value: &Value| -> anyhow::Result<String> {
        let list = value.as_array().context("not a list")?;
        let words = list.iter().map(|word| word.as_str().context("not a text")).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(words.into_iter().map(|word| format!(" {word}")).collect())
    };
    for policy in policies.as_array().context("not a list of policies")? {
        let name = policy["name"].as_str().context("a policy without a name")?;
        out.push_str(&format!("policy {name}\n"));
        if policy["aliases"].as_array().is_some_and(|aliases| !aliases.is_empty()) {
            out.push_str(&format!("aliases{}\n", words(&policy["aliases"])?));
        }
        out.push_str(&format!("priority {}\n", policy["priority"].as_u64().context("a policy without a priority")?));
        out.push_str(&format!("libraries{}\n", words(&policy["lib_whitelist"])?));
        for (processor, prefixes) in sorted(&policy["symbol_versions"])? {
            for (prefix, versions) in sorted(prefixes)? {
                out.push_str(&format!("versions {processor} {prefix}{}\n", words(versions)?));
            }
        }
        for (library, names) in sorted(&policy["blacklist"])? {
            out.push_str(&format!("forbidden {library}{}\n", words(names)?));
        }
    }
    Ok(out)
}

/// CPython's stable ABI, as the package `abi3info` has it.
fn python(oracles: &Path) -> anyhow::Result<String> {
    const QUESTION: &str = "\
import abi3info
for kind, table in (('function', abi3info.FUNCTIONS), ('data', abi3info.DATAS)):
    for symbol, item in table.items():
        words = [symbol.name, kind, f'{item.added.major}.{item.added.minor}']
        words += [item.ifdef.name] if item.ifdef else []
        words += ['abi-only'] if item.abi_only else []
        print(*words)";
    let text = process::output(Command::new(oracles.join("bin/python")).args(["-c", QUESTION]))?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let head = "\
# Names of CPython's limited API and stable ABI, one a line: name, kind, the Python release that added it, and where they
# apply: the macro that must be defined in that Python, and `abi-only` for names that headers no longer declare.
# Source: the PyPI package abi3info 2026.9.25 (MIT), tables FUNCTIONS and DATAS, which are made from CPython's stable_abi.toml.
";
    Ok(format!("{head}{}\n", lines.join("\n")))
}

/// The entries of an object by ascending key.
fn sorted(value: &Value) -> anyhow::Result<Vec<(&String, &Value)>> {
    let object = value.as_object().context("not an object")?;
    let keys: BTreeSet<&String> = object.keys().collect();
    Ok(keys.into_iter().filter_map(|key| object.get_key_value(key)).collect())
}
