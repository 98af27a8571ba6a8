//! The manylinux policies: which versions of which libraries a file may need, as version-reading checkers judge it.

use std::collections::{BTreeMap, BTreeSet};

/// The policies as text; its head says where they come from and how to read them.
const TABLE: &str = include_str!("../data/manylinux.txt");
/// What the table was made from.
pub(crate) const SOURCE: &str = "auditwheel 6.8.2";
/// The policy of portable extensions.
pub const DEFAULT_POLICY: &str = "manylinux_2_28";

/// One policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its name, such as `manylinux_2_28`.
    pub name: String,
    /// Older names of it.
    pub aliases: Vec<String>,
    /// Greater for older systems.
    pub priority: u32,
    /// Libraries that every such system has.
    pub libraries: BTreeSet<String>,
    /// Allowed versions by processor and prefix: `x86_64`, `GLIBC`, `2.28`.
    versions: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// Names of a library that must not be imported.
    forbidden: BTreeMap<String, BTreeSet<String>>,
}

/// Why there is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The table has a malformed line.
    #[error("the policy table is damaged: `{line}`")]
    Damaged {
        /// The line.
        line: String,
    },
    /// No policy has the name.
    #[error("there is no policy `{name}`: known are {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
}

/// All policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies(Vec<Policy>);

impl Policies {
    /// Those that are compiled in.
    ///
    /// # Errors
    /// When the compiled-in table is damaged; the tests see to it that it is not.
    pub fn embedded() -> Result<Self, PolicyError> {
        Self::parse(TABLE)
    }

    /// Reads a table: each policy begins with a line `policy NAME`, and lines that begin with `#` are comments.
    ///
    /// # Errors
    /// [`PolicyError::Damaged`] with the malformed line.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policies: Vec<Policy> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let damaged = || PolicyError::Damaged { line: line.to_owned() };
            let mut words = line.split(' ');
            let key = words.next().ok_or_else(damaged)?;
            if key == "policy" {
                policies.push(Policy { name: words.next().ok_or_else(damaged)?.to_owned(), ..Policy::default() });
                continue;
            }
            let policy = policies.last_mut().ok_or_else(damaged)?;
            match key {
                "aliases" => policy.aliases = words.map(str::to_owned).collect(),
                "priority" => policy.priority = words.next().and_then(|number| number.parse().ok()).ok_or_else(damaged)?,
                "libraries" => policy.libraries = words.map(str::to_owned).collect(),
                "versions" => {
                    let (processor, prefix) = (words.next().ok_or_else(damaged)?, words.next().ok_or_else(damaged)?);
                    let prefixes = policy.versions.entry(processor.to_owned()).or_default();
                    prefixes.insert(prefix.to_owned(), words.map(str::to_owned).collect());
                }
                "forbidden" => {
                    let library = words.next().ok_or_else(damaged)?;
                    policy.forbidden.insert(library.to_owned(), words.map(str::to_owned).collect());
                }
                _ => return Err(damaged()),
            }
        }
        Ok(Self(policies))
    }

    /// The policy of this name or alias.
    ///
    /// # Errors
    /// [`PolicyError::Unknown`] with the names there are.
    pub fn get(&self, name: &str) -> Result<&Policy, PolicyError> {
        self.0
            .iter()
            .find(|policy| policy.name == name || policy.aliases.iter().any(|alias| alias == name))
            .ok_or_else(|| PolicyError::Unknown { name: name.to_owned(), known: self.0.iter().map(|policy| policy.name.clone()).collect() })
    }

    /// Every policy, in the table's order.
    pub fn all(&self) -> &[Policy] {
        &self.0
    }
}

/// What a policy says of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is allowed.
    Allowed,
    /// It is not.
    Refused,
    /// The policy does not know its prefix: the library decides.
    NotListed,
}

impl Policy {
    /// Whether it says anything about a processor.
    pub(crate) fn knows(&self, processor: &str) -> bool {
        self.versions.contains_key(processor)
    }

    /// Whether `version`, such as `GLIBC_2.28` or `CXXABI_TM_1`, may be needed. Versions are compared as text: not all have an order.
    pub(crate) fn verdict(&self, processor: &str, version: &str) -> Verdict {
        let (prefix, rest) = version.split_once('_').unwrap_or((version, ""));
        match self.versions.get(processor).and_then(|prefixes| prefixes.get(prefix)) {
            None => Verdict::NotListed,
            Some(allowed) if allowed.contains(rest) => Verdict::Allowed,
            Some(_) => Verdict::Refused,
        }
    }

    /// Whether the policy allows a version by name; one of a library that it does not know is not allowed.
    pub fn allows(&self, processor: &str, version: &str) -> bool {
        self.verdict(processor, version) == Verdict::Allowed
    }

    /// The allowed version with this prefix that is the highest by its numbers, for messages.
    pub(crate) fn highest(&self, processor: &str, version: &str) -> Option<String> {
        let (prefix, _) = version.split_once('_')?;
        let numbers = |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
        let allowed = self.versions.get(processor)?.get(prefix)?;
        let highest = allowed.iter().filter_map(|text| Some((numbers(text)?, text))).max()?.1;
        Some(format!("{prefix}_{highest}"))
    }

    /// Whether `name` of `library` must not be imported.
    pub(crate) fn forbids(&self, library: &str, name: &str) -> bool {
        self.forbidden.get(library).is_some_and(|names| names.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_has_its_maxima() {
        assert!(TABLE.contains(SOURCE));
        let policies = Policies::embedded().unwrap();
        let policy = policies.get(DEFAULT_POLICY).unwrap();
        let highest = ["GLIBC", "GLIBCXX", "CXXABI", "GCC", "LIBATOMIC", "ZLIB"]
            .map(|prefix| policy.highest("x86_64", &format!("{prefix}_1")).unwrap_or_default());
        assert_eq!(highest, ["GLIBC_2.28", "GLIBCXX_3.4.24", "CXXABI_1.3.11", "GCC_7.0.0", "LIBATOMIC_1.2", "ZLIB_1.2.9"]);
        for processor in ["x86_64", "aarch64", "i686", "ppc64le", "s390x", "armv7l"] {
            assert!(policy.knows(processor), "{processor}");
        }
        assert_eq!(policies.all().len(), 17);
    }

    #[test]
    fn versions_are_compared_as_text() {
        let policies = Policies::embedded().unwrap();
        let policy = policies.get("manylinux_2_28").unwrap();
        for (processor, version, verdict) in [
            ("x86_64", "GLIBC_2.28", Verdict::Allowed),
            ("x86_64", "GLIBC_2.29", Verdict::Refused),
            ("x86_64", "GLIBC_2.19", Verdict::Refused),
            ("x86_64", "CXXABI_TM_1", Verdict::Allowed),
            ("x86_64", "CXXABI_FLOAT128", Verdict::Allowed),
            ("aarch64", "CXXABI_FLOAT128", Verdict::Refused),
            ("aarch64", "GLIBC_2.2.5", Verdict::Refused),
            ("x86_64", "GLIBC_PRIVATE", Verdict::Refused),
            ("x86_64", "GLIBC_ABI_DT_RELR", Verdict::Refused),
            ("x86_64", "GLIBCXX_3.4.25", Verdict::Refused),
            ("x86_64", "libcudart.so.13", Verdict::NotListed),
        ] {
            assert_eq!(policy.verdict(processor, version), verdict, "{processor} {version}");
        }
    }

    #[test]
    fn aliases_and_unknown_names() {
        let policies = Policies::embedded().unwrap();
        assert_eq!(policies.get("manylinux2014").unwrap().name, "manylinux_2_17");
        assert!(
            policies.get("manylinux_2_99").unwrap_err().to_string().starts_with("there is no policy `manylinux_2_99`: known are linux, ")
        );
        assert!(policies.get("manylinux_2_28").unwrap().forbids("libz.so.1", "_dist_code"));
        for text in ["priority 1", "policy a\npriority x", "policy a\nnothing"] {
            assert!(Policies::parse(text).is_err(), "{text}");
        }
    }
}
