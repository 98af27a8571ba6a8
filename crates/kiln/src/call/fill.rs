//! The elements that tensors have before a call.

use kiln_ffi::{Dtype, Layout};

use super::argument::Fill;

/// The elements, one after the other; none for a type that Kiln cannot make. `seed` tells apart the tensors of a call.
pub fn elements(layout: &Layout, fill: &Fill, seed: u64) -> Option<Vec<u8>> {
    let dtype = layout.dtype();
    let count = layout.count();
    let mut bytes = Vec::new();
    bytes.try_reserve(count.checked_mul(dtype.size())?).ok()?;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    for index in 0..count {
        #[expect(clippy::cast_precision_loss, reason = "a tensor with more elements than that fits nowhere")]
        let value = match fill {
            Fill::Random => random.value(dtype),
            Fill::Range => index as f64,
            Fill::Value(value) => *value,
            Fill::Values(values) => *values.get(index)?,
        };
        dtype.encode_into(value, &mut bytes)?;
    }
    Some(bytes)
}

/// What elements would be meant to be and cannot: the first such value. Random ones always can.
pub fn misfit(layout: &Layout, fill: &Fill) -> Option<f64> {
    let held = |value: &f64| layout.dtype().holds(*value);
    match fill {
        Fill::Random => None,
        #[expect(clippy::cast_precision_loss, reason = "a tensor with more elements than that fits nowhere")]
        Fill::Range => layout.count().checked_sub(1).map(|last| last as f64).filter(|last| !held(last)),
        Fill::Value(value) => Some(*value).filter(|value| !held(value)),
        Fill::Values(values) => values.iter().copied().find(|value| !held(value)),
    }
}

/// Numbers without a pattern, the same in every run: splitmix64 of Steele, Lea and Flood.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between -1 and 1 in steps that every type of fractions holds but for rounding; small whole numbers otherwise.
    fn value(&mut self, dtype: Dtype) -> f64 {
        let bits = self.next() >> 40;
        match (dtype.is_float(), dtype.code) {
            #[expect(clippy::cast_precision_loss, reason = "24 bits")]
            (true, _) => bits as f64 / f64::from(1 << 23) - 1.0,
            #[expect(clippy::cast_precision_loss, reason = "at most 16")]
            (false, 0) => (bits % 17) as f64 - 8.0,
            #[expect(clippy::cast_precision_loss, reason = "at most 16")]
            (false, _) => (bits % 17) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: &str, fill: &Fill, seed: u64) -> Vec<f64> {
        let dtype: Dtype = dtype.parse().unwrap();
        let bytes = elements(&Layout::contiguous(dtype, &[40, 5]).unwrap(), fill, seed).unwrap();
        bytes.chunks(dtype.size()).map(|element| dtype.decode(element).unwrap()).collect()
    }

    #[test]
    fn random_elements_are_the_same_in_every_run() {
        let first = of("float32", &Fill::Random, 0);
        assert_eq!(first, of("float32", &Fill::Random, 0));
        assert_ne!(first, of("float32", &Fill::Random, 1));
        assert!(first.iter().all(|value| value.abs() <= 1.0));
        assert!(first.iter().any(|value| *value < -0.5) && first.iter().any(|value| *value > 0.5));
        assert!(of("uint8", &Fill::Random, 0).iter().all(|value| (0.0..=16.0).contains(value)));
        assert!(of("int8", &Fill::Random, 0).iter().any(|value| *value < 0.0));
    }

    #[test]
    fn other_elements_are_what_was_asked_for() {
        assert_eq!(of("int64", &Fill::Range, 0).last(), Some(&199.0));
        assert!(of("bfloat16", &Fill::Value(1.5), 0).iter().all(|value| *value == 1.5));
        let two = Layout::contiguous(Dtype::FLOAT32, &[2]).unwrap();
        let bytes = Layout::contiguous("int8".parse().unwrap(), &[129]).unwrap();
        assert_eq!(
            [Fill::Range, Fill::Value(-129.0), Fill::Value(-128.0), Fill::Random].map(|fill| misfit(&bytes, &fill)),
            [Some(128.0), Some(-129.0), None, None]
        );
        assert_eq!(misfit(&two, &Fill::Values(vec![1e38, 1e39])), Some(1e39));
        assert_eq!(misfit(&Layout::contiguous("bool".parse().unwrap(), &[0]).unwrap(), &Fill::Range), None);
        assert_eq!(elements(&two, &Fill::Values(vec![1.0]), 0), None);
    }
}
