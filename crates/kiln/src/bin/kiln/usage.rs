//! Command lines that cannot be meant, as errors like all others.

use std::ffi::OsStr;

use clap::error::ErrorKind;

use crate::exit::Failure;

/// The failure that `error` is; none for what asks for help or the version.
///
/// The parser has its findings as text in paragraphs: what is wrong, advice, how the command is used, and where to read more.
pub(crate) fn failure(error: &clap::Error) -> Option<Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        // The text is the whole help, which the caller shows.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Some(Failure::usage("no command is given").hint("the help above lists them"))
        }
        _ => Some(of_text(&error.render().to_string())),
    }
}

/// Whether it was asked for messages for programs, as far as can be told of a command line that was not understood.
pub(crate) fn wants_json(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> bool {
    const OPTION: &str = "--message-format";
    let mut is_value = false;
    for argument in arguments {
        let argument = argument.as_ref().to_string_lossy();
        let value = argument.strip_prefix(OPTION).and_then(|rest| rest.strip_prefix('='));
        if argument == "--" {
            return false;
        }
        if value == Some("json") || (is_value && argument == "json") {
            return true;
        }
        is_value = argument == OPTION;
    }
    false
}

fn of_text(text: &str) -> Failure {
    let mut message: Vec<String> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    for line in text.strip_prefix("error: ").unwrap_or(text).lines().map(str::trim) {
        let values = line.strip_prefix("[possible values: ").and_then(|rest| rest.strip_suffix(']'));
        if let Some(values) = values {
            hints.push(format!("the values are {}", values.split(", ").map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")));
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(in_backticks(tip));
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            hints.push(format!("it is used as `{usage}`"));
        } else if !line.is_empty() && !line.starts_with("For more information") {
            message.push(in_backticks(line));
        }
    }
    let failure = Failure::usage(message.join(" "));
    if hints.is_empty() { failure.hint("`--help` tells more") } else { failure.hint(hints.join("\n")) }
}

/// What the parser has in quotes; an apostrophe inside of a word is none of them.
fn in_backticks(text: &str) -> String {
    let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut before = None;
    let mut rest = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = rest.next() {
        out.push(if c == '\'' && !(in_word(before) && in_word(rest.peek().copied())) { '`' } else { c });
        before = Some(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    fn said(arguments: &[&str]) -> String {
        let failure = failure(&Cli::try_parse_from([&["kiln"], arguments].concat()).unwrap_err());
        failure.map_or_else(|| "help".to_owned(), |failure| format!("{}\n{}", failure.message, failure.hint.unwrap_or_default()))
    }

    #[test]
    fn every_kind_of_command_line() {
        let lines: &[&[&str]] = &[
            &["build", "--fast"],
            &["biuld"],
            &["toolchain"],
            &[],
            &["build", "--release", "--all"],
            &["matrix", "--format", "yaml"],
            &["build", "-j", "0"],
            &["build", "-j", "many"],
            &["build", "--index"],
            &["build", "--cache-dir", ""],
            &["build", "a", "b"],
            &["build", "--color", "it's"],
            &["bench-kernel", "--time"],
            &["call-worker"],
            &["--help"],
            &["--version"],
            &["help", "build"],
        ];
        let said: Vec<String> = lines.iter().map(|line| format!("kiln {}: {}", line.join(" "), said(line))).collect();
        insta::assert_snapshot!(said.join("\n\n"), @"
        kiln build --fast: unexpected argument `--fast` found
        to pass `--fast` as a value, use `-- --fast`
        it is used as `kiln build [OPTIONS] [KERNEL_DIR]`

        kiln biuld: unrecognized subcommand `biuld`
        some similar subcommands exist: `build-and-copy`, `build`
        it is used as `kiln [OPTIONS] <COMMAND>`

        kiln toolchain: no command is given
        the help above lists them

        kiln : no command is given
        the help above lists them

        kiln build --release --all: the argument `--release` cannot be used with `--all`
        it is used as `kiln build --release [KERNEL_DIR]`

        kiln matrix --format yaml: invalid value `yaml` for `--format <FORMAT>`
        the values are `github`, `json`

        kiln build -j 0: invalid value `0` for `--jobs <N>`: 0 is not in 1..=65535
        `--help` tells more

        kiln build -j many: invalid value `many` for `--jobs <N>`: invalid digit found in string
        `--help` tells more

        kiln build --index: a value is required for `--index <URL>` but none was supplied
        `--help` tells more

        kiln build --cache-dir : a value is required for `--cache-dir <DIR>` but none was supplied
        `--help` tells more

        kiln build a b: unexpected argument `b` found
        it is used as `kiln build [OPTIONS] [KERNEL_DIR]`

        kiln build --color it's: invalid value `it's` for `--color <COLOR>`
        the values are `auto`, `always`, `never`

        kiln bench-kernel --time: a value is required for `--time <MILLISECONDS>` but none was supplied
        `--help` tells more

        kiln call-worker: the following required arguments were not provided: <DIR>
        it is used as `kiln call-worker <DIR>`

        kiln --help: help

        kiln --version: help

        kiln help build: help
        ");
    }

    #[test]
    fn who_reads_the_messages() {
        for (line, json) in [
            ("build --message-format json --fast", true),
            ("build --fast --message-format=json", true),
            ("biuld --message-format json", true),
            ("build --message-format human --fast", false),
            ("build --message-format", false),
            ("build json", false),
            ("build -- --message-format json", false),
        ] {
            assert_eq!(wants_json(line.split(' ')), json, "{line}");
        }
    }
}
