//! Does what hints say, to see that it helps.

use kiln_format::build::{Parsed, parse};
use kiln_format::{Diagnostic, Span};

/// Follows each hint about `parsed` that names what to write, by itself, and looks whether what it was about is gone: at that place
/// nothing as bad may be left, and no key may stand twice that did not. Gives how many hints were followed.
pub(crate) fn follow_hints(parsed: &Parsed) -> usize {
    let mut followed = 0;
    for diagnostic in &parsed.diagnostics {
        for text in edits(parsed, diagnostic) {
            let again = parse("build.toml", &text);
            // What was said of the place beside this is not the hint's to mend.
            let beside = |left: &Diagnostic| at(parsed, diagnostic).any(|other| other.code == left.code && other != diagnostic);
            let left = match diagnostic.code {
                "missing-key" => at(&again, diagnostic).find(|left| left.message == diagnostic.message),
                // A table that is known by its name now may lack keys, which nobody could know.
                code => at(&again, diagnostic).find(|left| left.code == code || !(beside(left) || left.code == "missing-key")),
            };
            let twice = |parsed: &Parsed| parsed.errors().filter(|error| error.code == "duplicate-key").count();
            assert!(left.is_none() && twice(&again) <= twice(parsed), "the hint of {diagnostic:?} does not help: {left:?} in\n{text}");
            followed += 1;
        }
    }
    followed
}

/// What is said of the place of `diagnostic`, as bad as that or worse.
fn at<'p>(parsed: &'p Parsed, diagnostic: &'p Diagnostic) -> impl Iterator<Item = &'p Diagnostic> {
    let start = |diagnostic: &Diagnostic| diagnostic.span.unwrap_or_default().start;
    parsed.diagnostics.iter().filter(move |other| start(other) == start(diagnostic) && other.level <= diagnostic.level)
}

/// The file as the hint of `diagnostic` wants it; several where it leaves a choice, none where it names nothing to write.
fn edits(parsed: &Parsed, diagnostic: &Diagnostic) -> Vec<String> {
    let (Some(hint), Some(span)) = (diagnostic.hint.as_deref(), diagnostic.span) else { return Vec::new() };
    let written = parsed.source.slice(span);
    let source = parsed.source.text();
    let line_start = source[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let in_header = source[line_start..].trim_start_matches('\u{feff}').trim_start().starts_with('[');
    if let Some(literals) = hint.strip_prefix("write ") {
        // A table under a header is no value that something could be written in the place of.
        if in_header {
            return Vec::new();
        }
        let literals = literals.trim_matches('`').split("` or `");
        let literals =
            literals.map(|literal| literal.split_once(" = ").filter(|(key, _)| is_bare(key)).map_or(literal, |(_, value)| value));
        return literals.map(|literal| replaced(source, span, literal)).collect();
    }
    let name = |end: &str| hint.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix(end));
    if let Some(name) = name("`?") {
        let quoted = written.starts_with(['"', '\'']);
        return vec![replaced(source, span, &if quoted { format!("\"{name}\"") } else { name.to_owned() })];
    }
    if diagnostic.code == "unknown-key" {
        return hint.strip_prefix("use `").map(|key| replaced(source, span, key.trim_end_matches('`'))).into_iter().collect();
    }
    let Some(line) = hint.strip_prefix("add `").and_then(|rest| rest.strip_suffix('`')).filter(|_| diagnostic.code != "edition") else {
        return Vec::new();
    };
    if let Some(inside) = written.strip_prefix('{') {
        let comma = if written.trim_matches(['{', '}', ' ']).is_empty() { "" } else { "," };
        return vec![replaced(source, span, &format!("{{ {line}{comma}{inside}"))];
    }
    if !in_header {
        return Vec::new();
    }
    let end = source[span.end..].find('\n').map_or(source.len(), |at| span.end + at);
    vec![replaced(source, Span::new(end, end), &format!("\n{line}"))]
}

fn is_bare(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn replaced(source: &str, span: Span, by: &str) -> String {
    format!("{}{by}{}", &source[..span.start], &source[span.end..])
}
