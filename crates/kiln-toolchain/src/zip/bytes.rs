//! Little-endian numbers out of slices, without panics.

/// The two bytes at `at`.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// The four bytes at `at`.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// The eight bytes at `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// `len` bytes from `at` on.
pub(super) fn slice_at(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// `N` bytes from `at` on.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    slice_at(bytes, at, N)?.try_into().ok()
}
