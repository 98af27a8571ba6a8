//! What `[metal]` in `kiln.toml` may say.

use kiln_backend::Version;

/// The oldest macOS that extensions are for, and the language that shaders are written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetalSettings {
    /// The oldest macOS. Loaders ask for 26.0 before they take a variant for Metal.
    pub deployment_target: Version,
    /// The value of `-std=` for shaders.
    pub language: String,
}

/// What is wrong with a setting: lower case, without full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

impl Default for MetalSettings {
    fn default() -> Self {
        Self { deployment_target: Version::from(kiln_backend::MajorMinor::new(26, 0)), language: "metal4.0".to_owned() }
    }
}

impl MetalSettings {
    /// The settings with these values in place of the default ones.
    ///
    /// # Errors
    /// When a value has not the form of a release of macOS (`26.0`), or of a language (`metal4.0`, `macos-metal2.4`).
    pub fn of(deployment_target: Option<&str>, language: Option<&str>) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        if let Some(text) = deployment_target {
            let wrong = || SettingError(format!("`{text}` is no release of macOS, such as `26.0`"));
            let version = Version::parse(text).map_err(|_| wrong())?;
            if !(1..=3).contains(&version.components().len()) || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                return Err(wrong());
            }
            settings.deployment_target = version;
        }
        if let Some(text) = language {
            let release = text.strip_prefix("macos-").unwrap_or(text).strip_prefix("metal");
            let numbers = release.and_then(|release| release.split_once('.'));
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if !numbers.is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
                return Err(SettingError(format!("`{text}` is no language of shaders, such as `metal4.0`")));
            }
            settings.language = text.to_owned();
        }
        Ok(settings)
    }

    /// The oldest macOS with both of its numbers: `26.0`.
    pub fn minimum(&self) -> String {
        let version = &self.deployment_target;
        match version.components() {
            [_] | [] => version.major_minor().to_string(),
            _ => version.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_form() {
        let of = |target, language| MetalSettings::of(target, language).map(|settings| (settings.minimum(), settings.language));
        let fine = |minimum: &str, language: &str| Ok((minimum.to_owned(), language.to_owned()));
        assert_eq!(of(None, None), fine("26.0", "metal4.0"));
        assert_eq!(of(Some("15"), Some("metal3.2")), fine("15.0", "metal3.2"));
        assert_eq!(of(Some("14.3.1"), Some("macos-metal2.4")), fine("14.3.1", "macos-metal2.4"));
        for text in ["", "new", "26.0 -x", "26.0+1", "1.2.3.4", "-1"] {
            assert!(of(Some(text), None).is_err(), "{text}");
        }
        for text in ["", "metal", "metal4", "4.0", "metal4.0 -x", "metalx.y", "metal4."] {
            assert!(of(None, Some(text)).is_err(), "{text}");
        }
    }
}
