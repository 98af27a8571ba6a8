//! Whether a step failed because a file system is full.
//!
//! What a compiler writes goes to the full file system too, so it may end without a word; and what it had written is removed when it
//! ends, so that there is some space again by the time that anybody looks.

use std::path::Path;

use kiln_graph::{Event, Failure};

/// Space below which a failure without words is put down to a full file system: less than a large object file with its assembler text.
const LITTLE: u64 = 64 << 20;

/// What compilers and linkers say, in the one language that they are run in.
const WORDS: [&[u8]; 2] = [b"no space left on device", b"disk quota exceeded"];

/// Whether a step's failure may come from a full file system at `dir`, where steps work.
pub fn is_full(event: &Event, dir: &Path) -> bool {
    let Event::StepFailed { failure, output, .. } = event else { return false };
    let says = |text: &[u8]| WORDS.iter().any(|words| text.windows(words.len()).any(|window| window.eq_ignore_ascii_case(words)));
    match failure {
        Failure::Io { message } => says(message.as_bytes()),
        Failure::Builtin { message, .. } => says(message.as_bytes()),
        Failure::Exit { .. } | Failure::Signal { .. } | Failure::MissingOutput { .. } => {
            says(output) || (has_no_reason(output) && left(dir).is_some_and(|left| left < LITTLE))
        }
        _ => false,
    }
}

/// Whether nothing says why a program failed: what a compiler says of a linker that ended without a word is no reason.
fn has_no_reason(output: &[u8]) -> bool {
    let text = String::from_utf8_lossy(output);
    text.lines().all(|line| {
        let of_linker = line.contains("collect2: ") && (line.contains(" ld returned ") || line.contains(" ld terminated "));
        line.trim().is_empty() || of_linker || line.contains("linker command failed") || line == "compilation terminated."
    })
}

/// How many bytes users may still write to the file system of `dir`, or none when it cannot be asked. Without free inodes: 0.
pub fn left(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    if stat.f_files > 0 && stat.f_favail == 0 {
        return Some(0);
    }
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use kiln_graph::StepId;

    use super::*;

    #[test]
    fn words_count_and_silence_only_where_there_is_little_left() {
        let dir = std::env::temp_dir();
        assert!(left(&dir).is_some() && left(&dir.join("no such place")).is_none());
        let mut graph = kiln_graph::Graph::new();
        let step: StepId = graph.add(any_step()).unwrap();
        let full = |failure: Failure, output: &str| {
            let event = Event::StepFailed {
                step: step.clone(),
                verb: "Compiling",
                label: String::new(),
                failure,
                command: None,
                output: output.as_bytes().to_vec(),
            };
            is_full(&event, Path::new("/no/such/place"))
        };
        assert!(full(Failure::Exit { code: 1 }, "as: can't write 12 bytes to section .text of x.o: 'No space left on device'"));
        assert!(full(Failure::Io { message: "cannot write `x`: No space left on device (os error 28)".to_owned() }, ""));
        assert!(full(Failure::Signal { signal: 7 }, "ld: Disk quota exceeded"));
        assert!(!full(Failure::Exit { code: 1 }, "error: expected `;`"));
        assert!(!full(Failure::Exit { code: 1 }, ""));
    }

    #[test]
    fn what_stands_for_a_linker_without_words() {
        for text in [
            "",
            "\n",
            "collect2: error: ld returned 1 exit status\n",
            "collect2: fatal error: ld terminated with signal 7 [Bus error], core dumped\ncompilation terminated.\n",
            "clang++: error: linker command failed with exit code 1 (use -v to see invocation)\n",
        ] {
            assert!(has_no_reason(text.as_bytes()), "{text}");
        }
        let reason = "/usr/bin/ld: x.o: multiple definition of `x'\ncollect2: error: ld returned 1 exit status\n";
        assert!(!has_no_reason(reason.as_bytes()) && !has_no_reason(b"error: expected `;`"));
    }

    fn any_step() -> kiln_graph::Step {
        kiln_graph::Step {
            verb: "Compiling",
            label: String::new(),
            action: kiln_graph::Action::Builtin(kiln_graph::Builtin {
                name: "nothing",
                version: 1,
                key: String::new(),
                run: std::sync::Arc::new(|_| Ok(())),
            }),
            inputs: Vec::new(),
            outputs: vec!["x".to_owned()],
            weight: kiln_graph::Weight { cpu_ms: 1, memory_mib: 1 },
            resource: kiln_graph::ResourceClass::Light,
        }
    }
}
