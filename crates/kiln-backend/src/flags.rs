//! Flags of the author that are read before they reach a compiler.

use crate::error::BackendError;

/// Flags that break an extension wherever they are used, each with what it would do.
const REFUSED: &[(&str, &str)] = &[
    ("-static-libstdc++", "a second C++ runtime in the process breaks exceptions and locales that cross the extension's border"),
    ("-static-libgcc", "the first exception that leaves the extension would end the process"),
];

/// Checks the flags of a component.
///
/// # Errors
/// [`BackendError::RefusedFlag`] for the first flag that can never work.
pub fn check_user_flags(flags: &[String]) -> Result<(), BackendError> {
    for flag in flags {
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| refused == flag) {
            return Err(BackendError::RefusedFlag { flag: flag.clone(), reason: (*reason).to_owned() });
        }
    }
    Ok(())
}

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
    use super::{check_user_flags, user_cxx_level};

    fn flags(text: &[&str]) -> Vec<String> {
        text.iter().map(|flag| (*flag).to_owned()).collect()
    }

    #[test]
    fn the_last_std_flag_counts() {
        assert_eq!(user_cxx_level(&flags(&["-O2"])), None);
        assert_eq!(user_cxx_level(&flags(&["-std=c++17"])), Some(17));
        assert_eq!(user_cxx_level(&flags(&["-std=c++17", "--std=gnu++2a"])), Some(20));
        assert_eq!(user_cxx_level(&flags(&["-std=c11"])), None);
        assert_eq!(user_cxx_level(&flags(&["-std=c++98"])), Some(3));
    }

    #[test]
    fn a_static_runtime_is_refused_with_its_reason() {
        let error = check_user_flags(&flags(&["-O2", "-static-libgcc"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`-static-libgcc` cannot be used: the first exception that leaves the extension would end the process"
        );
        assert!(check_user_flags(&flags(&["-O2", "-static-libasan"])).is_ok());
    }
}
