//! Which member names are safe to make files of.

/// Says what makes `name` unfit, if anything: it must be a relative path of plain parts on every platform.
pub(crate) fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("has no name");
    }
    if name.starts_with('/') {
        return Some("has an absolute path");
    }
    if name.contains('\\') {
        return Some("has a backslash in its path");
    }
    if name.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Some("has a control character in its path");
    }
    if name.as_bytes().get(1) == Some(&b':') && name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
        return Some("has a drive letter in its path");
    }
    let path = name.strip_suffix('/').unwrap_or(name);
    for part in path.split('/') {
        match part {
            "" => return Some("has an empty part in its path"),
            "." | ".." => return Some("leaves its directory"),
            _ if part.len() > 255 => return Some("has a part of more than 255 bytes in its path"),
            _ => {}
        }
    }
    (name.len() > 1024).then_some("has a path of more than 1024 bytes")
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn plain_relative_paths_are_fit() {
        for name in ["a", "torch/include/ATen/ATen.h", "a b/ü.h", "dir/", "a..b/.hidden", "...", "xx:y"] {
            assert_eq!(fault(name), None, "{name}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        let hostile = [
            "",
            "/",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/.",
            "./a",
            "a//b",
            "a\\b",
            "C:x",
            "C:/x",
            "a\0b",
            "a\nb",
            "..",
            "a/../",
            "\u{7f}",
        ];
        for name in hostile {
            assert!(fault(name).is_some(), "{name:?}");
        }
        assert!(fault(&"x".repeat(256)).is_some());
        assert!(fault(&"x/".repeat(600)).is_some());
    }
}
