//! Sizes as people write them.

/// A size as typed, in bytes: a number, with k, M, G or T for powers of 1000, or Ki, Mi, Gi or Ti for powers of 1024; `B` may follow.
pub fn size_of_text(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix('B').unwrap_or(text);
    let (text, base) = text.strip_suffix('i').map_or((text, 1000_u64), |text| (text, 1024));
    let (number, power) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (text.get(..at)?, 1),
        (at, 'M') => (text.get(..at)?, 2),
        (at, 'G') => (text.get(..at)?, 3),
        (at, 'T') => (text.get(..at)?, 4),
        _ if base == 1000 => (text, 0),
        _ => return None,
    };
    let unit = base.checked_pow(power)?;
    let (whole, tenths) = match number.trim().split_once('.') {
        None => (number.trim(), 0),
        Some((whole, digit)) if digit.len() == 1 => (whole, digit.parse::<u64>().ok()?),
        Some(_) => return None,
    };
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(unit / 10 * tenths)
}

#[cfg(test)]
mod tests {
    use super::size_of_text;

    #[test]
    fn sizes_are_read_as_typed() {
        for (text, bytes) in
            [("0", 0), ("5G", 5_000_000_000), ("1.5 GB", 1_500_000_000), ("512MiB", 536_870_912), ("7k", 7000), ("12B", 12)]
        {
            assert_eq!(size_of_text(text), Some(bytes), "{text}");
        }
        for text in ["", "G", "-1", "1.25G", "5X", "3i", "99999999999T", "1 2"] {
            assert_eq!(size_of_text(text), None, "{text}");
        }
    }
}
