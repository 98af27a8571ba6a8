//! `kiln check`, `kiln check-abi` and `kiln check-builds`.

use std::io::Write;
use std::path::PathBuf;

use kiln::backends::VENDORS;
use kiln::check::{BuildRule, CheckError, CheckOptions, Checks, Outcome, check_paths, sarif};
use kiln::config_check::LINTS;
use kiln_abi::{PolicyError, Profile, PythonVersion, Rule};
use kiln_format::{Level, Version};
use kiln_object::macho::SystemVersion;
use serde_json::Value;

use crate::args::{Check, CheckAbi, CheckBuilds, CheckFormat, CheckProfile, Limits};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::remarks::report_text;
use crate::settings::Settings;

pub(crate) fn run(args: &Check, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let known =
        || Rule::ALL.iter().map(|rule| rule.code()).chain(BuildRule::ALL.iter().map(|rule| rule.code())).chain(LINTS.iter().copied());
    if let Some(unknown) = args.only.iter().find(|name| !known().any(|code| code == **name)) {
        let rules = known().collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("there is no rule `{unknown}`")).hint(format!("the rules are {rules}")));
    }
    let options = CheckOptions {
        profile: match args.profile {
            CheckProfile::Extension => Profile::Extension,
            CheckProfile::Library => Profile::Library,
        },
        only: args.only.clone(),
        ..limits(&args.limits, settings)?
    };
    check(&args.paths, &options, args.format, printer)
}

pub(crate) fn abi(args: &CheckAbi, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let macos = args.macos.as_deref().map(macos).transpose()?;
    let options = CheckOptions { checks: Checks { abi: true, builds: false, config: false }, macos, ..limits(&args.limits, settings)? };
    check(std::slice::from_ref(&args.dir.path), &options, args.format, printer)
}

pub(crate) fn builds(args: &CheckBuilds, printer: &Printer) -> Result<Exit, Failure> {
    let options = CheckOptions { checks: Checks { abi: false, builds: true, config: false }, ..CheckOptions::default() };
    check(std::slice::from_ref(&args.dir.path), &options, args.format, printer)
}

/// A release of macOS, as `--macos` has it.
fn macos(text: &str) -> Result<SystemVersion, Failure> {
    let release = Version::parse(text).map_err(|error| Failure::usage(format!("`--macos {text}`: {error}")))?;
    let number = |place: usize| release.components().get(place).copied().unwrap_or_default();
    match (u16::try_from(number(0)), u8::try_from(number(1)), u8::try_from(number(2))) {
        (Ok(major), Ok(minor), Ok(patch)) => Ok(SystemVersion { major, minor, patch }),
        _ => Err(Failure::usage(format!("`--macos {text}`: there is no such release"))),
    }
}

fn limits(limits: &Limits, settings: &Settings) -> Result<CheckOptions, Failure> {
    let python = PythonVersion::parse(&limits.python_abi)
        .ok_or_else(|| Failure::usage(format!("`--python-abi {}`: it must be two numbers, such as 3.9", limits.python_abi)))?;
    let stable_abi = match &limits.torch_stable_abi {
        None => None,
        Some(text) => {
            let version = Version::parse(text).map_err(|error| Failure::usage(format!("`--torch-stable-abi {text}`: {error}")))?;
            Some(version.major_minor())
        }
    };
    Ok(CheckOptions {
        policy: limits.manylinux.clone(),
        python,
        stable_abi,
        allowed_libraries: limits.allowed_libraries.iter().cloned().collect(),
        known_exports: VENDORS.iter().flat_map(|vendor| vendor.known_exports(&settings.environment.variables)).collect(),
        // A user without one keeps it in the project, which is looked for anyway.
        host_paths: settings.cache_dir(None).ok().map(|dir| dir.display().to_string()).into_iter().collect(),
        ..CheckOptions::default()
    })
}

fn check(paths: &[PathBuf], options: &CheckOptions, format: CheckFormat, printer: &Printer) -> Result<Exit, Failure> {
    let outcome = check_paths(paths, options).map_err(failure)?;
    match format {
        CheckFormat::Human => human(&outcome, printer),
        CheckFormat::Json => json(&outcome.to_json(), printer),
        CheckFormat::Sarif => json(&sarif(&outcome, env!("CARGO_PKG_VERSION")), printer),
    }
    Ok(if outcome.is_ok() { Exit::Success } else { Exit::Failure })
}

fn json(value: &Value, printer: &Printer) {
    printer.stdout(|out| {
        let text = serde_json::to_string_pretty(value).map_err(std::io::Error::other)?;
        writeln!(out, "{text}")
    });
}

/// The remarks, and one line that counts.
fn human(outcome: &Outcome, printer: &Printer) {
    printer.stderr(report_text(printer, &outcome.remarks).as_bytes());
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let (errors, warnings) = (outcome.count(Level::Error), outcome.count(Level::Warning));
    let found = match (errors, warnings) {
        (0, 0) => "nothing found".to_owned(),
        _ => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    printer.status("Checked", &format!("{}: {found}", count(outcome.files.len(), "file")));
}

fn failure(error: CheckError) -> Failure {
    let (exit, code) = match &error {
        CheckError::Policy(PolicyError::Unknown { .. }) => (Exit::Usage, "usage"),
        CheckError::Policy(PolicyError::Damaged { .. }) | CheckError::Catalog(_) => (Exit::Failure, "internal"),
    };
    Failure { exit, causes: kiln::build_error::causes(&error), ..Failure::new(code, error.to_string()) }
}
