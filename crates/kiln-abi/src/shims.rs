//! Torch's C functions for extensions of its stable ABI, and the torch release that each came with.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kiln_format::MajorMinor;

/// The functions as text; its head says where they come from.
const TABLE: &str = include_str!("../data/torch-shims.txt");
/// What the table was made from.
pub const SOURCE: &str = "the headers of torch 2.15.0";
/// Stands in the table for a function that is older than versioned functions.
const OLD: &str = "-";
/// How the headers mark a function that the library exports.
const EXPORTED: &str = "AOTI_TORCH_EXPORT";
/// The condition under which a versioned function is declared, and the name of a release in it.
const CONDITION: (&str, &str) = ("TORCH_FEATURE_VERSION >= ", "TORCH_VERSION_");

/// Since when a function is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Since {
    /// Since before torch 2.10, the first release with versioned functions.
    Older,
    /// Since this release.
    Release(MajorMinor),
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Since>> = LazyLock::new(|| {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, since)| Some((name, read_since(since)?)))
        .collect()
});

fn read_since(text: &str) -> Option<Since> {
    if text == OLD {
        return Some(Since::Older);
    }
    let (major, minor) = text.split_once('.')?;
    Some(Since::Release(MajorMinor::new(major.parse().ok()?, minor.parse().ok()?)))
}

/// Since when torch's stable ABI has the function `name`; none for a function that is not in it.
pub fn since(name: &str) -> Option<Since> {
    FUNCTIONS.get(name).copied()
}

/// Whether `name` looks like one of torch's C functions.
pub fn is_of_torch(name: &str) -> bool {
    name.starts_with("aoti_") || name.starts_with("torch_")
}

/// The functions that a header declares as exported, in order, with the newest release that a condition around them names.
///
/// # Errors
/// The condition that names a release in a way that is not known, or the declaration without a name.
pub fn declarations(header: &str) -> Result<Vec<(String, Since)>, String> {
    let mut found = Vec::new();
    let mut conditions: Vec<Option<MajorMinor>> = Vec::new();
    // What follows the mark of a declaration that has not come to its name yet.
    let mut open: Option<String> = None;
    for line in without_comments(header).lines() {
        let line = line.trim();
        if let Some(directive) = line.strip_prefix('#') {
            let directive = directive.trim_start();
            if directive.starts_with("if") {
                conditions.push(condition(directive)?);
            } else if directive.starts_with("el") {
                conditions.pop();
                conditions.push(condition(directive)?);
            } else if directive.starts_with("endif") {
                conditions.pop();
            }
            continue;
        }
        let mut rest = line;
        loop {
            match &mut open {
                Some(text) => match rest.split_once('(') {
                    Some((before, after)) => {
                        text.push_str(before);
                        let name = text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(|word| !word.is_empty());
                        let name = name.ok_or_else(|| format!("`{line}` declares nothing"))?.to_owned();
                        let since = conditions.iter().flatten().max().map_or(Since::Older, |release| Since::Release(*release));
                        found.push((name, since));
                        open = None;
                        rest = after;
                    }
                    None => {
                        text.push_str(rest);
                        text.push(' ');
                        break;
                    }
                },
                None => match rest.split_once(EXPORTED) {
                    Some((_, after)) => {
                        open = Some(String::new());
                        rest = after;
                    }
                    None => break,
                },
            }
        }
    }
    Ok(found)
}

/// The release that a condition asks for; none for a condition about something else.
fn condition(directive: &str) -> Result<Option<MajorMinor>, String> {
    let Some((before, after)) = directive.split_once(CONDITION.0) else {
        return if directive.contains("TORCH_FEATURE_VERSION") { Err(format!("`{directive}` is an unknown condition")) } else { Ok(None) };
    };
    let release = after.trim().strip_prefix(CONDITION.1).and_then(|numbers| {
        let mut numbers = numbers.split('_').map(|number| number.parse().ok());
        Some(MajorMinor::new(numbers.next()??, numbers.next()??))
    });
    match release {
        Some(release) if matches!(before.trim(), "if" | "elif") => Ok(Some(release)),
        _ => Err(format!("`{directive}` is an unknown condition")),
    }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        if let Some(comment) = from.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| comment.get(end..).unwrap_or_default());
        } else if let Some(comment) = from.strip_prefix("/*") {
            out.push(' ');
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            out.push('/');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

/// The table of these functions. A function that several headers declare has the oldest release of them.
pub fn render(functions: impl IntoIterator<Item = (String, Since)>) -> String {
    let mut sorted: BTreeMap<String, Since> = BTreeMap::new();
    for (name, since) in functions {
        sorted.entry(name).and_modify(|known| *known = since.min(*known)).or_insert(since);
    }
    let mut text = format!(
        "# C functions of torch's stable ABI and the release that added each; `{OLD}` for those older than 2.10. Written by\n# `cargo xtask tables` from {SOURCE}.\n"
    );
    for (name, since) in sorted {
        let since = match since {
            Since::Older => OLD.to_owned(),
            Since::Release(release) => release.to_string(),
        };
        text.push_str(&format!("{name} {since}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(minor: u64) -> Since {
        Since::Release(MajorMinor::new(2, minor))
    }

    #[test]
    fn the_table_knows_versions() {
        assert_eq!(since("aoti_torch_call_dispatcher"), Some(Since::Older));
        assert_eq!(since("torch_call_dispatcher"), Some(release(10)));
        assert_eq!(since("torch_library_impl"), Some(release(10)));
        assert_eq!(since("torch_no_such_function"), None);
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.clone().count(), FUNCTIONS.len());
        assert!(
            lines.clone().all(|line| line.split_once(' ').is_some_and(|(name, since)| is_of_torch(name) && read_since(since).is_some()))
        );
        assert_eq!(FUNCTIONS.values().filter(|since| **since != Since::Older).count(), 128);
        assert!(TABLE.contains(SOURCE));
    }

    #[test]
    fn declarations_and_their_conditions() {
        let header = r#"
            #ifdef __cplusplus
            extern "C" {
            #endif
            AOTI_TORCH_EXPORT int32_t aoti_torch_old(); // AOTI_TORCH_EXPORT int nothing();
            #if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
            AOTI_TORCH_EXPORT AOTITorchError
            torch_ten(void (*fn)(int), uint64_t x);
            #ifdef USE_CUDA
            /* AOTI_TORCH_EXPORT int no(); */ AOTI_TORCH_EXPORT int *torch_pointer(int a,
                int b); AOTI_TORCH_EXPORT int torch_second();
            #endif // USE_CUDA
            #endif
            #if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
            inline int torch_inline(int x) { return torch_ten(0, x); }
            AOTI_TORCH_EXPORT int torch_new();
            #else
            AOTI_TORCH_EXPORT int torch_else();
            #endif
        "#;
        let found: Vec<String> = declarations(header).unwrap().into_iter().map(|(name, since)| format!("{name} {since:?}")).collect();
        insta::assert_snapshot!(found.join("\n"), @r"
        aoti_torch_old Older
        torch_ten Release(MajorMinor { major: 2, minor: 10 })
        torch_pointer Release(MajorMinor { major: 2, minor: 10 })
        torch_second Release(MajorMinor { major: 2, minor: 10 })
        torch_new Release(MajorMinor { major: 2, minor: 13 })
        torch_else Older
        ");
        assert!(declarations("#if TORCH_FEATURE_VERSION > 3\n#endif").is_err());
        assert!(declarations("#if !(TORCH_FEATURE_VERSION >= TORCH_VERSION_2_9_0)\n#endif").is_err());
    }

    #[test]
    fn the_oldest_declaration_counts() {
        let text = render([("b".to_owned(), release(12)), ("a".to_owned(), release(11)), ("b".to_owned(), Since::Older)]);
        assert!(text.ends_with("\na 2.11\nb -\n"), "{text}");
    }
}
