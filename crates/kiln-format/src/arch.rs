//! Architectures that device code is compiled for: CUDA capabilities, AMD GPU targets, NPU targets.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::suggest::quoted;
use crate::text_value::text_value;

/// A CUDA capability as `cuda-capabilities` lists it: `^[0-9]+\.[0-9]+[af]?(\+PTX)?$`, such as `9.0a` or `12.0+PTX`.
///
/// Ordered numerically: by major, minor, suffix, then without PTX before with PTX.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CudaCapability {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
    /// The letter after the numbers.
    pub suffix: Option<CudaSuffix>,
    /// Whether PTX is embedded as well, so that newer devices can compile it.
    pub ptx: bool,
}

/// The letter of a [`CudaCapability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CudaSuffix {
    /// `a`: features of exactly this architecture.
    Arch,
    /// `f`: features of this family, from this minor on.
    Family,
}

/// An AMD GPU target as `rocm-archs` lists it: `^gfx[0-9a-f]{3,5}$`, such as `gfx90a` or `gfx1100`.
///
/// Ordered numerically: by major, minor and stepping.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RocmArch(String);

/// An NPU target as `npu-archs` lists it: `^dav-[0-9a-z]+$`, such as `dav-2201`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NpuArch(String);

/// Why a text is no architecture of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {} is not of the form {form}", quoted(.text))]
pub struct ArchError {
    /// The text.
    pub text: String,
    /// What it was read as: `capability` or `architecture`.
    pub kind: &'static str,
    /// The form, by examples in backticks.
    pub form: &'static str,
}

impl FromStr for CudaCapability {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Self, ArchError> {
        let error = || ArchError { text: text.to_owned(), kind: "capability", form: "`9.0`, `9.0a` or `9.0+PTX`" };
        let (rest, ptx) = match text.strip_suffix("+PTX") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (rest, suffix) = match (rest.strip_suffix('a'), rest.strip_suffix('f')) {
            (Some(rest), _) => (rest, Some(CudaSuffix::Arch)),
            (_, Some(rest)) => (rest, Some(CudaSuffix::Family)),
            _ => (rest, None),
        };
        let (major, minor) = rest.split_once('.').ok_or_else(error)?;
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().map_err(|_| error()),
            false => Err(error()),
        };
        Ok(Self { major: number(major)?, minor: number(minor)?, suffix, ptx })
    }
}

impl fmt::Display for CudaCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        f.write_str(match self.suffix {
            None => "",
            Some(CudaSuffix::Arch) => "a",
            Some(CudaSuffix::Family) => "f",
        })?;
        f.write_str(if self.ptx { "+PTX" } else { "" })
    }
}

impl Ord for CudaCapability {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |c: &Self| (c.major, c.minor, c.suffix, c.ptx);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for CudaCapability {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl RocmArch {
    /// The target as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Major, minor and stepping: the last digit is the stepping, the one before it the minor, both hexadecimal.
    pub fn numbers(&self) -> (u32, u32, u32) {
        let digits = self.0.strip_prefix("gfx").unwrap_or_default();
        let number = |range: &str| u32::from_str_radix(range, 16).unwrap_or(0);
        let (rest, stepping) = digits.split_at(digits.len().saturating_sub(1));
        let (major, minor) = rest.split_at(rest.len().saturating_sub(1));
        // The major is written in decimal: gfx1100 is 11.0.0.
        (major.parse().unwrap_or_else(|_| number(major)), number(minor), number(stepping))
    }
}

impl FromStr for RocmArch {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Self, ArchError> {
        let valid = text
            .strip_prefix("gfx")
            .is_some_and(|digits| (3..=5).contains(&digits.len()) && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        if !valid {
            return Err(ArchError { text: text.to_owned(), kind: "architecture", form: "`gfx942`" });
        }
        Ok(Self(text.to_owned()))
    }
}

text_value!(RocmArch: Display);

impl Ord for RocmArch {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers().cmp(&other.numbers()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for RocmArch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl NpuArch {
    /// The target as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NpuArch {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Self, ArchError> {
        let valid = text
            .strip_prefix("dav-")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z')));
        if !valid {
            return Err(ArchError { text: text.to_owned(), kind: "architecture", form: "`dav-2201`" });
        }
        Ok(Self(text.to_owned()))
    }
}

text_value!(NpuArch: Display);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn capabilities() {
        for text in ["8.0", "9.0a", "10.0f", "12.0+PTX", "10.3a+PTX"] {
            assert_eq!(text.parse::<CudaCapability>().unwrap().to_string(), text);
        }
        for text in ["sm_90", "90", "9.", ".0", "9.0b", "9.0+ptx", "9.0af", "9.0 ", "+9.0", "99999999999.0", ""] {
            assert!(text.parse::<CudaCapability>().is_err(), "{text}");
        }
        assert_eq!(
            "sm_90".parse::<CudaCapability>().unwrap_err().to_string(),
            "capability `sm_90` is not of the form `9.0`, `9.0a` or `9.0+PTX`"
        );
    }

    #[test]
    fn capabilities_sort_by_number() {
        let mut all: Vec<CudaCapability> =
            ["10.0", "9.0+PTX", "12.0", "9.0", "7.0", "9.0f", "9.0a", "9.0a+PTX"].iter().map(|text| text.parse().unwrap()).collect();
        all.sort();
        assert_eq!(
            all.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["7.0", "9.0", "9.0+PTX", "9.0a", "9.0a+PTX", "9.0f", "10.0", "12.0"]
        );
    }

    #[test]
    fn rocm() {
        let mut all: Vec<RocmArch> =
            ["gfx1100", "gfx942", "gfx90a", "gfx1030", "gfx950", "gfx908"].iter().map(|text| text.parse().unwrap()).collect();
        all.sort();
        assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100"]);
        assert_eq!("gfx90a".parse::<RocmArch>().unwrap().numbers(), (9, 0, 10));
        assert_eq!("gfx1201".parse::<RocmArch>().unwrap().numbers(), (12, 0, 1));
        for text in ["mi300", "gfx", "gfx94", "gfx94212x", "gfx94g", "GFX942", "gfx942:xnack+", "gfx123456"] {
            assert!(text.parse::<RocmArch>().is_err(), "{text}");
        }
        assert_eq!("mi300".parse::<RocmArch>().unwrap_err().to_string(), "architecture `mi300` is not of the form `gfx942`");
    }

    #[test]
    fn npu() {
        assert_eq!("dav-2201".parse::<NpuArch>().unwrap().to_string(), "dav-2201");
        assert_eq!("dav-2201".parse::<NpuArch>().unwrap().as_str(), "dav-2201");
        for text in ["dav-", "dav2201", "dav-22A", "2201"] {
            assert!(text.parse::<NpuArch>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn rocm_order_is_total(a in "gfx[0-9a-f]{3,5}", b in "gfx[0-9a-f]{3,5}") {
            let (x, y): (RocmArch, RocmArch) = (a.parse().unwrap(), b.parse().unwrap());
            prop_assert_eq!(x.cmp(&y), y.cmp(&x).reverse());
            prop_assert_eq!(x.cmp(&y) == Ordering::Equal, a == b);
            prop_assert_eq!(x.as_str(), a);
        }
    }
}
