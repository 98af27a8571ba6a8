//! The event stream as text on stderr.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kiln::Event;
use kiln::build_error::Report;
use kiln::compiler_text::split;
use kiln::plan::BuildPlan;
use kiln_graph::{Failure, Origin, Reason, StepId, quoted};
use kiln_toolchain::FetchEvent;

use crate::printer::Printer;
use crate::remarks::remark_text;

/// How much is said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detail {
    /// Each command before it runs.
    pub(crate) commands: bool,
    /// Why each step ran, or why it did not.
    pub(crate) explain: bool,
    /// What most users need not know.
    pub(crate) verbose: bool,
}

/// Writes the event stream as text.
#[derive(Debug)]
pub(crate) struct HumanReporter<'a> {
    printer: &'a Printer,
    detail: Detail,
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    started: Option<Instant>,
    total: usize,
    done: usize,
    failed: usize,
    /// Steps that really ran: the base of the time that is left.
    ran: usize,
    running: BTreeMap<StepId, String>,
    /// Whether it was said that the action cache cannot be used.
    told_of_cache: bool,
    /// Place of each step in the graph.
    order: BTreeMap<StepId, usize>,
    /// What steps had to say that ended before one that stands before them in the graph.
    held: BTreeMap<usize, (StepId, Said)>,
    /// The steps that compile a unit together, with the unit.
    units: BTreeMap<StepId, String>,
    /// What was shown of each unit: its parts have much to say in common.
    shown: BTreeSet<(String, String)>,
    /// Place of the first step that has not ended.
    next: usize,
}

/// What is to be said of a step that ended.
#[derive(Debug, Default)]
struct Said {
    /// What its program wrote.
    output: Vec<u8>,
    /// What Kiln says.
    own: Vec<u8>,
}

impl State {
    /// What of a step's output was not shown for another part of its unit.
    fn fresh(&mut self, step: &StepId, output: Vec<u8>) -> Vec<u8> {
        let (Some(unit), Ok(text)) = (self.units.get(step), std::str::from_utf8(&output)) else { return output };
        let new: String = split(text)
            .iter()
            .filter(|message| self.shown.insert((unit.clone(), message.text.to_owned())))
            .map(|message| message.text)
            .collect();
        new.into_bytes()
    }
}

impl<'a> HumanReporter<'a> {
    /// A reporter. Commands that are shown run in `directory`; none when that is where the user is.
    pub(crate) fn new(printer: &'a Printer, detail: Detail, directory: Option<PathBuf>) -> Self {
        Self { printer, detail, directory, state: Mutex::new(State::default()) }
    }

    /// Tells the order of the graph's steps. What they have to say is shown in this order, however many run at once, and what several
    /// parts of one unit say alike is shown once.
    pub(crate) fn set_plan(&self, plan: &BuildPlan) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.order = plan.graph.steps().enumerate().map(|(place, (step, _))| (step.clone(), place)).collect();
        state.units = plan.parts.iter().map(|(step, part)| (step.clone(), part.unit.clone())).collect();
    }

    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Warning { message } => self.printer.warning(message),
            Event::Fetch(fetch) => self.fetch(fetch),
            Event::Preparing { what } => self.printer.status("Preparing", what),
            Event::Waiting { preparing, pid } => self.printer.status("Waiting", &waiting(preparing.as_deref(), *pid)),
            Event::Graph(event) => self.graph(event),
            // Shown with its step.
            Event::Compiler(_) => {}
            Event::VariantFinished { variant, directory, changed, .. } => {
                let unchanged = if *changed { "" } else { " (unchanged)" };
                self.printer.status("Packaged", &format!("{}{unchanged}", directory.with_file_name(variant).display()));
            }
            Event::Remark { remark, .. } => self.printer.stderr(remark_text(self.printer, remark).as_bytes()),
            Event::VariantFailed { variant, reason: Some(Report { code, message, causes, hint }) } => {
                let message = format!("failed to make `{variant}`: {message}");
                self.printer.error(code, &message, causes, hint.as_deref());
            }
            Event::VariantFailed { reason: None, .. } => {}
            Event::DiskFull { directory, left } => {
                let message = format!("the file system of `{}` has too little space: {} are left", directory.display(), megabytes(*left));
                self.printer.failure(&crate::exit::Failure::new("disk-full", message).hint("free some space"));
            }
            Event::VariantRemoved { directory, .. } => self.printer.status("Removed", &directory.display().to_string()),
        }
    }

    fn fetch(&self, event: &FetchEvent) {
        match event {
            FetchEvent::Started { what } => self.printer.status("Fetching", what),
            FetchEvent::Bytes { what, received, expected } => {
                self.printer.progress(&format!("{:>12} {what}: {} of {}", "Fetching", megabytes(*received), megabytes(*expected)));
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
                self.printer.progress("");
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
            G::StepUpToDate { step, label, verb } => {
                if self.detail.explain {
                    self.printer.status("Fresh", &format!("{label} ({})", verb.to_lowercase()));
                }
                self.ended(&mut state, step, Said::default());
            }
            G::StepRestored { step, verb, label, reason, origin, output } => {
                if self.detail.explain {
                    let verb = verb.to_lowercase();
                    let (origin, from) = match origin {
                        Origin::Cache => ("Cached", String::new()),
                        Origin::Step { label, target, .. } => ("Shared", format!(", equal to `{label}` of {target}")),
                    };
                    self.printer.status(origin, &format!("{label} ({verb}: {}{from})", because(reason)));
                }
                self.ended(&mut state, step, Said { output: output.clone(), own: Vec::new() });
            }
            G::CacheDamaged { files } => {
                if self.detail.verbose {
                    for file in files {
                        self.printer.warning(&format!("`{}` of the action cache was damaged and was removed", file.display()));
                    }
                }
                return;
            }
            G::CacheUnusable { directory, message } => {
                if !std::mem::replace(&mut state.told_of_cache, true) {
                    self.printer.warning(&format!("the action cache `{}` {message}", directory.display()));
                }
                return;
            }
            G::StepStarted { step, verb, label, reason, command } => {
                state.running.insert(step.clone(), label.clone());
                if self.detail.explain {
                    self.printer.status(verb, &format!("{label} ({})", because(reason)));
                } else if command.is_some() {
                    self.printer.status(verb, label);
                }
                if let (true, Some(command)) = (self.detail.commands, command) {
                    self.printer.status("Running", &self.command(command));
                }
            }
            G::Stopping { running, kills } => {
                let (what, them) =
                    if *running == 1 { ("1 step that runs".to_owned(), "it") } else { (format!("{running} steps that run"), "them") };
                match kills {
                    true => self.printer.status("Stopping", &what),
                    false => self.printer.warning(&format!("interrupted: waiting for {what}; interrupt once more to stop {them}")),
                }
                return;
            }
            G::StepRetried { label, .. } => {
                self.printer.warning(&format!("`{label}` was killed, most likely for want of memory: it runs once more, alone"));
                return;
            }
            G::StepFinished { step, output, .. } => {
                state.ran += 1;
                self.ended(&mut state, step, Said { output: output.clone(), own: Vec::new() });
            }
            G::StepFailed { step, verb, label, failure, command, output } => {
                state.failed += 1;
                let own = self.failed(verb, label, failure, command.as_deref(), output.is_empty()).into_bytes();
                self.ended(&mut state, step, Said { output: output.clone(), own });
            }
            G::StepSkipped { step, .. } => self.ended(&mut state, step, Said::default()),
            G::TargetFinished { .. } => {}
            G::GraphFinished { .. } => {
                self.printer.progress("");
                return;
            }
        }
        self.printer.progress(&progress_line(&state));
    }

    /// Takes what a step that ended has to say, and shows what no earlier step can come before any more.
    fn ended(&self, state: &mut State, step: &StepId, said: Said) {
        state.running.remove(step);
        state.done += 1;
        let Some(&place) = state.order.get(step) else {
            self.show(said);
            return;
        };
        state.held.insert(place, (step.clone(), said));
        while let Some((step, said)) = state.held.remove(&state.next) {
            state.next += 1;
            let output = state.fresh(&step, said.output);
            self.show(Said { output, ..said });
        }
    }

    fn show(&self, said: Said) {
        let mut text = said.output;
        if !text.is_empty() && !said.own.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend(said.own);
        if !text.is_empty() {
            self.printer.stderr(&text);
        }
    }

    fn failed(&self, verb: &str, label: &str, failure: &Failure, command: Option<&[String]>, silent: bool) -> String {
        let doing = match verb {
            "Compiling" => "compile",
            "Linking" | "Resolving" => "link",
            "Generating" => "generate",
            _ => "make",
        };
        let mut advice = None;
        let how = match failure {
            Failure::Interrupted => return String::new(),
            Failure::Builtin { message, hint, .. } => {
                advice = hint.as_deref();
                message.clone()
            }
            Failure::Panic { .. } => {
                advice = Some("this is a fault of Kiln, not of the kernel: please report it");
                failure.to_string()
            }
            Failure::Exit { code } if silent => format!("exit code {code}, and the program wrote nothing"),
            Failure::Signal { signal } => {
                if *signal == SIGKILL {
                    advice = Some("the system kills programs when memory runs out: this one got all of it, and that was not enough");
                }
                format!("killed by {}", signal_name(*signal))
            }
            Failure::Exit { .. }
            | Failure::UndeclaredInput { .. }
            | Failure::MissingOutput { .. }
            | Failure::Spawn { .. }
            | Failure::Io { .. } => failure.to_string(),
        };
        let command = match command {
            Some(command) if !self.detail.commands => format!("  command: {}\n", self.command(command)),
            _ => String::new(),
        };
        let mut text = self.printer.error_text(code(failure), &format!("failed to {doing} `{label}`: {how}"), &[], None);
        text.push_str(&command);
        text.push_str(&self.printer.hint_text(advice));
        text
    }

    /// A command as it can be given to a shell where the user is.
    fn command(&self, command: &[String]) -> String {
        match &self.directory {
            Some(directory) => format!("cd {} && {}", quoted(&[directory.display().to_string()]), quoted(command)),
            None => quoted(command),
        }
    }
}

/// The stable name of a step's failure.
fn code(failure: &Failure) -> &'static str {
    match failure {
        Failure::Exit { .. } | Failure::MissingOutput { .. } => "step-failed",
        Failure::Signal { .. } => "step-killed",
        Failure::Spawn { .. } => "step-not-started",
        Failure::Builtin { code, .. } => code,
        Failure::Panic { .. } => "internal",
        Failure::UndeclaredInput { .. } => "undeclared-input",
        Failure::Io { .. } => "work-directory",
        Failure::Interrupted => "interrupted",
    }
}

const SIGKILL: i32 = 9;

/// A signal by number and, for those that end compilers, by name. The numbers are those of Linux and macOS.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        SIGKILL => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// A number of things, with their name as it then is.
pub(crate) fn counted(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Bytes, as what there is little of is counted, or as [`megabytes`].
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 100_000 { counted(bytes, "byte") } else { megabytes(bytes) }
}

/// Bytes as MB of 10^6 bytes, as registries and specifications count them.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

fn waiting(preparing: Option<&str>, pid: Option<u32>) -> String {
    let what = preparing.map_or_else(|| "of this project".to_owned(), |what| format!("that prepares {what}"));
    let pid = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    format!("for another build {what}{pid}")
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::NoRecord => "never ran with these arguments".to_owned(),
        Reason::InputChanged { input } => format!("`{input}` changed"),
        Reason::ToolChanged => "the program is another one".to_owned(),
        Reason::ArgumentsChanged { added, removed } => {
            let list = |what: &str, words: &[String]| match words {
                [] => None,
                words => Some(format!("{what} {}", quoted(words))),
            };
            let changes: Vec<String> = list("new:", added).into_iter().chain(list("gone:", removed)).collect();
            changes.join(", ")
        }
        Reason::NeedsChanged => "steps that it needs are others".to_owned(),
        Reason::Several { reasons, more } => {
            let more = (*more > 0).then(|| format!("{more} more inputs differ"));
            reasons.iter().map(because).chain(more).collect::<Vec<_>>().join(", ")
        }
        Reason::InputUnknown { input } => format!("what was last read of `{input}` is not known"),
        Reason::InputAppeared { input } => format!("`{input}` is new"),
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
    let failed = if state.failed > 0 { format!(", {} failed", state.failed) } else { String::new() };
    let running: Vec<&str> = state.running.values().take(3).map(String::as_str).collect();
    format!("{:>12} [{bar}] {done}/{}{failed}{left}: {}", "Building", state.total, running.join(", "))
}
