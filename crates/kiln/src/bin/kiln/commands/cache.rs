//! `kiln cache`.

use std::io::Write as _;

use kiln_graph::{ActionCache, size_of_text};

use crate::args::{CacheCommand, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::human::{counted, megabytes, size};
use crate::json::path;
use crate::printer::Printer;
use crate::settings::{SIZE_FORM, Settings};

pub(crate) fn run(command: &CacheCommand, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    let cache = settings.actions(&settings.cache_dir(None)?)?;
    let failed = |what: &str| {
        let message = format!("the action cache `{}` cannot be {what}", cache.dir().display());
        move |cause: std::io::Error| Failure::new("cache", message).caused_by(cause.to_string())
    };
    match command {
        CacheCommand::Stats { format } => stats(&cache, *format, printer).map_err(failed("read")),
        CacheCommand::Prune { max_size } => {
            let limit = match max_size {
                None => cache.limit(),
                Some(text) => size_of_text(text).ok_or_else(|| Failure::usage(format!("`--max-size {text}`: {SIZE_FORM}")))?,
            };
            let pruned = cache.prune(limit).map_err(failed("made smaller"))?;
            let left = if pruned.left == 0 { "nothing is".to_owned() } else { format!("{} are", size(pruned.left)) };
            let text = format!("{}, {}; {left} left", counted(pruned.removed.files, "file"), size(pruned.removed.bytes));
            printer.status("Removed", &text);
            Ok(Exit::Success)
        }
        CacheCommand::Clean => {
            let pruned = cache.clean().map_err(failed("removed"))?;
            printer.status("Removed", &format!("{}, {}", counted(pruned.removed.files, "file"), size(pruned.removed.bytes)));
            Ok(Exit::Success)
        }
        CacheCommand::Verify => {
            let verified = cache.verify().map_err(failed("verified"))?;
            for file in &verified.damaged {
                printer.warning(&format!("`{}` was damaged and was removed", file.display()));
            }
            if !verified.incomplete.is_empty() {
                // Files that were taken away are a miss; nothing was wrong with what was there.
                printer.status("Removed", &format!("{} without all files", counted(verified.incomplete.len() as u64, "result")));
            }
            printer.status("Verified", &counted(verified.sound, "file"));
            match verified.damaged.len() as u64 {
                0 => Ok(Exit::Success),
                bad => Err(Failure::new("cache-damaged", {
                    let were = if bad == 1 { "was" } else { "were" };
                    format!("{} of the action cache {were} not what was written", counted(bad, "file"))
                })
                .hint("what they stood for is made again when it is needed; look for a failing disk if this comes back")),
            }
        }
    }
}

fn stats(cache: &ActionCache, format: ReportFormat, printer: &Printer) -> std::io::Result<Exit> {
    let stats = cache.stats()?;
    printer.stdout(|out| match format {
        ReportFormat::Json => writeln!(
            out,
            "{}",
            serde_json::json!({
                "directory": path(cache.dir()), "limit_bytes": cache.limit(), "bytes": stats.bytes(), "steps": stats.manifests.files,
                "results": stats.results.files, "files": stats.blobs.files,
            })
        ),
        ReportFormat::Human => {
            writeln!(out, "directory: {}", cache.dir().display())?;
            writeln!(out, "size:      {} of {}", megabytes(stats.bytes()), megabytes(cache.limit()))?;
            writeln!(out, "steps:     {}", stats.manifests.files)?;
            writeln!(out, "results:   {}", stats.results.files)?;
            writeln!(out, "files:     {}", stats.blobs.files)
        }
    });
    Ok(Exit::Success)
}
