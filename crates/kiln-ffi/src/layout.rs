//! How the elements of a tensor lie in memory.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::Dtype;

/// Shape, strides and element type of a tensor whose first element comes first in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dtype: Dtype,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// Why there is no tensor of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A negative extent.
    #[error("a shape has no negative extents")]
    Negative,
    /// More bytes than can be counted.
    #[error("the tensor is too large")]
    TooLarge,
    /// Strides that do not go with the shape.
    #[error("there are {strides} strides for {extents} extents")]
    Strides {
        /// How many extents.
        extents: usize,
        /// How many strides.
        strides: usize,
    },
    /// A stride that leads back.
    #[error("strides must not be negative")]
    Backwards,
}

impl Layout {
    /// A tensor whose elements lie one after the other, the last extent running fastest.
    ///
    /// # Errors
    /// When an extent is negative, or the whole is too large.
    pub fn contiguous(dtype: Dtype, shape: &[i64]) -> Result<Self, LayoutError> {
        let mut strides = vec![1_i64; shape.len()];
        let mut next = 1_i64;
        for (stride, extent) in strides.iter_mut().zip(shape).rev() {
            *stride = next;
            // Without elements nothing is counted by them.
            next = match next.checked_mul((*extent).max(1)) {
                Some(product) => product,
                None if shape.contains(&0) => i64::MAX,
                None => return Err(LayoutError::TooLarge),
            };
        }
        Self::strided(dtype, shape, &strides)
    }

    /// A tensor with `strides` elements from one index to the next.
    ///
    /// # Errors
    /// When an extent or a stride is negative, their numbers differ, or the whole is too large.
    pub fn strided(dtype: Dtype, shape: &[i64], strides: &[i64]) -> Result<Self, LayoutError> {
        if shape.iter().any(|extent| *extent < 0) {
            return Err(LayoutError::Negative);
        }
        if shape.len() != strides.len() {
            return Err(LayoutError::Strides { extents: shape.len(), strides: strides.len() });
        }
        if strides.iter().any(|stride| *stride < 0) {
            return Err(LayoutError::Backwards);
        }
        let layout = Self { dtype, shape: shape.to_vec(), strides: strides.to_vec() };
        let span = layout.checked_span().ok_or(LayoutError::TooLarge)?;
        let count = if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent)) };
        let count = count.ok_or(LayoutError::TooLarge)?;
        // The elements also have to fit one after the other, which strides of zero do not show.
        for elements in [span, count] {
            let bytes = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(dtype.size()));
            if bytes.is_none_or(|bytes| bytes > isize::MAX as usize / 2) {
                return Err(LayoutError::TooLarge);
            }
        }
        Ok(layout)
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The distance of neighbours along each extent, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// How many elements there are.
    pub fn count(&self) -> usize {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product()
    }

    /// Bytes from the first element to the end of the last; zero for a tensor without elements.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.checked_span().unwrap_or(0)).unwrap_or(0).saturating_mul(self.dtype.size())
    }

    /// Elements from the first to behind the last.
    fn checked_span(&self) -> Option<i64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let steps = self.shape.iter().zip(&self.strides);
        steps.map(|(extent, stride)| (extent - 1).checked_mul(*stride)).try_fold(1_i64, |sum, steps| sum.checked_add(steps?))
    }

    /// Where each element begins, in bytes from the first, in the order of a contiguous tensor.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let mut index = vec![0_i64; self.shape.len()];
        (0..self.count()).map(move |_| {
            let element: i64 = index.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
            for (at, extent) in index.iter_mut().zip(&self.shape).rev() {
                *at += 1;
                if *at < *extent {
                    break;
                }
                *at = 0;
            }
            usize::try_from(element).unwrap_or(0) * self.dtype.size()
        })
    }

    /// Whether the elements lie one after the other.
    pub fn is_contiguous(&self) -> bool {
        Self::contiguous(self.dtype, &self.shape).is_ok_and(|contiguous| {
            let differs = |((extent, own), other): ((&i64, &i64), &i64)| *extent > 1 && own != other;
            self.count() == 0 || !self.shape.iter().zip(&self.strides).zip(&contiguous.strides).any(differs)
        })
    }

    /// The first two elements that lie in the same place and are not of the same of `values`, which are in the order of a contiguous
    /// tensor.
    pub fn contradiction<T: PartialEq>(&self, values: &[T]) -> Option<(usize, usize)> {
        if self.is_contiguous() {
            return None;
        }
        let mut seen = BTreeMap::new();
        self.offsets().zip(values).enumerate().find_map(|(index, (at, value))| {
            let (first, other) = *seen.entry(at).or_insert((index, value));
            (other != value).then_some((first, index))
        })
    }

    /// The elements of `memory`, one after the other. Elements that lie outside it are left out.
    pub fn gather(&self, mut memory: Vec<u8>) -> Vec<u8> {
        if self.is_contiguous() {
            memory.truncate(self.bytes());
            return memory;
        }
        let size = self.dtype.size();
        self.offsets().filter_map(|at| memory.get(at..at + size)).flatten().copied().collect()
    }

    /// Puts `elements`, which lie one after the other, where they belong in `memory`.
    pub fn scatter(&self, elements: &[u8], memory: &mut [u8]) {
        let size = self.dtype.size();
        for (at, element) in self.offsets().zip(elements.chunks_exact(size.max(1))) {
            if let Some(place) = memory.get_mut(at..at + size) {
                place.copy_from_slice(element);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(shape: &[i64], strides: &[i64]) -> Result<Layout, LayoutError> {
        Layout::strided("int16".parse().unwrap(), shape, strides)
    }

    #[test]
    fn elements_are_found_where_strides_say() {
        let transposed = strided(&[2, 3], &[1, 2]).unwrap();
        assert_eq!(transposed.offsets().collect::<Vec<_>>(), [0, 4, 8, 2, 6, 10]);
        assert_eq!((transposed.bytes(), transposed.count(), transposed.is_contiguous()), (12, 6, false));
        let padded = strided(&[2, 2], &[4, 1]).unwrap();
        assert_eq!((padded.bytes(), padded.offsets().collect::<Vec<_>>()), (12, vec![0, 2, 8, 10]));
        let mut memory = vec![9; 12];
        padded.scatter(&[1, 0, 2, 0, 3, 0, 4, 0], &mut memory);
        assert_eq!(memory, [1, 0, 2, 0, 9, 9, 9, 9, 3, 0, 4, 0]);
        assert_eq!(padded.gather(memory), [1, 0, 2, 0, 3, 0, 4, 0]);
    }

    #[test]
    fn odd_shapes() {
        let scalar = strided(&[], &[]).unwrap();
        assert_eq!((scalar.count(), scalar.bytes(), scalar.is_contiguous()), (1, 2, true));
        let none = strided(&[3, 0], &[1, 1]).unwrap();
        assert_eq!((none.count(), none.bytes(), none.offsets().count(), none.is_contiguous()), (0, 0, 0, true));
        let same = strided(&[4], &[0]).unwrap();
        assert_eq!((same.bytes(), same.offsets().collect::<Vec<_>>()), (2, vec![0; 4]));
        assert!(strided(&[1, 5], &[77, 1]).unwrap().is_contiguous());
        assert_eq!(strided(&[-1], &[1]), Err(LayoutError::Negative));
        assert_eq!(strided(&[2], &[-1]), Err(LayoutError::Backwards));
        assert_eq!(strided(&[2], &[]), Err(LayoutError::Strides { extents: 1, strides: 0 }));
        for huge in [strided(&[i64::MAX], &[1]), strided(&[i64::MAX, i64::MAX], &[0, 0]), strided(&[1 << 62], &[4])] {
            assert_eq!(huge, Err(LayoutError::TooLarge));
        }
        assert_eq!(strided(&[2, 2], &[0, 1]).unwrap().contradiction(&[1, 2, 1, 4]), Some((1, 3)));
        assert_eq!(strided(&[2, 2], &[0, 1]).unwrap().contradiction(&[1, 2, 1, 2]), None);
        assert_eq!(strided(&[2, 2], &[1, 1]).unwrap().contradiction(&[1, 2, 3, 4]), Some((1, 2)));
        assert_eq!(strided(&[2, 2], &[1, 2]).unwrap().contradiction(&[1, 2, 3, 4]), None);
        let contiguous = |shape: &[i64]| Layout::contiguous(Dtype::FLOAT32, shape);
        // No elements are no elements, whatever else the shape says.
        for none in [&[i64::MAX, 0][..], &[1 << 32, 1 << 32, 0], &[0, 1 << 32, 1 << 32], &[1 << 32, 0, 1 << 62]] {
            let none = contiguous(none).unwrap();
            assert_eq!((none.count(), none.bytes(), none.is_contiguous(), none.offsets().count()), (0, 0, true, 0));
        }
        assert_eq!(contiguous(&[i64::MAX, 2, 2]), Err(LayoutError::TooLarge));
        assert_eq!(contiguous(&[0, 3]).unwrap().strides(), [3, 1]);
    }
}
