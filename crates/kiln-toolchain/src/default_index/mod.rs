//! Which package index is meant when nobody says: decided once from what the caller read.
//!
//! No host name is compiled in. The first of these that says something wins: the command line, `kiln.toml`,
//! `KILN_INDEX_URL`, `UV_DEFAULT_INDEX`, `PIP_INDEX_URL`, pip's configuration files, and at last what the pip of an
//! installed Python has built in.

mod built_in;
mod pip_config;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use self::built_in::{BuiltInIndex, ask_pip};
pub use self::pip_config::{PipFile, pip_files};

use self::pip_config::PipConfig;
use crate::error::Error;
use crate::http::{IndexUrl, Proxies};

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
    /// pip's configuration files: those of [`pip_files`].
    pub pip_files: &'a [PipFile],
    /// Asks the installed Python's pip for the index that it has built in; the last resort. The error says in a few
    /// words why there is no answer.
    pub ask_python: &'a dyn Fn() -> Result<String, String>,
    /// Where relative paths of the command line and of variables start.
    pub current_dir: &'a Path,
    /// Where relative paths of `kiln.toml` start.
    pub project_dir: &'a Path,
}

impl<'a> IndexSettings<'a> {
    /// What the machine says by itself, without an option or a project. `environment`, `pip_files` and `ask_python` as in the fields.
    pub fn of_machine(
        environment: &'a BTreeMap<String, String>,
        pip_files: &'a [PipFile],
        ask_python: &'a dyn Fn() -> Result<String, String>,
        current_dir: &'a Path,
    ) -> Self {
        Self { option: None, kiln_toml: None, environment, pip_files, ask_python, current_dir, project_dir: current_dir }
    }
}

/// What the caller knows of an index for torch builds that the package index lacks.
#[derive(Clone, Copy, Debug)]
pub struct TorchIndexSettings<'a> {
    /// Value of `--torch-index`.
    pub option: Option<&'a str>,
    /// The index that `kiln.toml` names.
    pub kiln_toml: Option<&'a str>,
    /// The environment; only `KILN_TORCH_INDEX_URL` is looked at.
    pub environment: &'a BTreeMap<String, String>,
    /// Where relative paths of the command line and of variables start.
    pub current_dir: &'a Path,
    /// Where relative paths of `kiln.toml` start.
    pub project_dir: &'a Path,
}

/// Which setting named the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// `--index` or `--torch-index`.
    Option(&'static str),
    /// This key of `kiln.toml`.
    KilnToml(&'static str),
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
            Self::Option(name) => write!(f, "the value of `{name}`"),
            Self::KilnToml(key) => write!(f, "`{key}` of `kiln.toml`"),
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
    settled(&text, origin, settings.current_dir, settings.project_dir)
}

/// The index for torch builds that the package index lacks, where a setting names one: `--torch-index`, `kiln.toml`, or
/// `KILN_TORCH_INDEX_URL`, in this order.
///
/// # Errors
/// [`Error::IndexUrl`] when the setting that counts is no URL.
pub fn torch_index(settings: &TorchIndexSettings<'_>) -> Result<Option<DefaultIndex>, Error> {
    const VARIABLE: &str = "KILN_TORCH_INDEX_URL";
    let variable = settings.environment.get(VARIABLE).map(String::as_str);
    let candidates = [
        (settings.option, IndexOrigin::Option("--torch-index")),
        (settings.kiln_toml, IndexOrigin::KilnToml("index.torch")),
        (variable, IndexOrigin::Variable(VARIABLE)),
    ];
    let said = candidates.into_iter().find_map(|(text, origin)| Some((text.filter(|text| !text.trim().is_empty())?, origin)));
    said.map(|(text, origin)| settled(text, origin, settings.current_dir, settings.project_dir)).transpose()
}

/// Reads the setting that counts.
fn settled(text: &str, origin: IndexOrigin, current_dir: &Path, project_dir: &Path) -> Result<DefaultIndex, Error> {
    let base = if matches!(origin, IndexOrigin::KilnToml(_)) { project_dir } else { current_dir };
    match IndexUrl::parse_in(text, base) {
        Ok(url) => Ok(DefaultIndex { url, origin }),
        Err(reason) => Err(Error::IndexUrl { origin: origin.to_string(), reason }),
    }
}

/// The first setting that says something.
fn choose(settings: &IndexSettings<'_>) -> Result<(String, IndexOrigin), Error> {
    let said = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    if let Some(text) = said(settings.option) {
        return Ok((text, IndexOrigin::Option("--index")));
    }
    if let Some(text) = said(settings.kiln_toml) {
        return Ok((text, IndexOrigin::KilnToml("index.url")));
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

/// The proxies: pip's `proxy` setting (`PIP_PROXY` or its configuration) for everything, else what the variables that
/// other programs read name.
///
/// # Errors
/// [`Error::PipConfig`] when a configuration file cannot be read.
pub fn proxies(environment: &BTreeMap<String, String>, pip_files: &[PipFile]) -> Result<Proxies, Error> {
    let pip = PipConfig::read(pip_files)?;
    let variable = environment.get("PIP_PROXY").map(|text| text.trim()).filter(|text| !text.is_empty());
    let said = variable.or_else(|| pip.get("proxy").map(|(text, _)| text));
    Ok(said.map_or_else(|| Proxies::of_environment(environment), Proxies::all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn nothing() -> IndexSettings<'static> {
        static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();
        IndexSettings {
            option: None,
            kiln_toml: None,
            environment: &NO_VARIABLES,
            pip_files: &[],
            ask_python: &|| Err("not asked".to_owned()),
            current_dir: Path::new("/current"),
            project_dir: Path::new("/project"),
        }
    }

    #[test]
    fn relative_paths_start_where_they_are_written() {
        let shown = |settings: IndexSettings<'_>| default_index(&settings).unwrap().url.to_string();
        assert_eq!(shown(IndexSettings { option: Some("./wheels"), ..nothing() }), "/current/wheels/");
        assert_eq!(shown(IndexSettings { kiln_toml: Some("./wheels"), ..nothing() }), "/project/wheels/");
    }

    #[test]
    fn the_index_for_other_builds_of_torch() {
        let variables = environment(&[("KILN_TORCH_INDEX_URL", "https://variable.example/whl")]);
        let directory = Path::new("/d");
        let settings = TorchIndexSettings {
            option: Some("https://option.example/whl"),
            kiln_toml: Some("https://toml.example/whl"),
            environment: &variables,
            current_dir: directory,
            project_dir: directory,
        };
        let shown = |settings: TorchIndexSettings<'_>| torch_index(&settings).map(|found| found.map(|found| found.url.to_string()));
        assert_eq!(shown(settings).unwrap().as_deref(), Some("https://option.example/whl/"));
        assert_eq!(shown(TorchIndexSettings { option: None, ..settings }).unwrap().as_deref(), Some("https://toml.example/whl/"));
        let variable = TorchIndexSettings { option: Some(""), kiln_toml: None, ..settings };
        assert_eq!(shown(variable).unwrap().as_deref(), Some("https://variable.example/whl/"));
        assert_eq!(shown(TorchIndexSettings { environment: &BTreeMap::new(), ..variable }).unwrap(), None);
        let message = shown(TorchIndexSettings { option: Some("x"), ..settings }).unwrap_err().to_string();
        assert!(message.starts_with("the value of `--torch-index` is not the URL of a package index"), "{message}");
    }

    #[test]
    fn the_proxy_of_pip_goes_before_those_of_the_environment() {
        let pip = [PipFile { path: "/etc/pip.conf".into(), text: "[global]\nproxy = http://pip.example:1\n".to_owned() }];
        let variables = environment(&[("https_proxy", "http://env.example:1")]);
        assert_eq!(proxies(&variables, &[]).unwrap().https.as_deref(), Some("http://env.example:1"));
        assert_eq!(proxies(&variables, &pip).unwrap().https.as_deref(), Some("http://pip.example:1"));
        let variables = environment(&[("PIP_PROXY", "http://var.example:1")]);
        assert_eq!(proxies(&variables, &pip).unwrap().http.as_deref(), Some("http://var.example:1"));
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
            let settings = IndexSettings { option, kiln_toml, environment: variables, pip_files, ask_python: &built_in, ..nothing() };
            let found = default_index(&settings).unwrap();
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
        https://toml.example/ (`index.url` of `kiln.toml`)
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
        let settings = IndexSettings { ask_python: &none, ..nothing() };
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
            environment: &environment(&[("PIP_INDEX_URL", "ftp://me:secret@host/simple")]),
            ask_python: &|| unreachable!("a setting that is wrong is still the one that counts"),
            ..nothing()
        };
        insta::assert_snapshot!(default_index(&settings).unwrap_err().to_string(), @"the value of `PIP_INDEX_URL` is not the URL of a package index: `ftp:` addresses are not supported, only `https:`, `http:` and `file:`");
    }

    #[test]
    fn certificates_are_named_once() {
        let pip = [PipFile { path: "/etc/pip.conf".into(), text: "[global]\ncert = /c.pem\n".to_owned() }];
        let variables = environment(&[("SSL_CERT_FILE", "/a.pem"), ("PIP_CERT", "/a.pem")]);
        assert_eq!(certificate_files(&variables, &pip).unwrap(), [PathBuf::from("/a.pem"), PathBuf::from("/c.pem")]);
    }
}
