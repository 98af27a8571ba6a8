//! The language level that flags ask for.

/// The C++ level that the last `-std=` of `flags` asks for, as a year such as 17 or 20; none without such a flag or with
/// one of an unknown form.
pub fn user_cxx_level(flags: &[String]) -> Option<u32> {
    let std = flags.iter().rev().find_map(|flag| flag.strip_prefix("-std=").or_else(|| flag.strip_prefix("--std=")))?;
    let digits = std.strip_prefix("gnu++").or_else(|| std.strip_prefix("c++"))?;
    match digits {
        "0x" => Some(11),
        "1y" => Some(14),
        "1z" => Some(17),
        "2a" => Some(20),
        "2b" => Some(23),
        "2c" => Some(26),
        // Years before 2011: far below anything that is compared here.
        "98" | "03" => Some(3),
        other => other.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::user_cxx_level;

    #[test]
    fn the_last_std_flag_counts() {
        let level = |flags: &[&str]| user_cxx_level(&flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>());
        assert_eq!(level(&["-O2"]), None);
        assert_eq!(level(&["-std=c++17"]), Some(17));
        assert_eq!(level(&["-std=c++17", "--std=gnu++2a"]), Some(20));
        assert_eq!(level(&["-std=c11"]), None);
        assert_eq!(level(&["-std=c++98"]), Some(3));
    }
}
