//! The event stream as text on stderr.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kiln::Event;
use kiln_graph::{Failure, Reason, StepId};
use kiln_toolchain::FetchEvent;

use crate::printer::Printer;

/// Writes the event stream as text.
#[derive(Debug)]
pub(crate) struct HumanReporter<'a> {
    printer: &'a Printer,
    print_commands: bool,
    explain: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    started: Option<Instant>,
    total: usize,
    done: usize,
    /// Steps that really ran: the base of the time that is left.
    ran: usize,
    running: BTreeMap<StepId, String>,
}

impl<'a> HumanReporter<'a> {
    pub(crate) fn new(printer: &'a Printer, print_commands: bool, explain: bool) -> Self {
        Self { printer, print_commands, explain, state: Mutex::new(State::default()) }
    }

    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Warning { message } => self.printer.warning(message),
            Event::Fetch(fetch) => self.fetch(fetch),
            Event::Waiting { pid } => self.printer.status("Waiting", &waiting(*pid)),
            Event::Graph(event) => self.graph(event),
            Event::VariantFinished { variant, directory, changed, .. } => {
                let unchanged = if *changed { "" } else { " (unchanged)" };
                self.printer.status("Packaged", &format!("{}{unchanged}", directory.with_file_name(variant).display()));
            }
            Event::VariantFailed { variant, reason: Some(reason) } => {
                self.printer.error("variant-failed", &format!("failed to make `{variant}`: {reason}"), &[], None);
            }
            Event::VariantFailed { reason: None, .. } => {}
        }
    }

    fn fetch(&self, event: &FetchEvent) {
        match event {
            FetchEvent::Started { what } => self.printer.status("Fetching", what),
            FetchEvent::Bytes { what, received, expected } => {
                self.printer.progress(format!("{:>12} {what}: {} of {}", "Fetching", megabytes(*received), megabytes(*expected)));
            }
            FetchEvent::WholeFile { file, size } => self
                .printer
                .warning(&format!("the index does not answer range requests: taking the whole of `{file}` ({})", megabytes(*size))),
            FetchEvent::Retry { url, attempt, attempts, after, reason } => {
                self.printer.warning(&format!("`{url}`: {reason} (try {attempt} of {attempts}, again in {} ms)", after.as_millis()))
            }
            FetchEvent::WaitingForLock { what, pid } => {
                let holder = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
                self.printer.status("Waiting", &format!("for another process that fetches {what}{holder}"));
            }
            FetchEvent::Finished { what, bytes, requests } => {
                self.printer.progress(String::new());
                self.printer.status("Fetched", &format!("{what}: {} in {requests} requests", megabytes(*bytes)));
            }
        }
    }

    fn graph(&self, event: &kiln_graph::Event) {
        use kiln_graph::Event as G;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            G::GraphStarted { steps, .. } => {
                state.started = Some(Instant::now());
                state.total = *steps;
            }
            G::StepUpToDate { label, verb, .. } => {
                state.done += 1;
                if self.explain {
                    self.printer.status("Fresh", &format!("{label} ({})", verb.to_lowercase()));
                }
            }
            G::StepStarted { step, verb, label, reason, command } => {
                state.running.insert(step.clone(), label.clone());
                if self.explain {
                    self.printer.status(verb, &format!("{label} ({})", because(reason)));
                } else if command.is_some() {
                    self.printer.status(verb, label);
                }
                if let (true, Some(command)) = (self.print_commands, command) {
                    self.printer.status("Running", &quoted(command));
                }
            }
            G::StepFinished { step, output, .. } => {
                state.running.remove(step);
                state.done += 1;
                state.ran += 1;
                if !output.is_empty() {
                    self.printer.stderr(output);
                }
            }
            G::StepFailed { step, verb, label, failure, command, output } => {
                state.running.remove(step);
                state.done += 1;
                if !output.is_empty() {
                    self.printer.stderr(output);
                }
                self.failed(verb, label, failure, command.as_deref());
            }
            G::StepSkipped { .. } => state.done += 1,
            G::TargetFinished { .. } => {}
            G::GraphFinished { .. } => {
                self.printer.progress(String::new());
                return;
            }
        }
        self.printer.progress(progress_line(&state));
    }

    fn failed(&self, verb: &str, label: &str, failure: &Failure, command: Option<&[String]>) {
        let doing = match verb {
            "Compiling" => "compile",
            "Linking" => "link",
            "Resolving" => "resolve the names of",
            _ => "make",
        };
        let (code, how) = match failure {
            Failure::Interrupted => return,
            Failure::Builtin { message } => {
                self.printer.error("unresolved-names", message, &[], None);
                return;
            }
            Failure::Exit { code } => ("step-failed", format!("exit code {code}")),
            Failure::Signal { signal } => ("step-killed", format!("killed by signal {signal}")),
            Failure::Spawn { message } => ("step-not-started", format!("cannot start the program: {message}")),
            Failure::UndeclaredInput { input } => {
                ("undeclared-input", format!("it read `{input}`, which another step makes and this one does not wait for"))
            }
            Failure::MissingOutput { output } => ("step-failed", format!("the program ended well but did not write `{output}`")),
            Failure::Io { message } => ("work-directory", message.clone()),
        };
        self.printer.error(code, &format!("failed to {doing} `{label}`: {how}"), &[], None);
        if let Some(command) = command
            && !self.print_commands
        {
            self.printer.stderr(format!("  command: {}\n", quoted(command)).as_bytes());
        }
    }
}

/// Bytes as MB of 10^6 bytes, as registries and specifications count them.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

fn waiting(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("for another build of this project (process {pid})"),
        None => "for another build of this project".to_owned(),
    }
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::NoRecord => "never ran with these arguments".to_owned(),
        Reason::InputChanged { input } => format!("`{input}` changed"),
        Reason::InputMissing { input } => format!("`{input}` is gone"),
        Reason::OutputMissing { output } => format!("its output `{output}` is gone"),
        Reason::OutputAltered { output } => format!("its output `{output}` was altered"),
    }
}

/// One line: a bar, counts, the time that is left by the mean of the steps that ran, and what runs now.
fn progress_line(state: &State) -> String {
    const BAR: usize = 20;
    if state.total == 0 {
        return String::new();
    }
    let done = state.done.min(state.total);
    let filled = BAR * done / state.total;
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(BAR - filled));
    let left = match (state.started, state.ran) {
        (Some(started), 1..) => {
            // Steps run side by side: what counts is wall time a step, not the sum of their durations.
            let each = started.elapsed() / u32::try_from(state.ran).unwrap_or(u32::MAX);
            let seconds = (each * u32::try_from(state.total - done).unwrap_or(u32::MAX)).as_secs();
            format!(", {seconds} s left")
        }
        _ => String::new(),
    };
    let running: Vec<&str> = state.running.values().take(3).map(String::as_str).collect();
    format!("{:>12} [{bar}] {done}/{}{left}: {}", "Building", state.total, running.join(", "))
}

/// A command as a POSIX shell would take it.
pub(crate) fn quoted(command: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%^".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    command.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["g++", "-DA=\"x y\"", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r#"g++ '-DA="x y"' 'it'\''s' ''"#);
    }
}
