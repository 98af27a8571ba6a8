//! pip's configuration files, as far as they say how to reach an index.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A configuration file of pip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipFile {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// Where pip looks for its configuration on Unix, in its order: a later file overrides an earlier one. These are the
/// places of pip's manual (configuration, "location"): system-wide, the user's, the environment's, `PIP_CONFIG_FILE`.
fn pip_config_paths(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let variable = |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let named = variable("PIP_CONFIG_FILE");
    if named == Some("/dev/null") {
        return Vec::new();
    }
    let mut paths = Vec::new();
    let system = variable("XDG_CONFIG_DIRS").unwrap_or("/etc/xdg");
    paths.extend(system.split(':').filter(|dir| !dir.is_empty()).map(|dir| Path::new(dir).join("pip/pip.conf")));
    paths.push("/etc/pip.conf".into());
    if let Some(home) = variable("HOME").map(Path::new) {
        paths.push(home.join(".pip/pip.conf"));
        let config = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        paths.push(config.join("pip/pip.conf"));
    }
    paths.extend(variable("VIRTUAL_ENV").map(|dir| Path::new(dir).join("pip.conf")));
    paths.extend(named.map(PathBuf::from));
    paths
}

/// pip's configuration files, those that exist and can be read, in the order in which pip reads them.
pub fn pip_files(environment: &BTreeMap<String, String>) -> Vec<PipFile> {
    let read = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| PipFile { path, text });
    pip_config_paths(environment).into_iter().filter_map(read).collect()
}

/// Merged settings.
#[derive(Debug, Default)]
pub(super) struct PipConfig {
    /// By section and key; the file of each beside it.
    settings: BTreeMap<(String, String), (String, PathBuf)>,
}

impl PipConfig {
    /// Merges files, later ones over earlier ones.
    pub(super) fn read(files: &[PipFile]) -> Result<Self, Error> {
        let mut config = Self::default();
        for file in files {
            config.add(file)?;
        }
        Ok(config)
    }

    /// The value of a setting for `pip install`, whose own section goes before the global one.
    pub(super) fn get(&self, key: &str) -> Option<(&str, &Path)> {
        let found = ["install", "global"].iter().find_map(|section| self.settings.get(&((*section).to_owned(), key.to_owned())))?;
        Some((found.0.as_str(), found.1.as_path())).filter(|(value, _)| !value.is_empty())
    }

    /// Adds the settings of a file: the INI dialect of Python's `configparser`, without interpolation.
    fn add(&mut self, file: &PipFile) -> Result<(), Error> {
        let wrong = |index: usize, reason: &str| Error::PipConfig { path: file.path.clone(), line: index + 1, reason: reason.to_owned() };
        let mut section: Option<String> = None;
        let mut last: Option<(String, String)> = None;
        for (index, line) in file.text.lines().enumerate() {
            let text = line.trim();
            if text.is_empty() || text.starts_with(['#', ';']) {
                continue;
            }
            if line.starts_with(char::is_whitespace) {
                // A continued value: only lists have several lines, and no setting that is read here is a list.
                if let Some((value, _)) = last.as_ref().and_then(|key| self.settings.get_mut(key)) {
                    *value = format!("{value} {text}").trim().to_owned();
                }
                continue;
            }
            if let Some(name) = text.strip_prefix('[') {
                let (name, _) = name.split_once(']').ok_or_else(|| wrong(index, "a section without `]`"))?;
                section = Some(name.trim().to_owned());
                last = None;
                continue;
            }
            let section = section.as_ref().ok_or_else(|| wrong(index, "a setting before the first section"))?;
            let (key, value) = text.split_once(['=', ':']).ok_or_else(|| wrong(index, "neither a section nor a setting"))?;
            let key = (section.clone(), key.trim().to_lowercase().replace('_', "-"));
            let value = value.trim();
            let value = value.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(value);
            self.settings.insert(key.clone(), (value.to_owned(), file.path.clone()));
            last = Some(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> PipFile {
        PipFile { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn later_files_and_the_section_of_install_win() {
        let files = [
            file(
                "/1",
                "# system\n[global]\nindex_url: https://one.example/simple\ncert = /one.pem\nextra-index-url =\n    https://a\n    https://b\n",
            ),
            file("/2", "[install]\nindex-url=https://two.example/simple\n[list]\nindex-url = https://no.example\n"),
            file("/3", "[global]\nindex-url = https://three.example/simple\n"),
        ];
        let config = PipConfig::read(&files).unwrap();
        assert_eq!(config.get("index-url"), Some(("https://two.example/simple", Path::new("/2"))));
        assert_eq!(PipConfig::read(&files[..1]).unwrap().get("index-url"), Some(("https://one.example/simple", Path::new("/1"))));
        assert_eq!(config.get("cert"), Some(("/one.pem", Path::new("/1"))));
        assert_eq!(config.get("proxy"), None);
    }

    #[test]
    fn damaged_files_are_named_with_the_line() {
        let message = |text: &str| PipConfig::read(&[file("/p.conf", text)]).unwrap_err().to_string();
        assert_eq!(message("[global]\nnonsense\n"), "cannot read pip's configuration `/p.conf`, line 2: neither a section nor a setting");
        assert_eq!(message("a = b\n"), "cannot read pip's configuration `/p.conf`, line 1: a setting before the first section");
        assert_eq!(message("\n[global\n"), "cannot read pip's configuration `/p.conf`, line 2: a section without `]`");
    }

    #[test]
    fn the_places_are_those_of_pip() {
        let environment: BTreeMap<String, String> =
            [("HOME", "/home/u"), ("VIRTUAL_ENV", "/v"), ("PIP_CONFIG_FILE", "/x.conf")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let paths = pip_config_paths(&environment);
        let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let wanted =
            ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "/home/u/.pip/pip.conf", "/home/u/.config/pip/pip.conf", "/v/pip.conf", "/x.conf"];
        assert_eq!(shown, wanted);
    }
}
