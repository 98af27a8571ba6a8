//! The words of a line of a dry run.
//!
//! nvcc prints what it would give to a shell. Only the small part of a shell's language that nvcc itself writes is taken: words in
//! double quotes or without any. Whatever a shell would do beyond that is not understood.

use super::NotUnderstood;

/// The one variable that nvcc leaves for the shell.
const VARIABLE: &str = "CICC_PATH";

/// Splits a line. `cicc_path` stands for `$CICC_PATH`.
///
/// # Errors
/// When a shell would do more with it than to take quotes away.
pub(crate) fn words(line: &str, cicc_path: &str) -> Result<Vec<String>, NotUnderstood> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '"' => quoted(&mut rest, word.get_or_insert_default(), cicc_path)?,
            _ if is_plain(letter) => word.get_or_insert_default().push(letter),
            _ => return Err(NotUnderstood(format!("`{letter}` outside quotes in `{}`", short(line)))),
        }
    }
    words.extend(word);
    Ok(words)
}

/// What stands between two quotes; the first one is read.
fn quoted(rest: &mut std::str::Chars<'_>, word: &mut String, cicc_path: &str) -> Result<(), NotUnderstood> {
    while let Some(letter) = rest.next() {
        match letter {
            '"' => return Ok(()),
            '\\' => match rest.clone().next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => {
                    rest.next();
                    word.push(next);
                }
                // A shell keeps it.
                _ => word.push('\\'),
            },
            '$' => {
                let behind = rest.as_str().strip_prefix(VARIABLE).filter(|behind| behind.starts_with(['/', '"']));
                let behind = behind.ok_or_else(|| NotUnderstood("a variable of the shell's".to_owned()))?;
                word.push_str(cicc_path);
                *rest = behind.chars();
            }
            '`' => return Err(NotUnderstood("a command for the shell in a word".to_owned())),
            _ => word.push(letter),
        }
    }
    Err(NotUnderstood("a quote that does not end".to_owned()))
}

fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "-_=./,:+%@^".contains(letter)
}

/// The beginning of a line, for messages.
pub(crate) fn short(line: &str) -> String {
    const LETTERS: usize = 60;
    match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        words(line, "/cicc").ok()
    }

    #[test]
    fn quotes_are_taken_away_as_a_shell_does() {
        let line = r#"  "/usr/bin"/g++ -D "W=\"a b\"" -D "S='a'" -D"B=a\b\\" -I"/a b" "" "$CICC_PATH/cicc" "#;
        let words = ["/usr/bin/g++", "-D", "W=\"a b\"", "-D", "S='a'", "-DB=a\\b\\", "-I/a b", "", "/cicc/cicc"];
        assert_eq!(split(line).unwrap(), words);
    }

    #[test]
    fn what_a_shell_would_do_is_not_understood() {
        for line in [
            "a; b",
            "a | b",
            "a > b",
            "$CICC_PATH/cicc",
            "\"$HOME\"",
            "\"$CICC_PATHS/x\"",
            "\"`x`\"",
            "'a'",
            "a\\ b",
            "\"a",
            "*.o",
            "~/a",
            "(a)",
        ] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
