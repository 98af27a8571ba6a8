//! The event stream as JSON, one object a line on stdout.
//!
//! Field names are stable. Every object has `reason`, which says what happened.

use std::path::Path;

use kiln::Event;
use kiln::build_error::Report;
use kiln::compiler_messages::CompilerMessage;
use kiln_toolchain::FetchEvent;
use serde_json::{Value, json};

use crate::printer::Printer;

/// Writes the event stream as JSON lines.
#[derive(Debug)]
pub(crate) struct JsonReporter<'a> {
    printer: &'a Printer,
}

impl<'a> JsonReporter<'a> {
    pub(crate) fn new(printer: &'a Printer) -> Self {
        Self { printer }
    }

    pub(crate) fn event(&self, event: &Event) {
        self.printer.object(&value(event));
    }
}

/// A path for programs: JSON has texts alone, and what is none is shown as people see it.
pub(crate) fn path(path: &Path) -> String {
    path.display().to_string()
}

fn value(event: &Event) -> Value {
    match event {
        Event::Warning { message } => json!({"reason": "warning", "message": message}),
        Event::Fetch(event) => fetch_value(event),
        Event::Preparing { what } => json!({"reason": "preparing", "what": what}),
        Event::Waiting { preparing, pid } => json!({"reason": "waiting", "preparing": preparing, "pid": pid}),
        Event::Graph(event) => graph_value(event),
        Event::Compiler(CompilerMessage { unit, text, severity, file, line, column, capabilities }) => json!({
            "reason": "compiler-message", "unit": unit, "severity": severity, "file": file, "line": line, "column": column,
            "capabilities": capabilities, "text": text,
        }),
        Event::VariantFinished { variant, directory, changed, stage } => {
            json!({"reason": "variant-finished", "variant": variant, "directory": path(directory), "changed": changed, "stage": stage})
        }
        Event::Remark { variant, remark } => json!({"reason": "check", "variant": variant, "check": remark}),
        Event::DiskFull { directory, left } => {
            json!({"reason": "disk-full", "code": "disk-full", "directory": path(directory), "left_bytes": left})
        }
        Event::VariantRemoved { variant, directory } => {
            json!({"reason": "variant-removed", "variant": variant, "directory": path(directory)})
        }
        Event::VariantFailed { variant, reason: None } => json!({"reason": "variant-failed", "variant": variant}),
        Event::VariantFailed { variant, reason: Some(Report { code, message, causes, hint }) } => json!({
            "reason": "variant-failed", "variant": variant, "code": code, "message": message, "causes": causes, "hint": hint,
        }),
    }
}

fn fetch_value(event: &FetchEvent) -> Value {
    match event {
        FetchEvent::Started { what } => json!({"reason": "fetch-started", "what": what}),
        FetchEvent::Bytes { what, received, expected } => {
            json!({"reason": "fetch-bytes", "what": what, "received": received, "expected": expected})
        }
        FetchEvent::WholeFile { file, size } => json!({"reason": "fetch-whole-file", "file": file, "size": size}),
        FetchEvent::Retry { url, attempt, attempts, after, reason } => json!({
            "reason": "fetch-retry", "url": url, "attempt": attempt, "attempts": attempts,
            "after_ms": u64::try_from(after.as_millis()).unwrap_or(u64::MAX), "message": reason,
        }),
        FetchEvent::WaitingForLock { what, pid } => json!({"reason": "fetch-waiting", "what": what, "pid": pid}),
        FetchEvent::Finished { what, bytes, requests } => {
            json!({"reason": "fetch-finished", "what": what, "bytes": bytes, "requests": requests})
        }
    }
}

fn graph_value(event: &kiln_graph::Event) -> Value {
    use kiln_graph::Event as G;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match event {
        G::GraphStarted { steps, targets } => json!({"reason": "graph-started", "steps": steps, "targets": targets}),
        G::StepUpToDate { step, verb, label } => {
            json!({"reason": "step-up-to-date", "step": step.as_str(), "verb": verb, "label": label})
        }
        G::StepRestored { step, verb, label, reason, origin, output } => json!({
            "reason": "step-restored", "step": step.as_str(), "verb": verb, "label": label, "cause": reason, "origin": origin,
            "output": text(output),
        }),
        G::Stopping { running, kills } => json!({"reason": "stopping", "running": running, "kills": kills}),
        G::StepRetried { step, verb, label } => {
            json!({"reason": "step-retried", "step": step.as_str(), "verb": verb, "label": label})
        }
        G::CacheUnusable { directory, message } => {
            json!({"reason": "cache-unusable", "directory": path(directory), "message": message})
        }
        G::CacheDamaged { files } => {
            json!({"reason": "cache-damaged", "files": files.iter().map(|file| path(file)).collect::<Vec<_>>()})
        }
        G::StepStarted { step, verb, label, reason, command } => {
            json!({"reason": "step-started", "step": step.as_str(), "verb": verb, "label": label, "cause": reason, "command": command})
        }
        G::StepFinished { step, verb, label, duration, output } => json!({
            "reason": "step-finished", "step": step.as_str(), "verb": verb, "label": label,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), "output": text(output),
        }),
        G::StepFailed { step, verb, label, failure, command, output } => json!({
            "reason": "step-failed", "step": step.as_str(), "verb": verb, "label": label, "failure": failure, "command": command,
            "output": text(output),
        }),
        G::StepSkipped { step, verb, label } => json!({"reason": "step-skipped", "step": step.as_str(), "verb": verb, "label": label}),
        G::TargetFinished { target, ok } => json!({"reason": "target-finished", "target": target, "ok": ok}),
        G::GraphFinished { ran, up_to_date, cached, shared, failed, skipped } => json!({
            "reason": "graph-finished", "ran": ran, "up_to_date": up_to_date, "cached": cached, "shared": shared, "failed": failed,
            "skipped": skipped,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_need_not_be_text() {
        let directory = Path::new(std::ffi::OsStr::from_bytes(b"/k\xff")).to_owned();
        let removed = Event::VariantRemoved { variant: "v".to_owned(), directory: directory.clone() };
        assert_eq!(value(&removed)["directory"], "/k\u{fffd}");
        let damaged = Event::Graph(kiln_graph::Event::CacheDamaged { files: vec![directory.clone()] });
        assert_eq!(value(&damaged)["files"][0], "/k\u{fffd}");
        assert_eq!(value(&Event::DiskFull { directory, left: 1 })["directory"], "/k\u{fffd}");
    }
}
