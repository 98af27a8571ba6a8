//! What compilers write, taken apart into messages. Not a byte of it is changed: the texts of all messages, one behind the other, are
//! what was written.
//!
//! | who | begins a message with |
//! |---|---|
//! | gcc, clang | `file:line:column: warning: ` |
//! | nvcc's front ends (cudafe++, cicc) | `file(line): warning #177-D: `; an empty line ends it |
//! | ptxas, nvlink, nvcc, fatbinary | `ptxas error   : `, `ptxas file, line 3; error   : ` |

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing is made.
    Error,
    /// Something is likely to be wrong.
    Warning,
    /// Something to know.
    Note,
}

/// One message of a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// All of its lines, as they were written.
    pub text: &'a str,
    /// How bad it is; none for text that is no message.
    pub severity: Option<Severity>,
    /// The file that it is about, as it was written.
    pub file: Option<&'a str>,
    /// The line in that file, from 1.
    pub line: Option<u64>,
    /// The column in that line, from 1.
    pub column: Option<u64>,
}

/// What a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start<'a> {
    Message {
        severity: Severity,
        file: Option<&'a str>,
        line: Option<u64>,
        column: Option<u64>,
        kind: Kind,
    },
    /// Says where the message that follows comes from.
    Context,
    /// Is no part of the message before it.
    Other,
}

/// What ends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The next message.
    Open,
    /// An empty line.
    UntilEmpty,
    /// Its line.
    OneLine,
}

const SEVERITIES: [(&str, Severity); 9] = [
    ("catastrophic error", Severity::Error),
    ("internal error", Severity::Error),
    ("fatal error", Severity::Error),
    ("error", Severity::Error),
    ("fatal", Severity::Error),
    ("warning", Severity::Warning),
    ("remark", Severity::Note),
    ("note", Severity::Note),
    ("info", Severity::Note),
];

/// Takes `text` apart.
pub fn split(text: &str) -> Vec<Message<'_>> {
    let mut splitter = Splitter { text, from: 0, at: 0, current: None, in_context: false, messages: Vec::new() };
    for line in text.split_inclusive('\n') {
        splitter.line(line);
    }
    splitter.finish();
    splitter.messages
}

struct Splitter<'a> {
    text: &'a str,
    /// Where the text of the message begins that is not finished.
    from: usize,
    /// Where the line begins that is read.
    at: usize,
    /// What is known of that message.
    current: Option<(Message<'a>, Kind)>,
    /// Whether what stands since `from` is context of a message that has not begun.
    in_context: bool,
    messages: Vec<Message<'a>>,
}

impl<'a> Splitter<'a> {
    fn line(&mut self, line: &'a str) {
        match start_of(line.trim_end_matches(['\n', '\r'])) {
            // A note belongs to what stands before it.
            Some(Start::Message { severity: Severity::Note, kind: Kind::Open, .. }) if self.current.is_some() => {}
            Some(Start::Message { severity, file, line, column, kind }) => {
                if !self.in_context {
                    self.finish();
                }
                self.in_context = false;
                self.current = Some((Message { text: "", severity: Some(severity), file, line, column }, kind));
            }
            Some(Start::Context) => {
                if !self.in_context {
                    self.finish();
                }
                self.in_context = true;
            }
            Some(Start::Other) => self.finish(),
            None => {}
        }
        self.at += line.len();
        let ends = match &self.current {
            Some((_, Kind::OneLine)) => true,
            Some((_, Kind::UntilEmpty)) => line.trim().is_empty(),
            Some((_, Kind::Open)) => false,
            None => line.trim().is_empty() && !self.in_context,
        };
        if ends {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let text = self.text.get(self.from..self.at).unwrap_or_default();
        self.from = self.at;
        self.in_context = false;
        let message = self.current.take().map(|(message, _)| message);
        let none = Message { text, severity: None, file: None, line: None, column: None };
        if !text.is_empty() {
            self.messages.push(message.map_or(none, |message| Message { text, ..message }));
        }
    }
}

fn start_of(line: &str) -> Option<Start<'_>> {
    of_program(line).or_else(|| of_front_end(line)).or_else(|| of_host(line)).or_else(|| {
        let of_include = line.starts_with("In file included from ") || line.starts_with("                 from ");
        let of_function = [
            ": In function ",
            ": In member function ",
            ": In instantiation of ",
            ": In constructor ",
            ": At global scope:",
            ": In lambda function",
        ];
        if of_include || of_function.iter().any(|mark| line.contains(mark)) {
            return Some(Start::Context);
        }
        let is_sum = line.contains(" detected in the compilation of ")
            || line.ends_with(" generated.")
            || line.starts_with("compilation terminated");
        (line.starts_with("Remark: ") || is_sum).then_some(Start::Other)
    })
}

/// `ptxas info    : `, `ptxas unit.ptx, line 3; error   : `.
fn of_program(line: &str) -> Option<Start<'_>> {
    let (_, rest) = ["ptxas", "nvlink", "nvcc", "fatbinary", "cicc"]
        .iter()
        .find_map(|name| Some((name, line.strip_prefix(name)?.strip_prefix(' ')?)))?;
    let (head, _) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
    let (place, word) = match head.split_once("; ") {
        Some((place, word)) => (Some(place), word),
        None => (None, head),
    };
    let severity = severity_of(word.trim_end())?;
    let (file, number) =
        place.and_then(|place| place.rsplit_once(", line ")).map_or((None, None), |(file, number)| (Some(file), number.parse().ok()));
    Some(Start::Message { severity, file, line: number, column: None, kind: Kind::OneLine })
}

/// `file(line): warning #177-D: `, `file(line): error: `.
fn of_front_end(line: &str) -> Option<Start<'_>> {
    let (head, rest) = line.split_once("): ")?;
    let (file, number) = head.rsplit_once('(')?;
    let number: u64 = number.parse().ok()?;
    let (word, _) = rest.split_once(':')?;
    let word = word.split_once(" #").map_or(word, |(word, _)| word);
    Some(Start::Message { severity: severity_of(word)?, file: Some(file), line: Some(number), column: None, kind: Kind::UntilEmpty })
}

/// `file:line:column: warning: `, `file:line: error: `.
fn of_host(line: &str) -> Option<Start<'_>> {
    let mut searched = 0;
    // A file's name may have a colon.
    while let Some(found) = line.get(searched..)?.find(": ") {
        let (head, rest) = (line.get(..searched + found)?, line.get(searched + found + 2..)?);
        searched += found + 2;
        let Some(severity) = rest.split_once(':').and_then(|(word, _)| severity_of(word)) else { continue };
        let mut parts = head.rsplitn(3, ':');
        let (last, before, file) = (parts.next().and_then(number), parts.next(), parts.next());
        let place = match (last, before.and_then(number), file) {
            (Some(column), Some(line), Some(file)) => (file, Some(line), Some(column)),
            (Some(line), _, _) => (head.rsplit_once(':')?.0, Some(line), None),
            _ => continue,
        };
        return Some(Start::Message { severity, file: Some(place.0), line: place.1, column: place.2, kind: Kind::Open });
    }
    None
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn severity_of(word: &str) -> Option<Severity> {
    SEVERITIES.iter().find(|(known, _)| *known == word).map(|(_, severity)| *severity)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each message: its severity, place, and first and last words.
    fn shown(text: &str) -> Vec<String> {
        let place = |message: &Message<'_>| match (message.file, message.line, message.column) {
            (Some(file), Some(line), Some(column)) => format!("{file} {line} {column}"),
            (Some(file), Some(line), None) => format!("{file} {line}"),
            _ => "-".to_owned(),
        };
        let all = split(text);
        assert_eq!(all.iter().map(|message| message.text).collect::<String>(), text, "not a byte is lost");
        all.iter().map(|message| format!("{:?} {} [{} lines]", message.severity, place(message), message.text.lines().count())).collect()
    }

    #[test]
    fn front_ends_of_nvcc() {
        let text = "./k.cu(5): warning #177-D: variable \"x\" was declared but never referenced\n  static int x;\n             ^\n\n\
            Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n\
            ./a(b).cu(7): error: identifier \"y\" is undefined\n    y = 1;\n    ^\n          detected during instantiation of \"f<T>\" at line 9\n\n\
            1 error detected in the compilation of \"./k.cu\".\n";
        assert_eq!(
            shown(text),
            ["Some(Warning) ./k.cu 5 [4 lines]", "None - [2 lines]", "Some(Error) ./a(b).cu 7 [5 lines]", "None - [1 lines]"]
        );
    }

    #[test]
    fn programs_of_nvcc() {
        let text = "ptxas info    : 0 bytes gmem\nptxas info    : Used 4 registers\nptxas unit.ptx, line 12; error   : Illegal\nptxas fatal   : Unresolved extern function 'f'\nnvcc warning : x\n";
        assert_eq!(
            shown(text),
            [
                "Some(Note) - [1 lines]",
                "Some(Note) - [1 lines]",
                "Some(Error) unit.ptx 12 [1 lines]",
                "Some(Error) - [1 lines]",
                "Some(Warning) - [1 lines]"
            ]
        );
    }

    #[test]
    fn host_compilers() {
        let text = "In file included from ./k.cu:1:\n./a.h:3:2: error: #error \"x\"\n    3 | #error\n      |  ^~~~~\n\
            ./k.cu: In function 'int f()':\n./k.cu:5:7: warning: unused [-Wunused]\n    5 |   int x;\n./k.cu:4:1: note: here\n\
            C:/x y.cu:9: error: z\ncc1plus: all warnings being treated as errors\n";
        assert_eq!(
            shown(text),
            ["Some(Error) ./a.h 3 2 [4 lines]", "Some(Warning) ./k.cu 5 7 [4 lines]", "Some(Error) C:/x y.cu 9 [2 lines]"]
        );
        assert_eq!(shown("nothing of the kind\n"), ["None - [1 lines]"]);
        assert_eq!(shown(""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_kept(lines in prop::collection::vec(prop::sample::select(vec![
            "", "a.cu(3): warning #1-D: x", "a.cu:3:4: error: x", "a.h:1: note: y", "In file included from a.cu:1:", "  text", "ptxas fatal   : z",
            "Remark: r", "a.cu: In function 'f':", "é: warning: ", "1 error detected in the compilation of \"a\".", ": error: ", "a(): error: ",
        ]), 0..12), end in prop::sample::select(vec!["", "\n"])) {
            let text = lines.join("\n") + end;
            let whole: String = split(&text).iter().map(|message| message.text).collect();
            prop_assert_eq!(whole, text);
        }
    }
}
