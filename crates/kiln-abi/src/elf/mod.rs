//! The checks of an ELF file, from its dynamic tables.

mod floor;
mod linkage;
mod names;
mod python;
mod torch;

use kiln_format::Level;
use kiln_format::variant::{Cpu, Os};
use kiln_object::demangle::demangle;
use kiln_object::elf::{Dynamic, Import, Machine};

use crate::expectation::{Cause, Expectation, Profile};
use crate::report::{FailureKind, Finding, Report};
use crate::rule::Rule;

/// Checks the dynamic tables of a shared object. `file` is what the report calls it.
pub fn check_elf(file: &str, dynamic: &Dynamic, expected: &Expectation<'_>, report: &mut Report) {
    if !dynamic.mapped {
        // Whatever its tables say, nobody gets to read them.
        Check { file, dynamic, expected, report }.file(
            Rule::ProgramHeaders,
            Level::Error,
            "the file has no program headers, so that no loader can map it",
            "e_phnum is 0 in the ELF header",
            "build it again: stubs for a linker, and files that a tool has cut up, load nowhere",
        );
        return;
    }
    if dynamic.imports.is_empty() && dynamic.exports.is_empty() && !dynamic.needed.is_empty() {
        report.fail(FailureKind::Damaged, file, "it needs other libraries and has no dynamic symbols");
        return;
    }
    let mut check = Check { file, dynamic, expected, report };
    if !machine(&mut check) {
        // Names and versions of another processor would be judged by the wrong lists.
        return;
    }
    floor::check(&mut check);
    linkage::check_loading(&mut check);
    if expected.profile == Profile::Extension {
        linkage::check_libraries(&mut check);
        linkage::check_exports(&mut check);
        python::check(&mut check);
        torch::check(&mut check);
        names::check(&mut check);
    }
}

/// What does not depend on the format of the file: what it offers, and what it takes from Python and from torch.
pub(crate) fn judge_names(check: &mut Check<'_, '_>) {
    linkage::check_exports(check);
    python::check(check);
    torch::check(check);
}

/// What every check of a file works with.
pub(crate) struct Check<'a, 'r> {
    pub(crate) file: &'a str,
    pub(crate) dynamic: &'a Dynamic,
    pub(crate) expected: &'a Expectation<'a>,
    pub(crate) report: &'r mut Report,
}

impl Check<'_, '_> {
    /// Adds a finding about the file as a whole.
    pub(crate) fn file(
        &mut self,
        rule: Rule,
        level: Level,
        detail: impl Into<String>,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(rule, level, None, Vec::new(), detail.into(), evidence.into(), fix.into());
    }

    /// Adds an error about a name that the file takes from others.
    fn import(&mut self, rule: Rule, import: &Import, detail: impl Into<String>, fix: impl Into<String>) {
        let caused_by = self.expected.origins.of(Cause::Wants, &import.name);
        self.add(rule, Level::Error, Some(import.name.clone()), caused_by, detail.into(), evidence(import), fix.into());
    }

    /// Adds a finding about a name that the file offers.
    fn export(&mut self, rule: Rule, level: Level, name: &str, detail: impl Into<String>, fix: impl Into<String>) {
        let caused_by = self.expected.origins.of(Cause::Defines, name);
        self.add(
            rule,
            level,
            Some(name.to_owned()),
            caused_by,
            detail.into(),
            format!("`{name}` is in the dynamic symbol table"),
            fix.into(),
        );
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a finding")]
    fn add(
        &mut self,
        rule: Rule,
        level: Level,
        symbol: Option<String>,
        caused_by: Vec<String>,
        detail: String,
        evidence: String,
        fix: String,
    ) {
        let file = self.file.to_owned();
        self.report.findings.push(Finding { rule, level, file, symbol, detail, evidence, caused_by, fix });
    }

    /// An error for a file of Kiln's own making, else a warning.
    pub(crate) fn own(&self) -> Level {
        if self.expected.own { Level::Error } else { Level::Warning }
    }
}

/// A name as a person reads it, in backquotes.
fn shown(name: &str) -> String {
    format!("`{}`", demangle(name).as_deref().unwrap_or(name))
}

/// An import as it stands in the file.
fn evidence(import: &Import) -> String {
    let name = &import.name;
    let weak = if import.weak { "weak " } else { "" };
    match (&import.version, &import.library) {
        (Some(version), Some(library)) => format!("{weak}undefined `{name}@{version}` from {library}"),
        (Some(version), None) => format!("{weak}undefined `{name}@{version}`"),
        _ => format!("{weak}undefined `{name}` without a version"),
    }
}

/// The processor's name in policies; none for one that no policy names.
fn processor(machine: Machine) -> Option<&'static str> {
    // Numbers of the ELF specification.
    match machine.0 {
        3 => Some("i686"),
        21 => Some("ppc64le"),
        22 => Some("s390x"),
        40 => Some("armv7l"),
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        243 => Some("riscv64"),
        258 => Some("loongarch64"),
        _ => None,
    }
}

/// Whether the file is for what the variant's name says.
fn machine(check: &mut Check<'_, '_>) -> bool {
    let Some((cpu, os)) = check.expected.platform else { return true };
    let found = check.dynamic.machine;
    let wanted = match cpu {
        Cpu::X86_64 => Machine::X86_64,
        Cpu::Aarch64 => Machine::AARCH64,
    };
    let name = processor(found).map_or_else(|| found.to_string(), str::to_owned);
    if os != Os::Linux {
        let detail = format!("the file is an ELF file, and the variant is for {}", os.as_str());
        check.file(Rule::Machine, Level::Error, detail, format!("ELF header: {name}"), "build it for the system of the variant");
        return false;
    }
    if found != wanted {
        let detail = format!("the file is for {name}, and the variant is for {}", cpu.as_str());
        check.file(
            Rule::Machine,
            Level::Error,
            detail,
            format!("ELF header: machine {}", found.0),
            "build it for the processor of the variant",
        );
        return false;
    }
    true
}
