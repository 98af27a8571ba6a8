//! Rules of the house that no compiler checks.
//!
//! * No tracked file names a package registry's host: users' mirrors serve as well. The hosts are asked of pip and cargo, so
//!   that they stand nowhere here either.
//! * Library crates neither print nor read the environment.
//! * No test is switched off.
//! * The crates of vendors keep to what `vendors` says, and one more vendor is added in the places that `seventh` says.
//! * Examples never include `Python.h`, and workflows use actions by commit or by a released version that is explained.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::process;
use crate::python::Python;
use crate::seventh;
use crate::stages::Counts;
use crate::vendors;
use crate::workspace::Workspace;

/// A rule that was broken, and where.
struct Finding {
    file: String,
    line: usize,
    rule: &'static str,
}

/// Runs the subcommand.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    let counts = check(workspace)?;
    println!("{} rules hold, {} findings", counts.passed, counts.failed);
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks every tracked text file. Counts the rules, and each finding as a failure.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Counts> {
    let hosts = registry_hosts()?;
    let rules = rules(&hosts);
    let vendors = vendors::crates(&workspace.root)?;
    let mut findings = Vec::new();
    let mut files = 0;
    for name in workspace.tracked_files()? {
        let Ok(text) = std::fs::read_to_string(workspace.root.join(&name)) else { continue };
        files += 1;
        for rule in rules.iter().filter(|rule| (rule.applies)(&name)) {
            let lines = text.lines().enumerate().take_while(|(_, line)| !(rule.outside_tests && line.trim() == "#[cfg(test)]"));
            for (index, line) in lines {
                if (rule.broken_by)(line) {
                    findings.push(Finding { file: name.clone(), line: index + 1, rule: rule.text });
                }
            }
        }
        if vendors::is_source(&vendors, &name) {
            let lines = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
            let faults = lines.filter_map(|(index, line)| Some((index + 1, vendors::fault(line)?)));
            findings.extend(faults.map(|(line, rule)| Finding { file: name.clone(), line, rule }));
        }
    }
    if files == 0 {
        bail!("no tracked file could be read");
    }
    for finding in &findings {
        println!("{}:{}: {}", finding.file, finding.line, finding.rule);
    }
    let mut more = vendors::imports(workspace, &vendors)?;
    more.extend(seventh::check_places(workspace).err().map(|error| format!("{error:#}")));
    for fault in &more {
        println!("{fault}");
    }
    // Those of the crates of vendors: processes, depfiles, paths, imports, places.
    let count = rules.len() + 5;
    println!("{count} rules over {files} files, {} crates of vendors", vendors.len());
    Ok(Counts { passed: count, failed: findings.len() + more.len() })
}

struct Rule<'a> {
    text: &'static str,
    applies: Box<dyn Fn(&str) -> bool>,
    broken_by: Box<dyn Fn(&str) -> bool + 'a>,
    /// Whether a Rust file's test module is exempt.
    outside_tests: bool,
}

fn rules(hosts: &[String]) -> Vec<Rule<'_>> {
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    // The marks are put together here, or this file would break its own rules.
    let switched_off = [format!("#[{}", "ignore"), format!("mark.{}", "skip"), format!("mark.{}", "xfail"), format!("pytest.{}(", "skip")];
    let environment =
        [format!("env::{}", "var"), format!("env::{}", "args"), format!("env::{}", "set_var"), format!("env::{}", "current_dir")];
    let printing = [format!("{}!(", "println"), format!("{}!(", "print"), format!("{}!(", "dbg")];
    let any = |marks: Vec<String>| move |line: &str| marks.iter().any(|mark| line.contains(mark.as_str()));
    let (off, environment, printing) = (any(switched_off.to_vec()), any(environment.to_vec()), any(printing.to_vec()));
    vec![
        Rule {
            text: "names a package registry's host",
            // Cargo writes where a package came from.
            applies: Box::new(|file| !file.ends_with("Cargo.lock")),
            broken_by: Box::new(|line| hosts.iter().any(|host| line.contains(host.as_str()))),
            outside_tests: false,
        },
        Rule {
            text: "a library reads the environment",
            applies: Box::new(is_library),
            broken_by: Box::new(move |line| !is_comment(line) && environment(line)),
            outside_tests: true,
        },
        Rule {
            text: "a library prints",
            applies: Box::new(is_library),
            broken_by: Box::new(move |line| !is_comment(line) && printing(line)),
            outside_tests: true,
        },
        Rule {
            text: "a test is switched off",
            applies: Box::new(|file| has_extension(file, &["rs", "py"])),
            broken_by: Box::new(move |line| !is_comment(line) && off(line)),
            outside_tests: false,
        },
        Rule {
            text: "an example needs Python's headers",
            applies: Box::new(|file| file.starts_with("kernels-examples/") && has_extension(file, &["cpp", "h", "cu"])),
            broken_by: Box::new(|line| line.trim_start().starts_with("#include") && line.contains("Python.h")),
            outside_tests: false,
        },
        Rule {
            text: "an action is neither pinned by commit nor at an explained release",
            applies: Box::new(|file| file.starts_with(".github/workflows/")),
            broken_by: Box::new(|line| {
                line.trim_start().trim_start_matches("- ").strip_prefix("uses:").is_some_and(|used| !is_pinned(used))
            }),
            outside_tests: false,
        },
    ]
}

/// Whether `file` is source of a crate whose code must take what it needs as arguments.
fn is_library(file: &str) -> bool {
    let Some(rest) = file.strip_prefix("crates/") else { return false };
    let Some((owner, path)) = rest.split_once('/') else { return false };
    // Crates for tests are programs in disguise.
    let for_tests = owner.starts_with("kiln-test-");
    path.starts_with("src/") && !path.starts_with("src/bin/") && path != "src/main.rs" && !for_tests && has_extension(path, &["rs"])
}

fn has_extension(file: &str, wanted: &[&str]) -> bool {
    Path::new(file).extension().is_some_and(|extension| wanted.iter().any(|one| extension == *one))
}

/// `owner/action@<40 hex>`, or `owner/action@v1.2.3 # <why>`.
fn is_pinned(used: &str) -> bool {
    let Some((_, version)) = used.trim().split_once('@') else { return used.trim().starts_with("./") };
    let (version, comment) = version.split_once('#').unwrap_or((version, ""));
    let version = version.trim();
    let commit = version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    let release = version.strip_prefix('v').is_some_and(|number| {
        number.split('.').count() == 3 && number.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    commit || (release && !comment.trim().is_empty())
}

/// The hosts that pip and cargo have built in, and their domains.
fn registry_hosts() -> anyhow::Result<Vec<String>> {
    const QUESTION: &str = "\
from pip._internal.models.index import PyPI
print(PyPI.netloc)
print(PyPI.file_storage_domain)";
    let python = Python::find()?;
    let mut hosts: Vec<String> =
        process::output(Command::new(&python.program).args(["-c", QUESTION]))?.lines().map(str::to_owned).collect();
    let home = std::env::var_os("CARGO_HOME").map(Into::into).or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let index = home.context("no home directory")?.join("registry/index");
    for entry in std::fs::read_dir(&index).with_context(|| format!("cannot read `{}`", index.display()))? {
        // `<host>-<16 hexadecimal digits>`
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some((host, _)) = name.rsplit_once('-').filter(|(host, _)| host.contains('.')) {
            hosts.push(domain(host));
        }
    }
    hosts.retain(|host| host.contains('.'));
    if hosts.len() < 2 {
        bail!("pip and cargo name no registry");
    }
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// The last two labels.
fn domain(host: &str) -> String {
    let labels: Vec<&str> = host.split('.').collect();
    labels.get(labels.len().saturating_sub(2)..).unwrap_or_default().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins() {
        assert!(is_pinned(&format!(" actions/checkout@{}", "0a".repeat(20))));
        assert!(is_pinned(" actions/checkout@v4.2.2 # its commit could not be verified"));
        assert!(is_pinned(" ./.github/actions/own"));
        for bad in ["actions/checkout@v4", "actions/checkout@v4.2.2", "actions/checkout@main # newest", "actions/checkout", "a/b@v4..1 # x"]
        {
            assert!(!is_pinned(bad), "{bad}");
        }
    }

    #[test]
    fn libraries() {
        assert!(is_library("crates/kiln-format/src/a/b.rs"));
        assert!(is_library("crates/kiln/src/plan.rs"));
        for other in
            ["crates/kiln/src/bin/kiln/main.rs", "crates/kiln-graph/tests/a.rs", "xtask/src/main.rs", "crates/kiln-test-server/src/lib.rs"]
        {
            assert!(!is_library(other), "{other}");
        }
    }

    #[test]
    fn each_rule_finds_what_it_looks_for() {
        let hosts = vec!["registry.example".to_owned()];
        let rules = rules(&hosts);
        let broken = |file: &str, line: &str| -> Vec<&str> {
            rules.iter().filter(|rule| (rule.applies)(file) && (rule.broken_by)(line)).map(|rule| rule.text).collect()
        };
        assert_eq!(broken("README.md", "see https://registry.example/x"), ["names a package registry's host"]);
        assert_eq!(broken("Cargo.lock", "https://registry.example"), Vec::<&str>::new());
        let library = "crates/kiln-graph/src/a.rs";
        assert_eq!(broken(library, &format!("std::env::{}(\"X\")", "var")), ["a library reads the environment"]);
        assert_eq!(broken(library, &format!("    {}!(\"x\");", "eprintln")), ["a library prints"]);
        assert_eq!(broken(library, &format!("// {}!(\"x\");", "eprintln")), Vec::<&str>::new());
        assert_eq!(broken("a/tests/b.rs", &format!("#[{}]", "ignore")), ["a test is switched off"]);
        assert_eq!(broken("kernels-examples/a/b.cpp", "#include <Python.h>"), ["an example needs Python's headers"]);
        assert_eq!(broken(".github/workflows/a.yml", "      - uses: a/b@v1").len(), 1);
    }

    #[test]
    fn domains() {
        assert_eq!(domain("index.registry.example"), "registry.example");
        assert_eq!(domain("example"), "example");
    }
}
