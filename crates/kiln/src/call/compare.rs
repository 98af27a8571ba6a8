//! Comparing results.

use std::fmt;

use kiln_ffi::Dtype;

/// How far apart two elements may be: `absolute + relative * |expected|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The part that does not grow with the number.
    pub absolute: f64,
    /// The part that does.
    pub relative: f64,
}

impl Tolerance {
    /// What rounding a few times comes to in a type; nothing for whole numbers.
    pub fn of(dtype: Dtype) -> Self {
        let some = 16.0 * dtype.epsilon();
        Self { absolute: some, relative: some }
    }

    fn allows(self, got: f64, expected: f64) -> bool {
        // Infinities are equal or not, and a number that is none stands for any other.
        if got == expected || (got.is_nan() && expected.is_nan()) {
            return true;
        }
        // Near an infinity there is nothing, and as a part of one every difference would be small.
        got.is_finite() && expected.is_finite() && (got - expected).abs() <= self.absolute + self.relative * expected.abs()
    }
}

/// Elements that are not what they should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// The first one's index, in the order of a contiguous tensor.
    pub first: usize,
    /// What it is.
    pub got: f64,
    /// What it should be.
    pub expected: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, of, first, got, expected } = self;
        write!(f, "{count} of {of} elements differ: element {first} is {got}, expected {expected}")
    }
}

/// Compares elements, in the order of contiguous tensors.
///
/// # Errors
/// With the elements that differ, or their numbers if these do.
pub fn compare(got: &[f64], expected: &[f64], tolerance: Tolerance) -> Result<(), String> {
    if got.len() != expected.len() {
        return Err(format!("there are {} elements, expected {}", got.len(), expected.len()));
    }
    let pairs = got.iter().zip(expected).enumerate();
    let mut wrong = pairs.filter(|(_, (got, expected))| !tolerance.allows(**got, **expected));
    match wrong.next() {
        None => Ok(()),
        Some((first, (one, other))) => {
            let count = 1 + wrong.count();
            Err(Difference { count, of: got.len(), first, got: *one, expected: *other }.to_string())
        }
    }
}

/// The numbers in the bytes of elements; none for a type that Kiln does not know.
pub fn numbers(dtype: Dtype, elements: &[u8]) -> Option<Vec<f64>> {
    elements.chunks_exact(dtype.size().max(1)).map(|element| dtype.decode(element)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told() {
        let tolerance = Tolerance { absolute: 0.01, relative: 0.1 };
        assert_eq!(compare(&[1.0, 1.1, 0.009, f64::NAN, f64::INFINITY], &[1.0, 1.0, 0.0, f64::NAN, f64::INFINITY], tolerance), Ok(()));
        let wrong = compare(&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0], tolerance);
        assert_eq!(wrong.unwrap_err(), "2 of 3 elements differ: element 1 is 2, expected 1");
        for (got, expected) in
            [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0), (1.0, f64::INFINITY), (f64::NEG_INFINITY, f64::INFINITY)]
        {
            let default = Tolerance::of(Dtype::FLOAT32);
            for tolerance in [default, Tolerance { absolute: 1e300, relative: 0.0 }, Tolerance { absolute: 0.0, relative: 1e300 }] {
                assert!(compare(&[got], &[expected], tolerance).is_err(), "{got} for {expected}");
                assert!(compare(&[-got], &[-expected], tolerance).is_err(), "{} for {}", -got, -expected);
                assert_eq!(compare(&[expected, got], &[expected, got], tolerance), Ok(()));
            }
        }
        assert!(compare(&[f64::INFINITY], &[1e308], Tolerance { absolute: 0.0, relative: 1e3 }).is_err());
        assert_eq!(compare(&[], &[1.0], tolerance).unwrap_err(), "there are 0 elements, expected 1");
    }

    #[test]
    fn whole_numbers_are_exact() {
        let tolerance = Tolerance::of("int32".parse().unwrap());
        assert!(compare(&[3.0], &[4.0], tolerance).is_err());
        assert!(Tolerance::of("bfloat16".parse().unwrap()).relative > Tolerance::of("float32".parse().unwrap()).relative);
    }
}
