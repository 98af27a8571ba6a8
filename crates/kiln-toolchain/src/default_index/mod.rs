//! Which package index is meant when nobody says: decided once from what the caller read.
//!
//! No host name is compiled in. The first of these that says something wins: the command line, `kiln.toml`,
//! `KILN_INDEX_URL`, `UV_DEFAULT_INDEX`, `PIP_INDEX_URL`, pip's configuration files, and at last what the pip of an
//! installed Python has built in.

mod built_in;
mod pip_config;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use self::built_in::{BuiltInIndex, ask_pip};
pub use self::pip_config::{PipFile, pip_config_paths};

use self::pip_config::PipConfig;
use crate::error::Error;
use crate::http::IndexUrl;

/// Environment variables that name an index, in their order.
const VARIABLES: [&str; 3] = ["KILN_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"];

/// What the caller knows.
pub struct IndexSettings<'a> {
    /// Value of `--index`.
    pub option: Option<&'a str>,
    /// The index that `kiln.toml` names.
    pub kiln_toml: Option<&'a str>,
    /// The environment; only the variables named in this module's rule are looked at.
    pub environment: &'a BTreeMap<String, String>,
    /// pip's configuration files, those that exist among [`pip_config_paths`], in that order.
    pub pip_files: &'a [PipFile],
    /// Asks the installed Python's pip for the index that it has built in; the last resort. The error says in a few
    /// words why there is no answer.
    pub ask_python: &'a dyn Fn() -> Result<String, String>,
}

/// Which setting named the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// `--index`.
    Option,
    /// `kiln.toml`.
    KilnToml,
    /// This environment variable.
    Variable(&'static str),
    /// This configuration file of pip.
    PipFile(PathBuf),
    /// The installed Python's pip.
    BuiltIn,
}

impl fmt::Display for IndexOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => f.write_str("the value of `--index`"),
            Self::KilnToml => f.write_str("the index of `kiln.toml`"),
            Self::Variable(name) => write!(f, "the value of `{name}`"),
            Self::PipFile(path) => write!(f, "the `index-url` of `{}`", path.display()),
            Self::BuiltIn => f.write_str("the answer of Python's pip"),
        }
    }
}

/// An index, and which setting named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultIndex {
    /// The index.
    pub url: IndexUrl,
    /// What named it.
    pub origin: IndexOrigin,
}

/// The index to use. An empty setting says nothing.
///
/// # Errors
/// [`Error::NoIndex`] with all that was asked; [`Error::IndexUrl`] when the setting that counts is no URL;
/// [`Error::PipConfig`] when a configuration file that is reached cannot be read.
pub fn default_index(settings: &IndexSettings<'_>) -> Result<DefaultIndex, Error> {
    let (text, origin) = choose(settings)?;
    match IndexUrl::parse(&text) {
        Ok(url) => Ok(DefaultIndex { url, origin }),
        Err(reason) => Err(Error::IndexUrl { origin: origin.to_string(), reason }),
    }
}

/// The first setting that says something.
fn choose(settings: &IndexSettings<'_>) -> Result<(String, IndexOrigin), Error> {
    let said = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    if let Some(text) = said(settings.option) {
        return Ok((text, IndexOrigin::Option));
    }
    if let Some(text) = said(settings.kiln_toml) {
        return Ok((text, IndexOrigin::KilnToml));
    }
    for name in VARIABLES {
        // uv allows a name before the address: `name=URL`.
        let value = said(settings.environment.get(name).map(String::as_str));
        let value = if name == "UV_DEFAULT_INDEX" { value.map(|value| unnamed(&value).to_owned()) } else { value };
        if let Some(text) = value {
            return Ok((text, IndexOrigin::Variable(name)));
        }
    }
    let pip = PipConfig::read(settings.pip_files)?;
    if let Some((text, path)) = pip.get("index-url") {
        return Ok((text.to_owned(), IndexOrigin::PipFile(path.to_owned())));
    }
    match (settings.ask_python)() {
        Ok(text) => Ok((text, IndexOrigin::BuiltIn)),
        Err(reason) => {
            let mut asked = vec!["`--index`".to_owned(), "`kiln.toml`".to_owned()];
            asked.extend(VARIABLES.iter().map(|name| format!("`{name}`")));
            asked.push("pip's configuration files".to_owned());
            asked.push(format!("the installed Python's pip: {reason}"));
            Err(Error::NoIndex { asked })
        }
    }
}

/// The address of uv's `name=URL`.
fn unnamed(value: &str) -> &str {
    match value.split_once('=') {
        Some((name, url)) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) => url,
        _ => value,
    }
}

/// The certificate files that are trusted beside the system's: `SSL_CERT_FILE`, `PIP_CERT`, and pip's `cert` setting.
/// Each is named once; whether they can be read shows when they are used.
///
/// # Errors
/// [`Error::PipConfig`] when a configuration file cannot be read.
pub fn certificate_files(environment: &BTreeMap<String, String>, pip_files: &[PipFile]) -> Result<Vec<PathBuf>, Error> {
    let mut files: Vec<PathBuf> = Vec::new();
    let pip = PipConfig::read(pip_files)?;
    let variables = ["SSL_CERT_FILE", "PIP_CERT"].into_iter().filter_map(|name| environment.get(name).map(String::as_str));
    for text in variables.chain(pip.get("cert").map(|(text, _)| text)) {
        let file = PathBuf::from(text.trim());
        if !file.as_os_str().is_empty() && !files.contains(&file) {
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_first_setting_that_says_something_wins() {
        let built_in = || Ok("https://built-in.example/simple".to_owned());
        let pip = [PipFile { path: "/etc/pip.conf".into(), text: "[global]\nindex-url = https://pip.example/simple\n".to_owned() }];
        let mut variables = environment(&[
            ("KILN_INDEX_URL", "https://kiln.example/simple"),
            ("UV_DEFAULT_INDEX", "corp=https://uv.example/simple?a=b"),
            ("PIP_INDEX_URL", "https://pip-var.example/simple/"),
        ]);
        let mut shown = Vec::new();
        let mut show = |option, kiln_toml, variables: &BTreeMap<String, String>, pip_files| {
            let found =
                default_index(&IndexSettings { option, kiln_toml, environment: variables, pip_files, ask_python: &built_in }).unwrap();
            shown.push(format!("{} ({})", found.url, found.origin));
        };
        show(Some("https://option.example"), Some("https://toml.example"), &variables, &pip);
        show(Some(" "), Some("https://toml.example"), &variables, &pip);
        show(None, None, &variables, &pip);
        variables.insert("KILN_INDEX_URL".to_owned(), String::new());
        show(None, None, &variables, &pip);
        variables.remove("UV_DEFAULT_INDEX");
        show(None, None, &variables, &pip);
        variables.remove("PIP_INDEX_URL");
        show(None, None, &variables, &pip);
        show(None, None, &variables, &[]);
        insta::assert_snapshot!(shown.join("\n"), @r"
        https://option.example/ (the value of `--index`)
        https://toml.example/ (the index of `kiln.toml`)
        https://kiln.example/simple/ (the value of `KILN_INDEX_URL`)
        https://uv.example/simple/ (the value of `UV_DEFAULT_INDEX`)
        https://pip-var.example/simple/ (the value of `PIP_INDEX_URL`)
        https://pip.example/simple/ (the `index-url` of `/etc/pip.conf`)
        https://built-in.example/simple/ (the answer of Python's pip)
        ");
    }

    #[test]
    fn no_index_is_an_error_that_shows_the_option() {
        let none = || Err("no `python3` on PATH".to_owned());
        let settings = IndexSettings { option: None, kiln_toml: None, environment: &BTreeMap::new(), pip_files: &[], ask_python: &none };
        let error = default_index(&settings).unwrap_err();
        insta::assert_snapshot!(format!("error: {error}\nhint: {}", error.hint().unwrap()), @r"
        error: no package index is configured
        hint: give one with `--index URL` or in `[index]` of `kiln.toml`; asked in vain:
          `--index`
          `kiln.toml`
          `KILN_INDEX_URL`
          `UV_DEFAULT_INDEX`
          `PIP_INDEX_URL`
          pip's configuration files
          the installed Python's pip: no `python3` on PATH
        ");
    }

    #[test]
    fn a_wrong_setting_is_named_and_not_quoted() {
        let settings = IndexSettings {
            option: None,
            kiln_toml: None,
            environment: &environment(&[("PIP_INDEX_URL", "ftp://me:secret@host/simple")]),
            pip_files: &[],
            ask_python: &|| unreachable!("a setting that is wrong is still the one that counts"),
        };
        insta::assert_snapshot!(default_index(&settings).unwrap_err().to_string(), @"the value of `PIP_INDEX_URL` is not the URL of a package index: `ftp:` addresses are not supported, only `http:` and `https:`");
    }

    #[test]
    fn certificates_are_named_once() {
        let pip = [PipFile { path: "/etc/pip.conf".into(), text: "[global]\ncert = /c.pem\n".to_owned() }];
        let variables = environment(&[("SSL_CERT_FILE", "/a.pem"), ("PIP_CERT", "/a.pem")]);
        assert_eq!(certificate_files(&variables, &pip).unwrap(), [PathBuf::from("/a.pem"), PathBuf::from("/c.pem")]);
    }
}
