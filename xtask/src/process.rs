//! Running programs: quietly for their output, or aloud with the output kept.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// A program that was run aloud.
pub(crate) struct Finished {
    /// Whether it ended with exit code 0.
    pub(crate) success: bool,
    /// How it ended, in words.
    pub(crate) status: String,
    /// What it wrote to stdout and stderr, in order.
    pub(crate) output: String,
}

impl Finished {
    /// Turns a failure into an error that says how it ended and what of its output tells why.
    pub(crate) fn check(self) -> anyhow::Result<Self> {
        if self.success { Ok(self) } else { bail!("{}\n{}", self.status, self.evidence()) }
    }

    /// The lines of the output that most likely say why it failed, so that the end of a long log names the cause.
    pub(crate) fn evidence(&self) -> String {
        /// How many lines that tell nothing are taken after one that does.
        const AFTER: usize = 4;
        /// More than this is looked up in the log itself.
        const MOST: usize = 60;
        let telling = |line: &str| {
            line.ends_with("... FAILED")
                || line.contains("panicked at")
                || line.starts_with("error")
                || line.starts_with("FAILED ")
                || line.starts_with("E  ")
        };
        let lines: Vec<&str> = self.output.lines().collect();
        let mut chosen = Vec::new();
        let mut wanted = 0;
        for line in &lines {
            wanted = if telling(line) { AFTER + 1 } else { wanted };
            if wanted > 0 {
                chosen.push(*line);
                wanted -= 1;
            }
        }
        if chosen.is_empty() {
            chosen = lines;
            chosen.drain(..chosen.len().saturating_sub(20));
        }
        chosen.truncate(MOST);
        chosen.join("\n")
    }
}

/// `command` as one line for people; not meant to be pasted when arguments hold blanks.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs `command` and gives its standard output; its error output is shown only when it fails.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = line(command);
    let result = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{shown}`"))?;
    if !result.status.success() {
        bail!("`{shown}` failed ({}):\n{}", result.status, String::from_utf8_lossy(&result.stderr).trim_end());
    }
    String::from_utf8(result.stdout).with_context(|| format!("`{shown}` wrote no UTF-8"))
}

/// Shows `command`, runs it with its output going through to stdout, and keeps a copy of that output.
pub(crate) fn aloud(command: &mut Command) -> anyhow::Result<Finished> {
    let shown = line(command);
    println!("$ {shown}");
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = {
        let errors = writer.try_clone()?;
        command.stdin(Stdio::null()).stdout(writer).stderr(errors).spawn().with_context(|| format!("cannot run `{shown}`"))?
    };
    // The command still holds the writing ends; they must go, or the pipe never ends.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let count = reader.read(&mut buffer)?;
        let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else { break };
        std::io::stdout().write_all(piece)?;
        std::io::stdout().flush()?;
        kept.extend_from_slice(piece);
    }
    let status = child.wait()?;
    Ok(Finished {
        success: status.success(),
        status: format!("`{shown}` failed ({status})"),
        output: String::from_utf8_lossy(&kept).into_owned(),
    })
}

/// Seconds with one decimal, or minutes and seconds.
pub(crate) fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1} s") } else { format!("{} min {:02} s", elapsed.as_secs() / 60, elapsed.as_secs() % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_what_tells_why_else_the_end() {
        let finished = |output: String| Finished { success: false, status: String::new(), output };
        let long: String = (0..50).map(|number| format!("line {number}\n")).collect();
        let tests = finished(format!("{long}test a ... FAILED\n{long}thread 'a' panicked at x.rs:1:2:\nleft is not right\n{long}"));
        let expected = "test a ... FAILED\nline 0\nline 1\nline 2\nline 3\nthread 'a' panicked at x.rs:1:2:\nleft is not right\nline 0\nline 1\nline 2";
        assert_eq!(tests.evidence(), expected);
        let other = finished(long);
        assert_eq!(other.evidence().lines().next(), Some("line 30"));
    }
}
