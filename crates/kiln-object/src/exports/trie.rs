//! The export trie of Mach-O: names by their common beginnings.
//!
//! A node is the size of its data (ULEB128; 0 when the name so far is no export), the data, the number of children, and for each child
//! the text that leads to it and where it lies, counted from the start of the trie.

use crate::Error;

/// A node that is still to be visited: where it lies, and the name so far.
type Open = (usize, Vec<u8>);

/// All names of a trie, each parent before its children.
pub(super) fn names(trie: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = Vec::new();
    let mut open: Vec<Open> = vec![(0, Vec::new())];
    // A node takes two bytes at least, so a sound trie has fewer nodes than bytes. Names may be longer than the trie, since they share
    // their beginnings.
    let mut nodes = trie.len().saturating_add(1);
    let mut text = trie.len().saturating_mul(64);
    while let Some((start, name)) = open.pop() {
        nodes = nodes.checked_sub(1).ok_or_else(|| damaged("its nodes share children"))?;
        text = text.checked_sub(name.len()).ok_or_else(|| damaged("its names are too long"))?;
        let mut rest = trie.get(start..).ok_or_else(|| damaged("a child lies outside of it"))?;
        let size = number(&mut rest)?;
        rest = rest.get(size..).ok_or_else(|| damaged("it is cut short"))?;
        let (children, mut rest) = rest.split_first().ok_or_else(|| damaged("it is cut short"))?;
        let first = open.len();
        for _ in 0..*children {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("it is cut short"))?;
            let mut longer = name.clone();
            longer.extend_from_slice(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
            open.push((number(&mut rest)?, longer));
        }
        open.get_mut(first..).unwrap_or_default().reverse();
        if size > 0 {
            names.push(name);
        }
    }
    Ok(names)
}

/// Takes a ULEB128 number.
fn number(rest: &mut &[u8]) -> Result<usize, Error> {
    let mut number: u64 = 0;
    for shift in (0..63).step_by(7) {
        let (byte, tail) = rest.split_first().ok_or_else(|| damaged("it is cut short"))?;
        *rest = tail;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(number).map_err(|_| damaged("a number is too large"));
        }
    }
    Err(damaged("a number is too large"))
}

fn damaged(cause: &str) -> Error {
    Error::Damaged { what: "Mach-O export trie", cause: cause.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_a` and `_ab`, the second below the first; then `_c`.
    const TRIE: &[u8] = &[0, 1, b'_', 0, 5, 0, 2, b'a', 0, 13, b'c', 0, 22, 2, 0, 9, 1, b'b', 0, 26, 0, 0, 2, 0, 9, 0, 2, 0, 9, 0];

    #[test]
    fn names_share_their_beginnings() {
        let names: Vec<String> = names(TRIE).unwrap().into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
        assert_eq!(names, ["_a", "_ab", "_c"]);
    }

    #[test]
    fn damaged_tries_end() {
        let error = |trie: &[u8]| names(trie).unwrap_err().to_string();
        // A node that is its own child, and one of two levels whose children are shared.
        assert_eq!(error(&[0, 1, b'x', 0, 0]), "damaged Mach-O export trie: its nodes share children");
        assert_eq!(error(&[0, 2, b'x', 0, 0, b'y', 0, 0]), "damaged Mach-O export trie: its nodes share children");
        assert_eq!(error(&[0, 1, b'x', 0, 99]), "damaged Mach-O export trie: a child lies outside of it");
        assert_eq!(error(&[]), "damaged Mach-O export trie: it is cut short");
        assert_eq!(error(&[0x80; 20]), "damaged Mach-O export trie: a number is too large");
        for end in 0..TRIE.len() {
            let _ = names(&TRIE[..end]);
        }
    }
}
