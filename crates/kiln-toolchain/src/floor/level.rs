//! Which floors there are.

use std::fmt;

use kiln_object::baseline::System;

/// The oldest systems that an extension is for, by the name of the policy that describes them (PEP 600).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FloorLevel {
    /// glibc 2.28, the C++ library of gcc 8.
    #[default]
    Manylinux2_28,
    /// glibc 2.34, the C++ library of gcc 11.
    Manylinux2_34,
}

impl FloorLevel {
    /// Every floor, the oldest first.
    pub const ALL: [Self; 2] = [Self::Manylinux2_28, Self::Manylinux2_34];

    /// The name of the policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manylinux2_28 => "manylinux_2_28",
            Self::Manylinux2_34 => "manylinux_2_34",
        }
    }

    /// The newest versions that a file of this floor may need, by the prefix of their names.
    pub fn newest(self) -> [(&'static str, &'static str); 4] {
        match self {
            Self::Manylinux2_28 => [("CXXABI", "1.3.11"), ("GCC", "7.0.0"), ("GLIBC", "2.28"), ("GLIBCXX", "3.4.24")],
            Self::Manylinux2_34 => [("CXXABI", "1.3.13"), ("GCC", "7.0.0"), ("GLIBC", "2.34"), ("GLIBCXX", "3.4.29")],
        }
    }

    /// The systems that it stands for.
    pub fn system(self) -> System {
        match self {
            Self::Manylinux2_28 => System::Glibc2_28,
            Self::Manylinux2_34 => System::Glibc2_34,
        }
    }
}

impl fmt::Display for FloorLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a project says about the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FloorChoice {
    /// This one.
    Level(FloorLevel),
    /// None: the result loads where the system is at least as new as this one.
    Host,
}

impl Default for FloorChoice {
    fn default() -> Self {
        Self::Level(FloorLevel::default())
    }
}

impl FloorChoice {
    /// The word for no floor.
    const HOST: &str = "host";

    /// Reads the name of a policy, or `host`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::HOST {
            return Some(Self::Host);
        }
        FloorLevel::ALL.into_iter().find(|level| level.as_str() == text).map(Self::Level)
    }

    /// What [`FloorChoice::parse`] reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Level(level) => level.as_str(),
            Self::Host => Self::HOST,
        }
    }

    /// Every choice, for messages.
    pub fn all() -> impl Iterator<Item = Self> {
        FloorLevel::ALL.into_iter().map(Self::Level).chain([Self::Host])
    }
}

impl fmt::Display for FloorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
