//! Types of tensor elements.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What a type code means, as DLPack numbers them.
const CODES: [(u8, &str); 5] = [(0, "int"), (1, "uint"), (2, "float"), (4, "bfloat"), (6, "bool")];

/// Names that people use.
const SHORT: [(&str, &str); 13] = [
    ("bf16", "bfloat16"),
    ("double", "float64"),
    ("f16", "float16"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("float", "float32"),
    ("half", "float16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("i8", "int8"),
    ("int", "int32"),
    ("long", "int64"),
    ("u8", "uint8"),
];

/// The type of a tensor's elements, as DLPack has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dtype {
    /// DLPack's type code.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element.
    pub lanes: u16,
}

/// A text that names no type that Kiln can fill.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no dtype")]
pub struct DtypeError {
    /// The text.
    pub text: String,
}

impl DtypeError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        "the types are `bool`, `int8` to `int64`, `uint8` to `uint64`, `float16`, `bfloat16`, `float32` and `float64`".to_owned()
    }
}

impl Dtype {
    /// `float32`.
    pub const FLOAT32: Self = Self { code: 2, bits: 32, lanes: 1 };

    /// Bytes of one element.
    pub fn size(self) -> usize {
        (usize::from(self.bits) * usize::from(self.lanes)).div_ceil(8)
    }

    /// The value of an element, given its bytes in this machine's order. None for a type that Kiln does not know.
    pub fn decode(self, bytes: &[u8]) -> Option<f64> {
        let two = || Some(u16::from_ne_bytes(bytes.try_into().ok()?));
        let value = match (self.code, self.bits, self.lanes) {
            (0, 8, 1) => f64::from(i8::from_ne_bytes(bytes.try_into().ok()?)),
            (0, 16, 1) => f64::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            (0, 32, 1) => f64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            (0, 64, 1) => i64::from_ne_bytes(bytes.try_into().ok()?) as f64,
            (1, 8, 1) | (6, 8, 1) => f64::from(*bytes.first()?),
            (1, 16, 1) => f64::from(two()?),
            (1, 32, 1) => f64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (1, 64, 1) => u64::from_ne_bytes(bytes.try_into().ok()?) as f64,
            (2, 16, 1) => half_to_f64(two()?),
            (4, 16, 1) => f64::from(f32::from_bits(u32::from(two()?) << 16)),
            (2, 32, 1) => f64::from(f32::from_ne_bytes(bytes.try_into().ok()?)),
            (2, 64, 1) => f64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        };
        Some(value)
    }

    /// The bytes of the element that is nearest to `value`. None for a type that Kiln does not know.
    pub fn encode(self, value: f64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode_into(value, &mut bytes)?;
        Some(bytes)
    }

    /// Puts the bytes of the element that is nearest to `value` behind `bytes`. None for a type that Kiln does not know.
    pub fn encode_into(self, value: f64, bytes: &mut Vec<u8>) -> Option<()> {
        match (self.code, self.bits, self.lanes) {
            (0, 8, 1) => bytes.extend((value as i8).to_ne_bytes()),
            (0, 16, 1) => bytes.extend((value as i16).to_ne_bytes()),
            (0, 32, 1) => bytes.extend((value as i32).to_ne_bytes()),
            (0, 64, 1) => bytes.extend((value as i64).to_ne_bytes()),
            (1, 8, 1) => bytes.push(value as u8),
            (1, 16, 1) => bytes.extend((value as u16).to_ne_bytes()),
            (1, 32, 1) => bytes.extend((value as u32).to_ne_bytes()),
            (1, 64, 1) => bytes.extend((value as u64).to_ne_bytes()),
            (2, 16, 1) => bytes.extend(f64_to_half(value).to_ne_bytes()),
            (4, 16, 1) => bytes.extend(f32_to_bfloat(value as f32).to_ne_bytes()),
            (2, 32, 1) => bytes.extend((value as f32).to_ne_bytes()),
            (2, 64, 1) => bytes.extend(value.to_ne_bytes()),
            (6, 8, 1) => bytes.push(u8::from(value != 0.0)),
            _ => return None,
        }
        Some(())
    }

    /// Whether an element can be `value`, but for the rounding of fractions: whole numbers have a range and no fractions, and what a type
    /// of fractions would take for infinite is out of its range too. No for a type that Kiln does not know.
    pub fn holds(self, value: f64) -> bool {
        let range = |low: f64, high: f64| value.fract() == 0.0 && low <= value && value < high;
        let finite = |rounded: Option<f64>| rounded.is_some_and(|rounded| rounded.is_finite() || !value.is_finite());
        match (self.code, self.bits, self.lanes) {
            (0, 8 | 16 | 32 | 64, 1) => {
                let end = 2_f64.powi(i32::from(self.bits) - 1);
                range(-end, end)
            }
            (1, 8 | 16 | 32 | 64, 1) => range(0.0, 2_f64.powi(i32::from(self.bits))),
            (6, 8, 1) => range(0.0, 2.0),
            (2 | 4, ..) => finite(self.encode(value).and_then(|bytes| self.decode(&bytes))),
            _ => false,
        }
    }

    /// Whether a decoded value is just what the element held: whole numbers of 64 bits are rounded beyond 2^53.
    pub fn is_exact(self, value: f64) -> bool {
        !(matches!(self.code, 0 | 1) && self.bits == 64) || value.abs() < 2_f64.powi(53)
    }

    /// Whether its values have fractions.
    pub fn is_float(self) -> bool {
        matches!(self.code, 2 | 4)
    }

    /// The spacing of values near one: how far apart two results of equal worth may be. Zero for whole numbers.
    pub fn epsilon(self) -> f64 {
        match (self.code, self.bits) {
            (4, 16) => 2_f64.powi(-7),
            (2, 16) => 2_f64.powi(-10),
            (2, 32) => f64::from(f32::EPSILON),
            (2, 64) => f64::EPSILON,
            _ => 0.0,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CODES.iter().find(|(code, _)| *code == self.code) {
            Some((_, "bool")) if self.bits == 8 => f.write_str("bool")?,
            Some((_, name)) => write!(f, "{name}{}", self.bits)?,
            None => write!(f, "type {} of {} bits", self.code, self.bits)?,
        }
        if self.lanes == 1 { Ok(()) } else { write!(f, "x{}", self.lanes) }
    }
}

impl FromStr for Dtype {
    type Err = DtypeError;

    fn from_str(text: &str) -> Result<Self, DtypeError> {
        let wrong = || DtypeError { text: text.to_owned() };
        let name = text.strip_prefix("torch.").unwrap_or(text);
        let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
        if name == "bool" {
            return Ok(Self { code: 6, bits: 8, lanes: 1 });
        }
        let digits = name.find(|letter: char| letter.is_ascii_digit()).ok_or_else(wrong)?;
        let (kind, bits) = name.split_at(digits);
        let (code, _) = CODES.iter().find(|(_, known)| *known == kind).ok_or_else(wrong)?;
        let dtype = Self { code: *code, bits: bits.parse().map_err(|_| wrong())?, lanes: 1 };
        if dtype.encode(0.0).is_some() && dtype.to_string() == name { Ok(dtype) } else { Err(wrong()) }
    }
}

/// IEEE 754 binary16.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

/// IEEE 754 binary16, rounded to the nearest, ties to even.
fn f64_to_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return sign | 0x7e00;
    }
    // Below the smallest normal number the spacing stays the same.
    let exponent = if size < 2_f64.powi(-14) { -14 } else { size.log2().floor() as i32 };
    // The logarithm of a number just below a power of two may be rounded up to it.
    let exponent = if size < 2_f64.powi(exponent) && exponent > -14 { exponent - 1 } else { exponent };
    let units = (size / 2_f64.powi(exponent - 10)).round_ties_even();
    let (units, exponent) = if units >= 2048.0 { (1024.0, exponent + 1) } else { (units, exponent) };
    if exponent > 15 {
        return sign | 0x7c00;
    }
    if units < 1024.0 {
        return sign | units as u16;
    }
    sign | (((exponent + 15) as u16) << 10) | (units as u16 - 1024)
}

/// The upper half of a binary32, rounded to the nearest, ties to even.
fn f32_to_bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for name in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "bfloat16", "float32", "float64"] {
            assert_eq!(name.parse::<Dtype>().unwrap().to_string(), name);
        }
        assert_eq!("torch.bfloat16".parse::<Dtype>(), "bf16".parse());
        let wrong = [
            "",
            "uint",
            "float8",
            "int7",
            "float0032",
            "complex64",
            "int8x4",
            "bool8",
            "float99999",
            "Float32",
            "FP16",
            "int4",
            " float32",
            "float32 ",
            "float8_e4m3fn",
            "float32x4",
            "torch.",
            "torch.torch.float32",
            "größe8",
        ];
        for wrong in wrong {
            assert_eq!(wrong.parse::<Dtype>(), Err(DtypeError { text: wrong.to_owned() }));
        }
        assert_eq!(Dtype { code: 9, bits: 4, lanes: 2 }.to_string(), "type 9 of 4 bitsx2");
    }

    #[test]
    fn halves_are_exact_both_ways() {
        let half = "float16".parse::<Dtype>().unwrap();
        for bits in 0..=u16::MAX {
            let value = half.decode(&bits.to_ne_bytes()).unwrap();
            if !value.is_nan() {
                assert_eq!(half.encode(value).unwrap(), bits.to_ne_bytes(), "{bits:x} is {value}");
            }
        }
        // Half way between two: the even one. Above the largest: infinity.
        assert_eq!(f64_to_half(1.0 + 2_f64.powi(-11)), 0x3c00);
        assert_eq!(f64_to_half(1.0 + 3.0 * 2_f64.powi(-11)), 0x3c02);
        assert_eq!((f64_to_half(65519.0), f64_to_half(65520.0), f64_to_half(f64::NAN)), (0x7bff, 0x7c00, 0x7e00));
        assert_eq!(f64_to_half(1.0 - f64::EPSILON), 0x3c00);
    }

    #[test]
    fn what_a_type_cannot_hold() {
        let holds = |name: &str, value: f64| name.parse::<Dtype>().unwrap().holds(value);
        for (name, least, most) in [
            ("int8", -128.0, 127.0),
            ("uint8", 0.0, 255.0),
            ("int16", -32768.0, 32767.0),
            ("uint32", 0.0, 4_294_967_295.0),
            ("int64", -9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
            ("bool", 0.0, 1.0),
        ] {
            assert!(holds(name, least) && holds(name, most) && holds(name, -0.0), "{name}");
            let outside = [least * 1.01 - 1.0, most * 1.01 + 1.0, 0.5, f64::NAN, f64::INFINITY];
            assert_eq!(outside.map(|value| holds(name, value)), [false; 5], "{name}");
        }
        for (name, most) in [("float16", 65519.0), ("bfloat16", 3.39e38), ("float32", 3.4e38), ("float64", 1e308)] {
            assert!(
                [most, -most, 0.1, 1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].iter().all(|value| holds(name, *value)),
                "{name}"
            );
            assert_eq!(holds(name, most * 1.1), name == "float64", "{name}");
        }
        assert!(!Dtype { code: 5, bits: 64, lanes: 1 }.holds(0.0));
    }

    #[test]
    fn each_type_holds_what_it_can() {
        for (name, value) in [("int8", -128.0), ("uint8", 255.0), ("int64", -4e15), ("bfloat16", -1.5), ("float32", 0.25), ("bool", 1.0)] {
            let dtype: Dtype = name.parse().unwrap();
            let bytes = dtype.encode(value).unwrap();
            assert_eq!((bytes.len(), dtype.decode(&bytes)), (dtype.size(), Some(value)), "{name}");
        }
        let bfloat: Dtype = "bfloat16".parse().unwrap();
        assert_eq!(bfloat.encode(1.0 + 2_f64.powi(-8)).unwrap(), 0x3f80_u16.to_ne_bytes());
        assert!(bfloat.decode(&bfloat.encode(f64::NAN).unwrap()).unwrap().is_nan());
        assert_eq!(bfloat.decode(&[1]), None);
        let (int, double): (Dtype, Dtype) = ("int64".parse().unwrap(), "float64".parse().unwrap());
        let near = |value: i64| int.is_exact(int.decode(&value.to_ne_bytes()).unwrap());
        assert_eq!([1 << 53, (1 << 53) + 1, (1 << 53) - 1, i64::MIN].map(near), [false, false, true, false]);
        assert!(double.is_exact(1e300));
        assert_eq!(Dtype { code: 5, bits: 64, lanes: 1 }.decode(&[0; 8]), None);
    }
}
