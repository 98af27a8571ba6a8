//! The only place that writes to the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use kiln_format::visible;
use serde_json::json;

use crate::args::Color;
use crate::exit::Failure;

/// Text styles of messages; each is empty without colour, so colour never carries meaning alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Styles {
    pub(crate) verb: &'static str,
    pub(crate) error: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) reset: &'static str,
}

impl Styles {
    const COLOURED: Self = Self { verb: "\x1b[1;32m", error: "\x1b[1;31m", warning: "\x1b[1;33m", hint: "\x1b[1;36m", reset: "\x1b[0m" };
    const PLAIN: Self = Self { verb: "", error: "", warning: "", hint: "", reset: "" };
}

/// `text` as a terminal may show it, in one line: who names a file or a symbol must not begin a line that looks like one of ours.
pub(crate) fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\u{a}")
}

/// What the terminal can do and whether to use it.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) quiet: bool,
    pub(crate) styles: Styles,
    /// Whether programs read stdout: errors then go there too, as objects.
    pub(crate) json: bool,
    /// Whether a line that changes in place may be drawn.
    pub(crate) draws_progress: bool,
    /// The progress line now on the terminal, so that other text can be put above it.
    progress: Mutex<String>,
    /// Why results could not be written, the first time.
    lost: Mutex<Option<io::Error>>,
}

impl Printer {
    pub(crate) fn new(quiet: bool, json: bool, color: Color, no_color: bool, ci: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let coloured = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        Self {
            quiet,
            json,
            styles: if coloured { Styles::COLOURED } else { Styles::PLAIN },
            draws_progress: terminal && !ci && !quiet,
            progress: Mutex::new(String::new()),
            lost: Mutex::new(None),
        }
    }

    /// Writes results. A reader that went away ends the output in silence; any other failure is kept for [`Printer::lost`].
    pub(crate) fn stdout(&self, write: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) {
        let mut out = io::stdout().lock();
        if let Err(cause) = write(&mut out).and_then(|()| out.flush())
            && cause.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
        }
    }

    /// Writes results for people, as a terminal may show them.
    pub(crate) fn text(&self, text: &str) {
        self.stdout(|out| out.write_all(visible(text).as_bytes()));
    }

    /// The failure of a command whose results could not all be written: whoever reads them would take a part for the whole.
    pub(crate) fn lost(&self) -> Option<Failure> {
        let cause = self.lost.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Failure::new("io", "the results cannot be written").caused_by(cause.to_string()))
    }

    /// Writes bytes to stderr above the progress line.
    pub(crate) fn stderr(&self, bytes: &[u8]) {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let mut err = io::stderr().lock();
        let mut write = || -> io::Result<()> {
            if !progress.is_empty() {
                err.write_all(b"\r\x1b[K")?;
            }
            err.write_all(bytes)?;
            if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                err.write_all(b"\n")?;
            }
            err.write_all(progress.as_bytes())?;
            err.flush()
        };
        let _broken_pipe = write();
    }

    /// Writes one line to stderr: a verb in cargo's manner and what it is done to.
    pub(crate) fn status(&self, verb: &str, text: &str) {
        if !self.quiet {
            self.stderr(format!("{}{verb:>12}{} {}\n", self.styles.verb, self.styles.reset, visible(text)).as_bytes());
        }
    }

    /// Replaces the progress line; an empty text removes it.
    pub(crate) fn progress(&self, text: &str) {
        if !self.draws_progress {
            return;
        }
        let text = one_line(text);
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let mut err = io::stderr().lock();
        let _broken_pipe = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
        *progress = text;
    }

    /// Writes a warning.
    pub(crate) fn warning(&self, message: &str) {
        self.stderr(format!("{}warning{}: {}\n", self.styles.warning, self.styles.reset, visible(message)).as_bytes());
    }

    /// Writes the error that a command ends with.
    pub(crate) fn failure(&self, failure: &Failure) {
        let Failure { code, message, causes, hint, .. } = failure;
        self.stderr(self.error_text(code, message, causes, hint.as_deref()).as_bytes());
        if self.json {
            self.object(&json!({"reason": "error", "code": code, "message": message, "causes": causes, "hint": hint}));
        }
    }

    /// Writes one JSON object, which fills a line of stdout.
    pub(crate) fn object(&self, object: &serde_json::Value) {
        self.stdout(|out| writeln!(out, "{object}"));
    }

    /// Writes an error that does not end the command.
    pub(crate) fn error(&self, code: &str, message: &str, causes: &[String], hint: Option<&str>) {
        self.stderr(self.error_text(code, message, causes, hint).as_bytes());
    }

    /// An error with its code, its causes and its hints, as text with a line break at the end.
    pub(crate) fn error_text(&self, code: &str, message: &str, causes: &[String], hint: Option<&str>) -> String {
        let Styles { error, reset, .. } = self.styles;
        let mut text = format!("{error}error[{code}]{reset}: {}\n", visible(message));
        for cause in causes {
            text.push_str(&format!("  caused by: {}\n", visible(cause)));
        }
        text.push_str(&self.hint_text(hint));
        text
    }

    /// Hints as text, each with a line break at the end. An indented line goes on with the hint above it.
    pub(crate) fn hint_text(&self, hint: Option<&str>) -> String {
        let Styles { hint: style, reset, .. } = self.styles;
        let head = |line: &str| if line.starts_with(' ') { String::new() } else { format!("{style}hint{reset}: ") };
        hint.iter().flat_map(|hint| hint.lines()).map(|line| format!("{}{}\n", head(line), visible(line))).collect()
    }
}
