//! "Did you mean": the nearest of a list of names, and names and values in messages.

use std::borrow::Cow;

/// Longest text, in characters, of which all is repeated in a message.
const LONGEST: usize = 200;
/// Longest text, in bytes, that can be a slip of the keyboard for a name.
const LONGEST_NAME: usize = 64;

/// The candidate nearest to `text`, if it is near enough to be a slip of the keyboard. The first wins among equals.
pub(crate) fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > LONGEST_NAME {
        return None;
    }
    let simplified = |text: &str| text.to_lowercase().replace('_', "-");
    let text = simplified(text);
    let length = text.chars().count();
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&text, &simplified(candidate)), candidate))
        // A third of the letters may differ, at least one, but never all of them.
        .filter(|&(distance, candidate)| distance <= (length.max(candidate.chars().count()) / 3).max(1) && distance < length)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// `text` as a TOML file writes it.
pub(crate) fn toml_string(text: &str) -> String {
    let awkward = |c: char| matches!(c, '"' | '\\') || c.is_control();
    if !text.contains(awkward) {
        return format!("\"{text}\"");
    }
    if !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// The names in backticks, separated by commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// `text` in backticks, with control characters escaped, so that no message can hold a line break or a terminal command; of a long
/// text its ends.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", escaped(&excerpt(text)))
}

/// `text`, or its ends where it is longer than a message should be that repeats it.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    ends(text, LONGEST)
}

/// `text`, or the ends of one of more than `longest` characters.
pub(crate) fn ends(text: &str, longest: usize) -> Cow<'_, str> {
    const LEFT_OUT: &str = " ... ";
    if text.len() <= longest || text.chars().nth(longest).is_none() {
        return Cow::Borrowed(text);
    }
    let tail = longest / 3;
    let head = longest.saturating_sub(tail + LEFT_OUT.len());
    let head = text.char_indices().nth(head).and_then(|(at, _)| text.get(..at)).unwrap_or_default();
    let tail = text.char_indices().rev().nth(tail.saturating_sub(1)).and_then(|(at, _)| text.get(at..)).unwrap_or_default();
    Cow::Owned(format!("{head}{LEFT_OUT}{tail}"))
}

/// `text` with control characters escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let keys = ["src", "include", "pyext", "minver", "maxver", "cxx-flags", "stable-abi"];
        for (text, found) in [
            ("srcs", Some("src")),
            ("scr", Some("src")),
            ("crs", None),
            ("cxx_flags", Some("cxx-flags")),
            ("CXX-Flags", Some("cxx-flags")),
            ("min-ver", Some("minver")),
            ("sr", Some("src")),
            ("x", None),
            ("sources", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, keys), found, "{text}");
        }
        assert_eq!(nearest("cudaa", ["cuda", "cudas"]), Some("cuda"));
    }

    #[test]
    fn strings_are_read_back_as_they_were() {
        for text in ["", "plain", "a\"b", r"a\b", "it's", "it's \"so\"", "\u{1}\n", "日\u{7f}"] {
            let document = format!("a = {}", toml_string(text));
            let table: toml::Table = document.parse().unwrap();
            assert_eq!(table["a"].as_str(), Some(text), "{document}");
        }
    }

    #[test]
    fn of_long_texts_the_ends_are_shown() {
        for c in ["x", "日"] {
            let (whole, longer) = (c.repeat(200), format!("a{}z", c.repeat(200)));
            assert_eq!(excerpt(&whole), whole);
            let shown = excerpt(&longer);
            assert_eq!(shown.chars().count(), 200);
            assert!(shown.starts_with('a') && shown.ends_with('z') && shown.contains(" ... "), "{shown}");
        }
        assert_eq!(quoted(&"\u{1}".repeat(1_000_000)).matches("u{1}").count(), 195);
        assert_eq!(nearest(&"src".repeat(100_000), ["src"]), None);
    }

    #[test]
    fn lists() {
        assert_eq!(list(["a", "b\n"]), r"`a`, `b\n`");
        assert_eq!(quoted("\u{1b}[31m ü"), r"`\u{1b}[31m ü`");
    }
}
