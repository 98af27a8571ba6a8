//! Places in a text, and values that remember theirs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

/// A range of bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte; equal to `start` for a place between two characters.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, but without, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

/// A value together with the place where it was written.
///
/// Equality and hash look at the value alone: the same value written elsewhere is equal.
#[derive(Clone, Copy)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands in the file.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// What `f` makes of the value, at the same place.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned::new(f(self.value), self.span)
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl<T: Hash> Hash for Spanned<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl<T: fmt::Display> fmt::Display for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)?;
        write!(f, " @ {}..{}", self.span.start, self.span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_no_part_of_the_value() {
        let a = Spanned::new("x".to_owned(), Span::new(1, 2));
        let b = Spanned::new("x".to_owned(), Span::from(7..8));
        assert_eq!(a, b);
        assert_eq!(std::collections::HashSet::from([a.clone(), b.clone()]).len(), 1);
        assert_ne!(a, b.clone().map(|text| text + "y"));
        assert_eq!(format!("{a} {b:?} {}", a.len()), r#"x "x" @ 7..8 1"#);
    }
}
