//! Finding files of a kit below its root.

use std::path::{Path, PathBuf};

/// The first of `names` that is below `root`.
///
/// In a name, `{cpu}`, `{target}` and `{multiarch}` stand for what vendors and Debian call the machine's processor, and a `*` stands
/// for a version (`clang-*`, `python*`), of which the highest that leads somewhere is taken.
pub(super) fn first(root: &Path, names: &[&str], cpu: &str) -> Option<PathBuf> {
    names.iter().flat_map(|name| spelled(name, cpu)).find_map(|name| below(root, &name))
}

/// A name with its placeholders replaced, in each way that is in use.
fn spelled(name: &str, cpu: &str) -> Vec<String> {
    // CUDA calls a server with an ARM processor by the name of a specification.
    let targets: &[String] = &match cpu {
        "aarch64" => vec!["sbsa-linux".to_owned(), "aarch64-linux".to_owned()],
        cpu => vec![format!("{cpu}-linux")],
    };
    let name = name.replace("{cpu}", cpu).replace("{multiarch}", &format!("{cpu}-linux-gnu"));
    if name.contains("{target}") { targets.iter().map(|target| name.replace("{target}", target)).collect() } else { vec![name] }
}

fn below(root: &Path, name: &str) -> Option<PathBuf> {
    let Some((head, tail)) = name.split_once('*') else {
        return Some(root.join(name)).filter(|path| path.exists());
    };
    let (dir, prefix) = head.rsplit_once('/').unwrap_or(("", head));
    let (suffix, rest) = tail.split_once('/').map_or((tail, None), |(suffix, rest)| (suffix, Some(rest)));
    let mut matches: Vec<(Vec<u64>, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(root.join(dir)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| numbers(name.strip_prefix(prefix)?.strip_suffix(suffix)?));
        let found = match rest {
            Some(rest) => below(&entry.path(), rest),
            None => Some(entry.path()),
        };
        matches.extend(number.zip(found));
    }
    matches.into_iter().max().map(|(_, path)| path)
}

/// The numbers of a dotted version; none for other text.
fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// Entries of `dir` called `prefix` and a dotted version, newest first.
pub(super) fn versioned(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u64>, PathBuf)> =
        entries.filter_map(|entry| Some((numbers(entry.file_name().to_str()?.strip_prefix(prefix)?)?, entry.path()))).collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_that_leads_somewhere_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bin/clang++-9", "bin/clang++-15", "bin/clang++-x", "lib/clang/9/a.bc", "lib/clang/17.0.6/a.bc", "lib/clang/18/b.bc"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |names: &[&str]| first(dir.path(), names, "x86_64").map(|path| path.strip_prefix(dir.path()).unwrap().to_owned());
        assert_eq!(found(&["bin/clang++", "bin/clang++-*"]), Some("bin/clang++-15".into()));
        assert_eq!(found(&["lib/clang/*/a.bc"]), Some("lib/clang/17.0.6/a.bc".into()));
        assert_eq!(found(&["lib/clang/*/c.bc", "missing/*"]), None);
    }

    #[test]
    fn processors_have_several_names() {
        assert_eq!(spelled("targets/{target}/lib", "aarch64"), ["targets/sbsa-linux/lib", "targets/aarch64-linux/lib"]);
        assert_eq!(spelled("targets/{target}/lib", "x86_64"), ["targets/x86_64-linux/lib"]);
        assert_eq!(spelled("lib/{multiarch}/{cpu}", "aarch64"), ["lib/aarch64-linux-gnu/aarch64"]);
    }
}
