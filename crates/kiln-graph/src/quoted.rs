//! Commands as text.

/// A command as a POSIX shell would take it.
pub fn quoted(command: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%^".contains(c);
        // Between the programs of one step.
        if word == "&&" || (!word.is_empty() && word.chars().all(plain)) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    command.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["g++", "-DA=\"x y\"", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r#"g++ '-DA="x y"' 'it'\''s' ''"#);
    }
}
