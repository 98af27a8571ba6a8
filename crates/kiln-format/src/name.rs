//! Kernel names, and the Python names made from them.

use crate::suggest::quoted;
use crate::text_value::text_value;

/// The name of a kernel: `^[a-z][-a-z0-9]*[a-z0-9]$`, so at least two characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelName(String);

/// Why a text is no [`KernelName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelNameError {
    /// Nothing.
    #[error("a kernel name cannot be empty")]
    Empty,
    /// One character.
    #[error("kernel name {} is too short: it needs two characters or more", quoted(.0))]
    TooShort(String),
    /// Starts with something else than a lower-case letter.
    #[error("kernel name {} must start with a lower-case letter", quoted(.0))]
    Start(String),
    /// Ends in a dash.
    #[error("kernel name {} must not end in a dash", quoted(.0))]
    End(String),
    /// Holds a character other than `a-z`, `0-9` and `-`.
    #[error("kernel name {} contains {}: only lower-case letters, digits and dashes are allowed", quoted(.0), quoted(&.1.to_string()))]
    Character(String, char),
}

impl KernelName {
    /// Checks `text`.
    ///
    /// # Errors
    /// When the text does not match the pattern; the error says in which way.
    pub fn new(text: &str) -> Result<Self, KernelNameError> {
        let owned = || text.to_owned();
        let Some(first) = text.chars().next() else { return Err(KernelNameError::Empty) };
        let allowed = |c: char| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit();
        if let Some(bad) = text.chars().find(|&c| !allowed(c)) {
            return Err(KernelNameError::Character(owned(), bad));
        }
        if !first.is_ascii_lowercase() {
            return Err(KernelNameError::Start(owned()));
        }
        if text.ends_with('-') {
            return Err(KernelNameError::End(owned()));
        }
        if text.len() < 2 {
            return Err(KernelNameError::TooShort(owned()));
        }
        Ok(Self(owned()))
    }

    /// The nearest valid name to `text`, if one can be made: lower case, `_` and spaces as dashes, the rest left out.
    pub fn corrected(text: &str) -> Option<Self> {
        let mut name = String::new();
        for c in text.trim().chars() {
            match c.to_ascii_lowercase() {
                c @ ('a'..='z' | '0'..='9' | '-') => name.push(c),
                '_' | ' ' | '.' | '/' => name.push('-'),
                _ => {}
            }
        }
        let name = name.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
        Self::new(name).ok()
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the Python package: dashes become underscores.
    pub fn python_name(&self) -> String {
        self.0.replace('-', "_")
    }
}

text_value!(KernelName: Display, FromStr(new, KernelNameError), Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepted() {
        for name in ["my--kernel", "a1", "relu", "x-9"] {
            assert_eq!(name.parse::<KernelName>().unwrap().as_str(), name);
        }
        assert_eq!(KernelName::new("my--kernel").unwrap().python_name(), "my__kernel");
    }

    #[test]
    fn refused() {
        let messages: Vec<String> = ["", "a", "1a", "-a", "ab-", "my_kernel", "My", "naïve", "a\nb"]
            .iter()
            .map(|name| KernelName::new(name).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        a kernel name cannot be empty
        kernel name `a` is too short: it needs two characters or more
        kernel name `1a` must start with a lower-case letter
        kernel name `-a` must start with a lower-case letter
        kernel name `ab-` must not end in a dash
        kernel name `my_kernel` contains `_`: only lower-case letters, digits and dashes are allowed
        kernel name `My` contains `M`: only lower-case letters, digits and dashes are allowed
        kernel name `naïve` contains `ï`: only lower-case letters, digits and dashes are allowed
        kernel name `a\nb` contains `\n`: only lower-case letters, digits and dashes are allowed
        ");
    }

    #[test]
    fn corrections() {
        for (wrong, right) in [
            ("my_kernel", Some("my-kernel")),
            ("My Kernel", Some("my-kernel")),
            ("9lives", Some("lives")),
            ("ab-", Some("ab")),
            ("a", None),
            ("日本", None),
        ] {
            assert_eq!(KernelName::corrected(wrong).as_ref().map(KernelName::as_str), right, "{wrong}");
        }
    }

    #[test]
    fn json() {
        assert_eq!(serde_json::to_string(&KernelName::new("relu").unwrap()).unwrap(), "\"relu\"");
        assert_eq!(serde_json::from_str::<KernelName>("\"relu\"").unwrap().to_string(), "relu");
        assert!(serde_json::from_str::<KernelName>("\"Relu\"").is_err());
    }

    proptest! {
        #[test]
        fn exactly_the_pattern(name in "[a-z][-a-z0-9]{0,8}[a-z0-9]") {
            prop_assert!(KernelName::new(&name).is_ok());
            prop_assert_eq!(KernelName::corrected(&name), KernelName::new(&name).ok());
        }

        #[test]
        fn a_correction_is_valid(text in "\\PC{0,12}") {
            if let Some(name) = KernelName::corrected(&text) {
                prop_assert_eq!(KernelName::new(name.as_str()), Ok(name));
            }
        }
    }
}
