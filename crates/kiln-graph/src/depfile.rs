//! Reads depfiles: the Make rules in which gcc, clang and nvcc say which files they read.
//!
//! The writers quote less than Make understands. Before a space or tab, a backslash is added and the backslashes that
//! stand directly before it are doubled; `$` is doubled; `#` gets one backslash and nothing is doubled; some writers put
//! one before `:`. All other backslashes mean themselves. A colon ends the targets only where blank space follows.

/// The prerequisites of all rules, in order, each once; `None` if there is no rule at all.
///
/// `-MP` adds a rule without prerequisites per header, which adds nothing here.
pub(crate) fn prerequisites(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader { rest: text };
    let mut in_targets = true;
    let mut rules = 0_usize;
    let mut names = Vec::new();
    let mut seen = std::collections::HashSet::new();
    loop {
        match reader.next() {
            Token::End => return (rules > 0).then_some(names),
            Token::Line => in_targets = true,
            Token::Colon if in_targets => {
                in_targets = false;
                rules += 1;
            }
            Token::Colon => {}
            Token::Word { mut name, before_colon } => {
                if in_targets {
                    continue;
                }
                if before_colon {
                    // Among prerequisites a colon is a letter like any other.
                    name.push(b':');
                }
                // `|` separates order-only prerequisites.
                if name != b"|" && seen.insert(name.clone()) {
                    names.push(name);
                }
            }
        }
    }
}

enum Token {
    /// A name with its quoting undone.
    Word {
        name: Vec<u8>,
        /// Whether a colon follows directly and blank space after it; the colon is the next token.
        before_colon: bool,
    },
    Colon,
    Line,
    End,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Token {
        loop {
            match self.rest {
                [] => return Token::End,
                [b' ' | b'\t' | b'\r', rest @ ..] | [b'\\', b'\n', rest @ ..] | [b'\\', b'\r', b'\n', rest @ ..] => self.rest = rest,
                [b'\n', rest @ ..] => {
                    self.rest = rest;
                    return Token::Line;
                }
                [b':', rest @ ..] if starts_blank(rest) => {
                    self.rest = rest;
                    return Token::Colon;
                }
                [b'#', ..] => {
                    let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap_or(self.rest.len());
                    self.rest = self.rest.get(end..).unwrap_or_default();
                }
                _ => return self.word(),
            }
        }
    }

    fn word(&mut self) -> Token {
        let mut name = Vec::new();
        loop {
            match self.rest {
                [] | [b' ' | b'\t' | b'\r' | b'\n', ..] => return Token::Word { name, before_colon: false },
                [b':', rest @ ..] if starts_blank(rest) => return Token::Word { name, before_colon: true },
                [b'$', b'$', rest @ ..] => {
                    name.push(b'$');
                    self.rest = rest;
                }
                [b'\\', ..] => {
                    let run = self.rest.iter().take_while(|&&byte| byte == b'\\').count();
                    let after = self.rest.get(run..).unwrap_or_default();
                    match after {
                        [blank @ (b' ' | b'\t'), rest @ ..] => {
                            name.resize(name.len() + run / 2, b'\\');
                            if run % 2 == 0 {
                                self.rest = after;
                                return Token::Word { name, before_colon: false };
                            }
                            name.push(*blank);
                            self.rest = rest;
                        }
                        [letter @ (b'#' | b':'), rest @ ..] => {
                            name.resize(name.len() + run - 1, b'\\');
                            name.push(*letter);
                            self.rest = rest;
                        }
                        [b'\n', ..] | [b'\r', b'\n', ..] => {
                            name.resize(name.len() + run - 1, b'\\');
                            self.rest = self.rest.get(run - 1..).unwrap_or_default();
                            return Token::Word { name, before_colon: false };
                        }
                        _ => {
                            name.resize(name.len() + run, b'\\');
                            self.rest = after;
                        }
                    }
                }
                [byte, rest @ ..] => {
                    name.push(*byte);
                    self.rest = rest;
                }
            }
        }
    }
}

fn starts_blank(rest: &[u8]) -> bool {
    matches!(rest, [] | [b' ' | b'\t' | b'\r' | b'\n', ..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Option<Vec<String>> {
        prerequisites(text.as_bytes()).map(|names| names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect())
    }

    fn some(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn rules_of_gcc() {
        assert_eq!(names("a.o: a.c b.h \\\n c.h\n"), some(&["a.c", "b.h", "c.h"]));
        assert_eq!(names("a.o: a.c b.h\nb.h:\n\nc.h:\n"), some(&["a.c", "b.h"]), "phony targets of -MP");
        assert_eq!(names("a.o b.o: a.c\nc.o: a.c d.c\n"), some(&["a.c", "d.c"]), "several targets and rules");
        assert_eq!(names("a.o: my\\ file.c cash$$.h h\\#.h\n"), some(&["my file.c", "cash$.h", "h#.h"]));
        assert_eq!(names("a.o: x\\\\\\ y.c dir\\file.c\n"), some(&["x\\ y.c", "dir\\file.c"]));
        assert_eq!(names("a\\ b.o: grüße.c"), some(&["grüße.c"]));
    }

    #[test]
    fn rules_of_others() {
        assert_eq!(names("a.o : a.cu \\\n    b.cuh\n"), some(&["a.cu", "b.cuh"]), "nvcc puts a space before the colon");
        assert_eq!(names("a.o: a.c \\\r\n b.h\r\n"), some(&["a.c", "b.h"]));
        assert_eq!(names("C:/x/a.o: C:/x/a.c c\\:d.h\n"), some(&["C:/x/a.c", "c:d.h"]));
        assert_eq!(names("# a note\na.o: a.c # another\n"), some(&["a.c"]));
        assert_eq!(names("a.o: a.c | b.gcm\nIMPORTS += b\n"), some(&["a.c", "b.gcm"]));
        assert_eq!(names("a.o: b: c\n"), some(&["b:", "c"]));
        assert_eq!(names("a.o: a.c\\\n b.c\\\\ c.c"), some(&["a.c", "b.c\\", "c.c"]));
    }

    #[test]
    fn no_rule() {
        assert_eq!(names(""), None);
        assert_eq!(names("a.o a.c\n"), None);
        assert_eq!(names("a.o:"), some(&[]));
    }

    /// Quotes a name as gcc does.
    fn quote(name: &str) -> String {
        let mut text = String::new();
        let mut slashes = 0;
        for letter in name.chars() {
            match letter {
                ' ' | '\t' => text.push_str(&"\\".repeat(slashes + 1)),
                '$' => text.push('$'),
                '#' => text.push('\\'),
                _ => {}
            }
            slashes = if letter == '\\' { slashes + 1 } else { 0 };
            text.push(letter);
        }
        text
    }

    proptest! {
        #[test]
        fn names_survive(names in prop::collection::vec("[a-c.$# \t/ü\\\\:]{0,8}[a-z]", 1..8), blank in prop::sample::select(vec![" ", " \\\n ", " \\\r\n "])) {
            // One writer's quoted colon is another's backslash and colon; a colon before a blank is never written in a name.
            let names: Vec<String> = names.into_iter().map(|name| name.replace("\\:", ":").replace(": ", ":").replace(":\t", ":")).collect();
            prop_assume!(names.iter().all(|name| !name.contains("\\:")));
            let text = names.iter().fold("out.o:".to_owned(), |text, name| text + blank + &quote(name)) + "\n";
            let mut unique = names.clone();
            let mut seen = std::collections::BTreeSet::new();
            unique.retain(|name| seen.insert(name.clone()));
            let read: Vec<String> = prerequisites(text.as_bytes()).unwrap().into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
            prop_assert_eq!(read, unique);
        }

        #[test]
        fn any_bytes_are_read_to_the_end(bytes in prop::collection::vec(prop::sample::select(b"a:\\ \n\r\t#$|".to_vec()), 0..64)) {
            let _ = prerequisites(&bytes);
        }
    }
}
