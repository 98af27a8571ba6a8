//! Version numbers: numeric, compared component by component, and printed as they were written.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::suggest::quoted;
use crate::text_value::text_value;

/// A version `N(.N)*` with unsigned components, such as `2.11`.
///
/// Equality, order and hash look at the numbers and ignore trailing zero components: `12`, `12.0` and `12.0.0` are one
/// version. The written text is kept for display.
#[derive(Clone, Debug)]
pub struct Version {
    text: String,
    components: Vec<u64>,
}

/// Why a text is no [`Version`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Nothing but white space.
    #[error("a version cannot be empty")]
    Empty,
    /// A component that is no number; holds the whole text.
    #[error("malformed version {}: numbers separated by dots are expected, such as `2.11`", quoted(.0))]
    Malformed(String),
    /// A component that does not fit into 64 bits; holds the whole text.
    #[error("{} has a component that is too large", quoted(.0))]
    TooLarge(String),
}

impl Version {
    /// Reads `text`, white space around it ignored.
    ///
    /// # Errors
    /// When the text is empty, a component is not made of ASCII digits only, or a component exceeds 64 bits.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        let mut components = Vec::new();
        for component in text.split('.') {
            if component.is_empty() || !component.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(VersionError::Malformed(text.to_owned()));
            }
            components.push(component.parse().map_err(|_| VersionError::TooLarge(text.to_owned()))?);
        }
        Ok(Self { text: text.to_owned(), components })
    }

    /// The first component.
    pub fn major(&self) -> u64 {
        self.components.first().copied().unwrap_or(0)
    }

    /// The second component; 0 where none is written.
    pub fn minor(&self) -> u64 {
        self.components.get(1).copied().unwrap_or(0)
    }

    /// Every written component, at least one.
    pub fn components(&self) -> &[u64] {
        &self.components
    }

    /// The first two components; what follows is cut off, a missing minor is 0.
    pub fn major_minor(&self) -> MajorMinor {
        MajorMinor::new(self.major(), self.minor())
    }

    /// The text as it was written, without white space around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The components up to the last one that is not 0: what equality, order and hash look at.
    fn significant(&self) -> &[u64] {
        let mut rest = self.components.as_slice();
        while let [head @ .., 0] = rest {
            rest = head;
        }
        rest
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.significant().cmp(other.significant())
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

text_value!(Version: Display, FromStr(parse, VersionError), Serialize);

impl From<MajorMinor> for Version {
    fn from(version: MajorMinor) -> Self {
        Self { text: version.to_string(), components: vec![version.major, version.minor] }
    }
}

/// A version cut to its first two components, the precision of variant names and of torch bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MajorMinor {
    /// The first component.
    pub major: u64,
    /// The second component.
    pub minor: u64,
}

impl MajorMinor {
    /// The version `major.minor`.
    pub const fn new(major: u64, minor: u64) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for MajorMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for MajorMinor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    fn hash(version: &Version) -> u64 {
        let mut hasher = DefaultHasher::new();
        version.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn trailing_zeros_do_not_count() {
        for text in ["12", "12.0", "12.0.0"] {
            assert_eq!(version(text), version("12"));
            assert_eq!(hash(&version(text)), hash(&version("12")));
            assert_eq!(version(text).as_str(), text);
        }
        assert_eq!(version("0"), version("0.0"));
        assert_ne!(version("12"), version("120"));
    }

    #[test]
    fn order_is_numeric() {
        assert!(version("2.9") < version("2.11"));
        assert!(version("2.11") < version("2.11.1"));
        assert!(version("2") < version("2.0.1"));
        assert!(version("10.0") > version("9.9.9"));
    }

    #[test]
    fn parts() {
        let v = version(" 2.12.1 ");
        assert_eq!((v.major(), v.minor(), v.components()), (2, 12, [2, 12, 1].as_slice()));
        assert_eq!(v.major_minor(), MajorMinor::new(2, 12));
        assert_eq!(version("3").major_minor().to_string(), "3.0");
        assert_eq!(v.to_string(), "2.12.1");
        assert_eq!("007.1".parse::<Version>().unwrap(), version("7.1"));
        assert_eq!(Version::from(MajorMinor::new(2, 13)).as_str(), "2.13");
        assert_eq!(serde_json::to_string(&(&v, v.major_minor())).unwrap(), r#"["2.12.1","2.12"]"#);
    }

    #[test]
    fn refused() {
        for text in ["", "  "] {
            assert_eq!(Version::parse(text), Err(VersionError::Empty));
        }
        for text in [".", "1.", ".1", "1..2", "v1", "1.x", "-1", "+1", "1 .2", "١.٢", "two.eleven", "2.13.0+cpu"] {
            assert_eq!(Version::parse(text), Err(VersionError::Malformed(text.to_owned())), "{text}");
        }
        assert!(matches!(Version::parse("1.99999999999999999999"), Err(VersionError::TooLarge(_))));
        insta::assert_snapshot!(VersionError::Malformed("a\n".into()), @r"malformed version `a\n`: numbers separated by dots are expected, such as `2.11`");
    }

    fn any_version() -> impl Strategy<Value = Version> {
        prop::collection::vec(0u64..4, 1..5).prop_map(|components| {
            let text = components.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            Version::parse(&text).unwrap()
        })
    }

    proptest! {
        #[test]
        fn total_order(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
            prop_assert_eq!(a.partial_cmp(&b), Some(a.cmp(&b)));
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
            if a == b {
                prop_assert_eq!(hash(&a), hash(&b));
                prop_assert_eq!(a.cmp(&c), b.cmp(&c));
            }
        }

        #[test]
        fn order_is_that_of_padded_components(a in any_version(), b in any_version()) {
            let pad = |v: &Version| { let mut c = v.components().to_vec(); c.resize(8, 0); c };
            prop_assert_eq!(a.cmp(&b), pad(&a).cmp(&pad(&b)));
        }

        #[test]
        fn appending_zeros_changes_nothing(a in any_version(), zeros in 1usize..4) {
            let longer = Version::parse(&format!("{a}{}", ".0".repeat(zeros))).unwrap();
            prop_assert_eq!(&a, &longer);
            prop_assert_eq!(hash(&a), hash(&longer));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            if let Ok(version) = Version::parse(&text) {
                prop_assert_eq!(version.as_str(), text.trim());
            }
        }
    }
}
