//! Rules for the crates of vendors, which say what is compiled and how, and leave the rest to the crates below them.
//!
//! * They import `kiln-backend` and no other crate of ours.
//! * They start no process.
//! * They join no paths: places are those of roots, of outputs and of discovery.
//! * They write no depfile by hand.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::workspace::Workspace;

/// The one place where vendors are listed.
const LISTED: &str = "crates/kiln/src/backends.rs";

/// The crates that are listed there.
pub(crate) fn crates(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(LISTED)).with_context(|| format!("cannot read `{LISTED}`"))?;
    let list = text.split_once("VENDORS: &[&dyn Toolkits] = &[").and_then(|(_, rest)| rest.split_once("];"));
    let (list, _) = list.with_context(|| format!("`{LISTED}` has no list of vendors"))?;
    let named = list.split('&').filter_map(|entry| entry.split_once("::")).map(|(name, _)| name.trim().replace('_', "-"));
    let mut crates: Vec<String> = named.filter(|name| name.starts_with("kiln-")).collect();
    crates.sort();
    if crates.len() < 2 {
        bail!("`{LISTED}` lists no vendors");
    }
    Ok(crates)
}

/// The crate that is the source of `file`, if that is one of `vendors`.
pub(crate) fn is_source(vendors: &[String], file: &str) -> bool {
    let Some((owner, path)) = file.strip_prefix("crates/").and_then(|rest| rest.split_once('/')) else { return false };
    vendors.iter().any(|vendor| vendor == owner) && path.starts_with("src/") && path.ends_with(".rs") && !path.ends_with("/tests.rs")
}

/// What a line of a vendor's source must not have, as words behind its place.
pub(crate) fn fault(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return None;
    }
    if line.contains("process::Command") || line.contains("Command::new(") || line.contains(".spawn()") {
        return Some("a vendor's crate starts a process");
    }
    if line.contains("\"-MF\"") || line.contains("\"-MD\"") || line.contains("depfile:") {
        return Some("a vendor's crate writes a depfile by hand");
    }
    joins_paths(line).then_some("a vendor's crate joins paths by hand")
}

/// Whether a line joins paths; texts are joined by something that no path has.
fn joins_paths(line: &str) -> bool {
    let joined = line.match_indices(".join(").any(|(at, call)| {
        let separator = line.get(at + call.len()..).unwrap_or_default();
        match separator.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((text, _)) => {
                !text.is_empty() && text.starts_with(|letter: char| letter.is_alphanumeric() || letter == '.' || letter == '/')
            }
            None => true,
        }
    });
    joined || line.contains("PathBuf::from(")
}

/// What is wrong with the dependencies of the crates of vendors.
pub(crate) fn imports(workspace: &Workspace, vendors: &[String]) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for vendor in vendors {
        let file = format!("crates/{vendor}/Cargo.toml");
        let text = std::fs::read_to_string(workspace.root.join(&file)).with_context(|| format!("cannot read `{file}`"))?;
        faults.extend(foreign(&text).into_iter().map(|other| format!("{file}: a vendor's crate imports `{other}`")));
    }
    Ok(faults)
}

/// The crates of ours but `kiln-backend` among the dependencies of a manifest; those for tests do not count.
fn foreign(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" || section.ends_with(".dependencies]") {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if name.starts_with("kiln") && name != "kiln-backend" {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_vendor_must_not_do_is_seen() {
        for bad in [
            "let mut command = Command::new(nvcc);",
            "use std::process::Command;",
            "args.extend([\"-MD\", \"-MF\"]);",
            "Program { depfile: Some(name), ..program }",
            "dir.join(\"bin/nvcc\")",
            "dir.join(name)",
            "dir.join(&format!(\"{name}\"))",
            "PathBuf::from(\"/usr\")",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        for fine in [
            "names.join(\", \")",
            "names.join(\" or \")",
            "lines.join(\"\\n\")",
            "words.join(\",\")",
            "// Command::new(",
            "sources.named(backend)",
            "binding.file(\"bin/nvcc\")",
        ] {
            assert_eq!(fault(fine), None, "{fine}");
        }
    }

    #[test]
    fn imports_of_other_crates_are_seen() {
        let manifest = "[dependencies]\nkiln-backend.workspace = true\nkiln-graph = { path = \"x\" }\nblake3.workspace = true\n\
                        [dev-dependencies]\nkiln-object.workspace = true\n";
        assert_eq!(foreign(manifest), ["kiln-graph"]);
    }

    #[test]
    fn sources_of_vendors() {
        let vendors = ["kiln-cuda".to_owned()];
        assert!(is_source(&vendors, "crates/kiln-cuda/src/a/b.rs"));
        for other in
            ["crates/kiln-cuda/tests/a.rs", "crates/kiln-graph/src/a.rs", "crates/kiln-cuda/src/a/tests.rs", "crates/kiln-cuda/src/a.py"]
        {
            assert!(!is_source(&vendors, other), "{other}");
        }
    }
}
