//! The crates as packages: what is in each, and that they build from that alone.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::process;
use crate::reuse;
use crate::stages::Counts;
use crate::test::cargo;
use crate::workspace::Workspace;

/// A crate that others may use.
struct Package {
    name: String,
    version: String,
    /// Its directory, below the root.
    dir: String,
}

/// The members of the workspace: every crate that could be published, and the names of those that are no packages.
fn members(workspace: &Workspace) -> anyhow::Result<(Vec<Package>, Vec<String>)> {
    let text = process::output(cargo(workspace).args(["metadata", "--no-deps", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("`cargo metadata` wrote no JSON")?;
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for package in metadata["packages"].as_array().context("`cargo metadata` has no packages")? {
        let text = |key: &str| package[key].as_str().map(str::to_owned).with_context(|| format!("{} has no `{key}`", package["name"]));
        // An empty list of registries: for nobody.
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            others.push(text("name")?);
            continue;
        }
        for key in ["description", "license", "readme"] {
            text(key)?;
        }
        let manifest = text("manifest_path")?;
        let dir = Path::new(&manifest).parent().and_then(|dir| dir.strip_prefix(&workspace.root).ok()).map(|dir| dir.display().to_string());
        found.push(Package { name: text("name")?, version: text("version")?, dir: dir.context("a package outside the repository")? });
    }
    if found.is_empty() {
        bail!("no crate is a package");
    }
    Ok((found, others))
}

/// Looks at what each package would have: its terms, and every file that its sources take in when they are compiled.
pub(crate) fn listed(workspace: &Workspace) -> anyhow::Result<Counts> {
    let (packages, _) = members(workspace)?;
    for package in &packages {
        let mut list = cargo(workspace);
        let text = process::output(list.args(["package", "--list", "--allow-dirty", "--offline", "--package", &package.name]))?;
        let files: BTreeSet<&str> = text.lines().collect();
        for wanted in ["README.md", "LICENSE", "Cargo.toml"] {
            if !files.contains(wanted) {
                bail!("the package of `{}` has no `{wanted}`", package.name);
            }
        }
        if let Some(test) = files.iter().find(|file| file.starts_with("tests/") || file.ends_with(".snap")) {
            bail!("the package of `{}` has `{test}`, which is for tests", package.name);
        }
        // Modules of tests lie beside the code as `tests.rs`: who uses a package does not compile them.
        for file in files.iter().filter(|file| file.ends_with(".rs") && !file.ends_with("/tests.rs")) {
            let source = std::fs::read_to_string(workspace.root.join(&package.dir).join(file))?;
            for included in included(&source) {
                let path = joined(file, &included);
                // A name that a macro makes is checked by the directory in front of it.
                let is_there = |path: &str| match path.strip_suffix('/') {
                    Some(_) => files.iter().any(|file| file.starts_with(path)),
                    None => files.contains(path),
                };
                if !path.as_deref().is_some_and(is_there) {
                    bail!("`{}/{file}` includes `{included}`, which its package does not have", package.dir);
                }
            }
        }
    }
    Ok(Counts { passed: packages.len(), failed: 0 })
}

/// The files that a source takes in, as it writes them; without those of its tests, which nobody compiles who uses a package.
fn included(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let calls = ["include_str!(", "include_bytes!(", "include!("];
    let after = calls.iter().flat_map(|call| source.match_indices(call).filter_map(|(at, call)| source.get(at + call.len()..)));
    after
        .filter_map(|rest| {
            let rest = rest.trim_start().trim_start_matches("concat!(").trim_start();
            Some(rest.strip_prefix('"')?.split_once('"')?.0.to_owned())
        })
        .collect()
}

/// `included` as seen from the package of `file`; none when it is outside.
fn joined(file: &str, included: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in included.split('/') {
        match part {
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Makes all packages, unpacks them where nothing else of the repository is, and builds the program and the example from them.
pub(crate) fn built(workspace: &Workspace) -> anyhow::Result<Counts> {
    let (packages, others) = members(workspace)?;
    let dir = workspace.target.join("packages");
    let target = dir.join("target");
    let mut package = cargo(workspace);
    // They depend on each other, and none of them is in a registry: cargo must see them together.
    package.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--target-dir"]).arg(&target);
    for other in &others {
        package.args(["--exclude", other]);
    }
    process::aloud(&mut package)?.check()?;
    let sources = dir.join("sources");
    if sources.exists() {
        std::fs::remove_dir_all(&sources)?;
    }
    std::fs::create_dir_all(&sources)?;
    for Package { name, version, .. } in &packages {
        let file = target.join(format!("package/{name}-{version}.crate"));
        process::output(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(&sources))?;
    }
    example(workspace, &packages, &sources)?;
    let mut build = crate::workspace::cargo();
    build.current_dir(sources.join("rust-reuse")).args(["build", "--features", "wheels", "--target-dir"]).arg(&target);
    process::aloud(&mut build)?.check()?;
    reuse::prove(&target)?;
    let mut build = crate::workspace::cargo();
    build.current_dir(sources.join("rust-reuse")).args(["build", "--package", "kiln", "--target-dir"]).arg(&target);
    process::aloud(&mut build)?.check()?;
    process::output(Command::new(target.join("debug/kiln")).arg("--version"))?;
    Ok(Counts { passed: packages.len() + 1, failed: 0 })
}

/// A copy of the example that takes the crates by version, as if they were in the registry, where the unpacked ones stand in for them.
fn example(workspace: &Workspace, packages: &[Package], sources: &Path) -> anyhow::Result<()> {
    let (from, to) = (workspace.root.join(reuse::PROJECT), sources.join("rust-reuse"));
    workspace.copy_tracked(&from, &to)?;
    let manifest = std::fs::read_to_string(from.join("Cargo.toml"))?;
    let by_version: String = manifest
        .lines()
        .map(|line| match line.split_once(" = { path = \"../../crates/") {
            Some((name, _)) => {
                packages.iter().find(|package| package.name == name).map(|package| format!("{name} = \"{}\"\n", package.version))
            }
            None => Some(format!("{line}\n")),
        })
        .collect::<Option<_>>()
        .context("the example uses a crate that is no package")?;
    let program = packages.iter().find(|package| package.name == "kiln").context("`kiln` is no package")?;
    let mut text =
        by_version.replace("[build-dependencies]\n", &format!("[dependencies]\nkiln = \"{}\"\n\n[build-dependencies]\n", program.version));
    text.push_str("\n[patch.crates-io]\n");
    for Package { name, version, .. } in packages {
        text.push_str(&format!("{name} = {{ path = \"../{name}-{version}\" }}\n"));
    }
    std::fs::write(to.join("Cargo.toml"), text)?;
    // The versions of everything else are those that are tested.
    std::fs::copy(workspace.root.join("Cargo.lock"), to.join("Cargo.lock"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_source_takes_in() {
        let source =
            "const A: &str = include_str!(\"a.txt\");\nlet b = include_bytes!(concat!(\"../../data/\", $name));\ninclude!(\"../x.rs\");";
        assert_eq!(included(source), ["a.txt", "../../data/", "../x.rs"]);
        assert_eq!(included("include_str!(\"a\")\n#[cfg(test)]\nmod tests {\n    include_str!(\"../tests/b\")"), ["a"]);
        assert_eq!(joined("src/a/b.rs", "../../data/").as_deref(), Some("data/"));
        assert_eq!(joined("src/a.rs", "b.txt").as_deref(), Some("src/b.txt"));
        assert_eq!(joined("src/a.rs", "../../docs/x.md"), None);
    }
}
