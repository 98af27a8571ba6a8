//! `RECORD`: what a wheel says its files are.

use std::collections::BTreeMap;

use data_encoding::BASE64URL_NOPAD;

/// What `RECORD` says of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Sha256 of its content.
    pub(crate) sha256: [u8; 32],
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// The lines of the text of a `RECORD` by their numbers: `path,sha256=<urlsafe base64 without padding>,size`, as CSV. A line without a
/// digest (that of `RECORD` itself) or with a digest of another kind gives its path alone. An error says what is wrong, as a phrase
/// that follows the file's name.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Result<(usize, String, Option<Entry>), String>> {
    let read = |(number, line)| {
        let (path, rest) = field(line).ok_or_else(|| wrong("a damaged path", number))?;
        let (digest, size) = rest.split_once(',').ok_or_else(|| wrong("too few fields", number))?;
        let Some(digest) = digest.strip_prefix("sha256=") else { return Ok((number, path, None)) };
        let sha256 = BASE64URL_NOPAD.decode(digest.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        let sha256 = sha256.ok_or_else(|| wrong("a damaged sha256", number))?;
        let size = size.parse().map_err(|_| wrong("a damaged size", number))?;
        Ok((number, path, Some(Entry { sha256, size })))
    };
    (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()).map(read)
}

fn wrong(what: &str, number: usize) -> String {
    format!("has {what} in line {number}")
}

/// A `RECORD` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    name: String,
    entries: BTreeMap<String, Entry>,
}

impl Record {
    /// Reads the `RECORD` file called `name`. Only lines with a sha256 are entries.
    ///
    /// # Errors
    /// What is wrong with it, as a phrase that follows its name.
    pub(crate) fn parse(name: &str, content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "is not UTF-8".to_owned())?;
        let mut entries = BTreeMap::new();
        for line in lines(text) {
            let (number, path, Some(entry)) = line? else { continue };
            if entries.insert(path, entry).is_some() {
                return Err(wrong("a path for the second time", number));
            }
        }
        Ok(Self { name: name.to_owned(), entries })
    }

    /// The name of the member.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What is said of the file at `path`.
    pub(crate) fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The paths of all entries, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// The first CSV field of a line, and what follows its comma.
fn field(line: &str) -> Option<(String, &str)> {
    let Some(quoted) = line.strip_prefix('"') else {
        return line.split_once(',').map(|(path, rest)| (path.to_owned(), rest));
    };
    let mut path = String::new();
    let mut rest = quoted;
    loop {
        let (piece, after) = rest.split_once('"')?;
        path.push_str(piece);
        match after.strip_prefix('"') {
            Some(more) => {
                path.push('"');
                rest = more;
            }
            None => return Some((path, after.strip_prefix(',')?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

    #[test]
    fn lines_are_read() {
        let text = format!("a/b.h,sha256={EMPTY},0\n\"x,\"\"y\"\".h\",sha256={EMPTY},12\r\nt.dist-info/RECORD,,\nold,md5=abc,3\n");
        let record = Record::parse("t.dist-info/RECORD", text.as_bytes()).unwrap();
        assert_eq!(record.names().collect::<Vec<_>>(), ["a/b.h", "x,\"y\".h"]);
        assert_eq!(record.entry("x,\"y\".h").unwrap().size, 12);
        assert_eq!(record.entry("a/b.h").unwrap().sha256[..2], [0xe3, 0xb0]);
        assert_eq!(record.entry("old"), None);
    }

    #[test]
    fn damaged_lines_are_named() {
        let message = |text: String| Record::parse("R", text.as_bytes()).unwrap_err();
        assert_eq!(message(format!("a,sha256={EMPTY},0\nb,sha256=xyz,0\n")), "has a damaged sha256 in line 2");
        assert_eq!(message(format!("a,sha256={EMPTY},many\n")), "has a damaged size in line 1");
        assert_eq!(message("a\n".to_owned()), "has a damaged path in line 1");
        assert_eq!(message("a,b\n".to_owned()), "has too few fields in line 1");
        assert_eq!(message("\"a,,\n".to_owned()), "has a damaged path in line 1");
        assert_eq!(message(format!("a,sha256={EMPTY},0\n").repeat(2)), "has a path for the second time in line 2");
    }
}
