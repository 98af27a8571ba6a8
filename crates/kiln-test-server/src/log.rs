//! What a server has served.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path without the query.
    pub path: String,
    /// Status code.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// The bytes of the file that were sent, where the answer was a part of one.
    pub range: Option<Range<u64>>,
    /// The `Authorization` header of the request.
    pub authorization: Option<String>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.status, self.bytes, self.path)?;
        match &self.range {
            Some(range) => write!(f, " {}-{}", range.start, range.end),
            None => Ok(()),
        }
    }
}

/// All that was served, in the order in which the answers ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The answered requests.
    pub entries: Vec<Entry>,
    /// Connections that were opened.
    pub connections: u32,
}

impl Log {
    /// Bytes of all bodies.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Number of requests whose path starts with `prefix`.
    pub fn requests(&self, prefix: &str) -> usize {
        self.entries.iter().filter(|entry| entry.path.starts_with(prefix)).count()
    }

    /// What was sent more than once, described: pages sent again, and ranges of a file that overlap. Answers without a
    /// body are not counted.
    pub fn sent_twice(&self) -> Vec<String> {
        let mut twice = Vec::new();
        let mut by_path: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.bytes > 0 && entry.status < 300) {
            let range = entry.range.clone().unwrap_or(0..u64::MAX);
            by_path.entry(&entry.path).or_default().push(range);
        }
        for (path, mut ranges) in by_path {
            ranges.sort_by_key(|range| (range.start, range.end));
            for pair in ranges.windows(2) {
                if let [a, b] = pair
                    && b.start < a.end
                {
                    twice.push(format!("{path}: {a:?} and {b:?}"));
                }
            }
        }
        twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_found() {
        let entry =
            |path: &str, range: Option<Range<u64>>| Entry { path: path.to_owned(), status: 206, bytes: 1, range, authorization: None };
        let mut log = Log {
            connections: 1,
            entries: vec![entry("/a", Some(0..10)), entry("/b", Some(5..15)), entry("/a", Some(10..20)), entry("/p", None)],
        };
        assert_eq!(log.sent_twice(), Vec::<String>::new());
        log.entries.push(entry("/a", Some(19..30)));
        log.entries.push(entry("/p", None));
        assert_eq!(log.sent_twice(), ["/a: 10..20 and 19..30", "/p: 0..18446744073709551615 and 0..18446744073709551615"]);
        assert_eq!((log.bytes(), log.requests("/a")), (6, 3));
    }
}
