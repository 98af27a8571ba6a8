//! "Did you mean": the nearest of a list of names, and lists of names in messages.

/// The candidate nearest to `text`, if it is near enough to be a slip of the keyboard. The first wins among equals.
pub(crate) fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// The names in backticks, separated by commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// `text` in backticks, with control characters escaped, so that no message can hold a line break or a terminal command.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", escaped(text))
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
    fn lists() {
        assert_eq!(list(["a", "b\n"]), r"`a`, `b\n`");
        assert_eq!(quoted("\u{1b}[31m ü"), r"`\u{1b}[31m ü`");
    }
}
