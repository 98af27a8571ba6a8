//! `docs`: the pages that are written from the program itself.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::kiln::Kiln;
use crate::process;
use crate::proof;
use crate::stages::Counts;
use crate::workspace::Workspace;

/// Options of `docs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a page is out of date
    #[arg(long)]
    check: bool,
}

const HEAD: &str = "\
# The command line

What `kiln help` says of each command. Written by `cargo xtask docs`; exit codes and messages are in [errors.md](errors.md).
";

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> anyhow::Result<ExitCode> {
    let kiln = Kiln::build(workspace)?;
    if options.check {
        check(workspace, &kiln)?;
    } else {
        for (path, text) in pages(workspace, &kiln)? {
            std::fs::write(path, text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every page with its text.
fn pages(workspace: &Workspace, kiln: &Kiln) -> anyhow::Result<[(PathBuf, String); 4]> {
    let page = |name: &str| workspace.root.join("docs").join(name);
    Ok([
        (page("cli.md"), command_line(kiln)?),
        (page("build-toml.md"), kiln_format::build::reference_page()),
        (page("build.schema.json"), kiln_format::build::json_schema()),
        proof::page(workspace)?,
    ])
}

/// Fails when a page is out of date.
pub(crate) fn check(workspace: &Workspace, kiln: &Kiln) -> anyhow::Result<Counts> {
    for (path, text) in pages(workspace, kiln)? {
        let found = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        if found != text {
            bail!("`{}` is out of date: run `cargo xtask docs`", path.display());
        }
    }
    Ok(Counts::ONE)
}

fn command_line(kiln: &Kiln) -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    section(kiln, &[], &mut text)?;
    Ok(text)
}

/// The help of a command, then of each command below it.
fn section(kiln: &Kiln, path: &[&str], text: &mut String) -> anyhow::Result<()> {
    // Without a terminal, lines are as long as the program's own maximum.
    let help = process::output(kiln.command().args(path).arg("--help").env_remove("COLUMNS"))?;
    let title = [&["kiln"], path].concat().join(" ");
    let lines = help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    text.push_str(&format!("\n## `{title}`\n\n```text\n{lines}\n```\n"));
    for name in commands(&help) {
        section(kiln, &[path, &[name]].concat(), text)?;
    }
    Ok(())
}

/// Names in the list under `Commands:`.
fn commands(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    // A line that goes on is indented further.
    let names = list.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        let help = "Does things.\n\nUsage: x\n\nCommands:\n  build  Build\n           all of it\n  list   List\n  help   Print\n\nOptions:\n  -q  Quiet\n";
        assert_eq!(commands(help), ["build", "list"]);
        assert_eq!(commands("Usage: x\n"), Vec::<&str>::new());
    }
}
