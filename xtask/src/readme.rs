//! The first kernel of `README.md`: its files are taken from the page, built and run, word for word.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::kiln::Kiln;
use crate::process;
use crate::stages::Counts;
use crate::test_python::TestPython;
use crate::workspace::Workspace;

/// Builds the kernel once and runs it in each torch.
pub(crate) fn check(workspace: &Workspace, kiln: &Kiln, pythons: &[TestPython]) -> anyhow::Result<Counts> {
    let path = workspace.root.join("README.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let scratch = tempfile::tempdir()?;
    let files = named_blocks(&text);
    if files.len() < 3 {
        bail!("`README.md` shows {} files, not a kernel", files.len());
    }
    for (name, content) in &files {
        let target = scratch.path().join(name);
        std::fs::create_dir_all(target.parent().unwrap_or(scratch.path()))?;
        std::fs::write(target, content)?;
    }
    let use_it = blocks(&text).into_iter().rfind(|block| block.language == "python").context("`README.md` never uses its kernel")?;
    process::aloud(kiln.command().args(["build", "twice"]).current_dir(scratch.path()))?.check()?;
    let pythons: Vec<&TestPython> = pythons.iter().filter(|python| python.torch.is_some()).collect();
    for python in &pythons {
        let printed = run(workspace, python, &use_it.content, scratch.path()).with_context(|| python.name.clone())?;
        if printed.trim() != "tensor([2., 2., 2.])" {
            bail!("the first kernel of `README.md` printed `{}` in {}", printed.trim(), python.name);
        }
    }
    Ok(Counts { passed: pythons.len(), failed: 0 })
}

fn run(workspace: &Workspace, python: &TestPython, script: &str, dir: &Path) -> anyhow::Result<String> {
    let mut command = python.command(workspace)?;
    process::output(command.args(["-c", script]).current_dir(dir))
}

/// A fenced block of a page.
struct Block<'a> {
    /// The last line of text before it.
    before: &'a str,
    language: &'a str,
    content: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut before = "";
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        match line.strip_prefix("```") {
            Some(language) => {
                let content: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
                found.push(Block { before, language, content });
            }
            None if !line.trim().is_empty() => before = line,
            None => {}
        }
    }
    found
}

/// Blocks whose text before ends in a file's name, as in "`a/b.toml`:".
fn named_blocks(page: &str) -> Vec<(String, String)> {
    let name = |before: &str| {
        let (_, name) = before.strip_suffix("`:")?.rsplit_once('`')?;
        name.contains('/').then(|| name.to_owned())
    };
    blocks(page).into_iter().filter_map(|block| Some((name(block.before)?, block.content))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_from_a_page() {
        let page = "One. `a/b.toml`:\n\n```toml\nx = 1\n\ny = 2\n```\n\nThen run `a/b`:\n```sh\nz\n```\nor\n```sh\nnot this\n```\n";
        assert_eq!(named_blocks(page), [("a/b.toml".to_owned(), "x = 1\n\ny = 2\n".to_owned()), ("a/b".to_owned(), "z\n".to_owned())]);
        assert_eq!(blocks(page).len(), 3);
    }
}
